"""The folder that a study writes: whole files, owner-only, and a manifest of what is whose.

Files are made in a hidden folder within it and moved in at the end, the manifest last; until then
what an earlier run left stays as it is. Nothing is overwritten or removed but what an earlier run
wrote and nobody has changed since, by the digests in its manifest. One run at a time has the
folder.

Others who may write there, or to the folder around it, could put a link in the place of either
folder at any moment. So on Linux both are opened at the beginning and used by their numbers from
then on, never by their names.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import signal
import stat
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO

from synrisk.base.errors import FileError, listed
from synrisk.base.messages import in_json
from synrisk.data.output_files import (
    hidden_prefix,
    left_behind,
    open_new,
    sha256,
    try_to_lock,
    why_not_a_file,
)

MANIFEST = "manifest.json"
_FORMAT = 1
_LARGEST_MANIFEST = 1 << 26  # bytes
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
# What a run calls its files; parts are in folders.
_OUTPUT = re.compile(rf"(?:(?:risk|synthetic\d{{1,4}}(?:-notes)?)/)?{_NAME}")
# Ctrl-C, an end that is asked for, and that of the terminal; Windows has not all of them.
SIGNALS: tuple[signal.Signals, ...] = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
PLACED = threading.Event()  # files of this command's run are where they belong
_BY_NUMBER = Path("/proc/self/fd")  # Linux: open folders by their numbers
_WHAT_TO_DO = "delete them or move them away, or choose another output folder."


@dataclass(frozen=True)
class Staging:
    """Files on their way into a folder.

    Attributes
    ----------
    folder
        Where they will be.
    inside
        Where they are made, by its name.
    into, place
        The same two, whatever has their names later.
    identities
        Which folders they were when the run began.
    keep
        Whether files of an earlier run that are not made anew stay; else they are removed.
    """

    folder: Path
    inside: Path
    into: Path
    place: Path
    identities: tuple[tuple[int, int], ...]
    keep: bool

    def path(self, name: str) -> Path:
        """Return where to write the file `name`."""
        return self.place / name

    @contextmanager
    def create(self, name: str) -> Iterator[BinaryIO]:
        """Yield the new file `name`, which its owner alone can read from the first byte on."""
        with open_new(self.path(name)) as number, open(number, "wb", closefd=False) as file:
            yield file

    def write_text(self, name: str, text: str) -> None:
        """Write a text file."""
        with self.create(name) as file:
            file.write(text.encode())

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file."""
        self.write_text(name, json_text(value))

    def commit(self, manifest: Mapping[str, Any], parts: Mapping[str, Path] | None = None) -> None:
        """Move all files into the folder, then the manifest with their digests.

        Parameters
        ----------
        manifest
            What it says beside the digests.
        parts
            Files that were made elsewhere on the same disk, by the names that they get, such as
            "risk/part-000000.parquet".
        """
        self._refuse_other_folders()
        paths = {path.name: path for path in sorted(self.place.iterdir())} | dict(parts or {})
        names = sorted(paths)
        made = {name: sha256(paths[name]) for name in names}
        for name in names:
            paths[name].chmod(0o600)
        with uninterrupted():
            # Once more: the run may have taken hours.
            self._refuse_other_folders()
            check_folder(self.into, names, keep=self.keep, shown=self.folder)
            before = _outputs(self.into)
            kept = {name: digests[0] for name, digests in before.items() if self.keep}
            outputs = dict(sorted({**kept, **made}.items()))
            # Should the machine stop here, the next run still knows which files are its own.
            begun = {"complete": False, "outputs": outputs, "earlier": before}
            self._place_manifest({**manifest, **begun})
            for name in names:
                with _folder_of(self.into, name) as folder:
                    paths[name].replace(folder / Path(name).name)
            for name in before:
                if name not in outputs:
                    _remove(self.into, name)
            self._place_manifest({**manifest, "complete": True, "outputs": outputs})
            PLACED.set()

    def _refuse_other_folders(self) -> None:
        """Raise where another folder, or a link to one, has taken the name of one of ours."""
        found = None
        with contextlib.suppress(OSError):
            found = (_identity(self.folder.stat()), _identity(self.inside.lstat()))
        if found != self.identities:
            raise FileError(
                f"The folder {self.folder} was moved or replaced during the run, so nothing is "
                "written there. Run it again."
            )

    def _place_manifest(self, manifest: Mapping[str, Any]) -> None:
        self.write_json(MANIFEST, {"format": _FORMAT, **manifest})
        self.path(MANIFEST).replace(self.into / MANIFEST)


@contextmanager
def _folder_of(into: Path, name: str) -> Iterator[Path]:
    """Yield the folder of a file within that of the results, made where it is not there."""
    above = into / Path(name).parent
    if above == into:
        yield into
        return
    with contextlib.suppress(FileExistsError):
        above.mkdir(mode=0o700)
    with _opened(above) as folder:
        yield folder


def _remove(into: Path, name: str) -> None:
    """Remove a file, and its folder within that of the results once nothing is in it."""
    if not os.path.lexists(into / name):
        return
    with _folder_of(into, name) as folder:
        (folder / Path(name).name).unlink(missing_ok=True)
    if "/" in name:
        with contextlib.suppress(OSError):
            (into / name).parent.rmdir()


@contextmanager
def writing(folder: Path, names: Iterable[str], *, keep: bool = False) -> Iterator[Staging]:
    """Yield a place to make the files `names` of a folder; nothing is left of it if that fails.

    Parameters
    ----------
    folder
        Where they will be.
    names
        What they are called.
    keep
        Whether other files of an earlier run stay.
    """
    check_folder(folder, names, keep=keep)
    begun = _Begun()
    staging = None
    with contextlib.ExitStack() as opened:
        try:
            with uninterrupted():
                _begun.append(begun)
                problem = ""
                try:
                    _make(folder, begun.created)
                    staging = _begin(begun, folder, opened, keep=keep)
                except OSError as error:
                    problem = error.strerror or type(error).__name__
            if staging is None:
                raise FileError(f"The folder {folder} cannot be written: {problem}.")
            yield staging
        finally:
            with uninterrupted():
                begun.remove()
                _begun.remove(begun)


def _begin(begun: _Begun, folder: Path, opened: contextlib.ExitStack, *, keep: bool) -> Staging:
    """Take a folder for this run, and make the hidden one in it."""
    real = folder.resolve()  # a link may be turned elsewhere before the end
    into = opened.enter_context(_opened(real))
    if opened.enter_context(_locked(into, folder)):
        _sweep(into)
    begun.staging = Path(tempfile.mkdtemp(prefix=hidden_prefix(), dir=into))  # mode 0700
    begun.place = opened.enter_context(_opened(begun.staging))
    identities = (_identity(into.stat()), _identity(begun.place.stat()))
    return Staging(folder, real / begun.staging.name, into, begun.place, identities, keep)


@dataclass
class _Begun:
    """What has to go at the end of a run, or where it is interrupted.

    Attributes
    ----------
    created
        Folders that were made for it, innermost first; they stay if something is in them.
    staging
        Where its files are made, by its name.
    place
        The same, whatever has that name later.
    """

    created: list[Path] = field(default_factory=list)
    staging: Path | None = None
    place: Path | None = None

    def remove(self) -> None:
        if self.place is not None:  # it may have been moved away
            with contextlib.suppress(OSError):
                for path in self.place.iterdir():
                    path.unlink(missing_ok=True)
        if self.staging is not None:
            shutil.rmtree(self.staging, ignore_errors=True)  # leaves a link alone
        for path in self.created:
            with contextlib.suppress(OSError):  # not empty: the files are there
                path.rmdir()


_begun: list[_Begun] = []  # whoever ends the process before the end of a run looks here


def abandon() -> None:
    """Remove what runs have begun; the process must end then."""
    for begun in _begun:
        begun.remove()


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


@contextmanager
def _opened(folder: Path) -> Iterator[Path]:
    """Yield a path that leads to a folder whatever takes its name; on Linux, else the name."""
    if not _BY_NUMBER.is_dir():
        yield folder
        return
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield _BY_NUMBER / str(number)
    finally:
        os.close(number)


@contextmanager
def _locked(folder: Path, shown: Path) -> Iterator[bool]:
    """Hold a folder for one run, and raise where another has it; tell whether it can be held.

    The lock is on the folder itself, so it leaves no file, and ends with the process. Windows and
    some network drives have none.
    """
    if os.name != "posix":  # elsewhere a folder cannot be opened
        yield False
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        held = try_to_lock(number)
        if held is False:
            raise FileError(
                f"Another run is writing to the folder {shown}. Wait for its end, or choose "
                "another output folder."
            )
        yield bool(held)
    finally:
        os.close(number)


def _sweep(folder: Path) -> None:
    """Remove what killed runs left: they hold confidential values."""
    for path in left_behind(folder):
        shutil.rmtree(path, ignore_errors=True)  # leaves a link alone


def _make(folder: Path, created: list[Path]) -> None:
    """Make a folder that its owner alone can read, and those above it; note what was made."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another run was quicker
            path.mkdir(mode=0o700)
            created.insert(0, path)


def about_mode(folder: Path) -> str:
    """Return what others may do to the files of a folder that somebody made, or nothing.

    Its mode is whoever's who made it, and is not changed.
    """
    mode = folder.stat().st_mode if os.name == "posix" else 0
    if not mode & 0o077:
        return ""
    # In a folder with the sticky bit everybody moves and deletes only what is theirs.
    may_replace = mode & 0o022 and not mode & stat.S_ISVTX
    what = "can replace or delete the files in it" if may_replace else "can see its files' names"
    return (
        f"The folder {folder} is open to others (mode {stat.S_IMODE(mode):04o}): they {what}, "
        f"though not read them. Make it yours alone: chmod 700 {folder}"
    )


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Return a manifest, given by its path or its folder's, or None where it is none of ours."""
    file = path / MANIFEST if path.is_dir() else path
    if why_not_a_file(file):
        return None
    with contextlib.suppress(OSError, ValueError, RecursionError), file.open("rb") as opened:
        manifest = json.loads(opened.read(_LARGEST_MANIFEST))
        if isinstance(manifest, dict) and isinstance(manifest.get("outputs"), dict):
            return manifest
    return None


def _outputs(folder: Path) -> dict[str, list[str]]:
    """Return the files that earlier runs made, each with the digests that it may have.

    They are two or more after a run that was stopped while it moved its files in.
    """
    manifest = read_manifest(folder) or {}
    found = {name: [str(digest)] for name, digest in manifest.get("outputs", {}).items()}
    earlier = manifest.get("earlier")
    for name, digests in earlier.items() if isinstance(earlier, dict) else ():
        if isinstance(digests, list):
            found[name] = [*found.get(name, []), *map(str, digests)]
    return {n: d for n, d in found.items() if _OUTPUT.fullmatch(n) and n != MANIFEST}


def parts_of(folder: Path) -> dict[str, list[str]]:
    """Return the files in folders within that of the results, each with its digests."""
    return {name: digests for name, digests in _outputs(folder).items() if "/" in name}


def check_folder(
    folder: Path, names: Iterable[str], *, keep: bool = False, shown: Path | None = None
) -> None:
    """Raise unless all that would be replaced or removed is as an earlier run wrote it.

    Parameters
    ----------
    folder
        Where files are to be written.
    names
        What they are called.
    keep
        Whether other files of an earlier run stay.
    shown
        What the folder is called in messages, if otherwise.
    """
    shown = shown or folder
    if os.path.lexists(folder) and not folder.is_dir():
        raise FileError(f"{shown} is a file; the results need a folder.")
    own, names = _outputs(folder), list(names)
    if not os.path.lexists(folder / MANIFEST):
        why = f"and no {MANIFEST} to tell whether an earlier run wrote them"
    elif (folder / MANIFEST).is_symlink() or read_manifest(folder) is None:
        own, names = {}, [MANIFEST, *names]
        why = f"and its {MANIFEST} is damaged or not synrisk's"
    else:
        why = f"which its {MANIFEST} does not list among the files of an earlier run"
    folders = {str(Path(name).parent) for name in own if "/" in name}
    others = [
        name
        for name in names
        if name not in own and name not in folders and os.path.lexists(folder / name)
    ]
    others += _strangers(folder, sorted(folders), own)
    if others:
        raise FileError(
            f"The folder {shown} holds {listed(others)}, {why}. They might be somebody's, so "
            f"nothing is overwritten: {_WHAT_TO_DO}"
        )
    replaced = [name for name in own if not keep or name in names]
    changed = [name for name in replaced if _is_changed(folder, name, own[name])]
    if changed:
        raise FileError(
            f"The folder {shown} holds {listed(changed)}, changed since synrisk wrote them. They "
            f"might be somebody's now, so nothing is overwritten: {_WHAT_TO_DO}"
        )


def _strangers(folder: Path, folders: Iterable[str], own: Mapping[str, Any]) -> list[str]:
    """Return what is in folders of parts and is none of these: it would pass for one."""
    found = []
    for name in folders:
        with contextlib.suppress(OSError):
            inside = [f"{name}/{path.name}" for path in sorted((folder / name).iterdir())]
            found += [one for one in inside if one not in own]
    return found


def _is_changed(folder: Path, name: str, digests: Iterable[str]) -> bool:
    """Tell whether a file is there and is not what one of the digests is of."""
    path = folder / name
    try:
        if path.parent != folder and path.parent.is_symlink():  # it would lead elsewhere
            return True
        if not stat.S_ISREG(path.lstat().st_mode):  # a link would lead elsewhere
            return True
        return sha256(path) not in digests
    except FileNotFoundError:
        return False
    except OSError:  # it cannot be read
        return True


def refuse_own_inputs(folder: Path, names: Iterable[str], inputs: Iterable[Path]) -> None:
    """Raise where a file that is read is one that would be replaced or removed."""
    results = folder.resolve()
    replaced = {results / name for name in (*names, *_outputs(folder))}
    # A link that is read is not replaced, but what it leads to may be.
    own = [
        path.name
        for path in inputs
        if {path.resolve(), path.parent.resolve() / path.name, *path.resolve().parents} & replaced
    ]
    if own:
        raise FileError(
            f"The study reads {listed(own)} from the folder that it writes, and would replace it. "
            "Choose another output folder."
        )


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and the like back until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[signal.Signals] = []

    def hold(number: int, _: FrameType | None) -> None:
        caught.append(signal.Signals(number))

    before = {
        number: signal.signal(number, hold)
        for number in SIGNALS
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        handler = before[caught[0]]
        if callable(handler):
            handler(caught[0], None)
        raise KeyboardInterrupt


def json_text(value: Any) -> str:
    """Return JSON as files have it; infinite numbers and dates, which it lacks, as text."""
    plain = _plain(value)
    text = json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    return in_json(text) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
