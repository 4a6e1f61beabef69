"""Dataclasses as JSON and arrays: everything comes back, and a file makes nothing else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest

import synrisk as sr
from synrisk.data.archive import pack, unpack

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Inner:
    values: Floats
    word: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Other:
    n: int


@dataclass(frozen=True)
class Whole:
    inner: Inner
    maybe: Floats | None
    either: Inner | Other
    several: tuple[Inner, ...]
    mixed: tuple[str | Other, ...]
    by_name: Mapping[str, Floats]
    number: float
    flag: bool
    given: Other
    made: dict[str, int] = field(default_factory=dict, init=False)


def whole(number=1.5):
    return Whole(
        Inner(np.arange(3.0)),
        None,
        Other(4),
        (Inner(np.ones(2), "b"), Inner(np.zeros((2, 2)))),
        ("text", Other(7)),
        {"x": np.array([1.0])},
        number,
        True,
        Other(9),
    )


def there_and_back(value, change=lambda packed: None):
    arrays = {}
    packed = json.loads(json.dumps(pack(value, arrays, "whole"), allow_nan=False))
    change(packed)
    return unpack(Whole, packed, arrays)


@pytest.mark.parametrize("number", [1.5, 0.1, np.inf, -np.inf, np.nan])
def test_everything_comes_back(number):
    value, again = whole(number), there_and_back(whole(number))
    np.testing.assert_array_equal(again.inner.values, value.inner.values)
    assert again.maybe is None
    assert again.either == Other(4)
    assert [inner.word for inner in again.several] == ["b", "a"]
    assert again.several[1].values.shape == (2, 2)
    assert again.mixed == ("text", Other(7))
    np.testing.assert_array_equal(again.by_name["x"], [1.0])
    assert str(again.number) == str(value.number)
    assert again.flag is True
    assert again.given == Other(9)


def test_what_is_left_out_is_given_again():
    arrays = {}
    packed = pack(Inner(np.ones(1)), arrays, "x", leave=(np.ndarray,))
    assert packed["values"] is None
    assert not arrays


@pytest.mark.parametrize(
    "change",
    [
        lambda packed: packed["either"].update({"is": "Whole"}),  # not of the union
        lambda packed: packed["inner"].update({"is": "Other"}),
        lambda packed: packed["inner"].update(word="c"),
        lambda packed: packed.update(flag=1),
        lambda packed: packed.update(several="x"),
        lambda packed: packed.update(mixed=[3]),
        lambda packed: packed.update(given=[1, 2]),
    ],
)
def test_a_file_makes_nothing_that_its_fields_do_not_allow(change):
    with pytest.raises(sr.FileError):
        there_and_back(whole(), change)


def test_what_is_neither_data_nor_text_is_not_stored():
    with pytest.raises(sr.FileError, match="object"):
        pack(object(), {}, "x")
