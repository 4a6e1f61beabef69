"""Study files to begin with: the built-in sample's, the paper's applications, a suggested plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from synrisk.base.messages import toml_key, toml_text
from synrisk.models.families import FAMILIES
from synrisk.synthesis.suggested_plan import SuggestedPlan, in_formula

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
# missing = "error"         # or "drop", "level"; by column: { Income = "model", Race = "level" }
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


def suggested_text(file: str, data: str, plan: SuggestedPlan) -> str:
    """Return a commented study file with the plan that is suggested for the data."""
    first = plan.regressions[0].response
    return "\n".join(
        [
            _HEAD.format(file=file, title=toml_text(Path(data).stem)),
            _suggested_data(plan, data),
            f"{_MODELS}#\n# Suggested for the columns' values: read the reasons, and change it.\n",
            plan.toml_models(),
            _TAIL.format(
                m=3,
                first=toml_key(first),
                formula=toml_text(f"{in_formula(first)} ~ 1"),
                tolerance=_TOLERANCE.format(first=toml_key(first)),
            ),
        ]
    )


def _suggested_data(plan: SuggestedPlan, data: str) -> str:
    """Return the table [data] with the name of its file."""
    head, *rest = plan.toml_data().splitlines()
    lines = [head, f"file = {toml_text(data)}", *rest]
    lines.append('# types.Race = ["1", "2"]   # what CSV cannot say: levels, "category", "numeric"')
    return "\n".join(lines) + "\n"


def _model(formula: str, family: str) -> str:
    return f'[[model]]\nformula = {toml_text(formula)}\nfamily = "{family}"\n'
