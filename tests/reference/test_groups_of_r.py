"""Group-level terms in draws as brms and rstanarm write them: what they say of people is R's.

tests/data/r_groups/make.R made the draws and, with ``log_lik`` of both packages, the log density of
people's values at each of them, in 17 digits.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

FOLDER = Path(__file__).parents[1] / "data" / "r_groups"
FILES = {
    "brms_groups": ("change ~ x + (1 + x | area)", "gaussian"),
    "brms_groups_of_counts": ("visits ~ x + (1 | area)", "poisson"),
    "rstanarm_groups": ("change ~ x + (1 + x | area)", "gaussian"),
}


@pytest.mark.parametrize("file", FILES)
def test_log_densities_are_those_of_r(file):
    regression = sr.Regression(*FILES[file])
    people = pd.read_csv(FOLDER / "people.csv")[["x", "area", regression.response]]
    read = sr.Synthesizer.from_draws(regression, people, FOLDER / f"{file}.rds")
    model, columns = read.models[0], read.confidential.columns
    matrix = model.design.matrix(columns, len(people), "people", sr.DataError)
    draws, y = model.posterior, columns[regression.response]
    eta = np.einsum("ij,hjk->hik", matrix, draws.coefficients)
    ours = regression.distribution.log_density(y, eta, draws.auxiliary[:, None])
    theirs = np.loadtxt(FOLDER / f"{file}.csv", delimiter=",")
    np.testing.assert_allclose(ours[:, : theirs.shape[1]], theirs, rtol=1e-10, atol=1e-10)
