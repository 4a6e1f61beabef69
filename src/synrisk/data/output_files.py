"""Files out, whole or not at all: under a temporary name beside the target, then renamed.

Also which paths are files: to open a pipe waits for whoever writes to it, without end.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synrisk.base.errors import FileError

_LONGEST_NAME = 255
_NO_FILE = "it is a pipe or a device, not a file"
_NO_NAME = "no file can have this name, which holds NUL or a half of a surrogate pair"
_OWNER_ONLY, _AS_USUAL = 0o600, 0o666  # the second less the user's umask


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


def target_of(path: str | os.PathLike[str]) -> Path:
    """Return where a file can be written, or raise."""
    target = as_path(path)
    # A link stays, and the file that it points to is replaced.
    with contextlib.suppress(OSError, RuntimeError):
        target = target.resolve()
    if not target.parent.is_dir():
        raise FileError(f"There is no folder {target.parent} to save {target.name} in.")
    if len(os.fsencode(target.name)) > _LONGEST_NAME:
        raise FileError(f"The file's name is longer than {_LONGEST_NAME} bytes.")
    if target.is_dir() or not target.name:
        raise FileError(f"{target} is a folder; give the name of a file in it.")
    return target


def write_whole(target: Path, content: bytes | Callable[[Path], None], *, owner_only: bool) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    target
        Where it goes.
    content
        What it holds, or what writes it to a path.
    owner_only
        Whether nobody else may read it.
    """
    made = target.with_name(f".synrisk-{secrets.token_hex(8)}")
    mode = _OWNER_ONLY if owner_only else _AS_USUAL
    problem = ""
    try:
        os.close(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        if isinstance(content, bytes):
            made.write_bytes(content)
        else:
            content(made)
        with made.open("r+b") as file:
            os.fsync(file.fileno())
        made.replace(target)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    finally:
        made.unlink(missing_ok=True)
    if problem:
        raise FileError(f"{target.name!r} cannot be written: {problem}.")


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 digest of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
