"""The measures that boards cite, of two files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.audit.board_measure import BoardMeasure, BoardMeasures
from synrisk.audit.gower_distances import Mixed, mixed_rows
from synrisk.audit.key_counts import Cells, attribution_measures, unique_measures
from synrisk.audit.nearest_measures import linkability, nearest_measures
from synrisk.audit.shared_codes import (
    check_columns,
    column_names,
    files_of,
    is_number,
    joint_codes,
    numbers_of,
    read_files,
    refuse_overlap,
    shared_codes,
)
from synrisk.audit.singling_out import MOST_NUMBERS, multivariate, univariate
from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import DataError, OptionError, got, listed, nearest, within_memory
from synrisk.base.seeds import checked_seed, stream
from synrisk.data.frames import TableLike

_BINS = 10
_WORK = 1e8  # distances by column that are computed for nearest rows
_LEAST_TRIED = 200  # records
_LEAST = 3  # records, for a nearest and a second nearest other one


@within_memory
def count_measures(
    confidential: TableLike,
    synthetic: TableLike,
    keys: Sequence[str],
    targets: Sequence[str] = (),
    *,
    bins: int | Mapping[str, int | Sequence[float]] | None = _BINS,
    n_neighbours: int = 1,
    distances: bool = True,
    seed: int | None = None,
) -> BoardMeasures:
    """Return the measures that boards cite, each with its chance level and its records.

    By keys: UiO, UiS, UiOiS, repU, singling out of several columns. By keys and target: Dorig,
    Dsyn, iS, DiS, DiSCO, DiSDiO, TCAP. Of keys and targets together: singling out of one column,
    linkability (the row that keys lead to and the row that targets lead to), DCR, NNDR. Of all
    columns that both files have: replicated uniques.

    Parameters
    ----------
    confidential, synthetic
        Two files, or frames; the release is one dataset.
    keys
        What an intruder may know of a target.
    targets
        What he may want to know.
    bins
        Numbers with more distinct values than this are cut at as many quantiles of the
        confidential data for counts by keys and targets; or by column a number of bins or the
        edges between them, those not named having ten. None leaves numbers as they are, as
        synthpop does.
    n_neighbours
        Of linkability.
    distances
        Whether to measure linkability, DCR and NNDR, which take longest of many records.
    seed
        Chooses among equally near rows, and the records to try where there are too many; one is
        drawn if it is left out.

    Examples
    --------
    >>> people = {"sex": ["f", "f", "m", "m"], "job": ["a", "a", "b", "c"]}
    >>> release = {"sex": ["f", "f", "m", "m"], "job": ["a", "a", "b", "b"]}
    >>> measures = count_measures(people, release, keys=["sex"], targets=["job"])
    >>> print(measures["DiSCO"].value, measures["DiSCO"].chance, measures["DiSCO"].n_records)
    0.75 0.5 3
    """
    key_names, target_names = column_names(keys, "keys"), column_names(targets, "targets")
    if not key_names:
        raise OptionError("keys= is empty: name the columns that an intruder may know.")
    refuse_overlap(key_names, target_names, ("keys", "targets"))
    if isinstance(n_neighbours, bool) or not isinstance(n_neighbours, int) or n_neighbours < 1:
        raise OptionError("n_neighbours must be a whole number from 1.")
    if isinstance(synthetic, list | tuple) and len(synthetic) != 1:
        raise OptionError("These measures are of one dataset; call for each of several.")
    frame, (release,) = read_files(confidential, synthetic)
    if len(frame) < _LEAST:
        raise DataError(f"The confidential data: at least {_LEAST} records are needed.")
    names = (*key_names, *target_names)
    check_columns(files_of(frame, [release]), names)
    files = _Files.of(frame, release, names, _bins_of(bins, names))
    measures = [
        *files.by_keys(key_names),
        *(one for name in target_names for one in files.by_target(key_names, name)),
    ]
    if distances:
        measures += files.by_rows(key_names, target_names, n_neighbours, checked_seed(seed))
    return BoardMeasures(tuple(measures), files.edges, files.notes(key_names, target_names))


def _bins_of(bins: Any, names: Sequence[str]) -> dict[str, int | tuple[float, ...] | None]:
    """Return the number of bins, or the edges between them, of each column."""
    if not isinstance(bins, Mapping):
        return dict.fromkeys(names, None if bins is None else _n_bins(bins))
    for name in bins:
        if name not in names:
            raise OptionError(
                f"bins= names {got(name)}, which is neither a key nor a target."
                f"{nearest(name, names)} These are {listed(names)}."
            )
    return {name: _one_bins(bins.get(name, _BINS), name) for name in names}


def _n_bins(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 2:
        raise OptionError(
            "bins must be a whole number from 2, edges, a dict of these by column, or None; got "
            f"{got(value)}."
        )
    return value


def _one_bins(value: Any, name: str) -> int | tuple[float, ...]:
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str):
        return _n_bins(value)
    edges = np.array([], dtype=np.float64)
    if all(isinstance(one, int | float | np.number) for one in value):
        edges = np.asarray(value, dtype=np.float64)
    if not len(edges) or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
        raise OptionError(f"bins= of {name!r}: edges are finite numbers that rise.")
    return tuple(edges.tolist())


# A variable in the confidential data and in the release.
_Codes = tuple[IntArray, IntArray]
_Numbers = tuple[FloatArray, FloatArray]


@dataclass(frozen=True, repr=False, eq=False)
class _Files:
    """Two files with the columns that are asked for.

    Attributes
    ----------
    frame, release, names
        The files, and the columns.
    numbers
        Those columns that are numbers; NaN for a gap.
    exact, codes
        Every column as codes: of its values, and of the bins of those that are cut.
    edges
        Between the bins of these.
    """

    frame: pd.DataFrame
    release: pd.DataFrame
    names: tuple[str, ...]
    numbers: Mapping[str, _Numbers]
    exact: Mapping[str, _Codes]
    codes: Mapping[str, _Codes]
    edges: Mapping[str, tuple[float, ...]]

    @classmethod
    def of(
        cls,
        frame: pd.DataFrame,
        release: pd.DataFrame,
        names: tuple[str, ...],
        bins: Mapping[str, int | tuple[float, ...] | None],
    ) -> _Files:
        """Return the columns of two files as numbers and codes."""
        both = (frame, release)
        exact = {name: _pair(shared_codes([one[name] for one in both])) for name in names}
        numbers = {
            name: _pair(numbers_of(files_of(frame, [release]), name))
            for name in names
            if is_number(frame[name])
        }
        edges = {
            name: found
            for name, (own, _) in numbers.items()
            if (found := _edges(own, bins[name])) is not None
        }
        codes = exact | {name: _cut(numbers[name], own) for name, own in edges.items()}
        return cls(frame, release, names, numbers, exact, codes, edges)

    def notes(self, keys: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
        """Say what is left out."""
        notes = []
        if not self._can_be_sorted(keys):
            notes.append(
                "Singling out of several columns is not counted: more than two keys are numbers, "
                "or some of them have gaps."
            )
        if not targets:
            notes.append("Linkability needs two sets of columns: keys and targets.")
        return tuple(notes)

    def _can_be_sorted(self, keys: Sequence[str]) -> bool:
        numbers = [self.numbers[name] for name in keys if name in self.numbers]
        gaps = any(np.isnan(own).any() for columns in numbers for own in columns)
        return len(numbers) <= MOST_NUMBERS and not gaps

    def _cells(self, names: Sequence[str]) -> Cells:
        return Cells.of(*joint_codes([self.codes[name] for name in names]))

    def by_keys(self, keys: Sequence[str]) -> Iterator[BoardMeasure]:
        """Yield what is of keys alone, and of all columns."""
        labels, of_keys = self.frame.index, ", ".join(keys)
        common = [name for name in self.frame.columns if name in self.release.columns]
        codes = [
            self.exact.get(name) or _pair(shared_codes([self.frame[name], self.release[name]]))
            for name in common
        ]
        for found in unique_measures(Cells.of(*joint_codes(codes)), all_columns=True):
            yield found.labelled("all columns", labels)
        for found in unique_measures(self._cells(keys)):
            yield found.labelled(of_keys, labels)
        everything = ", ".join(self.names)
        yield univariate(self.exact, self.numbers).labelled(everything, labels)
        yield from self._multivariate(keys)

    def _multivariate(self, keys: Sequence[str]) -> Iterator[BoardMeasure]:
        if not self._can_be_sorted(keys):
            return
        numbers = [self.numbers[name] for name in keys if name in self.numbers]
        levels = [self.exact[name] for name in keys if name not in self.numbers]
        cells = joint_codes(levels) if levels else [
            np.zeros(len(one), dtype=np.int64) for one in (self.frame, self.release)
        ]  # fmt: skip
        found = multivariate((cells[0], cells[1]), numbers)
        yield found.labelled(", ".join(keys), self.frame.index)

    def by_target(self, keys: Sequence[str], target: str) -> Iterator[BoardMeasure]:
        """Yield what keys disclose of a target."""
        of = f"{', '.join(keys)} → {target}"
        for found in attribution_measures(self._cells(keys), self.codes[target]):
            yield found.labelled(of, self.frame.index)

    def by_rows(
        self, keys: Sequence[str], targets: Sequence[str], n_neighbours: int, seed: int
    ) -> Iterator[BoardMeasure]:
        """Yield what nearest rows tell."""
        n, n_rows = len(self.frame), len(self.release)
        labels, rng = self.frame.index, stream(seed, "audit")
        most = int(max(_LEAST_TRIED, _WORK / ((n + n_rows) * len(self.names))))
        tried = np.arange(n, dtype=np.int64)
        if n > most:
            tried = np.sort(rng.choice(n, most, replace=False)).astype(np.int64)
        if targets:
            parts = (self._mixed(keys), self._mixed(targets))
            of = f"{', '.join(keys)} with {', '.join(targets)}"
            yield linkability(parts, tried, n_neighbours, rng).labelled(of, labels)
        for found in nearest_measures(*self._mixed(self.names), tried):
            yield found.labelled(", ".join(self.names), labels)

    def _mixed(self, names: Sequence[str]) -> tuple[Mixed, Mixed]:
        """Return both files as rows between which there is a distance."""
        return _pair(mixed_rows(files_of(self.frame, [self.release]), names))


def _pair(values: Sequence[Any]) -> tuple[Any, Any]:
    return values[0], values[1]


def _edges(values: FloatArray, bins: int | tuple[float, ...] | None) -> tuple[float, ...] | None:
    """Return the edges between bins; None where numbers stay as they are."""
    if bins is None or isinstance(bins, tuple):
        return bins
    known = np.unique(values[~np.isnan(values)])
    if len(known) <= bins:
        return None
    shares = np.arange(1, bins) / bins
    edges = np.unique(np.quantile(values[~np.isnan(values)], shares))
    return tuple(float(edge) for edge in edges)


def _cut(columns: tuple[FloatArray, FloatArray], edges: Sequence[float]) -> tuple[Any, Any]:
    return _pair(
        [
            np.where(np.isnan(own), -1, np.searchsorted(edges, own, side="right")).astype(np.int64)
            for own in columns
        ]
    )
