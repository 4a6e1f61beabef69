"""A record that stands where names should is refused and not shown; names are taken."""

import io

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from synrisk.base.errors import DataError, FileError
from synrisk.data.frames import read_table
from synrisk.data.partitions import partitions

RNG = np.random.default_rng(0)
N = 40
# Columns of people by name: values as a file has them, the first in the place of the names.
PEOPLE = {
    "id": [f"PID{700000 + i}" for i in range(N)],
    "number": [str(54321 + 7 * i) for i in range(N)],
    "name": [f"{chr(65 + i % 26)}{chr(97 + i // 26)}na Doe" for i in range(N)],
    "income": [f"{value:.3f}" for value in RNG.normal(22042.729, 3000, N)],
    "sex": ["female", "male"] * (N // 2),
    "region": [["North", "South", "West"][i % 3] for i in range(N)],
    "born": [f"{1950 + i}-0{1 + i % 9}-1{i % 10}" for i in range(N)],
    "year": [str(1950 + i % 30) for i in range(N)],
    "mail": [f"person{i}@example.org" for i in range(N)],
    "price": [f"${i + 12},{100 + i}.50" for i in range(N)],
}


def written(path, header, columns):
    rows = zip(*columns, strict=True)
    lines = [",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in rows]
    path.write_text("\n".join([",".join(header), *lines]) + "\n", encoding="utf-8")
    return path


UNMISTAKABLE = [
    ["id", "name", "income", "sex"],
    ["id", "name"],
    ["name", "name", "name", "name", "income"],
    ["name", "name", "name", "born"],
    ["name", "name", "mail"],
    ["name", "number"],
    list(PEOPLE),
]
FOUND_AGAIN = [
    ["name", "sex"],
    ["name", "name", "name", "region"],
    ["name", "year"],
    ["name", "price"],
    ["sex"],
    ["sex", "sex", "region", "number"],
]


@pytest.mark.parametrize(
    ("names", "n_rows"),
    [
        *((names, n_rows) for names in UNMISTAKABLE for n_rows in (1, N - 1)),
        *((names, N - 1) for names in FOUND_AGAIN),
    ],
)
def test_a_record_is_not_taken_for_names(tmp_path, names, n_rows):
    columns = [PEOPLE[name][1 : 1 + n_rows] for name in names]
    first = [f'"{PEOPLE[name][0]}"' for name in names]
    with pytest.raises(FileError, match="does not hold column names") as caught:
        read_table(written(tmp_path / "t.csv", first, columns), "T")
    assert not any(PEOPLE[name][0] in str(caught.value) for name in names)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("n_rows", [1, 5, N])
def test_names_of_every_column_are_names(tmp_path, n_rows):
    columns = [values[:n_rows] for values in PEOPLE.values()]
    table = read_table(written(tmp_path / "t.csv", list(PEOPLE), columns), "T")
    assert list(table) == list(PEOPLE)
    assert len(table) == n_rows
    for name, values in zip(PEOPLE, columns, strict=True):
        alone = written(tmp_path / "one.csv", [name], [values])
        assert list(read_table(alone, "T")) == [name]


@pytest.mark.parametrize(
    ("header", "kinds"),
    [
        (["sex", "region", "2019"], ["sex", "region", "income"]),
        (["name", "who", "2018", "2019"], ["name", "name", "income", "number"]),
        (["1990_income", "x.1", "Q1"], ["income", "income", "number"]),
        (["sex", "region", "income", "1", "2"], ["sex", "region", "income", "number", "number"]),
        (["", "sex", "income"], ["number", "sex", "income"]),
        (["mean", "2.5%", "97.5%"], ["income", "income", "income"]),
        (["income", "2020-01-01"], ["income", "income"]),
        (["income", "number", "female"], ["income", "number", "sex"]),
    ],
)
def test_odd_names_remain_usable(tmp_path, header, kinds):
    path = written(tmp_path / "t.csv", header, [PEOPLE[kind] for kind in kinds])
    assert len(read_table(path, "T")) == N


def test_half_a_line_of_names_before_half_a_record_is_no_line_of_names(tmp_path):
    path = tmp_path / "people.tsv"
    record = "PID7{:05d}\t{}.25\t{}.5\t{}\t{}\t{}\n"
    towns = ["Ramsgate", "Zyxwville", "Quovadis"]
    rows = [record.format(k, 3000 + 7 * k, 5000 + k, k % 3, k % 2, towns[k % 3]) for k in range(30)]
    path.write_text("CaseID\tSpending\tIn\t1\t0\tRamsgate\n" + "".join(rows))
    with pytest.raises(FileError, match="3 of 6 cells") as caught:
        read_table(path, "The data")
    assert "Ramsgate" not in str(caught.value)


def test_a_box_that_is_ticked_bears_its_own_name(tmp_path):
    boxes = [["Red", ""] * (N // 2), ["", "Green"] * (N // 2), ["Blue"] * N]
    path = written(
        tmp_path / "t.csv", ["number", "Red", "Green", "Blue"], [PEOPLE["number"], *boxes]
    )
    assert list(read_table(path, "T")) == ["number", "Red", "Green", "Blue"]


def test_a_record_with_equal_cells_is_not_shown_as_names_that_are_equal(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("SECRET,SECRET,1.5\nother,SECRET,2.5\n", encoding="utf-8")
    with pytest.raises(FileError, match="does not hold column names") as caught:
        read_table(path, "T")
    assert "SECRET" not in str(caught.value)


def test_years_that_are_most_of_the_names_must_be_changed(tmp_path):
    path = written(tmp_path / "t.csv", ["sex", "2018", "2019"], [PEOPLE["sex"], *[["1.5"] * N] * 2])
    with pytest.raises(FileError, match="such as years, must be changed"):
        read_table(path, "T")


def test_a_first_line_without_any_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(",,\n1,2,3\n", encoding="utf-8")
    with pytest.raises(FileError, match="all cells are empty"):
        read_table(path, "T")


def without_names():
    """People whose file has no line of names, read as if it had one."""
    text = "".join(f"PID{700_000 + k},{22042.729 + k:.3f},{k % 3}\n" for k in range(30))
    return pd.read_csv(io.StringIO(text))


def as_file(folder, frame):
    frame.to_parquet(folder / "people.parquet", index=False)
    return folder / "people.parquet"


READERS = {
    "frame": lambda folder, frame: read_table(frame, "The data"),
    "mapping": lambda folder, frame: read_table(frame.to_dict("list"), "The data"),
    "file": lambda folder, frame: read_table(as_file(folder, frame), "The data"),
    "folder": lambda folder, frame: partitions(as_file(folder, frame).parent, "The data"),
    "dataset": lambda folder, frame: partitions(ds.dataset(as_file(folder, frame)), "The data"),
}


@pytest.mark.parametrize("reader", READERS)
def test_tables_that_somebody_else_read_without_names_are_not_shown(tmp_path, reader):
    with pytest.raises(DataError, match="names of 1 column are numbers with decimals") as raised:
        READERS[reader](tmp_path, without_names())
    assert "22042" not in str(raised.value)
    assert "PID" not in str(raised.value)


@pytest.mark.parametrize("reader", READERS)
def test_names_that_are_whole_or_above_texts_are_taken(tmp_path, reader):
    READERS[reader](tmp_path, pd.DataFrame({"1990": [1.5], "1.5": ["text"], "2.5%": [0.1]}))


def test_labels_that_are_numbers_are_names():
    assert read_table(pd.DataFrame({400.5: [1.0], 1: [2.0]}), "The data").columns[0] == "400.5"
