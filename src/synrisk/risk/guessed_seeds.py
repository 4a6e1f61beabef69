"""Whether a release can be made again with a seed that people choose.

The risk takes the random numbers of the synthesis for unknown. Whoever guesses the seed knows them
all: of the values that a record may have, only the true one gives this release again (METHOD §13).
So the seeds that people choose are tried: what would they have drawn for the first rows? And so are
those that `synthesize` was given, where there are few enough of their size to try them all.

A wrong seed's rows agree with the release by chance. Each row that agrees has a probability of
that, by the model itself; minus the sum of their logs to base 2 are the bits of agreement. Seeds
are left out at their first row that disagrees, so 64 bits are seen of a release for a few hundred
thousand tries: a false alarm has a probability below 1e-13. Where all rows and variables of a
release hold less, they must all agree, and the probability be below 1e-6; where they cannot hold
even that, nothing is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.chunks import ROWS
from synrisk.base.errors import DataError
from synrisk.base.seeds import stream
from synrisk.core.streams import OtherDrawsError, Streams
from synrisk.data.column_store import pieces
from synrisk.data.schema import Columns
from synrisk.synthesis.fitted_model import Model, linear_predictors
from synrisk.synthesis.release import Released
from synrisk.synthesis.rounding import step_of, stored_step
from synrisk.synthesis.synthesizer import Synthesizer

_BITS = 64.0
_FALSE_ALARMS = 1e-6  # expected, where a release holds fewer bits
_NEAR = 0.05  # standard deviations of a model: digits may have been rounded away
_SAME = 1e-9  # of these: but for the last digits
_FIRST = (16, 256, ROWS)  # rows that are looked at, if fewer do not tell
_ELSEWHERE = 12  # records whose values are looked for in all rows
_LOOKED = 6  # of these, one of which must be there; of a long list of seeds the first one
_MANY_SEEDS = 50_000
_BINS = 1 << 18
_FEW_SEEDS = 100  # to try with whole datasets
_LEAST_DATASETS = 5  # of which this one may be any
_WELL_KNOWN = (
    12345, 123456, 1234567, 12345678, 123456789, 1234567890, 54321, 654321, 987654321, 9876543210,
    11111, 22222, 33333, 55555, 77777, 88888, 99999, 111111, 123123, 666666, 777777, 888888, 999999,
    1000000, 10000, 20000, 100000, 31337, 314159, 3141592, 31415926, 314159265, 3141592653,
    27182, 271828, 2718281, 27182818, 271828182, 2718281828, 14142, 141421, 161803, 1618033, 16180,
    42424242, 424242, 65535, 65536, 65537, 2147483647, 2147483648, 4294967295, 8675309, 20202020,
    48879, 57005, 51966, 3735928559, 3405691582, 4276215469, 1729, 6174, 24601, 90210, 525600,
)  # fmt: skip
_RECENT_YEARS = range(2010, 2030)  # of days as 20260131; and as 31012026 and 01312026
_YEARS = range(1900, 2041)  # of days as 20260131, and of months as 202601


@dataclass(frozen=True)
class SeedTrial:
    """Whether a dataset can be made again with a seed that people choose.

    Attributes
    ----------
    n_seeds
        How many seeds were tried.
    bits
        How far the release agrees with the one that agrees best, 0 where none does.
    n_tries
        Seeds times datasets that each may have made.
    is_whole
        Whether all that the dataset holds agrees.
    """

    dataset: int
    n_seeds: int
    bits: float = 0.0
    n_tries: int = 0
    is_whole: bool = False

    @property
    def is_guessed(self) -> bool:
        """Whether it can be no accident that a seed gives this dataset."""
        least = math.log2(max(self.n_tries, 1) / _FALSE_ALARMS)
        return self.bits >= (min(least, _BITS) if self.is_whole else _BITS)

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words. The seed is not told."""
        if not self.is_guessed:
            return None
        return (
            f"Dataset {self.dataset} can be made again with a seed that people choose: whoever "
            "guesses it, or tries one after the other, can tell a record's true values from all "
            "others, and the limits do not see that. Synthesize anew without a seed."
        )


@dataclass(frozen=True, eq=False)
class SeedList:
    """Seeds to try, and a name by which what was worked out for them is kept."""

    name: str
    seeds: IntArray

    def __len__(self) -> int:
        return len(self.seeds)

    def streams(self, stage: str, number: int, variable: str) -> Streams:
        """Return their streams: of the two lists that are the same for all data, those kept."""
        if self.name in ("short", "long"):
            return _streams(self.name, stage, number, variable)
        return Streams.of(self.seeds, stage, number, variable)


@cache
def chosen_seeds() -> tuple[SeedList, SeedList]:
    """Return the seeds that people choose: the short list, and a long one that includes it."""
    days = [(month, day) for month in range(1, 13) for day in range(1, _days(month) + 1)]
    recent, all_days = (
        [10000 * year + 100 * month + day for year in years for month, day in days]
        for years in (_RECENT_YEARS, _YEARS)
    )
    for year in _RECENT_YEARS:
        for month, day in days:
            all_days += [1000000 * day + 10000 * month + year, 1000000 * month + 10000 * day + year]
    months = [100 * year + month for year in _YEARS for month in range(1, 13)]
    powers = [2**k for k in range(60)] + [2**k - 1 for k in range(60)]
    round_ones = [digit * 10**k for digit in range(1, 10) for k in range(18)]
    patterns = [
        int((part * 9)[:length])
        for part in ("1", "2", "3", "4", "5", "6", "7", "8", "9", "12", "21", "123", "321", "42")
        for length in range(4, 10)
    ] + [int(str(k) + str(k)[::-1]) for k in range(1000)]
    short = [*range(10000), *_WELL_KNOWN, *recent]
    long = [*short, *range(100_000), *all_days, *months, *powers, *round_ones, *patterns]
    return (
        SeedList("short", np.unique(np.array(short, dtype=np.int64))),
        SeedList("long", np.unique(np.array(long, dtype=np.int64))),
    )


@lru_cache(maxsize=48)
def _streams(name: str, stage: str, number: int, variable: str) -> Streams:
    seeds = next(one.seeds for one in chosen_seeds() if one.name == name)
    return Streams.of(seeds, stage, number, variable)


def _days(month: int) -> int:
    return 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31


def try_seeds(synthesizer: Synthesizer, release: Sequence[Released]) -> tuple[SeedTrial, ...]:
    """Try the seeds that people choose against each dataset of a release.

    The first dataset that a seed gives may be any of the release, or another number of a larger
    release; then only the short list is tried, and what `synthesize` was given.
    """
    short, long = chosen_seeds()
    numbers = range(max(len(release), _LEAST_DATASETS))
    lists = [(0, long), *((number, short) for number in numbers)]
    if synthesizer.chosen_seeds:
        given = SeedList(f"given {synthesizer.chosen_seeds}", np.array(synthesizer.chosen_seeds))
        lists += [(number, given) for number in numbers]
    n_tries = sum(len(seeds) for _, seeds in lists)
    trials = []
    for place, dataset in enumerate(release, 1):
        trial = SeedTrial(place, len(long), n_tries=n_tries * len(release))
        rows = [_Rows(synthesizer, model, dataset) for model in synthesizer.models]
        rows.sort(key=lambda of_model: -of_model.bits_by_row)  # few tell most
        for number, seeds in lists:
            if trial.is_guessed:
                break
            trial = _tried(rows, number, seeds, trial)
        trials.append(trial)
    return tuple(trials)


def _tried(rows: Sequence[_Rows], number: int, seeds: SeedList, before: SeedTrial) -> SeedTrial:
    """Return what is found of the seeds, if it is more than before."""
    found = _Left(np.arange(len(seeds)), np.zeros(len(seeds)))
    n_agreed = 0
    for of_model in rows:
        found = of_model.agreeing(number, seeds, found)
        n_agreed += of_model.is_whole
        if not found.n or found.most >= _BITS:
            break
    elsewhere = 0.0 if found.most >= _BITS else rows[0].elsewhere(number, seeds)
    bits = max(found.most, elsewhere)
    is_whole = n_agreed == len(rows) and found.most >= elsewhere
    return replace(before, bits=bits, is_whole=is_whole) if bits > before.bits else before


@dataclass(frozen=True, eq=False)
class _Left:
    """The seeds that agree so far, by their places, and by how many bits."""

    places: IntArray
    bits: FloatArray

    @property
    def n(self) -> int:
        return len(self.places)

    @property
    def most(self) -> float:
        return float(self.bits.max(initial=0.0))

    def keep(self, which: IntArray, gained: FloatArray) -> _Left:
        return _Left(self.places[which], self.bits[which] + gained)


@dataclass(frozen=True, eq=False)
class _Begun:
    """A variable's streams under many seeds, and the draws of its parameters."""

    streams: Streams
    draws: IntArray

    def take(self, which: IntArray) -> _Begun:
        return _Begun(self.streams.take(which), self.draws[which])


class _Near:
    """Which of many numbers are within `same` of one of a few: most are ruled out by their bin."""

    def __init__(self, values: FloatArray, same: float) -> None:
        self.values, self.same = np.sort(values), same
        self.low = self.values[0] - same
        self.bin = max((self.values[-1] + same - self.low) / _BINS, 2.0 * same)
        self.is_near = np.zeros(_BINS + 1, dtype=bool)
        for by in (-same, same):
            self.is_near[self._bins(self.values + by)] = True

    def _bins(self, numbers: FloatArray) -> IntArray:
        # A number that is none (NaN) counts as the first bin's: it is near nothing.
        within = np.fmin(np.fmax((numbers - self.low) / self.bin, 0.0), _BINS)
        return np.asarray(within.astype(np.int64))

    def among(self, numbers: FloatArray) -> IntArray:
        """Return the places of those that are near one."""
        places = np.flatnonzero(self.is_near[self._bins(numbers)])
        some = numbers[places]
        next_one = np.searchsorted(self.values, some - self.same)
        nearest = self.values[np.minimum(next_one, len(self.values) - 1)]
        return places[np.abs(nearest - some) <= self.same]


class _Rows:
    """The rows of a dataset as one model may have drawn them.

    Attributes
    ----------
    column, values, some
        What was released: all, the first chunk, and rows that are in memory.
    is_whole
        Whether all rows were looked at.
    """

    def __init__(self, synthesizer: Synthesizer, model: Model, dataset: Released) -> None:
        self.synthesizer, self.model, self.dataset = synthesizer, model, dataset
        regression = model.regression
        self.family = regression.distribution
        self.column = dataset.columns[model.response]
        self.values = np.asarray(self.column[:ROWS], dtype=np.float64)
        self.some = np.asarray(dataset.sample.columns[model.response], dtype=np.float64)
        self.step = 0.0
        if self.family.is_continuous:
            # To the other side where that alone is in the support, hence twice.
            dtype = synthesizer.confidential.sample.data[model.response].dtype
            stored = 2.0 * stored_step(regression, dtype)
            self.step = stored or step_of(self.some)
        sds = self.family.residual_sd(model.posterior.auxiliary)
        self.sigma = 0.0 if sds is None else float(np.exp(model.posterior.log_weights) @ sds)
        in_place = len(self.column) if dataset.kept.all() else int(np.argmin(dataset.kept))
        self.n_rows = min(in_place, synthesizer.n_records, ROWS)
        self.is_whole = False

    @property
    def is_first(self) -> bool:
        """Whether it depends on nothing that is synthesized."""
        synthesized = self.synthesizer.plan.synthesized
        return not set(self.model.regression.parsed.predictors) & set(synthesized)

    @property
    def bits_by_row(self) -> float:
        """About what a row tells."""
        if self.family.is_continuous and not self.step:
            return _BITS + self.is_first
        _, counts = np.unique(self.some, return_counts=True)
        return float(-np.log2(np.sum((counts / len(self.some)) ** 2)))

    def agreeing(self, number: int, seeds: SeedList, left: _Left) -> _Left:
        """Return the seeds that agree in this variable too."""
        try:
            begun = self._begun(number, seeds)
        except OtherDrawsError:
            return self._slowly(number, seeds, left)
        start, done = left, 0
        if self.is_first and left.n == len(seeds):
            left = self._agreeing_at_first(number, seeds, left)
        begun = begun.take(left.places)
        for last in _FIRST:
            rows = slice(done, min(last, self.n_rows))
            if rows.stop <= rows.start:
                break
            matrix = self._matrix(rows)
            values, (low, high) = self.values[rows], self._ends(self.values[rows])
            for row, value, least, most in zip(matrix, values, low, high, strict=True):
                try:
                    drawn, eta, auxiliary = self._drawn(row, begun)
                except OtherDrawsError:
                    return self._slowly(number, seeds, start)
                agree = np.flatnonzero(self._agree(drawn, least, most))
                left = left.keep(
                    agree, self._bits(value, least, most, eta[agree], auxiliary[agree])
                )
                if not left.n or left.most >= _BITS:
                    return left
                begun = begun.take(agree)
            done = rows.stop
        self.is_whole = self.n_rows == len(self.column)
        return left

    def _agreeing_at_first(self, number: int, seeds: SeedList, left: _Left) -> _Left:
        """Leave out the seeds that disagree in the first row, which are nearly all."""
        try:
            (drawn, _), *_ = self._first_records(number, seeds)[0]
        except OtherDrawsError:
            return left
        low, high = self._ends(self.values[:1])
        agree = np.flatnonzero((low <= drawn) & (drawn <= high))
        return left.keep(agree, np.zeros(len(agree)))

    def _slowly(self, number: int, seeds: SeedList, left: _Left) -> _Left:
        """Do so for a family that draws in a way of its own: all rows, and few seeds."""
        n_rows = min(self.synthesizer.n_records, ROWS)
        if self.n_rows < n_rows:
            return left
        tried = seeds.seeds[left.places]
        known = np.flatnonzero((tried < _FEW_SEEDS) | (left.n <= _FEW_SEEDS))
        rows, posterior = slice(0, n_rows), self.model.posterior
        columns = self._columns(rows)
        values, (low, high) = self.values[rows], self._ends(self.values[rows])
        agree, gained = [], []
        for k in known:
            rng = [
                stream(int(tried[k]), s, dataset=number, variable=self.model.response)
                for s in ("parameters", "synthesis")
            ]
            h = self.model.posterior_draw(rng[0])
            drawn = self.model.sample(columns, n_rows, h, rng[1], "The release")
            if self._agree(drawn, low, high).all():
                eta = linear_predictors(self._matrix(rows), posterior.coefficients[h])
                auxiliary = np.broadcast_to(
                    posterior.auxiliary[h], (n_rows, len(self.family.auxiliary))
                )
                agree.append(k)
                gained.append(self._bits(values, low, high, eta, auxiliary).sum())
        self.is_whole = self.n_rows == len(self.column)
        return left.keep(np.array(agree, dtype=np.int64), np.array(gained))

    def elsewhere(self, number: int, seeds: SeedList) -> float:
        """Return by how many bits the first records' values are in the release, in whatever rows.

        For continuous values with all their digits. Some records may have been left out: so many
        count as are there, less a bit for each that might have been.
        """
        if not self._is_exact or not self.is_first:
            return 0.0
        n_rows = min(_ELSEWHERE, self.synthesizer.n_records)
        matrix = self._matrix(slice(0, n_rows))
        try:
            first, begun = self._first_records(number, seeds)
            bits = self._bits_elsewhere(first)
            left = np.flatnonzero(bits)
            begun = begun.take(left)
            others = [self._drawn_and_bits(row, begun) for row in matrix[len(first) :]]
            bits = bits[left] + self._bits_elsewhere(others)
        except OtherDrawsError:
            return 0.0
        return float(np.max(bits - n_rows, initial=0.0))

    def _bits_elsewhere(self, drawn: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
        """Return by how many bits drawn values of some records are among all rows, by seed."""
        if not drawn or not len(drawn[0][0]):
            return np.zeros(())
        there = np.zeros((len(drawn), len(drawn[0][0])), dtype=bool)
        same = _SAME * self.sigma
        told = math.log2(4.0 * same * len(self.column))  # of twice the length of what is near
        for part in pieces(self.column):
            values = np.asarray(part, dtype=np.float64)
            near = _Near(self._ends(values)[0] + _NEAR * self.sigma, same)
            for k, (numbers, _) in enumerate(drawn):
                there[k, near.among(numbers)] = True
        bits = np.zeros(there.shape[1])
        for found, (_, of_density) in zip(there, drawn, strict=True):
            bits[found] += np.maximum(of_density[found] - told, 0.0)
        return bits

    @property
    def _is_exact(self) -> bool:
        """Whether values are numbers with all their digits."""
        is_any_number = self.family.is_continuous and self.family.identity_link
        return is_any_number and not self.step and self.sigma > 0

    def _first_records(
        self, number: int, seeds: SeedList
    ) -> tuple[list[tuple[FloatArray, FloatArray]], _Begun]:
        """Return what each seed draws for the first records, and the streams after these.

        Of a variable that depends on nothing synthesized: no released value enters, so it is the
        same for every release, and kept.
        """
        n_looked = _LOOKED if self._is_exact and len(seeds) <= _MANY_SEEDS else 1
        matrix = self._matrix(slice(0, min(n_looked, self.synthesizer.n_records)))

        def draw() -> tuple[list[tuple[FloatArray, FloatArray]], _Begun]:
            begun = self._begun(number, seeds)
            return [self._drawn_and_bits(row, begun) for row in matrix], begun

        name = f"first {n_looked} of {self.model.response} by seeds {seeds.name} in {number}"
        drawn, begun = self.synthesizer.memory.recall(name, draw)
        return drawn, begun

    def _drawn_and_bits(self, row: FloatArray, begun: _Begun) -> tuple[FloatArray, FloatArray]:
        """Return what each seed draws next, and minus the log to base 2 of its largest density.

        The latter is 0 for values without all their digits.
        """
        drawn, eta, auxiliary = self._drawn(row, begun)
        if not self._is_exact:
            return self._as_released(drawn), np.zeros(len(drawn))
        peak = self.family.log_density(eta[:, 0], eta, auxiliary)
        return self._as_released(drawn), -peak / math.log(2.0)

    def _begun(self, number: int, seeds: SeedList) -> _Begun:
        name = self.model.response

        def begin() -> _Begun:
            u = seeds.streams("parameters", number, name).again().random(len(seeds))
            streams = seeds.streams("synthesis", number, name)
            return _Begun(streams, self.model.draws_at(u))

        made = self.synthesizer.memory.recall(f"seeds {seeds.name} of {name} in {number}", begin)
        return _Begun(made.streams.again(), made.draws)

    def _columns(self, rows: slice) -> Columns:
        """Return what the first rows were drawn by: released values where these are synthetic."""
        synthesized = self.synthesizer.plan.synthesized
        return {
            name: (self.dataset.columns[name] if name in synthesized else values)[rows]
            for name, values in self.synthesizer.columns.items()
        }

    def _matrix(self, rows: slice) -> FloatArray:
        n_rows = rows.stop - rows.start
        return self.model.design.matrix(self._columns(rows), n_rows, "The release", DataError)

    def _drawn(self, row: FloatArray, begun: _Begun) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what each seed draws next, given a row of predictors; eta and sigma."""
        posterior = self.model.posterior
        few = len(begun.draws) < len(posterior.coefficients)
        coefficients = posterior.coefficients[begun.draws] if few else posterior.coefficients
        eta = sum(value * coefficients[:, k] for k, value in enumerate(row))
        eta = eta if few else eta[begun.draws]
        auxiliary = posterior.auxiliary[begun.draws]
        with np.errstate(over="ignore"):
            return begun.streams.draw(self.family, eta, auxiliary), eta, auxiliary

    def _as_released(self, drawn: FloatArray) -> FloatArray:
        """Return drawn values after the way out and back: negative roots are squared."""
        regression = self.model.regression
        if not regression.transform.steps:
            return drawn
        with np.errstate(all="ignore"):
            return regression.on_model_scale(regression.transform.inverse(drawn))

    def _ends(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of what is taken for released values, on the model's scale."""
        if not self.family.is_continuous:
            near = 0.25 * self.family.grid_step
            return values - near, values + near
        with np.errstate(all="ignore"):
            below, at, above = (
                self.model.regression.on_model_scale(values + by * self.step)
                for by in (-0.5, 0.0, 0.5)
            )
        below = np.where(np.isfinite(below), below, -np.inf)  # below what a logarithm has
        near = _NEAR * self.sigma
        return np.fmin(np.fmin(below, above), at - near), np.fmax(np.fmax(below, above), at + near)

    def _agree(self, drawn: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
        drawn = self._as_released(drawn)
        return (low <= drawn) & (drawn <= high)

    def _bits(
        self,
        value: FloatArray,
        low: FloatArray,
        high: FloatArray,
        eta: FloatArray,
        auxiliary: FloatArray,
    ) -> FloatArray:
        """Return minus the log to base 2 of the probability that a seed agrees by chance."""
        value, low, high = (np.broadcast_to(v, len(eta)) for v in (value, low, high))
        density = self.family.log_density
        if not self.family.is_continuous:
            chance = density(value, eta, auxiliary)
        else:
            # The density is largest at an end or, with a mode between, near eta.
            places = (low, high, np.clip(eta[:, 0], low, high))
            with np.errstate(all="ignore"):
                largest = np.max([density(place, eta, auxiliary) for place in places], axis=0)
                # A root of either sign gives the same square.
                chance = largest + np.log(2.0 * (high - low))
        return np.fmax(-chance / math.log(2.0), 0.0)
