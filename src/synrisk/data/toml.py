"""TOML files that users write, with the line of every key, so that a message can say where.

``tomllib`` reads the values and refuses what is not TOML; the scanner here walks the same text
again, knowing that it is right, and notes where each key and element stands.
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

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
_LARGEST_FILE = 1 << 20


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

    def whole(self, key: str, default: int | None = None, least: int | None = 1) -> int | None:
        """Return a whole number."""
        value = self.values.get(key, default)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or (least is not None and value < least)
        ):
            from_ = "" if least is None else f" from {least}"
            self.refuse(f"must be a whole number{from_}; got {_said(value)}.", key)
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
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise FileError(f"{what} is named by the path of a TOML file; got {got(path)}.")
    source, raw, problem = Path(path), b"", ""
    try:
        with source.open("rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError:
        problem = "there is no such file"
    except IsADirectoryError:
        problem = "it is a folder; name the TOML file in it"
    except OSError as error:
        problem = error.strerror or type(error).__name__
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
    values, problem = {}, ""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = str(error)
    except RecursionError:
        problem = "Nested too deeply"
    if problem:
        at = _AT_LINE.search(problem)
        line = int(at[1]) if at else text.count("\n") + 1
        repeated = _repeated(text, line)
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
    return Section(file, (), values, line_index(text))


def line_index(text: str) -> dict[Place, int]:
    """Return the line of every key, heading and array element of a TOML text that is right."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


def _repeated(text: str, line: int) -> tuple[Place, int, int] | None:
    """Return the first place that stands twice in the lines up to `line`, with both its lines.

    ``tomllib`` stops there, so that what stands before it is right, and can be walked.
    """
    scanner = _Scanner("".join(text.splitlines(keepends=True)[:line]))
    # Where something else is wrong the walk may run off the text or into it.
    with contextlib.suppress(IndexError, AssertionError, tomllib.TOMLDecodeError, RecursionError):
        scanner.document()
    return scanner.repeated


class _Scanner:
    """Walks a TOML text that ``tomllib`` accepts, and notes the line of every place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Place, int] = {}
        self.repeated: tuple[Place, int, int] | None = None
        self._n_tables: dict[Place, int] = {}  # of each array of tables so far
        self._written: dict[Place, int] = {}  # what stands by itself, not only as part of a place
        self._counted, self._line = 0, 1

    def document(self) -> None:
        table: Place = ()
        while self._skip():
            if self.text.startswith("[[", self.at):
                table = self._heading("[[")
            elif self.text[self.at] == "[":
                table = self._heading("[")
            else:
                self._pair(table)

    def _heading(self, mark: str) -> Place:
        line = self._here()
        self.at += len(mark)
        keys = self._keys()
        self._skip()
        self.at += len(mark)
        place: Place = ()
        for number, key in enumerate(keys):
            place += (key,)
            self.lines.setdefault(place, line)
            if mark == "[[" and number == len(keys) - 1:
                self._n_tables[place] = self._n_tables.get(place, 0) + 1
            if place in self._n_tables:
                place += (self._n_tables[place] - 1,)
                self.lines.setdefault(place, line)
        if mark == "[":
            self._note(place, line)
        return place

    def _note(self, place: Place, line: int) -> None:
        if place in self._written and self.repeated is None:
            self.repeated = place, self._written[place], line
        self._written[place] = line

    def _pair(self, table: Place) -> None:
        line = self._here()
        place = table
        for key in self._keys():
            if place != table and place in self._written and self.repeated is None:
                self.repeated = place, self._written[place], line  # a value, and a key within it
            place += (key,)
            self.lines.setdefault(place, line)
        self._note(place, line)
        self._skip()
        self.at += 1  # =
        self._skip()
        self._value(place)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip()
            if self.text[self.at] in "\"'":
                start = self.at
                self._quoted()
                # tomllib knows the escapes.
                keys.append(str(tomllib.loads(f"k = {self.text[start : self.at]}")["k"]))
            else:
                bare = _BARE_KEY.match(self.text, self.at)
                assert bare is not None  # noqa: S101 - tomllib read it
                keys.append(bare[0])
                self.at = bare.end()
            self._skip(lines=False)
            if self.text[self.at] != ".":
                return keys
            self.at += 1

    def _value(self, place: Place) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._quoted()
        elif first == "[":
            self._array(place)
        elif first == "{":
            self._inline_table(place)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1

    def _array(self, place: Place) -> None:
        self.at += 1
        number = 0
        while self._skip() and self.text[self.at] != "]":
            element = (*place, number)
            self.lines[element] = self._here()
            self._value(element)
            number += 1
            self._skip_comma()
        self.at += 1

    def _inline_table(self, place: Place) -> None:
        self.at += 1
        while self._skip() and self.text[self.at] != "}":
            self._pair(place)
            self._skip_comma()
        self.at += 1

    def _skip_comma(self) -> None:
        self._skip()
        if self.text[self.at] == ",":
            self.at += 1

    def _quoted(self) -> None:
        mark = self.text[self.at]
        if self.text.startswith(mark * 3, self.at):
            self._until(mark * 3)
            # Up to two quotes may stand right before the closing three.
            while self.text.startswith(mark, self.at):
                self.at += 1
        elif self.text.startswith(mark * 2, self.at):
            self.at += 2
        else:
            self._until(mark)

    def _until(self, mark: str) -> None:
        self.at += len(mark)
        while not self.text.startswith(mark, self.at):
            escaped = self.text[self.at] == "\\" and mark[0] == '"'
            self.at += 2 if escaped else 1
        self.at += len(mark)

    def _skip(self, *, lines: bool = True) -> bool:
        """Pass over blanks, and with `lines` over line ends and comments; tell if text is left."""
        blank = " \t\r\n" if lines else " \t"
        while self.at < len(self.text):
            if self.text[self.at] in blank:
                self.at += 1
            elif lines and self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def _here(self) -> int:
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line
