"""An evaluation of more records than memory holds the guesses of: one part of them at a time.

A record's numbers do not depend on the records that it is evaluated with, so parts of any size give
the same. What an estimator asks of the guesses of all records is added up over parts first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synrisk.base.arrays import IntArray
from synrisk.base.progress import under_way
from synrisk.base.workers import Workers
from synrisk.core.summary import RiskArrays
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.guesses import GuessSpan
from synrisk.risk.question import Question
from synrisk.synthesis.synthesizer import Synthesizer


def parts_of(n_records: int, n_rows: int) -> list[slice]:
    """Return which records make each part."""
    first_of_each = range(0, n_records, n_rows)
    return [slice(first, min(first + n_rows, n_records)) for first in first_of_each]


def positions_of(part: slice) -> IntArray:
    """Return the positions of the records of a part."""
    return np.arange(part.start, part.stop)


def extents_of(
    question: Question, synthesizer: Synthesizer, parts: Sequence[slice], n_datasets: int
) -> tuple[GuessSpan, ...]:
    """Return how far the guesses of all records go, for each variable."""
    whole: list[GuessSpan] = []
    with under_way("Laying out guesses", synthesizer.n_records) as advance:
        for part in parts:
            grids = question.grids(synthesizer, positions_of(part), n_datasets)
            own = list(map(GuessSpan.of, grids, synthesizer.plan.regressions))
            whole = [one.and_of(two) for one, two in zip(whole, own, strict=True)] if whole else own
            advance(part.stop - part.start)
    return tuple(whole)


@dataclass(frozen=True, repr=False)
class PartedEvaluation:
    """Everything needed to evaluate any part of the records.

    Attributes
    ----------
    template
        That of one record; those of others differ in positions and guesses.
    question
        What is asked.
    n_datasets
        Of the release.
    extents
        How far the guesses of all records go, for each variable.
    parts
        Which records make each part.
    """

    template: Evaluation
    question: Question
    n_datasets: int
    extents: tuple[GuessSpan, ...]
    parts: tuple[slice, ...]

    def of(self, positions: IntArray) -> Evaluation:
        """Return the evaluation of some records, their guesses laid out."""
        grids = self.question.grids(self.template.synthesizer, positions, self.n_datasets)
        own = replace(self.template, grids=grids, positions=positions)
        return replace(own, prior=self.question.prior, question=self.question)

    def under(self, question: Question) -> PartedEvaluation:
        """Return that of another question; how far guesses go stays as it is."""
        return replace(self, question=question)

    def by(self, template: Evaluation) -> PartedEvaluation:
        """Return that of another release, of which there is an evaluation of one record."""
        return replace(self, template=template)

    def run(
        self, team: Workers, what: str, *, with_errors: bool = False
    ) -> Iterator[tuple[Evaluation, RiskArrays]]:
        """Evaluate one part after the other; nothing is kept. `what` says why, for a bar."""
        with under_way(what, self.template.synthesizer.n_records) as on_records:
            for part in self.parts:
                evaluation = self.of(positions_of(part))
                yield (
                    evaluation,
                    evaluation.run(
                        team, keep_joint=False, with_errors=with_errors, on_records=on_records
                    ),
                )
