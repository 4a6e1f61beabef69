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
from synrisk.data.frames import read_table
from synrisk.data.schema import Columns, Factor, Schema, text_columns
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
    memory
        Of what was worked out from it.
    """

    frame: pd.DataFrame
    columns: Columns
    kept: BoolArray
    memory: Memory = field(default_factory=Memory, init=False)


def read_release(confidential: Confidential, synthetic: Any) -> list[Released]:
    """Return the datasets of a release: one table, or a list of them."""
    plan, schema = confidential.plan, confidential.schema
    release = []
    for number, dataset in enumerate(as_datasets(synthetic), 1):
        what = f"Synthetic dataset {number}"
        frame = read_dataset(dataset, what, schema)
        columns, kept = schema.encode(frame, plan.columns, what, SyntheticDataError)
        for regression in plan.regressions:
            name = regression.response
            inside = regression.supports(columns[name], schema.variables[name])
            n_outside = int((~inside).sum())
            if n_outside:
                raise SyntheticDataError(
                    f"{what}: {name!r} must be {regression.wants}; "
                    f"{counted(n_outside, 'value is', 'values are')} not."
                )
        _refuse_far_away(confidential, columns, what)
        release.append(Released(frame, columns, kept))
    return release


def _refuse_far_away(confidential: Confidential, columns: Columns, what: str) -> None:
    """Raise where numbers are so far from the confidential ones that nothing can be computed."""
    for name, values in columns.items():
        own = confidential.columns[name]
        if values.dtype != np.float64 or not len(values):
            continue
        with np.errstate(over="ignore"):
            is_far = np.abs(values).max() > FAR_AWAY * np.abs(own).max() > 0.0
        if is_far:
            raise SyntheticDataError(
                f"{what}: {name!r} has values beyond {FAR_AWAY:.0e} times the largest of the "
                "confidential data. Is it in the same units?"
            )


def as_datasets(synthetic: Any) -> list[Any]:
    """Return the datasets of a release, which may be one."""
    datasets = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    if not datasets:
        raise SyntheticDataError("The release is empty; give at least one synthetic dataset.")
    return datasets


def read_dataset(dataset: Any, what: str, schema: Schema) -> pd.DataFrame:
    """Return a synthetic dataset as a frame, with levels that are text read as such."""
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
    rows = np.zeros(int(dataset.kept.sum()), dtype=np.uint64)
    for values in dataset.columns.values():
        bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)  # no −0
        # To the nearest number of so many bits; of two, to the even one.
        last = (bits >> _DROPPED) & np.uint64(1)
        coarse = (bits + last + _HALF) >> _DROPPED << _DROPPED
        rows = rows * np.uint64(0x9E3779B97F4A7C15) + pd.util.hash_array(coarse)
    sums = (rows.sum(), (rows * rows).sum(), np.bitwise_xor.reduce(rows))  # whatever the order
    content = np.array([len(rows), *sums], dtype=np.uint64).tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()
