"""Columns on disk: what is written is read again, whole or not at all."""

import pickle
import stat

import numpy as np
import pytest

from synrisk import FileError
from synrisk.data.column_store import StoreWriter, TemporaryFolder, open_store, pieces

PARTS = [
    {"x": np.array([0.5, -1.0, np.pi]), "g": np.array([2, 0, 1])},
    {"x": np.array([1e300]), "g": np.array([5])},
]


@pytest.fixture
def folder(tmp_path):
    with StoreWriter(tmp_path / "store", {"of": "a"}) as store:
        for part in PARTS:
            store.append(part)
    return tmp_path / "store"


def test_slices_are_those_of_an_array(folder):
    columns = open_store(folder, {"of": "a"})
    whole = {name: np.concatenate([part[name] for part in PARTS]) for name in ("x", "g")}
    for name, values in whole.items():
        assert columns[name].dtype == values.dtype
        assert columns[name].shape == values.shape
        np.testing.assert_array_equal(np.asarray(columns[name]), values)
        for rows in (slice(1, 3), slice(2, None), slice(-1, None), slice(0, 4, 2), slice(3, 3)):
            np.testing.assert_array_equal(columns[name][rows], values[rows])
        np.testing.assert_array_equal(np.concatenate(list(pieces(columns[name], 3))), values)


def test_a_column_sent_elsewhere_is_its_path(folder):
    column = open_store(folder, {"of": "a"})["x"]
    assert len(pickle.dumps(column)) < 500
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(column))[:], column[:])  # noqa: S301


def test_only_the_owner_reads_it(folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_what_was_not_finished_or_is_of_something_else_is_not_opened(folder, tmp_path):
    assert open_store(folder, {"of": "b"}) is None
    with pytest.raises(KeyError), StoreWriter(tmp_path / "half", {}) as store:
        store.append(PARTS[0] | {"of no type": np.array(["a"])})
    assert open_store(tmp_path / "half", {}) is None


def test_a_file_that_was_cut_is_not_read(folder):
    columns = open_store(folder, {"of": "a"})
    path = folder / "0.bin"
    path.write_bytes(path.read_bytes()[:-1])
    assert open_store(folder, {"of": "a"}) is None
    with pytest.raises(FileError, match="has become shorter"):
        columns["x"][:]


def test_a_column_is_asked_for_slices(folder):
    with pytest.raises(TypeError, match="by slices"):
        open_store(folder, {"of": "a"})["x"][0]


def test_a_store_is_not_written_over(folder):
    with pytest.raises(FileError, match="cannot be made"), StoreWriter(folder, {}):
        pass


def test_a_temporary_folder_goes_with_its_holder():
    held = TemporaryFolder()
    path = held.path
    (path / "a").write_text("1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    del held
    assert not path.exists()


def test_a_folder_that_a_process_elsewhere_has_is_not_swept(tmp_path, monkeypatch):
    """In another container with the same temporary folder, ids of processes are others."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    theirs = TemporaryFolder()
    (theirs.path / "0.bin").write_bytes(bytes(8))
    monkeypatch.setattr("synrisk.data.output_files._is_running", lambda _: False)
    ours = TemporaryFolder()
    assert (theirs.path / "0.bin").exists()
    path = theirs.path
    theirs._end()
    assert not path.exists()
    assert ours.path.exists()
