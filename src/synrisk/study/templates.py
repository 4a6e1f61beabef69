"""Study files to begin with: the built-in sample's, the paper's applications, or a guessed plan.

What is guessed from a file's columns names columns only, never a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import skew

from synrisk.base.errors import DataError, listed
from synrisk.base.messages import toml_key, toml_text

_MOST_LEVELS = 20  # of a column that is taken for a factor or a count
_MOST_PREDICTOR_LEVELS = 6
_MOST_TARGETS = 3
_LEAST_IN_A_LEVEL = 10
_SKEWED = 2.0
_ID_NAME = re.compile(r"(?i).*(id|key|case|number|nr)s?\d*")

_HEAD = """\
# A study of synrisk. Run it with:  synrisk run {file}
# Paths are relative to this file. What is commented out shows a default or another choice.

title = {title}
seed = 1                    # the same seed gives the same synthetic data; without it, new data
output = "results"          # the folder to write: for inside use, but for report.html
"""

_TAIL = """\
# [fit]
# n_draws = 1000            # posterior draws of each model
# prior = "default"         # or "paper", "conjugate", {{ mean = 0, sd = 2 }} (coefficients)
# engine = "auto"           # or "exact", "laplace", "nuts"

[synthesis]
m = {m}                       # the number of synthetic datasets
# format = "csv"            # or "parquet"
# files = ["syn1.csv"]      # instead of m: synthetic data that exist already

[risk]
guesses = 11                # of a continuous variable, within ±10 % of the truth; of others
                            # every level. Or by variable, in place of the number:
# guesses.{first} = {{ relative = 11, below = 0.2, above = 0.2 }}
                            # {{ additive = 11, below = 5, above = 5 }}, "all levels",
                            # {{ interval = 11, low = 0, high = 100 }}, {{ values = [1, 2] }}
# prior = "uniform"         # the intruder's, before: or "model", {{ truth_factor = 5 }}
# estimator = "auto"        # or "exact", "stacked", "importance", "paper"
# n_draws = 500             # use the first so many draws; all by default

[utility]                   # how useful the release is; without this table it is not measured
# propensity = ["main", "interactions"]   # also "cart", which needs scikit-learn
# regression = [{{ formula = "{first} ~ 1", family = "gaussian" }}]
                            # analyses whose intervals are compared; by default the models

[criteria]                  # without this table there is no verdict
# Each limit is judged by itself; all must hold. Their numbers are for your office to choose.
lift = 2                    # the release at most doubles an intruder's probability of the truth
# probability = 0.2         # the most that this probability may be
# log_odds_range = 1        # the most that the release may move the log odds of two guesses
# share = 0.001             # the share of the records that may exceed each limit; 0 by default
variables = {{ lift = 2 }}    # of every variable; or variables.{first} = {{ probability = 0.5 }}
# unchecked_release = "accept"  # where it cannot be checked that the models made it
# policy = "cell-of-5"      # instead of limits: a built-in policy,
# file = "policies.toml"    # or one of a file of yours

[report]
kind = "sharing"            # no small counts, no single records; or "inside", "both"
"""

_DATA = """\
[data]
sample = "households"       # built in and simulated; yours: file = "people.csv", or .parquet
# id = "CaseID"             # the column that names the records; it is not released
# missing = "error"         # or "drop", "level": what to do about missing values
# drop = ["Name"]           # columns to leave out of everything
# types.Race = ["1", "2"]   # what CSV cannot say: levels in order, "category", "numeric"
"""

_MODELS = """\
# The variables to synthesize, one model each, in this order. A formula may use the variables before
# it. Families: gaussian, bernoulli, categorical, poisson. Draws that were made elsewhere (rstanarm,
# brms, CmdStan): draws = "draws.csv" in each model, and nothing is fitted.
"""


@dataclass(frozen=True)
class Application:
    """One of the paper's applications, on the built-in sample."""

    file: str
    title: str
    models: tuple[tuple[str, str], ...]


APPLICATIONS = (
    Application(
        "race.toml",
        "Race, given income",
        (("Race ~ LogIncome", "categorical"),),
    ),
    Application(
        "income.toml",
        "Expenditure and income",
        (("LogExpenditure ~ 1", "gaussian"), ("LogIncome ~ LogExpenditure", "gaussian")),
    ),
    Application(
        "kids.toml",
        "Expenditure and number of children",
        (
            ("LogExpenditure ~ Urban", "gaussian"),
            ("KidsCount ~ LogExpenditure + Urban", "poisson"),
        ),
    ),
)


def application_text(application: Application) -> str:
    """Return the study file of one of the paper's applications."""
    stem = application.file.removesuffix(".toml")
    models = "\n".join(_model(formula, family) for formula, family in application.models)
    return (
        f"# One of the paper's applications, on the built-in sample (synrisk demo).\n\n"
        f'title = "{application.title}"\nseed = 1\noutput = "{stem}"\n\n'
        f'[data]\nsample = "households"\n\n{models}\n'
        "[synthesis]\nm = 1\n\n[criteria]\nlift = 2\nvariables = { lift = 2 }\n"
    )


def sample_text(file: str) -> str:
    """Return a commented study file of the built-in sample."""
    income = APPLICATIONS[1]
    models = _MODELS + "\n" + "\n".join(_model(*model) for model in income.models)
    return "\n".join(
        [
            _HEAD.format(file=file, title=toml_text("Households: expenditure and income")),
            _DATA,
            models,
            _TAIL.format(m=3, first="LogIncome"),
        ]
    )


def guessed_text(file: str, data: str, frame: pd.DataFrame) -> str:
    """Return a commented study file with a plan guessed from the columns of the data."""
    guess = _Guess.of(frame)
    return "\n".join(
        [
            _HEAD.format(file=file, title=toml_text(Path(data).stem)),
            _guessed_data(guess, data, frame),
            _guessed_plan(guess, frame),
            _TAIL.format(m=3, first=toml_key(guess.targets[0])),
        ]
    )


@dataclass(frozen=True)
class _Guess:
    """What the columns of a table are taken for.

    Attributes
    ----------
    roles
        What each column looks like.
    id_column
        The one that names the records.
    targets, factors
        Those that are synthesized, and the factor that they are predicted by.
    drop
        Long texts, and columns that give another away.
    unwritable
        Those whose names no formula can hold.
    """

    roles: Mapping[str, str]
    id_column: str | None
    targets: Sequence[str]
    factors: Sequence[str]
    drop: Sequence[str]
    unwritable: Sequence[str]

    @classmethod
    def of(cls, frame: pd.DataFrame) -> _Guess:
        roles = {str(name): _role(frame[name]) for name in frame.columns}
        named = (name for name in roles if _names_records(name, roles[name], frame[name]))
        id_column = next(named, None)
        twins = _twins(frame, [name for name in roles if name != id_column])
        unwritable = [name for name in roles if _in_formula(name) is None]
        left = {*roles} - {id_column, *twins, *unwritable}
        usable = {name: role for name, role in roles.items() if name in left}
        targets = _targets(usable)
        if not targets:
            raise DataError(
                "No column looks as if it could be modelled: numbers, counts, or text with few "
                f"levels. There are: {listed(frame.columns)}.{_about_unwritable(unwritable)}"
            )
        texts = [name for name, role in roles.items() if role == "text" and name != id_column]
        factors = _predictors(usable, targets, frame)
        return cls(roles, id_column, targets, factors, [*texts, *twins], unwritable)


def _names_records(name: str, role: str, column: pd.Series[Any]) -> bool:
    return bool(_ID_NAME.fullmatch(name)) and role != "constant" and _unique(column)


def _guessed_data(guess: _Guess, data: str, frame: pd.DataFrame) -> str:
    lines = ["[data]", f"file = {toml_text(data)}"]
    if guess.id_column is not None:
        lines.append(f"id = {toml_text(guess.id_column)}  # names the records; it is not released")
    if frame[[*guess.targets, *guess.factors]].isna().any(axis=None):
        lines.append('missing = "drop"            # leaves incomplete records out; or "level"')
    if guess.drop:
        shown = ", ".join(toml_text(name) for name in guess.drop)
        lines.append(f"drop = [{shown}]  # long texts, or columns that give a synthesized one away")
    lines.append('# types.Race = ["1", "2"]   # what CSV cannot say: levels, "category", "numeric"')
    return "\n".join(lines) + "\n"


def _guessed_plan(guess: _Guess, frame: pd.DataFrame) -> str:
    modelled = (*guess.targets, *guess.drop, guess.id_column)
    rest = [name for name in frame.columns if name not in modelled]
    comment = (
        f"{_MODELS}#\n# Guessed from the columns: change it. Synthesize what must be protected.\n"
        f"# Columns without a model are released as they are: {_wrapped(rest)}.\n"
    )
    if guess.unwritable:
        comment += f"#{_wrapped([_about_unwritable(guess.unwritable)])}\n"
    models = _guessed_models(frame, guess.targets, guess.roles, guess.factors)
    return comment + "\n" + "\n".join(models)


def _role(column: pd.Series[Any]) -> str:
    """Say what a column looks like: continuous, count, binary, factor, text, constant, other."""
    known = column.dropna()
    n_distinct = known.nunique() if known.map(np.isscalar).all() else 0
    if n_distinct < 2:
        return "constant" if n_distinct else "other"
    kinds = pd.api.types
    if kinds.is_bool_dtype(known.dtype):
        return "binary"
    if kinds.is_numeric_dtype(known.dtype) and not kinds.is_complex_dtype(known.dtype):
        values = known.to_numpy(dtype=np.float64)
        if set(np.unique(values)) == {0.0, 1.0}:
            return "binary"
        whole = bool((values == np.rint(values)).all())
        few = whole and n_distinct <= _MOST_LEVELS
        return "count" if few and values.min() >= 0 else "continuous"
    if isinstance(known.dtype, pd.CategoricalDtype) or kinds.is_string_dtype(known.dtype):
        return "factor" if n_distinct <= _MOST_LEVELS else "text"
    return "other"


def _unique(column: pd.Series[Any]) -> bool:
    whole = not pd.api.types.is_float_dtype(column.dtype)
    return whole and bool(column.notna().all()) and column.is_unique


def _targets(roles: dict[str, str]) -> list[str]:
    for wanted in (("continuous", "count"), ("binary",), ("factor",)):
        found = [name for kind in wanted for name, role in roles.items() if role == kind]
        if found:
            return found[:_MOST_TARGETS]
    return []


def _predictors(roles: Mapping[str, str], targets: Sequence[str], frame: pd.DataFrame) -> list[str]:
    found = [name for name, role in roles.items() if role in ("factor", "binary")]
    return [name for name in found if name not in targets and _even_enough(frame[name])][:1]


def _twins(frame: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Return columns that are monotone transforms of an earlier one: they give it away."""
    seen: list[pd.Series[Any]] = []
    twins = []
    for name in names:
        if _role(frame[name]) not in ("continuous", "count"):
            continue
        ranks = frame[name].rank(method="dense")
        if any(ranks.equals(other) or ranks.equals(other.max() + 1 - other) for other in seen):
            twins.append(name)
        seen.append(ranks)
    return twins


def _even_enough(column: pd.Series[Any]) -> bool:
    counts = column.value_counts()
    counts = counts[counts > 0]
    return 2 <= len(counts) <= _MOST_PREDICTOR_LEVELS and counts.min() >= _LEAST_IN_A_LEVEL


def _guessed_models(
    frame: pd.DataFrame, targets: Sequence[str], roles: Mapping[str, str], factors: Sequence[str]
) -> list[str]:
    def written(name: str) -> str:
        return str(_in_formula(name))

    models, before = [], [written(name) for name in factors]
    families = {"count": "poisson", "binary": "bernoulli", "factor": "categorical"}
    for name in targets:
        log = _wants_log(frame[name], roles[name])
        term = f"log({written(name)})" if log else written(name)
        models.append(
            _model(f"{term} ~ {' + '.join(before) or '1'}", families.get(roles[name], "gaussian"))
        )
        before.append(term)
    return models


def _wants_log(column: pd.Series[Any], role: str) -> bool:
    if role != "continuous":
        return False
    values = column.dropna().to_numpy(dtype=np.float64)
    return bool(values.min() > 0) and float(skew(values)) > _SKEWED


def _in_formula(name: str) -> str | None:
    """Return a column's name as a formula writes it, in backticks if need be; None if it cannot."""
    if name.isidentifier():
        return name
    return f"`{name}`" if name and "`" not in name else None


def _about_unwritable(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f" Left out of the plan: {listed(repr(name) for name in names)}. A formula cannot write a "
        "name that is empty or holds a backtick; rename it in the data to model it."
    )


def _model(formula: str, family: str) -> str:
    return f'[[model]]\nformula = {toml_text(formula)}\nfamily = "{family}"\n'


def _wrapped(names: Sequence[str]) -> str:
    """Return names for a comment, which holds no control characters."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", listed(names, 30))
