"""The checks of a release of more records than memory holds, by blocks of the table.

What adds up over rows (fits, totals, shapes, cross-tables, groups of rows) is added up over all.
What holds a row against the record at its place is done block by block, and what looks for near
rows anywhere in blocks where these meet (`block_routes`). A block is a table of its own, so every
check in it is the one of a table in memory; how blocks are put together is said where it is done:
counts add up, correlations are normal and do too, and what a single block says alone counts as one
of so many looks. Blocks depend on the rows' places and on the records' values, not on files or
workers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.chunks import ROWS
from synrisk.base.errors import SynriskError
from synrisk.base.progress import under_way
from synrisk.base.workers import Executor, Serial, here
from synrisk.data.buckets import Buckets
from synrisk.data.column_store import StoreWriter, TemporaryFolder, pieces, stored_columns
from synrisk.data.schema import Columns, Factor
from synrisk.risk.block_routes import Hashes, Route, hashes, most_varied
from synrisk.risk.closeness import (
    Closeness,
    Compared,
    all_together,
    by_dataset,
    judged_repeats,
    judged_shapes,
    labels_of,
    of_nobody,
    too_near,
)
from synrisk.risk.coincident_totals import (
    FEW_LEVELS,
    Sums,
    levels_of,
    nearest_total,
    sums_of_records,
    sums_of_rows,
)
from synrisk.risk.fit_distances import compare_fits
from synrisk.risk.guessed_seeds import try_seeds
from synrisk.risk.linked_rows import (
    LinkedRows,
    all_linked,
    correlations,
    linked_rows,
    residuals_of_records,
    rows_in_groups,
)
from synrisk.risk.near_counts import Tally
from synrisk.risk.nearest_rows import Places, Space, cell_columns
from synrisk.risk.neighbours import Nearness
from synrisk.risk.own_records import MOST_A_GROUP, nearness_to_own
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.risk.row_groups import IN_PLACE, Groups, groupings, groups_by_key, settle_groups
from synrisk.risk.row_traces import Sign, plainest, signs
from synrisk.risk.shape_likeness import likeness_of, mean_waves
from synrisk.risk.table_blocks import (
    Block,
    Sorted,
    blocks_by_place,
    blocks_by_route,
    records_of,
    rows_of,
    slices,
    some_of,
)
from synrisk.risk.table_likeness import Cut, judged_tables
from synrisk.risk.value_steps import is_rounded
from synrisk.synthesis.datasets import draw_encoded
from synrisk.synthesis.leaks import columns_as_is
from synrisk.synthesis.relations import Relation
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

ROWS_OF_BLOCK = 16 * ROWS
_MOST_NAMED = 1_000  # records of a block, of those that have a near row
_MOST_GROUPS = 4_096  # of rows that agree in what is kept: sums over these fit in memory
_N_SIMULATED = 5  # datasets, where a check warns
_N_TABLES = 16  # datasets whose cross-tables tell what is to be expected
_TENTHS = (0.1, 0.9)
_N_BINS = 1_024  # in which a rank is looked for

_Found = TypeVar("_Found")


def check_stored(
    synthesizer: Synthesizer,
    release: Sequence[Released],
    executor: Executor,
    relations: tuple[Relation, ...] = (),
    *,
    n_block: int = ROWS_OF_BLOCK,
) -> ReleaseChecks:
    """Compare each dataset with what the models predict and with the records, by blocks.

    `n_block` is about how many records make a block.
    """
    checks = _Checks(synthesizer, tuple(release), here(executor), n_block)
    distances, total = compare_fits(synthesizer, release, executor)
    seeds = try_seeds(synthesizer, release)
    with under_way("Checking the release by blocks", checks.n_blocks) as checks.on_block:
        linked, traces = checks.linked()
        close = [
            checks.values(),
            checks.nearest(),
            checks.within_cells(),
            checks.own_records(),
            checks.moved(),
            checks.shapes(),
            checks.totals(),
            checks.tables(),
            traces,
        ]
    agreements, residuals = all_linked(linked)
    as_is = columns_as_is(synthesizer.confidential.sample, [dataset.sample for dataset in release])
    together = all_together(close)
    return ReleaseChecks(distances, agreements, residuals, total, together, seeds, as_is, relations)


@dataclass(eq=False, repr=False)
class _Checks:
    """What is compared, and what is worked out once."""

    synthesizer: Synthesizer
    release: tuple[Released, ...]
    executor: Executor
    n_block: int
    on_block: Callable[[int], None] = lambda _: None

    @property
    def n_blocks(self) -> int:
        """How many blocks are gone through, of all datasets."""
        n_by_place = -(-self.synthesizer.n_records // self.n_block)
        routes = [way[0] for way in (self.slabs, self.cells) if way is not None]
        n_blocks = 0
        for dataset in self.release:
            n_blocks += 2 * n_by_place if self.is_by_place(dataset) else 0
            n_blocks += 2 * self.by_key[0].n_blocks if self.names_rows(dataset) else 0
            n_blocks += sum(route.n_blocks for route in routes)
        return n_blocks

    def over(self, task: Callable[[Block], _Found], blocks: Iterable[Block]) -> list[_Found]:
        found = []
        for one in self.executor.map(task, blocks):
            found.append(one)
            self.on_block(1)
        return found

    # -- what is known of the table ----------------------------------------------------------------
    @cached_property
    def sample(self) -> Synthesizer:
        return self.synthesizer.sample

    @cached_property
    def kept(self) -> tuple[str, ...]:
        """The columns that rows and records have alike where nobody changed them."""
        plan = self.synthesizer.plan
        return tuple(name for name in plan.columns if name not in plan.synthesized)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        variables, plan = self.synthesizer.schema.variables, self.synthesizer.plan
        return tuple(one for one in plan.synthesized if not isinstance(variables[one], Factor))

    def labels(self, positions: IntArray) -> tuple[int | str, ...]:
        return labels_of(self.synthesizer, positions)

    def simulated(self, n_rows: int) -> Sequence[Released]:
        """Return datasets that the models draw for the records, whatever number of rows is asked.

        Only where a check warns.
        """
        del n_rows
        return self._simulated

    @cached_property
    def _simulated(self) -> list[Released]:
        with contextlib.suppress(SynriskError):
            return [self._drawn(k) for k in range(_N_SIMULATED)]
        return []

    def _drawn(self, number: int) -> Released:
        folder, n_rows = TemporaryFolder(), self.synthesizer.n_records
        with StoreWriter(folder.path / "columns", {}) as store:
            for columns in self._draws(number):
                store.append(columns)
        return Released(
            pd.DataFrame(index=pd.RangeIndex(n_rows)),
            stored_columns(folder.path / "columns"),
            np.ones(n_rows, dtype=bool),
            folder=folder,
        )

    def _draws(self, number: int) -> Iterator[Columns]:
        """Yield a dataset that the models draw, with what is kept beside it."""
        synthesizer = self.synthesizer
        n_rows, n_block = synthesizer.n_records, ROWS * max(self.n_block // ROWS, 1)
        parts = [slice(k, min(k + n_block, n_rows)) for k in range(0, n_rows, n_block)]
        drawn = draw_encoded(
            synthesizer.confidential, synthesizer.models, number, 0, parts, Serial()
        )
        for rows, (columns, _) in zip(parts, drawn, strict=True):
            yield {**{name: synthesizer.columns[name][rows] for name in self.kept}, **columns}

    # -- rows at their places ----------------------------------------------------------------------
    def is_by_place(self, dataset: Released) -> bool:
        return len(dataset.kept) == self.synthesizer.n_records

    def blocks_by_place(self, dataset: Released) -> Iterator[Block]:
        for block in blocks_by_place(self.synthesizer, dataset, self.n_block):
            groups = Groups.by_place(len(block.positions))
            settle_groups(block.dataset, (groups,))
            yield block

    # -- rows that agree in what is kept -----------------------------------------------------------
    @cached_property
    def groups(self) -> Hashes | None:
        """The hashes of what is kept, where many have the same; else None."""
        if not self.kept:
            return None
        found = np.unique(hashes(self.sample.columns, self.kept))
        are_few = len(found) <= min(_MOST_GROUPS, self.synthesizer.n_records // MOST_A_GROUP)
        return found if are_few else None

    def names_rows(self, dataset: Released) -> bool:
        """Whether what is kept may tell rows' records elsewhere than at their places."""
        if not self.kept or self.groups is not None:
            return False
        return not (self.is_by_place(dataset) and self.share_in_place(dataset) >= IN_PLACE)

    def share_in_place(self, dataset: Released) -> float:
        n_equal = 0
        for rows in slices(self.synthesizer.n_records, self.n_block):
            own, theirs = (
                hashes(some_of({name: of[name] for name in self.kept}, rows), self.kept)
                for of in (self.synthesizer.columns, dataset.columns)
            )
            n_equal += int((own == theirs).sum())
        return n_equal / self.synthesizer.n_records

    @cached_property
    def by_key(self) -> tuple[Route, Sorted]:
        return self._sorted(Route.by_key(self.kept, self.synthesizer.n_records, self.n_block))

    def _sorted(self, route: Route) -> tuple[Route, Sorted]:
        return route, Sorted.of(self.synthesizer.columns, route, self.n_block)

    def blocks_on(self, way: tuple[Route, Sorted], dataset: Released) -> Iterator[Block]:
        route, records = way
        rows = Sorted.of(dataset.columns, route, self.n_block)
        return blocks_by_route(self.synthesizer, records, rows, route, self.n_block)

    def blocks_by_key(self, dataset: Released) -> Iterator[Block]:
        for block in self.blocks_on(self.by_key, dataset):
            groups = groups_by_key(block.synthesizer, block.dataset)
            if groups is not None:
                settle_groups(block.dataset, (groups,))
                yield block

    def linked(self) -> tuple[list[tuple[int, list[LinkedRows]]], list[Closeness]]:
        """Compare rows with the records that they stand for, and look for traces."""
        found, p = [], []
        for number, dataset in enumerate(self.release, 1):
            blocks: list[Iterable[Block]] = []
            if self.is_by_place(dataset):
                blocks.append(self.blocks_by_place(dataset))
            if self.names_rows(dataset):
                blocks.append(self.blocks_by_key(dataset))
            least: list[float] = []
            for some in blocks:
                of_some = self.over(partial(_linked, number), some)
                found.append((number, [linked for linked, _ in of_some]))
                told = plainest([of_block for _, of_block in of_some])
                if told is not None:
                    least.append(told)
            p.append(min(min(least) * len(least), 1.0) if least else None)
            if self.groups is not None:
                found.append((number, [self.linked_groups(number, dataset)]))
        return found, by_dataset("traces", self.release, p)

    def linked_groups(self, number: int, dataset: Released) -> LinkedRows:
        """Compare sums over the rows and the records that agree in what is kept."""
        assert self.groups is not None  # noqa: S101 - the caller looked
        models = self.synthesizer.models
        n_records, of_records = self._sums_by_group(self.synthesizer.columns, None)
        n_rows, of_rows = self._sums_by_group(dataset.columns, dataset)
        both = (n_records > 0) & (n_rows > 0)
        roots = np.sqrt(n_records[both])
        theirs = {
            (model.response, 0): of_records[model.response][both] / roots[:, None]
            for model in models
        }
        found = []
        for model in models:
            sums = of_rows[model.response][both] / np.sqrt(n_rows[both])[:, None]
            n_predictors = theirs[(model.response, 0)].shape[1]
            own, columns = sums[:, :n_predictors], sums[:, n_predictors:]
            shaped = columns.reshape(len(own), n_predictors, -1)
            size = int(n_rows[both].sum()), int(both.sum())
            found += correlations(model, number, own, shaped, theirs, size)
        return LinkedRows({}, found)

    def _sums_by_group(
        self, columns: Columns, dataset: Released | None
    ) -> tuple[IntArray, dict[str, FloatArray]]:
        """Return how many rows or records each group has, and sums of residuals by variable.

        Of rows with what other parameters would change.
        """
        groups = self.groups
        assert groups is not None  # noqa: S101 - the caller looked
        n_each, sums = np.zeros(len(groups), dtype=np.int64), dict[str, Any]()
        for rows in slices(len(next(iter(columns.values()))), self.n_block):
            part = some_of(columns, rows)
            code = hashes(part, self.kept)
            place = np.minimum(np.searchsorted(groups, code), len(groups) - 1)
            known = groups[place] == code
            n_each += np.bincount(place[known], minlength=len(groups))
            for name, values in self._residuals(part, dataset is None).items():
                by_column = [np.bincount(place[known], of[known], len(groups)) for of in values.T]
                sums[name] = sums.get(name, 0.0) + np.column_stack(by_column)
        return n_each, sums

    def _residuals(self, part: Columns, are_records: bool) -> dict[str, FloatArray]:
        n_rows = len(next(iter(part.values())))
        if are_records:
            records = records_of(self.synthesizer, part, np.arange(n_rows))
            return {
                model.response: residuals_of_records(records, model) for model in records.models
            }
        dataset, each = rows_of(self.synthesizer.schema, part), Groups.by_place(n_rows)
        found = {}
        for model in self.template.models:
            own, columns = rows_in_groups(self.template, model, dataset, each)
            found[model.response] = np.column_stack([own, columns.reshape(n_rows, -1)])
        return found

    @cached_property
    def template(self) -> Synthesizer:
        """The models with a few records: of rows nothing else is asked."""
        return next(self.parts_of_records())

    def parts_of_records(self) -> Iterator[Synthesizer]:
        for rows in slices(self.synthesizer.n_records, self.n_block):
            positions = np.arange(rows.start, rows.stop)
            yield records_of(self.synthesizer, some_of(self.synthesizer.columns, rows), positions)

    def parts_of_rows(self, dataset: Released) -> Iterator[Released]:
        for rows in slices(len(dataset.kept), self.n_block):
            yield rows_of(self.synthesizer.schema, some_of(dataset.columns, rows))

    # -- near rows ---------------------------------------------------------------------------------
    def near(
        self, compared: Compared, way: Callable[[Released, int], Mapping[int, Tally]]
    ) -> list[Closeness]:
        return too_near(compared, way, self.release, self.simulated, self.labels)

    @cached_property
    def slabs(self) -> tuple[Route, Sorted] | None:
        space = Space.of(self.sample)
        return None if space is None else self._route(())

    @cached_property
    def cells(self) -> tuple[Route, Sorted] | None:
        names = cell_columns(self.sample, self.synthesizer.n_records)
        names = tuple(name for name in names if name in self.synthesizer.plan.columns)
        if not names or self.slabs is None:
            return None
        return self._route(names)

    def _route(self, names: Sequence[str]) -> tuple[Route, Sorted]:
        some = self.sample.columns
        axis = most_varied(some, self.numbers)
        route = Route.by_values(some, names, axis, self.synthesizer.n_records, self.n_block)
        return self._sorted(route)

    def nearest(self) -> list[Closeness]:
        return [] if self.slabs is None else self.near("nearest", partial(self._near, self.slabs))

    def within_cells(self) -> list[Closeness]:
        if self.cells is None:
            return []
        return self.near("within cells", partial(self._near, self.cells))

    def _near(
        self, way: tuple[Route, Sorted], dataset: Released, number: int
    ) -> Mapping[int, Tally]:
        task = partial(_nearness, way[0].cells, number)
        return _by_block(self.over(task, self.blocks_on(way, dataset)))

    def own_records(self) -> list[Closeness]:
        def at_places(dataset: Released, number: int) -> Mapping[int, Tally]:
            if not self.is_by_place(dataset):
                return {}
            blocks = self.blocks_by_place(dataset)
            return _by_block(self.over(partial(_nearness_to_own, number), blocks))

        def by_key(dataset: Released, number: int) -> Mapping[int, Tally]:
            if not self.names_rows(dataset):
                return {}
            blocks = self.blocks_by_key(dataset)
            return _by_block(self.over(partial(_nearness_to_own, number), blocks))

        return [*self.near("own record", at_places), *self.near("own record", by_key)]

    def moved(self) -> list[Closeness]:
        space = Space.of(self.sample)
        if space is None:
            return []
        names = [one.response for one in space.regressions]
        own = _places([_between_tenths(self.synthesizer.columns[name]) for name in names])
        step = self.synthesizer.confidential.step

        def way(dataset: Released, _: int) -> Mapping[int, Tally]:
            rows = _places([_between_tenths(dataset.columns[name]) for name in names])
            n_rows = len(dataset.kept)
            parts = (
                (part.start, some_of(dataset.columns, part))
                for part in slices(n_rows, self.n_block)
            )
            apart = max(n_rows // self.n_block, 1)
            some = {name: _strided(dataset.columns[name], apart) for name in names}
            near = space.moved_over(own, rows, parts, some)
            labelled = [_in_table(one, step) for one in near]
            return {0: Tally.of(labelled, most=_MOST_NAMED)} if near else {}

        return self.near("moved", way)

    # -- what adds up ------------------------------------------------------------------------------
    def shapes(self) -> list[Closeness]:
        theirs = mean_waves((part, None) for part in self.parts_of_records())
        if theirs is None:
            return []

        def of(dataset: Released) -> float | None:
            return likeness_of(theirs, _Parts(self, dataset))

        return judged_shapes(self.release, of, self.simulated)

    def totals(self) -> list[Closeness]:
        def least(dataset: Released) -> float | None:
            some = dataset.sample.columns
            groups = self._few_levels(some)
            levels = levels_of(
                self.sample, lambda name: np.union1d(self.sample.columns[name], some[name])
            )

            def codes(columns: Columns) -> dict[str, IntArray]:
                return {
                    name: np.searchsorted(known, columns[name]).astype(np.int64)
                    for name, known in groups.items()
                }

            with np.errstate(all="ignore"):  # of numbers beyond squaring nothing is told
                own: Sums = reduce(
                    add,
                    (
                        sums_of_records(part, codes(part.columns), levels)
                        for part in self.parts_of_records()
                    ),
                )
                theirs: Sums = reduce(
                    add,
                    (
                        sums_of_rows(self.template, part, codes(part.columns), levels)
                        for part in self.parts_of_rows(dataset)
                    ),
                )
            found = nearest_total(self.synthesizer, dataset.sample, own, theirs)
            return None if found is None else found[1]

        return by_dataset("totals", self.release, [least(one) for one in self.release])

    def _few_levels(self, some: Columns) -> dict[str, FloatArray]:
        found = {name: np.union1d(self.sample.columns[name], some[name]) for name in self.kept}
        return {name: known for name, known in found.items() if len(known) <= FEW_LEVELS}

    def tables(self) -> list[Closeness]:
        """Compare cross-tables of levels and counts, of all rows, with those of the records."""
        models = self.synthesizer.models
        if all(model.regression.distribution.exact for model in models):
            return []
        cut, n_records = Cut(self.sample), self.synthesizer.n_records
        own = _shares(cut, (part.columns for part in self.parts_of_records()))
        try:
            expected = [_shares(cut, self._draws(number)) for number in range(_N_TABLES)]
        except SynriskError:  # the models cannot draw: nothing is told
            return by_dataset("tables", self.release, [1.0] * len(self.release))
        release = [
            (_shares(cut, (part.columns for part in self.parts_of_rows(one))), len(one.kept))
            for one in self.release
        ]
        p = judged_tables(own, expected, release, (n_records, n_records))
        return by_dataset("tables", self.release, p)

    # -- values ------------------------------------------------------------------------------------
    def values(self) -> list[Closeness]:
        """Count records a number of which is repeated to the last digit, where none was rounded."""
        names = [
            regression.response
            for regression in self.synthesizer.plan.regressions
            if regression.distribution.is_continuous
        ]
        n_records, rows = self.synthesizer.n_records, []
        for number, dataset in enumerate(self.release, 1) if names else ():
            looked_at = [n for n in names if not is_rounded(dataset.sample.columns[n])]
            if not looked_at:
                continue
            n_pairs = len(looked_at) * n_records * len(dataset.kept)
            found = [self._repeated(name, dataset) for name in looked_at]
            positions = reduce(np.union1d, found)
            labels = partial(self.labels, positions[:_MOST_NAMED])
            rows.append(judged_repeats(number, n_records, len(positions), n_pairs, labels))
        return rows

    def _repeated(self, name: str, dataset: Released) -> IntArray:
        """Return the positions of records whose value of a column some row repeats.

        Values that several people have, zero, declared bounds and missing ones are nobody's;
        records that agree in all columns are one person.
        """
        n_files = max(-(-self.synthesizer.n_records // self.n_block), 1)
        names = tuple(self.synthesizer.columns)
        own, theirs = Buckets(3), Buckets(1)
        for rows in slices(self.synthesizer.n_records, self.n_block):
            part = some_of(self.synthesizer.columns, rows)
            value = np.asarray(part[name], dtype=np.float64)
            person = (hashes(part, names) >> np.uint64(12)).astype(np.float64)
            places = np.arange(rows.start, rows.stop, dtype=np.float64)
            own.append(_file_of(value, n_files), np.column_stack([value, person, places]))
        for piece in pieces(dataset.columns[name], self.n_block):
            value = np.asarray(piece, dtype=np.float64)
            theirs.append(_file_of(value, n_files), value[:, None])
        nobody, found = of_nobody(self.synthesizer, name), []
        for k in range(n_files):
            value, person, places = own.read(k).T
            known = np.isin(value, theirs.read(k)[:, 0]) & ~np.isin(value, nobody)
            people = pd.DataFrame({"value": value[known], "person": person[known]})
            of_one = people.groupby("value")["person"].transform("nunique").to_numpy() == 1
            first = ~people.duplicated().to_numpy()
            found.append(places[known][of_one & first])
        return np.sort(np.concatenate(found)).astype(np.int64)


def _file_of(values: FloatArray, n_files: int) -> IntArray:
    code = hashes({"value": values}, ["value"])
    return np.asarray((code % np.uint64(n_files)).astype(np.int64))


@dataclass(frozen=True, eq=False, repr=False)
class _Parts:
    """The rows of a dataset in parts, over which may be gone several times."""

    checks: _Checks
    dataset: Released

    def __iter__(self) -> Iterator[tuple[Synthesizer, Released]]:
        for part in self.checks.parts_of_rows(self.dataset):
            yield self.checks.template, part


def _linked(number: int, block: Block) -> tuple[LinkedRows, list[Sign]]:
    (groups,) = groupings(block.synthesizer, block.dataset)
    linked = linked_rows(block.synthesizer, number, block.dataset, groups)
    return linked, signs(block.synthesizer, block.dataset)


def _nearness_to_own(number: int, block: Block) -> tuple[int, Tally | None]:
    parts = nearness_to_own(block.synthesizer, block.dataset, block.stream_of(number))
    return _tally(block, parts)


def _nearness(cells: Sequence[str], number: int, block: Block) -> tuple[int, Tally | None]:
    """Compare the rows of a block with its records, as points within cells."""
    space = Space.of(block.synthesizer, in_cells=bool(cells), cells=cells)
    if space is None:
        return block.number, None
    space = replace(space, between=block.between)
    parts = space.nearness(block.synthesizer, block.dataset, block.stream_of(number))
    return _tally(block, parts)


def _tally(block: Block, parts: Sequence[Nearness]) -> tuple[int, Tally | None]:
    return block.number, Tally.of(parts, block.positions, _MOST_NAMED) if parts else None


def _by_block(found: Sequence[tuple[int, Tally | None]]) -> Mapping[int, Tally]:
    return {number: tally for number, tally in found if tally is not None}


def _in_table(near: Nearness, step: int) -> Nearness:
    """Return it by positions in the table of which the sample has one record of `step`."""
    return near._replace(position=near.position * step)


def _shares(cut: Cut, parts: Iterable[Columns]) -> FloatArray:
    """Return the shares of cells among all rows, which are read in parts."""
    total, n = np.zeros(()), 0
    for columns in parts:
        n_rows = len(next(iter(columns.values())))
        total, n = total + n_rows * cut.tables(columns), n + n_rows
    return np.asarray(total / max(n, 1))


def _strided(column: Any, step: int) -> FloatArray:
    """Return one value of `step`, evenly spread."""
    parts = [np.asarray(part, dtype=np.float64)[::step] for part in pieces(column)]
    return np.concatenate(parts)


def _places(found: Sequence[tuple[float, float]]) -> Places:
    middle, width = np.array(found).T
    return Places(middle, width)


def _between_tenths(column: Any) -> tuple[float, float]:
    """Return mean and standard deviation of the middle four fifths of a column, read in parts.

    The values of both ranks are known first by the bin that they are in, then among these.
    """
    some = np.unique(_strided(column, max(len(column) // (64 * _N_BINS), 1)))
    edges = np.unique(some[:: max(len(some) // _N_BINS, 1)])
    n_each = np.zeros(len(edges) + 1, dtype=np.int64)
    for part in pieces(column):
        n_each += np.bincount(np.searchsorted(edges, part), minlength=len(n_each))
    cut, ends = len(column) // 10, np.cumsum(n_each)
    ranks = cut, len(column) - cut - 1
    bins = [int(np.searchsorted(ends, rank, side="right")) for rank in ranks]
    n, total, squares, at_ends = 0, 0.0, 0.0, {one: list[FloatArray]() for one in bins}
    centre = float(some[len(some) // 2])
    for part in pieces(column):
        values = np.asarray(part, dtype=np.float64)
        place = np.searchsorted(edges, values)
        for one, kept in at_ends.items():
            kept.append(values[place == one])
        inner = values[(place > bins[0]) & (place < bins[1])] - centre
        n, total, squares = n + len(inner), total + inner.sum(), squares + (inner**2).sum()
    for one, kept in at_ends.items():
        ordered = np.sort(np.concatenate(kept)) - centre
        before = int(ends[one] - n_each[one])
        inner = ordered[max(ranks[0] - before, 0) : max(ranks[1] + 1 - before, 0)]
        n, total, squares = n + len(inner), total + inner.sum(), squares + (inner**2).sum()
    mean = total / n
    return float(mean + centre), float(np.sqrt(max(squares / n - mean**2, 0.0)))
