"""Files out, whole or not at all: under a temporary name beside the target, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from synrisk.base.errors import FileError

_LONGEST_NAME = 255
_OWNER_ONLY, _AS_USUAL = 0o600, 0o666  # the second less the user's umask


def as_path(path: Any) -> Path:
    """Return the path of a file, or raise."""
    good = isinstance(path, str | os.PathLike) and "\0" not in str(path)
    if not good or not str(path):
        raise FileError(f"A file is named by text or a Path; got {type(path).__name__}.")
    return Path(path)


def target_of(path: str | os.PathLike[str]) -> Path:
    """Return where a file can be written, or raise."""
    target = as_path(path)
    with contextlib.suppress(OSError):  # a link stays, and the file that it points to is replaced
        target = target.resolve()
    if not target.parent.is_dir():
        raise FileError(f"There is no folder {target.parent} to save {target.name} in.")
    if len(target.name.encode()) > _LONGEST_NAME:
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
