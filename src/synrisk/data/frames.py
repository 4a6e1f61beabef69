"""Tables in: frames of any library that narwhals knows, files of CSV, Parquet and R, as pandas."""

from __future__ import annotations

import contextlib
import csv
import gzip
import os
import re
import warnings
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import narwhals as nw
import pandas as pd

from synrisk.base.errors import DataError, FileError, SynriskError, counted, listed
from synrisk.base.messages import either
from synrisk.data.r_files import read_r

# A frame of any library that narwhals knows, a mapping of columns, or the path of a file.
TableLike: TypeAlias = Any

_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
# From 3.1 on pandas reads numbers to the last bit, and deprecates being asked to.
_PRECISION: Literal["round_trip"] | None = None if _PANDAS >= (3, 1) else "round_trip"

MISSING_MARKS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_VALUE = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|\d{4}-\d\d-\d\d.*")
_PARQUET = (".parquet", ".pq")
_OF_R = (".rds", ".rdata", ".rda")
_INSTEAD = either("Read it yourself and pass the frame.", "Save it as one of these.")
_WITH_COMMAS = either(
    "Save it with commas (in R by write.csv, not write.csv2), or read it yourself and pass the "
    "frame.",
    "Save it with commas (in R by write.csv, not write.csv2).",
)


def read_table(
    source: TableLike,
    what: str,
    *,
    text: Mapping[str, Collection[str]] | None = None,
    comment: str | None = None,
    error: type[SynriskError] = DataError,
) -> pd.DataFrame:
    """Return `source` as a pandas frame.

    Parameters
    ----------
    source
        A frame (pandas, polars, pyarrow, … or a mapping of columns), or the path of a CSV, TSV or
        Parquet file, or of one that R saved (RDS, RData; the extra ``r``).
    what
        What the table is, for messages: ``"the confidential data"``.
    text
        Columns of a CSV file to be read as text ("01234" stays as it is), each with the marks that
        are values there although they usually mean "missing" (a level called "NA").
    comment
        The character that begins a comment in a CSV file (CmdStan writes such lines).
    error
        What to raise where `source` is no table.
    """
    if isinstance(source, str | os.PathLike):
        frame = _read_file(Path(source), what, text or {}, comment)
    elif isinstance(source, pd.DataFrame):
        frame = own_copy(source)
    elif isinstance(source, Mapping):
        frame = _from_mapping(source, what, error)
    else:
        frame = _from_any_frame(source, what, error)
    if not all(isinstance(name, str) for name in frame.columns):
        frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    _refuse_duplicate_names(list(frame.columns), what)
    return frame


def own_copy(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy that later changes of `frame` do not reach, nor its changes `frame`.

    From version 3 on pandas copies on write, so that a shallow copy is one.
    """
    return frame.copy(deep=_PANDAS < (3, 0))


def _from_mapping(source: Mapping[str, Any], what: str, error: type[SynriskError]) -> pd.DataFrame:
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        return pd.DataFrame(dict(source))
    raise error(f"{what}: a mapping must hold columns of one length.")


def _from_any_frame(source: Any, what: str, error: type[SynriskError]) -> pd.DataFrame:
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        frame = nw.from_native(source)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        # The order of such a column's levels is that of their first appearance: nobody chose it.
        unordered = [name for name, kind in frame.schema.items() if kind == nw.Categorical]
        frame = frame.with_columns(nw.col(unordered).cast(nw.String)) if unordered else frame
        return pd.DataFrame(frame.to_pandas())
    raise error(
        f"{what}: expected a data frame (pandas, polars, pyarrow, …), a mapping of columns, or the "
        f"path of a CSV or Parquet file; got {type(source).__name__}."
    )


def _read_file(
    path: Path, what: str, text: Mapping[str, Collection[str]], comment: str | None
) -> pd.DataFrame:
    is_file = False
    with contextlib.suppress(OSError, ValueError):  # such as a name that is too long
        is_file = path.is_file()
    if not is_file:
        raise FileError(f"{what}: there is no file {str(path)[:200]}.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    )
    if kind in _PARQUET:
        return _read_parquet(path, what)
    if kind in _OF_R:
        return read_r(path, what)
    if kind in _SEPARATORS:
        return _read_csv(path, what, _SEPARATORS[kind], text, comment)
    raise FileError(
        f"{what}: {path.name} is neither CSV (.csv, .tsv, also .gz), Parquet (.parquet, .pq) nor "
        f"a file of R (.rds, .RData). {_INSTEAD}"
    )


def _read_parquet(path: Path, what: str) -> pd.DataFrame:
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        return pd.read_parquet(path, engine="pyarrow")
    raise FileError(f"{what}: {path.name} cannot be read as Parquet; is it whole?")


def _read_csv(
    path: Path, what: str, separator: str, text: Mapping[str, Collection[str]], comment: str | None
) -> pd.DataFrame:
    header = _header(path, what, separator, comment)
    n_values = sum(bool(_VALUE.fullmatch(name.strip())) for name in header)
    if n_values > len(header) / 2:
        raise FileError(
            f"{what}: the first line of {path.name} does not hold column names "
            f"({n_values} of {len(header)} are numbers or dates). Add a line of names; "
            "names that are numbers or dates, such as years, must be changed."
        )
    _refuse_duplicate_names([name for name in header if name], what)
    if len(header) == 1 and ";" in header[0]:
        raise FileError(
            f"{what}: {path.name} has one column whose name holds semicolons; it seems to be "
            f"separated by ';'. {_WITH_COMMAS}"
        )
    marks = {
        name: [mark for mark in MISSING_MARKS if mark not in text.get(name, ())] for name in header
    }
    # Not chained: its message may hold values.
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("error")  # pandas warns where rows are longer than the header
        return pd.read_csv(
            path,
            sep=separator,
            encoding="utf-8-sig",
            comment=comment,
            dtype=dict.fromkeys((name for name in text if name in header), "str"),
            keep_default_na=False,
            na_values=marks,
            low_memory=False,
            index_col=False,
            float_precision=_PRECISION,
        )
    raise FileError(
        f"{what}: {path.name} cannot be read as CSV: its rows do not all have the header's "
        f"{counted(len(header), 'column')}, or it is not UTF-8."
    )


def _header(path: Path, what: str, separator: str, comment: str | None) -> list[str]:
    header: list[str] | None = None
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
            rows = csv.reader(
                (line for line in lines if not (comment and line.startswith(comment))),
                delimiter=separator,
            )
            header = next((row for row in rows if row), None)
    except (OSError, UnicodeDecodeError, csv.Error, EOFError):
        header = []
    if header is None:
        raise FileError(f"{what}: {path.name} is empty.")
    if not header:
        raise FileError(f"{what}: {path.name} cannot be read as UTF-8 text.")
    return header


def _refuse_duplicate_names(names: list[str], what: str) -> None:
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(f"{what}: more than one column is called {listed(twice)}.")
