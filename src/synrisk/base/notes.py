"""Notes: sentences for readers of a result, with their counts as data and who may read them.

A page that is shared tells no count of few records. It cannot find one in English, so a note that
anyone may read holds its counts of records apart from its words, and the page decides by the
numbers. A note with more to hide is for inside, and says what a shared page has in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from synrisk.base.errors import counted

Audience: TypeAlias = Literal["anyone", "inside"]
AUDIENCES = ("anyone", "inside")


@dataclass(frozen=True)
class Count:
    """How many there are of a whole: ``Count(3, "record", of=5000)``.

    Attributes
    ----------
    n, of
        The number, and that of the whole.
    noun, plural
        What is counted, perhaps with a verb: "record is", "records are".
    """

    n: int
    noun: str
    plural: str = ""
    of: int = field(kw_only=True)

    @property
    def nouns(self) -> str:
        """The plural."""
        return self.plural or f"{self.noun}s"

    def __str__(self) -> str:
        return counted(self.n, self.noun, self.nouns)


@dataclass(frozen=True)
class Note:
    """A sentence or more; ``str(note)`` is what inside reads. See `for_anyone`, `for_inside`.

    Attributes
    ----------
    parts
        Words, and the counts between them.
    audience
        "anyone", or "inside".
    instead
        Of a note for inside: what a shared page says in its place, if anything.
    unless_few
        Of a note for anyone: whether a shared page leaves it out where a count may not be told,
        since that there is such a note would tell of few records.
    """

    parts: tuple[str | Count, ...]
    audience: Audience
    instead: str | None = None
    unless_few: bool = False

    def __post_init__(self) -> None:
        assert self.audience in AUDIENCES  # noqa: S101 - no user says it

    def __str__(self) -> str:
        return "".join(map(str, self.parts))

    @property
    def counts(self) -> tuple[Count, ...]:
        """The counts."""
        return tuple(part for part in self.parts if isinstance(part, Count))


def for_anyone(*parts: str | Count, unless_few: bool = False) -> Note:
    """Return a note that a shared page tells, its counts as that page tells counts.

    Parameters
    ----------
    parts
        Words, in which there is no number that one record changes, and counts of records.
    unless_few
        Whether it is left out there where a count is too small, or leaves too few of the whole.
    """
    return Note(parts, "anyone", unless_few=unless_few)


def for_inside(*parts: str | Count, instead: str | None = None) -> Note:
    """Return a note that no shared page tells.

    Parameters
    ----------
    parts
        Words and counts.
    instead
        What a shared page says in its place.
    """
    return Note(parts, "inside", instead)
