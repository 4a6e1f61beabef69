"""Folders of results: what is whose, and what stays when something goes wrong."""

import json
import math
import os
import signal
import subprocess
import sys
from datetime import date

import pytest
from helpers.studies import as_json

import synrisk as sr
from synrisk.study.folder import MANIFEST, json_text, uninterrupted, writing

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")


def write(folder, *names, keep=False, text="x"):
    with writing(folder, names) as staging:
        for name in names:
            staging.write_text(name, text)
        staging.commit({"title": "t"}, keep=keep)


def write_and_fail(folder, text):
    with writing(folder, ["one.csv"]) as staging:
        staging.write_text("one.csv", text)
        raise ZeroDivisionError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_come_in_together_with_their_digests(tmp_path):
    folder = tmp_path / "a" / "b"
    write(folder, "one.csv", "two.csv")
    assert names(folder) == [MANIFEST, "one.csv", "two.csv"]
    manifest = as_json(folder / MANIFEST)
    assert manifest["complete"]
    assert set(manifest["outputs"]) == {"one.csv", "two.csv"}


def test_what_is_not_made_anew_is_removed_or_kept(tmp_path):
    write(tmp_path, "one.csv", "two.csv")
    write(tmp_path, "one.csv", keep=True, text="y")
    assert names(tmp_path) == [MANIFEST, "one.csv", "two.csv"]
    assert set(as_json(tmp_path / MANIFEST)["outputs"]) == {"one.csv", "two.csv"}
    write(tmp_path, "one.csv")
    assert names(tmp_path) == [MANIFEST, "one.csv"]


def test_a_failure_leaves_no_trace(tmp_path):
    folder = tmp_path / "a" / "b"
    with pytest.raises(ZeroDivisionError):
        write_and_fail(folder, "x")
    assert names(tmp_path) == []
    write(folder, "one.csv", text="old")
    with pytest.raises(ZeroDivisionError):
        write_and_fail(folder, "new")
    assert (folder / "one.csv").read_text(encoding="utf-8") == "old"
    assert names(folder) == [MANIFEST, "one.csv"]


def test_others_files_are_safe(tmp_path):
    (tmp_path / "mine.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(sr.FileError, match=r"holds mine\.csv, and no manifest\.json to tell"):
        write(tmp_path, "mine.csv")
    with pytest.raises(sr.FileError, match="is a file"):
        write(tmp_path / "mine.csv", "one.csv")
    # A manifest that somebody made up owns nothing outside its folder.
    folder = tmp_path / "out"
    folder.mkdir()
    outputs = {"../mine.csv": "0", "/etc/none": "0"}
    (folder / MANIFEST).write_text(json_text({"outputs": outputs}), encoding="utf-8")
    write(folder, "one.csv")
    assert (tmp_path / "mine.csv").exists()


def test_a_folder_whose_manifest_does_not_vouch_for_a_file_says_so_and_what_to_do(tmp_path):
    write(tmp_path, "one.csv")
    manifest = (tmp_path / MANIFEST).read_text(encoding="utf-8")
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(sr.FileError, match=r"holds one\.csv, and no manifest\.json.*delete them"):
        write(tmp_path, "one.csv")
    (tmp_path / MANIFEST).write_text("half", encoding="utf-8")
    with pytest.raises(sr.FileError, match=r"manifest\.json, one\.csv, and its .* is damaged"):
        write(tmp_path, "one.csv")
    (tmp_path / MANIFEST).write_text(manifest, encoding="utf-8")
    (tmp_path / "two.csv").write_text("mine", encoding="utf-8")
    with pytest.raises(sr.FileError, match=r"holds two\.csv, which its manifest\.json does not"):
        write(tmp_path, "one.csv", "two.csv")
    (tmp_path / "two.csv").unlink()
    write(tmp_path, "one.csv", "two.csv")


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(sr.FileError, match="cannot be written"):
        write(tmp_path / "file" / "out", "one.csv")


def test_infinite_numbers_and_dates_are_text():
    value = {"within": [-math.inf, 1.5], "when": date(2020, 1, 2), "n": 3}
    assert json.loads(json_text(value)) == {"within": ["-inf", 1.5], "when": "2020-01-02", "n": 3}


@POSIX
def test_what_killed_runs_left_is_swept_and_what_others_make_is_not(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead, alive = (tmp_path / f".synrisk-{pid}-x" for pid in (ended.pid, os.getppid()))
    for folder in (dead, alive):
        folder.mkdir()
        (folder / "draws.csv").write_text("x", encoding="utf-8")
    write(tmp_path, "one.csv")
    assert names(tmp_path) == [alive.name, MANIFEST, "one.csv"]


@POSIX
@pytest.mark.parametrize(
    ("number", "handler"),
    [(signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)],
)
def test_interruptions_wait_for_the_end_of_a_block(number, handler):
    done = []
    inherited = signal.signal(number, handler)  # in the background Ctrl-C is ignored

    def block():
        with uninterrupted():
            os.kill(os.getpid(), number)
            done.append(number)

    try:
        with pytest.raises(KeyboardInterrupt):
            block()
        assert done
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, inherited)


@POSIX
def test_an_ignored_interruption_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
