"""A model: one regression with its frozen design and its posterior."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import FitError
from synrisk.data.schema import Columns, Factor, Schema
from synrisk.fitting import Fit
from synrisk.models.design import Design
from synrisk.models.plan import Regression
from synrisk.models.posterior import Posterior
from synrisk.models.priors import Conjugate
from synrisk.synthesis.variable_model import VariableModel


@dataclass(frozen=True, repr=False)
class Model(VariableModel):
    """One regression with its frozen design and its draws.

    Attributes
    ----------
    regression, design, posterior
        The model.
    record_weights
        The exponent on each confidential record's density, or None.
    fit
        How the draws were made; None for draws that somebody else made.
    rename
        Of draws that somebody else made, ``{column: parameter}`` for names of their own.
    """

    regression: Regression
    design: Design
    posterior: Posterior
    record_weights: FloatArray | None
    fit: Fit | None = None
    rename: Mapping[str, str] = field(default_factory=dict)

    def posterior_draw(self, rng: np.random.Generator) -> int:
        """Return the position of a draw, selected by its weight."""
        return int(self.draws_at(np.array([rng.random()]))[0])

    def draws_at(self, u: FloatArray) -> IntArray:
        """Return the positions of draws, selected by uniform numbers."""
        cumulative = np.cumsum(np.exp(self.posterior.log_weights))
        places = np.searchsorted(cumulative, u * cumulative[-1], side="right")
        return np.asarray(np.minimum(places, len(cumulative) - 1), dtype=np.int64)

    def mean_predictors(self, design: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rows' linear predictors and the auxiliary parameters at the posterior's mean."""
        draws = self.posterior
        weights = np.exp(draws.log_weights)
        eta = design @ np.tensordot(weights, draws.coefficients, 1)
        return np.asarray(eta), np.asarray(weights @ draws.auxiliary)

    def to_sample(self) -> Model:
        """Return the model without what it has of every record."""
        return replace(self, record_weights=None, fit=None)

    @property
    def of_values(self) -> Model:
        """The model of the values that are there, where some may be missing."""
        further = self.regression.distribution.further_predictors
        if not further:
            return self
        posterior = self.posterior
        n_own, n_columns = posterior.coefficients.shape[2] - len(further), len(self.design.columns)
        gone = slice(n_own * n_columns, (n_own + len(further)) * n_columns)
        kept = [k for k in range(len(posterior.names)) if k not in range(gone.start, gone.stop)]
        return replace(
            self,
            regression=self.regression.of_values,
            posterior=replace(
                posterior,
                coefficients=np.ascontiguousarray(posterior.coefficients[:, :, :n_own]),
                names=tuple(posterior.names[k] for k in kept),
                sources=tuple(posterior.sources[k] for k in kept),
            ),
            fit=None,
        )

    def sample(
        self, columns: Columns, n_rows: int, draw: int, rng: np.random.Generator, what: str
    ) -> FloatArray:
        """Return a response for each of some rows, on the model's scale."""
        of_response = f"{what}, predictors of {self.response!r}"
        matrix = self.design.matrix(columns, n_rows, of_response, FitError)
        eta = linear_predictors(matrix, self.posterior.coefficients[draw])
        auxiliary = self.posterior.auxiliary[draw]
        auxiliary = np.broadcast_to(auxiliary, (n_rows, len(auxiliary)))
        with contextlib.suppress(ValueError), np.errstate(over="ignore"):  # rates beyond NumPy's
            return self.regression.distribution.draw(eta, auxiliary, rng).astype(np.float64)
        raise FitError(
            f"{self.response!r} cannot be drawn: its model gives means that are too large for some "
            "rows. Check the formula (a logarithm of a skewed predictor helps)."
        )

    @property
    def family(self) -> str:
        """The name of the family."""
        return self.regression.distribution.name


def linear_predictors(matrix: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Return matrix · coefficients, summed column by column: no BLAS in values of records."""
    eta = np.zeros((len(matrix), coefficients.shape[1]))
    for column, of_column in zip(matrix.T, coefficients, strict=True):
        eta += column[:, None] * of_column
    return eta


def saturation_notes(model: Model, n_records: int) -> tuple[str, ...]:
    """Say where a model has about a coefficient a record: it repeats single values."""
    response, columns = model.regression.response, model.design.columns
    levels: dict[str, int] = {}
    for column in columns:
        if column.group is None and len(column.parts) == 1 and column.parts[0].level is not None:
            factor = column.public.rpartition("[")[0]
            levels[factor] = levels.get(factor, 1) + 1
    notes = [
        (
            f"{factor}, a predictor of {response}, has {n:,} levels for {n_records:,} records: "
            "about a coefficient for each record, so the model repeats single values. Merge its "
            "levels, or leave it out."
        )
        for factor, n in levels.items()
        if 2 * n > n_records
    ]
    if not notes and 2 * len(columns) > n_records:
        notes.append(
            f"The model of {response} has {len(columns):,} coefficients for {n_records:,} "
            "records, about one for each, so it repeats single values. Leave predictors out."
        )
    return tuple(notes)


def describe_models(models: Sequence[Model], schema: Schema) -> pd.DataFrame:
    """Return a row a parameter, with its posterior and how it was fitted."""
    rows = [row for model in models for row in _described(model, schema)]
    return pd.DataFrame(rows).set_index(["variable", "parameter"])


def _described(model: Model, schema: Schema) -> Iterator[dict[str, Any]]:
    posterior, fit = model.posterior, model.fit
    values = posterior.frame()[list(posterior.names)].to_numpy()
    weight = np.exp(posterior.log_weights)
    mean = weight @ values
    sd = np.sqrt(weight @ (values - mean) ** 2)
    n_columns = len(model.design.columns)
    n_coefficients = len(posterior.names) - posterior.auxiliary.shape[1]
    for k, name in enumerate(posterior.names):
        is_coefficient = k < n_coefficients
        column = k % n_columns
        yield {
            "variable": model.regression.response,
            "parameter": name,
            "family": model.family,
            "probability_of": _modelled_level(model, schema),
            "read_from": posterior.sources[k],
            "mean": float(mean[k]),
            "sd": float(sd[k]),
            "mode": np.nan if fit is None else float(fit.mode[k]),
            "prior": None if fit is None else _prior_text(fit, k),
            "vif": float(fit.inflation[column]) if fit and is_coefficient else np.nan,
            "separated": fit is not None and is_coefficient and column in fit.separated,
            "engine": None if fit is None else fit.engine,
            "ess": np.nan if fit is None else fit.ess,
            "khat": np.nan if fit is None else fit.khat,
        }


def _prior_text(fit: Fit, position: int) -> str:
    return str(fit.priors) if isinstance(fit.priors, Conjugate) else str(fit.priors[position])


def _modelled_level(model: Model, schema: Schema) -> Any:
    """Return the level whose probability a bernoulli model of a factor gives, else None."""
    variable = schema.variables[model.regression.response]
    binary = isinstance(variable, Factor) and not model.regression.distribution.makes_factor
    return variable.levels[1] if binary and isinstance(variable, Factor) else None
