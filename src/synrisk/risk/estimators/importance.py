"""Importance sampling: draws given the confidential data, weighted by the density of the release.

One table a model. For draws that were made elsewhere, by regressions fitted separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.chunks import chunks
from synrisk.base.errors import SyntheticDataError
from synrisk.core.batches import Units
from synrisk.core.likelihood import (
    KernelDraws,
    ModelBlock,
    add_log_density,
    log_predictive,
    log_table,
)
from synrisk.core.table_errors import ErrorSets
from synrisk.data.schema import Columns
from synrisk.fitting.psis import LEAST_JUDGED, are_reliable, effective_size, smoothed
from synrisk.risk.estimators.estimate import (
    Estimate,
    Estimator,
    Finding,
    Request,
    Shape,
    units_of,
)
from synrisk.synthesis.fitted_model import Model

LEAST_RELEASE_ESS = 20.0  # below, the error of importance sampling tends to 0 as one draw dominates
_INSTEAD = (
    "Let synrisk fit the models (estimator 'auto' then does without these weights), give draws "
    "of fits to confidential and synthetic rows together (stacked=, in Python), or use many "
    "more draws."
)


@dataclass(frozen=True, repr=False)
class Importance(Estimate):
    """Draws, and the log density of each dataset at each, ``(dataset, draw)``."""

    name: ClassVar[str] = "importance"
    draws: KernelDraws
    log_g: FloatArray
    units: Units  # draws that are not independent of one another

    @cached_property
    def error_sets(self) -> tuple[ErrorSets, ...]:
        """The draws as the Monte-Carlo error takes them."""
        log_g = relative(self.log_g, self.draws.log_v)
        factors = np.concatenate([np.zeros((1, log_g.shape[1])), log_g])
        signs = [[-float(len(log_g)), *[1.0] * len(log_g)]]
        khat = np.array([[np.nan, *self.release_khat]])
        return (ErrorSets.of([self.draws], factors, signs, (0, 0), self.units, khat),)

    @property
    def has_known_error(self) -> bool:
        """Whether enough draws carry weight: else the error tends to 0 as one draw dominates."""
        return bool(self.release_ess.min() >= LEAST_RELEASE_ESS)

    @cached_property
    def release_ess(self) -> FloatArray:
        """The effective number of draws behind each dataset's likelihood: ESS of v·g."""
        return np.array([effective_size(self.draws.log_v + one) for one in self.log_g])

    @cached_property
    def release_khat(self) -> FloatArray:
        """The shape of the tail of v·g for each dataset."""
        return np.array([smoothed(self.draws.log_v + one)[1] for one in self.log_g])

    def log_table(
        self, block: ModelBlock, shape: Shape, totals: FloatArray | None = None
    ) -> FloatArray:
        """Return Σ_l log L_l over the model's guesses, ``(record, cell)``, and fill `totals`."""
        log_g = relative(self.log_g, self.draws.log_v)
        return log_table(block, self.draws, log_g, shape, *([] if totals is None else totals))

    def log_predictive(self, block: ModelBlock, shape: Shape) -> FloatArray:
        """Return the log predictive density of each guess against the truth's."""
        return log_predictive(block.predicting(), self.draws, shape)

    def worst_weights(self) -> tuple[FloatArray, FloatArray]:
        """Return ESS and k̂ of the dataset whose weights are the most uneven."""
        worst = int(np.argmin(self.release_ess))
        return self.release_ess[[worst]], self.release_khat[[worst]]

    def findings(self, variable: str) -> list[Finding]:
        """Judge the draws weighted by the density of the release, once a dataset."""
        sizes, shapes = self.release_ess, self.release_khat
        worst, n_draws = int(np.argmin(sizes)), len(self.draws.log_v)
        carried = f"{n_draws:,} draws carry the weight of {sizes[worst]:.1f}"
        if not self.has_known_error:
            what = f"The error of {variable} cannot be estimated."
            why = (
                f"Weighted by the density of the release (dataset {worst + 1}), {carried}; below "
                f"{LEAST_RELEASE_ESS:.0f} the error is not seen."
            )
            return [Finding(what, why, _INSTEAD, error_is_unknown=True)]
        heavy = ~are_reliable(shapes, sizes, n_draws)
        if n_draws >= LEAST_JUDGED and heavy.any():
            one = int(np.argmax(np.where(heavy, shapes, -np.inf)))
            what = f"The error of {variable} may be larger than it looks."
            why = (
                f"Weighted by the density of the release (dataset {one + 1}), the draws have "
                f"weights with a heavy tail (k̂ = {shapes[one]:.2f}); {carried}."
            )
            return [Finding(what, why, _INSTEAD)]
        return []


@dataclass(frozen=True)
class ImportanceEstimator(Estimator):
    """Importance sampling, one table a model."""

    name: ClassVar[str] = "importance"

    def refusal(self, model: Model, *, with_stacks: bool) -> str | None:
        """Every model has draws."""
        del model, with_stacks
        return None

    def prepare(self, request: Request) -> Importance:
        """Return the draws with the density of the release at each."""
        model = request.model
        own = KernelDraws.of(model.regression.distribution, request.draws)
        log_g = log_density_of_release(model, own, [dataset.columns for dataset in request.release])
        return Importance(own, log_g, units_of(model, request.draws, stacked=False))


def log_density_of_release(
    model: Model, draws: KernelDraws, release: Sequence[Columns]
) -> FloatArray:
    """Return log g of one model, ``(dataset, draw)``, summed over synthetic rows.

    It is known up to what is the same at every draw. The sum runs over fixed chunks of rows in
    their order, so it does not depend on the workers.
    """
    regression, response = model.regression, model.regression.response
    table = np.zeros((len(release), len(draws.log_v)))
    for number, columns in enumerate(release):
        what = f"Synthetic dataset {number + 1}"
        for chunk in chunks(len(columns[response])):
            part = {name: values[chunk] for name, values in columns.items()}
            y = regression.on_model_scale(part[response])
            matrix = model.design.matrix(part, len(y), what, SyntheticDataError)
            in_chunk = np.zeros(len(draws.log_v))
            add_log_density(draws, y, matrix, np.ones(len(y)), in_chunk)
            table[number] += in_chunk
        if not np.isfinite(table[number]).all():
            raise SyntheticDataError(
                f"{what}: the density of {response!r} is beyond what numbers can hold; are its "
                "values on the scale of the confidential ones?"
            )
    return table


def relative(log_g: FloatArray, log_v: FloatArray) -> FloatArray:
    """Return log g less its largest value among draws that count."""
    top = log_g[:, np.isfinite(log_v)].max(axis=1, keepdims=True)
    return np.asarray(np.minimum(log_g - top, 0.0))
