"""Files of SPSS, SAS and Stata: labels become levels, and damaged files end nothing."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.data import survey_files
from synrisk.data.frames import read_table

pyreadstat = pytest.importorskip("pyreadstat")

LABELS = {1: "village", 2: "town", 3: "city"}


def people(n=40):
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "income": np.exp(rng.normal(10, 1, n)),
            "place": rng.choice([1.0, 3.0], n),
            "age": rng.choice([18.0, 40.0, 99.0], n),
            "name": rng.choice(["Jane", "Zoë"], n),
        }
    )


WRITERS = {
    ".sav": pyreadstat.write_sav,
    ".zsav": lambda frame, path, **how: pyreadstat.write_sav(frame, path, compress=True, **how),
    ".por": pyreadstat.write_por,
    ".dta": pyreadstat.write_dta,
    ".xpt": pyreadstat.write_xport,
}


def write(tmp_path, ending, frame=None):
    path = tmp_path / f"people{ending}"
    frame, how = people() if frame is None else frame, {"variable_value_labels": {"place": LABELS}}
    if ending in (".xpt", ".por"):  # which have no labels, and letters of ASCII alone
        frame, how = frame.replace({"name": {"Zoë": "Zoe"}}), {}
    WRITERS[ending](frame, str(path), **how)
    return path


@pytest.mark.parametrize("ending", WRITERS)
def test_tables_are_read_with_their_labels(tmp_path, ending):
    found = read_table(write(tmp_path, ending), "T")
    expected = people()
    found.columns = found.columns.str.lower()  # SPSS' portable files know capitals alone
    np.testing.assert_allclose(found["income"], expected["income"], rtol=1e-12)
    if ending in (".xpt", ".por"):
        np.testing.assert_array_equal(found["place"], expected["place"])
        return
    assert found["place"].cat.categories.tolist() == ["village", "city"]
    assert found["place"].tolist() == [LABELS[code] for code in expected["place"]]
    assert found["name"].tolist() == expected["name"].tolist()


def test_labels_of_some_values_leave_numbers_as_they_are(tmp_path):
    path = tmp_path / "people.sav"
    pyreadstat.write_sav(people(), str(path), variable_value_labels={"age": {99.0: "refused"}})
    with pytest.warns(sr.FileWarning, match=r"age has labels for some values and none for others"):
        found = read_table(path, "T")
    assert found["age"].tolist() == people()["age"].tolist()


def test_values_that_the_file_declares_missing_are_missing(tmp_path):
    path = tmp_path / "people.sav"
    pyreadstat.write_sav(people(), str(path), missing_ranges={"age": [99.0]})
    found = read_table(path, "T")
    np.testing.assert_array_equal(found["age"].isna(), people()["age"] == 99.0)


def test_a_study_begins_with_such_a_file(tmp_path):
    path = write(tmp_path, ".dta")
    fitted = sr.fit(sr.Regression("log(income) ~ place"), path, seed=1)
    assert list(fitted.describe().index.get_level_values(-1)) == [
        "Intercept", "place[T.city]", "sigma",
    ]  # fmt: skip


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_damaged_files_are_told_without_their_values(tmp_path, ending):
    whole = write(tmp_path, ending).read_bytes()
    rng = np.random.default_rng(1)
    for n_bytes in (3, len(whole) // 3, len(whole) - 20):
        damaged = bytearray(whole[:n_bytes])
        for place in rng.integers(0, n_bytes, 20):
            damaged[place] = 255
        path = tmp_path / f"damaged{ending}"
        path.write_bytes(damaged)
        with pytest.raises(sr.FileError, match=r"cannot be read; is it whole\?$") as caught:
            read_table(path, "T")
        assert "Jane" not in str(caught.value)


def test_a_reader_that_crashes_ends_only_itself(tmp_path, monkeypatch):
    crash = tmp_path / "crash.py"
    crash.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setattr(survey_files.survey_reader, "__file__", str(crash))
    with pytest.raises(sr.FileError, match="cannot be read; is it whole"):
        read_table(write(tmp_path, ".sav"), "T")


def test_one_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    wait = tmp_path / "wait.py"
    wait.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(survey_files.survey_reader, "__file__", str(wait))
    monkeypatch.setattr(survey_files, "_SECONDS", 0.5)
    with pytest.raises(sr.FileError, match="cannot be read within"):
        read_table(write(tmp_path, ".sav"), "T")


def test_a_table_that_takes_too_much_memory_is_refused(tmp_path, monkeypatch):
    path = write(tmp_path, ".zsav", pd.concat([people()] * 50, ignore_index=True))
    monkeypatch.setenv("SYNRISK_MOST_BYTES", "100000")
    with pytest.raises(sr.FileError, match="is too large"):
        read_table(path, "T")


def test_without_the_library_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = write(tmp_path, ".sav")
    monkeypatch.setattr(survey_files.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(sr.FileError, match=r"synrisk\[survey\]"):
        read_table(path, "T")
