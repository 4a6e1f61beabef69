"""Files that synrisk writes and reads back: NetCDF, whole, owner-only, with a checksum.

Names on disk are neutral; users' names and labels are data. Tables travel as Arrow inside the file,
so their types come back. A digest of all bytes stands at the end and is checked before anything is
parsed: a truncated, altered or foreign file is an error, never a guess. Nothing is unpickled. The
format is NetCDF's classic one, whose reader, SciPy's, is plain Python: no file that somebody made
by hand can make it crash or go on for ever.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
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
_MOST_NUMBERS = 1 << 27  # of a variable: a gigabyte; the format has two
_KINDS = [np.dtype(kind) for kind in (np.float64, np.int64, np.bool_, np.int8, np.uint8)]


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
    # Made in memory and written as bytes: whatever a full disk does is then an error.
    image = _image(contents, _arrow_bytes(contents.table))
    write_whole(target, (image, _MARK, _digest(image)), owner_only=True)


def load(path: str | os.PathLike[str], kind: str) -> Contents:
    """Read what `save` wrote, or raise a FileError."""
    source = as_path(path)
    what = f"{source.name!r}"
    image = _whole(source, what)
    contents = None
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        contents = _read(image)
    if contents is None:
        raise FileError(f"{what} cannot be read; it may be of another version of synrisk.")
    if contents.meta.get("format") != FORMAT:
        raise FileError(
            f"{what} has format {str(contents.meta.get('format'))[:9]}; this version of synrisk "
            f"reads format {FORMAT}."
        )
    if contents.kind != kind:
        raise FileError(f"{what} does not hold {kind}.")
    return contents


def _whole(source: Path, what: str) -> memoryview:
    """Return what a file holds before its digest, or raise."""
    problem, raw = "cannot be opened; is there such a file?", b""
    with contextlib.suppress(OSError):
        if source.is_file():  # no pipe, which may never end
            raw = source.read_bytes()
            problem = "was not written by synrisk, or is not whole"
    size = len(raw) - len(_MARK) - _DIGEST
    image, trailer = memoryview(raw)[: max(size, 0)], raw[max(size, 0) :]
    if size > 0 and trailer.startswith(_MARK):
        if _digest(image) == trailer[len(_MARK) :]:
            return image
        problem = "is damaged: its contents do not match its checksum"
    raise FileError(f"{what} {problem}.")


def _digest(image: bytes | memoryview) -> bytes:
    return hashlib.blake2b(image, digest_size=_DIGEST).digest()


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
        table = stream.read_all()
    table.validate(full=True)  # what is no text would be found out much later
    return pd.DataFrame(table.to_pandas())


def _image(contents: Contents, table: bytes) -> bytes:
    """Return the file in the classic format of NetCDF, which has neither logical nor long numbers.

    What an array is of stands among the settings; one that is too large for the format is parted.
    """
    from scipy.io import netcdf_file

    meta = {"format": FORMAT, "kind": contents.kind, **contents.meta}
    arrays = {key: np.asarray(array) for key, array in contents.arrays.items()}
    kinds = {key: [array.dtype.name, list(array.shape)] for key, array in arrays.items()}
    text = json.dumps({"meta": meta, "arrays": kinds}, ensure_ascii=True, allow_nan=False)
    made = BytesIO()
    file = netcdf_file(made, "w", version=2)
    setattr(file, "title", f"synrisk {contents.kind}")  # noqa: B010 - as the format's attributes are
    for key, array in (
        ("meta", np.frombuffer(text.encode(), dtype=np.int8)),
        ("table", np.frombuffer(table, dtype=np.int8)),
        *((f"array_{key}", _as_stored(array)) for key, array in arrays.items()),
    ):
        for k, first in enumerate(range(0, array.size, _MOST_NUMBERS)):
            part = array.reshape(-1)[first : first + _MOST_NUMBERS]
            dimension = f"n{part.size}"
            if dimension not in file.dimensions:
                file.createDimension(dimension, part.size)
            file.createVariable(f"{key}_{k}", part.dtype, (dimension,))[:] = part
    file.flush()
    return made.getvalue()


def _as_stored(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers of a kind that the format has; nothing is lost."""
    if array.dtype not in _KINDS:
        raise FileError(f"Numbers of the kind {array.dtype.name} cannot be saved.")
    if array.dtype == np.float64:
        return array
    if array.dtype != np.int64:
        return array.astype(np.int8)
    return np.ascontiguousarray(array).view(np.int32)


def _read(image: memoryview) -> Contents:
    from scipy.io import netcdf_file

    file = netcdf_file(_Bounded(image), "r", mmap=False)
    head = json.loads(_joined(file, "meta", np.int8).tobytes())
    table = _read_table(_joined(file, "table", np.int8).tobytes())
    arrays = {}
    for key, (name, shape) in head["arrays"].items():
        kind = _KINDS[_KINDS.index(np.dtype(str(name)))]
        stored = np.float64 if kind == np.float64 else np.int32 if kind == np.int64 else np.int8
        own = _joined(file, f"array_{key}", stored)
        own = own.view(np.int64) if kind == np.int64 else own.astype(kind, copy=False)
        arrays[key] = own.reshape([int(n) for n in shape])
    meta = dict(head["meta"])
    return Contents(str(meta.pop("kind")), meta, _Arrays(arrays), table)


def _joined(file: Any, key: str, stored: Any) -> npt.NDArray[Any]:
    """Return the parts of an array, in this machine's order of bytes."""
    parts: list[npt.NDArray[Any]] = []
    while (variable := file.variables.get(f"{key}_{len(parts)}")) is not None:
        parts.append(np.asarray(variable.data).astype(stored))
    return np.concatenate(parts) if parts else np.empty(0, dtype=stored)


class _Bounded(BytesIO):
    """Bytes that can be read about once: a file may say that all its arrays are the same bytes."""

    def __init__(self, image: memoryview) -> None:
        super().__init__(image)
        self._left = 2 * len(image) + _BLOCK

    def read(self, size: int | None = -1, /) -> bytes:
        """Read, or raise."""
        part = super().read(size)
        self._left -= len(part)
        if self._left < 0:
            raise ValueError
        return part


class _Arrays(dict[str, npt.NDArray[Any]]):
    """Arrays of a file; one that is not there is a FileError."""

    def __missing__(self, key: str) -> npt.NDArray[Any]:
        raise FileError(f"The file lacks a part ({key}); it may be of another version of synrisk.")
