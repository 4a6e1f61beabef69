"""Data frames as R saves them, by a few lines, so that tests need no R."""

import struct

import pandas as pd

_HEAD = b"X\n" + struct.pack(">3i", 3, 0x040301, 0x030500) + struct.pack(">i", 5) + b"UTF-8"
_NOTHING = struct.pack(">i", 254)


def rds(frame: pd.DataFrame) -> bytes:
    """Return what saveRDS writes, not packed: doubles, integers and text."""
    return _HEAD + _frame(frame)


def rdata(frame: pd.DataFrame, name: str) -> bytes:
    """Return what save writes, not packed."""
    return b"RDX3\n" + _HEAD + _whole(0x402, 1) + _char(name) + _frame(frame) + _NOTHING


def _whole(*numbers: int) -> bytes:
    return struct.pack(f">{len(numbers)}i", *numbers)


def _char(word: str) -> bytes:
    raw = word.encode()
    return _whole(0x00008009, len(raw)) + raw


def _texts(words) -> bytes:
    return _whole(16, len(words)) + b"".join(map(_char, words))


def _column(values: pd.Series) -> bytes:
    if values.dtype.kind == "f":
        return _whole(14, len(values)) + values.to_numpy().astype(">f8").tobytes()
    if values.dtype.kind in "iu":
        return _whole(13, len(values)) + values.to_numpy().astype(">i4").tobytes()
    return _texts([str(value) for value in values])


def _frame(frame: pd.DataFrame) -> bytes:
    attributes = (
        _whole(0x402, 1) + _char("names") + _texts(list(frame.columns)),
        _whole(0x402, 1) + _char("class") + _texts(["data.frame"]),
        _whole(0x402, 1) + _char("row.names") + _whole(13, 2, -(2**31), -len(frame)),
    )
    columns = b"".join(_column(frame[name]) for name in frame)
    return _whole(0x313, frame.shape[1]) + columns + b"".join(attributes) + _NOTHING
