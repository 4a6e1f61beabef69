"""Links that a racing process puts in the place of files and folders while a run writes them.

A run writes to the folder that it began in, whatever has its name later, or refuses. The links
lead to somebody else's results: nothing of them may change, and nothing may be added to them.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import synrisk as sr
from synrisk.data.output_files import target_of, write_whole
from synrisk.study.folder import MANIFEST, read_manifest, writing

NAMES = ("records.csv", "report.html", "risk.nc", "summary.json")
KINDS = ("folder", "hidden folder", "report.html", "risk.nc", MANIFEST, "earlier.csv")
# Exchanges two names as often as it can while there is a hidden folder, from one line that it reads
# to the next; then each is what it was, and it prints how often it did.
_RACER = """
import ctypes, json, os, select, sys
exchange, here, at_once = ctypes.CDLL(None).renameat2, -100, 2
while line := sys.stdin.readline():
    out, name, link = json.loads(line)
    folder, n = os.open(out, os.O_RDONLY), 0
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        hidden = [one for one in os.listdir(folder) if one.startswith(".synrisk-")]
        if not hidden:
            continue
        left = (here, out) if name == "folder" else (folder, name)
        left = (folder, hidden[0]) if name == "hidden folder" else left
        names = left[0], left[1].encode(), here, link.encode(), at_once
        for _ in range(8):
            n += exchange(*names) == 0
    if n % 2:
        exchange(*names)
    os.close(folder)
    sys.stdin.readline()
    print(n, flush=True)
"""


def can_race() -> bool:
    """Tell whether the system exchanges two names at once."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "renameat2")


class Arena:
    """A folder of results, somebody else's beside it, and the process that exchanges names.

    Parameters
    ----------
    folder
        Where both are.
    """

    def __init__(self, folder: Path) -> None:
        self.out, self._theirs, self._link = (folder / n for n in ("out", "theirs", "link"))
        self._before = self._make_theirs()
        self._racer = subprocess.Popen(
            [sys.executable, "-S", "-c", _RACER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _make_theirs(self) -> dict[str, str]:
        shutil.rmtree(self._theirs, ignore_errors=True)
        write_results(self._theirs, [*NAMES, "earlier.csv"], "theirs")
        hidden = self._theirs / "hidden"
        hidden.mkdir()
        (hidden / "notes.txt").write_text("theirs", encoding="utf-8")
        return _contents(self._theirs)

    def close(self) -> None:
        self._racer.communicate()

    def _tell(self, words: Any) -> str:
        assert self._racer.stdin is not None
        assert self._racer.stdout is not None
        self._racer.stdin.write(json.dumps(words) + "\n")
        self._racer.stdin.flush()
        return self._racer.stdout.readline().strip()

    def race(self, kind: str, run: Callable[[Path], None]) -> tuple[str, list[str]]:
        """Run while names are exchanged; return what came of it, and what is wrong.

        Parameters
        ----------
        kind
            Of `KINDS`: what a link is exchanged for.
        run
            Writes results anew over earlier ones, to a path.
        """
        shutil.rmtree(self.out, ignore_errors=True)
        write_results(self.out, [*NAMES, "earlier.csv"], "at first")
        inside = {"folder": ".", "hidden folder": "hidden"}.get(kind, kind)
        self._link.symlink_to(self._theirs / inside)
        assert self._tell([str(self.out), kind, str(self._link)]) == "ready"
        came, problems = "taken", []
        try:
            run(self.out)
        except (sr.FileError, OSError):  # the command line says what either is
            came = "refused"
        finally:
            n_exchanged = int(self._tell("stop"))
        after = _contents(self._theirs)
        if after != self._before:
            changed = sorted(dict(after.items() ^ self._before.items()))
            problems.append(f"{kind}: somebody else's files were changed: {changed}")
            self._make_theirs()
        manifest = read_manifest(self.out)
        if kind == "folder" and came == "taken" and not _is_whole(self.out, manifest):
            problems.append(f"{kind}: said to be written, and is not")
        # Theirs to move away, so it cannot be found by its name; but what it held can be removed.
        left = (self._link, *self.out.glob(".synrisk-*"))
        if any(one.is_dir() and not one.is_symlink() and list(one.iterdir()) for one in left):
            problems.append(f"{kind}: confidential files are left in a hidden folder")
        if self._link.is_dir() and not self._link.is_symlink():
            shutil.rmtree(self._link)
        self._link.unlink(missing_ok=True)
        return came if n_exchanged else f"{came} before the race began", problems


def write_results(folder: Path, names: Sequence[str] = NAMES, text: str = "anew") -> None:
    """Write results as a run does: new files, and such as are written whole and then renamed."""
    with writing(folder, names) as staging:
        for name in names:
            if name in ("report.html", "risk.nc"):
                content = f"{name}: {text}".encode()
                write_whole(target_of(staging.path(name)), content, owner_only=True)
            else:
                staging.write_text(name, f"{name}: {text}")
        staging.commit({})


def _contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _is_whole(folder: Path, manifest: dict[str, Any] | None) -> bool:
    if manifest is None or not manifest["complete"]:
        return False
    found = _contents(folder)
    return all(found.get(name) == digest for name, digest in manifest["outputs"].items())
