"""The release: synthetic datasets, read and encoded by the confidential data's schema."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray
from synrisk.base.cache import Memory
from synrisk.base.errors import SyntheticDataError, counted
from synrisk.data.column_store import (
    AnyColumn,
    StoreWriter,
    TemporaryFolder,
    pieces,
    stored_columns,
)
from synrisk.data.frames import read_table
from synrisk.data.partitions import evenly_spread, is_partitioned, partitions
from synrisk.data.schema import Columns, Factor, Schema, text_columns
from synrisk.data.unpacking import COPIES_OF_TEXT, Meter
from synrisk.synthesis.confidential import Confidential

FAR_AWAY = 1e12  # times the largest confidential value: beyond, sums of squares lose all digits
_DROPPED = np.uint64(41)  # of a number's 53 bits, in a fingerprint
_HALF = (np.uint64(1) << (_DROPPED - np.uint64(1))) - np.uint64(1)


@dataclass(frozen=True, repr=False)
class Released:
    """One synthetic dataset.

    Attributes
    ----------
    frame
        All its columns.
    columns
        The plan's columns, encoded.
    kept
        The rows of those.
    sampled
        Of a dataset that was read in parts, some of its rows, evenly spread, in memory: `frame` has
        no columns then, and `columns` are stored.
    folder
        Where the columns are stored, as long as somebody holds this.
    memory
        Of what was worked out from it.
    """

    frame: pd.DataFrame
    columns: Columns
    kept: BoolArray
    sampled: Released | None = None
    folder: TemporaryFolder | None = None
    memory: Memory = field(default_factory=Memory, init=False)

    @property
    def sample(self) -> Released:
        """Rows in memory, for what looks at single values: all, unless they are stored."""
        return self if self.sampled is None else self.sampled


def read_release(confidential: Confidential, synthetic: Any) -> list[Released]:
    """Return the datasets of a release: one table, or a list of them."""
    release = []
    for number, dataset in enumerate(as_datasets(synthetic), 1):
        what = f"Synthetic dataset {number}"
        in_parts = confidential.is_stored and is_partitioned(dataset)
        read = _read_parts if in_parts else _read_whole
        release.append(read(confidential, dataset, what))
        _refuse_far_away(confidential, release[-1].columns, what)
    return release


def _read_whole(confidential: Confidential, dataset: Any, what: str) -> Released:
    plan, schema = confidential.plan, confidential.schema
    frame = read_dataset(dataset, what, schema)
    columns, kept = schema.encode(frame, plan.columns, what, SyntheticDataError)
    _refuse_unsupported(confidential, columns, what)
    return Released(frame, columns, kept)


def _read_parts(confidential: Confidential, dataset: Any, what: str) -> Released:
    """Read a dataset a part at a time, into a store of the columns that the plan uses."""
    plan, schema, table = confidential.plan, confidential.schema, partitions(dataset, what)
    table.require(plan.columns, SyntheticDataError)
    folder, n_rows, parts = TemporaryFolder(), 0, []
    with StoreWriter(folder.path / "columns", {}) as store:
        # Columns that the plan does not use may tell of those that it does.
        for part, frame in table.read(table.names):
            columns, complete = schema.encode_rows(frame, plan.columns, part, SyntheticDataError)
            kept = {name: values[complete] for name, values in columns.items()}
            _refuse_unsupported(confidential, kept, part)
            store.append(kept)
            parts.append(evenly_spread(frame[complete], n_rows, confidential.step))
            n_rows += int(complete.sum())
    if not n_rows:
        raise SyntheticDataError(f"{what} has no rows.")
    sampled = pd.concat(parts, ignore_index=True)
    columns, everywhere = schema.encode(sampled, plan.columns, what, SyntheticDataError)
    return Released(
        pd.DataFrame(index=pd.RangeIndex(n_rows)),
        stored_columns(folder.path / "columns"),
        np.ones(n_rows, dtype=bool),
        Released(sampled, columns, everywhere),
        folder,
    )


def _refuse_unsupported(confidential: Confidential, columns: Columns, what: str) -> None:
    """Raise where values of a response are none that its family has."""
    for regression in confidential.plan.regressions:
        name = regression.response
        inside = regression.supports(columns[name], confidential.schema.variables[name])
        n_outside = int((~inside).sum())
        if n_outside:
            raise SyntheticDataError(
                f"{what}: {name!r} must be {regression.wants}; "
                f"{counted(n_outside, 'value is', 'values are')} not."
            )


def _refuse_far_away(confidential: Confidential, columns: Columns, what: str) -> None:
    """Raise where numbers are so far from the confidential ones that nothing can be computed."""
    for name, values in columns.items():
        own = confidential.columns[name]
        if values.dtype != np.float64 or not len(values):
            continue
        with np.errstate(over="ignore"):
            is_far = _largest(values) > FAR_AWAY * _largest(own) > 0.0
        if is_far:
            raise SyntheticDataError(
                f"{what}: {name!r} has values beyond {FAR_AWAY:.0e} times the largest of the "
                "confidential data. Is it in the same units?"
            )


def _largest(values: AnyColumn) -> float:
    return max(float(np.abs(part).max()) for part in pieces(values))


def as_datasets(synthetic: Any) -> list[Any]:
    """Return the datasets of a release, which may be one."""
    datasets = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    if not datasets:
        raise SyntheticDataError("The release is empty; give at least one synthetic dataset.")
    return datasets


def read_dataset(dataset: Any, what: str, schema: Schema) -> pd.DataFrame:
    """Return a synthetic dataset as a frame, with levels that are text read as such."""
    if is_partitioned(dataset):  # such as synthesize(out=) writes
        table = partitions(dataset, what)
        parts, meter = [], Meter(what)
        for _, frame in table.read(table.names):
            meter.add(COPIES_OF_TEXT * int(frame.memory_usage(deep=False).sum()))
            parts.append(frame)
        dataset = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    frame = read_table(dataset, what, text=levels_as_text(schema), error=SyntheticDataError)
    if not len(frame):
        raise SyntheticDataError(f"{what} has no rows.")
    return frame


def levels_as_text(schema: Schema) -> dict[str, list[str]]:
    """Return the columns whose levels are text, which a file of theirs is to be read as."""
    levels = {
        name: list(variable.levels)
        for name, variable in schema.variables.items()
        if isinstance(variable, Factor) and all(isinstance(v, str) for v in variable.levels)
    }
    return text_columns(levels)


def fingerprint(dataset: Released) -> str:
    """Return a digest of the plan's columns of a dataset, by which it is known again.

    It is the same for the same rows in any order. Numbers enter by about four digits: a trip
    through CSV may change the last one of a number, and no two datasets agree so far in all rows.
    """
    n_rows, total, squares, either = 0, np.uint64(0), np.uint64(0), np.uint64(0)
    columns = [pieces(values) for values in dataset.columns.values()]
    with np.errstate(over="ignore"):
        for part in zip(*columns, strict=True):
            rows = np.zeros(len(part[0]), dtype=np.uint64)
            for values in part:
                bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)  # no −0
                # To the nearest number of so many bits; of two, to the even one.
                last = (bits >> _DROPPED) & np.uint64(1)
                coarse = (bits + last + _HALF) >> _DROPPED << _DROPPED
                rows = rows * np.uint64(0x9E3779B97F4A7C15) + pd.util.hash_array(coarse)
            # Whatever the order of the rows.
            n_rows, total = n_rows + len(rows), total + rows.sum()
            squares, either = squares + (rows * rows).sum(), either ^ np.bitwise_xor.reduce(rows)
    content = np.array([n_rows, total, squares, either], dtype=np.uint64).tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()
