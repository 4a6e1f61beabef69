"""What a reader of an attribute risk should know about how its numbers were made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synrisk.base.errors import counted, listed
from synrisk.data.schema import Columns
from synrisk.models.posterior import Posterior
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.guesses import GuessSpan
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_MINUTE = 60.0


def note_on_stacks(
    draws: Sequence[Posterior], given_stacks: Sequence[Sequence[Posterior]], names: Sequence[str]
) -> tuple[str, ...]:
    """Say where fits made elsewhere differ in their numbers of draws."""
    notes = []
    for k, name in enumerate(names):
        numbers = [of_dataset[k].n_draws for of_dataset in given_stacks]
        if set(numbers) - {draws[k].n_draws}:
            found = listed(f"{n:,}" for n in numbers)
            notes.append(
                f"{name} has {draws[k].n_draws:,} draws given the confidential data, and "
                f"{found} given the stacks: each mean is over all draws of its own fit."
            )
    return tuple(notes)


def note_on_joint(evaluation: Evaluation) -> tuple[str, ...]:
    """Say which variables, and which numbers, were left out."""
    if evaluation.is_joint:
        return ()
    names, axes = evaluation.synthesizer.plan.synthesized, evaluation.axes
    others = [name for axis, name in enumerate(names) if axis not in axes]
    if others:
        note = (
            f"{listed(names[axis] for axis in axes)} evaluated, by request; {listed(others)} "
            "summed out: nobody is taken to know them."
        )
        return (note,)
    note = (
        f"The joint grid of all {len(names)} variables is too large to be evaluated guess by "
        "guess: every variable's probabilities, and that of all true values together, are summed "
        "up without it. The rank of the truth among all joint guesses and log_odds_range_99 are "
        "not known; both are given by variable."
    )
    return (note,)


def note_on_fitted(n_fitted: int) -> tuple[str, ...]:
    """Say how many records were fitted at each of their guesses."""
    return (f"{counted(n_fitted, 'record')} fitted at each guess.",) if n_fitted else ()


def note_on_left(n_unreliable: int, n_fitted: int, seconds: float) -> tuple[str, ...]:
    """Say what it would take to fit records that were flagged instead."""
    whom = "them" if n_fitted == n_unreliable else f"the {n_fitted} of them that are most at risk"
    took = f"{seconds:.0f} seconds" if seconds < _MINUTE else f"{seconds / _MINUTE:.0f} minutes"
    note = (
        f"{counted(n_unreliable, 'record')} that cannot be relied on flagged: on_unreliable='fit' "
        f"would fit {whom} at each guess, in about {took} of one processor core."
    )
    return (note,)


def note_on_chains(
    synthesizer: Synthesizer, given_stacks: Sequence[Sequence[Posterior]]
) -> tuple[str, ...]:
    """Say for which draws made elsewhere chains are not known."""
    foreign = [
        model.regression.response
        for k, model in enumerate(synthesizer.models)
        if model.fit is None
        and any(d.chain is None for d in (model.posterior, *(of[k] for of in given_stacks)))
    ]
    if not foreign:
        return ()
    note = (
        f"The chains of the draws for {listed(foreign)} are not known: errors are estimated by "
        "batches of adjacent draws, as of one chain."
    )
    return (note,)


def notes_of(
    synthesizer: Synthesizer, release: Sequence[Released], extents: Sequence[GuessSpan]
) -> tuple[str, ...]:
    """Say what to know of the records, the release and the guesses."""
    notes = list(_on_records(synthesizer))
    for number, dataset in enumerate(release, 1):
        n_dropped = len(dataset.frame) - int(dataset.kept.sum())
        if n_dropped:
            notes.append(
                f"{counted(n_dropped, 'row')} of synthetic dataset {number} with missing values "
                "left out."
            )
    notes += [
        (
            f"Synthetic datasets {one + 1} and {other + 1} are the same: they count as two "
            "independent ones."
        )
        for other in range(len(release))
        for one in range(other)
        if _same(release[one].columns, release[other].columns)
    ]
    names = synthesizer.plan.synthesized
    for name, extent in zip(names, extents, strict=True):
        notes += [*_on_zeros(name, extent), *extent.notes, *_on_replaced(name, extent)]
    return (*notes, *_around_truth(names, extents))


def _on_zeros(name: str, extent: GuessSpan) -> tuple[str, ...]:
    if not extent.n_zero:
        return ()
    note = (
        f"For {counted(extent.n_zero, 'record')} a percentage of {name} has no width; "
        "the half-width is that percentage of its standard deviation."
    )
    return (note,)


def _on_replaced(name: str, extent: GuessSpan) -> tuple[str, ...]:
    """Say that fixed guesses hold the truth of records that they were made without."""
    if not extent.n_replaced:
        return ()
    note = (
        f"The guesses for {name} were fixed without the truth, but for "
        f"{counted(extent.n_replaced, 'record')} the truth took the place of the nearest guess."
    )
    return (note,)


def _same(one: Columns, other: Columns) -> bool:
    return all(np.array_equal(values, other[name]) for name, values in one.items())


def _on_records(synthesizer: Synthesizer) -> tuple[str, ...]:
    """Say what to know of the models and of the confidential records that they were fitted to."""
    n_dropped = synthesizer.n_dropped
    if not n_dropped:
        return synthesizer.notes
    dropped = f"{counted(n_dropped, 'confidential record')} with missing values left out."
    return (*synthesizer.notes, dropped)


def _around_truth(names: Sequence[str], extents: Sequence[GuessSpan]) -> tuple[str, ...]:
    """Say which variables' guesses no intruder owns."""
    around = [name for name, one in zip(names, extents, strict=True) if one.around_truth]
    if not around:
        return ()
    note = (
        f"The guesses for {listed(around)} are laid out around the truth, a set that no intruder "
        "owns: read the probability as a comparison within that set, not as an intruder's belief."
    )
    return (note,)
