"""Files out, whole or not at all: under a temporary name beside the target, then renamed.

A temporary is hidden, and its name tells which process makes it: where that process was killed, the
next one that writes to the folder removes it. Also which paths are files: to open a pipe waits for
whoever writes to it, without end.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synrisk.base.errors import FileError

_LONGEST_NAME = 255
_NO_FILE = "it is a pipe or a device, not a file"
_NO_NAME = "no file can have this name, which holds NUL or a half of a surrogate pair"
_OWNER_ONLY, _AS_USUAL = 0o600, 0o666  # the second less the user's umask
# The process that makes it, and eight letters as tempfile chooses them.
_HIDDEN = re.compile(r"\.synrisk-(\d{1,9})-[a-z0-9_]{8}")


def as_path(path: Any) -> Path:
    """Return the path of a file that is there or can be, or raise."""
    if not isinstance(path, str | os.PathLike) or not str(path):
        raise FileError(f"A file is named by text or a Path; got {type(path).__name__}.")
    problem = why_not_a_file(Path(path))
    if problem in (_NO_NAME, _NO_FILE):
        raise FileError(f"{str(path)[:200]}: {problem}.")
    return Path(path)


def why_not_a_file(path: Path) -> str:
    """Return why a path cannot be read as a file, or an empty text if it can be."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return error.strerror or type(error).__name__
    except ValueError:
        return _NO_NAME
    if stat.S_ISDIR(mode):
        return "it is a folder"
    return "" if stat.S_ISREG(mode) else _NO_FILE


@dataclass(frozen=True)
class KnownFile:
    """A file as it was found: what is put in its place later is told from it.

    Attributes
    ----------
    path
        Where it is.
    number
        What the file system calls it.
    n_bytes
        How large it is.
    changed_at
        When it was written to, in nanoseconds.
    """

    path: Path
    number: int
    n_bytes: int
    changed_at: int

    @classmethod
    def found(cls, path: Path, here: str) -> KnownFile:
        """Return the file at a path, or raise; `here` is what it is of, for messages."""
        problem = why_not_a_file(path)
        if not problem:
            try:
                known = path.stat()
                return cls(path, known.st_ino, known.st_size, known.st_mtime_ns)
            except OSError as error:
                problem = error.strerror or type(error).__name__
        raise FileError(f"{here}: {path.name} cannot be read: {problem}.")

    def refuse_changed(self, here: str) -> None:
        """Raise where it is no longer the file that was found."""
        if KnownFile.found(self.path, here) != self:
            raise FileError(f"{here}: {self.path.name} has changed since it was first read.")


def target_of(path: str | os.PathLike[str]) -> Path:
    """Return where a file can be written, or raise."""
    target = as_path(path)
    # A link stays, and the file that it points to is replaced.
    with contextlib.suppress(OSError, RuntimeError):
        target = target.resolve() if target.is_symlink() else target
    if not target.parent.is_dir():
        raise FileError(f"There is no folder {target.parent} to save {target.name} in.")
    if len(os.fsencode(target.name)) > _LONGEST_NAME:
        raise FileError(f"The file's name is longer than {_LONGEST_NAME} bytes.")
    if target.is_dir() or not target.name:
        raise FileError(f"{target} is a folder; give the name of a file in it.")
    return target


def write_whole(target: Path, content: bytes | Iterable[bytes], *, owner_only: bool) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    target
        Where it goes.
    content
        What it holds, or the parts of that.
    owner_only
        Whether nobody else may read it.
    """
    made = target.with_name(f"{hidden_prefix()}{secrets.token_hex(4)}")
    problem = ""
    try:
        with contextlib.suppress(OSError):  # whoever may not look around writes all the same
            sweep(target.parent)
        with open_new(made, _OWNER_ONLY if owner_only else _AS_USUAL) as number:
            with open(number, "wb", closefd=False) as file:
                file.writelines([content] if isinstance(content, bytes) else content)
            os.fsync(number)
        made.replace(target)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    finally:
        made.unlink(missing_ok=True)
    if problem:
        raise FileError(f"{target.name!r} cannot be written: {problem}.")


@contextlib.contextmanager
def open_new(path: Path, mode: int = _OWNER_ONLY) -> Iterator[int]:
    """Yield the number of a new file, locked; what is written to it goes nowhere else.

    Nothing is written by the file's name: others who may write to its folder could put a link in
    its place.
    """
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        try_to_lock(number)
        yield number
    finally:
        os.close(number)


# -- what killed processes left --------------------------------------------------------------------
def hidden_prefix() -> str:
    """Return how the names of temporary files and folders of this process begin."""
    return f".synrisk-{os.getpid()}-"


def left_behind(folder: Path) -> Iterator[Path]:
    """Yield temporary files and folders of processes that are no more: they may hold records."""
    for path in folder.iterdir():
        ours = _HIDDEN.fullmatch(path.name)
        if ours and not _is_running(int(ours[1])):
            yield path


def sweep(folder: Path) -> None:
    """Remove files that killed processes left."""
    for path in left_behind(folder):
        with contextlib.suppress(OSError):
            if stat.S_ISREG(path.lstat().st_mode) and not _is_locked(path):
                path.unlink()


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


def _is_locked(path: Path) -> bool:
    """Tell whether a process of another machine or container, whose ids we do not see, has it."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return try_to_lock(number) is False
    finally:
        os.close(number)


def try_to_lock(number: int) -> bool | None:
    """Lock an open file or folder until it is closed; tell whether another process has it.

    The answer is False where another has it, and None where there are no locks: on Windows and on
    some network drives.
    """
    try:
        import fcntl

        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 digest of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
