"""Tables in, as pandas: frames of any library that narwhals knows, and files of many kinds."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import narwhals as nw
import pandas as pd

from synrisk.base.errors import DataError, FileError, SynriskError
from synrisk.base.messages import either
from synrisk.data.column_names import refuse_duplicate_names, refuse_numbers_as_names
from synrisk.data.csv_files import read_csv
from synrisk.data.r_files import read_r
from synrisk.data.survey_files import SURVEY_FILES, read_survey_file
from synrisk.data.unpacking import COPIES_OF_TEXT, Attempt, Meter

# A frame of any library that narwhals knows, a mapping of columns, or the path of a file.
TableLike: TypeAlias = Any

_PANDAS = tuple(int(part) for part in pd.__version__.split(".")[:2])
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_BYTES_A_CELL = 16  # of memory: eight in pyarrow, and eight in pandas
_LITTLE_TEXT = 2**26  # bytes; of more it is looked at how much it is
_OF_R = (".rds", ".rdata", ".rda")
_LONGEST_PATH = 400
_PATH = re.compile(r"[^\n\r\t;|,\"{}<>]+")
_WHOLE_TEXT = re.compile("[^\ud800-\udfff]*")
_BROKEN = "holds half of a surrogate pair, which is no Unicode text"
_NO_TEXT = "The text of a table is not taken: save it to a file, or pass a frame."
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
        Parquet file, or of one that R saved (RDS, RData; the extra ``r``), SPSS, SAS or Stata (the
        extra ``survey``).
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
    numeric = frame.dtypes.index[[kind.kind in "fiu" for kind in frame.dtypes]]
    refuse_numbers_as_names([name for name in numeric if isinstance(name, str)], what, error)
    if not all(isinstance(name, str) for name in frame.columns):
        frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    refuse_duplicate_names(list(frame.columns), what)
    _refuse_broken_text(frame, what)
    return frame


def _refuse_broken_text(frame: pd.DataFrame, what: str) -> None:
    """Raise where a name or a value is no Unicode text: no file and no other library takes it."""
    for k, (name, kind) in enumerate(zip(frame.columns, frame.dtypes, strict=True), 1):
        if _is_broken([name]):
            raise DataError(f"{what}: the name of column {k} {_BROKEN}. Rename it.")
        values = kind.categories if isinstance(kind, pd.CategoricalDtype) else frame[name]
        if values.dtype == object and _is_broken(values):
            raise DataError(f"{what}: column {name!r} {_BROKEN}. Replace it, or drop the column.")


def _is_broken(values: Iterable[Any]) -> bool:
    return not _WHOLE_TEXT.fullmatch("".join(v for v in values if isinstance(v, str)))


def with_columns(frame: pd.DataFrame, columns: Mapping[Any, Any]) -> pd.DataFrame:
    """Return a table with some columns replaced; `assign` does not take one that is called self."""
    if not columns:
        return frame
    found = frame.copy()
    for name, column in columns.items():
        found[name] = column
    return found


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
        named = str(path)
        if len(named) > _LONGEST_PATH or not _PATH.fullmatch(named):  # it may be the data
            raise FileError(
                f"{what}: expected the path of a file; got a text that is none. {_NO_TEXT}"
            )
        if os.path.isdir(named):  # noqa: PTH112 - which is False for names that are too long
            raise FileError(f"{what}: {named} is a folder; name a file in it.")
        raise FileError(f"{what}: there is no file {named}.")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else "".join(suffixes[-1:])
    )
    if kind in _PARQUET:
        return _read_parquet(path, what)
    if kind in _OF_R:
        return read_r(path, what)
    if kind in SURVEY_FILES:
        return read_survey_file(path, what)
    if kind in _SEPARATORS:
        return read_csv(path, what, _SEPARATORS[kind], text, comment)
    raise FileError(
        f"{what}: {path.name} is neither CSV (.csv, .tsv, also .gz), Parquet (.parquet, .pq), a "
        "file of R (.rds, .RData), SPSS (.sav, .zsav, .por), SAS (.sas7bdat, .xpt) nor Stata "
        f"(.dta). {_INSTEAD}"
    )


def _read_parquet(path: Path, what: str) -> pd.DataFrame:
    here = f"{what}: {path.name}"
    attempt = Attempt(here)
    with attempt:
        _count_parquet(path, Meter(here))
        frame = pd.read_parquet(path, engine="pyarrow")
        _check_text(frame)
        return frame
    raise attempt.refusal("cannot be read as Parquet; is it whole?")


def _check_text(frame: pd.DataFrame) -> None:
    """Raise where texts are not Unicode: pyarrow takes any bytes, and fails when they are used."""
    import pyarrow as pa

    for name, kind in frame.dtypes.items():
        levels = kind.categories if isinstance(kind, pd.CategoricalDtype) else frame[name]
        if isinstance(levels.dtype, pd.StringDtype):
            pa.array(levels, from_pandas=True).validate(full=True)


def _count_parquet(path: Path, meter: Meter) -> None:
    """Count the memory that a file of Parquet will take, about; equal values are packed in it.

    By its parts: what it says of itself as a whole is not used when it is read, and may be wrong.
    """
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        told = file.metadata
        _begin_parts(file, meter)
    most: dict[str, int] = {}  # bytes of text, if each were as long as all that differ together
    for k in range(told.num_row_groups):
        group = told.row_group(k)
        for column in (group.column(j) for j in range(group.num_columns)):
            n_cells = max(group.num_rows, column.num_values)
            meter.add(_BYTES_A_CELL * n_cells + column.total_uncompressed_size)
            if column.physical_type.endswith("BYTE_ARRAY"):
                name = column.path_in_schema
                most[name] = most.get(name, 0) + n_cells * column.total_uncompressed_size
    plain = told.schema.to_arrow_schema().names  # without texts in lists, which nobody needs
    for name, n_bytes in most.items():
        is_doubtful = n_bytes > _LITTLE_TEXT and name in plain
        meter.add(COPIES_OF_TEXT * (_bytes_of_text(path, name) if is_doubtful else n_bytes))


def _begin_parts(file: Any, meter: Meter) -> None:
    """Read a value of every part: damage that raises here ends the process where pyarrow lists it.

    pyarrow 26 lets an exception of C++ go uncaught where a part's own description is asked for.
    """
    for k in range(file.metadata.num_row_groups):
        meter.foresee(file.metadata.row_group(k).total_byte_size)
        for name in file.schema_arrow.names:
            next(file.iter_batches(1, row_groups=[k], columns=[name], use_threads=False), None)


def _bytes_of_text(path: Path, name: str) -> int:
    """Return how long the texts of a column are together, each of which the file may hold once."""
    from pyarrow import compute, parquet

    n_bytes = 0
    for chunk in parquet.read_table(path, columns=[name], read_dictionary=[name])[0].chunks:
        lengths = compute.binary_length(chunk.dictionary)
        n_bytes += compute.sum(lengths.take(chunk.indices).cast("int64")).as_py() or 0
    return n_bytes
