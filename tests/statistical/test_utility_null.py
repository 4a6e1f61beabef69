"""Releases from the true model have a pMSE as its null distribution says, others not."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.utility.intervals import combine

N, RUNS = 300, 80
FULL = [sr.Regression("x ~ 1"), sr.Regression("a ~ x"), sr.Regression("b ~ a + x")]


def people(rng):
    x = rng.normal(size=N)
    a = 1 + 0.5 * x + rng.normal(size=N)
    return pd.DataFrame({"x": x, "a": a, "b": 0.7 * a - 0.3 * x + rng.normal(size=N)})


def plugged_in(data, rng):
    """Synthesize all columns by least squares, the parameters as they are fitted."""
    columns = [np.ones(N)]
    for name, k in (("x", 1), ("a", 2), ("b", 3)):
        known = np.column_stack([np.ones(N), *(data[c] for c in ("x", "a")[: k - 1])])
        beta = np.linalg.lstsq(known, data[name], rcond=None)[0]
        spread = np.std(data[name] - known @ beta)
        columns.append(np.column_stack(columns) @ beta + spread * rng.normal(size=N))
    return pd.DataFrame(dict(zip(("x", "a", "b"), columns[1:], strict=True)))


def scores(kind):
    rows = []
    for run in range(RUNS):
        rng = np.random.default_rng([7, run])
        data = people(rng)
        if kind == "fitted":
            found = sr.utility(data, plugged_in(data, rng), parameters="fitted")
        else:
            plan = FULL if kind == "full" else FULL[1:]
            synthesizer = sr.fit(plan, data, n_draws=100, seed=run)
            found = sr.utility(synthesizer, synthesizer.synthesize(seed=run))
        rows.append(found.propensity.xs(1, level="dataset")[["ratio", "z"]])
    return pd.concat(rows)


@pytest.mark.parametrize("kind", ["full", "partial", "fitted"])
def test_the_right_models(kind):
    found = scores(kind)
    for model in ("main", "interactions"):
        of_model = found.loc[model]
        assert len(of_model) == RUNS
        # z has mean 0 and standard deviation 1; the logistic fit adds a little at this size.
        assert abs(of_model["z"].mean()) < 4 / np.sqrt(RUNS)
        error = of_model["ratio"].std() / np.sqrt(RUNS)
        assert abs(of_model["ratio"].mean() - 1) < 4 * error
        assert 0.7 < of_model["z"].std() < 1.4


def test_the_wrong_null_would_be_seen():
    """Snoke's expectation is half of what posterior draws give: the factor is not idle."""
    found = []
    for run in range(RUNS):
        data = people(np.random.default_rng([8, run]))
        synthesizer = sr.fit(FULL, data, n_draws=100, seed=run)
        release = synthesizer.synthesize(seed=run)
        row = sr.utility(synthesizer, release, parameters="fitted", propensity="interactions")
        found.append(row.propensity["ratio"].item())
    assert np.mean(found) - 4 * np.std(found) / np.sqrt(RUNS) > 1.3


def test_a_wrong_model():
    for run in range(5):
        data = people(np.random.default_rng([9, run]))
        synthesizer = sr.fit([sr.Regression("b ~ 1")], data, n_draws=100, seed=run, release=["a"])
        found = sr.utility(
            synthesizer, synthesizer.synthesize(seed=run), variables=["a", "b"],
            propensity="interactions",
        )  # fmt: skip
        assert found.propensity["ratio"].item() > 8


@pytest.mark.parametrize(("plan", "m"), [(FULL, 1), (FULL[1:], 3)])
def test_combined_intervals_cover_the_truth(plan, m):
    """Without the rules' factor, 3 for one dataset, three of four intervals would."""
    held = []
    truths = {("means and shares", "a"): 1.0, ("b ~ a + x (gaussian)", "a"): 0.7}
    for run in range(RUNS):
        data = people(np.random.default_rng([10, run]))
        synthesizer = sr.fit(plan, data, n_draws=100, seed=run)
        release = synthesizer.synthesize(m=m, seed=run)
        found = sr.utility(synthesizer, release, regressions=FULL[2], propensity="main").intervals
        rows = [(found.loc[key], truth) for key, truth in truths.items()]
        held.append([row["low_synthetic"] <= truth <= row["high_synthetic"] for row, truth in rows])
    assert (np.mean(held, axis=0) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / RUNS)).all()


def test_fitted_parameters_have_intervals_of_the_right_width():
    """By the rule of posterior draws a sixth of them would be wider, and cover always."""
    scaled, held = [], []
    for run in range(4 * RUNS):
        rng = np.random.default_rng([11, run])
        data = people(rng)
        datasets = [plugged_in(data, rng)["a"] for _ in range(5)]
        values, variances = np.array([(one.mean(), one.var() / N) for one in datasets]).T
        found = combine(values, variances, ratio=1.0, partial=False, fitted=True)
        scaled.append((found.estimate - 1.0) / np.sqrt(found.variance))
        held.append(abs(scaled[-1]) < 1.96)
    error = np.sqrt(0.95 * 0.05 / len(held))
    assert abs(np.mean(held) - 0.95) < 4 * error
    assert 0.85 < np.std(scaled) < 1.15
