"""Notes: what inside reads, and how they are stored."""

import json

import pytest

from synrisk.base.notes import Count, Note, for_anyone, for_inside
from synrisk.data.archive import pack, unpack

NOTES = [
    for_anyone("Guesses for {x} were rounded."),
    for_anyone("For ", Count(1234, "record", of=5000), " of {n} nothing.", unless_few=True),
    for_anyone(Count(1, "record is", "records are", of=5000), " shaky."),
    for_inside(Count(3, "record", of=5000), " of 5,000."),
    for_inside("u[T.a] settles y.", instead="Something settles y."),
]


def test_inside_reads_words_and_numbers():
    assert [str(note) for note in NOTES] == [
        "Guesses for {x} were rounded.",
        "For 1,234 records of {n} nothing.",
        "1 record is shaky.",
        "3 records of 5,000.",
        "u[T.a] settles y.",
    ]
    assert str(for_anyone(Count(2, "record is", "records are", of=9))) == "2 records are"


def test_nobody_makes_a_note_without_saying_for_whom():
    with pytest.raises(TypeError):
        Note(("3 of 5,000 records",))
    with pytest.raises(AssertionError):
        Note(("3 of 5,000 records",), "all")


def test_notes_come_back():
    stored = json.loads(json.dumps(pack(NOTES, {}, "note")))
    assert [unpack(Note, packed, {}) for packed in stored] == NOTES
