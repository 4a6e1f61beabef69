"""Files of CSV as offices write them: what can be told is read and said, what cannot is refused."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.data.frames import read_table

TABLE = pd.DataFrame(
    {
        "Größe": [1.25, -2.5, 1234567.75, 0.5],
        "Kids": [0, 3, 1, 12],
        "Ort": ["Köln", "Zürich", "a,b", "c;d"],
    }
)


def written(separator=";", decimal=",", encoding="utf-8", thousands=False):
    frame = TABLE
    if thousands:
        with_points = [f"{x:,.2f}".translate(str.maketrans(",.", ".,")) for x in TABLE["Größe"]]
        frame = TABLE.assign(Größe=with_points)
    return frame.to_csv(index=False, sep=separator, decimal=decimal).encode(encoding)


def read(tmp_path, content, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return read_table(path, "T")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "separated by semicolons, with decimal commas"),
        ({"thousands": True}, "with decimal commas and points between thousands"),
        ({"decimal": "."}, "separated by semicolons"),
        ({"separator": "\t"}, "separated by tabs, with decimal commas"),
        ({"separator": "|", "decimal": "."}, "separated by bars"),
        (
            {"encoding": "cp1252"},
            "separated by semicolons, with decimal commas, in the encoding Windows-1252",
        ),
        ({"encoding": "utf-16"}, "in the encoding UTF-16"),
        ({"separator": ",", "decimal": ".", "encoding": "cp1252"}, "Windows-1252"),
    ],
)
def test_another_dialect_is_read_and_said(tmp_path, options, told, name):
    with pytest.warns(sr.FileWarning, match=told):
        found = read(tmp_path, written(**options), name)
    pd.testing.assert_frame_equal(found, TABLE)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_usual_one_is_not_spoken_of(tmp_path, encoding):
    content = written(",", ".", encoding)
    pd.testing.assert_frame_equal(read(tmp_path, content), TABLE)
    pd.testing.assert_frame_equal(read(tmp_path, written("\t", "."), "t.tsv"), TABLE)


def test_text_beyond_the_first_megabyte_tells_the_encoding(tmp_path):
    content = b"a,b\n" + b"1,x\n" * 300_000 + "2,Köln\n".encode("cp1252")
    with pytest.warns(sr.FileWarning, match="Windows-1252"):
        assert read(tmp_path, content)["b"].iloc[-1] == "Köln"
    # A letter of several bytes at the end of a piece is one all the same.
    for shift in range(4):
        before = b"a,b\n" + b"1,x\n" * (2**18 - 3) + b"1,x" + b"x" * shift
        content = before + "ü€\n2,y\n".encode()
        assert len(before) in range(2**20 - 9, 2**20)
        assert read(tmp_path, content)["b"].iloc[-2].endswith("xü€")


def test_random_numbers_are_the_same_in_every_dialect(tmp_path):
    rng = np.random.default_rng(1)
    numbers = pd.DataFrame(
        rng.normal(0, 10.0 ** rng.integers(-3, 9, (200, 3))), columns=list("abc")
    )
    for decimal in ".,":
        content = numbers.to_csv(index=False, sep=";", decimal=decimal).encode()
        with pytest.warns(sr.FileWarning):
            found = read(tmp_path, content)
        pd.testing.assert_frame_equal(found, pd.read_csv(io.StringIO(numbers.to_csv(index=False))))


def test_a_study_of_such_a_file_runs_and_says_how_it_was_read(tmp_path):
    rng = np.random.default_rng(1)
    people = pd.DataFrame({"Größe": rng.normal(170, 10, 60).round(1), "Alter": np.arange(60)})
    path = tmp_path / "people.csv"
    path.write_bytes(people.to_csv(index=False, sep=";", decimal=",").encode("cp1252"))
    with pytest.warns(sr.FileWarning, match=r"^The confidential data: people\.csv was read as"):
        fitted = sr.fit(sr.Regression("Größe ~ Alter"), path, seed=1)
    pd.testing.assert_frame_equal(fitted.data, people)
