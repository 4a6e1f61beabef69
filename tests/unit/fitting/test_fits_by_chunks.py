"""A table that is read a chunk at a time is fitted as one in memory, to the last bit."""

import pickle
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

from synrisk.base.cache import Memory
from synrisk.base.chunks import ROWS
from synrisk.base.errors import DataError
from synrisk.base.one_thread import one_thread_each
from synrisk.base.workers import Serial, workers
from synrisk.data.schema import Factor, Numeric, Schema
from synrisk.fitting import ColumnTable, fit_regression, table_of
from synrisk.models.design import Design
from synrisk.models.plan import Regression
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.refits import Refits
from tests.helpers.stored import stored

SCHEMA = Schema(
    {
        **{name: Numeric(name) for name in ("x", "z", "y", "n", "a", "w", "bad", "twice")},
        "gapped": Numeric("gapped", gap=-9.0),
        "g": Factor("g", ("a", "b", "c", "never")),
        "k": Factor("k", ("p", "q", "r")),
        "b": Factor("b", ("no", "yes")),
    },
    "error",
)


@pytest.fixture(autouse=True)
def one_thread():
    """As in every call of the package: bits of a product depend on how many threads make it."""
    with one_thread_each():
        yield


def columns_of(n_rows, seed=3):
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n_rows), rng.uniform(1.0, 5.0, n_rows)
    g = rng.integers(0, 3, n_rows)
    mean = 0.3 + 0.4 * x - 0.1 * z + 0.2 * (g == 1)
    return {
        "x": x,
        "z": z,
        "g": g,
        "y": mean + rng.normal(size=n_rows),
        "n": rng.poisson(np.exp(mean)).astype(np.float64),
        "a": rng.gamma(3.0, np.exp(mean) / 3.0),
        "w": rng.uniform(0.0, 2.0, n_rows) * (rng.random(n_rows) < 0.95),
        "k": (rng.random(n_rows) + 0.3 * x > 0.5).astype(np.int64) + (z > 3),
        "b": (rng.random(n_rows) < 1 / (1 + np.exp(-mean))).astype(np.int64),
        "bad": np.where(np.arange(n_rows) % 997 == 0, -1.0, z),
        "twice": 2.0 * z + x,
        "gapped": np.where(rng.random(n_rows) < 0.1, -9.0, z),
    }


def fitted(columns, formula, family, *, weights=None, prior="default", executor=None):
    regression = Regression(formula, family=family, weights=weights)
    n_rows = len(columns["x"])
    regression = regression.given(SCHEMA.variables[regression.response])
    design = Design.freeze(regression.parsed, SCHEMA, columns, n_rows)
    table = table_of(design, columns, regression.response, n_rows, "The data", DataError, weights)
    posterior, fit = fit_regression(
        regression,
        design,
        SCHEMA.variables[regression.response],
        table,
        prior=prior,
        engine="auto",
        n_draws=400,
        seed=1,
        executor=executor or Serial(),
    )
    return table, posterior, fit, regression


CASES = {
    "gaussian": ("y ~ x + z*g", "gaussian", {}),
    "conjugate": ("y ~ x + g", "gaussian", {"prior": "conjugate"}),
    "weights": ("y ~ x + z", "gaussian", {"weights": "w"}),
    "transforms": ("y ~ center(x) + scale(z) + I(scale(x)**2)", "gaussian", {}),
    "splines": ("y ~ bs(x, df=5) + poly(z, 2) + log(z):g", "gaussian", {}),
    "no intercept": ("y ~ 0 + g + x", "gaussian", {}),
    "gapped predictor": ("y ~ x + gapped", "gaussian", {}),
    "gapped response": ("gapped ~ x", "gaussian", {}),
    "poisson": ("n ~ x + g", "poisson", {}),
    "weighted poisson": ("n ~ x + z", "poisson", {"weights": "w"}),
    "bernoulli": ("b ~ x*g", "bernoulli", {}),
    "categorical": ("k ~ x + g", "categorical", {}),
    "gamma": ("a ~ x + z", "gamma", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_stored_table_is_fitted_to_the_last_bit_as_one_in_memory(case):
    formula, family, options = CASES[case]
    columns = columns_of(2 * ROWS + 777)
    behind, log = stored(columns)
    _, expected, in_memory, _ = fitted(columns, formula, family, **options)
    table, found, fit, _ = fitted(behind, formula, family, **options)
    assert isinstance(table, ColumnTable)
    np.testing.assert_array_equal(found.coefficients, expected.coefficients)
    np.testing.assert_array_equal(found.auxiliary, expected.auxiliary)
    np.testing.assert_array_equal(found.log_weights, expected.log_weights)
    np.testing.assert_array_equal(fit.inflation, in_memory.inflation)
    assert fit.separated == in_memory.separated
    assert fit.notes == in_memory.notes
    assert log["largest"] <= ROWS
    assert log["whole"] == (1 if case == "gapped predictor" else 0)  # for its median
    threads = workers(3)
    with threads.open() as executor:
        _, again, _, _ = fitted(behind, formula, family, **options, executor=executor)
    np.testing.assert_array_equal(again.coefficients, expected.coefficients)


def test_refits_moments_and_evidence_are_those_in_memory():
    columns = columns_of(ROWS + 500)
    behind, log = stored(columns)
    found = []
    for own in (columns, behind):
        table, posterior, fit, _ = fitted(own, "n ~ x + g", "poisson")
        refit = fit.refit([table, table], posterior.names, Serial())
        moments = fit.frozen.moments([table], Serial())
        guesses = table_of(
            Design.freeze(fit.frozen.regression.parsed, SCHEMA, columns, ROWS + 500),
            {name: values[:3] for name, values in columns.items()},
            "n",
            3,
            "Guesses",
            DataError,
        )
        evidence = fit.evidence([table.without(ROWS + 1)], guesses, Serial())
        found.append((refit.posterior.coefficients, *moments, evidence.log_evidence))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert log["largest"] <= ROWS


def test_a_departure_is_that_in_memory():
    columns = columns_of(2 * ROWS + 10)
    behind, _ = stored(columns)
    found = []
    for own in (columns, behind):
        for formula, family in (("n ~ x + g", "poisson"), ("y ~ x + z", "gaussian")):
            _, posterior, fit, regression = fitted(own, formula, family)
            design = Design.freeze(regression.parsed, SCHEMA, own, 2 * ROWS + 10)
            confidential = SimpleNamespace(columns=own, n_records=2 * ROWS + 10)
            model = Model(regression, design, posterior, None, fit)
            dataset = SimpleNamespace(columns=own, memory=Memory())
            refits = Refits(confidential, Memory())
            departure = refits.departure(model, dataset, Serial())
            found.append((departure.d2, departure.df))
    assert found[:2] == found[2:]


def test_a_stored_table_goes_as_bytes():
    behind, _ = stored(columns_of(ROWS + 5))
    table, _, _, regression = fitted(behind, "y ~ bs(x, df=5) + g", "gaussian")
    chunk = table.chunks(regression, None)[1]
    again = pickle.loads(pickle.dumps(chunk))  # noqa: S301
    np.testing.assert_array_equal(again.read().matrix, chunk.read().matrix)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ log(bad)", "is not a finite number for 9 rows of 8,969"),
        ("y ~ x + I(2*x)", "are collinear"),
        ("twice ~ x + z", "follows from its predictors"),
    ],
)
def test_messages_are_those_in_memory(formula, message):
    columns = columns_of(2 * ROWS + 777)
    for own in (columns, stored(columns)[0]):
        with pytest.raises(DataError, match=message):
            fitted(own, formula, "gaussian")


def test_a_fit_takes_the_memory_of_chunks_not_of_the_table():
    n_rows = 500_000
    behind, log = stored(columns_of(n_rows))
    n_columns = 9
    tracemalloc.start()
    _, posterior, _, _ = fitted(behind, "y ~ x*g + z*x", "gaussian")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert posterior.coefficients.shape[1] >= n_columns
    assert peak < 8 * n_rows * n_columns / 2  # bytes: half of one matrix of the whole table
    assert log["largest"] <= ROWS
    assert log["whole"] == 0
