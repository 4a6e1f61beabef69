"""The paper's estimator: draw h of all models taken together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.core.likelihood import ModelBlock, log_joint_paired
from synrisk.risk.estimators.estimate import Estimate, Shape
from synrisk.risk.estimators.importance import Importance, relative


@dataclass(frozen=True, repr=False)
class Paired:
    """Importance sampling over the joint grid, also right for draws of one joint posterior."""

    models: tuple[Importance, ...]

    @classmethod
    def of(cls, estimates: Sequence[Estimate]) -> Paired:
        """Return it for estimates that are all by importance sampling."""
        return cls(tuple(estimate for estimate in estimates if isinstance(estimate, Importance)))

    def log_joint(self, blocks: Sequence[ModelBlock], shape: Shape) -> FloatArray:
        """Return Σ_l log L_l over the joint grid, ``(record, cell)``."""
        log_v = np.sum([model.draws.log_v for model in self.models], axis=0)
        log_g = relative(np.sum([model.log_g for model in self.models], axis=0), log_v)
        return log_joint_paired(blocks, [model.draws for model in self.models], log_g, shape)
