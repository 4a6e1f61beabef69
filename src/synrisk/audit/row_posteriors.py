"""Which row of a partly synthetic release is a person's own, for somebody who knows the models.

The target's row J is any of the rows C that have its known values, each as likely as another. Row j
holds x_j as it is and synthetic values; t are the target's own values. Given one dataset Ỹ

    p(J = j | t, Ỹ) ∝ p(Y_j = t, Ỹ) ∝ p(Y_j = t | x_j, Ỹ)

and confidential and synthetic values are exchangeable: Ỹ is drawn by a θ given y, so that

    p(y, Ỹ) = p(y) ∫ p(θ|y) f(Ỹ|θ) dθ = ∫ p(θ) f(y|θ) f(Ỹ|θ) dθ

Hence p(Y_j = t | x_j, Ỹ) = E[f(t|x_j, θ) | Ỹ], the posterior given the synthetic rows alone. What
row j has for synthetic values enters through θ, as that of any other row does: a match of values is
no evidence by itself. With |C| rows of one x the probability is 1/|C|.

Several datasets share y and each has a θ of its own, so that they are no larger dataset: they tell
what y's own estimate is, which is nearer to y than any θ. For few records files that could have
been are gone through (`audit/possible_files.py`). Among many, to the second order in one over their
number, where V is the curvature of y's posterior and s the mean of the datasets' estimates,

    p(Y_j = t | Ỹ_1 … Ỹ_m) = f(t | x_j, s) + ½ tr f''(t | x_j, s) V (2/m − 1)

and E[f | all rows stacked] has V/m there, E[f | all rows, each of weight 1/m] has V; priors enter
alike. So the first squared, over the second, has 2/m − 1.

A value that is known within a radius stands for all values there: f is averaged over them. What the
intruder does not know of the target, and other values depend on, is drawn by its model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from synrisk.audit.possible_files import by_possible_files, fit_of, is_little_work, tables_of
from synrisk.audit.radius import Radius
from synrisk.audit.row_search import (
    PAIR,
    Believed,
    Candidates,
    OwnRows,
    RowSearch,
    needed_models,
    released_as_is,
)
from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import OptionError, SyntheticDataError, counted, listed
from synrisk.base.workers import Executor, Serial
from synrisk.fitting import Refit
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_MANY = 400_000_000  # densities of a dataset, beyond which fewer draws are taken
_FEWEST_DRAWS = 100
_MOST_PAIRS = 40_000_000  # of a record and a row that may be its own: minutes


@dataclass(frozen=True, repr=False)
class RowPosteriors:
    """The probability of each record's own row, by dataset and by all together.

    Attributes
    ----------
    probability
        Of the own row given one dataset, ``(record, dataset)``.
    error
        Its Monte-Carlo standard error; 0 where nothing was drawn.
    is_reliable
        Whether both can be relied on.
    together, error_together, is_reliable_together
        The same for somebody who has all datasets, ``(record,)``.
    is_approximate
        Whether that is by the second order in one over the number of records; its error then has
        the size of the correction too.
    linking
        The columns that are released as they are, not known exactly, and predict what is known:
        they alone tell rows with the same known values apart.
    """

    SHAPES: ClassVar = {
        "probability": ("record", "dataset"),
        "error": ("record", "dataset"),
        "is_reliable": ("record", "dataset"),
        "together": ("record",),
        "error_together": ("record",),
        "is_reliable_together": ("record",),
        "is_approximate": ("record",),
    }
    probability: FloatArray
    error: FloatArray
    is_reliable: BoolArray
    together: FloatArray
    error_together: FloatArray
    is_reliable_together: BoolArray
    is_approximate: BoolArray
    linking: tuple[str, ...] = ()

    @property
    def mean(self) -> FloatArray:
        """The probability for somebody who has one of the datasets, whichever."""
        return np.asarray(self.probability.mean(axis=1))


def refuse_models(synthesizer: Synthesizer, known: Sequence[str], given: Sequence[str]) -> None:
    """Raise where models cannot say whose row is whose.

    Parameters
    ----------
    synthesizer
        The models.
    known, given
        The variables that are known as they are, and the synthesized ones.
    """
    synthesized = synthesizer.plan.synthesized
    foreign = [model.response for model in synthesizer.models if model.fit is None]
    if foreign:
        raise OptionError(
            "synthesizer=: the probability of a row needs fits to synthetic rows, and the draws of "
            f"{listed(foreign)} were made elsewhere. Use synrisk.fit, or leave synthesizer= out."
        )
    others = [name for name in given if name not in synthesized]
    if others:
        raise OptionError(
            f"synthesized= names {listed(others)}, which the synthesizer does not synthesize; "
            f"these are {listed(synthesized)}."
        )
    made = [name for name in known if name in synthesized]
    if made:
        raise OptionError(
            f"known= names {listed(made)}, which the synthesizer synthesizes: list it in "
            "synthesized=."
        )


def row_posteriors(
    synthesizer: Synthesizer,
    release: Sequence[Released],
    candidates: Sequence[Candidates],
    known: Sequence[str],
    radius: Mapping[str, Radius],
    executor: Executor | None = None,
) -> RowPosteriors:
    """Return the probability of each record's own row given each dataset, and given all.

    Parameters
    ----------
    synthesizer
        The models, made by `fit`; rows of a dataset stand in its records' order.
    release, candidates
        The datasets, and the rows of each that may be a record's own.
    known
        The variables that are known exactly.
    radius
        How far the intruder knows each synthesized variable; the others are not known.
    executor
        Maps over chunks of rows.
    """
    executor = Serial() if executor is None else executor
    models = needed_models(synthesizer, radius)
    gapped = [own.response for own in models if own.regression.distribution.gap_code is not None]
    if gapped:
        raise OptionError(
            f"The missing values of {listed(gapped)} are modelled, and whose row is whose is not "
            "known by such models yet. Leave synthesizer= out to count rows that match."
        )
    as_is = released_as_is(synthesizer, models)
    _refuse_gaps(release)
    _refuse_moved(release, as_is)
    searches = [
        RowSearch.of(synthesizer, models, dataset, own, radius)
        for dataset, own in zip(release, candidates, strict=True)
    ]
    found = [
        search.run([_believed(search, [dataset], 1.0, executor)])
        for search, dataset in zip(searches, release, strict=True)
    ]
    probability, error, reliable = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    together, is_approximate = _together(searches[0], release, found, executor)
    linking = tuple(name for name in as_is if name not in known)
    return RowPosteriors(probability, error, reliable, *together, is_approximate, linking)


def _refuse_gaps(release: Sequence[Released]) -> None:
    for number, dataset in enumerate(release, 1):
        n_gaps = len(dataset.kept) - int(dataset.kept.sum())
        if n_gaps:
            raise SyntheticDataError(
                f"Synthetic dataset {number}: {counted(n_gaps, 'row')} with missing values, which "
                "the models do not have. Leave synthesizer= out, or fill them."
            )


def _refuse_moved(release: Sequence[Released], as_is: Sequence[str]) -> None:
    """Raise where a row is not the same person's in all datasets."""
    first = release[0].columns
    for number, dataset in enumerate(release[1:], 2):
        moved = [name for name in as_is if not np.array_equal(dataset.columns[name], first[name])]
        if moved:
            raise SyntheticDataError(
                f"Synthetic datasets 1 and {number} differ in {listed(moved)}, which the models "
                "do not synthesize: a row must be the same record's in all of them. Name the "
                "records by id=, or give one dataset."
            )


def _together(
    search: RowSearch, release: Sequence[Released], by_one: Sequence[OwnRows], executor: Executor
) -> tuple[OwnRows, BoolArray]:
    """Return the probability given all datasets, and for which records it is approximate."""
    m, n = len(release), len(search.kind_of)
    if m == 1 or not search.n_pairs:
        return by_one[0], np.zeros(n, dtype=bool)
    exact = None
    if is_little_work(search, m):
        exact = by_possible_files(search, release, executor)
        if exact[2].all():
            return exact, np.zeros(n, dtype=bool)
    all_rows = _believed(search, release, 1.0, executor)
    as_one = _believed(search, release, 1.0 / m, executor)
    stacked, _, _ = search.run([all_rows])
    p, error, reliable = search.run([replace(all_rows, power=2.0), replace(as_one, power=-1.0)])
    near = p, np.hypot(error, p - stacked), reliable
    if exact is None:
        return near, np.ones(n, dtype=bool)
    is_exact = exact[2]
    p, error, reliable = (np.where(is_exact, *pair) for pair in zip(exact, near, strict=True))
    return (p, error, reliable), ~is_exact


def _believed(
    search: RowSearch, release: Sequence[Released], weight: float, executor: Executor
) -> Believed:
    """Return the models' draws given the synthetic rows alone, no more than time allows."""
    n_pairs = search.n_pairs
    if n_pairs == 0:
        return Believed((), is_reliable=True)
    if n_pairs > _MOST_PAIRS:
        raise OptionError(
            f"{n_pairs:,} pairs of a record and a row that may be its own are too many: at most "
            f"{_MOST_PAIRS:,}. Name more known variables, or leave synthesizer= out."
        )
    refits = [
        _refit(search.synthesizer, model, release, weight, executor) for model in search.models
    ]
    n_draws = min(refit.posterior.n_draws for refit in refits)
    n_draws = min(n_draws, max(_FEWEST_DRAWS, _MANY // n_pairs))
    n_draws = max(1, n_draws - n_draws % PAIR)
    fits = tuple(refit.posterior.first(n_draws) for refit in refits)
    return Believed(fits, all(refit.reliable for refit in refits))


def _refit(
    synthesizer: Synthesizer,
    model: Model,
    release: Sequence[Released],
    weight: float,
    executor: Executor,
) -> Refit:
    tables = tables_of(synthesizer, model, release, weight)
    return fit_of(model).refit(tables, model.posterior.names, executor)
