"""The release: synthetic datasets, read and encoded by the confidential data's schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from synrisk.errors import SyntheticDataError, counted
from synrisk.io import read_table
from synrisk.preparation import Confidential
from synrisk.schema import BoolArray, Columns, Factor, text_columns


@dataclass(frozen=True, repr=False)
class Released:
    """One synthetic dataset: all its columns, the plan's columns encoded, and the rows of those."""

    frame: pd.DataFrame
    columns: Columns
    kept: BoolArray


def read_release(confidential: Confidential, synthetic: Any) -> list[Released]:
    """Return the datasets of a release: one table, or a list of them."""
    datasets = list(synthetic) if isinstance(synthetic, list | tuple) else [synthetic]
    if not datasets:
        raise SyntheticDataError("The release is empty; give at least one synthetic dataset.")
    plan, schema = confidential.plan, confidential.schema
    levels = {
        name: list(variable.levels)
        for name, variable in schema.variables.items()
        if isinstance(variable, Factor) and all(isinstance(v, str) for v in variable.levels)
    }
    release = []
    for number, dataset in enumerate(datasets, 1):
        what = f"Synthetic dataset {number}"
        frame = read_table(dataset, what, text=text_columns(levels), error=SyntheticDataError)
        if not len(frame):
            raise SyntheticDataError(f"{what} has no rows.")
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
        release.append(Released(frame, columns, kept))
    return release
