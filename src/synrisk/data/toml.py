"""TOML files that users write, with the line of every key, so that a message can say where.

``tomllib`` reads the values and refuses what is not TOML, but keeps no lines; `_Index` finds them
in a text that it knows to be right.
"""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from synrisk.base.errors import FileError, SettingsError, got, listed, nearest
from synrisk.base.messages import Place, spelled
from synrisk.data.output_files import why_not_a_file

# A text in one of four kinds of quotes, a mark, a word, or a comment.
_TOKEN = re.compile(
    r""""{3}(?:[^"\\]|\\.|"{1,2}(?!"))*+"{0,5}|'{3}(?:[^']|'{1,2}(?!'))*+'{0,5}"""
    r"""|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|[][{}=,.\n]|[^][{}=,.\s"'#]+|#[^\n]*+""",
    re.DOTALL,
)
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
_LARGEST_FILE = 1 << 20
_DEEPEST = 10  # keys joined by points, and brackets; the settings that there are need five
_MOST_DIGITS = 300  # of a whole number: what a float can still hold
_TOO_MANY = 10**_MOST_DIGITS
_TOO_LARGE = f"a whole number of more than {_MOST_DIGITS} digits."


@dataclass(frozen=True, repr=False)
class Section:
    """A table of a TOML file; knows where it stands.

    Attributes
    ----------
    file
        The file's name, for messages.
    place
        The keys that lead here.
    values
        What the table holds.
    lines
        The line of every place in the file.
    """

    file: str
    place: Place
    values: Mapping[str, Any]
    lines: Mapping[Place, int]

    def where(self, *keys: str | int) -> str:
        """Return ``study.toml, line 7, synthesis.m``, of this table or of what `keys` lead to."""
        place = (*self.place, *keys)
        known = self.known(place)
        line = f", line {self.lines[known]}" if known else ""
        return f"{self.file}{line}{', ' if place else ''}{spelled(place)}"

    def known(self, place: Place) -> Place:
        """Return a place of the file, or as much of its beginning as the file has."""
        while place and place not in self.lines:
            place = place[:-1]
        return place

    def refuse(self, problem: str, *keys: str | int) -> NoReturn:
        """Raise a SettingsError that says where."""
        raise SettingsError(f"{self.where(*keys)}: {problem}")

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise if there is a key that is not `known`."""
        names = tuple(known)
        for key in self.values:
            if key not in names:
                self.refuse(
                    f"there is no such setting.{nearest(key, names)} Known here: {listed(names)}.",
                    key,
                )

    def section(self, key: str) -> Section:
        """Return a table within this one, empty where it is not there."""
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            self.refuse(
                f"must be a table ([{spelled((*self.place, key))}]); got {got(values)}.", key
            )
        return Section(self.file, (*self.place, key), values, self.lines)

    def sections(self, key: str) -> tuple[Section, ...]:
        """Return the tables of an array of tables."""
        values = self.values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(one, dict) for one in values):
            heading = spelled((*self.place, key))
            self.refuse(f"must be tables that begin with [[{heading}]], in order.", key)
        return tuple(
            Section(self.file, (*self.place, key, number), one, self.lines)
            for number, one in enumerate(values)
        )

    def text(self, key: str, default: str | None = None) -> str | None:
        """Return a text that is not empty."""
        value = self.values.get(key, default)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            self.refuse(f"must be text in quotes; got {_said(value)}.", key)
        return value

    def texts(self, key: str) -> list[str] | None:
        """Return a list of texts that is not empty."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list) or not value:
            self.refuse(f'must be a list of texts, such as ["a", "b"]; got {_said(value)}.', key)
        for number, one in enumerate(value):
            if not isinstance(one, str) or not one.strip():
                self.refuse(f"must be text in quotes; got {_said(one)}.", key, number)
        return value

    def choice(self, key: str, options: tuple[str, ...], default: str) -> str:
        """Return one of several words."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or value not in options:
            self.refuse(
                f"must be one of {listed(options)}; got {_said(value)}.{nearest(value, options)}",
                key,
            )
        return value

    def whole(
        self,
        key: str,
        default: int | None = None,
        least: int | None = 1,
        most: int | None = None,
    ) -> int | None:
        """Return a whole number."""
        value = self.values.get(key, default)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or (least is not None and value < least)
            or (most is not None and value > most)
        ):
            from_ = "" if least is None else f" from {least}"
            to = "" if most is None else f" to {most:,}"
            self.refuse(f"must be a whole number{from_}{to}; got {_said(value)}.", key)
        return value


def _said(value: object) -> str:
    """Return a value of a settings file for a message: it is no value of the data."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        return repr(value)
    return "a table" if isinstance(value, dict) else "a list"


def read_settings(path: str | os.PathLike[str], what: str) -> Section:
    """Return the top of a TOML file.

    Parameters
    ----------
    path
        The file.
    what
        What it should be, for messages: ``"The study"``.
    """
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"{what} is named by the path of a TOML file; got {got(path)}.")
    source, raw = Path(path), b""
    problem = why_not_a_file(source)
    try:
        if not problem:
            with source.open("rb") as file:
                raw = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if source.is_dir():
        problem += "; name the TOML file in it"
    if len(raw) > _LARGEST_FILE:
        problem = "it is far too large to hold settings; is it the data?"
    text = ""
    if not problem:
        problem = "it is not UTF-8 text"
        with contextlib.suppress(UnicodeDecodeError):
            text, problem = raw.decode("utf-8-sig"), ""
    if problem:
        raise FileError(f"{what} {source} cannot be read: {problem}.")
    return parsed(text, source.name)


def parsed(text: str, file: str) -> Section:
    """Return the top of a TOML text; `file` names it in messages."""
    _refuse_depth(text, file)
    values, problem = {}, ""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
    except ValueError:  # Python reads no whole number of more than some thousands of digits
        problem = _TOO_LARGE
    if problem == _TOO_LARGE:
        raise SettingsError(f"{file}, line {_line_of_digits(text)}: {problem}")
    if problem:
        at = _AT_LINE.search(problem)
        line = int(at[1]) if at else text.count("\n") + 1
        # What stands before the mistake is right.
        repeated = _Index("\n".join(text.split("\n")[:line])).repeated
        if repeated is not None:
            place, first, second = repeated
            raise SettingsError(
                f"{file}, line {second}, {spelled(place)}: stands already on line {first}. Keep "
                "one of the two."
            )
        raise SettingsError(
            f"{file}, line {line}: not TOML: {_AT_LINE.sub('', problem)}. Text stands in quotes, "
            "and every setting is key = value."
        )
    top = Section(file, (), values, line_index(text))
    _refuse_large_numbers(top, values, ())
    return top


def _refuse_depth(text: str, file: str) -> None:
    """Raise where keys or brackets are nested too deeply.

    This is first, since whatever reads a text takes time and room with the square of its depth.
    """
    n_open, n_keys, after_point, line = 0, 0, False, 1
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word == ".":
            after_point = True
        else:
            n_keys = n_keys + 1 if after_point else 1
            after_point = False
            n_open += (word in "[{") - (word in "]}")
        if max(n_open, n_keys) > _DEEPEST:
            raise SettingsError(
                f"{file}, line {line}: nested too deeply: at most {_DEEPEST} keys are joined by "
                "points, and as many brackets stand within each other."
            )
        line += word.count("\n")


def _line_of_digits(text: str) -> int:
    """Return the line of the first whole number that is too large, or the last line."""
    found = re.search(rf"\d[\d_]{{{_MOST_DIGITS},}}", text)
    return 1 + text.count("\n", 0, found.start() if found else len(text))


def _refuse_large_numbers(top: Section, value: object, place: Place) -> None:
    """Raise where a whole number is too large: in hexadecimal ``tomllib`` reads any."""
    if isinstance(value, int) and abs(value) >= _TOO_MANY:
        top.refuse(_TOO_LARGE, *place)
    inner: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, one in inner:
        _refuse_large_numbers(top, one, (*place, key))


def line_index(text: str) -> dict[Place, int]:
    """Return the line of every key, heading and array element of a TOML text that is right."""
    return _Index(text).lines


class _Index:
    """Where each place of a TOML text stands, and the first that stands twice.

    The text is right, or is right up to where ``tomllib`` stopped.
    """

    def __init__(self, text: str) -> None:
        self.lines: dict[Place, int] = {}
        self.repeated: tuple[Place, int, int] | None = None  # with both its lines
        self._written: dict[Place, int] = {}  # what stands by itself, not only as part of a place
        self._n_tables: dict[Place, int] = {}  # of each array of tables so far
        # The tables and arrays that are open; of an array the number of the element being read.
        self._open: list[tuple[Place, int | None]] = [((), None)]
        self._place: Place = ()  # of the value being read
        self._keys: list[str] = []
        self._heading, self._in_key, self._line = "", True, 1
        for token in _TOKEN.finditer(text):
            word = token[0]
            if word == "\n" and len(self._open) == 1:
                self._keys, self._heading, self._in_key = [], "", True
            elif word[0] not in "#\n":
                self._read_key(word) if self._in_key else self._read_value(word)
            self._line += word.count("\n")

    def _read_key(self, word: str) -> None:
        if word == "[":
            self._heading += word
        elif word == "]" and self._keys:
            self._open, self._keys = [(self._begin_table(), None)], []
        elif word == "=" and self._keys:
            self._begin_pair(self._open[-1][0])
            self._keys, self._in_key = [], False
        elif word == "}" and len(self._open) > 1:  # of a table that is empty
            self._open.pop()
            self._in_key = False
        elif word not in "[]{}=,." and len(self._keys) <= _DEEPEST:  # more are no key
            self._keys.append(_unquoted(word))

    def _read_value(self, word: str) -> None:
        container, number = self._open[-1]
        if word in "]}" and len(self._open) > 1:
            self._open.pop()
        elif word == "," and number is None:
            self._in_key = True
        elif word == "," and number is not None:
            self._open[-1] = container, number + 1
        else:
            if number is not None:
                self._place = (*container, number)
                self.lines.setdefault(self._place, self._line)
            if word in "[{":
                self._open.append((self._place, 0 if word == "[" else None))
                self._in_key = word == "{"

    def _begin_table(self) -> Place:
        place: Place = ()
        for number, key in enumerate(self._keys, 1):
            place += (key,)
            self.lines.setdefault(place, self._line)
            if self._heading == "[[" and number == len(self._keys):
                self._n_tables[place] = self._n_tables.get(place, 0) + 1
            if place in self._n_tables:
                place += (self._n_tables[place] - 1,)
                self.lines.setdefault(place, self._line)
        if self._heading == "[":
            self._note(place)
        return place

    def _begin_pair(self, table: Place) -> None:
        self._place = table
        for key in self._keys:
            if self._place != table and self._place in self._written:
                self._note(self._place)  # a value, and a key within it
            self._place += (key,)
            self.lines.setdefault(self._place, self._line)
        self._note(self._place)

    def _note(self, place: Place) -> None:
        if place in self._written and self.repeated is None:
            self.repeated = place, self._written[place], self._line
        self._written[place] = self._line


def _unquoted(key: str) -> str:
    """Return a key without quotes and escapes, which ``tomllib`` knows."""
    if key[0] in "\"'":
        with contextlib.suppress(tomllib.TOMLDecodeError):  # the mistake is here
            return str(tomllib.loads(f"k = {key}")["k"])
    return key
