"""Folders of Parquet as enemies and accidents leave them: refused, or read as they are."""

import io
import os
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from synrisk import DataError, FileError
from synrisk.data.partitions import partitions

NUMBERS = {"x": [1.0, 2.0, 3.0], "g": ["Quovadis", "Ramsgate", "Quovadis"]}


def folder_of(folder, *tables):
    folder.mkdir()
    for number, table in enumerate(tables):
        table = table if isinstance(table, pa.Table) else pa.table(table)
        pq.write_table(table, folder / f"part-{number}.parquet")
    return folder


def read(folder, names=("x", "g")):
    frames = [frame for _, frame in partitions(folder, "The data").read(names)]
    return pd.concat(frames, ignore_index=True)


def refused(folder, match, names=("x", "g"), kind=FileError):
    with pytest.raises(kind, match=match) as raised:
        read(folder, names)
    told = str(raised.value)
    assert "Quovadis" not in told
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_a_part_that_lacks_a_column_is_not_taken_for_gaps(tmp_path):
    folder = folder_of(tmp_path / "t", NUMBERS, {"x": [4.0]})
    refused(folder, r"part-1\.parquet has no column 'g'", kind=DataError)
    twice = pa.table([[1.0], ["a"], ["b"]], names=["x", "g", "g"])
    refused(folder_of(tmp_path / "u", NUMBERS, twice), "more than one column 'g'", kind=DataError)


def test_columns_may_stand_in_another_order_and_beside_others(tmp_path):
    other = {"g": ["Ramsgate"], "more": [1], "x": [4.0]}
    read_again = read(folder_of(tmp_path / "t", NUMBERS, other))
    assert read_again["x"].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert read_again["g"].iloc[3] == "Ramsgate"


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["1.0"], "'x' as text, and the first part as numbers"),
        ([True], "'x' as true and false, and"),
        ([None], ""),
        ([4], ""),
        (pa.array([2.5], pa.float32()), ""),
        (pd.Categorical(["1.5"]), "'x' as categories"),
    ],
    ids=["text", "bool", "gap", "whole", "short", "category"],
)
def test_types_of_parts_are_alike(tmp_path, values, told):
    table = pa.table({"x": values if isinstance(values, pa.Array) else pa.array(values)})
    folder = folder_of(tmp_path / "t", NUMBERS, table.append_column("g", pa.array(["a"])))
    if told:
        refused(folder, told, kind=DataError)
    else:
        assert read(folder)["x"].dtype == np.float64


def test_numbers_that_the_type_of_the_first_part_does_not_hold_are_refused(tmp_path):
    folder = folder_of(tmp_path / "t", {"x": [1, 2]}, {"x": [3, 4]}, {"x": [22042.729]})
    refused(folder, "is it whole, and like the other parts", ["x"])


def test_names_with_dots_are_those_of_their_columns(tmp_path):
    folder = folder_of(tmp_path / "t", {"x": [1.0], "x.y": [2.0]})
    assert read(folder, ["x"]).columns.tolist() == ["x"]
    assert read(folder, ["x.y", "x"]).columns.tolist() == ["x.y", "x"]


def test_a_column_that_was_an_index_is_one_as_any_other(tmp_path):
    (tmp_path / "t").mkdir()
    pd.DataFrame(NUMBERS).set_index("g").to_parquet(tmp_path / "t" / "a.parquet")
    assert read(tmp_path / "t").columns.tolist() == ["x", "g"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes have names here")
def test_pipes_and_links_that_lead_nowhere_are_not_waited_for(tmp_path):
    folder = folder_of(tmp_path / "t", NUMBERS)
    os.mkfifo(folder / "part-1.parquet")
    refused(folder, "a pipe or a device")
    (folder / "part-1.parquet").unlink()
    (folder / "part-1.parquet").symlink_to(tmp_path / "nowhere")
    refused(folder, "no such file")
    (folder / "part-1.parquet").unlink()
    (folder / "part-1.parquet").mkdir()
    refused(folder, "it is a folder")


def test_files_in_folders_within_and_with_other_endings_are_not_left_out(tmp_path):
    folder = folder_of(tmp_path / "t", NUMBERS)
    (folder / "part-0.parquet").rename(folder / "part-0.PARQUET")
    assert len(read(folder)) == 3
    (folder / "notes").mkdir()
    assert len(read(folder)) == 3
    folder_of(folder / "year=2020", NUMBERS)
    refused(folder, "in folders within it, which would be left out")


def test_files_whose_names_have_equal_numbers_have_an_order(tmp_path):
    (tmp_path / "t").mkdir()
    for name, value in (("p1", 1.0), ("p01", 2.0), ("p001", 3.0), ("p0001", 4.0)):
        pq.write_table(pa.table({"x": [value]}), tmp_path / "t" / f"{name}.parquet")
    assert read(tmp_path / "t", ["x"])["x"].tolist() == [4.0, 3.0, 2.0, 1.0]


def test_a_folder_that_cannot_be_entered_is_refused(tmp_path, monkeypatch):
    folder = folder_of(tmp_path / "t", NUMBERS)

    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(folder), "iterdir", refuse)
    refused(folder, "cannot be read: Permission denied")


def test_a_part_that_changes_while_the_folder_is_read_is_refused(tmp_path):
    folder = folder_of(tmp_path / "t", NUMBERS, NUMBERS)
    table = partitions(folder, "The data")
    assert sum(len(frame) for _, frame in table.read(["x"])) == 6
    pq.write_table(pa.table({"x": [9.0]}), folder / "part-1.parquet")
    with pytest.raises(FileError, match=r"part-1\.parquet has changed since it was first read"):
        list(table.read(["x"]))


@pytest.mark.parametrize("of", [Path, ds.dataset], ids=["folder", "dataset"])
def test_long_texts_are_refused_before_there_is_one_for_every_row(tmp_path, of):
    (tmp_path / "t").mkdir()
    once = pa.DictionaryArray.from_arrays(pa.array([0] * 60_000, pa.int32()), ["x" * 100_000])
    bomb = pa.table({"x": np.zeros(60_000), "g": once})
    pq.write_table(bomb, tmp_path / "t" / "a.parquet", store_schema=False)
    assert (tmp_path / "t" / "a.parquet").stat().st_size < 10**6
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match="'g' holds texts of more than 4,000 bytes"):
        list(partitions(of(tmp_path / "t"), "The data").read(["x", "g"]))
    assert pa.total_allocated_bytes() - before < 10**8


def test_lists_of_a_dataset_are_refused_before_they_are_unpacked(tmp_path):
    folder = folder_of(tmp_path / "t", {"x": [[0.0] * 100_000] * 100})
    with pytest.raises(DataError, match="'x' holds lists or other nested values"):
        list(partitions(ds.dataset(folder), "The data").read(["x"]))


def test_of_a_filtered_dataset_the_chosen_rows_are_read(tmp_path):
    folder = folder_of(tmp_path / "t", NUMBERS, NUMBERS)
    some = ds.dataset(folder).filter(ds.field("x") > NUMBERS["x"][0])
    frames = [frame for _, frame in partitions(some, "The data").read(["x", "g"])]
    assert sum(map(len, frames)) == 2 * sum(x > NUMBERS["x"][0] for x in NUMBERS["x"])


def test_a_file_that_stands_for_far_more_rows_than_it_has_room_for_is_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("SYNRISK_MOST_BYTES", str(2**22))
    folder = folder_of(tmp_path / "t", {"x": np.zeros(10**6)})
    refused(folder, "is too large", ["x"])
    random = np.random.default_rng(1).normal(size=10**6)
    assert len(read(folder_of(tmp_path / "u", {"x": random}), ["x"])) == 10**6


def test_lists_are_refused_before_they_are_unpacked(tmp_path):
    folder = folder_of(tmp_path / "t", {"x": [[0.0] * 100_000] * 100})
    refused(folder, "'x' holds lists or other nested values", ["x"], DataError)


def test_text_that_is_no_unicode_is_refused(tmp_path):
    folder = folder_of(tmp_path / "t", {"g": ["Quovadis", "Ramsgate"], "x": [1.0, 2.0]})
    path = folder / "part-0.parquet"
    pq.write_table(pq.read_table(path), path, compression="none", use_dictionary=False)
    path.write_bytes(path.read_bytes().replace(b"Ramsgate", b"Ram\xff\xfeate"))
    refused(folder, "cannot be read as Parquet", ["g"])


def test_names_of_files_do_not_act_on_a_terminal(tmp_path):
    folder = folder_of(tmp_path / "t", NUMBERS)
    (folder / "part-1\x1b[2J.parquet").write_bytes(b"PAR1")
    refused(folder, "cannot be read as Parquet")
    (folder / "part-1\x1b[2J.parquet").unlink()
    pq.write_table(pa.table({"x": [1.0]}), folder / "part-1\x1b[2J.parquet")
    refused(folder, r"part-1\\x1b\[2J\.parquet has no column", kind=DataError)


def test_many_small_parts_are_read_as_few_large_frames(tmp_path):
    (tmp_path / "t").mkdir()
    stream = io.BytesIO()
    pq.write_table(pa.table(NUMBERS), stream)
    for k in range(50):
        (tmp_path / "t" / f"{k}.parquet").write_bytes(stream.getvalue())
    frames = [frame for _, frame in partitions(tmp_path / "t", "The data").read(["x", "g"])]
    assert [len(frame) for frame in frames] == [150]
    assert zlib.crc32("".join(frames[0]["g"]).encode()) == zlib.crc32(
        "".join(NUMBERS["g"] * 50).encode()
    )
