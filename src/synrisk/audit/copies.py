"""Are rows of a release closer to people than chance brings them, whatever made it? (METHOD §13)

Without a model the confidential file itself says what chance is: how near people are to each other.
Only columns that are not released as they are are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from scipy.special import bdtrc

from synrisk.audit.compared_files import Files, Numbers
from synrisk.audit.equal_rows import equal_rows
from synrisk.audit.evenness import evenness
from synrisk.audit.near_copies import (
    N_LEFT_OUT,
    Distances,
    named_copies,
    near_copies,
    sizes_of_noise,
)
from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.seeds import stream
from synrisk.risk.near_counts import Count, Tally, counts, hits_of
from synrisk.risk.neighbours import (
    N_AROUND,
    Nearness,
    Neighbours,
    common_cells,
    middle_spread,
    neighbours,
    whitening,
)
from synrisk.risk.value_steps import heap_widths, is_heaped, is_rounded, spread_out

FALSE_ALARMS = 0.001  # of honest releases
FALSE_DISCOVERIES = 0.05  # of the people who are named, where there is an alarm
_DOUBT = 0.001  # the probability of so many equal rows
_LEAST_IN_CELL = 20  # people on average
_WHOLE_FROM = 10
_ROUNDING = 1e-15
_CONTRADICTED = 0.02  # the probability of as many near pairs among people
_SOMEWHAT_NEAR = (0.01, 0.2)  # of the probability of another person as near
_MOST_VERY_NEAR = 0.25  # of people, beyond which they are no longer a few pairs

Way: TypeAlias = Literal["values", "rounded", "rows", "beside", "nearest", "moved"]


@dataclass(frozen=True)
class Compared:
    """One way in which rows were compared with people.

    Attributes
    ----------
    way
        ``"values"``: numbers repeated to the last digit. ``"rounded"``: the same of columns that
        are written with few digits, where numbers repeat by themselves. ``"rows"``: rows that agree
        with one record in all columns, beside those that agree with each other within a file.
        ``"beside"``: the same where numbers are whole, beside pairs that nearly agree.
        ``"nearest"``: the row nearest to each record, among those of the same levels.
        ``"moved"``: whether such rows are people's own, moved a little.
    dataset
        Its number.
    n_compared, found, expected
        How many were compared, how many are too near, and how many would be by chance.
    p
        The probability of as many or more, times the number of ways in which this was looked for.
    """

    way: Way
    dataset: int
    n_compared: int
    found: int
    expected: float
    p: float

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        here = f"In dataset {self.dataset}, {self.found:,} of {self.n_compared:,}"
        if self.way == "rows":
            return (
                f"{here} pairs of rows that agree in every column are of a person and a row of the "
                "release; by chance at most half are."
            )
        if self.way == "beside":
            return (
                f"{here} pairs of a person and a row of the release that nearly agree in every "
                f"number agree in all; chance gives about {about(self.expected)}."
            )
        if self.way in ("values", "rounded"):
            return (
                f"{here} numbers that are repeated to the last digit are one person's and the "
                "release's; by chance at most half are."
            )
        if self.way == "moved":
            return (
                f"{here} people compared, or about so many, have a row near them as their own "
                "moved a little would be; by chance none have."
            )
        return (
            f"{here} people compared have a row too near to be so by chance; chance gives about "
            f"{about(self.expected)}."
        )

    @property
    def is_doubtful(self) -> bool:
        """Whether this raises no alarm by itself, and yet cannot be told from copies.

        All repeated numbers are one person's and the release's, however few they are: where numbers
        repeat by themselves, some do so within a file. Or whole numbers agree oftener in all
        columns than nearly, as one honest release in a thousand has it.
        """
        if self.way == "beside":
            return self.p < _DOUBT
        return self.way == "values" and 0 < self.found == self.n_compared


def chance(p: float) -> str:
    """Return a probability in words: what is smaller than rounding is told so."""
    return f"{p:.2g}" if p >= _ROUNDING else f"below {_ROUNDING:g}"


def about(number: float) -> str:
    """Return a number of people that is expected: whole where it is large."""
    return f"{number:,.0f}" if number >= _WHOLE_FROM else f"{number:.2g}"


@dataclass(frozen=True, eq=False, repr=False)
class Copies:
    """How near rows come to people.

    Attributes
    ----------
    compared
        By way and dataset.
    p
        By person, the probability of a row as near as the nearest, of the datasets together; 1
        where there is no number to be near by, 0 of who is repeated exactly where that is too much
        for chance.
    named
        Who has a row too near: about a twentieth of them by chance, and nobody where the release
        as a whole is not too near.
    copied
        The probability that the nearest row is the person's own, as it is or moved a little; 0
        where the release as a whole is not too near.
    """

    SHAPES: ClassVar = dict.fromkeys(("p", "named", "copied"), ("record",))
    compared: tuple[Compared, ...]
    p: FloatArray
    named: BoolArray
    copied: FloatArray

    @property
    def combined(self) -> float:
        """The probability of the least probable of what was found, times their number."""
        return min([1.0, *(len(self.compared) * one.p for one in self.compared)])

    @property
    def is_too_close(self) -> bool:
        """Whether an honest release is so close once in a thousand times."""
        return self.combined < FALSE_ALARMS

    @property
    def doubts(self) -> tuple[Compared, ...]:
        """What raises no alarm, and cannot be told from copies of a few people."""
        return tuple(one for one in self.compared if one.is_doubtful and one not in self.found)

    @property
    def found(self) -> tuple[Compared, ...]:
        """What raises the alarm."""
        tail = FALSE_ALARMS / max(len(self.compared), 1)
        return tuple(one for one in self.compared if one.p < tail)


def copies(files: Files, seed: int) -> Copies:
    """Return how near each dataset comes to people."""
    compared: list[Compared] = []
    smallest = np.ones(len(files.people))
    repeated = np.zeros(len(files.people), dtype=bool)
    copied = np.zeros(len(files.people))
    explained = np.zeros(len(files.people), dtype=bool)
    space = _Space.of(files)
    for number, dataset in enumerate(files.release, 1):
        exact = list(_exact(files, dataset, number))
        for way, hit in exact:
            compared.append(way)
            repeated |= hit
            if way.p < FALSE_ALARMS:
                explained |= hit
        if space is not None:
            # Where numbers repeat by themselves, equal ones are judged by these counts alone.
            equal = all(way.found == way.n_compared for way, _ in exact if way.way == "values")
            near = space.nearness(dataset, number, seed, equal=equal)
            among_people = space.among_people(number, seed, equal=equal)
            power = evenness(among_people.p)
            near, among_people = (one._replace(p=one.p**power) for one in (near, among_people))
            compared.append(_counted(near, among_people, number))
            p = np.ones(len(smallest))
            p[near.position] = near.p
            smallest = np.minimum(smallest, p)
            uneven = _are_uneven(among_people)
            way, probability = _moved(
                space,
                dataset,
                number,
                seed,
                equal=equal,
                uneven=uneven,
                power=power,
                explained=explained,
            )
            compared.append(way)
            copied = np.maximum(copied, probability)
    m = len(files.release)
    copied = np.where(repeated, 1.0, copied)
    found = Copies(tuple(compared), np.minimum(m * smallest, 1.0), repeated, copied)
    if not found.is_too_close:
        return replace(found, named=np.zeros_like(repeated), copied=np.zeros_like(copied))
    # Others than people whose copies are exact, who would make room for as many again by chance.
    # One list or the other: of both together up to twice that share would be named wrongly.
    named, rest = repeated.copy(), np.flatnonzero(~explained)
    found = replace(found, p=np.where(explained, 0.0, found.p))
    if any(one.way == "moved" for one in found.found):
        named[rest] |= named_copies(copied[rest], FALSE_DISCOVERIES)
    else:
        named[rest] |= false_discoveries(found.p[rest])
    return replace(found, named=named)


def false_discoveries(p: FloatArray, share: float = FALSE_DISCOVERIES) -> BoolArray:
    """Return which are too small, by Benjamini and Hochberg's rule: of these a share by chance."""
    order = np.argsort(p, kind="stable")
    n = len(p)
    under = np.flatnonzero(p[order] * n <= share * np.arange(1, n + 1))
    chosen = np.zeros(n, dtype=bool)
    if len(under):
        chosen[order[: under[-1] + 1]] = True
    return chosen


def _exact(files: Files, dataset: Numbers, number: int) -> Iterator[tuple[Compared, BoolArray]]:
    """Yield exact repeats of numbers and of rows, and whose they are."""
    for way in ("values", "rounded"):
        values = _repeated_values(files, dataset, number, way)
        if values is not None:
            yield values
    rows, hit = _repeated_rows(files, dataset, number)
    yield rows, hit
    found = equal_rows(files, dataset)
    if found is not None:
        expected, n_equal = found.expected, found.n_equal
        yield Compared("beside", number, found.n_near, n_equal, expected, found.p), hit


def _repeated_values(
    files: Files, dataset: Numbers, number: int, way: Literal["values", "rounded"]
) -> tuple[Compared, BoolArray] | None:
    """Count people a number of whom is repeated to the last digit, in columns of one kind.

    Of values that are there twice or oftener in both files together, whatever makes them so (a
    ratio of whole numbers), at most half are one person's and the release's: r π (1 − π)^(r − 1)
    of those that are there r times, with a share π of people. Zero is nobody's.
    """
    hit, n_columns = np.zeros(len(files.people), dtype=bool), 0
    found, n_repeated = 0, 0
    for name in files.made:
        own, theirs = files.column(files.people, name), files.column(dataset, name)
        known, theirs = np.flatnonzero(~np.isnan(own)), theirs[~np.isnan(theirs)]
        if files.few_values(name) or is_rounded(theirs) != (way == "rounded"):
            continue
        n_columns += 1
        values, at = np.unique(np.concatenate([own[known], theirs]), return_inverse=True)
        n_people = np.bincount(at[: len(known)], minlength=len(values))
        n_rows = np.bincount(at[len(known) :], minlength=len(values))
        repeated = (n_people + n_rows > 1) & (values != 0.0)
        alone = repeated & (n_people == 1)
        found, n_repeated = found + int(alone.sum()), n_repeated + int(repeated.sum())
        hit[known[alone[at[: len(known)]]]] = True
    if not n_columns:
        return None
    p = float(bdtrc(found - 1, n_repeated, 0.5)) if found else 1.0
    if way == "rounded" and p >= FALSE_ALARMS:
        hit[:] = False  # where numbers repeat by themselves, these may be any
    return Compared(way, number, n_repeated, found, n_repeated / 2.0, p), hit


def _repeated_rows(files: Files, dataset: Numbers, number: int) -> tuple[Compared, BoolArray]:
    """Count pairs of a person and a row that agree in all columns and with nobody else.

    Of two equal rows of both files together, whatever their densities are, at most half are one of
    each: 2ab/(a + b)² ≤ 1/2. Pairs within a file are what that is judged by.
    """
    at = [files.names.index(name) for name in files.made]
    records, rows = common_cells(
        *(np.nan_to_num(one.values[:, at], nan=np.inf) for one in (files.people, dataset))
    )
    n_cells = int(max(records.max(), rows.max())) + 1
    own, theirs = (np.bincount(of, minlength=n_cells) for of in (records, rows))
    n_pairs, mixed = int((own + theirs == 2).sum()), (own == 1) & (theirs == 1)
    found = int(mixed.sum())
    p = float(bdtrc(found - 1, n_pairs, 0.5)) if found else 1.0
    return Compared("rows", number, n_pairs, found, n_pairs / 2.0, p), mixed[records]


@dataclass(frozen=True, eq=False, repr=False)
class _Space:
    """The numbers of people as points, in which rows lie about evenly, within cells of levels.

    Attributes
    ----------
    numbers, cells
        The columns that are coordinates, and those within whose values rows are compared.
    positions
        Of the records, each point once, those first that are farthest from others.
    """

    files: Files
    numbers: tuple[str, ...]
    cells: tuple[str, ...]
    positions: IntArray

    @classmethod
    def of(cls, files: Files) -> _Space | None:
        """Return the space; None where no column is a number."""
        numbers = tuple(name for name in files.made if not files.few_values(name))
        if not numbers:
            return None
        at = [files.names.index(name) for name in numbers]
        complete = np.flatnonzero(~np.isnan(files.people.values[:, at]).any(axis=1))
        if len(complete) < N_AROUND + 1:
            return None
        _, first = np.unique(files.people.values[complete], axis=0, return_index=True)
        space = cls(files, numbers, _cells_of(files), complete[first])
        points = space._bent(space._values(files.people, space.positions))
        points = points @ whitening(points)
        away = neighbours(points, points, n_others=4).distance[:, -1]
        return cls(files, numbers, space.cells, space.positions[np.argsort(-away, kind="stable")])

    def nearness(self, dataset: Numbers, number: int, seed: int, *, equal: bool) -> Nearness:
        """Return how near each person's nearest row is; `equal` ones count, or do not."""
        own, rows, at = self._spread_out(dataset, number, seed)
        cells = self._codes(self.files.people, self.positions), self._codes(dataset, at)
        found, n_dimensions = self._near(own, rows, common_cells(*cells))
        p, row = found.probability(n_dimensions), found.row[:, 0]
        lone = np.flatnonzero(found.n_within < 2)
        if len(lone) and self.cells:  # no other row of the cell tells how near is near
            everywhere, _ = self._near(own, rows, None)
            p[lone] = everywhere.probability(n_dimensions)[lone]
            row[lone] = everywhere.row[lone, 0]
        p = p if equal else np.where(found.distance[:, 0] == 0.0, 1.0, p)
        return Nearness(p, at[row], self.positions)

    def among_people(self, number: int, seed: int, *, equal: bool) -> Nearness:
        """Return how near each person's nearest other person is; `equal` ones count, or do not."""
        own, rows, at = self._spread_out(self.files.people, number, seed)
        if not self._are_rounded:  # equal people are no chance, and stand here once
            rows, at = own, self.positions
        people = self.files.people
        cells = common_cells(self._codes(people, self.positions), self._codes(people, at))
        found, n_dimensions = self._near(own, rows, cells, n_more=1)
        found = found.without(at[found.row] == self.positions[:, None])
        p = found.probability(n_dimensions)
        p = p if equal else np.where(found.distance[:, 0] == 0.0, 1.0, p)
        return Nearness(p, found.row[:, 0], self.positions)

    @property
    def _are_rounded(self) -> bool:
        """Whether all numbers are written with few digits, so that people agree by chance."""
        return all(
            is_rounded(own[~np.isnan(own)])
            for own in (self.files.column(self.files.people, name) for name in self.numbers)
        )

    def distances(
        self,
        dataset: Numbers | None,
        number: int,
        seed: int,
        *,
        equal: bool,
        power: float = 1.0,
    ) -> tuple[Distances, IntArray]:
        """Return how far each person's nearest row is, and whose these are; None for other people.

        In units of the spread of each number, since noise is added to each; who has no row with the
        same levels is left out. Rows fill `power` times as many dimensions as there are numbers.
        """
        is_own = dataset is None
        table = self.files.people if dataset is None else dataset
        own, rows, at = self._spread_out(table, number, seed)
        if is_own:
            rows, at = own, self.positions
        cells = common_cells(self._codes(self.files.people, self.positions), self._codes(table, at))
        points, others = self._scaled(own), self._scaled(rows)
        found = neighbours(points, others, cells, n_others=N_AROUND + 1 + is_own)
        distance, n_within = found.distance[:, is_own:], found.n_within - is_own
        there = n_within >= 1
        there &= equal | (distance[:, 0] > 0.0)
        distance, n_within, row = distance[there], n_within[there], found.row[there, int(is_own)]
        last = distance[np.arange(len(distance)), n_within - 1]
        n_rows = np.maximum(n_within - 1.0, 1.0)
        lone = np.flatnonzero(n_within == 1)
        if len(lone):  # as dense as all rows, thinned to one
            everywhere = neighbours(points[there][lone], others, n_others=N_AROUND + 1)
            last[lone] = everywhere.distance[:, -1]
            n_rows[lone] = everywhere.distance.shape[1] / len(others)
        n_dimensions = points.shape[1]
        filled = power * n_dimensions
        log_density = np.log(n_rows) - filled * np.log(np.maximum(last, _ROUNDING))
        nearest = Distances(distance[:, 0], log_density, row, n_dimensions, filled)
        return nearest, self.positions[there]

    def _near(
        self,
        own: FloatArray,
        rows: FloatArray,
        cells: tuple[IntArray, IntArray] | None,
        n_more: int = 0,
    ) -> tuple[Neighbours, int]:
        points, others = self._bent(own), self._bent(rows)
        white = whitening(others if len(rows) > 10 * others.shape[1] else points)
        n_others = N_AROUND + 1 + n_more
        found = neighbours(points @ white, others @ white, cells, n_others=n_others)
        return found, white.shape[1]

    def _values(self, table: Numbers, at: IntArray) -> FloatArray:
        return np.column_stack([self.files.column(table, name)[at] for name in self.numbers])

    def _codes(self, table: Numbers, at: IntArray) -> FloatArray:
        codes = [self.files.filled(table, name)[at] for name in self.cells]
        return np.column_stack([np.zeros(len(at)), *codes])

    def _spread_out(
        self, dataset: Numbers, number: int, seed: int
    ) -> tuple[FloatArray, FloatArray, IntArray]:
        """Return people's and rows' numbers, what was rounded in the rows spread out.

        Rows that were brought to a common value are left out: others tell which are here.
        """
        left_out = np.zeros(len(dataset), dtype=bool)
        columns: list[tuple[FloatArray, FloatArray]] = []
        for name in self.numbers:
            theirs = self.files.column(dataset, name)
            left_out |= np.isnan(theirs)
            left_out |= is_heaped(np.where(np.isnan(theirs), np.nanmedian(theirs), theirs))
        at = np.flatnonzero(~left_out)
        if len(at) < N_AROUND + 1:
            at = np.arange(len(dataset))
        for name in self.numbers:
            rng = stream(seed, "ties", dataset=number, variable=name)
            own = self.files.column(self.files.people, name)[self.positions]
            theirs = self.files.column(dataset, name)[at]
            theirs = np.where(np.isnan(theirs), np.nanmedian(theirs), theirs)
            widths = [heap_widths(values, own) for values in (own, theirs)]
            spread = zip(spread_out(own, theirs, rng), widths, strict=True)
            own, theirs = (one + width * (rng.random(len(one)) - 0.5) for one, width in spread)
            columns.append((own, theirs))
        own, rows = (np.column_stack(parts) for parts in zip(*columns, strict=True))
        return own, rows, at

    def _scaled(self, values: FloatArray) -> FloatArray:
        numbers = self._values(self.files.people, self.positions)
        return np.asarray((values - np.median(numbers, axis=0)) / middle_spread(numbers))

    def _bent(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.arcsinh(self._scaled(values)))


def _cells_of(files: Files) -> tuple[str, ...]:
    """Return the columns by which cells are made, those with few values first."""
    n_values = {
        name: len(np.unique(files.filled(files.people, name)))
        for name in files.names
        if files.few_values(name)
    }
    chosen: list[str] = []
    n_cells = 1
    for name in sorted(n_values, key=lambda one: n_values[one]):
        n_cells *= n_values[name]
        if n_cells * _LEAST_IN_CELL <= len(files.people):
            chosen.append(name)
    return tuple(chosen)


def _moved(
    space: _Space,
    dataset: Numbers,
    number: int,
    seed: int,
    *,
    equal: bool,
    uneven: bool,
    power: float,
    explained: BoolArray,
) -> tuple[Compared, FloatArray]:
    """Return whether rows are people's own, moved a little, and with which probability whose.

    Nothing is said where people themselves lie so, clustered or along a line, nor of those whose
    rows are exact copies: they would pass for moved ones.
    """
    among_people, _ = space.distances(None, number, seed, equal=equal, power=power)
    distances, at = space.distances(dataset, number, seed, equal=equal, power=power)
    others = ~explained[at]
    distances, at = distances.of(others), at[others]
    probability = np.zeros(len(space.files.people))
    if len(at) <= N_LEFT_OUT or not len(among_people.nearest):
        return Compared("moved", number, 0, 0, 0.0, 1.0), probability
    sizes = sizes_of_noise(among_people)
    found, usual = near_copies(distances, sizes), near_copies(among_people, sizes).log_evidence
    probability[at] = found.probability
    p = 1.0
    if usual < -np.log(_CONTRADICTED) and not uneven:
        p = float(np.exp(-max(found.log_evidence - max(usual, 0.0), 0.0)))
    n_found = round(float(found.probability.sum()))
    return Compared("moved", number, len(at), n_found, 0.0, p), probability


def _counted(near: Nearness, among_people: Nearness, number: int) -> Compared:
    """Return how many have too near a row, by the least probable count.

    Where people are nearer to each other than evenly spread points would be, more are expected: at
    any threshold where they lie along curves or in clusters, else where near pairs are too many.
    """
    hits, uneven, everybody = hits_of(among_people), _are_uneven(among_people), len(among_people.p)

    def are_too_many(threshold: float, most: int) -> bool:
        n_hits = int(hits.below(threshold, most).sum())
        return n_hits > 0 and bool(bdtrc(n_hits - 1, most, threshold) < _CONTRADICTED)

    def judged(one: Count) -> tuple[float, float]:
        p, expected, most = one.p, one.expected, min(one.most, everybody)
        # People stand out by being far from others: among these alone near pairs are too few.
        sizes = (
            {most, everybody} if uneven else {most} if are_too_many(one.threshold, most) else set()
        )
        for size in sizes:
            n_hits = int(hits.below(one.threshold, size).sum())
            p = max(p, _beside(one, n_hits, size))
            expected = max(expected, n_hits * one.n_compared / size)
        return p, expected

    found = [(one, *judged(one)) for one in counts([Tally.of([near])])]
    best, p, expected = min(found, key=lambda one: (one[1], -one[0].n_compared))
    return Compared("nearest", number, best.n_compared, best.found, expected, p)


def _are_uneven(among_people: Nearness) -> bool:
    """Tell whether too many people are somewhat near to each other; a few very near pairs do not.

    In fewer dimensions than there are numbers, or in clusters, most people are; in clusters of two
    or three many are very near, and the others are alone.
    """
    low, high = _SOMEWHAT_NEAR
    p = hits_of(among_people).p
    n_very_near = int((p < low).sum())
    if n_very_near > _MOST_VERY_NEAR * len(among_people.p):
        return True
    n = len(among_people.p) - n_very_near
    n_between = int(((p >= low) & (p < high)).sum())
    share = (high - low) / (1.0 - low)
    return n_between > 0 and bool(bdtrc(n_between - 1, n, share) < _CONTRADICTED)


def _beside(best: Count, hits: int, n: int) -> float:
    """Return the probability of so many of all that were found in both comparisons."""
    share = best.n_compared / (best.n_compared + n)
    return min(best.n_ways * float(bdtrc(best.found - 1, best.found + hits, share)), 1.0)
