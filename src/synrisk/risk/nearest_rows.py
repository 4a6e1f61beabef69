"""How near the rows of a release come to confidential records, whatever made the release.

Around a record, rows of a density that changes little lie like uniform points: of the K nearest,
the first is within the share t of the volume that the next one bounds with the probability
1 − (1 − t)^K. That needs no model, and no density of the records. A copy is far nearer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.seeds import stream
from synrisk.data.schema import Columns, Factor, common_codes
from synrisk.models.plan import Regression
from synrisk.risk.neighbours import Nearness, common_cells, middle_spread, neighbours, whitening
from synrisk.risk.row_groups import Codes, kept_codes
from synrisk.risk.value_steps import is_heaped, spread_out
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_LEAST_IN_CELL = 20  # records on average, for cells to be worth while
_MOST_MOVED = 1000  # records that are moved: everybody was, if anybody


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
    between
        Where records and rows are those of a slab alone: its number, and from which value to which
        it goes.
    """

    regressions: tuple[Regression, ...]
    cells: tuple[str, ...]
    middle: FloatArray
    spread: FloatArray
    records: Columns
    positions: IntArray
    between: tuple[str, float, float] | None = None

    @classmethod
    def of(
        cls,
        synthesizer: Synthesizer,
        *,
        in_cells: bool = False,
        cells: Sequence[str] | None = None,
    ) -> Space | None:
        """Return the space; None where no column is a number, or no cell holds enough.

        `cells` are the columns that make cells, where these are known.
        """
        variables, columns = synthesizer.schema.variables, synthesizer.columns
        regressions = tuple(
            regression
            for regression in synthesizer.plan.regressions
            if not isinstance(variables[regression.response], Factor)
            and np.ptp(columns[regression.response]) > 0
        )
        if in_cells and cells is None:
            cells = cell_columns(synthesizer)
        if not regressions or in_cells != bool(cells):
            return None
        cells = cells or ()
        values = [columns[one.response].astype(np.float64) for one in regressions]
        codes = [
            common_codes(synthesizer.data[name], synthesizer.data[name])[0].astype(np.float64)
            for name in cells
        ]
        _, first = np.unique(np.column_stack([*values, *codes]), axis=0, return_index=True)
        start = np.zeros(len(regressions))
        space = cls(regressions, tuple(cells), start, start + 1.0, columns, first)
        plain = space._numbers(np.column_stack(values))
        space = replace(space, middle=np.median(plain, axis=0), spread=middle_spread(plain))
        return space._farthest_first()

    def _farthest_first(self) -> Space:
        """Return the space with its records in the order of their distance from others."""
        values = [self.records[one.response][self.positions] for one in self.regressions]
        points = self._bent(np.column_stack(values).astype(np.float64))
        points = points @ whitening(points)
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
        places = _cells(cells, self.positions, at) if cells else None
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
        cells: tuple[IntArray, IntArray] | None,
        positions: IntArray,
        at: IntArray,
    ) -> list[Nearness]:
        if len(rows) < 2:
            return []
        points, others = self._bent(own), self._bent(rows)
        white = whitening(others if len(rows) > 10 * others.shape[1] else points)
        near = neighbours(points @ white, others @ white, cells)
        p = near.probability(white.shape[1], self._faces(points, others))
        return [Nearness(p, at[near.row[:, 0]], positions)]

    def _faces(self, points: FloatArray, others: FloatArray) -> FloatArray | None:
        """Return how far points are from both ends of the slab, where that is measured.

        Once points have variance one, two planes of a coordinate are as far from each other as in
        its own standard deviations.
        """
        if self.between is None:
            return None
        name, *ends = self.between
        axes = [k for k, one in enumerate(self.regressions) if one.response == name]
        if not axes:
            return None
        whole = np.zeros((len(ends), len(self.regressions)))
        whole[:, axes[0]] = ends
        at = self._bent(whole)[:, axes[0]]
        spread_of = others if len(others) > 10 * others.shape[1] else points
        sd = float(spread_of[:, axes[0]].std(ddof=1))
        away = np.abs(points[:, axes[0], None] - at) / (sd if sd > 0.0 else 1.0)
        return np.where(np.isfinite(ends), away, np.inf)  # the outermost slabs go on for ever

    def moved_over(
        self, own: Places, rows: Places, parts: Iterable[tuple[int, Columns]], some: Columns
    ) -> list[Nearness]:
        """Return what `moved` does where rows are read in parts.

        Parameters
        ----------
        own, rows
            Mean and standard deviation of the middle four fifths of all records, and of all rows.
        parts
            The rows, each part with the number of its first row.
        some
            Rows by which the others' scatter is known.
        """
        chosen = np.sort(self.positions)
        chosen = chosen[:: max(len(chosen) // _MOST_MOVED, 1)]
        values = self._columns_of(self.records)[chosen]
        with np.errstate(all="ignore"):
            stretch = rows.width / own.width
        there = rows.middle + (values - own.middle) * np.where(np.isfinite(stretch), stretch, 1.0)
        white = whitening(self._bent(self._columns_of(some)))
        points, near = self._bent(there) @ white, None
        for first, columns in parts:
            others = self._bent(self._spread_columns(columns, first)) @ white
            found = neighbours(points, others)
            found = found._replace(row=found.row + first)
            near = found if near is None else near.and_of(found)
        if near is None or near.distance.shape[1] < 2:
            return []
        return [Nearness(near.probability(white.shape[1]), near.row[:, 0], chosen)]

    def _columns_of(self, columns: Columns) -> FloatArray:
        return np.column_stack(
            [columns[one.response].astype(np.float64) for one in self.regressions]
        )

    def _spread_columns(self, columns: Columns, first: int) -> FloatArray:
        """Return rows' values, what was rounded spread out."""
        found = []
        for name in (one.response for one in self.regressions):
            values = columns[name].astype(np.float64)
            rng = stream(0, "ties", variable=name, chunk=first)
            found.append(spread_out(values[:0], values, rng)[1])
        return np.column_stack(found)


class Places(NamedTuple):
    """Where the values of columns lie, and how far apart."""

    middle: FloatArray
    width: FloatArray


def _trimmed(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation of the middle four fifths, by column."""
    cut = len(values) // 10
    middle = np.sort(values, axis=0)[cut : len(values) - cut]
    return middle.mean(axis=0), middle.std(axis=0)


def _codes(synthesizer: Synthesizer, dataset: Released) -> dict[str, Codes]:
    """Return the columns by which cells may be made, of records and rows."""
    variables, plan = synthesizer.schema.variables, synthesizer.plan
    levels = {
        name: Codes(synthesizer.columns[name], dataset.columns[name])
        for name in plan.synthesized
        if isinstance(variables[name], Factor)
    }
    return {**levels, **kept_codes(synthesizer, dataset)}


def cell_columns(synthesizer: Synthesizer, n_records: int | None = None) -> tuple[str, ...]:
    """Return the columns by which cells are made, those with few values first.

    `n_records` is how many there are, where the synthesizer has some of them.
    """
    variables, data = synthesizer.schema.variables, synthesizer.data
    n_values = {
        name: int(common_codes(data[name], data[name])[0].max(initial=-1)) + 1
        for name in (*synthesizer.plan.synthesized, *synthesizer.released_as_is)
        if name not in synthesizer.plan.synthesized or isinstance(variables[name], Factor)
    }
    chosen = []
    n_cells = 1
    for name in sorted(n_values, key=lambda one: n_values[one]):
        n_cells *= n_values[name]
        if n_values[name] > 1 and n_cells * _LEAST_IN_CELL <= (n_records or synthesizer.n_records):
            chosen.append(name)
    return tuple(chosen)


def _cells(cells: Sequence[Codes], positions: IntArray, at: IntArray) -> tuple[IntArray, IntArray]:
    """Return the cells of records and rows."""
    return common_cells(
        np.column_stack([of.records[positions] for of in cells]),
        np.column_stack([of.rows[at] for of in cells]),
    )
