"""Digests of what something is made from, by which a later run knows it again."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from synrisk.base.chunks import chunks

_PLAIN = str, bytes, int, float, np.generic, type, type(None)


def digest(*made_from: Any) -> str:
    """Return a digest of settings, arrays, and columns that are read by slices.

    Of what is nothing of these no two are the same.

    Examples
    --------
    >>> digest({"n": 1}, np.arange(3)) == digest({"n": 1}, np.arange(3))
    True
    >>> digest(1.0) == digest(1)
    False
    """
    into = hashlib.blake2b(digest_size=20)
    _add(into, made_from)
    return into.hexdigest()


def _add(into: Any, value: Any) -> None:
    if isinstance(value, _PLAIN):
        _tell(into, type(value).__qualname__, value)
    elif type(value).__module__.split(".")[0] == "pandas":
        _add(into, np.asarray(value))
    elif isinstance(value, np.ndarray) and value.dtype == object:
        _add(into, value.tolist())
    elif _is_column(value):
        _tell(into, "column", np.dtype(value.dtype).str, tuple(value.shape))
        for rows in chunks(len(value)) if value.shape else ():
            into.update(np.ascontiguousarray(value[rows]).data)
    elif isinstance(value, list | tuple):
        _tell(into, "list", len(value))
        for own in value:
            _add(into, own)
    else:
        _add_named(into, value)


def _add_named(into: Any, value: Any) -> None:
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        _tell(into, type(value).__qualname__)
    elif isinstance(value, Mapping):
        named = dict(value)
    else:
        into.update(secrets.token_bytes())
        return
    _tell(into, "mapping", len(named))
    for key, own in named.items():
        _add(into, key)
        _add(into, own)


def _is_column(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("__len__", "__getitem__", "dtype", "shape"))


def _tell(into: Any, *what: Any) -> None:
    for one in what:
        text = repr(one).encode(errors="surrogatepass")
        into.update(len(text).to_bytes(8, "little") + text)
