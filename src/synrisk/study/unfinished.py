"""What a run of a study has made in parts before its end, for a later one to go on with.

It is a hidden folder in that of the results, which its owner alone can enter. Beside the parts
stands what the run began with: its seeds, and by digests what it read. Once the results are in
their place it is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synrisk.base.errors import FileError, listed
from synrisk.data.output_files import sha256, write_whole
from synrisk.data.part_files import PartFolder, is_part
from synrisk.study.folder import parts_of, read_manifest

NAME = ".synrisk-unfinished"
RISK_PARTS = "risk"
_BEGUN = "run.json"
_LARGEST = 1 << 24  # bytes of that


@dataclass(frozen=True)
class Unfinished:
    """The parts of a run.

    Attributes
    ----------
    results
        The folder of the results.
    shown
        What that is called in messages.
    m
        The number of datasets; 0 where they are given.
    states
        How each part of the datasets was, once they are there.
    """

    results: Path
    shown: Path
    m: int
    states: list[str] = field(default_factory=list)

    @property
    def path(self) -> Path:
        """Where they are."""
        return self.results / NAME

    @property
    def risk(self) -> Path:
        """Where those of the risk are."""
        return self.path / RISK_PARTS

    def datasets(self) -> list[PartFolder]:
        """Return where those of each dataset are, and what they were made from."""
        return [
            PartFolder(self.path / dataset_name(k), self.path / notes_name(k))
            for k in range(1, self.m + 1)
        ]

    def earlier(self) -> dict[str, Any] | None:
        """Return what an earlier run began with, whether it ended or not; None without one."""
        begun = self.path / _BEGUN
        with contextlib.suppress(OSError, ValueError, RecursionError):
            if begun.stat().st_size <= _LARGEST:
                found = json.loads(begun.read_text(encoding="utf-8"))
                if _has_seeds(found):
                    return dict(found)
        manifest = read_manifest(self.results)
        return manifest if manifest is not None and _has_seeds(manifest) else None

    def begin(self, begun: Mapping[str, Any], *, resume: bool) -> bool:
        """Make the folder, with the parts of earlier runs if these are to be gone on with.

        Parameters
        ----------
        begun
            What the run begins with.
        resume
            Whether to go on.

        Returns
        -------
        bool
            Whether parts of a run that had not ended were dropped.
        """
        self._refuse_others()
        was_there = self.path.is_dir() and not resume
        if was_there:
            self.remove()
        problem = ""
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            if resume:
                self._take_over()
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"The folder {self.shown} cannot be written: {problem}.")
        content = json.dumps(begun, indent=1, default=str).encode()
        write_whole(self.path / _BEGUN, content, owner_only=True)
        return was_there

    def _take_over(self) -> None:
        """Let parts that an earlier run has put in their place stand here too, as they are."""
        for name, digests in parts_of(self.results).items():
            source, target = self.results / name, self.path / name
            if target.exists() or source.is_symlink() or not source.is_file():
                continue
            if source.parent.is_symlink() or sha256(source) not in digests:
                continue
            target.parent.mkdir(mode=0o700, exist_ok=True)
            try:
                os.link(source, target)
            except OSError:  # a disk without links
                shutil.copy2(source, target)

    def files(self) -> dict[str, Path]:
        """Return the parts by their names within the results."""
        folders = [RISK_PARTS]
        for k in range(1, self.m + 1):
            folders += [dataset_name(k), notes_name(k)]
        return {
            f"{name}/{path.name}": path
            for name in folders
            for path in sorted((self.path / name).iterdir())
        }

    def remove(self) -> None:
        """Remove what runs have made here, and nothing else."""
        self._refuse_others()
        problem = ""
        try:
            for folder in self._folders():
                for path in folder.iterdir():
                    path.unlink()
                folder.rmdir()
            for path in self.path.iterdir():
                path.unlink()
            self.path.rmdir()
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"{self.shown / NAME} cannot be removed: {problem}.")

    def _folders(self) -> Iterator[Path]:
        for path in sorted(self.path.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield path

    def _refuse_others(self) -> None:
        """Raise where something is here that no run has made."""
        if not os.path.lexists(self.path):
            return
        if self.path.is_symlink() or not self.path.is_dir():
            raise FileError(f"{self.shown / NAME} is no folder of a run; move it away.")
        folders = {path.name for path in self._folders()}
        others = [
            f"{folder}/{path.name}"
            for folder in sorted(folders)
            for path in sorted((self.path / folder).iterdir())
            if not is_part(path.name) or path.is_dir()
        ]
        others += [
            path.name
            for path in sorted(self.path.iterdir())
            if path.name not in folders | {_BEGUN} and not path.name.startswith(".synrisk-")
        ]
        if others:
            raise FileError(
                f"The folder {self.shown / NAME} holds {listed(others)}, which no run wrote. "
                "Nothing is removed: move them away."
            )


def dataset_name(number: int) -> str:
    """Return what the folder of a dataset is called."""
    return f"synthetic{number}"


def notes_name(number: int) -> str:
    """Return what the folder is called that says what the parts of a dataset were made from."""
    return f"synthetic{number}-notes"


def _has_seeds(found: Any) -> bool:
    seeds = found.get("seeds") if isinstance(found, dict) else None
    return isinstance(seeds, dict) and all(
        type(seeds.get(name)) is int for name in ("fit", "synthesis")
    )
