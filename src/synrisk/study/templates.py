"""Study files to begin with: the built-in sample's, the paper's applications, or a guessed plan.

What is guessed from a file's columns names columns only, never a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.errors import DataError, listed
from synrisk.base.messages import toml_key, toml_text, visible
from synrisk.models.families import FAMILIES
from synrisk.synthesis.identifiers import identifies
from synrisk.synthesis.leaks import all_relations
from synrisk.synthesis.relations import Hidden

_MOST_LEVELS = 20  # of a column that is taken for a factor or a count
_MOST_PREDICTOR_LEVELS = 6
_MOST_TARGETS = 3
_LEAST_IN_A_LEVEL = 10
_SKEWED = 2.0
_OVERDISPERSED = 2.0  # variance over mean of a count
_ID_NAME = re.compile(r"(?i).*(id|key|case|number|nr)s?\d*")

_HEAD = """\
# A study of synrisk. Run it with:  synrisk run {file}
# Paths are relative to this file. What is commented out shows a default or another choice.

title = {title}
# seed = 1                  # for teaching: whoever guesses it can recover records. Without it a
                            # secret one is drawn, and kept in results/manifest.json
# rows = "people"           # what the report calls records, if they are
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
# question = "release"      # every value in a range, as likely as the models say, and learnt within
                            # the tolerance; or "paper": 11 guesses within 10 % of the truth
# guesses = "range"         # from the smallest to the largest value and a tenth beyond. Better is a
                            # declared one: [data] types.{first} = {{ range = [0, 100] }}
{tolerance}
# prior = "mostly-model"    # the intruder's: or {{ mostly_model = 0.9 }}, "model", "uniform"
# estimator = "auto"        # or "exact", "stacked", "importance", "paper"
# n_draws = 500             # use the first so many draws; all by default
# on_unreliable = "auto"    # records that draws do not settle: fitted anew at each of their guesses
                            # if there are few, and else flagged; or "flag", "fit", "raise"

[utility]                   # how useful the release is; without this table it is not measured
# propensity = ["main", "interactions"]   # also "cart"
# regression = [{{ formula = {formula}, family = "gaussian" }}]
                            # analyses whose intervals are compared; by default the models

# [audit]                   # what rows teach whoever knows no models; pages of its own (audit.html)
# keys = ["Age", "Region"]  # what an intruder knows of a person; by default all other columns
# sensitive = ["Income"]    # what is sought; by default what is synthesized
# holdout = "others.csv"    # people of the same kind who are in neither file

# [identification]          # could somebody pick a person's own row?
# known = ["Age", "Region"] # what goes out as it is, and an intruder knows
# radius = 0.1              # how near to a person's own a synthesized number must be
# by = "models"             # limits hold for the models' probability of the right row; or "matches"

[criteria]
# Each limit is judged by itself; all must hold. Their numbers are for your office to choose.
gain = 0.1                  # the most that the release may add to an intruder's probability of the
                            # truth, of all variables together
variables = {{ gain = 0.1 }}  # and of every variable; or variables.{first} = {{ gain = 0.05 }}
# probability = 0.5         # the most that this probability may be
# lift = 2                  # the most that the release may multiply it by
# combine = "and"           # a record must exceed all of the limits above, not one
# share = 0.001             # the share of the records that may exceed each limit; 0 by default
# unchecked_release = "accept"  # where it cannot be checked that the models made it
# policy = "p-percent"      # instead of limits: a built-in policy,
# file = "policies.toml"    # or one of a file of yours

[report]
kind = "both"               # "inside" for who decides, "sharing" for others: no count, no record
"""

_TOLERANCE = """\
# tolerance = 0.1           # a value counts as learnt within a tenth of the truth; levels, and
                            # counts below ten, exactly. Or by variable, also in its own units:
# tolerance.{first} = {{ share = 0.05 }}   # or {{ width = 2 }}; of a logarithm 0.1 is about 10 %"""
_TOLERANCE_OF_LOGS = """\
tolerance.LogExpenditure = { width = 0.1 }  # learnt within 0.1: of a logarithm about a tenth of the
tolerance.LogIncome = { width = 0.1 }       # amount. By default a tenth of the value itself"""

_DATA = """\
[data]
sample = "households"       # built in and simulated; yours: file = "people.csv", or .parquet
# id = "CaseID"             # the column that names the records; it is not released
# missing = "error"         # or "drop", "level": what to do about missing values
# drop = ["Name"]           # columns to leave out of everything
# release = ["Area"]        # released as they are though they may name people
# types.Race = ["1", "2"]   # what CSV cannot say: levels in order, "category", "numeric"
"""

_FAMILIES = fill(
    "it. Families: " + ", ".join(family.name for family in FAMILIES),
    width=98,
    initial_indent="# ",
    subsequent_indent="# ",
)
_MODELS = f"""\
# The variables to synthesize, one model each, in this order. A formula may use the variables before
{_FAMILIES}.
# Draws that were made elsewhere (rstanarm, brms, CmdStan): draws = "draws.csv" in each model, and
# nothing is fitted.
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
        f'title = "{application.title}"\noutput = "{stem}"\n\n'
        f'[data]\nsample = "households"\n\n{models}\n'
        f"[synthesis]\nm = 1\n\n{_risk_of_logs(application)}"
        "[criteria]\ngain = 0.1\nvariables = { gain = 0.1 }\n"
    )


def _risk_of_logs(application: Application) -> str:
    """Return the tolerance of variables that are logarithms, whose tenth would be a factor."""
    names = [formula.split(" ~ ")[0] for formula, _ in application.models]
    logs = [name for name in names if name.startswith("Log")]
    if not logs:
        return ""
    lines = [f"tolerance.{name} = {{ width = 0.1 }}\n" for name in logs]
    return f"[risk]  # of a logarithm 0.1 is about a tenth of the amount\n{''.join(lines)}\n"


def sample_text(file: str) -> str:
    """Return a commented study file of the built-in sample."""
    income = APPLICATIONS[1]
    models = _MODELS + "\n" + "\n".join(_model(*model) for model in income.models)
    return "\n".join(
        [
            _HEAD.format(file=file, title=toml_text("Households: expenditure and income")),
            _DATA,
            models,
            _TAIL.format(
                m=3, first="LogIncome", formula='"LogIncome ~ 1"', tolerance=_TOLERANCE_OF_LOGS
            ),
        ]
    )


def guessed_text(file: str, data: str, frame: pd.DataFrame) -> str:
    """Return a commented study file with a plan guessed from the columns of the data."""
    is_infinite = frame.select_dtypes("number").isin([np.inf, -np.inf])  # not of lists in cells
    frame = frame.mask(is_infinite.reindex(columns=frame.columns, fill_value=False))
    guess = _Guess.of(frame)
    return "\n".join(
        [
            _HEAD.format(file=file, title=toml_text(Path(data).stem)),
            _guessed_data(guess, data, frame),
            _guessed_plan(guess, frame),
            _TAIL.format(
                m=3,
                first=toml_key(guess.targets[0]),
                formula=toml_text(f"{_in_formula(guess.targets[0])} ~ 1"),
                tolerance=_TOLERANCE.format(first=toml_key(guess.targets[0])),
            ),
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
        Long texts, columns that may name people, and columns that give another away.
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
        unwritable = [name for name in roles if _in_formula(name) is None]
        left = {*roles} - {id_column, *unwritable}
        usable = {name: role for name, role in roles.items() if name in left}
        targets = _targets(usable, frame)
        if not targets:
            raise DataError(
                "No column looks as if it could be modelled: numbers, counts, or text with few "
                f"levels. There are: {listed(frame.columns)}.{_about_unwritable(unwritable)}"
            )
        texts = [name for name, role in roles.items() if role == "text" and name != id_column]
        others = [name for name in roles if name not in (*targets, id_column, *texts)]
        telling = [name for name in others if identifies(frame[name])]
        as_is = [name for name in others if name not in telling]
        telling += _giving_away(frame, targets, as_is)
        usable = {name: role for name, role in usable.items() if name not in telling}
        factors = _predictors(usable, targets, frame)
        return cls(roles, id_column, targets, factors, [*texts, *telling], unwritable)


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
        lines.append(
            f"drop = [{shown}]  # texts, what names people, what gives a synthesized one away"
        )
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


def _targets(roles: Mapping[str, str], frame: pd.DataFrame) -> list[str]:
    """Return what is synthesized; of columns that tell each other, the first."""
    for wanted in (("continuous", "count"), ("binary",), ("factor",)):
        found = [name for kind in wanted for name, role in roles.items() if role == kind]
        targets: list[str] = []
        for name in found:
            if len(targets) < _MOST_TARGETS and not _giving_away(frame, targets, [name]):
                targets.append(name)
        if targets:
            return targets
    return []


def _giving_away(frame: pd.DataFrame, targets: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns to leave out, so that none gives a synthesized one away."""
    complete = frame[frame[list(targets)].notna().all(axis=1)] if targets else frame
    hidden = []
    for name in targets:
        numeric = pd.api.types.is_numeric_dtype(complete[name].dtype)
        values = complete[name] if numeric else pd.factorize(complete[name])[0]
        hidden.append(Hidden.of(name, values, is_factor=not numeric))
    left = list(names)
    while left and hidden:
        refused = [one for one in all_relations(hidden, complete[left], {}) if one.refused]
        if not refused:
            break
        left = [name for name in left if name not in refused[0].columns]
    return [name for name in names if name not in left]


def _predictors(roles: Mapping[str, str], targets: Sequence[str], frame: pd.DataFrame) -> list[str]:
    found = [name for name, role in roles.items() if role in ("factor", "binary")]
    return [name for name in found if name not in targets and _even_enough(frame[name])][:1]


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
    for name in targets:
        log = _wants_log(frame[name], roles[name])
        term = f"log({written(name)})" if log else written(name)
        family = _guessed_family(frame[name], roles[name])
        models.append(_model(f"{term} ~ {' + '.join(before) or '1'}", family))
        before.append(term)
    return models


def _guessed_family(column: pd.Series[Any], role: str) -> str:
    if role in ("binary", "factor"):
        return "bernoulli" if role == "binary" else "categorical"
    values = column.dropna().to_numpy(dtype=np.float64)
    if role == "count":
        overdispersed = values.var() > _OVERDISPERSED * values.mean()
        return "negative_binomial" if overdispersed else "poisson"
    return "beta" if values.min() > 0.0 and values.max() < 1.0 else "gaussian"


def _wants_log(column: pd.Series[Any], role: str) -> bool:
    if role != "continuous":
        return False
    values = column.dropna().to_numpy(dtype=np.float64)
    from scipy.stats import skew  # which takes long to import

    is_share = values.max() < 1.0
    return bool(values.min() > 0) and not is_share and float(skew(values)) > _SKEWED


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
    return visible(listed(names, 30))
