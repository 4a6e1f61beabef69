"""The audit of two files: what it notices, how often wrongly, how well calibrated, how fast.

``python benchmarks/audit.py releases 50``
    honest, copied, nearly copied, CART and overfitted releases of the built-in sample, and as many
    further honest ones as the number says: outcome, people named, AUC of copied people, CPU time
``python benchmarks/audit.py calibration [TABLE …]``
    expected calibration error of before, after and the release alone on public tables (the extra
    ``tables``) and two simulated worlds, and the mean log ratio of people held out
``python benchmarks/audit.py closeness 20``
    how often the check of copies warns, by kind of table, share of people copied and noise added to
    their numbers, of as many releases each as the number says; without copies twenty times as many
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
from synrisk.audit.compared_files import Files
from synrisk.audit.copies import copies
from synrisk.audit.learnt_values import learn
from synrisk.audit.left_out_parts import Intervals
from synrisk.audit.two_files import read_two_files

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
        by_gain, by_copied = (roc_auc_score(who, records[name]) for name in ("gain", "copied"))
        wrong = int((records["too_close"] & ~who).sum())
        aucs = f"  AUC by gain {by_gain:.3f}, by copied {by_copied:.3f}, wrongly named {wrong}"
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


def kinds_of_tables(n: int, rng: np.random.Generator) -> dict[str, Callable[[], pd.DataFrame]]:
    """Return how to draw tables of several kinds."""
    middles = np.random.default_rng(0).normal(size=(30, 2))

    def along_a_curve() -> pd.DataFrame:
        t, e = rng.random(n), 0.003 * rng.normal(size=(n, 3))
        return pd.DataFrame(np.column_stack([t, t**2, np.sin(5 * t)]) + e, columns=list("abc"))

    def in_clusters() -> pd.DataFrame:
        points = middles[rng.integers(0, 30, n)] + 0.02 * rng.normal(size=(n, 2))
        return pd.DataFrame(points, columns=list("ab"))

    def with_levels() -> pd.DataFrame:
        a, b = rng.normal(size=n), rng.exponential(size=n)
        return pd.DataFrame({"a": a, "b": b, "g": rng.choice(list("uvw"), n)})

    return {
        "two normal": lambda: pd.DataFrame(rng.normal(size=(n, 2)), columns=list("ab")),
        "four normal": lambda: pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd")),
        "one lognormal": lambda: pd.DataFrame({"a": rng.lognormal(size=n)}),
        "three lognormal": lambda: pd.DataFrame(rng.lognormal(size=(n, 3)), columns=list("abc")),
        "two and levels": with_levels,
        "rounded": lambda: pd.DataFrame(
            {"a": rng.normal(50, 10, n).round(1), "b": rng.lognormal(8, 1, n).round()}
        ),
        "clusters": in_clusters,
        "a curve": along_a_curve,
    }


def closeness(n_releases: str = "20") -> None:
    """Print how often the check of copies warns."""
    for n in (60, 400):
        for share, noise in ((0.0, 0.0), *((s, z) for s in (0.05, 0.1) for z in (0.01, 0.03, 0.1))):
            if share and n == 60:
                continue
            rng = np.random.default_rng([n, int(1000 * share), int(1000 * noise)])
            n_tried = int(n_releases) * (1 if share else 20)
            told = []
            for name, make in kinds_of_tables(n, rng).items():
                alarms = [_alarm(make, share, noise, rng) for _ in range(n_tried)]
                told.append(f"{name} {np.mean(alarms):.3g}")
            said = f"{share:.0%} copied, noise {noise:g} sd"
            print(f"n {n:>4} {said:<28} of {n_tried}: {', '.join(told)}", flush=True)


def _alarm(
    make: Callable[[], pd.DataFrame], share: float, noise: float, rng: np.random.Generator
) -> bool:
    people, release = make(), make()
    n = int(share * len(people))
    who = rng.choice(len(people), n, replace=False)
    for name in people:
        own = people[name].to_numpy()[who]
        if people[name].dtype.kind == "f":
            own = own + noise * people[name].std() * rng.normal(size=n)
        release.loc[: n - 1, name] = own
    return copies(read_two_files(people, release, None, None, None, None), 1).is_too_close


def tables() -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield public tables and simulated worlds, each of one kind of people.

    First those of people with 1,000 rows or more that statsmodels and linearmodels bring: chosen by
    that rule, and their columns, before they were tried. Then smaller ones, then the worlds.
    """
    from linearmodels.datasets import birthweight, card, meps
    from palmerpenguins import load_penguins
    from sklearn import datasets as of_sklearn
    from statsmodels import datasets as of_statsmodels

    fair = of_statsmodels.fair.load_pandas().data
    yield "fair", fair[["rate_marriage", "age", "children", "religious", "educ", "affairs"]]
    # Its people stand in several rows, which the thirds share.
    health = of_statsmodels.randhie.load_pandas().data
    yield "randhie", health[["mdvis", "lncoins", "idp", "lpi", "physlm", "disea"]].iloc[::2]
    drugs = meps.load()
    yield "meps", drugs[["age", "female", "educyr", "income", "drugexp", "totchr"]]
    yield "card", card.load()[["educ", "age", "black", "smsa", "wage"]]
    births = birthweight.load().rename(columns=str.strip)
    yield "birthweight", births[["faminc", "motheduc", "parity", "male", "cigs", "bwght"]]
    anes = of_statsmodels.anes96.load_pandas().data
    yield "anes96", anes[["TVnews", "PID", "age", "educ", "income", "vote"]]
    cancer = of_sklearn.load_breast_cancer(as_frame=True).frame
    yield "breast cancer", cancer[["mean radius", "mean texture", "mean smoothness", "target"]]
    diabetes = of_sklearn.load_diabetes(as_frame=True, scaled=False).frame
    yield "diabetes", diabetes[["age", "bmi", "bp", "target"]]
    yield "penguins", load_penguins().drop(columns="year")
    wine = of_sklearn.load_wine(as_frame=True).frame
    yield "wine", wine[["alcohol", "malic_acid", "hue", "target"]]
    rng = np.random.default_rng(1)
    n = 12_000
    a = rng.normal(size=n)
    b = np.exp(0.5 * a + rng.normal(size=n))
    c = np.where(rng.random(n) < 1 / (1 + np.exp(-a)), "yes", "no")
    yield "a world of amounts", pd.DataFrame({"a": a, "b": b, "c": c})
    x, y = rng.integers(0, 4, n), rng.poisson(1.5, n)
    z = (x + y + rng.integers(0, 3, n)) % 5
    yield "a world of counts", pd.DataFrame({"x": [f"k{v}" for v in x], "y": y, "z": z})


def calibration(*names: str, n_splits: int = 6) -> None:
    """Print errors of calibration, a row a table: a third is the file, one an honest release.

    Over several ways of dividing the table, so that the last third says little of chance.
    """
    for name, frame in tables():
        if names and name not in names:
            continue
        squares, ratios = [], []
        for split in range(n_splits):
            files = _thirds(frame, split)
            squares.append([_errors(files, one, split) for one in files.sensitive])
            ratios.append([_log_ratios(files, one) for one in files.sensitive])
        # By column and kind; a forecast that is right gives what the last ones do.
        raw, by_chance = np.moveaxis(np.array(squares), -1, 0)
        errors = np.sqrt(np.maximum(np.mean(raw**2 - by_chance**2, axis=0), 0.0)).mean(axis=0)
        plain, chance = (part.mean(axis=(0, 1)) for part in (raw, by_chance))
        by_person = np.mean(ratios, axis=1)
        se = by_person.std(axis=1, ddof=1).mean() / np.sqrt(by_person.shape[1] * n_splits)
        print(
            f"{name:<20} n {len(frame) // 3:>5}  ECE before {errors[0]:.4f}, after "
            f"{errors[1]:.4f}, alone {errors[2]:.4f}; a right forecast {errors[3]:.4f}; "
            f"as it is before {plain[0]:.4f}, after {plain[1]:.4f}, by chance {chance[0]:.4f}; "
            f"log ratio held out {by_person.mean():+.4f} ± {se:.4f}",
            flush=True,
        )


def _thirds(frame: pd.DataFrame, split: int) -> Files:
    frame = frame.sample(frac=1.0, random_state=split).reset_index(drop=True)
    third = len(frame) // 3
    people, release, others = (
        frame.iloc[k * third : (k + 1) * third].reset_index(drop=True) for k in range(3)
    )
    # All columns are sought: one of two levels may be as often in both thirds by chance.
    return read_two_files(people, release, others, None, list(frame), None)


def _errors(files: Files, name: str, split: int) -> list[tuple[float, float]]:
    """Return calibration errors of before, after and alone at other people's values, and by chance.

    The second is the root mean square of those of forecasts that are right, which few people do not
    show as such; the last pair is of such forecasts in place of `before`.
    """
    people, rows = files.who(files.people, name), files.who(files.rows, name)
    truth = files.intervals(files.people, name)
    rng = np.random.default_rng(split)
    order = rng.permutation(len(people))
    asked = Intervals(truth.low[order], truth.high[order])
    learnt = learn(people, rows, truth, 1, name, asked=asked).people
    hit = (people.value >= asked.low) & (people.value <= asked.high)

    def errors(p: np.ndarray, hit: np.ndarray) -> tuple[float, float]:
        by_chance = [_ece(p, rng.random(len(p)) < p) ** 2 for _ in range(20)]
        return _ece(p, hit), float(np.sqrt(np.mean(by_chance)))

    right = rng.random(len(hit)) < learnt.before
    found = [errors(p, hit) for p in (learnt.before, learnt.after, learnt.alone)]
    return [*found, errors(learnt.before, right)]


def _ece(p: np.ndarray, hit: np.ndarray) -> float:
    """Return the expected calibration error, over bins of as many forecasts each."""
    order = np.argsort(p, kind="stable")
    parts = np.array_split(order, N_BINS)
    return float(sum(len(at) * abs(p[at].mean() - hit[at].mean()) for at in parts) / len(p))


def _log_ratios(files: Files, name: str) -> np.ndarray:
    """Return the log ratio of after over before, of people held out."""
    others = files.others
    asked = files.who(others, name), files.intervals(others, name)
    people, rows = files.who(files.people, name), files.who(files.rows, name)
    lesson = learn(people, rows, files.intervals(files.people, name), 1, name, asked)
    return np.log(lesson.others.after / lesson.others.before)


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
        {"calibration": calibration, "closeness": closeness, "sizes": sizes}[what](*words)
