"""Totals of a release that equal the confidential ones by more than chance.

Whoever knows everybody else subtracts them from a total that was calibrated, and has the last one.
A release that the models drew misses each total by about the root of the number of rows; that
it comes as near as it does has about the probability of that distance in these units. How many
have each level is a total too, and equal within several groups only by design.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy.special import chdtrc

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import Columns, Factor
from synrisk.risk.neighbours import NumericArray
from synrisk.risk.row_groups import Codes, kept_codes
from synrisk.risk.value_steps import common_step, is_rounded
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_DENSITY = 2.0 / math.sqrt(2.0 * math.pi)  # of a standard normal distance at 0, both sides
_LEAST, FEW_LEVELS = 5, 20  # rows of a group, and groups of a column
_ROUNDING = 1e-13  # relative, of a sum
_LEAST_P = 1e-300
_MODE = 1.2  # times a normal density is more than any number's probability, of few rows too


@dataclass(frozen=True)
class Spread:
    """What totals and standard deviations are made of: it adds up over parts of a table."""

    n: int
    total: float
    absolute: float
    mean: float
    sd: float

    @classmethod
    def of(cls, values: FloatArray) -> Spread:
        """Return that of some numbers."""
        if not len(values):
            return cls(0, 0.0, 0.0, 0.0, 0.0)
        return cls(
            len(values),
            float(values.sum()),
            float(np.abs(values).sum()),
            float(values.mean()),
            float(values.std()),
        )

    def __add__(self, other: Spread) -> Spread:
        """Return that of the numbers of both; squares are about the common mean."""
        if not (self.n and other.n):
            return self if self.n else other
        n, apart = self.n + other.n, other.mean - self.mean
        between = apart * apart * self.n * other.n / n
        squares = self.n * self.sd**2 + other.n * other.sd**2 + between
        return Spread(
            n,
            self.total + other.total,
            self.absolute + other.absolute,
            self.mean + apart * other.n / n,
            math.sqrt(squares / n),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Levels:
    """How many have each level, and what the model gives: it adds up over parts of a table.

    Attributes
    ----------
    counts
        By level.
    expected, products
        Of rows: sums of the probabilities of levels, and of their products two at a time.
    """

    n: int
    counts: IntArray
    expected: FloatArray
    products: FloatArray

    def __add__(self, other: Levels) -> Levels:
        """Return that of the rows of both."""
        return Levels(
            self.n + other.n,
            self.counts + other.counts,
            self.expected + other.expected,
            self.products + other.products,
        )


# What is added up, by what it is of: a number or a level, its scale, the column that groups it, and
# the code of the group.
_Key: TypeAlias = tuple[str, str, str, int]
_WHOLE = ""


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """What totals are made of, of records or of rows: of a table or a part of it."""

    spreads: dict[_Key, Spread]
    levels: dict[_Key, Levels]

    def __add__(self, other: Sums) -> Sums:
        """Return that of both parts."""
        return Sums(_added(self.spreads, other.spreads), _added(self.levels, other.levels))


_Part = TypeVar("_Part", Spread, Levels)


def _added(one: dict[_Key, _Part], other: dict[_Key, _Part]) -> dict[_Key, _Part]:
    return {
        key: one[key] + other[key] if key in one and key in other else (one.get(key) or other[key])
        for key in {**one, **other}
    }


def coincidence(synthesizer: Synthesizer, dataset: Released) -> tuple[str, float] | None:
    """Return the total that comes nearest to the confidential one, and the probability of that.

    It is multiplied by the number of totals that were looked at. None where there is none.
    """
    with np.errstate(all="ignore"):  # of numbers beyond squaring nothing is told
        codes = group_codes(synthesizer, dataset)
        levels = levels_of(
            synthesizer, lambda name: np.union1d(synthesizer.columns[name], dataset.columns[name])
        )
        own = sums_of_records(synthesizer, {k: of.records for k, of in codes.items()}, levels)
        rows = {name: of.rows for name, of in codes.items()}
        theirs = sums_of_rows(synthesizer, dataset, rows, levels)
        return nearest_total(synthesizer, dataset, own, theirs)


def nearest_total(
    synthesizer: Synthesizer, some: Released, own: Sums, theirs: Sums
) -> tuple[str, float] | None:
    """Return the same, given sums over all records and rows; `some` rows tell how values are."""
    with np.errstate(all="ignore"):
        found = [*_totals(synthesizer, some, own, theirs), *_counts(own, theirs)]
    if not found:
        return None
    name, p = min(found, key=lambda one: one[1])
    return name, min(p * len(found), 1.0)


def group_codes(synthesizer: Synthesizer, dataset: Released) -> dict[str, Codes]:
    """Return the columns that are kept, and have few levels."""
    codes = kept_codes(synthesizer, dataset)
    return {name: of for name, of in codes.items() if of.records.max(initial=0) < FEW_LEVELS}


def levels_of(
    synthesizer: Synthesizer, values: Callable[[str], NumericArray]
) -> dict[str, NumericArray]:
    """Return the levels that are counted, by variable; `values` are those of records and rows."""
    found: dict[str, NumericArray] = {}
    for model in synthesizer.models:
        name, family = model.response, model.regression.distribution
        if family.is_continuous:
            continue
        levels: NumericArray | None = family.all_values(synthesizer.schema.variables[name])
        if levels is None:
            levels = values(name)
        if len(levels) <= FEW_LEVELS:
            found[name] = levels
    return found


def sums_of_records(
    synthesizer: Synthesizer, groups: Mapping[str, IntArray], levels: Mapping[str, NumericArray]
) -> Sums:
    """Add up what totals of records are made of, of all and within groups."""
    columns = synthesizer.columns
    spreads = _spreads(synthesizer, columns, groups)
    counted = {}
    for name, of_levels in levels.items():
        own = columns[name][:, None] == of_levels
        none = np.zeros((len(of_levels), len(of_levels)))
        for key, rows in _parts(len(own), groups):
            counts = own[rows].sum(axis=0)
            counted[(name, _WHOLE, *key)] = Levels(len(rows), counts, np.zeros(len(counts)), none)
    return Sums(spreads, counted)


def sums_of_rows(
    synthesizer: Synthesizer,
    dataset: Released,
    groups: Mapping[str, IntArray],
    levels: Mapping[str, NumericArray],
) -> Sums:
    """Add up what totals of rows are made of, and what their models make of their levels."""
    columns = dataset.columns
    spreads = _spreads(synthesizer, columns, groups)
    counted = {}
    for model in synthesizer.models:
        name, of_levels = model.response, levels.get(model.response)
        if of_levels is None:
            continue
        p = _probabilities(synthesizer, model, dataset, of_levels)
        theirs = columns[name][:, None] == of_levels
        for key, rows in _parts(len(theirs), groups):
            own = p[rows]
            counted[(name, _WHOLE, *key)] = Levels(
                len(rows), theirs[rows].sum(axis=0), own.sum(axis=0), own.T @ own
            )
    return Sums(spreads, counted)


def _probabilities(
    synthesizer: Synthesizer, model: Model, dataset: Released, levels: NumericArray
) -> FloatArray:
    """Return the probability of each level for each row."""
    eta, auxiliary = model.mean_predictors(synthesizer.refits.design(model, dataset))
    given = np.broadcast_to(auxiliary, (len(eta), len(auxiliary)))
    family, on_scale = model.regression.distribution, model.regression.on_model_scale
    return np.column_stack(
        [np.exp(family.log_density(on_scale(np.full(len(eta), k)), eta, given)) for k in levels]
    )


def _spreads(
    synthesizer: Synthesizer, columns: Columns, groups: Mapping[str, IntArray]
) -> dict[_Key, Spread]:
    found = {}
    for regression in synthesizer.plan.regressions:
        name = regression.response
        if isinstance(synthesizer.schema.variables[name], Factor):
            continue
        values = columns[name].astype(np.float64)
        scales = {_WHOLE: values}
        if regression.transform.steps:
            scales["model"] = regression.on_model_scale(values)
        for scale, numbers in scales.items():
            for key, rows in _parts(len(numbers), groups):
                part = numbers if key == (_WHOLE, 0) else numbers[rows]
                found[(name, scale, *key)] = Spread.of(part)
    return found


def _parts(
    n_rows: int, groups: Mapping[str, IntArray]
) -> Iterator[tuple[tuple[str, int], IntArray]]:
    """Yield all rows, and those of each group of each column."""
    yield (_WHOLE, 0), np.arange(n_rows)
    for name, codes in groups.items():
        for code in range(int(codes.max(initial=-1)) + 1):
            yield (name, code), np.flatnonzero(codes == code)


def _by_group(own: Sums, theirs: Sums, of: _Key, part: str) -> dict[str, list[tuple[Any, Any]]]:
    """Return pairs of what records and rows have, by column that groups, of groups large enough."""
    name, scale = of[:2]
    one, other = getattr(own, part), getattr(theirs, part)
    found: dict[str, list[tuple[Any, Any]]] = {}
    for key, mine in one.items():
        if key[:2] == (name, scale) and key in other:
            pair = (mine, other[key])
            if key[2] == _WHOLE or min(pair[0].n, pair[1].n) >= _LEAST:
                found.setdefault(key[2], []).append(pair)
    return found


def _totals(
    synthesizer: Synthesizer, some: Released, own: Sums, theirs: Sums
) -> Iterator[tuple[str, float]]:
    for regression in synthesizer.plan.regressions:
        name = regression.response
        if isinstance(synthesizer.schema.variables[name], Factor):
            continue
        values = some.columns[name].astype(np.float64)
        step = common_step(values) if is_rounded(values) else 0.0
        widths = {_WHOLE: step}
        if regression.transform.steps:
            steps = step * float(np.median(np.exp(regression.transform.log_derivative(values))))
            widths["model"] = steps if step else 0.0
        for scale, width in widths.items():
            yield from _near_totals(name, own, theirs, (name, scale, _WHOLE, 0), width)


def _near_totals(
    name: str, own: Sums, theirs: Sums, key: _Key, width: float
) -> Iterator[tuple[str, float]]:
    if not (math.isfinite(own.spreads[key].total) and math.isfinite(theirs.spreads[key].total)):
        return
    by_group: dict[str, list[tuple[Spread, Spread]]] = _by_group(own, theirs, key, "spreads")
    ((mine, others),) = by_group.pop(_WHOLE)
    yield name, _nearness(mine, others, width)
    yield name, _nearness_of_squares(mine, others, width)
    for pairs in by_group.values():
        p_of = [_nearness(one, other, width) for one, other in pairs]
        yield from ((name, p) for p in p_of)
        if len(p_of) > 1:  # Fisher's: minus twice the sum of logs of as many uniform ones
            total = -2.0 * float(np.sum(np.log(np.maximum(p_of, _LEAST_P))))
            yield name, float(chdtrc(2.0 * len(p_of), total))


def _counts(own: Sums, theirs: Sums) -> Iterator[tuple[str, float]]:
    """Yield how probable it is that the numbers of rows with each level are the records'.

    Of all rows, and in as many groups of a kept column as they are: given their predictors the rows
    are independent, and the numbers normal with what variance the model gives.
    """
    for key in [key for key in theirs.levels if key[2] == _WHOLE]:
        by_group: dict[str, list[tuple[Levels, Levels]]] = _by_group(own, theirs, key, "levels")
        for pairs in by_group.values():
            log_p = [
                _log_probability_of_equal(other)
                for one, other in pairs
                if min(one.n, other.n) >= _LEAST and (one.counts == other.counts).all()
            ]
            if log_p:
                choices = math.comb(len(pairs), len(log_p))
                yield key[0], min(choices * math.exp(sum(log_p)), 1.0)


def _log_probability_of_equal(of: Levels) -> float:
    """Return the log of the largest probability that numbers of levels have, of such rows."""
    variances = np.linalg.eigvalsh(np.diag(of.expected) - of.products)
    return -float(np.log(np.maximum(2.0 * math.pi * variances / _MODE**2, 1.0)).sum()) / 2.0


def _nearness(own: Spread, theirs: Spread, step: float) -> float:
    """Return the probability that a total, or a mean, comes as near."""
    size = theirs.sd * math.sqrt(theirs.n)
    by_mean = theirs.total - own.mean * theirs.n
    away = min(abs(theirs.total - own.total), abs(by_mean))
    return _probability(away + step + _ROUNDING * theirs.absolute, size)


def _nearness_of_squares(own: Spread, theirs: Spread, step: float) -> float:
    """Return the probability that a standard deviation comes as near."""
    per_root = theirs.sd / math.sqrt(2.0 * theirs.n)
    away = abs(theirs.sd - own.sd) + step / theirs.n + _ROUNDING * theirs.sd
    return _probability(away, per_root)


def _probability(away: float, size: float) -> float:
    return min(_DENSITY * away / size, 1.0) if 0.0 < size < math.inf else 1.0
