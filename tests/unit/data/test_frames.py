import base64
import gzip
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from synrisk.base.errors import DataError, FileError
from synrisk.data.frames import read_table

FRAME = pd.DataFrame({"a": [1.5, 2.25], "b": ["x", "y"]})


@pytest.mark.parametrize(
    "source",
    [
        FRAME,
        pl.DataFrame({"a": [1.5, 2.25], "b": ["x", "y"]}),
        pl.DataFrame({"a": [1.5, 2.25], "b": ["x", "y"]}).lazy(),
        pa.table({"a": [1.5, 2.25], "b": ["x", "y"]}),
        {"a": [1.5, 2.25], "b": ["x", "y"]},
    ],
    ids=["pandas", "polars", "polars lazy", "pyarrow", "mapping"],
)
def test_frames_of_any_kind(source):
    table = read_table(source, "T")
    assert table["a"].tolist() == [1.5, 2.25]
    assert table["b"].tolist() == ["x", "y"]


def test_a_frame_is_not_changed_by_the_users_later_changes():
    source = FRAME.copy()
    table = read_table(source, "T")
    source.loc[0, "a"] = 99.0
    assert table.loc[0, "a"] == 1.5


def test_files(tmp_path):
    for name in ("t.csv", "t.csv.gz", "t.parquet", "t.pq"):
        path = tmp_path / name
        FRAME.to_csv(path, index=False) if ".csv" in name else FRAME.to_parquet(path)
        assert read_table(path, "T")["a"].tolist() == [1.5, 2.25]
        assert read_table(str(path), "T")["b"].tolist() == ["x", "y"]
    tabs = tmp_path / "t.tsv"
    FRAME.to_csv(tabs, index=False, sep="\t")
    assert list(read_table(tabs, "T").columns) == ["a", "b"]


def test_numbers_survive_csv_to_the_last_bit(tmp_path):
    rng = np.random.default_rng(0)
    numbers = np.exp(rng.normal(scale=30, size=5000)) * rng.choice([-1, 1], 5000)
    path = tmp_path / "n.csv"
    pd.DataFrame({"n": numbers}).to_csv(path, index=False)
    np.testing.assert_array_equal(read_table(path, "T")["n"], numbers)


def test_declared_categories_stay_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("zip,state,n\n01234,NA,1\n00501,NY,NA\n,CA,3\n", encoding="utf-8")
    table = read_table(path, "T", text={"zip": [], "state": ["NA", "NY", "CA"]})
    assert table["zip"].tolist()[:2] == ["01234", "00501"]
    assert table["zip"].isna().tolist() == [False, False, True]
    assert table["state"].tolist() == ["NA", "NY", "CA"]
    assert table["n"].isna().tolist() == [False, True, False]


def test_a_byte_order_mark_is_not_part_of_the_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("\ufeffa,b\n1,2\n".encode())
    assert list(read_table(path, "T").columns) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("t.csv", b"", "empty"),
        ("t.csv", b"a;b\n1;2;3\n", "';'"),
        ("t.csv", b"a,a\n1,2\n", "more than one column is called a"),
        ("t.csv", b"a,b\n1,2\n1,2,3,4\n", "2 columns"),
        ("t.csv", b"a,b\n\xff\x01,2\n", "UTF-8"),
        ("t.csv", b"\xff\xfea,b\n1,2\n", "a single line"),  # in UTF-16, of a few letters
        ("t.csv", b"\xff\xfea\x00,\x00b", "UTF-16"),
        ("t.csv.gz", b"not gzip", "cannot be unpacked; is it whole"),
        ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99, mtime=0)[:30], "cannot be unpacked"),
        ("t.parquet", b"PAR1 and no more", "is it whole"),
        ("t.xlsx", b"", "neither CSV"),
        ("noend", b"", "neither CSV"),
    ],
)
def test_bad_files(tmp_path, name, content, why):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises((FileError, DataError), match=why) as caught:
        read_table(path, "T")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_no_file(tmp_path):
    with pytest.raises(FileError, match="no file"):
        read_table(tmp_path / "t.csv", "T")


@pytest.mark.parametrize("source", [3, None, [1, 2], {"a": [1, 2], "b": [1]}, np.zeros(3)])
def test_what_is_no_table(source):
    with pytest.raises(DataError, match="T: ") as caught:
        read_table(source, "T")
    assert caught.value.__context__ is None


@pytest.mark.parametrize("text", ["a,b\n1,98719.39\n", "x" * 500, "98719.39;2", '{"a": 98719.39}'])
def test_data_in_place_of_a_path_are_not_shown(text):
    with pytest.raises(FileError) as caught:
        read_table(text, "The confidential data")
    assert "98719" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("frame", "where"),
    [
        (pd.DataFrame([[1.0, 2.0]], columns=pd.Index(["x", "a\ud800"], dtype=object)), "column 2"),
        (pd.DataFrame({"g": pd.Series(["p", "q\udfff"], dtype=object)}), "column 'g'"),
        (
            pd.DataFrame({"g": pd.Categorical.from_codes([0], pd.Index(["\ud800"], dtype=object))}),
            "column 'g'",
        ),
    ],
    ids=["name", "text", "level"],
)
def test_what_is_no_unicode_text_is_refused_and_not_shown(frame, where):
    """Any library that is asked for it later would raise, with the text in the message."""
    with pytest.raises(DataError, match=where) as caught:
        read_table(frame, "The confidential data")
    assert not re.search("[\ud800-\udfff]", str(caught.value))


# A column x of two numbers, a bit of whose description is changed: pyarrow 26 ends the process
# where that is asked for, and raises where the column is read.
_ENDS_THE_PROCESS = (
    "P(e~L6$BL^6(md*1Qh@h000m?00000008hm000000000$6#x|y6&5TN1Qie!1{DSz7zh9W0000006-WB"
    "00000008hm762#+000000000$7zh9W00000@IMg|00009AOZjY00aR60|FHU87wsb7zT4=Xk~3-6#@Vi"
    "3M2v;0eAow1Q{F|93}u96$%+O00s~l7y)<{0u}@o%mEhE0VYT$2pkv)000000000$7zh9W00000@IMv+"
    "C<p)m0000006-WB00000008hm5fK0xEENP502KlN6#x|w6#@V}DFzuP00aO402a&v76c{;7SsU%C?IfQ"
    "a&dKKbS-0Wa4lhSa&LDac4cyNX>V>IGBz$SE-@J#8~^|Swg3PCP(e~L"
)


def test_parquet_whose_description_would_end_the_process_is_refused(tmp_path):
    path = tmp_path / "people.parquet"
    path.write_bytes(base64.b85decode(_ENDS_THE_PROCESS))
    with pytest.raises(FileError, match="cannot be read as Parquet"):
        read_table(path, "The data")
