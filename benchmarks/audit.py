"""The audit of two files: what it notices, how often wrongly, how well calibrated, how fast.

``python benchmarks/audit.py releases 50``
    honest, copied, nearly copied, CART and overfitted releases of the built-in sample, and as many
    further honest ones as the number says: outcome, people named, AUC of copied people, CPU time
``python benchmarks/audit.py calibration``
    expected calibration error of before, after and the release alone on public tables (the extra
    ``tables``) and two simulated worlds, and the mean log ratio of people held out
``python benchmarks/audit.py sizes``
    CPU and wall time by the number of records and columns
``python benchmarks/audit.py peers FOLDER``
    writes the releases as CSV files, for ``benchmarks/audit_peers.py`` in another environment
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr
from synrisk.audit.known_values import N_CLASSES, nearest
from synrisk.audit.learnt_values import learn
from synrisk.audit.left_out_parts import Intervals, Scale, predicted, predicted_left_out
from synrisk.audit.trust import trust
from synrisk.audit.two_files import Files, read_two_files

PLAN = [
    sr.Regression("Urban ~ 1", "bernoulli"),
    sr.Regression("Race ~ Urban", "categorical"),
    sr.Regression("KidsCount ~ Urban + Race", "poisson"),
    sr.Regression("LogExpenditure ~ Urban + Race + KidsCount"),
    sr.Regression("LogIncome ~ LogExpenditure + Race + Urban + KidsCount"),
]
AMOUNTS = ("LogExpenditure", "LogIncome")
SHARE = 0.1  # of people copied
N_BINS = 15


@lru_cache
def fitted() -> tuple[pd.DataFrame, sr.Synthesizer]:
    """Return the built-in sample and models of all of its columns."""
    people = sr.load_households()
    return people, sr.fit(PLAN, people, n_draws=400, seed=2**80)


def honest(seed: int) -> pd.DataFrame:
    """Return a release of the models."""
    return fitted()[1].synthesize(1, seed=2**81 + seed)[0]


def copied(seed: int, noise: float = 0.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return an honest release in which a tenth of people stands, and who."""
    people, rng = fitted()[0], np.random.default_rng(seed)
    release = honest(seed)
    n = int(SHARE * len(people))
    who, at = (rng.choice(len(people), n, replace=False) for _ in range(2))
    for name in people:
        column, own = release[name].astype(object).to_numpy().copy(), people[name].to_numpy()[who]
        if name in AMOUNTS:
            own = own + noise * people[name].std() * rng.normal(size=n)
        column[at] = own
        release[name] = pd.Series(column).astype(people[name].dtype)
    return release, np.isin(np.arange(len(people)), who)


def cart(seed: int, leaf: int) -> pd.DataFrame:
    """Return a release of trees whose leaves give their own values away, column after column."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    people, rng = fitted()[0], np.random.default_rng(seed)
    codes = people.copy()
    for name in ("Urban", "Race"):
        codes[name] = pd.factorize(people[name].astype(str), sort=True)[0]
    names, made = list(codes), codes.astype(np.float64)
    own = made.copy()
    made[names[0]] = rng.choice(own[names[0]], len(own))
    for k, name in enumerate(names[1:], 1):
        kind = DecisionTreeRegressor if name in AMOUNTS else DecisionTreeClassifier
        tree = kind(min_samples_leaf=leaf, random_state=seed).fit(own[names[:k]], own[name])
        leaves, values = tree.apply(own[names[:k]]), own[name].to_numpy()
        donors = {one: values[leaves == one] for one in np.unique(leaves)}
        made[name] = [rng.choice(donors[one]) for one in tree.apply(made[names[:k]])]
    for name in ("Urban", "Race"):
        made[name] = np.unique(people[name].astype(str))[made[name].astype(int)]
    return made


def overfitted(seed: int, noise: float = 0.05) -> pd.DataFrame:
    """Return people drawn with replacement, their amounts with a little noise."""
    people, rng = fitted()[0], np.random.default_rng(seed)
    release = people.sample(len(people), replace=True, random_state=seed).reset_index(drop=True)
    for name in AMOUNTS:
        release[name] += noise * people[name].std() * rng.normal(size=len(release))
    return release


KINDS: dict[str, Callable[[int], tuple[pd.DataFrame, np.ndarray | None]]] = {
    "honest": lambda seed: (honest(seed), None),
    "a tenth copied": lambda seed: copied(seed),
    "a tenth copied, noise 0.01 sd": lambda seed: copied(seed, 0.01),
    "CART, leaves of 5, donors": lambda seed: (cart(seed, 5), None),
    "CART, leaves of 1, donors": lambda seed: (cart(seed, 1), None),
    "overfitted: bootstrap, noise 0.05 sd": lambda seed: (overfitted(seed), None),
}


def audited(release: pd.DataFrame, who: np.ndarray | None, **options: Any) -> str:
    """Audit a release of the sample, and return a line."""
    from sklearn.metrics import roc_auc_score

    start, begun = time.process_time(), time.perf_counter()
    found = sr.audit(fitted()[0], release, seed=1, **options)
    cpu, wall = time.process_time() - start, time.perf_counter() - begun
    records = found.records
    aucs = ""
    if who is not None:
        by_gain, by_both = records["gain"], records["gain"] - np.log10(records["closeness"] + 1e-9)
        aucs = f"  AUC by gain {roc_auc_score(who, by_gain):.3f}, with closeness "
        aucs += f"{roc_auc_score(who, by_both):.3f}"
    return (
        f"{found.verdict().outcome:<8} largest gain {records['gain'].max():.3f}, above 0.1 "
        f"{int((records['gain'] > 0.1).sum()):>5}, named {int(records['too_close'].sum()):>5}, "
        f"p {found.copies.combined:.1e}, CPU {cpu:.1f} s, wall {wall:.1f} s{aucs}"
    )


def releases(n_honest: int) -> None:
    """Print a line a release."""
    for name, make in KINDS.items():
        for seed in (1, 2):
            print(f"{name:<40} {audited(*make(seed))}", flush=True)
    for seed in range(3, 3 + n_honest):
        print(f"{'honest':<40} {audited(honest(seed), None)}", flush=True)


def tables() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield public tables and simulated worlds, each of one kind of people."""
    from palmerpenguins import load_penguins
    from sklearn import datasets as of_sklearn
    from statsmodels import datasets as of_statsmodels

    yield "penguins", load_penguins().drop(columns="year")
    fair = of_statsmodels.fair.load_pandas().data
    yield "fair", fair[["rate_marriage", "age", "children", "religious", "educ", "affairs"]]
    anes = of_statsmodels.anes96.load_pandas().data
    yield "anes96", anes[["TVnews", "PID", "age", "educ", "income", "vote"]]
    # Its people stand in several rows, which the thirds share.
    health = of_statsmodels.randhie.load_pandas().data
    yield "randhie", health[["mdvis", "lncoins", "idp", "lpi", "physlm", "disea"]].iloc[::2]
    cancer = of_sklearn.load_breast_cancer(as_frame=True).frame
    yield "breast_cancer", cancer[["mean radius", "mean texture", "mean smoothness", "target"]]
    rng = np.random.default_rng(1)
    n = 12_000
    a = rng.normal(size=n)
    b = np.exp(0.5 * a + rng.normal(size=n))
    c = np.where(rng.random(n) < 1 / (1 + np.exp(-a)), "yes", "no")
    yield "a world of amounts", pd.DataFrame({"a": a, "b": b, "c": c})
    x, y = rng.integers(0, 4, n), rng.poisson(1.5, n)
    z = (x + y + rng.integers(0, 3, n)) % 5
    yield "a world of counts", pd.DataFrame({"x": [f"k{v}" for v in x], "y": y, "z": z})


def calibration(n_candidates: int = 8) -> None:
    """Print errors of calibration, a row a table: half is the file, half the honest release."""
    for name, frame in tables():
        frame = frame.sample(frac=1.0, random_state=0).reset_index(drop=True)
        third = len(frame) // 3
        people, release, others = (
            frame.iloc[k * third : (k + 1) * third].reset_index(drop=True) for k in range(3)
        )
        files = read_two_files(people, release, others, None, None, None)
        errors = np.mean([_errors(files, one, n_candidates) for one in files.sensitive], axis=0)
        ratios = [_log_ratios(files, one) for one in files.sensitive]
        mean = float(np.mean([one.mean() for one in ratios]))
        se = float(np.std(np.mean(ratios, axis=0), ddof=1) / np.sqrt(len(ratios[0])))
        alone = [_log_ratios(files, one, alone=True) for one in files.sensitive]
        mean_alone = float(np.mean([one.mean() for one in alone]))
        se_alone = float(np.std(np.mean(alone, axis=0), ddof=1) / np.sqrt(len(alone[0])))
        print(
            f"{name:<20} n {third:>5}  ECE before {errors[0]:.4f}, after {errors[1]:.4f}, alone "
            f"{errors[2]:.4f}  log ratio held out {mean:+.4f} ± "
            f"{se:.4f}, alone {mean_alone:+.4f} ± {se_alone:.4f}",
            flush=True,
        )


def _errors(files: Files, name: str, n_candidates: int) -> list[float]:
    """Return the calibration errors of before, after and alone at other people's values.

    Beyond those of forecasts that are right, which few people do not show as such.
    """
    people, rows = files.who(files.people, name), files.who(files.rows, name)
    truth = files.intervals(files.people, name)
    base = predicted_left_out(people.table, truth, 1, name)
    near, near_rows = nearest(people.known, people.known, own=True), nearest(
        people.known, rows.known
    )  # fmt: skip
    usual = trust(
        base.probability, near.told(people.value, truth.low, truth.high), near.classes, N_CLASSES
    )
    believed = base.probability + usual.weight * (
        near.told(people.value, truth.low, truth.high) - base.probability
    )
    more = trust(
        believed,
        near_rows.told(rows.value, truth.low, truth.high),
        near_rows.classes,
        N_CLASSES,
        usual.by_class,
    )
    rng = np.random.default_rng(0)
    squares = np.zeros((n_candidates, 3))
    for k in range(n_candidates):
        order = rng.permutation(len(people))
        asked = Intervals(truth.low[order], truth.high[order])
        p = predicted_left_out(people.table, truth, 1, name, asked=asked).probability
        before = p + usual.weight * (near.told(people.value, asked.low, asked.high) - p)
        told = near_rows.told(rows.value, asked.low, asked.high)
        after = before + more.weight * (told - before)
        alone = predicted(
            rows.table, people.given, asked, 1, name, scale=Scale(base.scale.leaf)
        ).probability
        hit = (people.value >= asked.low) & (people.value <= asked.high)
        for column, forecast in enumerate((before, after, alone)):
            by_chance = _ece(forecast, rng.random(len(hit)) < forecast)
            squares[k, column] = _ece(forecast, hit) ** 2 - by_chance**2
    return list(np.sqrt(np.maximum(squares.mean(axis=0), 0.0)))


def _ece(p: np.ndarray, hit: np.ndarray) -> float:
    """Return the expected calibration error, over bins of as many forecasts each."""
    order = np.argsort(p, kind="stable")
    parts = np.array_split(order, N_BINS)
    return float(sum(len(at) * abs(p[at].mean() - hit[at].mean()) for at in parts) / len(p))


def _log_ratios(files: Files, name: str, *, alone: bool = False) -> np.ndarray:
    """Return the log ratio of after, or of the release alone, over before, of people held out."""
    others = files.others
    lesson = learn(
        files.who(files.people, name),
        files.who(files.rows, name),
        files.intervals(files.people, name),
        1,
        name,
        (files.who(others, name), files.intervals(others, name)),
    )
    held_out = lesson.others
    return np.log((held_out.alone if alone else held_out.after) / held_out.before)


def sizes() -> None:
    """Print the time by size."""
    for n, p in ((1_000, 5), (10_000, 5), (100_000, 10)):
        rng = np.random.default_rng(0)
        common = rng.normal(size=(2 * n, 1))
        numbers = 0.5 * common + rng.normal(size=(2 * n, p))
        frame = pd.DataFrame(numbers, columns=[f"v{k}" for k in range(p)])
        for k in range(p // 2):
            frame[f"v{k}"] = np.digitize(frame[f"v{k}"], [-1.0, 0.0, 1.0])
        start, begun = time.process_time(), time.perf_counter()
        found = sr.audit(frame.iloc[:n], frame.iloc[n:], seed=1)
        cpu, wall = time.process_time() - start, time.perf_counter() - begun
        outcome = found.verdict().outcome
        print(f"{n:>8,} × {p:<3} CPU {cpu:6.1f} s, wall {wall:6.1f} s, {outcome}", flush=True)


def peers(folder: str) -> None:
    """Write the releases for other programs."""
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    fitted()[0].to_csv(out / "people.csv", index=False)
    control = fitted()[1].synthesize(1, seed=2**82)[0]
    control.to_csv(out / "control.csv", index=False)
    for name, make in KINDS.items():
        make(1)[0].to_csv(out / f"{name.replace(':', '')}.csv", index=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what, *words = sys.argv[1:] or ["releases"]
    if what == "releases":
        releases(int(words[0]) if words else 10)
    elif what == "peers":
        peers(words[0])
    else:
        {"calibration": calibration, "sizes": sizes}[what]()
