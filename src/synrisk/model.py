"""A model: one regression with its frozen design and its posterior."""

from __future__ import annotations

from dataclasses import dataclass

from synrisk.design import Design
from synrisk.plan import Regression
from synrisk.posterior import Posterior
from synrisk.schema import FloatArray


@dataclass(frozen=True, repr=False)
class Model:
    """One regression with its frozen design and its draws."""

    regression: Regression
    design: Design
    posterior: Posterior
    record_weights: FloatArray | None
