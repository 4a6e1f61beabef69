"""Files out: whole or not at all, and nothing of a process that was killed stays."""

import os
import signal
import subprocess
import sys

import pytest

import synrisk as sr
from synrisk.data import output_files
from synrisk.data.output_files import hidden_prefix, left_behind, open_new, write_whole

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals and links are those of POSIX")
# Writes a part of a file, says so and waits to be killed.
WRITING = """
import sys, time
from pathlib import Path
from synrisk.data.output_files import write_whole

def parts():
    yield b"confidential" * 10_000
    print("begun", flush=True)
    time.sleep(60)

write_whole(Path(sys.argv[1]), parts(), owner_only=True)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def ended():
    """The id of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def begin(path):
    """Begin to write a file in another process."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    return process


@POSIX
def test_what_a_killed_save_left_goes_with_the_next_one(tmp_path):
    process = begin(tmp_path / "risk.nc")
    (left,) = names(tmp_path)
    assert left.startswith(f".synrisk-{process.pid}-")
    write_whole(tmp_path / "other.nc", b"x", owner_only=True)
    assert names(tmp_path) == [left, "other.nc"]  # it is still being written
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert names(tmp_path) == [left, "other.nc"]
    write_whole(tmp_path / "risk.nc", b"x", owner_only=True)
    assert names(tmp_path) == ["other.nc", "risk.nc"]


@POSIX
def test_what_is_somebody_elses_stays(tmp_path):
    pid = ended()
    (tmp_path / "mine").write_bytes(b"mine")
    others = [
        f".synrisk-{pid}-notes",
        f".synrisk-{pid}-abcdef_9.txt",
        f"x.synrisk-{pid}-abcdef_9",
        f".synrisk-{os.getppid()}-abcdef_9",
        ".synrisk-0123456789abcdef",
    ]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    link, folder = (tmp_path / f".synrisk-{pid}-{end}" for end in ("linked__", "folder__"))
    link.symlink_to(tmp_path / "mine")
    folder.mkdir()
    (folder / "mine").write_bytes(b"mine")
    os.mkfifo(tmp_path / f".synrisk-{pid}-pipe____")
    before = names(tmp_path)
    write_whole(tmp_path / "one.nc", b"x", owner_only=True)
    assert names(tmp_path) == sorted([*before, "one.nc"])
    assert (folder / "mine").exists()


@POSIX
def test_what_a_process_that_we_cannot_see_has_locked_stays(tmp_path, monkeypatch):
    """As of another container, or another machine on the same network drive."""
    monkeypatch.setattr(output_files, "_is_running", lambda _: False)
    made = tmp_path / f"{hidden_prefix()}abcdef_9"
    with open_new(made):
        write_whole(tmp_path / "one.nc", b"x", owner_only=True)
        assert names(tmp_path) == [made.name, "one.nc"]
    write_whole(tmp_path / "one.nc", b"x", owner_only=True)
    assert names(tmp_path) == ["one.nc"]


def test_a_folder_is_looked_through_only_for_names_that_are_ours(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    assert list(left_behind(tmp_path)) == []


@POSIX
def test_a_link_in_the_place_of_a_temporary_is_not_written_through(tmp_path):
    """Somebody who may write to the folder swaps the file while it is being written."""
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")

    def parts():
        (made,) = tmp_path.glob(".synrisk-*")
        made.unlink()
        made.symlink_to(mine)
        yield b"confidential"

    write_whole(tmp_path / "one.nc", parts(), owner_only=True)
    assert mine.read_bytes() == b"mine"


@POSIX
def test_a_link_in_the_place_of_the_target_is_replaced_and_not_followed(tmp_path):
    mine, target = tmp_path / "mine", tmp_path / "one.nc"
    mine.write_bytes(b"mine")

    def parts():
        target.symlink_to(mine)
        yield b"confidential"

    write_whole(target, parts(), owner_only=True)
    assert mine.read_bytes() == b"mine"
    assert not target.is_symlink()


def test_a_failure_leaves_what_there_was(tmp_path):
    target = tmp_path / "one.nc"
    target.write_bytes(b"old")

    def parts():
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(sr.FileError, match=r"'one\.nc' cannot be written: No space") as caught:
        write_whole(target, parts(), owner_only=True)
    assert caught.value.__context__ is None
    assert (names(tmp_path), target.read_bytes()) == (["one.nc"], b"old")


@POSIX
def test_a_folder_that_cannot_be_listed_can_be_written_to(tmp_path, monkeypatch):
    def refused(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(output_files, "left_behind", refused)
    write_whole(tmp_path / "one.nc", b"x", owner_only=True)
    assert names(tmp_path) == ["one.nc"]
