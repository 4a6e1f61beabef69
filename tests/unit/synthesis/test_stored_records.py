"""Tables that are read in parts: the same fits and the same synthetic data as of one in memory."""

import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET

import synrisk as sr
from synrisk.assessment import evaluate_parts
from synrisk.base.chunks import ROWS
from synrisk.data import parquet_parts, partitions
from synrisk.data.column_store import StoredColumn
from synrisk.synthesis import datasets

RNG = np.random.default_rng(3)
N = 9_000
PEOPLE = pd.DataFrame({"region": RNG.choice(["north", "south", "east"], N)})
PEOPLE["age"] = RNG.integers(18, 90, N)
PEOPLE["income"] = np.exp(RNG.normal(10.0 + 0.005 * PEOPLE["age"], 0.5))
PEOPLE["visits"] = RNG.poisson(np.exp(0.3 + 0.01 * (PEOPLE["age"] - 50)))
PEOPLE["insured"] = np.where(RNG.random(N) < 0.7, "yes", "no")
PEOPLE["unused"] = RNG.integers(0, 5, N)
PLAN = [
    sr.Regression("log(income) ~ age + region"),
    sr.Regression("visits ~ age + log(income)", "poisson"),
    sr.Regression("insured ~ region + visits", "bernoulli"),
]
TYPES = {"insured": ["no", "yes"]}


def folder_of(frame, folder, ends):
    folder.mkdir()
    for number, (first, last) in enumerate(zip([0, *ends], [*ends, len(frame)], strict=True)):
        frame.iloc[first:last].to_parquet(folder / f"part.{number}.parquet", index=False)
    return folder


def read(folder):
    return pd.concat(map(pd.read_parquet, sorted(folder.iterdir())), ignore_index=True)


@pytest.fixture(scope="module")
def in_memory():
    return sr.fit(PLAN, PEOPLE, n_draws=200, seed=1, types=TYPES)


@pytest.mark.parametrize("ends", [[], [1, 4_096, 8_999], range(700, N, 700)])
def test_fit_and_synthetic_data_are_those_of_a_table_in_memory(tmp_path, in_memory, ends):
    table = folder_of(PEOPLE, tmp_path / "people", list(ends))
    stored = sr.fit(PLAN, table, n_draws=200, seed=1, types=TYPES)
    assert stored.n_records == N
    for name in ("income", "visits", "insured"):
        pd.testing.assert_frame_equal(stored.draws(name), in_memory.draws(name), rtol=0, atol=0)
    folders = stored.synthesize(m=2, seed=5, out=tmp_path / "release")
    assert [folder.name for folder in folders] == ["dataset-1", "dataset-2"]
    for folder, expected in zip(folders, in_memory.synthesize(m=2, seed=5), strict=True):
        pd.testing.assert_frame_equal(read(folder), expected.drop(columns="unused"))


def test_data_are_written_in_parts(tmp_path, in_memory, monkeypatch):
    for module in (parquet_parts, __import__("synrisk.synthesis.datasets", fromlist=["_"])):
        monkeypatch.setattr(module, "ROWS_A_PART", 4_096)
    stored = sr.fit(PLAN, folder_of(PEOPLE, tmp_path / "people", []), n_draws=200, seed=1,
                    types=TYPES)  # fmt: skip
    (of_stored,) = stored.synthesize(seed=5, out=tmp_path / "stored")
    (of_memory,) = in_memory.synthesize(seed=5, out=tmp_path / "memory")
    names = [path.name for path in sorted(of_stored.iterdir())]
    assert names == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    assert names == [path.name for path in sorted(of_memory.iterdir())]
    pd.testing.assert_frame_equal(read(of_stored), read(of_memory).drop(columns="unused"))


def test_incomplete_records_are_dropped_as_in_memory(tmp_path):
    people = PEOPLE.assign(income=PEOPLE["income"].where(np.arange(N) % 100 != 3))
    table = folder_of(people, tmp_path / "people", [5_000])
    with pytest.raises(sr.DataError, match="rows 1 to 9,000: missing values in income \\(90\\)"):
        sr.fit(PLAN[:1], table, n_draws=20, seed=1)
    stored = sr.fit(PLAN[:1], table, n_draws=20, seed=1, missing="drop")
    expected = sr.fit(PLAN[:1], people, n_draws=20, seed=1, missing="drop")
    assert (stored.n_records, stored.n_dropped) == (8_910, 90)
    pd.testing.assert_frame_equal(stored.draws("income"), expected.draws("income"), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": "unused"}, "id= is for tables in memory|id='…' is for tables in memory"),
        ({"release": ["unused"]}, "the columns of the formulas are released alone"),
        ({"types": {"unused": "numeric"}}, "no formula uses unused"),
    ],
)
def test_what_a_table_in_parts_cannot_have_is_refused(tmp_path, options, message):
    table = folder_of(PEOPLE, tmp_path / "people", [])
    with pytest.raises(sr.OptionError, match=message):
        sr.fit(PLAN[:1], table, n_draws=20, seed=1, **options)


def test_datasets_of_stored_records_need_a_folder_that_is_new(tmp_path):
    stored = sr.fit(PLAN[:1], folder_of(PEOPLE, tmp_path / "people", []), n_draws=20, seed=1)
    with pytest.raises(sr.OptionError, match="name a new folder"):
        stored.synthesize()
    with pytest.raises(sr.FileError, match="is not empty"):
        stored.synthesize(out=tmp_path / "people")


def test_a_column_that_tells_a_synthesized_one_is_refused(tmp_path):
    people = PEOPLE.assign(thousands=PEOPLE["income"] / 1_000.0)
    table = folder_of(people, tmp_path / "people", [3_000])
    with pytest.raises(sr.DisclosureError, match="thousands"):
        sr.fit(sr.Regression("income ~ thousands + age"), table, n_draws=20, seed=1)


def test_temporary_columns_go_with_the_synthesizer(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = folder_of(PEOPLE, tmp_path / "people", [])
    stored = sr.fit(PLAN[:1], table, n_draws=20, seed=1)
    hidden = [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert len(hidden) == 1
    del stored
    import gc

    gc.collect()
    assert not hidden[0].exists()


def test_datasets_in_parts_are_read_beside_a_table_in_memory(tmp_path):
    people = PEOPLE[:300]
    fitted = sr.fit(PLAN[:1], people, n_draws=20, seed=1)
    release = fitted.synthesize(seed=5)
    risk = sr.attribute_risk(fitted, release)
    from_parts = sr.attribute_risk(fitted, fitted.synthesize(seed=5, out=tmp_path / "release"))
    pd.testing.assert_frame_equal(from_parts.records, risk.records)
    assert from_parts.release_check.status() == risk.release_check.status()


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
def test_no_column_of_stored_records_is_read_whole(tmp_path, monkeypatch):
    largest, read_some = [0], StoredColumn.__getitem__

    def noted(column, rows):
        found = read_some(column, rows)
        largest[0] = max(largest[0], len(found))
        return found

    n = 17 * ROWS
    monkeypatch.setattr(StoredColumn, "__getitem__", noted)
    monkeypatch.setattr(partitions, "_MOST_SAMPLED", N)
    monkeypatch.setattr(datasets, "ROWS_A_PART", 16 * ROWS)
    monkeypatch.setattr(evaluate_parts, "rows_of_part", lambda _: 16 * ROWS)
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    people = pd.DataFrame({"x": x, "y": x + rng.normal(size=n)})
    stored = sr.fit(
        sr.Regression("y ~ x"), folder_of(people, tmp_path / "people", []), n_draws=20, seed=1
    )
    release = stored.synthesize(seed=SECRET, out=tmp_path / "release")
    risk = sr.attribute_risk(stored, release, guesses=3, out=tmp_path / "risk")
    risk.verdict(sr.Criteria(gain=0.9), further=1)
    risk.summary()
    assert largest[0] == 16 * ROWS


def test_the_risk_of_stored_records_is_written_to_a_folder(tmp_path):
    stored = sr.fit(PLAN[:1], folder_of(PEOPLE, tmp_path / "people", []), n_draws=20, seed=1)
    release = stored.synthesize(seed=5, out=tmp_path / "release")
    for records in (None, [3]):
        with pytest.raises(sr.OptionError, match="name a folder"):
            sr.attribute_risk(stored, release, records=records)
    with pytest.raises(sr.OptionError, match="Utility is measured in memory"):
        sr.utility(stored, release)
