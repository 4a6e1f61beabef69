"""Tables in parts: however they are cut, they settle the schema that they settle as a whole."""

import numpy as np
import pandas as pd
import pyarrow.dataset as ds
import pytest

from synrisk import DataError, FileError
from synrisk.data.partitions import Digest, evenly_spread, is_partitioned, partitions
from synrisk.data.schema import Schema

RNG = np.random.default_rng(1)
N = 3_000
WHOLE = pd.DataFrame(
    {
        "amount": RNG.normal(size=N),
        "count": RNG.integers(0, 40, N),
        "many": RNG.permutation(N),
        "text": RNG.choice(["north", "south", "east"], N),
        "flag": RNG.random(N) < 0.5,
        "gaps": np.where(RNG.random(N) < 0.01, np.nan, RNG.normal(size=N)),
        "rare": np.where(np.arange(N) == N - 1, "rare", "usual"),
        "class": pd.Categorical(RNG.choice(["b", "a"], N), categories=["b", "a", "never"]),
        "sparse": pd.Series(RNG.choice(["x", "y"], N)).where(np.arange(N) != 7),
    }
)


def folder_of(frame, folder, ends):
    folder.mkdir()
    for number, (first, last) in enumerate(zip([0, *ends], [*ends, len(frame)], strict=True)):
        frame.iloc[first:last].to_parquet(folder / f"part.{number}.parquet", index=False)
    return folder


def settled(table, names=tuple(WHOLE.columns), **options):
    given = {"types": None, "factors": (), "missing": "level"} | options
    return Schema.settle(table, names, **given).to_json()


@pytest.mark.parametrize("ends", [[], [1], [1_000, 1_001, 2_999], range(100, N, 100)])
def test_the_schema_is_that_of_the_whole(tmp_path, ends):
    table = partitions(folder_of(WHOLE, tmp_path / "table", list(ends)), "The data")
    digest = Digest("The data")
    for _, frame in table.read(table.names):
        digest.add(frame)
    assert digest.n_rows == N
    assert len(digest.frame()) <= 1_010
    assert settled(digest.frame()) == settled(WHOLE)
    assert settled(digest.frame(), factors=["count"]) == settled(WHOLE, factors=["count"])
    ranges = {"types": {"amount": (-10, 10), "many": (0, N)}}
    assert settled(digest.frame(), **ranges) == settled(WHOLE, **ranges)
    modelled = {"missing": {"gaps": "model", "amount": "model", "sparse": "level"}}
    assert settled(digest.frame(), **modelled) == settled(WHOLE, **modelled)


def test_parts_come_in_the_order_of_their_numbers(tmp_path):
    folder = folder_of(WHOLE, tmp_path / "table", range(200, N, 200))
    assert (folder / "part.10.parquet").exists()
    read = pd.concat([one for _, one in partitions(folder, "The data").read(["many"])])
    assert read["many"].tolist() == WHOLE["many"].tolist()


def test_other_columns_are_not_read(tmp_path):
    dataset = ds.dataset(folder_of(WHOLE, tmp_path / "table", [500]), format="parquet")
    assert is_partitioned(dataset)
    for _, frame in partitions(dataset, "The data").read(["text", "count"]):
        assert list(frame.columns) == ["text", "count"]


def test_rows_that_are_kept_keep_no_part_in_memory():
    kept = evenly_spread(WHOLE, 5, 10)
    assert kept.index.tolist() == list(range(5, len(WHOLE), 10))
    assert not np.shares_memory(kept["count"].to_numpy(), WHOLE["count"].to_numpy())


def test_messages_name_rows_of_the_whole(tmp_path):
    dataset = ds.dataset(folder_of(WHOLE, tmp_path / "table", [500]), format="parquet")
    table = partitions(dataset, "The data")
    whats = [what for what, _ in table.read(["count"])]
    assert whats == ["The data, rows 1 to 500", "The data, rows 501 to 3,000"]


def test_categories_that_differ_by_part_are_refused(tmp_path):
    folder = folder_of(WHOLE[["count"]], tmp_path / "table", [])
    for number, levels in enumerate((["a", "b"], ["b", "a"])):
        part = pd.DataFrame({"g": pd.Categorical(["a", "b"], categories=levels)})
        part.to_parquet(folder / f"part.{number}.parquet")
    digest = Digest("The data")
    (_, first), (_, second) = partitions(folder, "The data").read(["g"])
    digest.add(first)
    with pytest.raises(DataError, match="different categories in 'g'"):
        digest.add(second)


def test_text_with_too_many_values_is_refused():
    digest = Digest("The data")
    with pytest.raises(DataError, match="more than 10,000 different values") as raised:
        digest.add(pd.DataFrame({"name": [f"Smith {k}" for k in range(10_001)]}))
    assert "Smith" not in str(raised.value)


def test_a_folder_without_parts_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(FileError, match="without files of Parquet"):
        partitions(tmp_path, "The data")


def test_a_damaged_part_is_refused_without_its_values(tmp_path):
    folder = folder_of(WHOLE, tmp_path / "table", [500])
    path = folder / "part.1.parquet"
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(FileError, match=r"part\.1\.parquet cannot be read as Parquet; is it whole"):
        list(partitions(folder, "The data").read(["text"]))


def test_a_column_that_is_not_there_is_refused_with_the_nearest(tmp_path):
    table = partitions(folder_of(WHOLE, tmp_path / "table", [500]), "The data")
    with pytest.raises(DataError, match=r"no column 'Amount'\. Did you mean 'amount'"):
        table.require(["Amount"])
