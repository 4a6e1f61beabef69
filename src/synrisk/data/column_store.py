"""Columns that are larger than memory: a file of numbers each, of which any rows are read.

A store is a folder that its owner alone may enter, with a file of little-endian 64-bit numbers for
every column and, once all rows are there, a list of what it holds. A `StoredColumn` stands where an
array would: it has a length and a type, and a slice of it is an array that is read then. Sent to
another process it is its path.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from synrisk.base.chunks import ROWS
from synrisk.base.errors import FileError
from synrisk.data.output_files import (
    hidden_prefix,
    left_behind,
    open_new,
    try_to_lock,
    write_whole,
)

_CONTENTS = "columns.json"
_TYPES = {"f": "<f8", "i": "<i8"}
_BYTES = 8  # of a number


@dataclass(frozen=True)
class StoredColumn:
    """A column of a store.

    Attributes
    ----------
    path
        Its file.
    type_code
        "<f8" or "<i8", as NumPy names the types of its numbers.
    n_rows
        How many there are.
    """

    path: str
    type_code: str
    n_rows: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its numbers."""
        return np.dtype(self.type_code)

    @property
    def shape(self) -> tuple[int]:
        """The number of rows, as an array has it."""
        return (self.n_rows,)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        """Read some rows."""
        if not isinstance(rows, slice):
            raise TypeError("A stored column is read by slices.")
        start, stop, step = rows.indices(self.n_rows)
        n_wanted = max(0, stop - start)
        problem = ""
        try:
            values = np.fromfile(self.path, self.dtype, n_wanted, offset=_BYTES * start)
            if len(values) == n_wanted:
                return values[::step]
            problem = "it has become shorter"
        except OSError as error:
            problem = error.strerror or type(error).__name__
        raise FileError(f"A column of {Path(self.path).parent} cannot be read: {problem}.")

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """Read the whole column."""
        del copy  # what was read is nobody else's
        values = self[:]
        return values if dtype is None else values.astype(dtype, copy=False)


AnyColumn = npt.NDArray[Any] | StoredColumn


def pieces(column: AnyColumn, n_rows: int = 16 * ROWS) -> Iterator[npt.NDArray[Any]]:
    """Yield a column piece by piece, in memory or not."""
    for start in range(0, len(column), n_rows):
        yield column[start : start + n_rows]


class StoreWriter:
    """Writes the columns of a store, part after part; whole once it is left without an error.

    Parameters
    ----------
    folder
        A new folder, whose parent is there.
    made_from
        What tells the contents from others, such as a digest of the input.
    """

    def __init__(self, folder: Path, made_from: Mapping[str, Any]) -> None:
        self.folder = folder
        self._made_from = dict(made_from)
        self._files: dict[str, BinaryIO] = {}
        self._types: dict[str, str] = {}
        self._n_rows = 0
        self._open = ExitStack()

    def __enter__(self) -> StoreWriter:
        problem = ""
        try:
            self.folder.mkdir(mode=0o700)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"{self.folder} cannot be made: {problem}.")
        return self

    def append(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write the next rows of every column."""
        problem = ""
        try:
            for name, values in columns.items():
                if name not in self._files:
                    self._begin(name, values)
                self._files[name].write(np.ascontiguousarray(values, dtype=self._types[name]).data)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"The columns cannot be written to {self.folder}: {problem}.")
        self._n_rows += len(next(iter(columns.values())))

    def _begin(self, name: str, values: npt.NDArray[Any]) -> None:
        path = self.folder / f"{len(self._files)}.bin"
        number = self._open.enter_context(open_new(path))
        self._open.callback(os.fsync, number)
        file = open(number, "wb", closefd=False)  # noqa: SIM115 - closed by the stack
        self._files[name] = self._open.enter_context(file)
        self._types[name] = _TYPES[values.dtype.kind]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        problem = ""
        try:
            self._open.close()
        except OSError as at_last:  # what was not written until then
            problem = at_last.strerror or type(at_last).__name__
        if kind is None and not problem:
            contents = {
                "n_rows": self._n_rows,
                "columns": [[name, kind] for name, kind in self._types.items()],
                "made_from": self._made_from,
            }
            text = json.dumps(contents, indent=1).encode()
            write_whole(self.folder / _CONTENTS, text, owner_only=True)
        elif kind is None:
            raise FileError(f"The columns cannot be written to {self.folder}: {problem}.")


def open_store(folder: Path, made_from: Mapping[str, Any]) -> dict[str, StoredColumn] | None:
    """Return the columns of a store; None where it is not whole or was made from something else."""
    contents: Any = None
    with contextlib.suppress(OSError, ValueError):
        contents = json.loads((folder / _CONTENTS).read_text(encoding="utf-8"))
    if not isinstance(contents, dict) or contents.get("made_from") != dict(made_from):
        return None
    n_rows = int(contents["n_rows"])
    found = {}
    for k, (name, type_code) in enumerate(contents["columns"]):
        path = folder / f"{k}.bin"
        if type_code not in _TYPES.values() or not _has_size(path, _BYTES * n_rows):
            return None
        found[str(name)] = StoredColumn(str(path.resolve()), type_code, n_rows)
    return found


def stored_columns(folder: Path) -> Any:
    """Return the columns of a store that was written just now, as what takes arrays takes them."""
    columns = open_store(folder, {})
    if columns is None:
        raise FileError(f"The columns in {folder} are no longer there.")
    return columns


def _has_size(path: Path, n_bytes: int) -> bool:
    try:
        return path.stat().st_size == n_bytes
    except OSError:
        return False


class TemporaryFolder:
    """A folder of this process alone, which goes when nobody holds it any more.

    What killed processes left is removed: it may hold records.
    """

    def __init__(self) -> None:
        above = Path(tempfile.gettempdir())
        problem = ""
        try:
            with contextlib.suppress(OSError):
                for path in left_behind(above):
                    if path.is_dir() and not path.is_symlink() and _is_mine(path):
                        _remove_unless_locked(path)
            self.path = Path(tempfile.mkdtemp(prefix=hidden_prefix(), dir=above))  # mode 0700
            number = os.open(self.path, os.O_RDONLY) if os.name == "posix" else -1
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"No temporary folder can be made in {above}: {problem}.")
        if number >= 0:  # held as long as it is there: others may not see that we run
            try_to_lock(number)
        self._end = weakref.finalize(self, _remove, self.path, number)


def _remove(folder: Path, number: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if number >= 0:
        os.close(number)


def _remove_unless_locked(folder: Path) -> None:
    """Remove a folder, unless a process of another machine or container has it."""
    number = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if try_to_lock(number) is not False:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(number)


def _is_mine(folder: Path) -> bool:
    return os.name == "posix" and folder.stat().st_uid == os.getuid()
