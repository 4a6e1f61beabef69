"""Residuals and leverages by chunks are those by a QR decomposition of the whole design."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.base.chunks import ROWS
from synrisk.base.errors import DataError
from synrisk.fitting import table_of
from synrisk.risk.residual_detail import residual_detail
from tests.helpers.stored import stored


def by_qr(design, y, eta):
    residual = y - eta
    sd = np.sqrt(np.mean(residual**2))
    leverage = (np.linalg.qr(design)[0] ** 2).sum(axis=1)
    squares = (residual / sd) ** 2 / len(y)
    gone = (squares / np.maximum(1.0 - leverage, 1e-3)).max()
    return sd * np.sqrt(1.0 - gone), (leverage / 2 + squares).max()


@pytest.mark.parametrize(
    "formula", ["y ~ x + far + g", "y ~ 0 + x + far", "y ~ x + I(x**2) + near"]
)
def test_chunks_tell_what_the_whole_design_does(formula):
    n_rows = ROWS + 300
    rng = np.random.default_rng(5)
    x = rng.normal(size=n_rows)
    people = pd.DataFrame(
        {
            "x": x,
            "far": rng.normal(size=n_rows) + 1e6,
            "near": x + 1e-4 * rng.normal(size=n_rows),
            "g": rng.choice(["a", "b"], n_rows),
        }
    )
    people["y"] = 1.0 + people["x"] + rng.normal(size=n_rows)
    people.loc[17, ["x", "y"]] = [9.0, -30.0]
    synthesizer = sr.fit(sr.Regression(formula, family="gaussian"), people, n_draws=100, seed=1)
    (model,) = synthesizer.models
    design = synthesizer.refits.design(model, None)
    found = residual_detail(model, synthesizer.refits.table(model, None))
    y = synthesizer.columns["y"]
    expected = by_qr(design, y, model.mean_predictors(design)[0][:, 0])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    behind, log = stored(synthesizer.columns)
    table = table_of(model.design, behind, "y", n_rows, "The data", DataError)
    assert residual_detail(model, table) == found
    assert log["largest"] <= ROWS
