"""What an evaluation yields: data only, records by position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.core.elimination import LOST, marginals_and_counts
from synrisk.core.likelihood import cells_within
from synrisk.core.ranks import TIE, first_best

LIKELY = 0.99  # of what the models predict


@dataclass(frozen=True, repr=False)
class ErrorArrays:
    """Monte-Carlo errors over the evaluated records.

    Attributes
    ----------
    mcse
        The standard errors of the true cell's probability and of each variable's true value,
        ``(record, 1 + variable)``; NaN where they cannot be estimated.
    rank_low, rank_high
        Ranks of the truth that the error leaves open.
    range_mcse
        A bound on the standard error of `log_odds_range`.
    ess, khat
        The smallest effective number of draws over models and guesses, and the tail of the weights
        there; infinite and NaN where nothing was drawn.
    reliable
        Whether no model's weights are both uneven and heavy-tailed, and the error is known.
    prior_mcse, gain_mcse
        The standard errors of the prior probabilities, and of what the release adds to them, as
        `mcse`; None where the prior is known: there they are 0 and `mcse`.
    likely_range_mcse
        A bound on the standard error of `likely_range`.
    """

    SHAPES: ClassVar = {
        "mcse": ("record", "part"),
        "rank_low": ("record",),
        "rank_high": ("record",),
        "range_mcse": ("record",),
        "ess": ("record",),
        "khat": ("record",),
        "reliable": ("record",),
        "prior_mcse": ("record", "part"),
        "gain_mcse": ("record", "part"),
        "likely_range_mcse": ("record",),
    }
    mcse: FloatArray
    rank_low: FloatArray
    rank_high: FloatArray
    range_mcse: FloatArray
    ess: FloatArray
    khat: FloatArray
    reliable: BoolArray
    prior_mcse: FloatArray | None = None
    gain_mcse: FloatArray | None = None
    likely_range_mcse: FloatArray | None = None

    @classmethod
    def empty(cls, n_records: int, n_variables: int, *, from_models: bool) -> ErrorArrays:
        """Return arrays to be filled by `place`; `from_models` tells whether the prior is."""
        own = (n_records, 1 + n_variables)
        return cls(
            np.empty(own),
            np.empty(n_records),
            np.empty(n_records),
            np.empty(n_records),
            np.empty(n_records),
            np.empty(n_records),
            np.empty(n_records, dtype=bool),
            *((np.empty(own), np.empty(own), np.empty(n_records)) if from_models else ()),
        )

    @property
    def of_gain(self) -> FloatArray:
        """The standard errors of what the release adds."""
        return self.mcse if self.gain_mcse is None else self.gain_mcse

    @property
    def of_prior(self) -> FloatArray:
        """The standard errors of the prior probabilities."""
        return np.zeros_like(self.mcse) if self.prior_mcse is None else self.prior_mcse

    @classmethod
    def none(cls, ranks: FloatArray, n_variables: int, *, from_models: bool) -> ErrorArrays:
        """Return those of exact numbers; `ranks` are what ties leave open, ``(record, 2)``."""
        n_records = len(ranks)
        own = (n_records, 1 + n_variables)
        return cls(
            np.zeros(own),
            np.ascontiguousarray(ranks[:, 0]),
            np.ascontiguousarray(ranks[:, 1]),
            np.zeros(n_records),
            np.full(n_records, np.inf),
            np.full(n_records, np.nan),
            np.ones(n_records, dtype=bool),
            *((np.zeros(own), np.zeros(own), np.zeros(n_records)) if from_models else ()),
        )

    @classmethod
    def unknown(cls, n_records: int, n_variables: int) -> ErrorArrays:
        """Return errors that were not estimated: NaN, and nothing known to be reliable."""
        arrays = cls.empty(n_records, n_variables, from_models=True)
        for values in vars(arrays).values():
            values[...] = False if values.dtype == bool else np.nan
        return arrays

    def place(self, rows: slice, part: ErrorArrays) -> None:
        """Write the errors of the records `rows`."""
        for name, values in vars(part).items():
            if values is not None:
                getattr(self, name)[rows] = values


@dataclass(frozen=True, repr=False)
class RiskArrays:
    """Arrays over the evaluated records; for each synthesized variable a column or an entry.

    Attributes
    ----------
    probability, prior
        That all variables are near the truth (`Grid.near`), ``(record,)``.
    rank
        Of the true cell, 1 the most probable; ties share the average.
    n_guesses
        The number of cells.
    marginals
        For each variable the probability of each of its guesses, ``(record, guess)``.
    prior_marginals
        The prior probability that each variable is near the truth, ``(record, variable)``.
    best
        The index of the guess that is best by the marginal (where guesses integrate a density, by
        that), ``(record, variable)``; of guesses that tie, the first.
    log_odds_range
        The largest less the smallest log likelihood among the guesses: the most that the release
        moved the odds between two of them.
    errors
        Monte-Carlo errors, or None where they were not asked for.
    joint
        The log posterior over the joint grid, or None where it was not kept.
    likely_range
        As `log_odds_range`, among the guesses that have 99 % of what the models predict, the most
        probable ones; None where the prior is not made of the models.
    likely_ranges
        The same by variable, of its own odds, where the joint grid was not evaluated: ``(record,
        variable)``, NaN where the prior is not made of the models. None where the joint grid was.
    """

    SHAPES: ClassVar = {
        "probability": ("record",),
        "prior": ("record",),
        "rank": ("record",),
        "n_guesses": ("record",),
        "prior_marginals": ("record", "variable"),
        "best": ("record", "variable"),
        "log_odds_range": ("record",),
        "likely_range": ("record",),
        "likely_ranges": ("record", "variable"),
    }
    probability: FloatArray
    prior: FloatArray
    rank: FloatArray
    n_guesses: IntArray
    marginals: tuple[FloatArray, ...]
    prior_marginals: FloatArray
    best: IntArray
    log_odds_range: FloatArray
    errors: ErrorArrays | None
    joint: FloatArray | None
    likely_range: FloatArray | None = None
    likely_ranges: FloatArray | None = None

    @property
    def is_joint(self) -> bool:
        """Whether the joint grid was evaluated: else there is no rank of the joint guesses."""
        return self.likely_ranges is None

    @classmethod
    def empty(
        cls,
        n_records: int,
        shape: tuple[int, ...],
        *,
        keep_joint: bool,
        with_errors: bool,
        from_models: bool,
        is_joint: bool = True,
    ) -> RiskArrays:
        """Return arrays to be filled by `place`; `from_models` tells whether the prior is.

        `shape` is that of the variables that are asked for.
        """
        return cls(
            np.empty(n_records),
            np.empty(n_records),
            np.empty(n_records),
            np.empty(n_records, dtype=np.int64),
            tuple(np.empty((n_records, size)) for size in shape),
            np.empty((n_records, len(shape))),
            np.empty((n_records, len(shape)), dtype=np.int64),
            np.empty(n_records),
            ErrorArrays.empty(n_records, len(shape), from_models=from_models)
            if with_errors
            else None,
            np.empty((n_records, *shape)) if keep_joint else None,
            np.empty(n_records) if from_models else None,
            None if is_joint else np.empty((n_records, len(shape))),
        )

    def place(self, rows: slice, part: RiskArrays) -> None:
        """Write the results of the records `rows`."""
        self.probability[rows] = part.probability
        self.prior[rows] = part.prior
        self.rank[rows] = part.rank
        self.n_guesses[rows] = part.n_guesses
        for own, of_part in zip(self.marginals, part.marginals, strict=True):
            own[rows] = of_part
        self.prior_marginals[rows] = part.prior_marginals
        self.best[rows] = part.best
        self.log_odds_range[rows] = part.log_odds_range
        if self.errors is not None and part.errors is not None:
            self.errors.place(rows, part.errors)
        if self.joint is not None and part.joint is not None:
            self.joint[rows] = part.joint
        if self.likely_range is not None and part.likely_range is not None:
            self.likely_range[rows] = part.likely_range
        if self.likely_ranges is not None and part.likely_ranges is not None:
            self.likely_ranges[rows] = part.likely_ranges


def summarise_tables(
    tables: Sequence[FloatArray],
    axes: tuple[tuple[int, ...], ...],
    truth: IntArray,
    shape: tuple[int, ...],
    n_guesses: IntArray,
    factor: float,
) -> tuple[RiskArrays, BoolArray]:
    """Reduce a joint that is a product of tables, without building it.

    Parameters
    ----------
    tables, axes
        Each model's log likelihood over its own grid, ``(record, cell)``, and that grid's axes.
    truth
        The index of the truth on every axis, ``(record, axis)``.
    shape
        The shape of the joint grid.
    n_guesses
        How many guesses each record has on each axis, ``(record, axis)``.
    factor
        How much more likely the truth is a priori than any other cell.

    Returns
    -------
    arrays, lost
        The results, and the records whose sums underflowed: they need the joint.
    """
    sums, at_truth, counts = marginals_and_counts(
        tables, axes, truth, shape, float(np.log(factor)), TIE
    )
    starts = np.concatenate([[0], np.cumsum(shape)])
    rows = np.arange(len(truth))
    lost = ~(sums[:, : shape[0]].sum(axis=1) > LOST)
    extra = (factor - 1.0) * at_truth  # what the prior adds to the true cell
    total = np.where(lost, 1.0, sums[:, : shape[0]].sum(axis=1) + extra)
    marginals, prior_marginals = [], np.empty((len(truth), len(shape)))
    n_cells = n_guesses.prod(axis=1)
    for axis in range(len(shape)):
        marginal = sums[:, starts[axis] : starts[axis + 1]]
        marginal[rows, truth[:, axis]] += extra
        marginals.append(np.ascontiguousarray(marginal / total[:, None]))
        others = n_cells / n_guesses[:, axis]
        prior_marginals[:, axis] = (others + factor - 1.0) / (n_cells + factor - 1.0)
    best = np.stack([first_best(marginal) for marginal in marginals], axis=1)
    result = RiskArrays(
        factor * at_truth / total,
        factor / (n_cells + factor - 1.0),
        counts[:, 0] + 1.0 + counts[:, 1] / 2.0,
        n_cells,
        tuple(marginals),
        prior_marginals,
        best,
        np.full(len(truth), np.nan),
        None,
        None,
    )
    return result, lost


@dataclass(frozen=True, repr=False)
class Extremes:
    """What else a summary finds, for the errors.

    Attributes
    ----------
    ranks
        The lowest and the highest rank of the truth that ties leave open, ``(record, 2)``.
    ends
        The cells with the smallest and the largest log likelihood among the guesses that a record
        has, ``(record, 2)``; or ``(0, 2)`` where they were not asked for.
    """

    ranks: FloatArray
    ends: IntArray


def summarise(
    tables: Sequence[FloatArray],
    axes: Sequence[tuple[int, ...]],
    log_prior: FloatArray,
    truth: IntArray,
    shape: tuple[int, ...],
    *,
    missed: FloatArray,
    widths: FloatArray,
    keep: bool,
    with_ends: bool,
) -> tuple[RiskArrays, Extremes]:
    """Reduce the joint posterior of a block of records to what is reported of each.

    Parameters
    ----------
    tables, axes
        Log likelihoods, ``(record, cell)`` each over a grid of some axes: their sum is that over
        the joint grid. One over all axes may be overwritten.
    log_prior
        ``(record, cell)``, or ``(1, cell)`` where all records share it.
    truth
        The index of the truth on every axis, ``(record, axis)``.
    shape
        The shape of the joint grid.
    missed, widths
        1 where a guess is not near the truth, and logs of what guesses stand for, ``(record, guess
        of any axis)``; ``(0, 0)`` where the truth alone is near, and each guess stands for itself.
    keep
        Whether to keep the joint posterior.
    with_ends
        Whether to look for `Extremes.ends`.
    """
    from synrisk.core.kernels import summarise_kernel

    n_records, every = len(truth), tuple(range(len(shape)))
    starts = np.concatenate([[0], np.cumsum(shape)]).astype(np.int64)
    true_cell = np.ravel_multi_index(tuple(truth.T), shape).astype(np.int64)
    *others, whole = sorted(range(len(tables)), key=lambda k: len(axes[k]))
    if axes[whole] == every:
        joint = np.ascontiguousarray(tables[whole])
    else:
        joint, others = np.zeros((n_records, math.prod(shape))), [*others, whole]
    beside = np.zeros((n_records, 0))
    if others:
        beside = np.concatenate([tables[k] for k in others], axis=1)
    probability, prior, log_odds_range = (np.empty(n_records) for _ in range(3))
    ranks = np.empty((n_records, 2))
    ends = np.empty((n_records if with_ends else 0, 2), dtype=np.int64)
    n_guesses = np.empty(n_records, dtype=np.int64)
    best = np.zeros((n_records, len(shape)), dtype=np.int64)
    marginals = np.empty((n_records, starts[-1]))
    prior_marginals = np.empty((n_records, len(shape)))
    summarise_kernel()(
        joint,
        beside,
        *_places(tuple(axes[k] for k in others), shape),
        np.ascontiguousarray(log_prior),
        true_cell,
        np.ascontiguousarray(truth),
        missed,
        widths,
        *_places(tuple((axis,) for axis in every), shape),
        starts,
        TIE,
        keep,
        probability,
        prior,
        ranks,
        n_guesses,
        marginals,
        prior_marginals,
        best,
        ends,
        log_odds_range,
    )
    arrays = RiskArrays(
        probability,
        prior,
        (ranks[:, 0] + ranks[:, 1]) / 2.0,
        n_guesses,
        tuple(np.split(marginals, starts[1:-1], axis=1)),
        prior_marginals,
        best,
        log_odds_range,
        None,
        joint.reshape(n_records, *shape) if keep else None,
    )
    return arrays, Extremes(ranks, ends)


@lru_cache(maxsize=64)
def _places(axes: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Return how a kernel is to add tables over some axes that lie side by side.

    For each table where the numbers for each cell of all axes but the last begin, and whether they
    lie along the last.
    """
    last = len(shape) - 1
    along = np.array([last in some for some in axes], dtype=np.int64)
    bases = np.zeros((len(axes), math.prod(shape[:last])), dtype=np.int64)
    first = 0
    for k, some in enumerate(axes):
        without = tuple(axis for axis in some if axis != last)
        size = shape[last] if along[k] else 1
        bases[k] = first + size * cells_within(tuple(range(last)), without, shape)
        first += math.prod(shape[axis] for axis in some)
    return bases, along


@dataclass(frozen=True, repr=False)
class MixedPrior:
    """A prior that is mostly what the models predict, and what follows from it.

    Attributes
    ----------
    log_prior
        ``(record, cell)``.
    model
        What the models predict by themselves, ``(record, cell)``, or ``(0, 0)``.
    likely_range, ends
        The range of the log likelihood among the likely cells, and the cells at its ends.
    """

    log_prior: FloatArray
    model: FloatArray
    likely_range: FloatArray
    ends: IntArray


def mix_prior(
    predicted: Sequence[FloatArray],
    likelihood: Sequence[FloatArray],
    axes: Sequence[tuple[int, ...]],
    measure: FloatArray,
    widths: FloatArray,
    absent: FloatArray,
    shape: tuple[int, ...],
    share: float,
    *,
    with_model: bool,
) -> MixedPrior:
    """Return the prior that is `share` of what the models predict, and else uniform.

    Parameters
    ----------
    predicted, likelihood, axes
        Each model's log predictive densities and log likelihoods over its own grid, ``(record,
        cell)``, and that grid's axes.
    measure, widths, absent
        Logs of what densities are multiplied by, logs of what guesses stand for, and 1 where a
        record has no such guess, ``(record, guess of any axis)``.
    shape
        The shape of the joint grid.
    share
        Of the models.
    with_model
        Whether to keep what the models predict.
    """
    from synrisk.core.kernels import mixture_kernel

    n_records, n_cells = len(measure), math.prod(shape)
    out = MixedPrior(
        np.empty((n_records, n_cells)),
        np.empty((n_records, n_cells) if with_model else (0, 0)),
        np.empty(n_records),
        np.zeros((n_records, 2), dtype=np.int64),
    )
    mixture_kernel()(
        np.concatenate(predicted, axis=1),
        np.concatenate(likelihood, axis=1),
        *_places(tuple(axes), shape),
        measure,
        widths,
        absent,
        *_places(tuple((axis,) for axis in range(len(shape))), shape),
        shape[-1],
        share,
        LIKELY,
        out.log_prior,
        out.model,
        out.likely_range,
        out.ends,
    )
    return out
