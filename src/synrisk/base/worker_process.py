"""What a worker process does: it keeps what it is sent, and does one piece of work at a time.

It reads from its standard input and writes to its standard output, to and from the process that
started it alone. It ends when that one does.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from synrisk.base.errors import SynriskError

_HEAD, _SIZE = struct.Struct("<I"), struct.Struct("<Q")
# Messages to a worker begin with one of these.
KEEP, FORGET, DO = "keep", "forget", "do"
# Answers with one of these.
READY, DONE, RAISED, BROKEN = "ready", "done", "raised", "broken"


def write(stream: IO[bytes], parts: Sequence[Any]) -> None:
    """Write buffers as one message."""
    views = [memoryview(part).cast("B") for part in parts]
    stream.write(_HEAD.pack(len(views)))
    stream.write(b"".join(_SIZE.pack(view.nbytes) for view in views))
    for view in views:
        stream.write(view)
    stream.flush()


def read(stream: IO[bytes]) -> list[bytearray]:
    """Read one message; raise EOFError where it is cut off."""
    (n,) = _HEAD.unpack(_exactly(stream, _HEAD.size))
    sizes = _exactly(stream, n * _SIZE.size)
    return [_exactly(stream, size) for (size,) in _SIZE.iter_unpack(sizes)]


def _exactly(stream: IO[bytes], n_bytes: int) -> bytearray:
    found = bytearray(n_bytes)
    view, start = memoryview(found), 0
    while start < n_bytes:
        n = stream.readinto(view[start:])  # type: ignore[attr-defined]
        if not n:
            raise EOFError
        start += n
    return found


def packed(value: Any) -> list[Any]:
    """Return a value as buffers; arrays are not copied."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return [head, *(buffer.raw() for buffer in buffers)]


class _Unpickler(pickle.Unpickler):
    """Reads what refers to kept things by their names."""

    def __init__(self, parts: Sequence[Any], kept: _Store) -> None:
        super().__init__(io.BytesIO(parts[0]), buffers=parts[1:])
        self._kept = kept

    def persistent_load(self, name: Any) -> Any:
        return self._kept[name]


class _Store:
    """What is kept, as it came until it is asked for first."""

    def __init__(self) -> None:
        self._packed: dict[int, list[bytearray]] = {}
        self._ready: dict[int, Any] = {}

    def put(self, name: int, parts: list[bytearray]) -> None:
        self._packed[name] = parts

    def forget(self, name: int) -> None:
        self._packed.pop(name, None)
        self._ready.pop(name, None)

    def __getitem__(self, name: int) -> Any:
        if name not in self._ready:
            self._ready[name] = self.load(self._packed[name])
            del self._packed[name]
        return self._ready[name]

    def load(self, parts: Sequence[bytearray]) -> Any:
        return _Unpickler(parts, self).load()


def serve() -> None:
    """Work until the process that started this one closes its end."""
    commands, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed must not get among the answers
    store = _Store()
    try:
        write(answers, packed((READY, None, ())))
        while True:
            (kind, name), *parts = _received(read(commands))
            if kind == KEEP:
                store.put(name, parts)
            elif kind == FORGET:
                store.forget(name)
            else:
                write(answers, _answer(store, name, parts))
    except (EOFError, OSError):
        # Whoever asked is gone; what is left in the buffer has nowhere to go.
        os._exit(0)


def _received(parts: list[bytearray]) -> list[Any]:
    return [pickle.loads(parts[0]), *parts[1:]]  # noqa: S301 - of the process that started this


def _answer(store: _Store, name: int, parts: list[bytearray]) -> list[Any]:
    """Return what a function gives for one piece, or what it raised, ready to be sent."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = DONE, store[name](store.load(parts))
        except (SynriskError, MemoryError) as error:
            found = RAISED, error if isinstance(error, SynriskError) else MemoryError()
        except Exception as error:
            found = BROKEN, where_from(error)
    said = tuple((one.category, str(one.message)) for one in caught)
    try:
        return packed((*found, said))
    except Exception as error:  # what came out cannot be sent, or a warning is of a strange kind
        return packed((BROKEN, where_from(error), ()))


def where_from(error: BaseException) -> tuple[str, str]:
    """Return an error's type and place; its message may hold values of the data."""
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = ", ".join(f"{Path(frame.filename).name} line {frame.lineno}" for frame in last)
    return type(error).__name__, place
