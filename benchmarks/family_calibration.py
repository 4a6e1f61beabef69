"""Every family that has no kernels of its own: are its fits, beliefs and errors what they say?

``python benchmarks/family_calibration.py`` prints a row a family, a minute or two each; names after
it choose families, and fits, beliefs or errors what is tried. By METHOD §8, with fixed seeds:

- fits: parameters from the prior, data from them, a fit; the posterior probability below the true
  parameter is uniform. The smallest p-value of a χ² of ten bins, over the parameters.
- before, after: a record's value from the intruder's own prior, a fit, a release; how often it lies
  in a fixed part of the range, against what is believed: z, and the slope of hits on what the
  release moved, which is 1, with its standard error.
- errors: root mean square of the reported errors over that of the scatter among fits with other
  random numbers, of one release.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import chi2

import synrisk as sr
from synrisk.data.schema import Factor, Numeric
from synrisk.models.families import family

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from helpers.family_cases import CASES, LEVELS, data_of, has_levels, types_of
from helpers.secret import SECRET

PARTS = ("fits", "beliefs", "errors")
N_FITS, N_BELIEFS, N_ERRORS, N_BINS = 200, 120, 40, 10
N_RECORDS, RECORD, N_DRAWS = 40, 3, 400
N_DRAWS_OF_BELIEFS = 1000  # as `fit` has by default
RANGES = {
    "negative_binomial": (0, 60), "hurdle_poisson": (0, 40), "zero_inflated_poisson": (0, 40),
    "hurdle_lognormal": (0, 150), "gamma": (1.0, 60_000.0), "lognormal": (1.0, 200_000.0),
    "student_t": (40.0, 160.0), "beta": (0.001, 0.999), "hurdle_gamma": (0, 60),
    "hurdle_negative_binomial": (0, 60), "zero_inflated_negative_binomial": (0, 60),
    "rounded_student_t": (-20, 40), "rounded_lognormal": (0, 100), "rounded_gamma": (0, 60),
    "rounded_beta": (0.0, 1.0),
}  # fmt: skip
# Of auxiliary priors. With phi about 1 and less, shares lie nearer to 1 than numbers can tell.
RATES = {"beta": 0.1, "rounded_beta": 0.1}
PRIORS = {"Intercept": sr.Normal(0.3, 0.8), "x": sr.Normal(-0.2, 0.7)}


def of_fits(name: str) -> tuple[float, int]:
    """Return the smallest p-value over the parameters, and how many fits were refused."""
    places = []
    for seed in range(N_FITS):
        rng = np.random.default_rng([77, seed])
        bounds = None if has_levels(name) else CASES[name].types
        variable = Factor("y", tuple(LEVELS), True) if has_levels(name) else Numeric("y", bounds)
        known = family(name).given(variable)
        x = rng.normal(size=N_RECORDS)
        alpha, beta = (rng.normal(prior.mean, prior.sd) for prior in PRIORS.values())
        rate = RATES.get(name, 1.0)
        auxiliary = rng.exponential(1.0 / rate, len(known.auxiliary))
        eta = (alpha + (x - x.mean()) * beta)[:, None]
        drawn = known.draw(eta, np.tile(auxiliary, (N_RECORDS, 1)), rng)
        y = np.array(LEVELS)[drawn.astype(int)] if has_levels(name) else drawn
        model = sr.Regression("y ~ x", name)
        if not has_levels(name):
            y = model.transform.inverse(drawn.astype(float))
        priors = PRIORS | {one: sr.Exponential(rate) for one in known.auxiliary_names}
        data = pd.DataFrame({"x": x, "y": y})
        try:
            fitted = sr.fit(
                model, data, n_draws=N_DRAWS, prior=priors, seed=seed, types=types_of(name)
            )
        except sr.SynriskError:
            continue  # counted below: a posterior that cannot be relied on is refused
        draws = fitted.draws("y")
        weight = draws.pop("weight").to_numpy()
        theta = np.concatenate([[alpha - x.mean() * beta, beta], auxiliary])
        places.append(weight @ (draws.to_numpy() < theta))
    counts = np.array([np.histogram(one, N_BINS, (0, 1))[0] for one in np.clip(places, 0, 1).T])
    expected = len(places) / N_BINS
    p = chi2.sf(((counts - expected) ** 2 / expected).sum(axis=1), N_BINS - 1)
    print(f"{name}: fits refused {N_FITS - len(places)} of {N_FITS}", file=sys.stderr, flush=True)
    return float(p.min()), N_FITS - len(places)


def beliefs(name: str, data: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the guesses of the record with their prior and posterior."""
    types = types_of(name) or {"y": RANGES[name]}
    fitted = sr.fit(
        sr.Regression("y ~ x", name), data, seed=seed, n_draws=N_DRAWS_OF_BELIEFS, types=types
    )
    # With its diagnostics: a number that cannot be relied on is computed again.
    risk = sr.attribute_risk(fitted, fitted.synthesize(seed=seed), records=[RECORD])
    return risk.ranking(RECORD)


def of_beliefs(name: str) -> tuple[float, float, float, float]:
    """Return z of before and after, and the slope with its error."""
    data, rng = data_of(name, 15), np.random.default_rng(5)
    first = beliefs(name, data, SECRET).sort_values("y", kind="stable", ignore_index=True)
    p = first["prior"].to_numpy()
    limit = LEVELS[1] if has_levels(name) else first["y"][int(np.searchsorted(np.cumsum(p), 0.4))]
    hits, before, after = [], [], []
    for number in range(N_BELIEFS):
        truth = first["y"][int(rng.choice(len(p), p=p / p.sum()))]
        replaced = data.copy()
        replaced.loc[RECORD, "y"] = truth
        try:
            found = beliefs(name, replaced, SECRET + number)
        except sr.FitError:
            print(f"{name}: a belief's fit is refused", file=sys.stderr, flush=True)
            continue
        inside = found["y"] == limit if has_levels(name) else found["y"] <= limit
        hits.append(truth == limit if has_levels(name) else truth <= limit)
        before.append(found["prior"][inside].sum())
        after.append(found["probability"][inside].sum())
    hit, b, a = (np.array(values, dtype=float) for values in (hits, before, after))
    z = [(hit - one).sum() / np.sqrt((one * (1 - one)).sum()) for one in (b, a)]
    moved = a - b
    slope = ((hit - b) * moved).sum() / (moved**2).sum()
    return z[0], z[1], slope, np.sqrt((moved**2 * a * (1 - a)).sum()) / (moved**2).sum()


def of_errors(name: str) -> float:
    """Return reported errors over the actual scatter."""
    data, model, types = data_of(name, N_RECORDS), sr.Regression("y ~ x", name), types_of(name)
    release = sr.fit(model, data, seed=77, n_draws=N_DRAWS, types=types).synthesize(seed=5)
    # Those around a share or a number near its bound would lie beyond it.
    own = CASES[name].guesses
    guesses = 11 if own is None or CASES[name].most == np.inf else sr.Values(own)
    tables = []
    for seed in range(N_ERRORS):
        fitted = sr.fit(model, data, seed=seed, n_draws=N_DRAWS, types=types)
        risk = sr.attribute_risk(
            fitted, release, question="paper", on_unreliable="flag", guesses=guesses
        )
        tables.append(risk.records[["probability", "mcse", "reliable"]])
    reliable = np.all([table["reliable"] for table in tables], axis=0)
    p, mcse = (np.array([t[c] for t in tables])[:, reliable] for c in ("probability", "mcse"))
    scatter = np.var(p, axis=0, ddof=1).mean()
    return float(np.sqrt(np.mean(mcse**2) / scatter)) if scatter > 1e-20 else float("nan")


def main() -> None:
    """Print a row a family."""
    warnings.simplefilter("ignore")
    print("| family | fits, smallest p | refused | before, z | after, z | slope | errors |")
    print("|---|---|---|---|---|---|---|")
    parts = [word for word in sys.argv[1:] if word in PARTS] or PARTS
    for name in [word for word in sys.argv[1:] if word not in PARTS] or CASES:
        p, n_refused = of_fits(name) if "fits" in parts else (np.nan, 0)
        nothing = (np.nan,) * 4
        z_before, z_after, slope, error = of_beliefs(name) if "beliefs" in parts else nothing
        ratio = of_errors(name) if "errors" in parts else np.nan
        print(
            f"| {name} | {p:.3f} | {n_refused} of {N_FITS} | {z_before:.1f} | {z_after:.1f} | "
            f"{slope:.2f} ± {error:.2f} | {ratio:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
