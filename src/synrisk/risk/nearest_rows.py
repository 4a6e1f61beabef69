"""How near the rows of a release come to confidential records, whatever made the release.

Around a record, rows of a density that changes little lie like uniform points: of the K nearest,
the first is within the share t of the volume that the next one bounds with the probability
1 − (1 − t)^K. That needs no model, and no density of the records. A copy is far nearer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.seeds import stream
from synrisk.data.schema import Columns, Factor, common_codes
from synrisk.models.plan import Regression
from synrisk.risk.row_groups import Codes, kept_codes
from synrisk.risk.value_steps import is_heaped, spread_out
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_N_AROUND = 5  # rows, of which the first is compared with the volume that the next one bounds
_LEAST_IN_CELL = 20  # records on average, for cells to be worth while
_MOST_MOVED = 1000  # records that are moved: everybody was, if anybody
_APART = 1e6  # between cells, in units of the spread of all points
_LEAST_VARIANCE = 1e-12  # of a direction, relative to the largest


class Nearness(NamedTuple):
    """Of each record: the probability of a row as near, the row, and the record's position."""

    p: FloatArray
    row: IntArray
    position: IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Space:
    """The synthesized numbers as points, in which rows near a record lie about evenly.

    Attributes
    ----------
    regressions
        Of the numbers; these are taken as the models take them, and drawn together at both ends.
    cells
        The columns within whose values rows are compared, synthesized levels and what is released
        as it is; none for all together.
    middle, spread
        asinh((number − middle)/spread) is a coordinate.
    records
        The columns of the confidential data.
    positions
        Of the records, each point once, those first that are farthest from others.
    """

    regressions: tuple[Regression, ...]
    cells: tuple[str, ...]
    middle: FloatArray
    spread: FloatArray
    records: Columns
    positions: IntArray

    @classmethod
    def of(cls, synthesizer: Synthesizer, *, in_cells: bool = False) -> Space | None:
        """Return the space; None where no column is a number, or no cell holds enough."""
        variables, columns = synthesizer.schema.variables, synthesizer.columns
        regressions = tuple(
            regression
            for regression in synthesizer.plan.regressions
            if not isinstance(variables[regression.response], Factor)
            and np.ptp(columns[regression.response]) > 0
        )
        cells = _cells_of(synthesizer) if in_cells else {}
        if not regressions or in_cells != bool(cells):
            return None
        values = [columns[one.response].astype(np.float64) for one in regressions]
        codes = [codes.astype(np.float64) for codes in cells.values()]
        _, first = np.unique(np.column_stack([*values, *codes]), axis=0, return_index=True)
        start = np.zeros(len(regressions))
        space = cls(regressions, tuple(cells), start, start + 1.0, columns, first)
        plain = space._numbers(np.column_stack(values))
        space = replace(space, middle=np.median(plain, axis=0), spread=_spread(plain))
        return space._farthest_first()

    def _farthest_first(self) -> Space:
        """Return the space with its records in the order of their distance from others."""
        values = [self.records[one.response][self.positions] for one in self.regressions]
        points = self._bent(np.column_stack(values).astype(np.float64))
        points = points @ _rounding(points)
        k = min(4, len(points))  # the first is the record itself
        away = np.asarray(cKDTree(points).query(points, k=[k])[0])[:, 0]
        return replace(self, positions=self.positions[np.argsort(-away, kind="stable")])

    def nearness(self, synthesizer: Synthesizer, dataset: Released, number: int) -> list[Nearness]:
        """Return how near each record's nearest row is; nothing where rows are too few."""
        own, rows, at = self._values(dataset, number)
        codes = _codes(synthesizer, dataset)
        cells = [codes[name] for name in self.cells if name in codes]
        if len(cells) < min(len(self.cells), 1):
            return []
        places = _apart(cells, self.positions, at) if cells else None
        return self._nearest(own, rows, places, self.positions, at)

    def moved(self, _: Synthesizer, dataset: Released, number: int) -> list[Nearness]:
        """Return the same once records have been given the rows' mean and width, column by column.

        A release that shifts and stretches everybody is at everybody's place after that.
        """
        own, rows, at = self._values(dataset, number)
        if not len(rows):
            return []
        (centre, width), (other, wide) = _trimmed(own), _trimmed(rows)
        with np.errstate(all="ignore"):
            stretch = wide / width
        stretch = np.where(np.isfinite(stretch), stretch, 1.0)
        chosen = np.arange(0, len(own), max(len(own) // _MOST_MOVED, 1))
        there = other + (own[chosen] - centre) * stretch
        return self._nearest(there, rows, None, self.positions[chosen], at)

    def _values(self, dataset: Released, number: int) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return the records' and the rows' values, what was rounded in the release spread out.

        Rows that were brought to a common value are left out: others tell which are here.
        """
        return dataset.memory.recall(
            "numbers beside records",
            lambda: self._make_values(dataset, number),
            (number, self.cells),
        )

    def _make_values(
        self, dataset: Released, number: int
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        own, rows, heaped = [], [], np.zeros(int(dataset.kept.sum()), dtype=bool)
        for name in (one.response for one in self.regressions):
            theirs = dataset.columns[name].astype(np.float64)
            rng = stream(0, "ties", dataset=number, variable=name)
            records = self.records[name][self.positions].astype(np.float64)
            pair = spread_out(records, theirs, rng)
            own.append(pair[0])
            rows.append(pair[1])
            heaped |= is_heaped(theirs)
        at = np.flatnonzero(~heaped)
        return np.column_stack(own), np.column_stack(rows)[at], at

    def _numbers(self, values: FloatArray) -> FloatArray:
        """Return values as the models take them; what they cannot take, as the least they can."""
        columns = []
        for regression, column in zip(self.regressions, values.T, strict=True):
            with np.errstate(all="ignore"):
                numbers = regression.on_model_scale(column)
            known = np.isfinite(numbers)
            columns.append(np.where(known, numbers, numbers[known].min(initial=0.0)))
        return np.column_stack(columns)

    def _bent(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.arcsinh((self._numbers(values) - self.middle) / self.spread))

    def _nearest(
        self,
        own: FloatArray,
        rows: FloatArray,
        places: tuple[FloatArray, FloatArray] | None,
        positions: IntArray,
        at: IntArray,
    ) -> list[Nearness]:
        if len(rows) < 2:
            return []
        points, others = self._bent(own), self._bent(rows)
        rounding = _rounding(others if len(rows) > 10 * others.shape[1] else points)
        points, others = points @ rounding, others @ rounding
        if places is not None:
            points, others = (
                np.column_stack(pair) for pair in zip((points, others), places, strict=True)
            )
        k = min(_N_AROUND + 1, len(rows))
        tree = cKDTree(others, compact_nodes=False, balanced_tree=False)
        found = tree.query(points, k=k)
        distance, row = np.asarray(found[0]), at[np.asarray(found[1])]
        n_within = (distance < 0.5 * _APART).sum(axis=1)  # of the record's cell
        last = distance[np.arange(len(own)), np.maximum(n_within - 1, 0)]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(last > 0, distance[:, 0] / last, 1.0) ** rounding.shape[1]
            p = -np.expm1((n_within - 1) * np.log1p(-np.minimum(share, 1.0)))
        p = np.where(n_within < 2, 1.0, p)
        return [Nearness(p, row[:, 0], positions)]


def _rounding(points: FloatArray) -> FloatArray:
    """Return the map after which points are uncorrelated with variance one."""
    size, directions = np.linalg.eigh(np.atleast_2d(np.cov(points, rowvar=False)))
    if not size[-1] > 0.0:
        return np.eye(points.shape[1])
    kept = size > _LEAST_VARIANCE * size[-1]
    return np.asarray(directions[:, kept] / np.sqrt(size[kept]))


def _trimmed(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation of the middle four fifths, by column."""
    cut = len(values) // 10
    middle = np.sort(values, axis=0)[cut : len(values) - cut]
    return middle.mean(axis=0), middle.std(axis=0)


def _spread(values: FloatArray) -> FloatArray:
    """Return the middle half's width in normal standard deviations; where it has none, the sd."""
    low, high = np.quantile(values, [0.25, 0.75], axis=0)
    with np.errstate(over="ignore"):
        sd = values.std(axis=0)
    spread = np.where(high > low, (high - low) / 1.349, sd)
    return np.where(np.isfinite(spread) & (spread > 0), spread, 1.0)


def _codes(synthesizer: Synthesizer, dataset: Released) -> dict[str, Codes]:
    """Return the columns by which cells may be made, of records and rows."""
    variables, plan = synthesizer.schema.variables, synthesizer.plan
    levels = {
        name: Codes(synthesizer.columns[name], dataset.columns[name])
        for name in plan.synthesized
        if isinstance(variables[name], Factor)
    }
    return {**levels, **kept_codes(synthesizer, dataset)}


def _cells_of(synthesizer: Synthesizer) -> dict[str, IntArray]:
    """Return the columns by which cells are made, those with few values first, as codes."""
    variables, data = synthesizer.schema.variables, synthesizer.data
    codes = {
        name: common_codes(data[name], data[name])[0]
        for name in (*synthesizer.plan.synthesized, *synthesizer.released_as_is)
        if name not in synthesizer.plan.synthesized or isinstance(variables[name], Factor)
    }
    n_values = {name: int(of.max(initial=-1)) + 1 for name, of in codes.items()}
    chosen: dict[str, IntArray] = {}
    n_cells = 1
    for name in sorted(codes, key=lambda one: n_values[one]):
        n_cells *= n_values[name]
        if n_values[name] > 1 and n_cells * _LEAST_IN_CELL <= synthesizer.n_records:
            chosen[name] = codes[name]
    return chosen


def _apart(
    cells: Sequence[Codes], positions: IntArray, at: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return a coordinate that parts the cells."""
    both = np.column_stack(
        [np.concatenate([of.records[positions], of.rows[at]]).astype(np.int64) for of in cells]
    )
    _, codes = np.unique(both, axis=0, return_inverse=True)
    place = _APART * codes.ravel().astype(np.float64)
    return place[: len(positions)], place[len(positions) :]
