"""What is made of chains, without the sampler that runs them: nutpie is an extra."""

import numpy as np
import pytest
from helpers.cases import people

import synrisk as sr
from synrisk.fitting import nuts

MODEL = sr.Regression("k ~ x", "poisson")


@pytest.fixture
def chains(monkeypatch):
    """What lengths were asked for, and how far apart to put the chains, in nutpie's place."""
    asked = []

    def sample(_sampler, _log_density, n_parameters, per_chain, _seed):
        asked.append(per_chain)
        rng = np.random.default_rng(1)
        z = rng.normal(size=(4, per_chain, n_parameters))
        for k in range(1, per_chain):
            z[:, k] = 0.4 * z[:, k - 1] + np.sqrt(1 - 0.4**2) * z[:, k]
        return z + apart[0] * np.arange(4)[:, None, None], 0

    apart = [0.0]
    monkeypatch.setattr(nuts, "_nutpie", lambda: (None, None))
    monkeypatch.setattr(nuts, "_sample", sample)
    return asked, apart


@pytest.mark.parametrize("n_draws", [1, 5, 120, 399, 2000])
def test_the_effective_number_of_draws_is_measured(chains, n_draws):
    """Of such chains three draws of seven count: (1 − 0.4) / (1 + 0.4)."""
    synthesizer = sr.fit(MODEL, people(), engine="nuts", n_draws=n_draws, seed=1)
    (ess,) = synthesizer.describe()["ess"].unique()
    assert max(0.2 * n_draws, 1.0) <= ess <= max(0.7 * n_draws, 1.0)
    assert chains[0] == [max(100, -(-n_draws // 4))]


def test_draws_that_are_kept_are_spread_over_the_chains(chains):
    few = sr.fit(MODEL, people(), engine="nuts", n_draws=41, seed=1).draws("k")
    all_ = sr.fit(MODEL, people(), engine="nuts", n_draws=400, seed=1).draws("k")
    assert list(np.bincount(few[".chain"] - few[".chain"].min())) == [11, 10, 10, 10]
    second = few.loc[few[".chain"] == few[".chain"].min() + 1, "x"].to_numpy()
    np.testing.assert_array_equal(second, all_["x"].to_numpy()[100:200:10])


def test_few_draws_of_chains_that_disagree_are_refused(chains):
    chains[1][0] = 3.0
    with pytest.raises(sr.FitError, match="chains of NUTS do not agree"):
        sr.fit(MODEL, people(), engine="nuts", n_draws=40, seed=1)
