"""Small study files, and the command line run on them in this process."""

import json

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from helpers.secret import SECRET
from synrisk.study.cli import app

SEED_LINE = f"seed = {SECRET}\n"
STUDY = f"""\
title = "A small study"
{SEED_LINE}"""
STUDY += """\
output = "out"

[data]
file = "people.csv"
id = "CaseID"

[[model]]
formula = "Income ~ Spending"
family = "gaussian"

[[model]]
formula = "Kids ~ Income"
family = "poisson"

[synthesis]
m = 2

[risk]
guesses.Income = { relative = 5, below = 0.2, above = 0.2 }

[criteria]
lift = 50
"""


def table(n=120):
    rng = np.random.default_rng(5)
    spending = rng.normal(31.0, 4.0, n)
    return pd.DataFrame(
        {
            "CaseID": rng.permutation(n) + 810_000,
            "Spending": spending,
            "Income": 20 + spending + rng.normal(0.0, 5.0, n),
            "Kids": np.minimum(rng.poisson(1.2, n), 5),  # nobody alone has one
            "Owner": rng.integers(0, 2, n),
            "Region": rng.choice(["Quovadis", "Ramsgate", "Zyxwville"], n),
            "Weight": rng.uniform(0.5, 1.0, n),
        }
    )


def study_in(folder, text=STUDY, data=None):
    """Write a study and its data, and return the study's path."""
    (table() if data is None else data).to_csv(folder / "people.csv", index=False)
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def synrisk(*arguments):
    """Run the command line; a crash is not an exit."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def as_json(path):
    return json.loads(path.read_text(encoding="utf-8"))
