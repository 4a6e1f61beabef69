"""Folders of Parquet files, read as one table, a few rows at a time.

What a file unpacks to is counted before it is there: texts are read as they are stored, each once,
and a file that stands for far more rows than it has room for is taken for a bomb. Parts hold the
same columns, and do not change while they are read.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from synrisk.base.chunks import ROWS
from synrisk.base.errors import DataError, FileError
from synrisk.data.column_names import refuse_duplicate_names, refuse_numbers_as_names
from synrisk.data.output_files import KnownFile
from synrisk.data.unpacking import COPIES_OF_TEXT, Attempt, Meter, refuse_beyond_memory

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_Piece = TypeVar("_Piece")

ROWS_READ = 16 * ROWS  # at a time
_ENDINGS = (".parquet", ".pq")
_HIDDEN = (".", "_")  # how names begin of files that are none of a table
_NOT_PARQUET = "cannot be read as Parquet; is it whole, and like the other parts?"
_NOTHING = "null"  # pyarrow's word for a column that holds gaps alone
_BYTES = 8  # of a number
_LONGEST_TEXT = 4_000  # bytes
_DENSEST_ROWS = 1_000  # bytes of memory for one of a file: no table that anybody collected is so
_DENSEST_GROUP = 100  # bytes, encoded but not packed, for one of a file


class ParquetFolder:
    """The files of a folder as one table.

    Parameters
    ----------
    folder
        Where they are; hidden files and those that begin with "_" are none of them.
    what
        What it is, for messages.
    """

    def __init__(self, folder: Path, what: str) -> None:
        self._here = f"{what}: {folder.name or folder}"
        self._files = [KnownFile.found(path, self._here) for path in _paths_in(folder, self._here)]
        self._types = dict(self._fields(self._files[0]))
        numeric = [name for name, kind in self._types.items() if holds_numbers(kind)]
        refuse_numbers_as_names(numeric, self._here)

    @property
    def names(self) -> list[str]:
        """The columns of the first file."""
        return list(self._types)

    @property
    def n_rows(self) -> int | None:
        """How many rows the files say that they have; None where one does not."""
        from pyarrow import parquet

        with Attempt(self._here):
            told = [parquet.read_metadata(file.path) for file in self._files]
            return sum(int(one.num_rows) for one in told)
        return None

    def _here_of(self, file: KnownFile) -> str:
        return f"{self._here}/{file.path.name}"

    def _fields(self, file: KnownFile) -> list[tuple[str, Any]]:
        from pyarrow import parquet

        attempt, fields = Attempt(self._here_of(file)), None
        with attempt:
            schema = parquet.read_schema(file.path)
            fields = list(zip(schema.names, schema.types, strict=True))
        if fields is None:
            raise attempt.refusal(_NOT_PARQUET)
        refuse_duplicate_names([name for name, _ in fields], self._here)
        return fields

    def parts(self, wanted: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Yield frames of some columns, in the order of the files."""
        for name in wanted:
            _refuse_nested(name, self._types[name], self._here)
        frames = (to_frame(table) for table in _joined(self._read(wanted)))
        yield from attempted(frames, self._here)

    def _read(self, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all files, and count those that take far more room than their file."""
        dense = Meter(self._here)
        for file in self._files:
            file.refuse_changed(self._here)
            n_bytes, most = 0, _DENSEST_ROWS * file.n_bytes
            for batch in attempted(self._batches(file, wanted), self._here_of(file)):
                n_bytes += _BYTES * len(wanted) * batch.num_rows
                _count(dense, n_bytes, most)
                yield batch
            if n_bytes > most:
                dense.add(n_bytes)
            file.refuse_changed(self._here)

    def _batches(self, file: KnownFile, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield rows of one file, each text of a batch counted before there is a copy a row."""
        from pyarrow import parquet

        # A text that nearly all rows have is in a file once, and as often as there are rows after.
        texts = [name for name in wanted if _is_text(self._types[name])]
        with parquet.ParquetFile(file.path) as opened:
            told = opened.metadata
            self._refuse_other_fields(file, opened.schema_arrow, wanted)
        with parquet.ParquetFile(file.path, metadata=told, read_dictionary=texts) as opened:
            meter = Meter(self._here)
            n_bytes = _BYTES * len(wanted) * told.num_rows
            _count(meter, n_bytes, _DENSEST_ROWS * file.n_bytes)
            for k in range(told.num_row_groups):
                n_encoded = told.row_group(k).total_byte_size
                _count(meter, n_encoded, _DENSEST_GROUP * file.n_bytes)
                refuse_beyond_memory(f"{self._here_of(file)}, row group {k + 1}", n_encoded)
                batches = opened.iter_batches(
                    ROWS_READ, [k], list(wanted), use_threads=told.row_group(k).num_rows > ROWS
                )
                for batch in batches:
                    yield self._plain(batch.select(list(wanted)), texts)

    def _refuse_other_fields(
        self, file: KnownFile, schema: pa.Schema, wanted: Sequence[str]
    ) -> None:
        """Raise where a file has not the columns of the first one, of types like those."""
        here = self._here_of(file)
        for name in wanted:
            n = len(schema.get_all_field_indices(name))
            if n != 1:
                how = "has no column" if n == 0 else "has more than one column"
                raise DataError(f"{here} {how} {name!r}; its parts must have the same columns.")
            own, first = schema.field(name).type, self._types[name]
            if own != first and _kind(own) not in (_kind(first), _NOTHING):
                raise DataError(
                    f"{here} has {name!r} as {_kind(own)}, and the first part as {_kind(first)}; "
                    "store the column in one way."
                )

    def _plain(self, batch: pa.RecordBatch, texts: Sequence[str]) -> pa.RecordBatch:
        """Return rows with texts as texts, and numbers of the types of the first file."""
        import pyarrow as pa

        meter, columns = Meter(self._here), []
        meter.add(batch.nbytes)
        refuse_long_texts(batch, self._here)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kind = self._types[name]
            if name in texts and pa.types.is_dictionary(column.type):
                meter.add(COPIES_OF_TEXT * _length(column))
                column = column.dictionary_decode()
                column.validate(full=True)
            is_cast = column.type != kind and _kind(kind) not in ("text", "categories")
            columns.append(column.cast(kind) if is_cast else column)
        fields = [
            pa.field(name, column.type)
            for name, column in zip(batch.schema.names, columns, strict=True)
        ]
        return pa.record_batch(columns, pa.schema(fields, batch.schema.metadata))


def attempted(pieces: Iterator[_Piece], here: str) -> Iterator[_Piece]:
    """Yield what is read; raise where it cannot be, without the words of who tried."""
    attempt = Attempt(here)
    while True:
        piece = None
        with attempt:
            piece = next(pieces, None)
            if piece is None:
                return
        if piece is None:
            raise attempt.refusal(_NOT_PARQUET)
        yield piece


def to_frame(table: pa.Table | pa.RecordBatch) -> pd.DataFrame:
    """Return rows as pandas has them; what was an index there is a column as any other."""
    frame: pd.DataFrame = table.to_pandas()
    if list(frame.columns) != table.schema.names:
        frame = table.to_pandas(ignore_metadata=True)
    return frame


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of several batches where these are small: a frame takes as long as many rows."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    n_rows = 0  # that wait
    for batch in batches:
        # Categories of parts are compared, which takes a frame each.
        is_alone = any(map(pa.types.is_dictionary, batch.schema.types))
        is_like = waiting and not is_alone and batch.schema.equals(waiting[0].schema)
        if waiting and not (is_like and n_rows + len(batch) <= ROWS_READ):
            yield pa.Table.from_batches(waiting)
            waiting, n_rows = [], 0
        waiting.append(batch)
        n_rows += len(batch)
    if waiting:
        yield pa.Table.from_batches(waiting)


def parquet_files(folder: Path) -> list[Path]:
    """Return the files of a table in a folder, in the order of the numbers in their names."""
    files = (path for path in folder.iterdir() if path.suffix.lower() in _ENDINGS)
    shown = [path for path in files if not path.name.startswith(_HIDDEN)]
    return sorted(shown, key=lambda path: (_by_number(path), path.name))


def _paths_in(folder: Path, here: str) -> list[Path]:
    """Return the files of a folder in their order; raise where some would be left out."""
    problem, paths, has_more = "", [], False
    try:
        paths = parquet_files(folder)
        others = (path for path in folder.iterdir() if not path.name.startswith(_HIDDEN))
        folders = [path for path in others if stat.S_ISDIR(path.lstat().st_mode)]
        has_more = any(_holds_parquet(path) for path in folders if path not in paths)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else type(error).__name__
    if problem:
        raise FileError(f"{here} cannot be read: {problem}.")
    if has_more:
        raise FileError(
            f"{here} has files of Parquet in folders within it, which would be left out; name a "
            "folder that holds all files itself."
        )
    if not paths:
        raise FileError(f"{here} is a folder without files of Parquet (.parquet); name a file.")
    return paths


def _holds_parquet(folder: Path) -> bool:
    return "=" in folder.name or bool(parquet_files(folder))


def _by_number(path: Path) -> list[tuple[int, str]]:
    """Return by what files are put in order: part.10 comes after part.9."""
    return [
        (int(word or -1), "") if word.isdecimal() else (-1, word)
        for word in re.split(r"(\d+)", path.name)
    ]


def _count(meter: Meter, n_bytes: int, most: int) -> None:
    """Raise where a file stands for too much, and for far more than it has room for."""
    if n_bytes > most:
        meter.foresee(n_bytes)


def check_texts_of(dataset: Any, wanted: Sequence[str], here: str) -> None:
    """Raise where a text in the files of a dataset, which may hold each once, is too long.

    A filtered dataset does not tell its files: its texts are looked at once they are read.
    """
    from pyarrow import dataset as ds

    for name in wanted:
        _refuse_nested(name, dataset.schema.field(name).type, here)
    texts = [name for name in wanted if _is_text(dataset.schema.field(name).type)]
    as_stored = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(dictionary_columns=texts))
    fragments: list[Any] = []
    with contextlib.suppress(ValueError):  # of a filtered one
        fragments = list(dataset.get_fragments()) if texts else []
    for fragment in fragments:
        if not isinstance(fragment, ds.ParquetFileFragment):
            continue
        source = fragment.path if fragment.buffer is None else fragment.buffer
        stored = as_stored.make_fragment(source, fragment.filesystem)
        own = [name for name in texts if name in stored.physical_schema.names]
        for batch in stored.to_batches(columns=own, batch_size=ROWS_READ, batch_readahead=1):
            refuse_long_texts(batch, here)


def refuse_long_texts(batch: pa.RecordBatch, here: str) -> None:
    """Raise where a text is longer than any level is called: each may be copied to every row."""
    from pyarrow import compute, types

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        texts = column.dictionary if types.is_dictionary(column.type) else column
        if not _is_text(texts.type):
            continue
        longest = compute.max(compute.binary_length(texts)).as_py() or 0
        if longest > _LONGEST_TEXT:
            raise DataError(
                f"{here}: column {name!r} holds texts of more than {_LONGEST_TEXT:,} bytes, and no "
                "level of a factor is called so. Leave it out of the formulas."
            )


def _length(column: Any) -> int:
    """Return how many bytes the texts of a column have, each of which may be stored once."""
    from pyarrow import compute

    lengths = compute.binary_length(column.dictionary)
    return int(compute.sum(lengths.take(column.indices).cast("int64")).as_py() or 0)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    is_unicode = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(is_unicode or _is_binary(kind))


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _refuse_nested(name: str, kind: Any, here: str) -> None:
    """Raise for columns of which a few bytes may hold any number of values."""
    import pyarrow as pa

    types = pa.types
    if types.is_nested(kind) or types.is_fixed_size_binary(kind) or hasattr(kind, "storage_type"):
        raise DataError(f"{here}: column {name!r} holds lists or other nested values.")


def holds_numbers(kind: Any) -> bool:
    """Tell whether a type of pyarrow is one of numbers."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _kind(kind: Any) -> str:
    """Return what types of a column in different files have in common."""
    import pyarrow as pa

    types = pa.types
    if holds_numbers(kind):
        return "numbers"
    if _is_text(kind) and not _is_binary(kind):
        return "text"
    if types.is_dictionary(kind):
        return "categories"
    if types.is_boolean(kind):
        return "true and false"
    return "dates" if types.is_temporal(kind) else str(kind)
