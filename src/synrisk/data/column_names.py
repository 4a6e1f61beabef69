"""Whether the first line of a file holds names or a record.

A record that is taken for names would stand in every message that lists columns. So each cell is
held against the values below it. A number above numbers, a date above dates, a text that is found
again among its column's values or is numbered as they are: these may be values. A text above
numbers, or one that is missing among a column's few values, is a name. A line with more of the
former than of the latter is no line of names, nor is one with several of the former, a text that is
found again among them: half a line may be lost. Text above texts that all differ says nothing, so a
table that holds nothing else passes.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from synrisk.base.errors import DataError, FileError, SynriskError, counted, listed

MISSING_MARKS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
_AMOUNT = r"(\d+\.?\d*|\.\d+|\d{1,3}(,\d{3})+(\.\d*)?|\d+,\d+)"
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_KINDS = {
    "number": re.compile(rf"[-+]?{_AMOUNT}([eE][-+]?\d+)?"),
    "date": re.compile(
        r"\d{4}([-/.])\d\d?\1\d\d?([T ].*)?|\d\d?([-/.])\d\d?\3(\d{4}|\d\d)([T ].*)?"
        rf"|\d\d?[-. ]*{_MONTH}[-. ]*(\d{{4}}|\d\d)"
    ),
    "time": re.compile(r"\d\d?:\d\d(:\d\d(\.\d+)?)?"),
    "address": re.compile(r"\S+@\S+\.\w+"),
    "price": re.compile(rf"[-+]?[$€£]\s?{_AMOUNT}|[-+]?{_AMOUNT}\s?[%$€£]"),
}
_TEXT = "text"
_NAMES_TOO = (_TEXT, "price")  # 2.5% is the name of a quantile
_WHOLE = re.compile(r"\d+")
_YEAR = re.compile(r"(18|19|20)\d\d")
_DIGITS = re.compile(r"\d+")
_NEARLY_ALL = 0.9  # of a column's values are of its kind; a few may be badly written
_FEW, _LEAST_ROWS = 0.2, 10  # values by row, in so many rows: each value is found again


class _Cell(enum.Enum):
    """What a cell of the first line is, seen beside the values below it."""

    NAME = enum.auto()
    EITHER = enum.auto()
    LIKE_VALUES = enum.auto()
    FOUND_AGAIN = enum.auto()
    SURELY_VALUE = enum.auto()


def refuse_duplicate_names(names: Sequence[str], what: str) -> None:
    """Raise if two columns have one name."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(f"{what}: more than one column is called {listed(twice)}.")


def refuse_numbers_as_names(
    numeric: Iterable[str], what: str, error: type[SynriskError] = DataError
) -> None:
    """Raise if columns of numbers are called by numbers with decimals or signs: a record's values.

    Whoever reads a file without a line of names as if it had one gets such a table; its names would
    stand in messages.

    Parameters
    ----------
    numeric
        The names of columns that hold numbers.
    what
        The table, for messages.
    error
        What to raise.
    """
    n = sum(is_number(name.strip()) and _is_never_a_name(name.strip()) for name in numeric)
    if n:
        raise error(
            f"{what}: the names of {counted(n, 'column')} are numbers with decimals or signs above "
            "numbers: is the first record taken for names? Read the table again without a line of "
            "names (header=None), or give its columns other names."
        )


def refuse_record(header: Sequence[str], rows: Sequence[Sequence[str]], here: str) -> None:
    """Raise if the first line of a file is a record, without showing it.

    Parameters
    ----------
    header
        The cells of the first line.
    rows
        Those of some lines below it, one at least, as many in each line.
    here
        The file, for messages.
    """
    cells = [cell.strip() for cell in header]
    if not any(cells):
        raise FileError(f"{here}: its first line holds no column names; all cells are empty.")
    if any("\0" in cell for cell in cells):
        raise FileError(f"{here}: its first line holds bytes that are no text. Is it damaged?")
    n_odd = sum(_kind(cell) not in _NAMES_TOO for cell in cells)
    counts = Counter(
        _judge(cell, [value.strip() for value in column])
        for cell, column in zip(cells, zip(*rows, strict=True), strict=True)
    )
    n_found, n_sure = counts[_Cell.FOUND_AGAIN], counts[_Cell.SURELY_VALUE]
    n_values = counts[_Cell.LIKE_VALUES] + n_found + n_sure
    is_mostly = n_values > counts[_Cell.NAME] or n_odd > len(cells) / 2
    if n_sure or is_mostly or (n_found and n_values > 1):
        raise FileError(
            f"{here}: its first line does not hold column names ({max(n_odd, n_values)} of "
            f"{len(cells)} cells are numbers or dates, or like the values below them). Add a line "
            "of names; names that are numbers or dates, such as years, must be changed."
        )


def is_number(cell: str) -> bool:
    """Tell whether a cell holds a number and nothing else."""
    return _KINDS["number"].fullmatch(cell) is not None


def _judge(cell: str, column: Sequence[str]) -> _Cell:
    """Tell a name from a value, by the values of its column."""
    kind = _kind(cell)
    values = [value for value in column if value not in MISSING_MARKS]
    if cell in MISSING_MARKS or not values:
        return _Cell.EITHER
    common = _common_kind(values)
    if common == _TEXT:
        return _judge_text(cell, values)
    if kind == _TEXT:
        return _Cell.NAME
    if kind != common or (_YEAR.fullmatch(cell) and not all(map(_YEAR.fullmatch, values))):
        return _Cell.EITHER  # dates and years above other numbers: a column for each year
    return _Cell.SURELY_VALUE if _is_never_a_name(cell) else _Cell.LIKE_VALUES


def _judge_text(cell: str, values: Sequence[str]) -> _Cell:
    """Tell a name from a value of a column that holds text."""
    distinct = set(values)
    if cell in distinct:  # a box that is ticked bears its own name, and there is no other value
        return _Cell.FOUND_AGAIN if len(distinct) > 1 else _Cell.EITHER
    numbered = {_DIGITS.sub("0", value) for value in distinct}
    if len(numbered) == 1 and numbered != distinct:  # PID700001, PID700002, …
        return _Cell.LIKE_VALUES if _DIGITS.sub("0", cell) in numbered else _Cell.NAME
    if _is_never_a_name(cell):
        return _Cell.LIKE_VALUES
    is_found_again = len(values) >= _LEAST_ROWS and len(distinct) <= _FEW * len(values)
    return _Cell.NAME if is_found_again else _Cell.EITHER


def _kind(cell: str) -> str:
    return next((kind for kind, form in _KINDS.items() if form.fullmatch(cell)), _TEXT)


def _is_never_a_name(cell: str) -> bool:
    """Tell whether a cell is a number with decimals or a sign, a date, a time or an address."""
    return _kind(cell) not in _NAMES_TOO and not _WHOLE.fullmatch(cell)


def _common_kind(values: Sequence[str]) -> str:
    (kind, n), *_ = Counter(map(_kind, values)).most_common(1)
    return kind if n >= _NEARLY_ALL * len(values) else _TEXT
