"""Every value in a range: nodes that integrate a density over it, exact where the truth is near.

The range is parted at the truth and where its tolerance ends. Each part of a continuous variable's
has Gauss's nodes, those on either side of the truth Radau's, which hold the truth itself. Of whole
numbers there is one guess each, or one for a few neighbours where they are many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import roots_jacobi, roots_legendre

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import GuessError, counted
from synrisk.base.messages import place_of
from synrisk.data.schema import Numeric, Variable
from synrisk.risk.guesses.everybody import FEW_VALUES
from synrisk.risk.guesses.spaced import Within, check_number, is_real
from synrisk.risk.guesses.strategy import Grid, Guesses, Target

_PARTS = 4  # below the tolerance, within it below and above the truth, above it
_LEAST_NODES = 2 * _PARTS - 1  # the truth belongs to two parts
# Nodes for each width over which the density changes, and beside: of one variable, and of several.
_OF_ONE, _OF_SEVERAL = (5.0, 24), (0.9, 4)  # errors below 1e-8, and 1e-4
_COARSE = 0.7  # nodes for such a width, below which the sums are not to be trusted
# Nodes of a continuous variable, and guesses of whole numbers, by how many variables are guessed
# together: their products are the cells of a record. Where whole numbers are more, neighbours make
# a guess.
_MOST_NODES, _MOST_VALUES = {1: 400, 2: 120, 3: 30, 4: 16}, {1: 100, 2: 60, 3: 24, 4: 14}
_FEW = 10
_BLOCKS_A_ROOT = 4.0  # of counts, whose spread grows as their root: half a standard deviation each
_COARSE_BLOCKS = 4.0  # times as many would be wanted: two standard deviations each
# A continuous variable with so few values, each of several people, has no others: everybody else's
# records say so.
_NARROW = 1e-9  # of the range
_PEOPLE_A_VALUE, _NEARLY_ALL = 5, 0.9


@dataclass(frozen=True)
class Range(Guesses):
    """Every value in a range, the same range for all records.

    From the smallest to the largest confidential value and a part of that span beyond, on the
    model's scale (the logarithm where the model is of that); of counts from 0; of a factor every
    level; of a number that takes few values, each of several people, these. A declared range
    (``types={"Income": (0, 500_000)}``, or `within`) says nothing about anybody, and is better. The
    guesses integrate a density: `n` changes how exactly, not what.

    Parameters
    ----------
    n
        The number of guesses of a continuous variable; None takes as many as are needed, or the
        few values that it takes.
    margin
        The part of the span beyond the data on either side.
    within
        ``(low, high)`` in place of the data's.
    """

    n: int | None = None
    margin: float = 0.1
    within: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.n is not None:
            check_number("Range", self.n)
            if self.n < _LEAST_NODES:
                raise GuessError(f"Range: n must be at least {_LEAST_NODES}, or None.")
        if not is_real(self.margin) or self.margin < 0:
            raise GuessError("Range: margin must be a number from 0.")
        ends = Within.of(self.within)
        if self.within is not None and not math.isfinite(ends.high - ends.low):
            raise GuessError("Range: within takes two finite numbers.")

    def width(self, target: Target) -> int:
        """Return the number of guesses a record."""
        every = self.few_values(target)
        if every is not None:
            return len(every)
        if not target.is_whole:
            return self._n_nodes(target, *self._ends(target))
        first, last = self._whole_ends(target)
        return self._n_blocks(target, first, last)

    def grid(self, target: Target) -> Grid:
        """Lay out the guesses."""
        every = self.few_values(target)
        if every is not None:
            return _listed(
                every, target, self._notes(target) if target.family.is_continuous else ()
            )
        if not target.is_whole:
            return self._continuous(target)
        first, last = self._whole_ends(target)
        n_values, n_blocks = last - first + 1, self._n_blocks(target, first, last)
        step = target.family.grid_step
        if n_blocks >= n_values:
            return _listed(step * np.arange(first, last + 1.0), target, self._notes(target))
        grid = _blocks(first, last, n_blocks, target, self._notes(target))
        wanted = self._wanted_blocks(target, first, last)
        return replace(grid, is_coarse=_COARSE_BLOCKS * n_blocks < wanted)

    def _every(self, values: FloatArray, target: Target) -> Grid:
        if not target.family.is_continuous:
            return _listed(values, target)
        declared = self.declared(target.variable)
        if declared is not None:
            _refuse_outside(target, declared)
        return _listed(values, target, self._notes(target))

    def few_values(self, target: Target) -> FloatArray | None:
        """Return every value there is: all levels, or the few that a continuous variable takes."""
        if not target.family.is_continuous or self.n is not None:
            return target.family.all_values(target.variable)
        everybody = target.everybody
        if not everybody.has_few_values:
            return None
        values, n_people = everybody.observed, everybody.n_people
        few = 2 <= len(values) <= min(FEW_VALUES, everybody.n_records / _PEOPLE_A_VALUE)
        of_several = n_people[n_people > 1].sum() >= _NEARLY_ALL * everybody.n_records
        return values if few and of_several else None

    def is_free(self, target: Target) -> bool:
        """Tell whether the number of guesses may be smaller: nobody gave it, nor do levels."""
        return self.n is None and self.few_values(target) is None

    def declared(self, variable: Variable) -> tuple[float, float] | None:
        """Return the range that somebody declared, or None."""
        if self.within is not None:
            return self.within
        return variable.bounds if isinstance(variable, Numeric) else None

    def span(self, target: Target) -> tuple[float, float]:
        """Return the ends of a continuous variable's range, in its own units."""
        low, high = np.sort(target.regression.transform.inverse(np.array(self._ends(target))))
        return float(low), float(high)

    def _notes(self, target: Target) -> tuple[str, ...]:
        if target.family.is_continuous and self.few_values(target) is not None:
            note = (
                f"The guesses for {target.name} are the few values that it takes in the "
                "confidential data, though its model is of any number: everybody else's records "
                "show that there are no others. Range(n) considers every number."
            )
            return (note,)
        if self.declared(target.variable) is not None:
            return (f"The range of guesses for {target.name} is a declared one.",)
        note = (
            f"The range of guesses for {target.name} is read off the confidential data, so it "
            "depends on those with the smallest and the largest value; a declared one (types) "
            "would not."
        )
        return (note,)

    def _ends(self, target: Target) -> tuple[float, float]:
        """Return the ends of a continuous variable's range on the model's scale."""
        scale = target.regression.on_model_scale
        declared = self.declared(target.variable)
        if declared is not None:
            ends = scale(np.array(declared))
            if not np.isfinite(ends).all():
                raise GuessError(
                    f"The range of {target.name!r}: its model is of {target.regression.wants}, and "
                    "an end of the range has none. Declare one that ends inside.",
                    about=place_of("types", target.name),
                )
            _refuse_outside(target, declared)
            return float(ends.min()), float(ends.max())
        ends = scale(np.array([target.everybody.smallest, target.everybody.largest]))
        low, high = float(ends.min()), float(ends.max())
        beyond = self.margin * (high - low) or 1.0
        return _reached(target, low, low - beyond), _reached(target, high, high + beyond)

    def _n_nodes(self, target: Target, low: float, high: float) -> int:
        if self.n is not None:
            return self.n
        k = target.n_variables
        a_detail, beside = _OF_ONE if k == 1 else _OF_SEVERAL
        wanted = math.ceil(a_detail * (high - low) / target.detail) + _LEAST_NODES + beside
        return min(wanted, _MOST_NODES.get(k, _FEW) if target.room is None else target.room)

    def _continuous(self, target: Target) -> Grid:
        low, high = self._ends(target)
        n, scale = self._n_nodes(target, low, high), target.regression.on_model_scale
        inverse = target.regression.transform.inverse
        reach = target.reach
        n_exact = int((reach <= 0).sum())
        if n_exact:
            raise GuessError(
                f"The tolerance of {target.name!r} is 0 for {counted(n_exact, 'record')}: no "
                "continuous value is guessed exactly. Give a width in its units, "
                "Tolerance(width=…).",
                about=place_of("tolerance", target.name),
            )
        own_ends = np.sort(inverse(np.array([low, high])))
        near = [np.clip(target.truth + sign * reach, *own_ends) for sign in (-1.0, 1.0)]
        truth = np.clip(scale(target.truth), low, high)
        first, second = (scale(end) for end in near)
        below, above = np.minimum(first, second), np.maximum(first, second)
        edges = np.stack(
            [np.full(len(truth), low), np.clip(below, low, truth), truth,
             np.clip(above, truth, high), np.full(len(truth), high)], axis=1,
        )  # fmt: skip
        # A part as narrow as rounding has no nodes that differ.
        narrow = _NARROW * (high - low)
        for inner, outer in ((1, 0), (3, 4), (1, 2), (3, 2)):
            close = np.abs(edges[:, inner] - edges[:, outer]) <= narrow
            edges[:, inner] = np.where(close, edges[:, outer], edges[:, inner])
        places, weights, at = _nodes(edges, n)
        values = np.asarray(inverse(places))
        rows = np.arange(len(values))
        values[rows, at] = target.truth
        present = weights > 0
        values = np.where(present, values, target.truth[:, None])
        log_widths = np.log(np.where(present, weights, 1.0))
        return Grid(
            np.ascontiguousarray(values), at, present, notes=self._notes(target),
            tolerance=reach, log_widths=log_widths,
            is_coarse=n - _LEAST_NODES < _COARSE * (high - low) / target.detail,
        )  # fmt: skip

    def _whole_ends(self, target: Target) -> tuple[int, int]:
        """Return the first and the last whole number of steps."""
        step, least = target.family.grid_step, target.family.least
        declared = self.declared(target.variable)
        if declared is not None:
            _refuse_outside(target, declared)
            low, high = declared
        else:
            low, high = target.everybody.smallest, target.everybody.largest
            beyond = max(self.margin * (high - low), step)
            low, high = (low - beyond if not math.isfinite(least) else least), high + beyond
        low = max(low, least)
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return first, max(last, first + 1)

    def _n_blocks(self, target: Target, first: int, last: int) -> int:
        n_values, most = last - first + 1, _MOST_VALUES.get(target.n_variables, _FEW)
        if n_values <= (most if target.room is None else target.room):
            return n_values
        if target.room is not None:
            most = target.room - _PARTS - 1
        wanted = self._wanted_blocks(target, first, last) if self.n is None else float(self.n)
        if target.n_variables > 1:
            wanted = min(wanted, float(most))
        return min(n_values, math.ceil(max(wanted, float(most))) + _PARTS + 1)

    def _wanted_blocks(self, target: Target, first: int, last: int) -> float:
        """Return how many guesses would tell a density of whole numbers."""
        if math.isfinite(target.family.least):
            scale, _ = _spacing(target)
            ends = scale(np.array([max(first, 0.0), last]))
            return _BLOCKS_A_ROOT * float(ends[1] - ends[0])
        return _BLOCKS_A_ROOT * (last - first) * target.family.grid_step / target.detail


def _spacing(target: Target) -> tuple[Callable[..., FloatArray], Callable[..., FloatArray]]:
    """Return the scale on which whole numbers from 0 spread evenly, and back."""
    return (np.log1p, np.expm1) if target.family.spacing == "log" else (np.sqrt, np.square)


def _refuse_outside(target: Target, ends: tuple[float, float]) -> None:
    n_outside = target.everybody.n_outside(*ends)
    if n_outside:
        raise GuessError(
            f"The range of {target.name!r}: "
            f"{counted(n_outside, 'record has its', 'records have their')} confidential value "
            "outside it. Widen the range.",
            about=place_of("types", target.name),
        )


def _reached(target: Target, inside: float, end: float) -> float:
    """Return `end` on the model's scale, or how far towards it the variable's values go.

    A root has no negative values, the logarithm's inverse may overflow, and a family may have
    positive values alone.
    """
    scale, inverse = target.regression.on_model_scale, target.regression.transform.inverse
    tried = inside + (end - inside) * np.linspace(0.0, 1.0, 1025)
    with np.errstate(all="ignore"):
        values = np.asarray(inverse(tried))
        there = np.isclose(scale(values), tried, rtol=1e-9, atol=1e-9)
        there &= target.family.supports(values, target.variable)
    n_there = len(tried) if there.all() else int(np.argmin(there))
    return float(tried[max(n_there - 1, 0)])


def _listed(values: FloatArray, target: Target, notes: tuple[str, ...] = ()) -> Grid:
    """Return a grid of the same values for all records."""
    step = 0.0 if target.family.is_continuous else target.family.grid_step
    truth = np.searchsorted(values, target.truth - 0.5 * step)
    table = np.repeat(values[None], len(target.truth), axis=0)
    table[np.arange(len(table)), truth] = target.truth
    return Grid(
        table, truth.astype(np.int64), np.ones(table.shape, dtype=bool),
        notes=notes, tolerance=target.reach,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _rule(k: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the nodes and weights of `k` nodes on [0, 1]: Gauss's, and Radau's that end at 1."""
    x, w = roots_legendre(k)
    radau, radau_weights = np.ones(k), np.full(k, 1.0 / k**2)
    if k > 1:
        y, v = roots_jacobi(k - 1, 1.0, 0.0)
        radau[:-1], radau_weights[:-1] = 0.5 * (1.0 + y), 0.5 * v / (1.0 - y)
    return 0.5 * (1.0 + x), 0.5 * w, radau, radau_weights


def _rules(sizes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of rules, by kind and number of nodes: a row each, padded.

    The kinds are Gauss's, Radau's that ends at the truth, and the one that begins there. Its node
    at the truth stands in the part below, so the last one begins with the next.
    """
    longest = int(sizes.max())
    nodes, weights = np.zeros((2, 3, len(sizes), longest))
    for row, k in enumerate(map(int, sizes)):
        gauss, gauss_weights, radau, radau_weights = _rule(k)
        nodes[0, row, :k], weights[0, row, :k] = gauss, gauss_weights
        nodes[1, row, :k], weights[1, row, :k] = radau, radau_weights
        nodes[2, row, : k - 1] = 1.0 - radau[-2::-1]
        weights[2, row, : k - 1] = radau_weights[-2::-1]
    return nodes.reshape(-1, longest), weights.reshape(-1, longest)


def _nodes(edges: FloatArray, n: int) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return `n` nodes a record, their weights, and which one is the truth, the third edge.

    Nodes go to the four parts by their widths, two at least to each; a part without a width has
    nodes of weight 0.
    """
    widths = np.diff(edges, axis=1)
    share = np.cumsum(widths, axis=1) / (edges[:, -1:] - edges[:, :1])
    upto = np.rint((n - _LEAST_NODES) * share).astype(np.int64)
    counts = 2 + np.diff(upto, axis=1, prepend=0)  # of each part, the truth counted twice
    before = np.cumsum(counts, axis=1) - [0, 0, 1, 1]  # slots up to the end of each part
    truth = before[:, 1] - 1
    start = np.concatenate([np.zeros((len(edges), 1), dtype=np.int64), before[:, :3]], axis=1)
    sizes, size = np.unique(counts, return_inverse=True)
    nodes_by_rule, weights_by_rule = _rules(sizes)
    rule = np.array([0, 1, 2, 0]) * len(sizes) + size.reshape(counts.shape)  # (record, part)
    slot = np.arange(n)
    part = (slot >= before[:, :3, None]).sum(axis=1)  # (record, slot)
    part += len(widths[0]) * np.arange(len(edges))[:, None]  # place in arrays by record and part
    place = (rule * nodes_by_rule.shape[1] - start).take(part) + slot  # of the node in its rule
    left, width = edges[:, :-1].ravel().take(part), widths.take(part)
    nodes, weights = left + width * nodes_by_rule.take(place), width * weights_by_rule.take(place)
    rows = np.arange(len(edges))
    weights[rows, truth] += widths[:, 2] / counts[:, 2].astype(np.float64) ** 2
    nodes[rows, truth] = edges[:, 2]
    return nodes, weights, truth


def _blocks(first: int, last: int, n: int, target: Target, notes: tuple[str, ...]) -> Grid:
    """Return guesses that stand for a few neighbouring whole numbers each, the truth for itself."""
    step, least = target.family.grid_step, target.family.least
    truth = np.rint(target.truth / step)
    reach = np.floor(target.reach / step * (1.0 + 1e-12))
    ends = np.stack(
        [np.full(len(truth), float(first)), np.maximum(truth - reach, first), truth, truth + 1.0,
         np.minimum(truth + reach, last) + 1.0, np.full(len(truth), last + 1.0)], axis=1,
    )  # fmt: skip
    scale, back = _spacing(target)
    on_scale = scale(np.maximum(ends, 0.0)) if math.isfinite(least) else ends
    widths = np.diff(on_scale, axis=1)
    share = np.cumsum(widths, axis=1) / (on_scale[:, -1:] - on_scale[:, :1])
    upto = np.rint((n - _PARTS - 1) * share).astype(np.int64)
    counts = 1 + np.diff(upto, axis=1, prepend=0)
    before = np.cumsum(counts, axis=1)
    slot = np.arange(n)
    part = (slot >= before[:, :4, None]).sum(axis=1)
    rows = np.arange(len(truth))[:, None]
    position = slot - (before - counts)[rows, part]
    k = counts[rows, part]

    def edge(number: IntArray) -> FloatArray:
        at = on_scale[rows, part] + widths[rows, part] * (number / k)
        at = back(at) if math.isfinite(least) else at
        return np.asarray(np.clip(np.rint(at), ends[rows, part], ends[rows, part + 1]))

    start, stop = edge(position), edge(position + 1)
    size = stop - start
    present: BoolArray = size > 0
    values = np.where(present, np.floor(0.5 * (start + stop - 1.0)), truth[:, None])
    at = (present & (values == truth[:, None])).argmax(axis=1)
    values = target.family.on_grid(step * values)
    values[np.arange(len(values)), at] = target.truth
    log_widths = np.log(np.where(present, size, 1.0))
    return Grid(
        values, at.astype(np.int64), present, notes=notes, tolerance=target.reach,
        log_widths=log_widths,
    )  # fmt: skip
