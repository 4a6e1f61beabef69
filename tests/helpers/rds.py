"""Files as R's saveRDS and save write them: R's serialisation, version 3, XDR, gzipped.

Enough of it for data frames of numbers with any class, such as posterior's draws_df, which no
other writer makes. The format is described in "R Internals", 1.8.
"""

import gzip
import struct

_STRING, _INTEGERS, _REALS, _STRINGS, _LIST, _PAIRS, _SYMBOL = 9, 13, 14, 16, 19, 2, 1
_END, _HAS_OBJECT, _HAS_ATTRIBUTES, _HAS_TAG = 254, 0x100, 0x200, 0x400
_UTF8, _VERSION, _R_4_5, _R_3_5 = 1 << 15, 3, 0x00040500, 0x00030500
_MISSING = -(2**31)


def _int(number):
    return struct.pack(">i", number)


def _string(text):
    data = text.encode()
    return _int(_STRING | _UTF8) + _int(len(data)) + data


def _strings(texts):
    return _int(_STRINGS) + _int(len(texts)) + b"".join(_string(text) for text in texts)


def _column(values):
    if all(isinstance(value, int) for value in values):
        return _int(_INTEGERS) + _int(len(values)) + b"".join(_int(value) for value in values)
    return _int(_REALS) + _int(len(values)) + struct.pack(f">{len(values)}d", *values)


def _tagged(name, value):
    data = name.encode()
    symbol = _int(_SYMBOL) + _int(_STRING | _UTF8) + _int(len(data)) + data
    return _int(_PAIRS | _HAS_TAG) + symbol + value


def _frame(columns, classes):
    n_rows = len(next(iter(columns.values())))
    row_names = _int(_INTEGERS) + _int(2) + _int(_MISSING) + _int(-n_rows)
    return (
        _int(_LIST | _HAS_OBJECT | _HAS_ATTRIBUTES)
        + _int(len(columns))
        + b"".join(_column(values) for values in columns.values())
        + _tagged("names", _strings(list(columns)))
        + _tagged("class", _strings(classes))
        + _tagged("row.names", row_names)
        + _int(_END)
    )


def _header():
    return b"X\n" + _int(_VERSION) + _int(_R_4_5) + _int(_R_3_5) + _int(5) + b"UTF-8"


def save_rds(path, columns, classes=("data.frame",)):
    """Write a data frame as saveRDS does."""
    path.write_bytes(gzip.compress(_header() + _frame(columns, classes)))


def save_rdata(path, frames):
    """Write data frames by name as save does."""
    objects = b"".join(
        _tagged(name, _frame(columns, ("data.frame",))) for name, columns in frames.items()
    )
    path.write_bytes(gzip.compress(b"RDX3\n" + _header() + objects + _int(_END)))
