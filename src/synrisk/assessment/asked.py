"""What somebody asks of an attribute risk, checked before any work, and the release it is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synrisk.base.arrays import IntArray
from synrisk.models.posterior import Posterior
from synrisk.risk.estimators.choose import PAPER
from synrisk.risk.estimators.estimate import Estimator
from synrisk.risk.grid_size import check_joint, check_size, is_evaluated_jointly
from synrisk.risk.intruder_prior import Table
from synrisk.risk.question import Question
from synrisk.synthesis.relations import Relation
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer


@dataclass(frozen=True, repr=False)
class Asked:
    """What was asked for, checked."""

    synthesizer: Synthesizer
    method: str
    estimators: Sequence[Estimator]
    question: Question
    positions: IntArray
    axes: tuple[int, ...] | None
    draws: tuple[Posterior, ...]
    keeping: str
    diagnostics: bool
    unreliable: str

    @property
    def is_paired(self) -> bool:
        """Whether it is the paper's estimator."""
        return self.method == PAPER

    @property
    def needs_joint(self) -> bool:
        """Whether models or prior are no product of tables, so that nothing else will do."""
        return self.is_paired or isinstance(self.question.prior, Table)

    @property
    def with_errors(self) -> bool:
        """Whether Monte-Carlo errors are estimated; the paper's estimator gives none."""
        return self.diagnostics and not self.is_paired

    def checked_size(self, shape: tuple[int, ...], n_records: int) -> bool:
        """Tell whether the joint grid is evaluated, or raise where so much cannot be held."""
        is_joint = self.axes is None and (
            self.needs_joint
            or self.keeping != "auto"
            or is_evaluated_jointly(self.synthesizer, shape, self.n_draws_used)
        )
        check_size(
            self.synthesizer,
            n_records,
            shape,
            self.n_draws_used,
            paired=self.is_paired,
            is_joint=is_joint,
            may_be_split=len(shape) > 1 and not self.needs_joint and self.keeping != "auto",
        )
        if self.keeping == "keep":
            check_joint(n_records, shape)
        return is_joint

    @property
    def estimator_names(self) -> list[str]:
        """How each model's likelihood is estimated, in a user's words."""
        return [PAPER if self.is_paired else estimator.name for estimator in self.estimators]

    @property
    def n_draws_used(self) -> list[int]:
        """The number of draws of each model; 0 where none is needed."""
        return [
            draws.n_draws if estimator.uses_draws else 0
            for estimator, draws in zip(self.estimators, self.draws, strict=True)
        ]


@dataclass(frozen=True, repr=False)
class Read:
    """The release, draws given the stacks that came with it, and relations that tell much."""

    release: Sequence[Released]
    given_stacks: tuple[tuple[Posterior, ...], ...]
    near: tuple[Relation, ...]
