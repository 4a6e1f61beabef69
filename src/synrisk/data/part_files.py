"""A folder of numbered Parquet parts, each whole or not there, that a later run goes on with.

Beside each part stands what it was made from and its digest, written after it: a part without that,
or of another digest, is none. Once all parts are there a list of them is written last. One run at a
time has the folder; what it writes its owner alone can read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from synrisk.base.errors import FileError, listed
from synrisk.data.output_files import (
    KnownFile,
    as_path,
    sha256,
    sweep,
    try_to_lock,
    why_not_a_file,
    write_whole,
)
from synrisk.data.unpacking import Attempt

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

KEPT, NEW = "kept", "new"
CONTENTS = "parts.json"
_FORMAT = 1
_PART = re.compile(r"part-(\d{6})\.(?:parquet|json)")
_LARGEST_NOTE = 1 << 20  # bytes beside a part


class PartsWarning(UserWarning):
    """Parts of an earlier run were made anew, as they do not fit or are not whole."""


@dataclass(frozen=True)
class PartFolder:
    """A folder of parts.

    Attributes
    ----------
    path
        Where it is.
    notes
        Where it is noted what the parts were made from, if not beside them: a folder that is to be
        released holds none.
    """

    path: Path
    notes: Path | None = None

    @classmethod
    @contextlib.contextmanager
    def opened(
        cls, path: str | os.PathLike[str], notes: Path | None = None
    ) -> Iterator[PartFolder]:
        """Yield the folder, made where it is not there, for this run alone."""
        folder, number, problem = cls(as_path(path), notes), -1, ""
        try:
            for one in folder._folders:
                one.mkdir(mode=0o700, exist_ok=True)
            number = os.open(folder.path, os.O_RDONLY)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"Parts cannot be written to {folder.path}: {problem}.")
        try:
            if try_to_lock(number) is False:
                raise FileError(f"Another run writes to {folder.path}; wait until it ends.")
            folder._prepare()
            yield folder
        finally:
            os.close(number)

    def _prepare(self) -> None:
        """Raise where a folder holds something else, and remove what killed runs left."""
        problem = ""
        try:
            for one in self._folders:
                if not all(is_part(path.name) for path in one.iterdir()):
                    problem = (
                        "it holds other files than parts of a risk. Give a new folder, or one that "
                        "an earlier run wrote"
                    )
                sweep(one)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"Parts cannot be written to {self.path}: {problem}.")

    @property
    def _folders(self) -> tuple[Path, ...]:
        return (self.path,) if self.notes is None else (self.path, self.notes)

    @property
    def _contents(self) -> Path:
        return (self.notes or self.path) / CONTENTS

    def _note_path(self, number: int) -> Path:
        return (self.notes or self.path) / self.part(number).with_suffix(".json").name

    def part(self, number: int) -> Path:
        """Return where a part is."""
        return self.path / f"part-{number:06d}.parquet"

    def files(self, n_parts: int) -> tuple[KnownFile, ...]:
        """Return the parts as they are now."""
        return tuple(KnownFile.found(self.part(k), str(self.path)) for k in range(n_parts))

    def begin(self, made_from: list[dict[str, Any]]) -> list[str]:
        """Remove what does not fit, and return for each part how it is.

        Parameters
        ----------
        made_from
            For each part, in order, by what it is known again.

        Returns
        -------
        list
            `KEPT` for a part that is there; else why it is to be made: `NEW`, ``"not
            whole"``, or what has changed.
        """
        states = [self._state(number, wanted) for number, wanted in enumerate(made_from)]
        kept = {number for number, state in enumerate(states) if state == KEPT}
        if len(kept) < len(states) or self._n_listed() != len(states):
            self._remove(self._contents)
        for folder in self._folders:
            for path in sorted(folder.iterdir()):
                found = _PART.fullmatch(path.name)
                if found and int(found[1]) not in kept:
                    self._remove(path)
        return states

    def beside(self, number: int) -> Any:
        """Return what was noted beside a part that is there, or None."""
        note = self._note(number)
        return None if note is None else note.get("beside")

    def _state(self, number: int, wanted: Mapping[str, Any]) -> str:
        path, note = self.part(number), self._note(number)
        if note is None:
            return "not whole" if path.exists() else NEW
        made_from = note["made_from"]
        if made_from != dict(wanted):
            found = made_from if isinstance(made_from, dict) else {}
            changed = (f"other {key}" for key in wanted if found.get(key) != wanted[key])
            return next(changed, "not whole")
        with contextlib.suppress(OSError):
            # To open a pipe waits without end.
            if not why_not_a_file(path) and sha256(path) == note["sha256"]:
                return KEPT
        return "not whole"

    def _note(self, number: int) -> dict[str, Any] | None:
        note = _read_json(self._note_path(number))
        if note is None or note.get("format") != _FORMAT:
            return None
        return note if {"made_from", "sha256"} <= set(note) else None

    def _n_listed(self) -> int | None:
        contents = _read_json(self._contents)
        return None if contents is None else contents.get("n_parts")

    def _remove(self, path: Path) -> None:
        problem = ""
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            problem = error.strerror or type(error).__name__
        if problem:
            raise FileError(f"{path} cannot be removed: {problem}.")

    def write(
        self, number: int, table: pa.Table, made_from: Mapping[str, Any], beside: Any = None
    ) -> None:
        """Write a part, then what it was made from, and what else is to be known of it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path, content = self.part(number), pa.BufferOutputStream()
        pq.write_table(table, content)
        write_whole(path, content.getvalue().to_pybytes(), owner_only=True)
        note = {
            "format": _FORMAT,
            "n_records": table.num_rows,
            "made_from": dict(made_from),
            "sha256": sha256(path),
            "beside": beside,
        }
        self._write_json(self._note_path(number), note)

    def end(self, n_parts: int) -> None:
        """List the parts: all are there."""
        self._write_json(self._contents, {"format": _FORMAT, "n_parts": n_parts})

    @staticmethod
    def _write_json(path: Path, content: Mapping[str, Any]) -> None:
        write_whole(path, json.dumps(content, indent=1).encode(), owner_only=True)


def read_part(
    file: KnownFile, n_records: int, columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return a part, or some of its columns, as it was when the result was made.

    A later run with other settings writes other numbers to the same folder.
    """
    from pyarrow import parquet

    here = str(file.path.parent)
    file.refuse_changed(here)
    attempt, part = Attempt(f"{here}: {file.path.name}"), None
    with attempt:
        part = parquet.read_table(file.path, columns=columns and list(columns)).to_pandas()
    if part is None or len(part) != n_records:
        raise attempt.refusal("is not the part that was written; evaluate the risk again.")
    found: pd.DataFrame = part
    return found


def tell_anew(states: Sequence[str], what: str = "Parts") -> None:
    """Warn of what was made anew of an earlier run."""
    anew = Counter(state for state in states if state not in (KEPT, NEW))
    if anew:
        whys = listed(f"{n:,} ({state})" for state, n in anew.items())
        warnings.warn(
            f"{what} of an earlier run were made anew: {whys} of {len(states):,}.",
            PartsWarning,
            stacklevel=4,
        )


def is_part(name: str) -> bool:
    """Tell whether a file of a folder of parts has a name that is given here."""
    named = _PART.fullmatch(name) or name == CONTENTS
    return bool(named) or name.startswith(".synrisk-")


def _read_json(path: Path) -> dict[str, Any] | None:
    """Return what a small file holds; None where it is not there or damaged."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        if path.is_file() and path.stat().st_size <= _LARGEST_NOTE:
            found = json.loads(path.read_text(encoding="utf-8"))
            return found if isinstance(found, dict) else None
    return None
