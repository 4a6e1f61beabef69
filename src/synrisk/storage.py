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
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.errors import FileError, counted

FORMAT = 1
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
    target = Path(path)
    if not target.parent.is_dir():
        raise FileError(f"There is no folder {target.parent} to save {target.name} in.")
    table = _arrow_bytes(contents.table)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
    os.close(handle)
    try:
        _write(name, contents, table)
        with Path(name).open("r+b") as file:
            digest = _digest(file, os.fstat(file.fileno()).st_size)
            file.write(_MARK + digest)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def load(path: str | os.PathLike[str], kind: str) -> Contents:
    """Read what `save` wrote, or raise a FileError."""
    source = Path(path)
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
    return bytes(sink.getvalue().to_pybytes())


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
    import pyarrow as pa

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
    with pa.ipc.open_stream(raw) as stream:
        table = stream.read_all().to_pandas()
    meta = dict(head["meta"])
    return Contents(str(meta.pop("kind")), meta, _Arrays(arrays), table)


class _Arrays(dict[str, npt.NDArray[Any]]):
    """Arrays of a file; one that is not there is a FileError."""

    def __missing__(self, key: str) -> npt.NDArray[Any]:
        raise FileError(f"The file lacks a part ({key}); it may be of another version of synrisk.")
