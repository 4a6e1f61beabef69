"""Few draws by nutpie: without its warnings, which are errors here."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

pytestmark = pytest.mark.extras


@pytest.mark.parametrize("n_draws", [1, 5])
def test_few_draws(n_draws):
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    data = pd.DataFrame({"x": x, "k": rng.poisson(np.exp(0.3 * x))})
    model = sr.Regression("k ~ x", "poisson")
    synthesizer = sr.fit(model, data, engine="nuts", n_draws=n_draws, seed=1)
    assert len(synthesizer.draws("k")) == n_draws
    assert synthesizer.describe()["ess"].between(1, n_draws).all()
