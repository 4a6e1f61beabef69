"""Posterior draws of one regression: named, weighted, in the design's order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import Factor, Variable
from synrisk.models.design import Design
from synrisk.models.families import Family


@dataclass(frozen=True, repr=False)
class Posterior:
    """Draws of the parameters of one regression.

    Attributes
    ----------
    coefficients
        Shape ``(draw, design column, linear predictor)``.
    auxiliary
        Shape ``(draw, auxiliary parameter)``.
    log_weights
        Shape ``(draw,)``; the weights sum to one.
    names
        The parameters as a user sees them: coefficients, then auxiliary ones.
    sources
        The column of the draws' table that each parameter was read from.
    chain
        The number of the Markov chain that each draw is of, where it is known: draws of a chain
        are adjacent and in the order in which they were made.
    left_out
        Vectors of the draws' table that were taken for what a model computes for each record.
    """

    SHAPES: ClassVar = {
        "coefficients": ("draw", "column", "predictor"),
        "auxiliary": ("draw", "auxiliary"),
        "log_weights": ("draw",),
        "chain": ("draw",),
    }
    coefficients: FloatArray
    auxiliary: FloatArray
    log_weights: FloatArray
    names: tuple[str, ...]
    sources: tuple[str, ...]
    chain: IntArray | None = None
    left_out: tuple[str, ...] = ()

    @property
    def n_draws(self) -> int:
        """The number of draws."""
        return len(self.log_weights)

    def first(self, n_draws: int) -> Posterior:
        """Return the first `n_draws` draws, their weights summing to one."""
        log_weights = self.log_weights[:n_draws]
        if np.isfinite(log_weights).any():
            log_weights = log_weights - logsumexp(log_weights)
        return Posterior(
            self.coefficients[:n_draws],
            self.auxiliary[:n_draws],
            log_weights,
            self.names,
            self.sources,
            None if self.chain is None else self.chain[:n_draws],
        )

    def frame(self) -> pd.DataFrame:
        """Return a row a draw, a column a parameter, ``weight``, and ``.chain`` where known."""
        by_predictor = np.moveaxis(self.coefficients, 2, 1).reshape(self.n_draws, -1)
        frame = pd.DataFrame(
            np.concatenate([by_predictor, self.auxiliary], axis=1), columns=list(self.names)
        )
        weight = "weight" if "weight" not in self.names else ".weight"
        frame[weight] = np.exp(self.log_weights)
        if self.chain is not None:
            frame[".chain"] = self.chain + 1
        return frame


def parameter_names(
    design: Design, family: Family, response: Variable, *, public: bool = False
) -> tuple[str, ...]:
    """Return the names of the coefficients, predictor by predictor, and the auxiliary ones.

    For messages they are `public`: without levels that were read off the data.
    """
    columns = [column.public if public else str(column) for column in design.columns]
    codes = family.predictor_levels(response)
    if codes and isinstance(response, Factor):
        hidden = public and not response.declared
        levels = ["*" if hidden else response.levels[code] for code in codes]
        columns = [f"{level}:{column}" for level in levels for column in columns]
    further = [f"{word}:{name}" for word in family.further_predictors for name in columns]
    return (*columns, *further, *family.auxiliary_names)
