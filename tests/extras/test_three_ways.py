"""The same models by Bambi, by nutpie on our log density and by synrisk.fit, under the same priors.

Means, standard deviations and risks agree within four standard errors of their difference; the
standard errors of chains are those of ArviZ, which take autocorrelation into account.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats

import synrisk as sr

pytestmark = pytest.mark.extras

N_CHAINS, N_DRAWS = 2, 1000
PRIORS = {
    "Intercept": sr.Normal(1.0, 3.0),
    "x": sr.Normal(0.0, 2.0),
    "b": sr.Normal(0.0, 1.0),
    "u[T.q]": sr.Normal(0.0, 2.0),
    "u[T.s]": sr.Normal(0.0, 2.0),
    "sigma": sr.Exponential(0.8),
}
OF_B = {name: prior for name, prior in PRIORS.items() if name != "b"}
PLAN = [sr.Regression("b ~ x + u"), sr.Regression("k ~ b", "poisson")]


def people(n=40):
    rng = np.random.default_rng(7)
    x = rng.normal(2.0, 1.0, n)
    u = rng.choice(["p", "q", "s"], n)
    b = 0.5 + 0.6 * x + 0.4 * (u == "q") + rng.normal(0.0, 0.8, n)
    return pd.DataFrame({"x": x, "u": u, "b": b, "k": rng.poisson(np.exp(0.2 + 0.3 * b))})


@pytest.fixture(scope="module")
def bambi_fits():
    """Bambi's models and the inference data of their fits."""
    with warnings.catch_warnings():  # of Bambi's own dependencies, about one another
        warnings.simplefilter("ignore")
        import bambi

        def normal(mean, sd):
            return bambi.Prior("Normal", mu=mean, sigma=sd)

        models = [
            bambi.Model(
                "b ~ x + u",
                people(),
                priors={
                    "Intercept": normal(1, 3), "x": normal(0, 2), "u": normal(0, 2),
                    "sigma": bambi.Prior("Exponential", lam=0.8),
                },
            ),
            bambi.Model(
                "k ~ b", people(), family="poisson",
                priors={"Intercept": normal(1, 3), "b": normal(0, 1)},
            ),
        ]  # fmt: skip
        fits = [
            model.fit(
                draws=N_DRAWS, tune=500, chains=N_CHAINS, cores=1, random_seed=3, progressbar=False
            )
            for model in models
        ]
    return models, fits


@pytest.fixture(scope="module")
def three(bambi_fits):
    """Synthesizers by name."""
    return {
        "bambi": sr.Synthesizer.from_bambi(*bambi_fits),
        "nuts": sr.fit(PLAN, people(), prior=PRIORS, engine="nuts", n_draws=2000, seed=1),
        "fit": sr.fit(PLAN, people(), prior=PRIORS, n_draws=2000, seed=1),
    }


def moments(synthesizer, variable, name):
    """Mean and sd of a parameter, and their standard errors."""
    draws = synthesizer.draws(variable)
    values, weight = draws[name].to_numpy(), draws["weight"].to_numpy()
    model = next(m for m in synthesizer.models if m.regression.response == variable)
    mean = weight @ values
    sd = np.sqrt(weight @ (values - mean) ** 2)
    if model.posterior.chain is None:
        # Weighted draws in adjacent antithetic pairs: effects on the mean and on the variance,
        # whose root has the error of the latter over 2 sd.
        effects = weight * np.stack([values - mean, (values - mean) ** 2 - sd**2])
        errors = np.sqrt((effects.reshape(2, -1, 2).sum(axis=2) ** 2).sum(axis=1))
        return mean, sd, errors[0], errors[1] / (2.0 * sd)
    n_chains = len(np.unique(model.posterior.chain))
    by_chain = values.reshape(n_chains, -1)
    errors = (float(array_stats.mcse(by_chain, method=kind)) for kind in ("mean", "sd"))
    return mean, sd, *errors


@pytest.mark.parametrize("other", ["bambi", "nuts"])
def test_posteriors_agree(three, other):
    for variable in ("b", "k"):
        for name in three["fit"].models[0 if variable == "b" else 1].posterior.names:
            mean, sd, mean_error, sd_error = moments(three["fit"], variable, name)
            found = moments(three[other], variable, name)
            assert abs(found[0] - mean) < 4.0 * np.hypot(mean_error, found[2]), name
            assert abs(found[1] - sd) < 4.0 * np.hypot(sd_error, found[3]), name


@pytest.mark.parametrize(
    ("other", "estimator"), [("bambi", "importance"), ("nuts", "importance"), ("nuts", "stacked")]
)
def test_risks_agree(three, other, estimator):
    release = three["fit"].synthesize(1, seed=5)
    best = sr.attribute_risk(three["fit"], release, guesses=5, question="paper").records
    risk = sr.attribute_risk(
        three[other], release, guesses=5, estimator=estimator, question="paper"
    )
    found = risk.records
    assert found["mcse"].notna().all()
    assert not any("chains" in note for note in risk.notes)
    for column in ("probability", "probability_b", "probability_k"):
        error = found[column.replace("probability", "mcse")]
        also = best[column.replace("probability", "mcse")]
        assert ((found[column] - best[column]).abs() < 4.0 * np.hypot(error, also)).all(), column


def test_chains_are_kept(three):
    assert list(np.bincount(three["bambi"].models[0].posterior.chain)) == [N_DRAWS] * N_CHAINS
    assert list(np.bincount(three["nuts"].models[1].posterior.chain)) == [500] * 4


def test_inference_data_are_draws_too(three, bambi_fits):
    """Without Bambi's models, by the names in the inference data alone."""
    synthesizer = sr.Synthesizer.from_draws(PLAN, people(), bambi_fits[1])
    for variable in ("b", "k"):
        pd.testing.assert_frame_equal(synthesizer.draws(variable), three["bambi"].draws(variable))


def test_stacks_by_bambi(three, bambi_fits):
    """A release's stack fitted by Bambi, with the confidential fit's priors."""
    [dataset] = three["fit"].synthesize(1, seed=5)
    both = pd.concat([people(), dataset], ignore_index=True)
    stacked = sr.fit(PLAN[0], both, prior=OF_B, engine="nuts", n_draws=2000, seed=9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model(
            "b ~ x + u",
            both,
            priors={
                "Intercept": bambi.Prior("Normal", mu=1, sigma=3),
                "x": bambi.Prior("Normal", mu=0, sigma=2),
                "u": bambi.Prior("Normal", mu=0, sigma=2),
                "sigma": bambi.Prior("Exponential", lam=0.8),
            },
        )
        fit = model.fit(
            draws=N_DRAWS, tune=500, chains=N_CHAINS, cores=1, random_seed=4, progressbar=False
        )
    synthesizer = sr.Synthesizer.from_bambi(bambi_fits[0][0], bambi_fits[1][0])
    risk = sr.attribute_risk(synthesizer, dataset, guesses=5, stacked=[fit], question="paper")
    again = sr.attribute_risk(
        synthesizer, dataset, guesses=5, stacked=[stacked.draws("b")], question="paper"
    )
    exact = sr.attribute_risk(
        sr.fit(PLAN[0], people(), prior=OF_B, n_draws=10, seed=1),
        dataset,
        guesses=5,
        question="paper",
    ).records
    for found in (risk.records, again.records):
        apart = (found["probability"] - exact["probability"]).abs()
        assert (apart < 4.0 * found["mcse"]).all()
