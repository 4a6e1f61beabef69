"""A study of data in parts, and its command line run with parts so small that there are many.

``python -m helpers.parted_studies run study.toml --resume`` is ``synrisk`` with small parts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synrisk.assessment import evaluate_parts
from synrisk.base.chunks import ROWS
from synrisk.synthesis import datasets

N = 2 * ROWS + 100  # records: three parts of a dataset
N_OF_RISK = 1_500  # records of a part of the risk
STUDY = """\
title = "Many people"
output = "out"

[data]
file = "people"

[[model]]
formula = "Income ~ Age"

[[model]]
formula = "Visits ~ Age"
family = "poisson"

[fit]
n_draws = 20

[synthesis]
m = 2

[risk]
question = "paper"
guesses = 3

[criteria]
lift = 50
"""


def people(n: int = N) -> pd.DataFrame:
    """Return simulated records."""
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, n)
    income = 9.5 + 0.01 * age + rng.normal(0.0, 0.6, n)
    return pd.DataFrame({"Age": age, "Income": income, "Visits": rng.poisson(0.05 * age)})


def write_people(folder: Path, n_files: int = 3, n: int = N) -> None:
    """Write them to so many files of Parquet."""
    folder.mkdir(exist_ok=True)
    for k, rows in enumerate(np.array_split(np.arange(n), n_files)):
        people(n).iloc[rows].to_parquet(folder / f"part-{k}.parquet", index=False)


def parted_study_in(folder: Path, text: str = STUDY) -> Path:
    """Write a study and its data, and return the study's path."""
    write_people(folder / "people")
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def make_parts_small(setattr_: Any = setattr) -> None:
    """Let datasets and risk be in parts of a few thousand records."""
    setattr_(datasets, "ROWS_A_PART", ROWS)
    setattr_(evaluate_parts, "rows_of_part", lambda _: N_OF_RISK)


if __name__ == "__main__":
    make_parts_small()
    from synrisk_command import main

    sys.argv[0] = "synrisk"
    main()
