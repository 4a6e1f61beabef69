"""Whose row is whose, by what models give the target's values at each row that may be its own.

Records with the same knowledge about them are one kind, and rows with the same predictors and
known values one pattern; so each kind is held against patterns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from synrisk.audit.radius import Radius
from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import SyntheticDataError
from synrisk.base.seeds import stream
from synrisk.core.batches import Units
from synrisk.data.schema import Factor
from synrisk.models.posterior import Posterior
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

# Of a variable that is known roughly: its values in a dataset, and the ends of records' intervals.
Rough: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
# The probability of each record's own row, its error, and whether both can be relied on.
OwnRows: TypeAlias = tuple[FloatArray, FloatArray, BoolArray]

PAIR = 2  # draws of a fit come in antithetic pairs
LEAST_EFFECTIVE = 20.0  # draws, for an error to be known
_AT_ONCE = 2_000_000  # densities, times columns of a design


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


@dataclass(frozen=True, repr=False)
class Believed:
    """The models' draws given some rows, and the power of what they give the target's values.

    Attributes
    ----------
    fits
        Of each model, as many draws.
    is_reliable
        Whether the fits are.
    power
        Of the mean density over the draws, in the product over several of these.
    """

    fits: tuple[Posterior, ...]
    is_reliable: bool
    power: float = 1.0

    @property
    def n_draws(self) -> int:
        """The number of draws."""
        return self.fits[0].n_draws if self.fits else 0


def needed_models(synthesizer: Synthesizer, radius: Mapping[str, Radius]) -> tuple[Model, ...]:
    """Return the models of what is known, and of what that depends on."""
    names = set(radius)
    for model in reversed(synthesizer.models):
        if model.response in names:
            names |= set(model.regression.parsed.predictors)
    return tuple(model for model in synthesizer.models if model.response in names)


def released_as_is(synthesizer: Synthesizer, models: Sequence[Model]) -> tuple[str, ...]:
    """Return what models predict from that is not synthesized."""
    names = (name for model in models for name in model.regression.parsed.predictors)
    return tuple(dict.fromkeys(n for n in names if n not in synthesizer.plan.synthesized))


@dataclass(frozen=True, repr=False)
class RowSearch:
    """Which rows may be whose.

    Attributes
    ----------
    synthesizer, models
        The models that are needed.
    dataset
        The rows: what they hold as it is, which all datasets have alike.
    radius, candidates
        What is known of records.
    pattern_of, row_of, n_rows
        The pattern of each row; a row, and the number of rows, of each pattern.
    kind_of, record_of
        The kind of each record; a record of each kind.
    first, n_patterns
        Of each kind: the first pattern of its cell, and how many the cell has.
    """

    synthesizer: Synthesizer
    models: tuple[Model, ...]
    dataset: Released
    radius: Mapping[str, Radius]
    candidates: Candidates
    pattern_of: IntArray
    row_of: IntArray
    n_rows: IntArray
    kind_of: IntArray
    record_of: IntArray
    first: IntArray
    n_patterns: IntArray

    @classmethod
    def of(
        cls,
        synthesizer: Synthesizer,
        models: tuple[Model, ...],
        dataset: Released,
        candidates: Candidates,
        radius: Mapping[str, Radius],
    ) -> RowSearch:
        """Find kinds of records and patterns of rows.

        Parameters
        ----------
        synthesizer, models, dataset, candidates, radius
            As the attributes.
        """
        as_is = [dataset.columns[name] for name in released_as_is(synthesizer, models)]
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
        return cls(
            synthesizer, models, dataset, radius, candidates,
            pattern_of.ravel(), row_of, n_rows, kind_of.ravel(), record_of, first, n_patterns,
        )  # fmt: skip

    @property
    def n_pairs(self) -> int:
        """The number of pairs of a kind and a pattern that are not settled by what is known."""
        return int(self.n_patterns[self.n_patterns > 1].sum())

    def run(self, believed: Sequence[Believed]) -> OwnRows:
        """Return the probability of each record's own row, its error, and which are reliable.

        Row j has a share of Π_s E_s[f(t | x_j, θ)]^power over what is believed, s.

        Parameters
        ----------
        believed
            The draws; those of several share their random numbers.
        """
        n = len(self.kind_of)
        probability, error, reliable = np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
        by_kind = np.argsort(self.kind_of, kind="stable")
        starts = np.searchsorted(self.kind_of[by_kind], np.arange(len(self.record_of) + 1))
        for low, high in self._parts(max((one.n_draws for one in believed), default=0)):
            records = by_kind[starts[low] : starts[high]]
            own = _Part.of(self, np.arange(low, high), records)
            probability[records], error[records], reliable[records] = own.run(believed)
        return probability, error, reliable

    def _parts(self, n_draws: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of kinds that fit into memory together."""
        width = max((len(model.design.columns) for model in self.models), default=1)
        most = max(1, _AT_ONCE // (max(n_draws, 1) * width))
        total = np.cumsum(self.n_patterns)
        low = 0
        while low < len(total):
            before = int(total[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(total, before + most, side="right")))
            yield low, high
            low = high

    def pairs(self, kinds: IntArray) -> tuple[IntArray, IntArray]:
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

    def own_scale(self, model: Model, y: FloatArray) -> Any:
        """Return values of a response as other models' predictors have them."""
        if isinstance(self.synthesizer.schema.variables[model.response], Factor):
            return y.astype(np.int64)
        return model.regression.transform.inverse(y)

    def design(self, model: Model, values: Mapping[str, Any], rows: IntArray) -> FloatArray:
        """Return a model's design at rows, ``(row, 1 or draw, column)``.

        Parameters
        ----------
        model
            Whose predictors.
        values
            What the rows' synthesized predictors are taken to be, ``(row, 1 or draw)``.
        rows
            Of the dataset, for what is released as it is.
        """
        what = f"Rows with the known values, predictors of {model.response!r}"
        names = model.regression.parsed.predictors
        n = len(rows)
        width = max((values[name].shape[1] for name in names if name in values), default=1)
        columns = {}
        for name in names:
            own = values[name] if name in values else self.dataset.columns[name][rows][:, None]
            columns[name] = np.broadcast_to(own, (n, width)).ravel()
        matrix = model.design.matrix(columns, n * width, what, SyntheticDataError)
        return matrix.reshape(n, width, -1)

    def known(self, model: Model, records: IntArray, u: FloatArray) -> FloatArray:
        """Return the values that the intruder holds possible, ``(record, 1 or number of u)``.

        On the model's scale; within a radius each is as likely as another, where `u` are evenly
        spread from 0 to 1, ``(1, …)``.
        """
        name, regression = model.response, model.regression
        truth = self.synthesizer.columns[name][records].astype(np.float64)
        exact = regression.on_model_scale(truth)[:, None]
        own, variable = self.radius[name], self.synthesizer.schema.variables[name]
        if own.is_equality:
            return exact
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

    def log_density(
        self, model: Model, y: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> FloatArray:
        """Return the log density of values on the model's scale; −∞ where they cannot be."""
        family = model.regression.distribution
        with np.errstate(all="ignore"):
            found = family.log_density(y, eta, auxiliary)
        possible = family.supports(y, self.synthesizer.schema.variables[model.response])
        return np.where(possible, np.nan_to_num(found, nan=-np.inf), -np.inf)

    def _reach(self, model: Model) -> tuple[float, float]:
        """Return where a model's values lie, and as far again: beyond there is nothing to add."""
        columns = (self.synthesizer.columns[model.response], self.dataset.columns[model.response])
        y = model.regression.on_model_scale(np.concatenate(columns).astype(np.float64))
        low, high = float(y.min()), float(y.max())
        return 2.0 * low - high, 2.0 * high - low


@dataclass(frozen=True, repr=False)
class Places:
    """Where the own rows of some records are among all pairs of their kinds and patterns.

    Attributes
    ----------
    n_kinds, of_kind, patterns
        Of the pairs, kind by kind.
    own_kind, place
        The kind of each record among these, and the pair of its own row.
    even
        The probability of its own row where nothing but what is known tells rows apart.
    is_settled
        Whether that is all there is.
    """

    n_kinds: int
    of_kind: IntArray
    patterns: IntArray
    own_kind: IntArray
    place: IntArray
    even: FloatArray
    is_settled: BoolArray

    @classmethod
    def of(cls, search: RowSearch, kinds: IntArray, records: IntArray) -> Places:
        """Find them; kinds are adjacent.

        Parameters
        ----------
        search
            Which rows may be whose.
        kinds, records
            Of which kinds, and all their records.
        """
        of_kind, patterns = search.pairs(kinds)
        n_kinds, own_kind = len(kinds), search.kind_of[records] - kinds[0]
        size = np.bincount(of_kind, search.n_rows[patterns], n_kinds)
        n_patterns = np.bincount(of_kind, minlength=n_kinds)
        # The own pattern among a kind's; where known values are rough it may not be one of them.
        order = of_kind * (len(search.n_rows) + 1) + patterns
        wanted = own_kind * (len(search.n_rows) + 1) + search.pattern_of[records]
        place = np.minimum(np.searchsorted(order, wanted), max(len(order) - 1, 0))
        is_there = order[place] == wanted if len(order) else np.zeros(len(records), dtype=bool)
        even = np.where(is_there, 1.0 / np.maximum(size[own_kind], 1.0), 0.0)
        is_settled = (n_patterns[own_kind] < PAIR) | ~is_there
        return cls(n_kinds, of_kind, patterns, own_kind, place, even, is_settled)

    def sums(self, terms: FloatArray) -> FloatArray:
        """Return the sums of pairs' terms over each kind, ``(kind, …)``."""
        found = np.zeros((self.n_kinds, *terms.shape[1:]))
        there = np.bincount(self.of_kind, minlength=self.n_kinds) > 0
        starts = np.searchsorted(self.of_kind, np.arange(self.n_kinds))
        found[there] = np.add.reduceat(terms, starts[there], axis=0)
        return found

    def largest(self, logs: FloatArray) -> FloatArray:
        """Return the largest of pairs' logs in each kind; 0 where all are −∞."""
        found = np.full(self.n_kinds, -np.inf)
        np.maximum.at(found, self.of_kind, logs)
        return np.where(np.isfinite(found), found, 0.0)


@dataclass(frozen=True, repr=False)
class _Part:
    """Some kinds, held against the patterns of their cells at once."""

    search: RowSearch
    records: IntArray  # one of each kind
    places: Places

    @classmethod
    def of(cls, search: RowSearch, kinds: IntArray, records: IntArray) -> _Part:
        return cls(search, search.record_of[kinds], Places.of(search, kinds, records))

    def run(self, believed: Sequence[Believed]) -> OwnRows:
        """Return the probabilities of the own rows of the kinds' records."""
        at, n_rows = self.places, self.search.n_rows[self.places.patterns]
        n = len(at.own_kind)
        if at.is_settled.all() or not all(one.fits for one in believed):
            return at.even, np.zeros(n), np.ones(n, dtype=bool)
        log_share, moved = np.zeros(len(at.of_kind)), np.zeros((1, 1))
        reliable, is_effective = True, np.ones(n, dtype=bool)
        with np.errstate(all="ignore"):
            for one in believed:
                terms = self._terms(one.fits)
                total = terms.sum(axis=1)
                log_share += one.power * np.log(total)
                moved = moved + one.power * terms / total[:, None]
                whole = at.sums(terms * n_rows[:, None])
                ess = np.minimum(_effective(terms[at.place]), _effective(whole)[at.own_kind])
                is_effective &= ess >= LEAST_EFFECTIVE
                reliable &= one.is_reliable
            share = np.exp(log_share - at.largest(log_share)[at.of_kind])
            total = at.sums(share * n_rows)[at.own_kind]
            p = share[at.place] / total
            by_draw = share[:, None] * np.where(share[:, None] > 0, moved, 0.0)
            whole = at.sums(by_draw * n_rows[:, None])[at.own_kind]
            error = error_of_sum(
                (by_draw[at.place] - p[:, None] * whole) / total[:, None],
                max(_unit(one.fits) for one in believed),
            )
        good = reliable & is_effective & np.isfinite(p)
        return (
            np.where(at.is_settled, at.even, p),
            np.where(at.is_settled, 0.0, np.where(good, error, np.nan)),
            at.is_settled | good,
        )

    def _terms(self, fits: Sequence[Posterior]) -> FloatArray:
        """Return weight times density, ``(pair, draw)``, in units of each kind's largest."""
        search, of_kind, n_draws = self.search, self.places.of_kind, fits[0].n_draws
        log_terms = np.zeros((len(of_kind), n_draws))
        values: dict[str, Any] = {}
        rows = search.row_of[self.places.patterns]
        for model, fit in zip(search.models, fits, strict=True):
            name, family = model.response, model.regression.distribution
            matrix = search.design(model, values, rows)
            eta = (
                np.einsum("ic,hcp->ihp", matrix[:, 0], fit.coefficients)
                if matrix.shape[1] == 1
                else np.einsum("ihc,hcp->ihp", matrix, fit.coefficients)
            )
            given = np.broadcast_to(fit.auxiliary, (len(rows), *fit.auxiliary.shape))
            log_terms += fit.log_weights
            if name not in search.radius:  # not known: drawn
                ends = np.searchsorted(of_kind, np.arange(1, self.places.n_kinds))
                parts = zip(np.split(eta, ends), np.split(given, ends), strict=True)
                # From the same numbers for each kind, whatever is computed beside it.
                drawn = [
                    family.draw(*part, stream(0, "row posteriors", variable=name)) for part in parts
                ]
                values[name] = search.own_scale(model, np.concatenate(drawn).astype(np.float64))
                continue
            y = search.known(model, self.records, _evenly(name, n_draws))
            values[name] = search.own_scale(model, y)[of_kind]
            log_terms += search.log_density(model, y[of_kind], eta, given)
        largest = self.places.largest(log_terms.max(axis=1))
        return np.asarray(np.exp(log_terms - largest[of_kind][:, None]))


def _unit(fits: Sequence[Posterior]) -> int:
    """Return the number of adjacent draws that are taken together for an error."""
    chains = [fit for fit in fits if fit.chain is not None]
    return max([PAIR, *(Units.of_chains(fit.chain, fit.n_draws).size for fit in chains)])


def _evenly(name: str, n_draws: int) -> FloatArray:
    """Return evenly spread numbers from 0 to 1 by draw, in random order, the same in a pair."""
    n_units = -(-n_draws // PAIR)
    order = stream(0, "row posteriors", variable=name).permutation(n_units)
    return np.repeat((order + 0.5) / n_units, PAIR)[None, :n_draws]


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


def error_of_sum(moved: FloatArray, unit: int) -> FloatArray:
    """Return the standard error of a sum over draws, ``(record, draw)``, from units of them."""
    starts = np.arange(0, moved.shape[1], unit)
    by_unit = np.add.reduceat(moved, starts, axis=1)
    n = len(starts)
    return np.asarray(np.sqrt(n / max(n - 1, 1) * (by_unit**2).sum(axis=1)))


def _effective(terms: FloatArray) -> FloatArray:
    """Return the effective number of draws of sums."""
    return np.asarray(terms.sum(axis=1) ** 2 / (terms**2).sum(axis=1))
