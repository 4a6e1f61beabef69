import datetime

import numpy as np
import pandas as pd
import pytest

from synrisk.base.errors import DataError, OptionError, SyntheticDataError
from synrisk.data.schema import Factor, Numeric, Schema, equal_rows


def settle(values, **options):
    frame = pd.DataFrame({"v": values})
    options = {"types": None, "factors": (), "missing": "error"} | options
    return Schema.settle(frame, ["v"], **options), frame


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], Numeric("v")),
        ([1.5, 2.0, 3.0], Numeric("v")),
        (pd.array([1, 2, 3], dtype="Int64"), Numeric("v")),
        (pd.array([1, 2, 3], dtype="int64[pyarrow]"), Numeric("v")),
        (["b", "a", "b"], Factor("v", ("a", "b"))),
        (["1", "2", "10"], Factor("v", ("1", "10", "2"))),
        ([True, False, True], Factor("v", (False, True))),
        (pd.Categorical(["b", "a"], categories=["c", "b", "a"]), Factor("v", ("b", "a"))),
        (pd.Categorical([3, 1], categories=[3, 1]), Factor("v", (3, 1))),
    ],
)
def test_types_are_read_off_the_column(values, expected):
    schema, _ = settle(values)
    assert schema.variables["v"] == expected


def test_types_settle_what_a_file_cannot():
    assert settle([1, 2], types={"v": "category"})[0].variables["v"] == Factor("v", (1, 2))
    assert settle([1, 2], types={"v": ["2", "1", "3"]})[0].variables["v"].levels == ("2", "1", "3")
    assert settle(["1", "2"], types={"v": "numeric"})[0].variables["v"] == Numeric("v")
    assert settle([2.0, 1.0], factors=["v"])[0].variables["v"] == Factor("v", (1, 2))


@pytest.mark.parametrize("other", [[3, 1, 2], ["3", "1", "2"], [3.0, 1.0, 2.0]])
def test_levels_are_the_same_whatever_their_type(other):
    schema, _ = settle([1, 2, 3], types={"v": "category"})
    columns, _ = schema.encode(pd.DataFrame({"v": other}), ["v"], "S")
    assert columns["v"].tolist() == [2, 0, 1]


def test_codes_are_decoded():
    factor = Factor("v", ("a", 2, True))
    assert factor.decode(np.array([2.0, 0.0, 1.0])).tolist() == [True, "a", 2]


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (
            ["1", "2", "x", "3"],
            "numbers, and those in row 3 of the data.* leave those rows",
        ),
        (["1", "2", "x", "3", "y", "4"], "rows 3, 5 of the data, counted from 1"),
        ([str(i) for i in range(60)], r"read as numbers\. Settle it: types={'v': 'numeric'}"),
        ([datetime.date(2020, 1, 1)] * 2, "type date"),
        ([1 + 2j, 3], "complex"),
        ([(1, 2), (3, 4)], "type tuple"),
    ],
)
def test_columns_that_must_be_settled(values, why):
    with pytest.raises(DataError, match=why):
        settle(values)


@pytest.mark.parametrize(
    ("types", "why"),
    [
        ({"w": "category"}, "no column 'w'"),
        ({"v": "catgory"}, "must be 'category'"),
        ({"v": ["a"]}, "at least two"),
        ({"v": ["a", "a"]}, "each once"),
        (
            {"v": ["a", "c"]},
            r"'v' holds 1 value \(1 distinct level\) that is not among its 2",
        ),
        ({"v": "numeric"}, "'v' should hold numbers, but 2 values are not"),
    ],
)
def test_bad_types(types, why):
    with pytest.raises((OptionError, DataError), match=why):
        settle(["a", "b"], types=types)


def test_types_are_checked_on_columns_that_no_formula_uses():
    frame = pd.DataFrame({"v": [1.0, 2.0], "sex": ["M", None]})
    options = {"factors": (), "missing": "error"}
    with pytest.raises(DataError, match=r"'sex' holds 1 value \(1 distinct level\)") as caught:
        Schema.settle(frame, ["v"], types={"sex": ["X", "Y"]}, **options)
    assert "M" not in str(caught.value)
    with pytest.raises(DataError, match="'sex' should hold numbers"):
        Schema.settle(frame, ["v"], types={"sex": "numeric"}, **options)
    Schema.settle(frame, ["v"], types={"sex": ["M", "F"]}, **options)


def test_stray_text_among_numbers_is_named_by_its_row():
    values = ["1", "2", "secret", None, "4", "5"]
    for types in (None, {"v": "numeric"}):
        with pytest.raises(DataError, match=r"row 3 of the data, counted from 1") as caught:
            settle(values, types=types)
        assert "leave those rows out" in str(caught.value)
        assert "secret" not in str(caught.value)
    # Most of them text: it may well be a category.
    with pytest.raises(DataError, match=r"rows 1, 2, 3, 4, 5, and 2 more of the data.*'category'"):
        settle([*"abcdefg", "1"], types={"v": "numeric"})


def test_missing_values():
    schema, frame = settle([1.0, np.nan, 3.0])
    with pytest.raises(DataError, match=r"v \(1\)"):
        schema.encode(frame, ["v"], "D")
    schema, frame = settle([1.0, np.nan, 3.0], missing="drop")
    columns, kept = schema.encode(frame, ["v"], "D")
    assert columns["v"].tolist() == [1.0, 3.0]
    assert kept.tolist() == [True, False, True]
    schema, frame = settle(["a", None, "b"], missing="level")
    columns, kept = schema.encode(frame, ["v"], "D")
    assert columns["v"].tolist() == [0, 2, 1]
    assert kept.all()
    schema, frame = settle([1.0, np.nan], missing="level")
    with pytest.raises(DataError, match="factors only"):
        schema.encode(frame, ["v"], "D")
    with pytest.raises(OptionError, match="error, drop, level"):
        settle([1], missing="ignore")
    schema, frame = settle([np.nan, np.nan], missing="drop")
    with pytest.raises(DataError, match="no complete record"):
        schema.encode(frame, ["v"], "D")


def test_unknown_levels_and_infinite_numbers():
    schema, _ = settle(["a", "b"])
    other = pd.DataFrame({"v": ["a", "secret", "hidden", "secret"]})
    with pytest.raises(SyntheticDataError, match=r"3 values \(2 distinct levels\)") as caught:
        schema.encode(other, ["v"], "S", SyntheticDataError)
    assert "secret" not in str(caught.value)
    schema, _ = settle([1.0, 2.0])
    with pytest.raises(DataError, match="1 infinite value"):
        schema.encode(pd.DataFrame({"v": [1.0, np.inf]}), ["v"], "D")
    with pytest.raises(DataError, match="should hold numbers, but 1 value is not"):
        schema.encode(pd.DataFrame({"v": ["1", "x"]}), ["v"], "D")
    with pytest.raises(DataError, match=r"no column 'v'\. Did you mean 'V'"):
        schema.encode(pd.DataFrame({"V": [1.0]}), ["v"], "D")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([1.0, 2.0, np.nan, np.nan], [1, 3, None, 4], [True, False, True, False]),
        (["1", "2", "x"], [1, 2, 3], [True, True, False]),
        (pd.Categorical([1, 2]), [1.0, 2.5], [True, False]),
        (pd.array(["a", None, "c"], dtype="string"), ["a", None, None], [True, True, False]),
        ([True, False], ["True", "x"], [True, False]),
    ],
)
def test_rows_that_are_equal_whatever_the_types(one, other, equal):
    assert equal_rows(pd.Series(one), pd.Series(other)).tolist() == equal


def test_numbers_may_differ_by_their_last_digits_where_that_is_allowed():
    one, other = pd.Series([1.0, 1.0]), pd.Series([1.0 + 1e-12, 1.1])
    assert equal_rows(one, other).tolist() == [False, False]
    assert equal_rows(one, other, rtol=1e-9).tolist() == [True, False]
