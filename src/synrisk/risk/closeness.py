"""Is a release too close to the people in it, whatever made it? (METHOD §13)

Nearness of rows to records is looked at in several ways; each gives every record a number that is
uniform for an honest release and small for a copied record. How many are small, among all records
and among those that stand out most, is binomial.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import bdtrc, ndtr

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import SynriskError
from synrisk.base.workers import Serial
from synrisk.data.schema import Columns, Numeric
from synrisk.risk.coincident_totals import coincidence
from synrisk.risk.near_counts import Count, Tally, counts, found_by, found_in
from synrisk.risk.nearest_rows import Space
from synrisk.risk.neighbours import Nearness
from synrisk.risk.own_records import nearness_to_own
from synrisk.risk.row_traces import trace
from synrisk.risk.shape_likeness import likeness
from synrisk.risk.table_likeness import table_likeness
from synrisk.risk.value_steps import is_rounded
from synrisk.synthesis.datasets import SynthesisWarning, draw_columns
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_LEVEL = 0.0005  # of all comparisons of an honest release
_HARDLY_ANY = 0.01  # records
_BY_CHANCE = 1e-15  # that a number of sixteen digits is another's
_NOT_NORMAL = 10.0  # by which skewed departures of few rows may make a tail of the shape larger
_N_SIMULATED, _LEAST_SIMULATED = 40, 5  # datasets
_MOST_SIMULATED_ROWS = 400_000
_CONTRADICTED = 0.02  # the probability of as many hits in simulated datasets

_HOW = {
    "values": "repeated to the last digit",
    "nearest": "followed too closely by the nearest row",
    "within cells": "followed too closely by the nearest row of the same levels",
    "own record": "followed too closely by the row that stands for them",
    "moved": "followed too closely by the nearest row once everybody is moved alike",
}

Compared: TypeAlias = Literal[
    "values",
    "nearest",
    "within cells",
    "moved",
    "own record",
    "shape",
    "tables",
    "totals",
    "traces",
]


@dataclass(frozen=True)
class Closeness:
    """Whether rows are closer to confidential records than the models would bring them.

    Attributes
    ----------
    compared
        ``"values"``: numbers that repeat a record's to the last digit. ``"nearest"``: the row
        nearest to each record, by the synthesized numbers; ``"within cells"``: among rows with the
        same levels; ``"moved"``: after a shift and a stretch of everybody. ``"own record"``: each
        row and the record that it stands for. ``"shape"``: departures from the models' normal
        errors, in the direction of the records'; ``"tables"``: the same of cross-tables, where
        there are levels or counts. ``"totals"``: sums, means and standard deviations
        of the numbers, of all rows and within levels that are kept. ``"traces"``: the order and
        number of rows, digits, labels, values that stand out and kept columns that were changed.
    dataset
        0 for all datasets together.
    n_compared, found, expected
        How many records were compared, how many of them have too near a row, and how many would by
        chance; 0 for the shape, tables and totals.
    p
        The probability of as much, times the number of ways in which this was looked for; of the
        shape, times ten, since it is normal only about.
    tail
        It warns below this probability.
    records
        The labels of those found; for inside use.
    """

    compared: Compared
    dataset: int
    n_compared: int
    found: int
    expected: float
    p: float
    tail: float
    records: tuple[int | str, ...] = ()

    @property
    def is_too_close(self) -> bool:
        """Whether it is closer than by chance."""
        return self.p < self.tail

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words."""
        if not self.is_too_close:
            return None
        where = f"dataset {self.dataset}" if self.dataset else "all datasets together"
        if self.compared == "totals":
            return (
                f"A total, a mean or a standard deviation of {where} is that of the confidential "
                "data, nearer than chance brings it: was it calibrated? Whoever knows everybody "
                "else subtracts them; the limits do not see that."
            )
        if self.compared == "traces":
            return (
                f"Something about the rows of {where} (their order or number, their labels, last "
                "digits, values that stand out, or kept columns that were changed) goes with the "
                "confidential values of the records that they stand for, by more than chance: was "
                "it made of them? The limits do not see that."
            )
        if self.compared == "tables":
            return (
                f"Cross-tables of {where} depart from the models as those of the confidential "
                "records do: was it made of them? The limits do not see that."
            )
        if self.compared == "shape":
            return (
                f"The errors of {where} depart from the models as those of the confidential "
                "records do: was it made of them? The limits do not see that."
            )
        few = self.expected < _HARDLY_ANY
        by_chance = "practically none" if few else f"about {self.expected:,.2g}"
        return (
            f"In {where}, {self.found:,} of {self.n_compared:,} confidential records looked at are "
            f"{_HOW[self.compared]}; the models would give {by_chance}: were they copied? The "
            "limits do not see that."
        )


# Of a dataset and its number: how many records have a near row, by block of the table.
Way: TypeAlias = Callable[[Released, int], Mapping[int, Tally]]
# Of a number of rows: datasets of so many that the models draw; none where they cannot.
Simulated: TypeAlias = Callable[[int], Sequence[Released]]
# Of positions: the labels of the records.
Labels: TypeAlias = Callable[[IntArray], tuple[int | str, ...]]


def comparisons(
    synthesizer: Synthesizer, release: Sequence[Released]
) -> list[Callable[[], list[Closeness]]]:
    """Return the comparisons of rows with records that the release allows, to be run in any order.

    What they find is put together by `all_together`.
    """
    simulated = partial(_simulated, synthesizer)
    labels = partial(labels_of, synthesizer)
    return [
        partial(_repeated_values, synthesizer, release),
        *(
            partial(too_near, name, way, release, simulated, labels)
            for name, way in _ways(synthesizer)
        ),
        partial(_shapes, synthesizer, release),
        partial(_totals, synthesizer, release),
        partial(_tables, synthesizer, release),
        partial(_traces, synthesizer, release),
    ]


def all_together(found: Iterable[Sequence[Closeness]]) -> tuple[Closeness, ...]:
    """Return what all comparisons found, each judged as one of so many."""
    rows = [row for of_one in found for row in of_one]
    tail = _LEVEL / max(len(rows), 1)
    return tuple(replace(row, tail=tail) for row in rows)


def _ways(synthesizer: Synthesizer) -> list[tuple[Compared, Way]]:
    recall = synthesizer.memory.recall
    space = recall("space", lambda: Space.of(synthesizer))
    cells = recall("space of cells", lambda: Space.of(synthesizer, in_cells=True))
    ways: list[tuple[Compared, Way]] = []
    if space is not None:
        ways.append(("nearest", partial(_as_one_block, space.nearness, synthesizer)))
    if cells is not None:
        ways.append(("within cells", partial(_as_one_block, cells.nearness, synthesizer)))
    ways.append(("own record", partial(_as_one_block, nearness_to_own, synthesizer)))
    if space is not None:
        ways.append(("moved", partial(_as_one_block, space.moved, synthesizer)))
    return ways


def _as_one_block(
    nearness: Callable[[Synthesizer, Released, int], Sequence[Nearness]],
    synthesizer: Synthesizer,
    dataset: Released,
    number: int,
) -> Mapping[int, Tally]:
    """Return the tally of a table in memory, if rows can be compared."""
    parts = nearness(synthesizer, dataset, number)
    return {0: Tally.of(parts)} if parts else {}


def too_near(
    compared: Compared,
    way: Way,
    release: Sequence[Released],
    simulated: Simulated,
    labels: Labels,
) -> list[Closeness]:
    """Return a row a dataset, and one for all of them together.

    Of several blocks all together are looked at, and each by itself.
    """
    near = [way(dataset, number) for number, dataset in enumerate(release, 1)]
    alone = [(number, [of]) for number, of in enumerate(near, 1) if of]
    groups = alone if len(alone) < 2 else [*alone, (0, [of for _, (of,) in alone])]
    expected = _Expected(way, simulated)
    rows = []
    for number, group in groups:
        looks = _looks(group)
        all_counts = [
            (one, look) for look in looks for one in counts(_tallies_of(group, look), len(looks))
        ]
        best, where = told, whose = min(all_counts, key=lambda of: (of[0].p, -of[0].n_compared))
        p = best.p
        if p < _LEVEL:
            n_rows = [int(dataset.kept.sum()) for dataset in release]
            of_best = n_rows[number - 1] if number else max(n_rows)
            p = max(p, expected.tail(best, where, of_best))
            # Where several speak against chance, the one that finds most beyond it tells who.
            told, whose = max(
                (of for of in all_counts if of[0].p < _LEVEL), key=lambda of: of[0].excess
            )
        by_name = () if p >= _LEVEL else labels(found_by(told, _tallies_of(group, whose)))
        rows.append(
            Closeness(
                compared, number, told.n_compared, told.found, told.expected, p, _LEVEL, by_name
            )
        )
    return rows


# A block, or None for all of them.
_Look: TypeAlias = int | None


def _looks(group: Sequence[Mapping[int, Tally]]) -> list[_Look]:
    """Return at which blocks is looked: all together, and of one dataset each."""
    blocks = sorted(group[0]) if len(group) == 1 else []
    return [None, *blocks] if len(blocks) > 1 else [None]


def _tallies_of(group: Sequence[Mapping[int, Tally]], look: _Look) -> list[Tally]:
    return [tally for of in group for block, tally in sorted(of.items()) if look in (None, block)]


@dataclass(frozen=True, eq=False, repr=False)
class _Expected:
    """How often records have a near row among datasets of the models, which are drawn once."""

    way: Way
    simulated: Simulated
    found: dict[int, list[Mapping[int, Tally]]] = field(default_factory=dict)

    def tail(self, best: Count, look: _Look, n_rows: int) -> float:
        """Return the probability of as many by what datasets say; 0 if nothing else.

        Rows do not lie evenly about a record where they are few or follow a curve.
        """
        if n_rows not in self.found:
            datasets = self.simulated(n_rows)
            self.found[n_rows] = [self.way(one, -k) for k, one in enumerate(datasets, 1)]
        each, n = [], 0
        for tallies in self.found[n_rows]:
            found_of_one, n_of_one = found_in(best, _tallies_of([tallies], look))
            if n_of_one:
                each.append(found_of_one)
                n += n_of_one
        hits = sum(each)
        if not hits or bdtrc(hits - 1, n, best.threshold) > _CONTRADICTED:
            return 0.0
        as_many = sum(found >= best.found for found in each) / len(each)
        return max(best.tail(hits / n), as_many)


def _simulated(synthesizer: Synthesizer, n_rows: int) -> Sequence[Released]:
    """Return datasets of so many rows that the models draw; none where they cannot."""
    n = min(_N_SIMULATED, max(_MOST_SIMULATED_ROWS // n_rows, _LEAST_SIMULATED))

    def draw() -> list[Released]:
        confidential, n_each = synthesizer.confidential, -(-n_rows // synthesizer.n_records)
        rows = np.tile(np.arange(synthesizer.n_records), n_each)[:n_rows]
        as_is = confidential.data[list(confidential.released_as_is)].iloc[rows]
        kept = {
            name: values[rows]
            for name, values in synthesizer.columns.items()
            if name not in synthesizer.plan.synthesized
        }
        with contextlib.suppress(SynriskError), warnings.catch_warnings():
            warnings.simplefilter("ignore", SynthesisWarning)
            drawn = draw_columns(confidential, synthesizer.models, n * n_each, 0, Serial())
            joined = (_joined(drawn[k * n_each : (k + 1) * n_each], n_rows) for k in range(n))
            everybody = np.ones(n_rows, dtype=bool)
            return [Released(as_is, {**kept, **columns}, everybody) for columns in joined]
        return []

    return synthesizer.memory.recall("simulated", draw, given=n_rows)


def _joined(parts: Sequence[Columns], n_rows: int) -> Columns:
    return {name: np.concatenate([part[name] for part in parts])[:n_rows] for name in parts[0]}


def _repeated_values(synthesizer: Synthesizer, release: Sequence[Released]) -> list[Closeness]:
    """Count records a number of which is repeated to the last digit, where nothing was rounded.

    Numbers that several people have, zero, declared bounds and missing ones are nobody's.
    """
    names = [
        regression.response
        for regression in synthesizer.plan.regressions
        if regression.distribution.is_continuous
    ]
    own = synthesizer.memory.recall("values of one", lambda: _values_of_one(synthesizer, names))
    rows = []
    for number, dataset in enumerate(release, 1) if names else ():
        hit = np.zeros(synthesizer.n_records, dtype=bool)
        n_rows, n_dropped = len(dataset.columns[names[0]]), 0
        looked_at = [name for name in names if not is_rounded(dataset.columns[name])]
        for name in looked_at:
            values, positions = own[name]
            theirs = np.sort(dataset.columns[name])
            away = np.setdiff1d(synthesizer.confidential.dropped.get(name, ()), [0.0, *values])
            n_dropped = max(n_dropped, len(np.intersect1d(away, theirs)))
            place = np.minimum(np.searchsorted(theirs, values), n_rows - 1)
            equal = theirs[place] == values
            hit[positions[equal & ~np.isin(values, of_nobody(synthesizer, name))]] = True
        if looked_at:
            n = len(hit) + synthesizer.confidential.n_dropped
            found = int(hit.sum()) + n_dropped
            labels = partial(labels_of, synthesizer, np.flatnonzero(hit))
            n_pairs = len(looked_at) * n * n_rows
            rows.append(judged_repeats(number, n, found, n_pairs, labels))
    return rows


def judged_repeats(
    number: int,
    n: int,
    found: int,
    n_pairs: float,
    labels: Callable[[], tuple[int | str, ...]],
) -> Closeness:
    """Return whether so many of n records are repeated, of so many pairs of two numbers."""
    expected = n_pairs * _BY_CHANCE
    p = float(bdtrc(found - 1, n, min(expected / n, 1.0))) if found else 1.0
    by_name = labels() if p < _LEVEL else ()
    return Closeness("values", number, n, found, expected, p, _LEVEL, by_name)


def of_nobody(synthesizer: Synthesizer, name: str) -> list[float]:
    """Return numbers that tell of nobody: zero, declared bounds, and what stands for a gap."""
    variable = synthesizer.schema.variables[name]
    if not isinstance(variable, Numeric):
        return [0.0]
    gap = [] if variable.gap is None else [variable.gap]
    return [0.0, *(variable.bounds or ()), *gap]


def _values_of_one(
    synthesizer: Synthesizer, names: Sequence[str]
) -> dict[str, tuple[FloatArray, IntArray]]:
    """Return by column the values that one person alone has, sorted, and whose they are.

    Records that agree in all columns are one person.
    """
    table = np.column_stack([np.asarray(v, dtype=np.float64) for v in synthesizer.columns.values()])
    _, people = np.unique(table, axis=0, return_index=True)
    found = {}
    for name in names:
        values, first, n_people = np.unique(
            synthesizer.columns[name][people], return_index=True, return_counts=True
        )
        found[name] = values[n_people == 1], people[first[n_people == 1]]
    return found


def _shapes(synthesizer: Synthesizer, release: Sequence[Released]) -> list[Closeness]:
    """Compare departures from normal errors, of each dataset and of all together."""
    return judged_shapes(release, partial(likeness, synthesizer), partial(_simulated, synthesizer))


def judged_shapes(
    release: Sequence[Released],
    likeness_of: Callable[[Released], float | None],
    simulated: Simulated,
) -> list[Closeness]:
    """Return a row a dataset and one for all of them together, given what tells their likeness."""
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers beyond squaring nothing is told
        found = {
            number: z
            for number, dataset in enumerate(release, 1)
            if (z := likeness_of(dataset)) is not None and math.isfinite(z)
        }
    if len(found) > 1:
        found[0] = sum(found.values()) / math.sqrt(len(found))
    rows = []
    for number, z in found.items():
        n_rows = int(release[number - 1].kept.sum())
        p = min(_NOT_NORMAL * float(ndtr(-z)), 1.0)
        if p < _LEVEL:
            by_chance = [one for one in map(likeness_of, simulated(n_rows)) if one is not None]
            p = max(p, _NOT_NORMAL * _normal_tail(z, np.array(by_chance)))
        rows.append(Closeness("shape", number, n_rows, 0, 0.0, p, _LEVEL))
    return rows


def _tables(synthesizer: Synthesizer, release: Sequence[Released]) -> list[Closeness]:
    """Compare cross-tables of levels and counts with the confidential ones."""
    if all(model.regression.distribution.exact for model in synthesizer.models):
        return []
    simulated = _simulated(synthesizer, synthesizer.n_records)
    return by_dataset("tables", release, table_likeness(synthesizer, release, simulated))


def _totals(synthesizer: Synthesizer, release: Sequence[Released]) -> list[Closeness]:
    """Compare totals of each dataset with the confidential ones."""
    found = [coincidence(synthesizer, dataset) for dataset in release]
    return by_dataset("totals", release, [None if one is None else one[1] for one in found])


def _traces(synthesizer: Synthesizer, release: Sequence[Released]) -> list[Closeness]:
    """Look for what goes with confidential values beside the values of rows."""
    return by_dataset("traces", release, [trace(synthesizer, dataset) for dataset in release])


def by_dataset(
    compared: Compared, release: Sequence[Released], found: Sequence[float | None]
) -> list[Closeness]:
    """Return a row for each dataset of which a probability is known."""
    return [
        Closeness(compared, number, int(dataset.kept.sum()), 0, 0.0, p, _LEVEL)
        for number, (dataset, p) in enumerate(zip(release, found, strict=True), 1)
        if p is not None
    ]


def _normal_tail(z: float, simulated: FloatArray) -> float:
    """Return the tail beyond z of a normal with simulated moments, where these say another one."""
    n = len(simulated)
    if n < _LEAST_SIMULATED:
        return 0.0
    mean, sd = float(simulated.mean()), float(simulated.std(ddof=1))
    far = 3.0 / math.sqrt(n)
    mean, sd = (mean if mean > far else 0.0), (sd if sd > 1.0 + far / math.sqrt(2.0) else 1.0)
    return float(ndtr((mean - z) / sd))


def labels_of(synthesizer: Synthesizer, positions: IntArray) -> tuple[int | str, ...]:
    """Return the labels of records, each once."""
    labels = synthesizer.data.index[np.unique(positions)]
    return tuple(int(one) if isinstance(one, int | np.integer) else str(one) for one in labels)
