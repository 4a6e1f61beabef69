"""Relations by which columns that are released as they are give a synthesized variable away.

A relation counts by the records that it gives away: the share whose value is guessed within the
tolerance, beyond what the best constant guess reaches, of what that leaves. Guesses are
cross-fitted, so that many columns and few records make no relation, and a few records that are out
of line hide none. Looked for are

- linear combinations of all numeric columns, and the same in logarithms (products, ratios, powers);
- the same with other synthesized variables among the terms, where the relation is all but exact: of
  ``Total = Income + Expenditure`` the total confines both, though it tells neither;
- bands: columns that cut the range of the variable into pieces;
- combinations of levels within which the variable is constant;
- a flexible regression on all columns together (`flexible_prediction`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import listed
from synrisk.data.schema import as_real_numbers

TOLERANCE = 0.1  # of the truth, for amounts
SDS_BETWEEN_TENTHS = 2.5631  # from the first to the last, of a normal distribution
# A guess that misses by more than a quarter of a standard deviation tells nobody from others, as
# near as it may be in per cent: nearly all logarithms of incomes are within 10 % of one number.
_OF_SPREAD = 0.25
# The share of records given away, beyond the best constant and beyond its own error, from which a
# variable is refused, and from which it is found. For normal values a half is a correlation of
# 0.95, a quarter one of 0.88; ordinary good predictors (a correlation of 0.8) give 0.14.
REFUSED, FOUND = 0.5, 0.25
# Of levels, which a good predictor gives for many people: of two that are equally common, right
# for 90 % and 82.5 %; a correlation of 0.8 gives 0.59.
REFUSED_LEVELS, FOUND_LEVELS = 0.8, 0.65
_ERRORS = 3.0  # standard errors that a share must be beyond its limit
_ERRORS_OF_MANY = 4.5  # the same where hundreds of combinations are tried
MOST_LEVELS = 20  # a variable with no more different whole numbers is guessed exactly
_LEAST_RECORDS = 20  # with fewer, nothing is known of a relation but that it is exact

_N_FITTED, _N_JUDGED = 300, 2000  # rows that a combination is fitted to, and judged by
_N_FOLDS = 5
_LEFT = 6  # records beyond the coefficients that a fit needs
_N_REWEIGHTED = 8
_FURTHEST = (
    1e12  # spreads from the median that a value of a term may be, so that sums of squares exist
)
_KNOWN = 0.5  # the share of a column that must be known, or have a logarithm, for it to be a term
_AS_GOOD = 0.02  # a share of records by which fewer columns may give less
_EXACT = 0.05  # of the spread: a relation with synthesized terms is no good prediction, but a rule
_HELD_BY = 0.8  # the share of records that such a rule holds for
_WITHOUT = 3.0  # times as far off are guesses without the released column
_MOST_GROUPED, _MOST_TRIPLES = 12, 8  # columns with levels of which pairs and triples are tried
_OUT_OF_BAND = 0.08  # the share of records that may be outside their band
_NEAR_EDGE = 3  # times the number of those: so near to its edge many are where groups overlap
_LOG_CHANCE = np.log(1e-7)  # of a band that is none
_NUMBER = r"([-+]?\d+(?:\.\d+)?)"  # in a text
_WIDE_GAP = 10.0  # times the distance of neighbours: groups that nature keeps apart, not a band


@dataclass(frozen=True)
class Relation:
    """How released columns give a synthesized variable away; without a value of the data.

    Attributes
    ----------
    variable
        The synthesized variable.
    columns
        The released columns that take part.
    partners
        Other synthesized variables that take part.
    words
        What the relation is: "a linear combination of".
    refused
        Whether it gives so many records away that the columns cannot be released.
    """

    variable: str
    columns: tuple[str, ...]
    partners: tuple[str, ...]
    words: str
    refused: bool

    def __str__(self) -> str:
        with_partners = f" with {quoted(self.partners)}" if self.partners else ""
        return f"{self.variable!r} is {self.words} {quoted(self.columns)}{with_partners}"


def quoted(names: Sequence[str]) -> str:
    """Return names of columns for a sentence."""
    return listed(map(repr, names))


@dataclass(frozen=True, repr=False)
class Hidden:
    """A synthesized variable, and when a guess gives it away.

    Attributes
    ----------
    values
        Numbers, or codes of levels.
    are_levels
        Whether only the value itself will do.
    within
        For each record, how far from the truth a guess may be.
    is_factor
        Whether its values have no order.
    """

    name: str
    values: FloatArray
    are_levels: bool
    within: FloatArray
    is_factor: bool

    @classmethod
    def of(cls, name: str, values: Any, *, is_factor: bool, tolerance: float = TOLERANCE) -> Hidden:
        """Return a variable with the distance at which a guess gives a value away."""
        numbers = np.asarray(values, dtype=np.float64)
        whole = is_factor or bool((numbers == np.rint(numbers)).all())
        are_levels = is_factor or (whole and len(np.unique(numbers)) <= MOST_LEVELS)
        if are_levels:
            return cls(name, numbers, True, np.full(len(numbers), 1e-6), is_factor)
        within = np.minimum(tolerance * np.abs(numbers), _OF_SPREAD * spread(numbers))
        return cls(name, numbers, False, within, is_factor)

    def rows(self, chosen: Any) -> Hidden:
        """Return some of the records."""
        return replace(self, values=self.values[chosen], within=self.within[chosen])

    def given(self, guesses: FloatArray) -> BoolArray:
        """Tell for which records a guess gives the value away; NaN gives none."""
        return np.asarray(np.abs(guesses - self.values) <= self.within)

    def share_beyond(self, given: BoolArray, errors: float = _ERRORS) -> float:
        """Return the share given away beyond the best constant, less so many standard errors."""
        share, constant = float(given.mean()), self._best_constant()
        share -= errors * float(np.sqrt(share * (1.0 - share) / len(given)))
        return (share - constant) / max(1.0 - constant, 1.0 / len(given))

    def _best_constant(self) -> float:
        """Return the largest share of records that one guess for all gives away."""
        ends = np.concatenate([self.values - self.within, self.values + self.within])
        opens = np.repeat([1, -1], len(self.values))
        order = np.lexsort((-opens, ends))
        return float(np.cumsum(opens[order]).max()) / len(self.values)

    @property
    def limits(self) -> tuple[float, float]:
        """The shares from which it is refused, and from which it is found."""
        return (REFUSED_LEVELS, FOUND_LEVELS) if self.are_levels else (REFUSED, FOUND)

    def may_be_found(self, given: BoolArray, part: float) -> bool:
        """Tell whether a share reaches a part of that from which it is found, but for chance."""
        return self.share_beyond(given, 0.0) >= part * self.limits[1]

    def judged(self, given: BoolArray, errors: float = _ERRORS) -> bool | None:
        """Return whether it is refused; None where not even found."""
        share, (refused, found) = self.share_beyond(given, errors), self.limits
        return None if share < found else share >= refused


def spread(values: FloatArray) -> float:
    """Return a standard deviation that a few far values do not make."""
    low, high = np.quantile(values, [0.1, 0.9])
    return float((high - low) / SDS_BETWEEN_TENTHS) or float(np.std(values))


@dataclass(frozen=True, repr=False)
class Beside:
    """The columns that are released as they are, as numbers and as codes of groups."""

    numbers: Mapping[str, FloatArray]
    groups: Mapping[str, IntArray]

    @classmethod
    def of(cls, columns: Mapping[str, pd.Series[Any]]) -> Beside:
        """Take columns apart; a column of few numbers is both."""
        numbers: dict[str, FloatArray] = {}
        groups: dict[str, IntArray] = {}
        for name, column in columns.items():
            values, n_text = as_real_numbers(column)
            if n_text:
                codes = pd.factorize(column.astype(str).where(column.notna()))[0]
                within = _numbers_within(column)
                if within is not None:
                    numbers[name] = within
            else:
                codes = pd.factorize(values)[0]
                if codes.max(initial=-1) > 0:
                    numbers[name] = np.where(np.isfinite(values), values, np.nan)
            n_different = int(codes.max(initial=-1)) + 1
            if 1 < n_different <= max(len(codes) // 2, 2):
                groups[name] = codes.astype(np.int64)
        return cls(numbers, groups)

    def rows(self, chosen: Any) -> Beside:
        """Return some of the records."""
        return Beside(
            {name: values[chosen] for name, values in self.numbers.items()},
            {name: codes[chosen] for name, codes in self.groups.items()},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(dict.fromkeys([*self.numbers, *self.groups]))


def _numbers_within(column: pd.Series[Any]) -> FloatArray | None:
    """Return the first number in each text, NaN where there is none; None where few have any."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    text = column.astype(str).where(column.notna())
    found = text.str.extract(_NUMBER, expand=False)
    numbers = pd.to_numeric(found, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    known = np.isfinite(numbers)
    enough = known.sum() >= _LEAST_RECORDS and len(np.unique(numbers[known])) > MOST_LEVELS
    return numbers if enough else None


def sampled(n: int, most: int) -> IntArray:
    """Return rows in a mixed order that is always the same, no more than `most`."""
    return np.random.default_rng(n).permutation(n)[:most]


def exact_relations(
    hidden: Sequence[Hidden], beside: Beside, used: Mapping[str, Sequence[str]]
) -> list[Relation]:
    """Return the relations that take milliseconds to find, the first of each variable.

    Parameters
    ----------
    hidden
        The synthesized variables.
    beside
        What is released as it is.
    used
        By variable, the columns that its own model predicts it by: of these a wide band is known to
        the model, and so to the risk.
    """
    found = []
    for variable in hidden:
        if len(variable.values) < _LEAST_RECORDS or not beside.names:
            continue
        partners = [one for one in hidden if one is not variable and not one.are_levels]
        looks: tuple[Callable[[], Relation | None], ...] = (
            lambda v=variable: _combination(v, beside),  # type: ignore[misc]
            lambda v=variable: _band(v, beside, used.get(v.name, ())),  # type: ignore[misc]
            lambda v=variable: _constant_in_groups(v, beside),  # type: ignore[misc]
            lambda v=variable, p=partners: _rule(v, beside, p),  # type: ignore[misc]
        )
        seen = [relation for look in looks if (relation := look()) is not None]
        found += [relation for relation in seen if relation.refused][:1] or seen[:1]
    return found


# Linear combinations, in numbers and in logarithms.

_FORMS = (
    (False, False, "given nearly by a sum or difference of multiples of"),
    (True, True, "given nearly by a product, ratio or power of"),
    (False, True, "given nearly by logarithms of"),
    (True, False, "given nearly by an exponential of"),
)


def _log(values: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(np.abs(values))
    return np.where(np.isfinite(logs), logs, np.nan)


def _filled(values: FloatArray) -> FloatArray:
    """Return a column whose gaps have its middle: what is not known of one hides no other."""
    gaps = ~np.isfinite(values)
    return np.where(gaps, np.median(values[~gaps]), values) if gaps.any() else values


def _combination(hidden: Hidden, beside: Beside) -> Relation | None:
    """Find a combination of released numbers that gives a variable away."""
    if not beside.numbers:
        return None
    rows = sampled(len(hidden.values), _N_FITTED + _N_JUDGED)
    variable, columns = hidden.rows(rows), beside.rows(rows).numbers
    best: tuple[float, str, tuple[str, ...]] | None = None
    for log_target, log_columns, words in _FORMS:
        if log_target and not (variable.values > 0).all():
            continue
        fit = _Combining(variable, columns, log_target, log_columns)
        share = fit.share(tuple(columns))
        if share >= variable.limits[1] and (best is None or share > best[0] + 0.05):
            best = share, words, fit.needed(share)
    if best is None:
        return None
    return Relation(hidden.name, best[2], (), best[1], best[0] >= variable.limits[0])


def combined_share(hidden: Hidden, columns: Mapping[str, FloatArray]) -> float:
    """Return the share of records that a combination of columns gives away, in its best form."""
    rows = sampled(len(hidden.values), _N_FITTED + _N_JUDGED)
    variable = hidden.rows(rows)
    chosen = {name: values[rows] for name, values in columns.items()}
    shares = [
        _Combining(variable, chosen, log_target, log_columns).share(tuple(chosen))
        for log_target, log_columns, _ in _FORMS
        if not log_target or (variable.values > 0).all()
    ]
    return max(shares)


@dataclass(frozen=True, repr=False)
class _Combining:
    """A linear combination of columns, cross-fitted."""

    hidden: Hidden
    columns: Mapping[str, FloatArray]
    log_target: bool
    log_columns: bool

    def share(self, names: tuple[str, ...]) -> float:
        return self.hidden.share_beyond(self.hidden.given(self.guesses(names)))

    def guesses(self, names: tuple[str, ...]) -> FloatArray:
        """Return a guess of each record by a fit to others; NaN where there is none."""
        given = [_log(self.columns[n]) if self.log_columns else self.columns[n] for n in names]
        filled = [_filled(values) for values in given if np.isfinite(values).mean() >= _KNOWN]
        if not filled:
            return np.full(len(self.hidden.values), np.nan)
        x = np.column_stack(filled)
        y = _log(self.hidden.values) if self.log_target else self.hidden.values
        fitted = np.full(len(y), np.nan)
        for train, test in _folds(np.arange(len(y))):
            fitted[test] = _predict(x[train], y[train], x[test])
        with np.errstate(over="ignore"):
            return np.exp(fitted) if self.log_target else fitted

    def needed(self, share: float) -> tuple[str, ...]:
        """Return columns that suffice, those first that are missed most."""
        names = tuple(self.columns)
        if len(names) == 1:
            return names
        without = {out: self.share(tuple(n for n in names if n != out)) for out in names}
        ranked = sorted(names, key=lambda name: without[name])
        for k in range(1, len(names)):
            chosen = tuple(name for name in names if name in ranked[:k])
            if self.share(chosen) >= share - _AS_GOOD:
                return chosen
        return names


def _folds(rows: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows to fit to and rows to judge by; of many, one pair."""
    if len(rows) >= 2 * _N_FITTED:
        yield rows[:_N_FITTED], rows[_N_FITTED:]
        yield rows[-_N_FITTED:], rows[:_N_FITTED]
        return
    for k in range(_N_FOLDS):
        test = rows[k::_N_FOLDS]
        yield np.setdiff1d(rows, test), test


@np.errstate(over="ignore", invalid="ignore")
def _predict(x: FloatArray, y: FloatArray, new: FloatArray) -> FloatArray:
    """Return what a fit by least absolute residuals predicts; it does not see a few altered rows.

    Where the records are too few for all columns, those that go with the response most.
    """
    if len(y) < _LEFT + 2:
        return np.full(len(new), np.nan)
    centre, scale = np.median(x, axis=0), np.array([spread(column) for column in x.T])
    varied = (scale > 0) & np.isfinite(scale)
    x, new = (
        np.clip((part[:, varied] - centre[varied]) / scale[varied], -_FURTHEST, _FURTHEST)
        for part in (x, new)
    )
    most = len(y) - _LEFT - 1
    if x.shape[1] > most:
        ranked = np.argsort(-np.abs((y - y.mean()) @ (x - x.mean(axis=0))))[:most]
        x, new = x[:, ranked], new[:, ranked]
    design = np.column_stack([np.ones(len(y)), x])
    least = max(1e-9 * spread(y), 1e-300)
    weights = np.ones(len(y))
    coefficients = np.zeros(design.shape[1])
    for _ in range(_N_REWEIGHTED):
        root = np.sqrt(weights)[:, None]
        coefficients = np.linalg.lstsq(design * root, y * root[:, 0], rcond=1e-10)[0]
        residuals = np.abs(y - design @ coefficients)
        middle = float(np.median(residuals))
        if middle <= least:
            break
        weights = middle / np.maximum(residuals, 0.1 * middle)
        if not np.isfinite(weights).all():  # a response that numbers can hardly hold
            return np.full(len(new), np.nan)
    return np.asarray(np.column_stack([np.ones(len(new)), new]) @ coefficients)


def _rule(hidden: Hidden, beside: Beside, partners: Sequence[Hidden]) -> Relation | None:
    """Find an all but exact relation of a released column with several synthesized variables."""
    if hidden.are_levels or not partners or not beside.numbers:
        return None
    rows = sampled(len(hidden.values), _N_FITTED + _N_JUDGED)
    variable = replace(hidden, within=np.full(len(hidden.values), np.nan)).rows(rows)
    released = beside.rows(rows).numbers
    others = {one.name: one.values[rows] for one in partners}
    for log_target, log_columns, words in _FORMS:
        if log_target and not (variable.values > 0).all():
            continue
        fit = _Combining(variable, {**others, **released}, log_target, log_columns)

        def off(names: tuple[str, ...], fit: _Combining = fit) -> float:
            """Return how far off most guesses are."""
            if not names:
                return np.inf
            apart = np.abs(fit.guesses(names) - variable.values)
            return float(np.quantile(np.nan_to_num(apart, nan=np.inf), _HELD_BY, method="higher"))

        names = (*others, *released)
        exact = _EXACT * spread(variable.values)
        if off(names) > exact or off(tuple(others)) < _WITHOUT * exact:
            continue
        for out in names:
            fewer = tuple(name for name in names if name != out)
            if off(fewer) <= exact:
                names = fewer
        own = tuple(name for name in names if name in released)
        return Relation(
            hidden.name, own, tuple(n for n in names if n in others), words, refused=True
        )
    return None


# Bands and groups.


def _band(hidden: Hidden, beside: Beside, used: Sequence[str]) -> Relation | None:
    """Find a column that cuts the range of a variable into pieces."""
    if hidden.are_levels:
        return None
    found = None
    order = np.argsort(hidden.values, kind="stable")
    for name, codes in beside.groups.items():
        if not _cuts(codes[order], hidden.values[order]):
            continue
        given = hidden.given(_middles(codes, hidden.values))
        refused = name not in used or bool(hidden.judged(given))
        relation = Relation(hidden.name, (name,), (), "cut into bands, or rounded, by", refused)
        if refused:
            return relation
        found = relation
    return found


def _middles(codes: IntArray, values: FloatArray) -> FloatArray:
    middles = pd.Series(values).groupby(codes).median()
    return np.asarray(middles.reindex(codes).to_numpy(), dtype=np.float64)


def _cuts(codes: IntArray, values: FloatArray) -> bool:
    """Tell whether groups of sorted values follow one another, by more than chance."""
    known = codes >= 0
    codes, values = codes[known], values[known]
    n = len(codes)
    if n < _LEAST_RECORDS:
        return False
    sizes = np.bincount(codes)
    present = np.flatnonzero(sizes)
    if len(present) < 2:
        return False
    # Groups in the order of their middles: a band's records then never fall.
    middles = np.array([np.median(np.flatnonzero(codes == group)) for group in present])
    rank = np.zeros(len(sizes), dtype=np.int64)
    rank[present[np.argsort(middles, kind="stable")]] = np.arange(len(present))
    placed = rank[codes]
    few = placed[:: max(n // _N_FITTED, 1)]
    n_off = len(few) - int(_longest_rise(few).sum())
    # That most stand in one large group says nothing.
    if n_off > min(2 * _OUT_OF_BAND * len(few), (len(few) - np.bincount(few).max()) / 2):
        return False
    inside = _longest_rise(placed)
    n_off = n - int(inside.sum())
    log_arrangements = gammaln(n + 1) - gammaln(sizes + 1).sum()
    log_ways = gammaln(len(present) + 1) + 2 * (
        gammaln(n + 1) - gammaln(n_off + 1) - gammaln(n - n_off + 1)
    ) + n_off * np.log(len(present))  # fmt: skip
    if n_off > _OUT_OF_BAND * n or log_ways - log_arrangements > _LOG_CHANCE:
        return False
    kept = placed[inside]
    return _are_adjacent(kept, values[inside]) and not _overlap(placed, inside)


def _longest_rise(placed: IntArray) -> BoolArray:
    """Return which elements make a longest subsequence that does not fall."""
    tops: list[int] = []
    ends: list[int] = []
    before = np.full(len(placed), -1)
    for k, value in enumerate(placed.tolist()):
        at = bisect_right(tops, value)
        if at == len(tops):
            tops.append(value)
            ends.append(k)
        else:
            tops[at], ends[at] = value, k
        before[k] = ends[at - 1] if at else -1
    inside = np.zeros(len(placed), dtype=bool)
    k = ends[-1]
    while k >= 0:
        inside[k] = True
        k = int(before[k])
    return inside


def _overlap(placed: IntArray, inside: BoolArray) -> bool:
    """Tell whether groups overlap where they meet, as natural ones do; errors are anywhere."""
    off = np.flatnonzero(~inside)
    if len(off) <= 0.01 * len(placed):
        return False
    at, groups = np.flatnonzero(inside), placed[inside]
    first = at[np.minimum(np.searchsorted(groups, placed[off], "left"), len(at) - 1)]
    last = at[np.maximum(np.searchsorted(groups, placed[off], "right") - 1, 0)]
    apart = np.maximum(np.maximum(first - off, off - last), 0)
    return bool((apart <= _NEAR_EDGE * len(off)).mean() > 0.6)


def _are_adjacent(placed: IntArray, values: FloatArray) -> bool:
    """Tell whether groups meet where they end, as bands do, and clusters that lie apart do not."""
    gaps, at = np.diff(values), np.flatnonzero(np.diff(placed))
    around = [np.r_[gaps[max(k - 5, 0) : k], gaps[k + 1 : k + 6]] for k in at]
    usual = np.array([near.mean() if len(near) else np.inf for near in around])
    return bool((gaps[at] > _WIDE_GAP * usual).mean() < 0.5)


def _constant_in_groups(hidden: Hidden, beside: Beside) -> Relation | None:
    """Find levels of some columns within which a variable is constant, or nearly so."""
    names = list(beside.groups)[:_MOST_GROUPED]
    rows = sampled(len(hidden.values), _N_FITTED + _N_JUDGED)
    variable, groups = hidden.rows(rows), beside.rows(rows).groups
    best: tuple[float, tuple[str, ...]] | None = None
    sizes = (1, 2, 3) if len(names) <= _MOST_TRIPLES else (1, 2)
    for size in sizes:
        for chosen in combinations(names, size):
            guesses = _of_another(groups, chosen, variable.values)
            among = np.flatnonzero(np.isfinite(guesses))
            if len(among) < max(len(guesses) / 2, _LEAST_RECORDS):
                continue
            given = variable.rows(among).given(guesses[among])
            share = variable.share_beyond(given, _ERRORS_OF_MANY)
            if share >= variable.limits[1] and (best is None or share > best[0] + 0.05):
                best = share, chosen
        if best is not None and best[0] >= variable.limits[0]:
            break
    if best is None:
        return None
    words = "constant, or nearly so, within the levels of"
    return Relation(hidden.name, best[1], (), words, best[0] >= variable.limits[0])


def _of_another(
    groups: Mapping[str, IntArray], chosen: Sequence[str], values: FloatArray
) -> FloatArray:
    """Return for each record the value of another of its group; NaN where there is none."""
    codes = np.zeros(len(values), dtype=np.int64)
    for name in chosen:
        codes = codes * (int(groups[name].max()) + 2) + groups[name] + 1
    order = np.argsort(codes, kind="stable")
    by_group = codes[order]
    first = np.flatnonzero(np.r_[True, by_group[1:] != by_group[:-1]])
    following = np.arange(1, len(order) + 1)
    following[np.r_[first[1:], len(order)] - 1] = first  # the last of a group takes its first
    guesses = np.empty(len(values))
    guesses[order] = values[order][following]
    guesses[order[following == np.arange(len(order))]] = np.nan
    return guesses
