"""Folders of results: what is whose, and what stays when something goes wrong."""

import json
import math
import os
import re
import signal
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from helpers.races import KINDS, Arena, can_race, write_results
from helpers.studies import as_json

import synrisk as sr
from synrisk.study.folder import (
    MANIFEST,
    about_mode,
    json_text,
    refuse_own_inputs,
    uninterrupted,
    writing,
)

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")


def write(folder, *names, keep=False, text="x"):
    with writing(folder, names, keep=keep) as staging:
        for name in names:
            staging.write_text(name, text)
        staging.commit({"title": "t"})


def write_while(folder, happening, *names):
    """Write files, and let something happen before they are moved in."""
    with writing(folder, names) as staging:
        for name in names:
            staging.write_text(name, "new")
        happening(staging)
        staging.commit({})


def found(folder):
    """What is in a folder and in those within it."""
    return {
        path: (path.lstat().st_ino, path.lstat().st_mtime_ns, path.lstat().st_mode)
        for path in folder.rglob("*")
    }


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


def changed_by_somebody(path):
    path.write_text("mine", encoding="utf-8")


def a_link(path):
    elsewhere = path.parent.parent / "elsewhere.csv"
    elsewhere.write_text("x", encoding="utf-8")  # what was written, but not here
    path.unlink()
    path.symlink_to(elsewhere)


def a_link_to_nowhere(path):
    path.unlink()
    path.symlink_to(path.parent.parent / "nowhere.csv")


def a_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("change", [changed_by_somebody, a_link, a_link_to_nowhere, a_folder])
def test_what_was_changed_since_is_neither_overwritten_nor_removed(tmp_path, change):
    folder = tmp_path / "out"
    write(folder, "one.csv", "two.csv")
    change(folder / "two.csv")
    before = found(tmp_path)
    for made in ("one.csv", "two.csv"):  # two.csv would be removed, or replaced
        with pytest.raises(sr.FileError, match=r"holds two\.csv, changed since.*delete them or mo"):
            write(folder, made, text="new")
    assert found(tmp_path) == before
    write(folder, "one.csv", keep=True, text="new")  # two.csv stays
    with pytest.raises(sr.FileError, match=r"holds two\.csv, changed since"):
        write(folder, "two.csv", keep=True, text="new")


@pytest.mark.parametrize("name", ["one.csv", "two.csv", "three.csv"])
def test_what_is_changed_during_a_run_is_safe_too(tmp_path, name):
    write(tmp_path, "one.csv", "two.csv")

    def change(_):
        (tmp_path / name).write_text("mine", encoding="utf-8")

    with pytest.raises(sr.FileError, match=rf"holds {name}"):
        write_while(tmp_path, change, "one.csv", "three.csv")
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"
    assert "new" not in {path.read_text(encoding="utf-8") for path in tmp_path.glob("*.csv")}


@pytest.mark.parametrize("digest", ["0", "../one.csv", 5, None])
def test_a_manifest_that_somebody_made_up_removes_nothing(tmp_path, digest):
    (tmp_path / "mine.csv").write_text("mine", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    for name in ("mine.csv", "sub"):
        text = json_text({"outputs": {name: digest}})
        (tmp_path / MANIFEST).write_text(text, encoding="utf-8")
        with pytest.raises(sr.FileError, match="changed since"):
            write(tmp_path, "one.csv")
    no_names = ("a\0b", "\ud800", "/", "..", ".", "", "sub/x", ".hidden", "~", MANIFEST)
    text = json_text({"outputs": dict.fromkeys(no_names, digest), "earlier": [3]})
    (tmp_path / MANIFEST).write_text(text, encoding="utf-8")
    write(tmp_path, "one.csv")
    assert names(tmp_path) == [MANIFEST, "mine.csv", "one.csv", "sub"]


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "link", "endless", "deep"])
def test_a_manifest_that_is_no_file_of_ours_is_refused_and_not_waited_for(tmp_path, kind):
    folder, manifest = tmp_path / "out", tmp_path / "out" / MANIFEST
    write(folder, "one.csv")
    manifest.rename(tmp_path / "moved.json")
    if kind == "pipe":
        os.mkfifo(manifest)
    elif kind == "deep":
        manifest.write_text("[" * 100_000, encoding="utf-8")
    else:
        manifest.symlink_to("/dev/zero" if kind == "endless" else tmp_path / "moved.json")
    with pytest.raises(
        sr.FileError, match=r"holds manifest\.json, one\.csv, and its .* is damaged"
    ):
        write(folder, "one.csv")
    assert manifest.is_symlink() == (kind in ("link", "endless"))


def test_a_folder_that_becomes_a_link_is_not_written_through(tmp_path):
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.mkdir()

    def move(staging):
        folder.rename(tmp_path / "away")
        folder.symlink_to(elsewhere)
        (elsewhere / staging.inside.name).symlink_to(tmp_path / "away" / staging.inside.name)

    with pytest.raises(sr.FileError, match="moved or replaced"):
        write_while(folder, move, "a")
    assert not (elsewhere / "a").exists()
    assert not (elsewhere / MANIFEST).exists()


def test_a_folder_that_is_a_link_from_the_start_is_written(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    write(tmp_path / "out", "one.csv")
    assert names(tmp_path / "disk") == [MANIFEST, "one.csv"]


def test_a_link_that_is_turned_during_the_run_is_refused(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    out = tmp_path / "out"
    out.symlink_to(tmp_path / "one")

    def turn(_):
        out.unlink()
        out.symlink_to(tmp_path / "two")

    with pytest.raises(sr.FileError, match="moved or replaced"):
        write_while(out, turn, "a")
    assert names(tmp_path / "one") == names(tmp_path / "two") == []


@POSIX
def test_one_run_at_a_time_has_the_folder(tmp_path):
    folder = tmp_path / "out"
    with writing(folder, ["a"]) as staging:
        with pytest.raises(sr.FileError, match="Another run is writing"), writing(folder, ["a"]):
            pass
        staging.write_text("a", "first")
        staging.commit({})
    write(folder, "a", text="second")
    assert (folder / "a").read_text(encoding="utf-8") == "second"
    assert names(folder) == ["a", MANIFEST]


@pytest.mark.parametrize("n_moved", [0, 1, 2])
def test_a_machine_that_stops_while_files_are_moved_in_leaves_what_the_next_run_knows(
    tmp_path, monkeypatch, n_moved
):
    write(tmp_path, "one.csv", "two.csv", "old.csv", text="old")
    moved, replace = [], Path.replace

    def stopping(path, target):
        if path.name != MANIFEST:
            if len(moved) == n_moved:
                raise OSError(5, "Input/output error")
            moved.append(path.name)
        return replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", stopping)
        for _ in range(2):  # it may stop twice
            moved.clear()
            with pytest.raises(OSError, match="Input/output"):
                write(tmp_path, "one.csv", "two.csv", "three.csv", text="new")
    assert not as_json(tmp_path / MANIFEST)["complete"]
    changed = tmp_path / "one.csv"
    content = changed.read_text(encoding="utf-8")
    changed.write_text("mine", encoding="utf-8")
    with pytest.raises(sr.FileError, match=r"holds one\.csv, changed since"):
        write(tmp_path, "one.csv", "two.csv")
    changed.write_text(content, encoding="utf-8")
    write(tmp_path, "one.csv", "two.csv", text="last")
    assert names(tmp_path) == [MANIFEST, "one.csv", "two.csv"]
    assert "earlier" not in as_json(tmp_path / MANIFEST)


@POSIX
@pytest.mark.parametrize(
    ("mode", "words"),
    [(0o700, ""), (0o755, "see its files' names"), (0o777, "replace or delete"),
     (0o1777, "see its files' names"), (0o770, "replace or delete")],
)  # fmt: skip
def test_a_folder_that_somebody_made_keeps_its_mode_and_what_it_means_is_said(
    tmp_path, mode, words
):
    folder = tmp_path / "out"
    folder.mkdir()
    folder.chmod(mode)
    write(folder, "one.csv")
    assert folder.stat().st_mode & 0o7777 == mode
    assert (folder / "one.csv").stat().st_mode & 0o777 == 0o600
    said = about_mode(folder)
    assert words in said
    assert bool(said) == (mode != 0o700)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_only_lets_read_is_said(tmp_path):
    write(tmp_path, "one.csv")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(sr.FileError, match="cannot be written: Permission denied"):
            write(tmp_path, "one.csv")
    finally:
        tmp_path.chmod(0o700)
    assert names(tmp_path) == [MANIFEST, "one.csv"]


def test_inputs_that_links_lead_to_are_not_replaced(tmp_path):
    folder = tmp_path / "out"
    write(folder, "one.csv")
    (tmp_path / "link.csv").symlink_to(folder / "one.csv")
    for read in (folder / "one.csv", tmp_path / "link.csv"):
        with pytest.raises(sr.FileError, match=rf"reads {read.name} from the folder"):
            refuse_own_inputs(folder, ["two.csv"], [read])
    refuse_own_inputs(folder, ["two.csv"], [tmp_path / "one.csv"])


def test_json_shows_control_characters_and_keeps_them():
    value = {"a\x1b\x7f\x9b\u202e\ud800é\n": "b\u2069"}
    text = json_text(value)
    assert json.loads(text) == value
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    text.encode()
    assert "é" in text


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
    dead, alive = (tmp_path / f".synrisk-{pid}-abcdef_9" for pid in (ended.pid, os.getppid()))
    mine = tmp_path / f".synrisk-{ended.pid}-notes"  # no name that synrisk gives
    for folder in (dead, alive, mine):
        folder.mkdir()
        (folder / "draws.csv").write_text("x", encoding="utf-8")
    write(tmp_path, "one.csv")
    assert names(tmp_path) == sorted([alive.name, mine.name, MANIFEST, "one.csv"])


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


@POSIX
@pytest.mark.parametrize("swapped", ["link", "folder"])
def test_a_folder_that_is_put_in_the_place_of_the_hidden_one_gets_nothing_that_can_be_read(
    tmp_path, swapped
):
    """Somebody who may write to the output folder swaps it while a run writes."""
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o777)
    before = os.umask(0o000)
    try:
        with writing(tmp_path / "out", ["one.csv"]) as staging:
            staging.inside.rename(staging.folder / "away")
            if swapped == "link":
                staging.inside.symlink_to(theirs)
            else:
                staging.inside.mkdir()
            staging.write_text("one.csv", "confidential")
            assert staging.path("one.csv").stat().st_mode & 0o077 == 0
            with pytest.raises(sr.FileError, match="was moved or replaced"):
                staging.commit({})
    finally:
        os.umask(before)
    assert not (tmp_path / "out" / "one.csv").exists()
    if sys.platform == "linux":
        assert names(theirs) == names(tmp_path / "out" / "away") == []


@pytest.mark.skipif(not can_race(), reason="no two names are exchanged at once here")
@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_swaps_links_in_gets_nothing_written_or_deleted_elsewhere(tmp_path, kind):
    arena = Arena(tmp_path)
    came = [arena.race(kind, write_results) for _ in range(30)]
    arena.close()
    assert [problem for _, problems in came for problem in problems] == []
    assert any(how in ("taken", "refused") for how, _ in came)  # names were exchanged meanwhile


@POSIX
def test_a_link_in_the_place_of_a_file_that_is_to_be_made_is_not_written_through(tmp_path):
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    with writing(tmp_path / "out", ["one.csv"]) as staging:
        staging.path("one.csv").symlink_to(mine)
        with pytest.raises(FileExistsError):
            staging.write_text("one.csv", "confidential")
    assert mine.read_text(encoding="utf-8") == "mine"
