"""How a file of CSV is written: its encoding, its separator, its decimal mark.

Offices' files are separated by semicolons as often as by commas, with decimal commas, and written
in the encoding of Windows. What can be told for sure is taken for granted, and said; what can be
read in two ways is refused.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from synrisk.base.errors import FileError, listed
from synrisk.data.unpacking import Attempt, open_file

UTF8 = "utf-8-sig"
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_ENCODINGS = {"utf-16": "UTF-16", "cp1252": "Windows-1252"}
_PIECE = 2**20  # bytes that are looked at a time
# Bytes that no text in Windows-1252 has: control characters, and five that stand for nothing.
_NO_TEXT = bytes(set(range(32)) - set(b"\t\n\r")) + b"\x7f\x81\x8d\x8f\x90\x9d"
_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_POINT = re.compile(r"\s*[+-]?\d+\.\d+(?:[eE][+-]?\d+)?\s*")
_IN_THREES = {mark: re.compile(rf"\s*[+-]?\d{{1,3}}(?:\{mark}\d{{3}})+\s*") for mark in ",."}
_BOTH = re.compile(r"\s*[+-]?\d{1,3}(?:\.\d{3})+,\d+\s*")


class FileWarning(UserWarning):
    """A file that is written in another way than synrisk writes files, and how it was read."""


@dataclass(frozen=True)
class Dialect:
    """How a file of CSV is written."""

    encoding: str = UTF8
    separator: str = ","
    decimal: str = "."
    thousands: str | None = None

    def told(self, usual_separator: str) -> str:
        """Return what is unusual in it, in words; nothing if nothing is."""
        parts = []
        if self.separator != usual_separator:
            parts.append(f"separated by {SEPARATORS[self.separator]}")
        if self.decimal != ".":
            points = " and points between thousands" if self.thousands else ""
            parts.append(f"with decimal commas{points}")
        if self.encoding != UTF8:
            parts.append(f"in the encoding {_ENCODINGS[self.encoding]}")
        return listed(parts) if parts else ""

    def plain(self, row: Sequence[str]) -> list[str]:
        """Return a row with numbers as Python writes them."""
        if self.decimal == ".":
            return list(row)
        return [self._plain(cell) for cell in row]

    def _plain(self, cell: str) -> str:
        if _BOTH.fullmatch(cell) or _COMMA.fullmatch(cell):
            return cell.replace(".", "").replace(",", ".")
        return cell

    def with_marks_of(self, rows: Sequence[Sequence[str]], here: str) -> Dialect:
        """Return it with the decimal mark that some rows show.

        Between commas a number has no decimal comma, so there is nothing to be told.
        """
        if self.separator == ",":
            return self
        cells = [cell for row in rows for cell in row]
        both = any(_BOTH.fullmatch(cell) for cell in cells)
        commas = [cell for cell in cells if _COMMA.fullmatch(cell)]
        points = [cell for cell in cells if _POINT.fullmatch(cell)]
        if not commas and not both:
            return self
        if not both and all(_IN_THREES[","].fullmatch(cell) for cell in commas):
            raise FileError(
                f"{here} has numbers with a comma before their last three digits, which may be "
                "decimals or thousands. Write them without thousands' separators, with a decimal "
                "point."
            )
        if points and not (both and all(_IN_THREES["."].fullmatch(cell) for cell in points)):
            raise FileError(
                f"{here} has numbers with decimal commas, and others with decimal points. Write "
                "all of them with decimal points."
            )
        return replace(self, decimal=",", thousands="." if both else None)


def encoding_of(path: Path, here: str) -> str:
    """Return the encoding of a file: UTF-8, else UTF-16 by its first bytes, or Windows-1252."""
    attempt = Attempt(here)
    with attempt, open_file(path) as stream:
        decoder = codecs.getincrementaldecoder("utf-8")()
        is_utf8 = is_windows = True
        n_read = 0
        while (is_utf8 or is_windows) and (piece := stream.read(_PIECE)):
            if not n_read and piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            n_read += len(piece)
            is_windows = is_windows and len(piece.translate(None, _NO_TEXT)) == len(piece)
            is_utf8 = is_utf8 and _decodes(decoder, piece)
        is_utf8 = is_utf8 and _decodes(decoder, b"", final=True)
        return "cp1252" if is_windows and not is_utf8 else UTF8
    raise attempt.refusal("cannot be read as CSV.")


def _decodes(decoder: codecs.IncrementalDecoder, piece: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(piece, final)
    except UnicodeDecodeError:
        return False
    return True
