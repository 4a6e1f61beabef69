"""The folder that a study writes: whole files, owner-only, and a manifest of what is whose.

Files are made in a hidden folder within it and moved in at the end, the manifest last; until then
what an earlier run left stays as it is. A file that no earlier run made is never overwritten.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from synrisk.base.errors import FileError, listed
from synrisk.data.output_files import sha256

MANIFEST = "manifest.json"
_FORMAT = 1
_HIDDEN = ".synrisk-"  # and the process that made it
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM") if hasattr(signal, name))


@dataclass(frozen=True)
class Staging:
    """Files on their way into a folder.

    Attributes
    ----------
    folder
        Where they will be.
    inside
        Where they are made.
    """

    folder: Path
    inside: Path

    def path(self, name: str) -> Path:
        """Return where to write the file `name`."""
        return self.inside / name

    def write_text(self, name: str, text: str) -> None:
        """Write a text file."""
        self.path(name).write_text(text, encoding="utf-8")

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file."""
        self.write_text(name, json_text(value))

    def commit(self, manifest: Mapping[str, Any], *, keep: bool = False) -> None:
        """Move all files into the folder, then the manifest with their digests.

        Parameters
        ----------
        manifest
            What it says beside the digests.
        keep
            Whether files of an earlier run that were not made anew stay; else they are removed.
        """
        names = sorted(path.name for path in self.inside.iterdir())
        made = {name: sha256(self.path(name)) for name in names}
        before = _outputs(self.folder)
        kept = {name: digest for name, digest in before.items() if name not in made and keep}
        for name in names:
            self.path(name).chmod(0o600)
        with uninterrupted():
            # Should the machine stop here, the next run still knows which files are its own.
            self._place_manifest({**manifest, "complete": False, "outputs": {**before, **made}})
            for name in names:
                self.path(name).replace(self.folder / name)
            for name in before:
                if name not in made and not keep:
                    (self.folder / name).unlink(missing_ok=True)
            outputs = dict(sorted({**kept, **made}.items()))
            self._place_manifest({**manifest, "complete": True, "outputs": outputs})

    def _place_manifest(self, manifest: Mapping[str, Any]) -> None:
        path = self.path(MANIFEST)
        path.write_text(json_text({"format": _FORMAT, **manifest}), encoding="utf-8")
        path.chmod(0o600)
        path.replace(self.folder / MANIFEST)


@contextmanager
def writing(folder: Path, names: Iterable[str]) -> Iterator[Staging]:
    """Yield a place to make the files `names` of a folder; nothing is left of it if that fails."""
    check_folder(folder, names)
    created: list[Path] = []
    staging: Path | None = None
    try:
        with uninterrupted():
            problem = ""
            try:
                created = _make(folder)
                _sweep(folder)
                prefix = f"{_HIDDEN}{os.getpid()}-"
                staging = Path(tempfile.mkdtemp(prefix=prefix, dir=folder))  # mode 0700
            except OSError as error:
                problem = error.strerror or type(error).__name__
        if staging is None:
            raise FileError(f"The folder {folder} cannot be written: {problem}.")
        yield Staging(folder, staging)
    finally:
        with uninterrupted():
            if staging is not None:
                shutil.rmtree(staging, ignore_errors=True)
            for path in created:
                with contextlib.suppress(OSError):  # not empty: the files are there
                    path.rmdir()


def _sweep(folder: Path) -> None:
    """Remove what killed runs left: they hold confidential values."""
    for path in folder.glob(f"{_HIDDEN}*-*"):
        pid = path.name.removeprefix(_HIDDEN).split("-")[0]
        if pid.isdecimal() and not _is_running(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(pid: int) -> bool:
    if os.name != "posix":  # elsewhere asking may end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _make(folder: Path) -> list[Path]:
    """Make a folder that its owner alone can read, and those above it; return what was made."""
    missing = [folder, *folder.parents]
    created = [path for path in missing if not path.exists()]
    for path in reversed(created):
        path.mkdir(mode=0o700)
    return created


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder, or None where it has none of ours."""
    with contextlib.suppress(OSError, ValueError):
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if isinstance(manifest, dict) and isinstance(manifest.get("outputs"), dict):
            return manifest
    return None


def _outputs(folder: Path) -> dict[str, str]:
    """Return the files that an earlier run made, with their digests."""
    manifest = read_manifest(folder) or {"outputs": {}}
    return {
        name: str(digest)
        for name, digest in manifest["outputs"].items()
        if Path(name).name == name and name != MANIFEST
    }


def check_folder(folder: Path, names: Iterable[str]) -> None:
    """Raise where the files `names` of a folder are not an earlier run's."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file; the results need a folder.")
    own = _outputs(folder)
    if not (folder / MANIFEST).exists():
        why = f"and no {MANIFEST} to tell whether an earlier run wrote them"
    elif read_manifest(folder) is None:
        own, names = {}, [MANIFEST, *names]
        why = f"and its {MANIFEST} is damaged or not synrisk's"
    else:
        why = f"which its {MANIFEST} does not list among the files of an earlier run"
    others = [name for name in names if name not in own and (folder / name).exists()]
    if others:
        raise FileError(
            f"The folder {folder} holds {listed(others)}, {why}. They might be somebody's, so "
            "nothing is overwritten: delete them or move them away, or choose another output "
            "folder."
        )


def refuse_own_inputs(folder: Path, names: Iterable[str], inputs: Iterable[Path]) -> None:
    """Raise where a file that is read is one that would be replaced or removed."""
    replaced = {*names, *_outputs(folder)}
    own = [p.name for p in inputs if p.name in replaced and _same(p.parent, folder)]
    if own:
        raise FileError(
            f"The study reads {listed(own)} from the folder that it writes, and would replace it. "
            "Choose another output folder."
        )


def _same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and termination back until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def hold(number: int, _: FrameType | None) -> None:
        caught.append(number)

    before = {
        number: signal.signal(number, hold)
        for number in _SIGNALS
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise KeyboardInterrupt


def json_text(value: Any) -> str:
    """Return JSON as files have it; infinite numbers and dates, which it lacks, as text."""
    plain = _plain(value)
    return json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
