"""What a message says of a setting, in neutral form: spelled for Python, or for a study file.

Code that raises does not know who reads: somebody at a prompt, who writes ``missing='drop'``, or
somebody with a study file, where it is ``[data] missing = "drop"``. So a message holds both,
marked, and whoever shows it takes one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

# Where a value stands in a TOML file: keys, and positions in arrays from 0.
Place: TypeAlias = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# What a terminal or a page acts on instead of showing it: control characters (C0, DEL, C1), and
# marks that turn the direction of what follows.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_SURROGATE = re.compile("[\ud800-\udfff]")  # a half of a pair, which UTF-8 does not have
_MARKED = re.compile("\x02([^\x02\x1f\x03]*)\x1f([^\x02\x1f\x03]*)\x03")
_CATEGORY = re.compile(r'\[data\] types\.([A-Za-z0-9_-]+|"[^"]*") = "category"')
# Argument → where a study file has it. None stands for the variable or column.
_PLACES: dict[str, tuple[str | None, ...]] = {
    "id": ("data", "id"),
    "missing": ("data", "missing"),
    "types": ("data", "types", None),
    "release": ("data", "release"),
    "engine": ("fit", "engine"),
    "guesses": ("risk", "guesses", None),
    "within": ("risk", "guesses", None, "within"),
    "intruder_prior": ("risk", "prior"),
    "estimator": ("risk", "estimator"),
    "n_draws": ("risk", "n_draws"),
    "rename": ("model", "rename", None),
    "tolerance": ("risk", "tolerance", None),
    "question": ("risk", "question"),
    "variables": ("risk", "variables"),
    "joint": ("risk", "joint"),
}
_ARRAYS = ("model",)  # tables that begin with [[…]]
_BY_NAME = ("types", "guesses", "rename", "tolerance")  # dicts in Python


def place_of(name: str, of: str | None = None) -> Place:
    """Return where a study file has an argument, of one variable or column if it has them."""
    place = (of if key is None else key for key in _PLACES[name])
    return tuple(key for key in place if key is not None)


def setting(
    name: str,
    value: str | int | None = None,
    *,
    of: str | None = None,
    shown: str | None = None,
) -> str:
    """Return an argument for a message, marked, with its value or without.

    Parameters
    ----------
    name
        What it is called in Python.
    value
        What to set it to.
    of
        The variable or column that it is set for.
    shown
        Words that stand for the value: ``[levels]``.

    Examples
    --------
    >>> in_python(f"Use {setting('missing', 'drop')}.")
    "Use missing='drop'."
    >>> in_study(f"Use {setting('missing', 'drop')}.")
    'Use [data] missing = "drop".'
    """
    table, *keys = place_of(name, of)
    dotted, heading = spelled(tuple(keys)), f"[[{table}]]" if table in _ARRAYS else f"[{table}]"
    by_name = of is not None and name in _BY_NAME
    if value is None and shown is None:
        return either(f"{name}[{of!r}]" if by_name else f"{name}=", f"{table}.{dotted}")
    plain = shown or repr(value)
    in_toml = shown or (toml_text(value) if isinstance(value, str) else str(value))
    return either(
        f"{name}={{{of!r}: {plain}}}" if by_name else f"{name}={plain}",
        f"{heading} {dotted} = {in_toml}",
    )


def either(python: str, study: str) -> str:
    """Return words for a message, marked: some for Python, others for a study file.

    Marks survive f-strings, which keep no object that stands in them. A name within the words is
    quoted (`repr`, `toml_key`), so that it brings no mark of its own.
    """
    return f"\x02{python}\x1f{study}\x03"


def visible(text: str, keep: str = "") -> str:
    r"""Return a text with control characters as escapes, so that nobody's names act on a terminal.

    Parameters
    ----------
    text
        What is shown to somebody.
    keep
        Control characters that stay, such as the ends of its lines.

    Examples
    --------
    >>> print(visible("a name\x1b[2J"))
    a name\x1b[2J
    """

    def shown(found: re.Match[str]) -> str:
        return found[0] if found[0] in keep else ascii(found[0])[1:-1]

    return _SURROGATE.sub(shown, _CONTROL.sub(shown, text))


def all_visible(value: Any, keep: str = "") -> Any:
    """Return texts in lists, tuples and dicts, and the keys of these, as `visible` shows them."""
    if isinstance(value, str):
        return visible(value, keep)
    if isinstance(value, Mapping):
        return {all_visible(k, keep): all_visible(one, keep) for k, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(all_visible(one, keep) for one in value)
    return value


def in_json(text: str) -> str:
    """Return JSON with what `visible` shows as JSON's own escapes, which mean the same there."""

    def escaped(found: re.Match[str]) -> str:
        return found[0] if found[0] in "\t\n\r" else f"\\u{ord(found[0]):04x}"

    return _SURROGATE.sub(escaped, _CONTROL.sub(escaped, text))


def in_python(message: str) -> str:
    """Return a message with what is marked in it as Python spells it."""
    return _MARKED.sub(r"\1", message)


def in_study(message: str) -> str:
    """Return a message with what is marked in it as a study file spells it."""
    return _MARKED.sub(r"\2", message)


def in_command(message: str) -> str:
    """Return a message as a command spells it that takes no study file.

    Examples
    --------
    >>> in_command(f"Use {setting('types', 'category', of='Zip')}.")
    'Use --categories Zip.'
    """
    return _CATEGORY.sub(r"--categories \1", in_study(message))


def spelled(place: Place) -> str:
    """Return a place as TOML spells it, positions from 1: ``model[2].formula``."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            quoted = toml_key(part)
            text += f".{quoted}" if text else quoted
    return text


def toml_key(name: str) -> str:
    """Return a key as TOML writes it, in quotes if need be."""
    return name if _BARE_KEY.fullmatch(name) else toml_text(name)


def toml_text(text: str) -> str:
    """Return a text as TOML writes it, in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped) + '"'
