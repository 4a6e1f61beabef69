"""Folders of parts of a risk as enemies and accidents leave them."""

import json
import os

import pyarrow as pa
import pytest

from synrisk import FileError
from synrisk.data.part_files import CONTENTS, PartFolder, read_part

MADE_FROM = [{"release": "a", "records": [0, 2]}, {"release": "a", "records": [2, 4]}]


@pytest.fixture
def written(tmp_path):
    """A folder with two parts."""
    with PartFolder.opened(tmp_path / "risk") as folder:
        assert folder.begin(MADE_FROM) == ["new", "new"]
        for number, one in enumerate(MADE_FROM):
            folder.write(number, pa.table({"gain": [0.1, 0.2]}), one)
        folder.end(2)
    return tmp_path / "risk"


def states(path, made_from=MADE_FROM):
    with PartFolder.opened(path) as folder:
        return folder.begin(made_from)


@pytest.mark.parametrize(
    "note",
    [
        b"", b"null", b"[]", b'"x"', b"{", b"\xff\xfe", b"9" * 5_000, b"[" * 100_000, b"NaN",
        b'{"format": 1, "made_from": ' + b"9" * 4_999 + b', "sha256": ""}',
        b'{"format": 1, "made_from": [], "sha256": []}',
        b'{"format": 1, "made_from": {"release": 1e999}, "sha256": null}',
        b'{"format": 1e400}', b" " * (1 << 21), b'{"sha256": 1, "sha256": 2}',
    ],
    ids=range(15),
)  # fmt: skip
def test_notes_that_hold_something_else_are_none(written, note):
    (written / "part-000001.json").write_bytes(note)
    (written / CONTENTS).write_bytes(note)
    found = states(written)
    assert found[0] == "kept"
    assert found[1] in ("not whole", "other release")
    assert not (written / "part-000001.parquet").exists()


def test_a_part_of_another_run_is_made_anew(written):
    """Swapped parts, with what stands beside them or without."""
    for ending in ("parquet", "json"):
        first, second = (written / f"part-00000{k}.{ending}" for k in (0, 1))
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
    assert states(written) == ["other records", "other records"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes have names here")
@pytest.mark.parametrize("name", ["part-000000.parquet", "part-000000.json", CONTENTS])
def test_pipes_are_not_waited_for(written, name):
    (written / name).unlink()
    os.mkfifo(written / name)
    expected = "kept" if name == CONTENTS else "not whole"
    assert states(written)[0] == expected


def test_a_folder_that_another_run_has_keeps_its_hidden_files(written, monkeypatch):
    """Seen from another container, the run that writes them may look as if it were no more."""
    monkeypatch.setattr("synrisk.data.output_files._is_running", lambda _: False)
    hidden = written / ".synrisk-1-abcd1234"
    with PartFolder.opened(written):
        hidden.write_text("of the run that has the folder", encoding="utf-8")
        with pytest.raises(FileError, match="Another run writes"):
            states(written)
        assert hidden.exists()
    assert states(written) == ["kept", "kept"]
    assert not hidden.exists()


def test_what_is_no_folder_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(FileError, match="cannot be written"):
        states(tmp_path / "file")
    monkeypatch.setattr(os, "open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
    with pytest.raises(FileError, match=r"cannot be written to .*: no"):
        states(tmp_path / "risk")


@pytest.mark.parametrize("content", [b"", b"PAR1", None, "other", "short"])
def test_a_part_is_read_as_it_was_or_not_at_all(written, content):
    file, _ = PartFolder(written).files(2)
    assert read_part(file, 2, ["gain"])["gain"].tolist() == [0.1, 0.2]
    if content is None:
        file.path.unlink()
    elif isinstance(content, bytes):
        file.path.write_bytes(content)
    else:
        with PartFolder.opened(written) as folder:
            values = [0.9, 0.8] if content == "other" else [0.9]
            folder.write(0, pa.table({"gain": values}), {"release": "b"})
    with pytest.raises(FileError, match=r"has changed|no such file") as raised:
        read_part(file, 2)
    assert raised.value.__context__ is None


def test_a_part_that_was_never_whole_is_refused(written):
    path = written / "part-000000.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    file, other = PartFolder(written).files(2)
    with pytest.raises(FileError, match="not the part that was written"):
        read_part(file, 2)
    with pytest.raises(FileError, match="not the part that was written"):
        read_part(other, 3)


def test_notes_tell_digests_alone(written):
    note = json.loads((written / "part-000000.json").read_bytes())
    assert set(note) == {"format", "n_records", "made_from", "sha256", "beside"}
    assert note["beside"] is None
