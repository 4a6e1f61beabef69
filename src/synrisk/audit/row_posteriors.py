"""Which row of a partly synthetic release is a person's own, for somebody who knows the models.

The target's row J is any of the rows C that have its known values, each as likely as another. Row j
holds x_j as it is and synthetic values; t are the target's own values. Given one dataset Ỹ

    p(J = j | t, Ỹ) ∝ p(Y_j = t, Ỹ) ∝ p(Y_j = t | x_j, Ỹ)

and confidential and synthetic values are exchangeable: Ỹ is drawn by a θ given y, so that

    p(y, Ỹ) = p(y) ∫ p(θ|y) f(Ỹ|θ) dθ = ∫ p(θ) f(y|θ) f(Ỹ|θ) dθ

Hence p(Y_j = t | x_j, Ỹ) = E[f(t|x_j, θ) | Ỹ], the posterior given the synthetic rows alone. What
row j has for synthetic values enters through θ, as that of any other row does: a match of values is
no evidence by itself. With |C| rows of one x the probability is 1/|C|.

A value that is known within a radius stands for all values there: f is averaged over them. What the
intruder does not know of the target, and other values depend on, is drawn by its model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from synrisk.audit.radius import Radius
from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import OptionError, SyntheticDataError, counted, listed
from synrisk.base.seeds import stream
from synrisk.base.workers import Executor, Serial
from synrisk.core.batches import Units
from synrisk.data.schema import Factor
from synrisk.models.posterior import Posterior
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

# Of a variable that is known roughly: its values in a dataset, and the ends of records' intervals.
Rough: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]

_PAIR = 2  # draws of a fit come in antithetic pairs
_AT_ONCE = 2_000_000  # densities, times columns of a design
_MANY = 400_000_000  # densities of a dataset, beyond which fewer draws are taken
_FEWEST_DRAWS = 100
_MOST_PAIRS = 40_000_000  # of a record and a row that may be its own: minutes
_LEAST_EFFECTIVE = 20.0  # draws, for an error to be known


@dataclass(frozen=True, repr=False)
class RowPosteriors:
    """The probability of each record's own row, by dataset.

    Attributes
    ----------
    probability
        Of the own row given one dataset, ``(record, dataset)``.
    error
        Its Monte-Carlo standard error; 0 where nothing was drawn.
    is_reliable
        Whether both can be relied on.
    linking
        The columns that are released as they are, not known exactly, and predict what is known:
        they alone tell rows with the same known values apart.
    """

    SHAPES: ClassVar = {
        "probability": ("record", "dataset"),
        "error": ("record", "dataset"),
        "is_reliable": ("record", "dataset"),
    }
    probability: FloatArray
    error: FloatArray
    is_reliable: BoolArray
    linking: tuple[str, ...] = ()

    @property
    def mean(self) -> FloatArray:
        """The probability for somebody who has one of the datasets, whichever."""
        return np.asarray(self.probability.mean(axis=1))

    @property
    def error_of_mean(self) -> FloatArray:
        """Its error at most: fits to the datasets share their random numbers."""
        return np.asarray(self.error.mean(axis=1))


@dataclass(frozen=True, repr=False)
class Candidates:
    """Which rows of a dataset may be a record's own, by what is known of it.

    Attributes
    ----------
    of_records, of_rows
        The cell of known values of each record and of each row: a row of the same cell may be it.
    rough
        Of variables that are known roughly.
    """

    of_records: IntArray
    of_rows: IntArray
    rough: tuple[Rough, ...] = ()


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
    """Return the probability of each record's own row given each dataset.

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
    models = _needed(synthesizer, radius)
    found = []
    for number, (dataset, own) in enumerate(zip(release, candidates, strict=True), 1):
        n_gaps = len(dataset.kept) - int(dataset.kept.sum())
        if n_gaps:
            raise SyntheticDataError(
                f"Synthetic dataset {number}: {counted(n_gaps, 'row')} with missing values, which "
                "the models do not have. Leave synthesizer= out, or fill them."
            )
        found.append(_Search.of(synthesizer, models, dataset, own, radius, executor).run())
    as_is = tuple(name for name in _as_is(synthesizer, models) if name not in known)
    probability, error, reliable = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    return RowPosteriors(probability, error, reliable, as_is)


def _needed(synthesizer: Synthesizer, radius: Mapping[str, Radius]) -> tuple[Model, ...]:
    """Return the models of what is known, and of what that depends on."""
    names = set(radius)
    for model in reversed(synthesizer.models):
        if model.response in names:
            names |= set(model.regression.parsed.predictors)
    gapped = [
        model.response
        for model in synthesizer.models
        if model.response in names and model.regression.distribution.gap_code is not None
    ]
    if gapped:
        raise OptionError(
            f"The missing values of {listed(gapped)} are modelled, and whose row is whose is not "
            "known by such models yet. Leave synthesizer= out to count rows that match."
        )
    return tuple(model for model in synthesizer.models if model.response in names)


def _as_is(synthesizer: Synthesizer, models: Sequence[Model]) -> tuple[str, ...]:
    """Return what models predict from that is not synthesized."""
    names = (name for model in models for name in model.regression.parsed.predictors)
    return tuple(dict.fromkeys(n for n in names if n not in synthesizer.plan.synthesized))


@dataclass(frozen=True, repr=False)
class _Search:
    """Whose row is whose, in one dataset.

    Records with the same knowledge about them are one kind, and rows with the same predictors and
    known values one pattern; so each kind is held against patterns.
    """

    synthesizer: Synthesizer
    models: tuple[Model, ...]
    fits: tuple[Posterior, ...]
    dataset: Released
    radius: Mapping[str, Radius]
    is_reliable: bool
    candidates: Candidates
    pattern_of: IntArray  # of each row
    row_of: IntArray  # a row of each pattern
    n_rows: IntArray  # of each pattern
    kind_of: IntArray  # of each record
    record_of: IntArray  # a record of each kind
    first: IntArray  # of each kind, the first pattern of its cell
    n_patterns: IntArray  # of each kind, in its cell

    @classmethod
    def of(
        cls,
        synthesizer: Synthesizer,
        models: tuple[Model, ...],
        dataset: Released,
        candidates: Candidates,
        radius: Mapping[str, Radius],
        executor: Executor,
    ) -> _Search:
        as_is = [dataset.columns[name] for name in _as_is(synthesizer, models)]
        rough_rows = [values for values, *_ in candidates.rough]
        rows = np.stack([candidates.of_rows, *as_is, *rough_rows], axis=1).astype(np.float64)
        _, row_of, pattern_of, n_rows = np.unique(
            rows, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        ends = [end for _, low, high in candidates.rough for end in (low, high)]
        known = [synthesizer.columns[name] for name in radius]
        records = np.stack([candidates.of_records, *known, *ends], axis=1).astype(np.float64)
        _, record_of, kind_of = np.unique(records, axis=0, return_index=True, return_inverse=True)
        cells, wanted = candidates.of_rows[row_of], candidates.of_records[record_of]
        first = np.searchsorted(cells, wanted, side="left")
        n_patterns = np.searchsorted(cells, wanted, side="right") - first
        n_pairs = int(n_patterns[n_patterns > 1].sum())
        fits, is_reliable = _fits(synthesizer, models, dataset, n_pairs, executor)
        return cls(
            synthesizer, models, fits, dataset, radius, is_reliable, candidates,
            pattern_of.ravel(), row_of, n_rows, kind_of.ravel(), record_of, first, n_patterns,
        )  # fmt: skip

    @property
    def n_draws(self) -> int:
        return self.fits[0].n_draws if self.fits else 0

    def run(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the probability of each record's own row, its error, and which are reliable."""
        n = len(self.kind_of)
        probability, error, reliable = np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
        by_kind = np.argsort(self.kind_of, kind="stable")
        starts = np.searchsorted(self.kind_of[by_kind], np.arange(len(self.record_of) + 1))
        for low, high in self._parts():
            records = by_kind[starts[low] : starts[high]]
            kinds = np.arange(low, high)
            probability[records], error[records], reliable[records] = self._of(kinds, records)
        return probability, error, reliable

    def _parts(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of kinds that fit into memory together."""
        width = max((len(model.design.columns) for model in self.models), default=1)
        most = max(1, _AT_ONCE // (max(self.n_draws, 1) * width))
        total = np.cumsum(self.n_patterns)
        low = 0
        while low < len(total):
            before = int(total[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(total, before + most, side="right")))
            yield low, high
            low = high

    def _of(self, kinds: IntArray, records: IntArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the probabilities of the own rows of some kinds' records."""
        of_kind, patterns = self._pairs(kinds)
        n_kinds, own_kind = len(kinds), self.kind_of[records] - kinds[0]
        size = np.bincount(of_kind, self.n_rows[patterns], n_kinds)
        n_patterns = np.bincount(of_kind, minlength=n_kinds)
        # The own pattern among a kind's; where known values are rough it may not be one of them.
        order = of_kind * (len(self.n_rows) + 1) + patterns
        wanted = own_kind * (len(self.n_rows) + 1) + self.pattern_of[records]
        place = np.minimum(np.searchsorted(order, wanted), max(len(order) - 1, 0))
        is_there = order[place] == wanted if len(order) else np.zeros(len(records), dtype=bool)
        even = np.where(is_there, 1.0 / np.maximum(size[own_kind], 1.0), 0.0)
        settled = (n_patterns[own_kind] < _PAIR) | ~is_there
        if settled.all() or not self.fits:
            return even, np.zeros(len(records)), np.ones(len(records), dtype=bool)
        terms = self._terms(of_kind, patterns, kinds)
        starts = np.searchsorted(of_kind, np.arange(n_kinds))
        whole = np.zeros((n_kinds, self.n_draws))
        there = n_patterns > 0
        weighted = terms * self.n_rows[patterns][:, None]
        whole[there] = np.add.reduceat(weighted, starts[there], axis=0)
        own = terms[place]
        total = whole.sum(axis=1)[own_kind]
        with np.errstate(all="ignore"):
            p = own.sum(axis=1) / total
            moved = (own - p[:, None] * whole[own_kind]) / total[:, None]
            error = _error(moved, self._unit)
            ess = np.minimum(_effective(own), _effective(whole)[own_kind])
        reliable = self.is_reliable & (ess >= _LEAST_EFFECTIVE) & np.isfinite(p)
        return (
            np.where(settled, even, p),
            np.where(settled, 0.0, np.where(reliable, error, np.nan)),
            settled | reliable,
        )

    def _pairs(self, kinds: IntArray) -> tuple[IntArray, IntArray]:
        """Return, kind by kind, its number among these and each pattern that may be its own."""
        counts = self.n_patterns[kinds]
        of_kind = np.repeat(np.arange(len(kinds)), counts)
        within = np.arange(len(of_kind)) - np.repeat(np.cumsum(counts) - counts, counts)
        patterns = self.first[kinds][of_kind] + within
        records, rows = self.record_of[kinds][of_kind], self.row_of[patterns]
        may_be = np.ones(len(of_kind), dtype=bool)
        for values, low, high in self.candidates.rough:
            may_be &= (low[records] < values[rows]) & (values[rows] < high[records])
        return of_kind[may_be], patterns[may_be]

    @property
    def _unit(self) -> int:
        """The number of adjacent draws that are taken together for an error."""
        chains = [fit.chain for fit in self.fits if fit.chain is not None]
        return max([_PAIR, *(Units.of_chains(chain, self.n_draws).size for chain in chains)])

    def _terms(self, of_kind: IntArray, patterns: IntArray, kinds: IntArray) -> FloatArray:
        """Return weight times density, ``(pair, draw)``, in units of each kind's largest."""
        log_terms = np.zeros((len(of_kind), self.n_draws))
        values: dict[str, Any] = {}
        rows, records = self.row_of[patterns], self.record_of[kinds]
        for model, fit in zip(self.models, self.fits, strict=True):
            name, family = model.response, model.regression.distribution
            eta = self._predictors(model, fit, values, rows)
            given = np.broadcast_to(fit.auxiliary, (len(rows), *fit.auxiliary.shape))
            log_terms += fit.log_weights
            if name not in self.radius:  # not known: drawn
                ends = np.searchsorted(of_kind, np.arange(1, len(kinds)))
                parts = zip(np.split(eta, ends), np.split(given, ends), strict=True)
                # From the same numbers for each kind, whatever is computed beside it.
                drawn = [
                    family.draw(*part, stream(0, "row posteriors", variable=name)) for part in parts
                ]
                y = np.concatenate(drawn).astype(np.float64)
                values[name] = self._own_scale(model, y)
                continue
            y = self._known(model, records)
            values[name] = self._own_scale(model, y)[of_kind]
            variable = self.synthesizer.schema.variables[name]
            with np.errstate(all="ignore"):
                log_density = family.log_density(y[of_kind], eta, given)
            possible = family.supports(y, variable)[of_kind]
            log_terms += np.where(possible, np.nan_to_num(log_density, nan=-np.inf), -np.inf)
        largest = np.full(len(kinds), -np.inf)
        np.maximum.at(largest, of_kind, log_terms.max(axis=1))
        largest = np.where(np.isfinite(largest), largest, 0.0)
        return np.asarray(np.exp(log_terms - largest[of_kind][:, None]))

    def _own_scale(self, model: Model, y: FloatArray) -> Any:
        """Return values of a response as other models' predictors have them."""
        if isinstance(self.synthesizer.schema.variables[model.response], Factor):
            return y.astype(np.int64)
        return model.regression.transform.inverse(y)

    def _predictors(
        self, model: Model, fit: Posterior, values: Mapping[str, Any], rows: IntArray
    ) -> FloatArray:
        """Return the linear predictors of pairs, ``(pair, draw, predictor)``."""
        what = f"Rows with the known values, predictors of {model.response!r}"
        n, names = len(rows), model.regression.parsed.predictors
        varies = any(values[name].shape[1] > 1 for name in names if name in values)
        width = self.n_draws if varies else 1
        columns = {}
        for name in names:
            own = values[name] if name in values else self.dataset.columns[name][rows][:, None]
            columns[name] = np.broadcast_to(own, (n, width)).ravel()
        matrix = model.design.matrix(columns, n * width, what, SyntheticDataError)
        if not varies:
            return np.asarray(np.einsum("ic,hcp->ihp", matrix, fit.coefficients))
        by_draw = matrix.reshape(n, width, -1)
        return np.asarray(np.einsum("ihc,hcp->ihp", by_draw, fit.coefficients))

    def _known(self, model: Model, records: IntArray) -> FloatArray:
        """Return the values that the intruder holds possible, ``(kind, 1 or draw)``.

        On the model's scale; within a radius each is as likely as another, spread evenly over the
        draws, the same for all rows.
        """
        name, regression = model.response, model.regression
        truth = self.synthesizer.columns[name][records].astype(np.float64)
        exact = regression.on_model_scale(truth)[:, None]
        own, variable = self.radius[name], self.synthesizer.schema.variables[name]
        if own.is_equality:
            return exact
        u = self._evenly(name)
        if isinstance(variable, Factor):
            return _levels_within(variable, truth, own, u)
        low, high = own.interval(truth)
        family = regression.distribution
        if not family.is_continuous:
            step = family.grid_step
            least, most = np.floor(low / step) + 1.0, np.ceil(high / step) - 1.0
            least = np.maximum(least, family.least / step)
            number = np.floor(u * np.maximum(most - least + 1.0, 1.0)[:, None])
            return family.on_grid(step * (least[:, None] + number))
        ends = np.sort(np.stack([regression.on_model_scale(end) for end in (low, high)]), axis=0)
        furthest = self._reach(model)
        ends = np.clip(np.nan_to_num(ends, nan=-np.inf), *furthest)
        # At the edge of what can be, the truth stays inside.
        below, above = np.minimum(ends[0], exact[:, 0]), np.maximum(ends[1], exact[:, 0])
        return np.asarray(below[:, None] + u * (above - below)[:, None])

    def _reach(self, model: Model) -> tuple[float, float]:
        """Return where a model's values lie, and as far again: beyond there is nothing to add."""
        columns = (self.synthesizer.columns[model.response], self.dataset.columns[model.response])
        y = model.regression.on_model_scale(np.concatenate(columns).astype(np.float64))
        low, high = float(y.min()), float(y.max())
        return 2.0 * low - high, 2.0 * high - low

    def _evenly(self, name: str) -> FloatArray:
        """Return evenly spread numbers from 0 to 1 by draw, in random order, the same in a unit."""
        n_units = -(-self.n_draws // _PAIR)
        order = stream(0, "row posteriors", variable=name).permutation(n_units)
        return np.repeat((order + 0.5) / n_units, _PAIR)[None, : self.n_draws]


def _levels_within(variable: Factor, truth: FloatArray, own: Radius, u: FloatArray) -> FloatArray:
    """Return the codes of levels that are numbers within the radius of the true one."""
    numbers = np.array([_number(level) for level in variable.levels])
    low, high = own.interval(numbers[truth.astype(np.int64)])
    near = (low[:, None] < numbers) & (numbers < high[:, None])
    near[np.arange(len(truth)), truth.astype(np.int64)] = True
    order = np.argsort(~near, axis=1, kind="stable")  # those first
    number = np.floor(u * near.sum(axis=1)[:, None]).astype(np.int64)
    return np.take_along_axis(order, number, axis=1).astype(np.float64)


def _number(level: Any) -> float:
    try:
        return float(level)
    except (TypeError, ValueError):
        return math.nan


def _fits(
    synthesizer: Synthesizer,
    models: Sequence[Model],
    dataset: Released,
    n_pairs: int,
    executor: Executor,
) -> tuple[tuple[Posterior, ...], bool]:
    """Return the models' draws given the synthetic rows alone, no more than time allows."""
    if n_pairs == 0:
        return (), True
    if n_pairs > _MOST_PAIRS:
        raise OptionError(
            f"{n_pairs:,} pairs of a record and a row that may be its own are too many: at most "
            f"{_MOST_PAIRS:,}. Name more known variables, or leave synthesizer= out."
        )
    refits = [synthesizer.refits.of_release(model, dataset, executor) for model in models]
    n_draws = min(refit.posterior.n_draws for refit in refits)
    n_draws = min(n_draws, max(_FEWEST_DRAWS, _MANY // n_pairs))
    n_draws = max(1, n_draws - n_draws % _PAIR)
    fits = tuple(refit.posterior.first(n_draws) for refit in refits)
    return fits, all(refit.reliable for refit in refits)


def _error(moved: FloatArray, unit: int) -> FloatArray:
    """Return the standard error of a sum over draws, ``(record, draw)``, from units of them."""
    starts = np.arange(0, moved.shape[1], unit)
    by_unit = np.add.reduceat(moved, starts, axis=1)
    n = len(starts)
    return np.asarray(np.sqrt(n / max(n - 1, 1) * (by_unit**2).sum(axis=1)))


def _effective(terms: FloatArray) -> FloatArray:
    """Return the effective number of draws of sums."""
    return np.asarray(terms.sum(axis=1) ** 2 / (terms**2).sum(axis=1))
