"""Files that synrisk writes and reads back: NetCDF, whole, owner-only, with a checksum.

Names on disk are neutral; users' names and labels are data. Tables travel as Arrow inside the file,
so their types come back. A digest of all bytes stands at the end and is checked before anything is
parsed: a truncated, altered or foreign file is an error, never a guess. Nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.errors import FileError, counted
from synrisk.data.output_files import as_path, target_of, write_whole

FORMAT = 4
_MARK = b"synrisk\x00"
_DIGEST = 32
_BLOCK = 1 << 20


@dataclass(frozen=True, repr=False)
class Contents:
    """What a file holds.

    Attributes
    ----------
    kind
        What was saved.
    meta
        Settings and names, as JSON has them.
    arrays
        Numbers, by neutral names.
    table
        A table with an index.
    """

    kind: str
    meta: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]
    table: pd.DataFrame


def save(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write `contents` to `path`: to a temporary name first, readable by its owner alone."""
    target = target_of(path)
    table = _arrow_bytes(contents.table)
    write_whole(target, lambda made: _save(made, contents, table), owner_only=True)


def _save(path: Path, contents: Contents, table: bytes) -> None:
    _write(str(path), contents, table)
    with path.open("r+b") as file:
        digest = _digest(file, os.fstat(file.fileno()).st_size)
        file.write(_MARK + digest)


def load(path: str | os.PathLike[str], kind: str) -> Contents:
    """Read what `save` wrote, or raise a FileError."""
    source = as_path(path)
    what = f"{source.name!r}"
    _check_whole(source, what)
    contents = None
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        contents = _read(source)
    if contents is None:
        raise FileError(f"{what} cannot be read; it may be of another version of synrisk.")
    if contents.meta.get("format") != FORMAT:
        raise FileError(
            f"{what} has format {contents.meta.get('format')}; this version of synrisk reads "
            f"format {FORMAT}."
        )
    if contents.kind != kind:
        raise FileError(f"{what} holds {contents.kind}, not {kind}.")
    return contents


def _check_whole(source: Path, what: str) -> None:
    try:
        with source.open("rb") as file:
            size = os.fstat(file.fileno()).st_size - len(_MARK) - _DIGEST
            if size > 0:
                file.seek(size)
                trailer = file.read()
                file.seek(0)
                if trailer.startswith(_MARK):
                    if _digest(file, size) == trailer[len(_MARK) :]:
                        return
                    problem = "is damaged: its contents do not match its checksum"
                else:
                    problem = "was not written by synrisk, or is not whole"
            else:
                problem = "was not written by synrisk, or is not whole"
    except OSError:
        problem = "cannot be opened; is there such a file?"
    raise FileError(f"{what} {problem}.")


def _digest(file: Any, size: int) -> bytes:
    digest = hashlib.blake2b(digest_size=_DIGEST)
    while size > 0:
        block = file.read(min(_BLOCK, size))
        digest.update(block)
        size -= len(block)
    return digest.digest()


def _arrow_bytes(table: pd.DataFrame) -> bytes:
    import pyarrow as pa

    bad = []
    for name in table.columns:
        try:
            pa.Array.from_pandas(table[name])
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            bad.append(str(name))
    if bad:
        raise FileError(
            f"{counted(len(bad), 'column holds', 'columns hold')} values of a kind that cannot be "
            f"saved: {', '.join(bad)}. Leave them out of the data."
        )
    arrow = None
    with contextlib.suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
        arrow = pa.Table.from_pandas(table, preserve_index=True)
    if arrow is None:
        raise FileError("The records' labels are of a kind that cannot be saved; use text.")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, arrow.schema) as stream:
        stream.write_table(arrow)
    raw = bytes(sink.getvalue().to_pybytes())
    _check_comes_back(raw, table)
    return raw


def _check_comes_back(raw: bytes, table: pd.DataFrame) -> None:
    """Raise unless the table's values and labels come back as they are."""
    again = None
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        again = _read_table(raw)
    if again is None:
        kinds = sorted({str(kind) for kind in table.dtypes})
        raise FileError(
            f"The data cannot be saved: columns of some of the types {', '.join(kinds)} do not "
            "come back from a file. Make intervals and other odd categories text, .astype(str)."
        )
    bad = [str(name) for name in table.columns if not _equal(table[name], again[name])]
    if bad or not _equal(table.index.to_series(), again.index.to_series()):
        which = f"the columns {', '.join(bad)}" if bad else "the records' labels"
        raise FileError(f"Values of {which} would not come back from a file; make them text.")


def _equal(one: pd.Series[Any], other: pd.Series[Any]) -> bool:
    with contextlib.suppress(Exception):  # arrays of arrays and the like cannot be compared
        left, right = one.astype(object).to_numpy(), other.astype(object).to_numpy()
        missing = one.isna().to_numpy()
        same = np.asarray(left[~missing] == right[~missing], dtype=bool)
        return bool(same.all() and np.array_equal(missing, other.isna().to_numpy()))
    return False


def _read_table(raw: bytes) -> pd.DataFrame:
    import pyarrow as pa

    with pa.ipc.open_stream(raw) as stream:
        return pd.DataFrame(stream.read_all().to_pandas())


def _write(name: str, contents: Contents, table: bytes) -> None:
    import h5netcdf

    meta = {"format": FORMAT, "kind": contents.kind, **contents.meta}
    empty = {key: list(a.shape) for key, a in contents.arrays.items() if a.size == 0}
    text = json.dumps({"meta": meta, "empty": empty}, ensure_ascii=True, allow_nan=False)
    arrays: dict[str, npt.NDArray[Any]] = {
        "meta": np.frombuffer(text.encode(), dtype=np.uint8),
        "table": np.frombuffer(table, dtype=np.uint8),
        **{f"array_{key}": a for key, a in contents.arrays.items() if a.size},
    }
    with h5netcdf.File(name, "w") as file:
        file.attrs["title"] = f"synrisk {contents.kind}"
        for size in sorted({n for array in arrays.values() for n in array.shape}):
            file.dimensions[f"n{size}"] = size
        for key, array in arrays.items():
            stored = array.astype(np.int8) if array.dtype == bool else array
            dimensions = tuple(f"n{n}" for n in array.shape)
            variable = file.create_variable(key, dimensions, stored.dtype, data=stored)
            variable.attrs["logical"] = int(array.dtype == bool)


def _read(source: Path) -> Contents:
    import h5netcdf

    arrays: dict[str, npt.NDArray[Any]] = {}
    with h5netcdf.File(source, "r") as file:
        head = json.loads(bytes(file.variables["meta"][...]).decode())
        raw = bytes(file.variables["table"][...])
        for key, variable in file.variables.items():
            if key.startswith("array_"):
                array = np.asarray(variable[...])
                logical = bool(variable.attrs["logical"])
                arrays[key.removeprefix("array_")] = array.astype(bool) if logical else array
    for key, shape in head["empty"].items():
        arrays[key] = np.empty(shape)
    table = _read_table(raw)
    meta = dict(head["meta"])
    return Contents(str(meta.pop("kind")), meta, _Arrays(arrays), table)


class _Arrays(dict[str, npt.NDArray[Any]]):
    """Arrays of a file; one that is not there is a FileError."""

    def __missing__(self, key: str) -> npt.NDArray[Any]:
        raise FileError(f"The file lacks a part ({key}); it may be of another version of synrisk.")
