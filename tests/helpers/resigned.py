"""Files of results that somebody changed and signed anew: their digests are right, they are not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from synrisk.data import netcdf
from synrisk.data.netcdf import Contents

_VALUES = (None, -1, 0, 1, 10**30, 1e308, "", "zzz", [], {}, [1], {"is": "Range"}, True, "nan")


def changed(contents: Contents, rng: np.random.Generator) -> Contents:
    """Return contents with one part of the settings, the arrays or the table changed."""
    meta, arrays, table = copy.deepcopy(dict(contents.meta)), dict(contents.arrays), contents.table
    kind = rng.integers(10)
    if kind < 5:
        holder, key = _any_part(meta, rng)
        if kind == 0 and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = _VALUES[rng.integers(len(_VALUES))]
    elif kind < 9:
        name = sorted(arrays)[rng.integers(len(arrays))]
        arrays[name] = _other_array(np.array(arrays[name]), rng)
    elif rng.random() < 0.5:
        table = table.iloc[: rng.integers(len(table))]
    else:
        table = table.drop(columns=table.columns[rng.integers(table.shape[1])])
    return Contents(contents.kind, meta, arrays, table)


def _any_part(meta: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    places = [(holder, key) for holder, key in _places(meta)]
    return places[rng.integers(len(places))]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in list(items):
        yield value, key
        if isinstance(part, dict | list):
            yield from _places(part)


def _other_array(array: Any, rng: np.random.Generator) -> Any:
    kind = rng.integers(6)
    if kind == 0:
        return array.reshape(-1)
    if kind == 1:
        return array[: len(array) // 2] if array.ndim else array
    if kind == 2:
        return np.concatenate([array, array]) if array.ndim else array
    if kind == 3:
        return array.astype(np.int64 if array.dtype == np.float64 else np.float64)
    if kind == 4 and array.dtype == np.float64 and array.size:
        out = array.copy().reshape(-1)
        out[rng.integers(out.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1.0, 0.0])
        return out.reshape(array.shape)
    if array.dtype == np.int64 and array.size:
        out = array.copy().reshape(-1)
        out[rng.integers(out.size)] = rng.choice([-1, 10**9, 2**62])
        return out.reshape(array.shape)
    return np.zeros((3, 2))


def resign(path: Path, kind: str, rng: np.random.Generator) -> bool:
    """Change a file that is whole and sign it anew; tell whether it can be written at all."""
    contents = netcdf.load(path, kind)
    try:
        netcdf.save(path, changed(contents, rng))
    except Exception:  # what cannot be written attacks nobody
        return False
    return True
