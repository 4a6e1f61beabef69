"""Missing values as guesses: against loops over draws, and integrals over the parameters."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import synrisk as sr

SEED = 98765432109876543210


def log_p(eta):
    return -np.logaddexp(0.0, -eta)


def people(n=30, seed=2):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = np.exp(1.0 + 0.4 * x + rng.normal(0, 0.6, n))
    missing = rng.random(n) < 0.3
    z = 0.5 + 0.4 * np.log(y) - 0.7 * missing + rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": np.where(missing, np.nan, y), "z": z})


def rows_of(frame):
    return [tuple(row) for row in frame[["x", "y", "z"]].to_numpy()]


def log_f(draw, own, of_z, row):
    """Log densities of y and of z in a row, at one draw of each model; y may be missing."""
    x, y, z = row
    gap = own["missing:Intercept"][draw] + own["missing:x"][draw] * x
    known = not math.isnan(y)
    if known:
        mean = own["Intercept"][draw] + own["x"][draw] * x
        s = own["sigma"][draw]
        first = log_p(-gap) - 0.5 * ((math.log(y) - mean) / s) ** 2 - math.log(s)
        first -= 0.5 * math.log(2 * math.pi)
    else:
        first = log_p(gap)
    mean = of_z["Intercept"][draw] + of_z["x"][draw] * x
    mean += of_z["log(y)"][draw] * math.log(y) if known else of_z["missing(y)"][draw]
    s = of_z["sigma"][draw]
    return first, -0.5 * ((z - mean) / s) ** 2 - math.log(s)


def test_against_loops_over_draws():
    """Both kinds of truth, both kinds of guess, and a later model that y is a predictor of."""
    data = people()
    plan = [sr.Regression("log(y) ~ x"), sr.Regression("z ~ log(y) + x")]
    synthesizer = sr.fit(plan, data, missing={"y": "model"}, n_draws=60, seed=1)
    (release,) = synthesizer.synthesize(seed=SEED)
    assert release["y"].isna().any()
    own, of_z = synthesizer.draws("y").to_dict("list"), synthesizer.draws("z").to_dict("list")
    records = [int(np.flatnonzero(data["y"].isna() == gap)[k]) for gap in (0, 1) for k in (0, 3)]
    risk = sr.attribute_risk(
        synthesizer, [release], guesses={"y": sr.Range(9), "z": sr.Range(8)},
        estimator="importance", records=records, diagnostics=False,
    )  # fmt: skip
    every = [[log_f(h, own, of_z, row) for row in rows_of(release)] for h in range(60)]
    log_g = np.array(every).sum(axis=1)  # (draw, model)
    v = np.array([own["weight"], of_z["weight"]]).T
    for place, i in enumerate(records):
        found = risk.joint(i)
        truth = rows_of(data)[i]
        at_truth = np.array([log_f(h, own, of_z, truth) for h in range(60)])
        ys, zs = (found.coords[name].to_numpy() for name in ("y", "z"))
        log_l, predicted = np.zeros(found.shape), np.zeros(found.shape)
        for j, y in enumerate(ys):
            for k, z in enumerate(zs):
                w = np.array([log_f(h, own, of_z, (truth[0], y, z)) for h in range(60)]) - at_truth
                for model in range(2):
                    below = logsumexp(w[:, model], b=v[:, model])
                    above = logsumexp(w[:, model] + log_g[:, model], b=v[:, model])
                    log_l[j, k] += above - below
                    predicted[j, k] += below
        grids = risk._evaluation.grids
        widths = [grid.log_widths[place] for grid in grids]
        measure = widths[0].copy()
        assert math.isnan(ys[-1])
        assert measure[-1] == pytest.approx(logsumexp(measure[:-1]))  # as all values together
        measure[-1] = 0.0  # a probability has no width
        model = predicted + measure[:, None] + widths[1]
        uniform = widths[0][:, None] + widths[1]
        prior = 0.9 * np.exp(model - logsumexp(model)) + 0.1 * np.exp(uniform - logsumexp(uniform))
        posterior = np.log(prior) + log_l
        posterior = np.exp(posterior - logsumexp(posterior))
        np.testing.assert_allclose(found.to_numpy(), posterior, rtol=1e-8)
        near = np.isnan(ys) if math.isnan(truth[1]) else np.abs(ys - truth[1]) <= 0.1 * truth[1]
        before, after = risk.records.loc[i, ["before_y", "after_y"]]
        assert before == pytest.approx(prior[near].sum(), rel=1e-8)
        assert after == pytest.approx(posterior[near].sum(), rel=1e-8)


def integrals(values, n_missing, n_there, spread, centre):
    """Log evidence of values and of a number of gaps, under the default priors, by quadrature."""
    return _of_values(values, spread, centre) + _of_gaps(n_missing, n_there)


def _of_gaps(n_missing, n_there):
    eta = np.linspace(-14.0, 14.0, 4001)
    logs = n_missing * log_p(eta) + n_there * log_p(-eta) + norm.logpdf(eta, 0.0, 2.5)
    return logsumexp(logs) + math.log(eta[1] - eta[0])


def _of_values(values, spread, centre):
    values = np.asarray(values)
    n, mean, ss = len(values), values.mean(), ((values - values.mean()) ** 2).sum()
    mu = centre + np.linspace(-8.0, 8.0, 801)[:, None] * spread
    log_sigma = np.linspace(math.log(spread) - 3.5, math.log(spread) + 2.5, 801)
    sigma = np.exp(log_sigma)
    logs = -n * log_sigma - (ss + n * (mean - mu) ** 2) / (2 * sigma**2)
    logs = logs + norm.logpdf(mu, centre, 2.5 * spread) - sigma / spread + log_sigma
    step = (mu[1, 0] - mu[0, 0]) * (log_sigma[1] - log_sigma[0])
    return logsumexp(logs) + math.log(step) - 0.5 * n * math.log(2 * math.pi)


@pytest.mark.parametrize("of_gap", [False, True])
def test_against_integrals_over_the_parameters(of_gap):
    """A gaussian with an intercept, 14 records: all of what a guess makes of the release."""
    rng = np.random.default_rng(4)
    values = rng.normal(3.0, 1.0, 14).round(3)
    values[[2, 7, 11]] = np.nan
    values[5] = 6.5
    data = pd.DataFrame({"y": values})
    synthesizer = sr.fit(
        sr.Regression("y ~ 1"), data, missing={"y": "model"}, n_draws=6_000, seed=1
    )
    (release,) = synthesizer.synthesize(seed=SEED)
    i = 7 if of_gap else 5
    risk = sr.attribute_risk(synthesizer, [release], guesses=sr.Range(21), records=[i])
    found = risk.joint(i)
    known = values[~np.isnan(values)]
    centre, spread = known.mean(), known.std(ddof=1)  # priors are scaled once, by the data
    others = np.delete(values, i)
    others_there = others[~np.isnan(others)]
    made = release["y"].dropna().to_numpy()
    n_missing, n_there = len(others) - len(others_there), len(others_there)
    n_made_missing = int(release["y"].isna().sum())

    def logs(guess):
        gap = math.isnan(guess)
        there = others_there if gap else np.append(others_there, guess)
        counts = n_missing + gap, n_there + (not gap)
        alone = integrals(there, *counts, spread, centre)
        both = integrals(
            np.append(there, made), counts[0] + n_made_missing, counts[1] + len(made),
            spread, centre,
        )  # fmt: skip
        return alone, both - alone

    ys = found.coords["y"].to_numpy()
    alone, likelihood = np.array([logs(guess) for guess in ys]).T
    grid = risk._evaluation.grids[0]
    widths = grid.log_widths[0][grid.present[0]]
    measure = np.append(widths[:-1], 0.0)
    model, uniform = alone + measure, widths
    prior = 0.9 * np.exp(model - logsumexp(model)) + 0.1 * np.exp(uniform - logsumexp(uniform))
    posterior = np.exp(np.log(prior) + likelihood - logsumexp(np.log(prior) + likelihood))
    own = risk.records.loc[i]
    near = np.isnan(ys) if of_gap else np.abs(ys - values[i]) <= 0.1 * values[i]
    for name, expected, error in (
        ("before_y", prior[near].sum(), "before_mcse_y"),
        ("after_y", posterior[near].sum(), "mcse_y"),
    ):
        assert 0 < own[error] < 0.01
        assert abs(own[name] - expected) < 4 * own[error] + 1e-5, name
    # Had the gap's guess the density of a value, or none at all, this would be seen.
    assert abs(posterior[near].sum() - prior[near].sum()) > 8 * own["mcse_y"]
