"""Tables in: frames of any library that narwhals knows, files of CSV, Parquet and R, as pandas."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import pandas as pd

from synrisk.base.errors import DataError, FileError, SynriskError
from synrisk.base.messages import either
from synrisk.data.column_names import refuse_duplicate_names
from synrisk.data.csv_files import read_csv
from synrisk.data.r_files import read_r
from synrisk.data.unpacking import Attempt, Meter

# A frame of any library that narwhals knows, a mapping of columns, or the path of a file.
TableLike: TypeAlias = Any

_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_BYTES_A_CELL = 16  # of memory: eight in pyarrow, and eight in pandas
_OF_R = (".rds", ".rdata", ".rda")
_INSTEAD = either("Read it yourself and pass the frame.", "Save it as one of these.")


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

    Notes
    -----
    A packed file (CSV by gzip, R, Parquet) that would take more than 2 GiB of memory is refused;
    the environment variable ``SYNRISK_MOST_BYTES`` sets another limit.
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
    refuse_duplicate_names(list(frame.columns), what)
    return frame


def own_copy(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy that later changes of `frame` do not reach, nor its changes `frame`.

    From version 3 on pandas copies on write, so that a shallow copy is one.
    """
    return frame.copy(deep=_PANDAS < (3, 0))


def _from_mapping(source: Mapping[str, Any], what: str, error: type[SynriskError]) -> pd.DataFrame:
    attempt = Attempt(f"{what}:")
    with attempt:
        return pd.DataFrame(dict(source))
    raise attempt.refusal("a mapping must hold columns of one length.", error)


def _from_any_frame(source: Any, what: str, error: type[SynriskError]) -> pd.DataFrame:
    attempt = Attempt(f"{what}:")
    with attempt:
        frame = nw.from_native(source)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        # The order of such a column's levels is that of their first appearance: nobody chose it.
        unordered = [name for name, kind in frame.schema.items() if kind == nw.Categorical]
        frame = frame.with_columns(nw.col(unordered).cast(nw.String)) if unordered else frame
        return pd.DataFrame(frame.to_pandas())
    raise attempt.refusal(
        "expected a data frame (pandas, polars, pyarrow, …), a mapping of columns, or the path of "
        f"a CSV or Parquet file; got {type(source).__name__}.",
        error,
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
        return read_csv(path, what, _SEPARATORS[kind], text, comment)
    raise FileError(
        f"{what}: {path.name} is neither CSV (.csv, .tsv, also .gz), Parquet (.parquet, .pq) nor "
        f"a file of R (.rds, .RData). {_INSTEAD}"
    )


def _read_parquet(path: Path, what: str) -> pd.DataFrame:
    here = f"{what}: {path.name}"
    attempt = Attempt(here)
    with attempt:
        Meter(here).add(_bytes_of_parquet(path))
        return pd.read_parquet(path, engine="pyarrow")
    raise attempt.refusal("cannot be read as Parquet; is it whole?")


def _bytes_of_parquet(path: Path) -> int:
    """Return the memory that a file of Parquet will take, about; equal values are packed in it."""
    from pyarrow import parquet

    told = parquet.read_metadata(path)
    n_packed = sum(told.row_group(k).total_byte_size for k in range(told.num_row_groups))
    return int(_BYTES_A_CELL * told.num_rows * told.num_columns + n_packed)
