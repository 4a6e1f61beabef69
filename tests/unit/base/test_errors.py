"""Messages: what they say of what was given."""

import time

import numpy as np

from synrisk.base.errors import got, nearest


def test_the_nearest_of_long_names_is_not_looked_for():
    """Names of columns may be texts of any length, which take minutes to compare."""
    rng = np.random.default_rng(1)
    letters = [chr(c) for c in rng.integers(0x4E00, 0x4E00 + 500, 40_000)]
    name, other = "".join(letters), "".join(reversed(letters))
    begun = time.process_time()
    assert nearest(name, [other, "Income"]) == ""
    assert nearest("Incom", [other, "Income"]) == " Did you mean 'Income'?"
    assert time.process_time() - begun < 1.0


def test_words_are_shown_and_texts_are_not():
    assert got("thread") == "'thread'"
    assert got("a,b\n1,2") == "a text of 7 characters"
    assert got("x" * 101) == "a text of 101 characters"
    assert got([1]) == "a list"
