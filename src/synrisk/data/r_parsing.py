"""rdata's parsers of R's formats, with lengths checked before anything is made of them.

A length in a damaged file may be any number, R writes ``1:300000000`` as three numbers, and of each
four bytes rdata may make an object of some hundred.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from synrisk.data.unpacking import Meter

BYTES_A_BYTE = 4  # of memory: the content, the parser's own, a vector's and the table's
_BYTES_AN_INTEGER = 250  # of memory: an object of rdata begins with one or two, and takes 300 or so
_BYTES_A_NUMBER = 24  # of memory, of a sequence: what it is made of, itself and in the table
_BYTES_A_TEXT = 2 * _BYTES_AN_INTEGER
_MARKS_OF_SAVE = (b"RDX2\n", b"RDX3\n", b"RDB2\n", b"RDB3\n", b"RDA2\n", b"RDA3\n")
_FORMATS = {b"X\n": "xdr", b"B\n": "binary", b"A\n": "ascii", b"A\r\n": "ascii"}


def is_ascii(content: bytes) -> bool:
    """Tell whether a file of R is written as text, which keeps fewer digits."""
    return content.startswith((b"A\n", b"A\r\n", b"RDA"))


def parse(content: bytes, meter: Meter) -> Any:
    """Return what a file of R holds, as rdata's parsers give it.

    Parameters
    ----------
    content
        The file, unpacked.
    meter
        Counts the memory that objects take.
    """
    start = len(_MARKS_OF_SAVE[0]) if content.startswith(_MARKS_OF_SAVE) else 0
    for mark, name in _FORMATS.items():
        if content.startswith(mark, start):
            body = memoryview(content)[start + len(mark) :]
            parser = parsers()[name](
                body, expand_altrep=True, altrep_constructor_dict=_constructors(meter)
            )
            parser.meter, parser.n_bytes = meter, len(body)
            parsed = parser.parse_all()
            parser.check_complete()
            return parsed
    raise ValueError("This is none of R's formats.")


@cache
def parsers() -> dict[str, Any]:
    """Return rdata's parsers by format, with checks; raise ImportError where there is no rdata."""
    from rdata.parser._ascii import ParserASCII
    from rdata.parser._binary import ParserBinary
    from rdata.parser._xdr import ParserXDR

    of_rdata = {"ascii": ParserASCII, "binary": ParserBinary, "xdr": ParserXDR}
    return {
        name: type(f"Checked{base.__name__}", (_Checked, base), {"base": base, "format": name})
        for name, base in of_rdata.items()
    }


class _Checked:
    """What a parser of rdata does, after a look at the length."""

    base: Any  # the parser of rdata
    format: str
    file: Any  # its stream
    meter: Meter
    n_bytes: int  # in the stream

    def parse_int(self) -> int:
        self.meter.add(_BYTES_AN_INTEGER)
        return int(self.base.parse_int(self))

    def parse_string(self, length: int) -> bytes:
        self._check(length)
        return bytes(self.base.parse_string(self, length))

    def _parse_array_values(self, dtype: npt.DTypeLike, length: int) -> npt.NDArray[Any]:
        # As text a number has a digit and a line's end.
        self._check(length * (2 if self.format == "ascii" else np.dtype(dtype).itemsize))
        values: npt.NDArray[Any] = self.base._parse_array_values(self, dtype, length)
        return values

    def _parse_vector_value(self, references: Any, repeated: Any = None) -> list[Any]:
        own: Any = self
        length = own.parse_int()
        self._check(length)
        self.meter.foresee(_BYTES_AN_INTEGER * length)
        return [own.parse_R_object(references, repeated) for _ in range(length)]

    def _parse_bytecode(self, references: Any, repeated: Any = None) -> tuple[Any, list[Any]]:
        """Return compiled code as rdata does, which would make a list of any length first."""
        own: Any = self
        if repeated is None:
            n_repeated = own.parse_int()
            self._check(n_repeated)
        code = own.parse_R_object(references, repeated)
        if repeated is None:
            repeated = [None] * n_repeated
        n_constants = own.parse_int()
        return code, [
            own._parse_bytecode_constant(references, repeated) for _ in range(n_constants)
        ]

    def _check(self, n_bytes: int) -> None:
        """Raise if fewer bytes are left; a text's stream does not tell its place cheaply."""
        place = 0 if self.format == "ascii" else self.file.tell()
        if not 0 <= n_bytes <= self.n_bytes - place:
            raise ValueError("There are fewer bytes than a length says.")


# -- vectors that R writes in short ----------------------------------------------------------------
def _constructors(meter: Meter) -> dict[bytes, Callable[[Any], tuple[Any, Any]]]:
    """Return what makes vectors of R's short forms, by the name of the form."""
    from rdata.parser import DEFAULT_ALTREP_MAP

    return {
        **DEFAULT_ALTREP_MAP,
        b"compact_intseq": partial(_whole_numbers, meter=meter),
        b"compact_realseq": partial(_numbers, meter=meter),
        b"deferred_string": partial(_deferred_text, meter=meter),
    }


def _whole_numbers(state: Any, meter: Meter) -> tuple[Any, Any]:
    """Return the integers of ``a:b``, which may go down."""
    from rdata.parser import RObjectType

    n, start, step = (int(value) for value in state.value)
    meter.add(_BYTES_A_NUMBER * n)
    return _info(RObjectType.INT), start + step * np.arange(n, dtype=np.int64)


def _numbers(state: Any, meter: Meter) -> tuple[Any, Any]:
    """Return the numbers of ``a:b`` beyond the integers."""
    from rdata.parser import RObjectType

    n, start, step = int(state.value[0]), float(state.value[1]), float(state.value[2])
    meter.add(_BYTES_A_NUMBER * n)
    return _info(RObjectType.REAL), start + step * np.arange(n, dtype=np.float64)


def _deferred_text(state: Any, meter: Meter) -> tuple[Any, Any]:
    """Return the texts of ``as.character`` of numbers, which R writes before it makes them."""
    from rdata.parser import CharFlags, RObject, RObjectType

    numbers, penalty = state.value[0].value, int(state.value[1].value[0])
    meter.add(_BYTES_A_TEXT * len(numbers))
    texts = [_as_character(number, penalty) for number in numbers]
    of_text = _info(RObjectType.CHAR, CharFlags.UTF8)
    return _info(RObjectType.STR), [
        RObject(of_text, None if text is None else text.encode(), None) for text in texts
    ]


def _info(kind: Any, flags: int = 0) -> Any:
    from rdata.parser import RObjectInfo

    return RObjectInfo(kind, False, False, False, flags, 0)


def _as_character(number: Any, penalty: int) -> str | None:
    """Return a number as R writes it: 15 digits, in the shorter of two ways."""
    if np.ma.is_masked(number) or np.isnan(number):
        return None
    if isinstance(number, np.integer):
        return str(number)
    if np.isinf(number):
        return "Inf" if number > 0 else "-Inf"
    rounded = float(f"{number:.15g}")
    fixed = str(np.format_float_positional(rounded, trim="-"))
    scientific = str(np.format_float_scientific(rounded, trim="-", exp_digits=2))
    return fixed if len(fixed) <= len(scientific) + penalty else scientific
