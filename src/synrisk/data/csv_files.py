"""Files of CSV in, packed by gzip or not.

pandas reads them. It takes the first line for names whatever that holds, fills up rows that are too
short, and drops the ends of those that are too long; so the lines are looked over before.
"""

from __future__ import annotations

import csv
import io
import itertools
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pandas as pd

from synrisk.base.errors import FileError, counted
from synrisk.base.messages import either
from synrisk.data.column_names import (
    MISSING_MARKS,
    is_number,
    refuse_duplicate_names,
    refuse_record,
)
from synrisk.data.csv_dialects import SEPARATORS, Dialect, FileWarning, encoding_of
from synrisk.data.unpacking import Attempt, Meter, is_packed, open_file, refuse_beyond_memory

_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
# From 3.1 on pandas reads numbers to the last bit, and deprecates being asked to.
_PRECISION: Literal["round_trip"] | None = None if _PANDAS >= (3, 1) else "round_trip"
_N_AT_ONCE = 1_000  # rows; with the first of these the line of names is compared
_BYTES_A_CELL = 24  # of memory, while pandas reads: measured 17 to 26 beside the text itself
_AS_CSV = either(
    "Save it as .csv with commas (in R by write.csv, not write.csv2), or read it yourself and pass "
    "the frame.",
    "Save it as .csv with commas (in R by write.csv, not write.csv2).",
)


@dataclass(frozen=True)
class _Lines:
    """What stands in a file: its first line, some rows, and how many cells each row has."""

    header: list[str]
    rows: list[list[str]]
    n_rows_by_length: Counter[int]

    @property
    def is_even(self) -> bool:
        """Whether all rows have as many cells as the first line."""
        return set(self.n_rows_by_length) == {len(self.header)}

    @property
    def n_cells(self) -> int:
        """How many cells there are below the first line."""
        return sum(length * n_rows for length, n_rows in self.n_rows_by_length.items())


def read_csv(
    path: Path,
    what: str,
    separator: str,
    text: Mapping[str, Collection[str]],
    comment: str | None,
) -> pd.DataFrame:
    """Return the table in a file of CSV.

    Parameters
    ----------
    path
        The file.
    what
        What the table is, for messages.
    separator
        Of cells, by the file's name.
    text
        Columns to be read as text, each with the marks that are values there.
    comment
        The character that begins a comment.
    """
    here = f"{what}: {path.name}"
    dialect, lines = _read_dialect(path, here, separator, comment)
    header = lines.header
    if any("\n" in name or "\r" in name for name in header):
        raise FileError(
            f"{here} has a name that goes on in the next line; is a quotation mark not closed? "
            "Write each name in one line."
        )
    _refuse_other_separator(lines, here, dialect.separator)
    _refuse_other_lengths(lines, here)
    if not is_packed(path):  # else counted as it was unpacked
        refuse_beyond_memory(here, path.stat().st_size + _BYTES_A_CELL * lines.n_cells)
    dialect = dialect.with_marks_of(lines.rows, here)
    refuse_record(dialect.plain(header), [dialect.plain(row) for row in lines.rows], here)
    refuse_duplicate_names([name for name in header if name], what)
    marks = {
        name: [mark for mark in MISSING_MARKS if mark not in text.get(name, ())] for name in header
    }
    attempt, frame = Attempt(here), None
    with attempt, warnings.catch_warnings(), open_file(path) as stream:
        warnings.simplefilter("error")  # pandas warns where rows are longer than the header
        frame = pd.read_csv(
            stream,
            sep=dialect.separator,
            encoding=dialect.encoding,
            decimal=dialect.decimal,
            thousands=dialect.thousands,
            comment=comment,
            dtype=dict.fromkeys((name for name in text if name in header), "str"),
            keep_default_na=False,
            na_values=marks,
            low_memory=False,
            index_col=False,
            float_precision=_PRECISION,
        )
    if frame is None:
        raise attempt.refusal("cannot be read as CSV: is a quotation mark not closed?")
    if told := dialect.told(separator):
        warnings.warn(f"{here} was read as {told}.", FileWarning, stacklevel=2)
    return frame


def _read_dialect(
    path: Path, here: str, separator: str, comment: str | None
) -> tuple[Dialect, _Lines]:
    """Return how a file is written, and what stands in it.

    Where another separator parts the first line and all rows into as many cells, and these are more
    than the usual one makes, that one is meant.
    """
    dialect = Dialect(encoding_of(path, here), separator)
    lines = _look_over(path, here, dialect, comment)
    n_cells = len(lines.header) if lines.is_even else 1
    for other in SEPARATORS:
        if other != separator and any(other in name for name in lines.header):
            parted = replace(dialect, separator=other)
            found = _look_over(path, here, parted, comment)
            if found.is_even and len(found.header) > n_cells:
                dialect, lines, n_cells = parted, found, len(found.header)
    return dialect, lines


def _look_over(path: Path, here: str, dialect: Dialect, comment: str | None) -> _Lines:
    attempt, meter, separator = Attempt(here), Meter(here), dialect.separator
    with attempt, io.TextIOWrapper(open_file(path, meter), dialect.encoding, newline="") as lines:
        held = _without_comments(lines, comment)
        if is_packed(path):
            held = _metered(held, separator, meter)
        rows = csv.reader(held, delimiter=separator)
        header = next(rows, [])
        first = list(itertools.islice(rows, _N_AT_ONCE))
        lengths = Counter(map(len, first))
        for some in _lengths(held, separator):
            lengths.update(some)
        if not header:
            raise FileError(f"{here} is empty.")
        if not first:  # so that nothing tells whether the line is a record
            raise FileError(f"{here} has no rows: it holds a single line.")
        return _Lines(header, first, lengths)
    raise attempt.refusal(
        "cannot be read as CSV: it is no text (UTF-8, UTF-16 or Windows-1252), or a quotation mark "
        "is not closed."
    )


def _lengths(lines: Iterator[str], separator: str) -> Iterator[list[int]]:
    """Yield how many cells the rows have, of some rows at a time."""
    while some := list(itertools.islice(lines, _N_AT_ONCE)):
        if any('"' in line for line in some):  # a cell may hold separators and line ends
            rows = csv.reader(itertools.chain(some, lines), delimiter=separator)
            while lengths := [len(row) for row in itertools.islice(rows, _N_AT_ONCE)]:
                yield lengths
        else:
            yield [line.count(separator) + 1 for line in some]


def _metered(lines: Iterator[str], separator: str, meter: Meter) -> Iterator[str]:
    """Yield lines after the memory for their cells is counted."""
    for line in lines:
        meter.add(_BYTES_A_CELL * (line.count(separator) + 1))
        yield line


def _without_comments(lines: Iterator[str], comment: str | None) -> Iterator[str]:
    """Return the lines that hold something, as pandas sees them."""
    if comment is not None:
        lines = (
            line if '"' in line else line.partition(comment)[0]
            for line in lines
            if not line.startswith(comment)
        )
    return filter(str.strip, lines)


def _refuse_other_separator(lines: _Lines, here: str, separator: str) -> None:
    """Raise if names hold what may separate cells: all of it if there is one, else as much of it.

    Decimal commas part the rows of a file that is separated by tabs into as many cells each, also
    where the first record stands beside the names.
    """
    n_parts = len(lines.header) - 1
    for other, name in SEPARATORS.items():
        n_held = 0 if other == separator else sum(cell.count(other) for cell in lines.header)
        n_rows = sum(any(other in cell for cell in row) for row in lines.rows)
        if n_held and (not n_parts or (n_held >= n_parts and n_rows > len(lines.rows) / 2)):
            which = "names that hold" if n_parts else "one column whose name holds"
            raise FileError(
                f"{here} has {which} {name}; it seems to be separated by {other!r}. {_AS_CSV}"
            )
    if n_parts:
        return
    cell = lines.header[0]
    # Most of them: the names may stand further down.
    if len(cell.split()) > 1 and sum(map(_holds_numbers, lines.rows)) > len(lines.rows) / 2:
        raise FileError(f"{here} seems to be separated by blanks. {_AS_CSV}")


def _holds_numbers(row: list[str]) -> bool:
    """Tell whether a cell holds several numbers among its words, as no text of one column does."""
    return sum(is_number(word) for word in row[0].split()) > 1


def _refuse_other_lengths(lines: _Lines, here: str) -> None:
    """Raise if rows have more or fewer cells than the first line."""
    width, lengths = len(lines.header), lines.n_rows_by_length
    others = [length for length in lengths if length != width]
    if not others:
        return
    n_others = lengths.total() - lengths[width]
    longest = max(others)
    number = f"{longest}" if len(others) == 1 else f"{min(others)} to {longest}"
    is_joined = not lengths[width] and longest <= (width + 1) / 2
    raise FileError(
        f"{here} cannot be read as CSV: its first line has {counted(width, 'column')}, and "
        f"{counted(n_others, 'row')} of {lengths.total():,} {'has' if n_others == 1 else 'have'} "
        f"another number of cells ({number})."
        f"{' Are the names and the first record on one line?' if is_joined else ''}"
    )
