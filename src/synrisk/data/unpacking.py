"""Files as bytes: unpacked up to a limit, and what goes wrong with them told without values.

A few bytes can stand for many: a table of one value, packed by gzip, bzip2 or xz, becomes a million
times as large. So bytes are counted while they are unpacked, and what a vector or a table will take
before it is made.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, cast

from synrisk.base import memory_limit
from synrisk.base.errors import FileError, OptionError, SynriskError
from synrisk.base.memory_limit import n_parts_within, refuse_beyond

MOST_BYTES = 2 * 2**30
COPIES_OF_TEXT = 3  # as it is read, as values of Python, and as what these become
_VARIABLE = "SYNRISK_MOST_BYTES"
_PIECE = 2**20  # bytes that are unpacked at a time
_GZIP, _BZIP2, _XZ = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00"
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError)


def most_bytes() -> int:
    """Return how many bytes of memory reading one packed file may take, about.

    2 GiB, or as many as the environment variable ``SYNRISK_MOST_BYTES`` says. They are estimated
    while the file is unpacked and before tables are made of it. The limit is for files that may
    hold more than their size shows: CSV packed by gzip, files of R, Parquet. A table of a million
    records and 30 columns takes about 1 GiB. CSV as plain text has no limit.
    """
    written = os.environ.get(_VARIABLE, "").strip()
    if not written:
        return MOST_BYTES
    if not re.fullmatch("[0-9]{1,18}", written) or int(written) < 1:
        raise OptionError(
            f"The environment variable {_VARIABLE} must be a number of bytes, such as {MOST_BYTES}."
        )
    return int(written)


class Meter:
    """Adds up the bytes of memory that reading a file takes, and raises where they are too many.

    Parameters
    ----------
    here
        The file, for messages.
    """

    def __init__(self, here: str) -> None:
        self._here = here
        self._most = most_bytes()
        self._room = memory_limit.memory_limit()
        self._n_bytes = 0

    def add(self, n_bytes: int) -> None:
        """Count bytes that are about to be needed, or raise."""
        self.foresee(n_bytes)
        self._n_bytes += n_bytes

    def foresee(self, n_bytes: int) -> None:
        """Raise if so many bytes, which will be counted as they come, would be too many."""
        n_in_all = self._n_bytes + n_bytes
        if n_in_all > self._most:
            raise FileError(
                f"{self._here} is too large: reading it takes {_size(n_in_all)} of memory or "
                f"more, and the limit is {_size(self._most)}. If the file is meant to be so large, "
                f"set the environment variable {_VARIABLE} to more bytes, such as {2 * n_in_all}."
            )
        if n_in_all > self._room:
            refuse_beyond_memory(self._here, n_in_all)


def refuse_beyond_memory(here: str, n_bytes: int) -> None:
    """Raise if reading something takes more memory than there is."""
    refuse_beyond(
        n_bytes,
        f"{here}: to read it",
        f"Confidential data and releases may be folders of Parquet files, read one after the "
        f"other; {n_parts_within(n_bytes):,} files or more would do.",
    )


def _size(n_bytes: int) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:,.1f} {name}"
    return f"{n_bytes:,} bytes"


class Attempt:
    """Lets a library try to read a file; an exception ends the attempt, and is not kept.

    It is not chained to what is raised afterwards, as its message may hold values. What synrisk
    itself raises passes.

    Parameters
    ----------
    here
        What is read, with which a message begins.
    """

    def __init__(self, here: str) -> None:
        self._here = here
        self._reason = ""

    def __enter__(self) -> None:
        return

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception) or isinstance(error, SynriskError):
            return False
        self._reason = _reason(error)
        return True

    def refusal(self, otherwise: str, error: type[SynriskError] = FileError) -> SynriskError:
        """Return what to raise: of memory or a damaged file if it was that, or `otherwise`."""
        return error(f"{self._here} {self._reason or otherwise}")


def _reason(error: Exception) -> str:
    # pandas and pyarrow tell some of it in words only.
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        return "cannot be read: there is not enough memory."
    if isinstance(error, OSError) and error.errno:
        return f"cannot be opened: {os.strerror(error.errno)}."
    if isinstance(error, (*_DAMAGED, gzip.BadGzipFile)):
        return "cannot be unpacked; is it whole?"
    return ""


class _Counted(io.RawIOBase):
    """A stream that tells a meter of every byte read from it."""

    def __init__(self, stream: BinaryIO, meter: Meter) -> None:
        self._stream = stream
        self._meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._stream.read(len(buffer))
        self._meter.add(len(piece))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._stream.close()
        super().close()


def is_packed(path: Path) -> bool:
    """Tell whether a file's name says that it is packed by gzip."""
    return path.suffix.lower() == ".gz"


def open_file(path: Path, meter: Meter | None = None) -> BinaryIO:
    """Return a file's bytes as a stream, unpacked if its name ends in ``.gz``.

    Parameters
    ----------
    path
        The file.
    meter
        Counts the bytes of a packed file.
    """
    if not is_packed(path):
        return path.open("rb")
    stream = cast("BinaryIO", gzip.GzipFile(path))
    return stream if meter is None else cast("BinaryIO", io.BufferedReader(_Counted(stream, meter)))


def unpacked(path: Path, here: str, meter: Meter, bytes_a_byte: int = 1) -> bytes:
    """Return the content of a file, unpacked if its first bytes say that it is packed.

    Parameters
    ----------
    path
        The file; by gzip, bzip2 or xz, or as it is.
    here
        The file, for messages.
    meter
        Counts the bytes.
    bytes_a_byte
        How many bytes of memory one of the content will take.
    """
    content = io.BytesIO()
    attempt = Attempt(here)
    with attempt:
        with _stream(path) as stream:
            while piece := stream.read(_PIECE):
                meter.add(bytes_a_byte * len(piece))
                content.write(piece)
        return content.getvalue()
    raise attempt.refusal("cannot be unpacked; is it whole?")


def _stream(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        first = file.read(len(_XZ))
    if first.startswith(_GZIP):
        return cast("BinaryIO", gzip.GzipFile(path))
    if first.startswith(_BZIP2):
        return cast("BinaryIO", bz2.BZ2File(path))
    return cast("BinaryIO", lzma.LZMAFile(path)) if first.startswith(_XZ) else path.open("rb")
