"""What synrisk raises.

A message names what is wrong, where (column, parameter, count), what was expected and what to do.
It never holds a value of the data, and neither does a chained exception: code that catches a
library's exception leaves the ``except`` block before it raises its own (``raise … from None``
would keep the original reachable as ``__context__``).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from synrisk.base.messages import Place, in_command, in_python, in_study, visible

_LONGEST_WORD = 100
_P = ParamSpec("_P")
_R = TypeVar("_R")


class SynriskError(Exception):
    """Base of every error that synrisk raises on purpose.

    Parameters
    ----------
    message
        What to say; settings in it may be marked (`messages.setting`). Control characters, which
        may stand in a name of the data, are shown as escapes.
    about
        Where a study file has what is wrong, if that is known.
    """

    def __init__(self, message: str = "", *, about: Place = ()) -> None:
        super().__init__(visible(in_python(message)))
        self._marked = message
        self.about = about

    def in_study(self) -> str:
        """Return the message with settings as a study file spells them."""
        return visible(in_study(self._marked))

    def in_command(self) -> str:
        """Return the message with settings as a command without a study file spells them."""
        return visible(in_command(self._marked))


class FileError(SynriskError):
    """A file cannot be read, or is not what it should be."""


class DataError(SynriskError):
    """The confidential data do not fit the request."""


class SyntheticDataError(DataError):
    """A synthetic dataset does not fit the confidential data or the plan."""


class DisclosureError(SyntheticDataError):
    """A released column gives a synthesized one away."""


class FormulaError(SynriskError):
    """A formula is outside the language that synrisk reads."""


class PlanError(SynriskError):
    """The regressions do not form a sequence that can be synthesized."""


class UnreliableError(SynriskError):
    """Numbers that cannot be relied on, where that was asked to be an error."""


class FitError(SynriskError):
    """A posterior that cannot be fitted, or not well enough."""


class DrawsError(SynriskError):
    """Posterior draws do not fit the regression that they are given for."""


class GuessError(SynriskError):
    """A set of guesses cannot be used."""


class PriorError(SynriskError):
    """An intruder's prior cannot be used."""


class OptionError(SynriskError):
    """An argument has a value that is not among those allowed."""


class ResourceError(SynriskError):
    """The machine has not enough memory."""


class EngineError(SynriskError):
    """What runs the work elsewhere, processes or a cluster, is gone or fails."""


class SettingsError(SynriskError):
    """A study file or a file of criteria holds a mistake; the message names line and key."""


def within_memory(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a function that says so where there is not enough memory."""

    @wraps(function)
    def told(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except MemoryError:
            problem = "There is not enough memory for this: use fewer records, guesses or draws."
        raise ResourceError(problem)

    return told


def nearest(name: object, options: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the option nearest to `name`, or an empty string."""
    if not isinstance(name, str) or len(name) > _LONGEST_WORD:  # to compare texts takes long
        return ""
    words = [word for word in map(str, options) if len(word) <= 2 * _LONGEST_WORD]
    by_lower = {word.lower(): word for word in words}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def one_of(name: str, value: object, options: Collection[str], *, or_none: bool = False) -> str:
    """Return a word that is among `options`, or raise; `name` is the argument's."""
    if isinstance(value, str) and value in options:
        return value
    raise OptionError(
        f"{name} must be one of {listed(options)}{', or None' if or_none else ''}; got "
        f"{got(value)}.{nearest(value, options)}"
    )


def got(value: object) -> str:
    """Return what was given for a message: a word as it is, of anything else only its type.

    An argument in the wrong place may be the data itself, also as text.
    """
    if isinstance(value, str):
        is_word = len(value) <= _LONGEST_WORD and "\n" not in value
        return repr(value) if is_word else f"a text of {len(value):,} characters"
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def listed(names: Iterable[object], limit: int = 12) -> str:
    """Join names for a message, the first `limit` of them."""
    shown = [str(name) for name in names]
    if not shown:
        return "none"
    more = f", and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 record`` or ``3 records``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
