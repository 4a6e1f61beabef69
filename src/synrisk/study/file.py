"""The study file: what it says, checked before any work; a message names file, line and key.

Keys are few, and a key that is not known is refused. Paths are relative to the file. Formulas are
parsed, never run (`formula`).
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar, cast, get_args

from synrisk.assessment.attribute_risk import EstimatorName, JointName, UnreliableName
from synrisk.audit.radius import Radius
from synrisk.base.dask_cluster import is_address, is_here
from synrisk.base.errors import SettingsError, SynriskError, listed, nearest
from synrisk.base.messages import Place, toml_text
from synrisk.base.workers import ENGINES, Processes
from synrisk.data.parquet_folders import parquet_files
from synrisk.data.schema import (
    MISSING_BY_COLUMN,
    MISSING_POLICIES,
    Missing,
    MissingOfOne,
)
from synrisk.data.toml import Section, read_settings
from synrisk.models.families import FAMILIES
from synrisk.models.plan import Plan, Regression
from synrisk.models.priors import PRIORS, Conjugate, Exponential, Normal
from synrisk.risk.guesses import (
    Additive,
    AllLevels,
    Interval,
    Range,
    Relative,
    Tolerance,
    Values,
)
from synrisk.risk.intruder_prior import MostlyModel, TruthFactor
from synrisk.risk.question import QUESTIONS
from synrisk.synthesis.synthesizer import EngineName
from synrisk.utility import MODELS, PARAMETERS, tree_maker
from synrisk.verdict.criteria import DEFAULT, KEYS, Criteria, policy_names
from synrisk.verdict.reasons import CALLED

Made = TypeVar("Made")
Given = ParamSpec("Given")

SAMPLES = ("households",)
REPORT_KINDS = ("sharing", "inside", "both")
FORMATS = ("csv", "parquet")
# Beyond what anybody synthesizes or releases; every dataset and every model has files of its own.
_MOST_MODELS, _MOST_DATASETS = 1_000, 1_000
_SCHEDULER = "SYNRISK_SCHEDULER"  # the environment variable that names a cluster beside a study
_TOP = (
    "title",
    "rows",
    "seed",
    "output",
    "data",
    "model",
    "fit",
    "synthesis",
    "risk",
    "utility",
    "audit",
    "identification",
    "criteria",
    "report",
    "engine",
)
AUDIT, IDENTIFICATION = "audit", "identification"  # risks beside that of the attributes
BY_MODELS, BY_MATCHES = "models", "matches"  # whose probability of a row limits hold for
_PROPENSITY = ("main", "interactions")
_EVEN: dict[str, tuple[Any, tuple[str, ...]]] = {
    "relative": (Relative, ("below", "above", "within")),
    "additive": (Additive, ("below", "above", "within")),
    "interval": (Interval, ("low", "high", "within")),
}
# Of a family, and what they mean.
_OPTIONS = {
    "step": "what values are multiples of",
    "lower": "the smallest value that is possible",
    "upper": "the largest value that is possible",
    "trials": "how many trials everybody has",
}
_GUESSES = (
    'must be "range", a number, "all levels", or one of { range = [0, 100] }, '
    "{ relative = 11, below = 0.1, above = 0.1 }, { additive = 11, below = 5, above = 5 }, "
    "{ interval = 11, low = 0, high = 100 }, { values = [1, 2, 3] }."
)


@dataclass(frozen=True, repr=False)
class Further:
    """A risk that is asked for beside that of the attributes.

    Attributes
    ----------
    options
        Of the function that evaluates it.
    criteria
        Its limits.
    """

    options: Mapping[str, Any]
    criteria: Criteria


@dataclass(frozen=True, repr=False)
class Study:
    """What a study file says.

    Attributes
    ----------
    path
        The file.
    top
        Its settings, which know their lines.
    title
        What the report is called.
    rows
        What records are called: "records", or "people" where they are.
    seed
        The seed of fit and synthesis; None takes one from the system.
    output
        The folder that is written.
    data
        The file of the confidential data, or a folder of Parquet files, or the name of a built-in
        sample.
    id, types, missing, drop, release
        As in `synrisk.fit`; `drop` are columns to be left out of everything.
    regressions, draws, rename
        The plan; the files of draws that were made elsewhere, if they were, and other names for
        their columns.
    fit
        The options of `synrisk.fit`.
    m, synthesis_seed, format, files
        How many synthetic datasets, of which seed, in which format; or the given ones.
    risk
        The options of `synrisk.attribute_risk`.
    utility
        The options of `synrisk.utility`, or None where it is not measured.
    further
        The risks beside it: "audit", "identification".
    criteria
        The limits, or None.
    kinds
        The reports to write.
    executor
        What runs the work: as in `synrisk.fit`.
    """

    path: Path
    top: Section
    title: str
    rows: str
    seed: int | None
    output: Path
    data: Path | str
    id: str | None
    types: Mapping[str, Any]
    missing: Missing
    drop: tuple[str, ...]
    release: tuple[str, ...]
    regressions: tuple[Regression, ...]
    draws: tuple[Path, ...] | None
    rename: Mapping[str, Mapping[str, str]]
    fit: Mapping[str, Any]
    m: int
    synthesis_seed: int | None
    format: str
    files: tuple[Path, ...] | None
    risk: Mapping[str, Any]
    utility: Mapping[str, Any] | None
    further: Mapping[str, Further]
    criteria: Criteria
    kinds: tuple[str, ...]
    executor: Any = None

    @property
    def in_parts(self) -> bool:
        """Whether the data are a folder of Parquet files, read a part at a time."""
        return isinstance(self.data, Path) and self.data.is_dir()


def attempt(
    at: tuple[Any, ...], make: Callable[Given, Made], *args: Given.args, **kwargs: Given.kwargs
) -> Made:
    """Return what `make` makes; say of its error where in the file the cause stands.

    Parameters
    ----------
    at
        A section and the keys within it.
    make, args, kwargs
        What to call.
    """
    try:
        return make(*args, **kwargs)
    except SettingsError:
        raise
    except SynriskError as error:
        problem, about = error.in_study(), error.about
    return blame(at, problem, about)


def blame(at: tuple[Any, ...], problem: str, about: Place) -> NoReturn:
    """Raise a SettingsError that says where the cause of a problem stands.

    Parameters
    ----------
    at
        A section and the keys within it, where the problem was met.
    problem
        What is wrong.
    about
        What the error itself says of where its cause stands; it goes before, if the file has it.
    """
    section, *keys = at
    known = section.known(about)
    if len(known) > 1:  # more than a heading
        section, keys = replace(section, place=()), known
    section.refuse(problem, *keys)
    raise AssertionError  # it was refused


def read_study(path: str | os.PathLike[str]) -> Study:
    """Read and check a study file."""
    top = read_settings(path, "The study")
    top.refuse_unknown(_TOP)
    source = Path(path)
    folder = source.parent
    data = top.section("data")
    regressions, draws, rename = _models(top, folder)
    fit = _fit(top.section("fit"), foreign=draws is not None)
    synthesis, source_of_data = top.section("synthesis"), _data(data, folder)
    in_parts = isinstance(source_of_data, Path) and source_of_data.is_dir()
    if in_parts:
        _refuse_what_parts_lack(top)
    m, seed, stored, files = _synthesis(synthesis, folder, in_parts=in_parts)
    variables = Plan.of(regressions).synthesized
    report = top.section("report")
    report.refuse_unknown(("kind", "title"))
    kind = report.choice("kind", REPORT_KINDS, "both")
    title = report.text("title") or top.text("title") or "Attribute disclosure risk"
    return Study(
        path=source,
        top=top,
        title=title,
        rows=top.text("rows") or CALLED,
        seed=top.whole("seed", least=None),
        output=_output(top, folder),
        data=source_of_data,
        id=data.text("id"),
        types=_types(data),
        missing=_missing(data),
        drop=tuple(data.texts("drop") or ()),
        release=tuple(data.texts("release") or ()),
        regressions=regressions,
        draws=draws,
        rename=rename,
        fit=fit,
        m=m,
        synthesis_seed=seed,
        format=stored,
        files=files,
        risk=_risk(top.section("risk"), variables),
        utility=_utility(top),
        further=dict(_further(top, folder, variables)),
        criteria=_criteria(top, folder, variables),
        kinds=kinds_of(kind),
        executor=_executor(top.section("engine")),
    )


def kinds_of(kind: str) -> tuple[str, ...]:
    """Return the reports that a word stands for."""
    return ("sharing", "inside") if kind == "both" else (kind,)


def no_policy(name: str) -> str:
    """Say that no policy of this name is built in."""
    built_in = listed(policy_names())
    return f"There is no policy {name!r}.{nearest(name, policy_names())} Built in: {built_in}."


def _file(section: Section, folder: Path, name: str, *keys: str | int) -> Path:
    path = folder / name
    if not path.is_file():
        section.refuse(f"there is no file {name} beside the study.", *keys)
    return path


def _folder_of_parts(section: Section, folder: Path, name: str, *keys: str | int) -> Path:
    """Return a folder of Parquet files."""
    path = folder / name
    if not parquet_files(path):
        others = sorted({one.suffix.lower() for one in path.iterdir() if one.suffix})
        found = f"holds files of {listed(others)}" if others else "is empty"
        section.refuse(
            f"the folder {name} {found}; a folder is read as Parquet files (.parquet). Name one "
            "file of another kind, or store the table as Parquet.",
            *keys,
        )
    return path


def _refuse_what_parts_lack(top: Section) -> None:
    """Raise for settings that need the data in memory."""
    data, risk = top.section("data"), top.section("risk")
    for key in ("id", "drop", "release"):
        if key in data.values:
            data.refuse(
                "is for a table in memory. Of a folder of Parquet files only the columns of the "
                "formulas are read and released, and records are called by their numbers, from 0.",
                key,
            )
    for key in ("utility", AUDIT, IDENTIFICATION):
        if key in top.values:
            top.refuse(
                "needs the data in memory, and a folder of Parquet files is read in parts: leave "
                "it out, or name one file.",
                key,
            )
    synthesis = top.section("synthesis")
    if synthesis.values.get("format") == "csv":
        synthesis.refuse("datasets of data in parts are folders of Parquet files.", "format")
    if risk.values.get("on_unreliable") == "fit":
        risk.refuse(
            'of data in parts no record is fitted anew; use "flag" or "raise".', "on_unreliable"
        )
    if risk.values.get("joint") == "keep":
        risk.refuse("of data in parts no joint posteriors are kept.", "joint")


def _output(top: Section, folder: Path) -> Path:
    """Return the folder of the results: one of its own, so that its owner alone can read it."""
    output = folder / (top.text("output") or "results")
    own, results, problem = folder.resolve(), output, ""
    try:
        results = output.resolve()
        results.exists()  # a name that is too long is noticed here
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except (RuntimeError, ValueError):
        problem = "it is a circle of links, or no folder can have this name"
    if problem:
        top.refuse(f"cannot be the folder of the results: {problem}.", "output")
    if results == own or results in own.parents:
        what = "is the folder of the study itself" if results == own else "holds the study's folder"
        top.refuse(
            f"{what}; the results are for their owner alone, and need a folder of their own, such "
            'as output = "results".',
            "output",
        )
    return output


def _data(section: Section, folder: Path) -> Path | str:
    section.refuse_unknown(("file", "sample", "id", "types", "missing", "drop", "release"))
    name, sample = section.text("file"), section.text("sample")
    if (name is None) == (sample is None):
        section.refuse(
            'name the confidential data by file = "people.csv"'
            + (", or a built-in sample" if name is None else ", or the sample, not both")
            + "."
        )
    if name is not None:
        in_parts = (folder / name).is_dir()
        return (_folder_of_parts if in_parts else _file)(section, folder, name, "file")
    return section.choice("sample", SAMPLES, "")


def _missing(data: Section) -> Missing:
    """Return what is done about missing values: of all columns, or of some by name."""
    if not isinstance(data.values.get("missing"), dict):
        return cast("Missing", data.choice("missing", MISSING_POLICIES, "error"))
    by_column = data.section("missing")
    return {
        name: cast("MissingOfOne", by_column.choice(name, MISSING_BY_COLUMN, "error"))
        for name in by_column.values
    }


def _types(data: Section) -> dict[str, Any]:
    types = data.section("types")
    found: dict[str, Any] = {}
    for name, declared in types.values.items():
        levels = isinstance(declared, list) and all(
            isinstance(one, str | int) and not isinstance(one, bool) for one in declared
        )
        if isinstance(declared, dict):
            own = types.section(name)
            own.refuse_unknown(("range",))
            if "range" not in declared:
                own.refuse("lacks range = [low, high].")
            found[name] = _within(own, "range")
        elif isinstance(declared, str) or levels:
            found[name] = declared
        else:
            types.refuse(
                'must be "category", "numeric", a list of levels, or { range = [low, high] }.', name
            )
    return found


def _models(
    top: Section, folder: Path
) -> tuple[tuple[Regression, ...], tuple[Path, ...] | None, dict[str, dict[str, str]]]:
    models = top.sections("model")
    if not models:
        top.refuse("there is no [[model]]; give one for each variable to synthesize, in order.")
    if len(models) > _MOST_MODELS:
        top.refuse(f"a study has at most {_MOST_MODELS:,} models; got {len(models):,}.", "model")
    regressions: list[Regression] = []
    draws: list[Path] = []
    rename: dict[str, dict[str, str]] = {}
    for model in models:
        model.refuse_unknown(
            ("formula", "family", *_OPTIONS, "prior", "weights", "draws", "rename")
        )
        regression = _regression(model)
        regressions.append(regression)
        file = model.text("draws")
        if file is not None:
            draws.append(_file(model, folder, file, "draws"))
            if "prior" in model.values:
                model.refuse("draws were made elsewhere, so there is no prior to choose.", "prior")
        if "rename" in model.values:
            if file is None:
                model.refuse("renames the columns of draws, and there are none.", "rename")
            names = model.section("rename")
            rename[regression.response] = {name: str(names.text(name)) for name in names.values}
    if draws and len(draws) < len(models):
        lacks = next(model for model in models if "draws" not in model.values)
        lacks.refuse("has no draws, but other models have: give them for all models, or for none.")
    _check_sequence(models, regressions)
    return tuple(regressions), tuple(draws) or None, rename


def _check_sequence(models: Sequence[Section], regressions: Sequence[Regression]) -> None:
    """Raise where models do not follow from each other, and say which is the first."""
    if _is_sequence(regressions):
        return
    lengths = range(1, len(models) + 1)
    # What is wrong stays wrong with more models after it, so the first is found by halving.
    position = bisect_left(lengths, True, key=lambda n: not _is_sequence(regressions[:n]))
    regression = regressions[position]
    for earlier, other in zip(models, regressions[:position], strict=False):
        if regression.response == other.response:
            attempt((models[position], "formula"), Plan.of, [other, regression])
        if regression.response in other.parsed.predictors:  # the earlier one is wrong
            attempt((earlier, "formula"), Plan.of, [other, regression])
    attempt((models[position], "formula"), Plan.of, regressions[: position + 1])


def _is_sequence(regressions: Sequence[Regression]) -> bool:
    with contextlib.suppress(SynriskError):
        Plan.of(regressions)
        return True
    return False


def _regression(model: Section) -> Regression:
    formula, family = model.text("formula"), model.text("family", "gaussian")
    if formula is None:
        model.refuse('lacks its formula, such as formula = "LogIncome ~ LogExpenditure".')
    known = attempt((model, "family"), Regression, "y ~ 1", str(family)).distribution
    for option, meaning in _OPTIONS.items():
        if option not in model.values:
            continue
        if option not in {one.name for one in fields(known)}:
            having = [one.name for one in FAMILIES if option in {o.name for o in fields(one)}]
            names = listed(map(toml_text, having), len(having))
            model.refuse(f"is for family = {names}: {meaning}.", option)
        known = attempt((model, option), replace, known, **{option: model.values[option]})
    prior, weights = _prior(model), model.text("weights")
    return attempt(
        (model, "formula"), Regression, str(formula), known, prior=prior, weights=weights
    )


def _executor(section: Section) -> Any:
    """Return what runs the work."""
    section.refuse_unknown(("executor", "workers"))
    executor = section.values.get("executor")
    if executor is None or isinstance(executor, int):
        executor = section.whole("executor")
    elif executor not in ENGINES and not (isinstance(executor, str) and is_address(executor)):
        section.refuse(
            f"must be {listed(map(toml_text, ENGINES))}, a number of threads, or the address of a "
            f'scheduler of Dask, such as "tcp://127.0.0.1:8786".{nearest(executor, ENGINES)}',
            "executor",
        )
    if isinstance(executor, str) and is_address(executor):
        _refuse_elsewhere(section, executor)
    n = section.whole("workers")
    if n is None:
        return executor
    if executor != "processes":
        section.refuse('is for executor = "processes": how many there are.', "workers")
    return attempt((section, "workers"), Processes, n)


def _refuse_elsewhere(section: Section, address: str) -> None:
    """Refuse the address of another machine, unless whoever runs the study names it too.

    The confidential data go there, and what answers there can run code here.
    """
    if not is_here(address) and os.environ.get(_SCHEDULER, "") != address:
        section.refuse(
            "is on another machine, to which the confidential data would go and which can run code "
            "on this one, and a study file alone does not decide that. If it is your own cluster, "
            f"set the environment variable {_SCHEDULER} to the same address.",
            "executor",
        )


def _fit(section: Section, *, foreign: bool) -> dict[str, Any]:
    section.refuse_unknown(("n_draws", "prior", "engine"))
    if foreign and section.values:
        section.refuse("the draws were made elsewhere, so nothing is fitted; leave [fit] out.")
    return {
        "n_draws": section.whole("n_draws", 1000),
        "prior": _prior(section) or "default",
        "engine": section.choice("engine", get_args(EngineName), "auto"),
    }


def _prior(section: Section) -> Any:
    """Return a prior: a word, numbers for all coefficients, or tables by parameter."""
    value = section.values.get("prior")
    if value is None or isinstance(value, str):
        return None if value is None else section.choice("prior", PRIORS, "default")
    prior = section.section("prior")
    if value and all(isinstance(one, dict) for one in value.values()):
        return {name: _one_prior(prior.section(name), own=True) for name in value}
    return _one_prior(prior, own=False)


def _one_prior(section: Section, *, own: bool) -> Any:
    keys = set(section.values)
    kinds: dict[frozenset[str], Any] = {frozenset({"mean", "sd"}): Normal}
    if own:
        kinds[frozenset({"rate"})] = Exponential
    else:
        kinds[frozenset({"scale", "df"})] = Conjugate
    kind = kinds.get(frozenset(keys))
    if kind is None:
        other = "{ rate = 1 } for sigma" if own else "{ scale = 10, df = 1 } (conjugate)"
        section.refuse(f"must be {{ mean = 0, sd = 2 }}, or {other}.")
    return attempt((section,), kind, **section.values)


def _synthesis(
    section: Section, folder: Path, *, in_parts: bool
) -> tuple[int, int | None, str, tuple[Path, ...] | None]:
    section.refuse_unknown(("m", "seed", "format", "files"))
    names = section.texts("files")
    if names is not None:
        for key in ("m", "seed", "format"):
            if key in section.values:
                section.refuse("the synthetic data are given by files; leave this out.", key)
        files = tuple(
            (_folder_of_parts if in_parts and (folder / name).is_dir() else _file)(
                section, folder, name, "files", k
            )
            for k, name in enumerate(names)
        )
        return len(files), None, "csv", files
    m = section.whole("m", 1, most=_MOST_DATASETS) or 1
    seed = section.whole("seed", least=None)
    stored = section.choice("format", FORMATS, "parquet" if in_parts else "csv")
    return m, seed, stored, None


def _risk(section: Section, variables: tuple[str, ...]) -> dict[str, Any]:
    known = ("question", "guesses", "prior", "tolerance", "estimator", "n_draws", "on_unreliable")
    section.refuse_unknown((*known, "variables", "joint"))
    options: dict[str, Any] = {
        "estimator": section.choice("estimator", get_args(EstimatorName), "auto"),
        "n_draws": section.whole("n_draws"),
        "on_unreliable": section.choice("on_unreliable", get_args(UnreliableName), "auto"),
        "question": section.choice("question", QUESTIONS, "release"),
        "intruder_prior": _intruder_prior(section),
        "tolerance": _tolerance(section, variables),
        "variables": _some_variables(section, variables),
        "joint": section.choice("joint", get_args(JointName), "auto"),
    }
    given = section.values.get("guesses")
    if isinstance(given, dict):
        by_variable = section.section("guesses")
        _refuse_unsynthesized(by_variable, variables)
        options["guesses"] = {name: _guesses(by_variable, name) for name in by_variable.values}
    elif given is None or given == "range":
        options["guesses"] = given
    else:
        options["guesses"] = section.whole("guesses", least=2)
    return options


def _some_variables(section: Section, variables: tuple[str, ...]) -> list[str] | None:
    """Return the variables to evaluate; None for all."""
    names = section.texts("variables")
    for number, name in enumerate(names or ()):
        if name not in variables:
            section.refuse(_not_among(name, variables), "variables", number)
    return names


def _tolerance(section: Section, variables: tuple[str, ...]) -> Any:
    """Return how near to the truth counts: a share, or tables of share and width by variable."""
    given = section.values.get("tolerance")
    if given is None:
        return None
    if not isinstance(given, dict):
        return attempt((section, "tolerance"), Tolerance, given)
    by_variable = section.section("tolerance")
    _refuse_unsynthesized(by_variable, variables)
    found = {}
    for name, one in by_variable.values.items():
        if not isinstance(one, dict):
            found[name] = attempt((by_variable, name), Tolerance, one)
            continue
        own = by_variable.section(name)
        own.refuse_unknown(("share", "width"))
        found[name] = attempt((own,), Tolerance, **one)
    return found


def _utility(top: Section) -> dict[str, Any] | None:
    """Return the options of the utility, None where the file has no such table."""
    if "utility" not in top.values:
        return None
    section = top.section("utility")
    section.refuse_unknown(("regression", "variables", "propensity", "parameters", "level"))
    propensity = section.texts("propensity") or list(_PROPENSITY)
    for number, name in enumerate(propensity):
        if name not in MODELS:
            section.refuse(
                f"must be one of {listed(MODELS)}.{nearest(name, MODELS)}", "propensity", number
            )
        if name == "cart":  # said now rather than after all other work
            attempt((section, "propensity", number), tree_maker)
    level = section.values.get("level", 0.95)
    if isinstance(level, bool) or not isinstance(level, float) or not 0 < level < 1:
        section.refuse("must be a number between 0 and 1, such as 0.95.", "level")
    regressions = []
    for one in section.sections("regression"):
        one.refuse_unknown(("formula", "family"))
        regressions.append(_regression(one))
    return {
        "regressions": tuple(regressions) or None,
        "variables": section.texts("variables"),
        "propensity": tuple(propensity),
        "parameters": section.choice("parameters", PARAMETERS, "posterior"),
        "level": level,
    }


def _further(
    top: Section, folder: Path, variables: tuple[str, ...]
) -> Iterator[tuple[str, Further]]:
    """Yield the risks that the file asks for beside that of the attributes."""
    if AUDIT in top.values:
        section = top.section(AUDIT)
        section.refuse_unknown(("keys", "sensitive", "holdout", "criteria"))
        holdout = section.text("holdout")
        options: dict[str, Any] = {
            "keys": section.texts("keys"),
            "sensitive": section.texts("sensitive"),
            "holdout": None if holdout is None else _file(section, folder, holdout, "holdout"),
        }
        yield AUDIT, Further(options, _own_criteria(section))
    if IDENTIFICATION in top.values:
        section = top.section(IDENTIFICATION)
        section.refuse_unknown(("known", "synthesized", "radius", "by", "criteria"))
        known = section.texts("known") or []
        for k, name in enumerate(known):
            if name in variables:
                section.refuse(
                    "is synthesized; known is what goes out as it is, and the intruder knows.",
                    "known",
                    k,
                )
        synthesized = section.texts("synthesized") or list(variables)
        for k, name in enumerate(synthesized):
            if name not in variables:
                section.refuse(_not_among(name, variables), "synthesized", k)
        radius = _radius(section, (*known, *synthesized))
        asks = "by" in section.values
        by = section.choice("by", (BY_MODELS, BY_MATCHES), BY_MODELS) if asks else None
        options = {"known": known, "synthesized": synthesized, "radius": radius, "by": by}
        yield IDENTIFICATION, Further(options, _own_criteria(section))


def _own_criteria(section: Section) -> Criteria:
    """Return the limits of a further risk."""
    if "criteria" not in section.values:
        return Criteria(gain=0.1)
    own = section.section("criteria")
    own.refuse_unknown(("gain", "probability", "lift", "share", "combine"))
    return Criteria.from_section(own)


def _radius(section: Section, variables: tuple[str, ...]) -> Any:
    """Return how near a row must be: a share, or by variable a share or a table."""
    if "radius" not in section.values:
        section.refuse("lacks radius, such as radius = 0.1 (ten percent of a person's value).")
    given = section.values["radius"]
    if not isinstance(given, dict):
        return attempt((section, "radius"), Radius, given)
    by_variable = section.section("radius")
    _refuse_unsynthesized(by_variable, variables, "known or synthesized")
    found = {}
    for name, one in by_variable.values.items():
        if not isinstance(one, dict):
            found[name] = attempt((by_variable, name), Radius, one)
            continue
        own = by_variable.section(name)
        own.refuse_unknown(("relative", "absolute"))
        found[name] = attempt((own,), Radius, **one)
    return found


def _refuse_unsynthesized(
    section: Section, variables: tuple[str, ...], what: str = "synthesized"
) -> None:
    for name in section.values:
        if name not in variables:
            section.refuse(_not_among(name, variables, what), name)


def _not_among(name: str, variables: tuple[str, ...], what: str = "synthesized") -> str:
    near_by = nearest(name, variables)
    return f"is not a {what} variable.{near_by} They are {listed(variables)}."


def _intruder_prior(section: Section) -> Any:
    if "prior" not in section.values:
        return None
    if not isinstance(section.values["prior"], dict):
        return section.choice("prior", ("mostly-model", "model", "uniform"), "mostly-model")
    prior = section.section("prior")
    prior.refuse_unknown(("truth_factor", "mostly_model"))
    if len(prior.values) != 1:
        prior.refuse("is one of { mostly_model = 0.9 } and { truth_factor = 5 }.")
    if "mostly_model" in prior.values:
        return attempt((prior,), MostlyModel, prior.values["mostly_model"])
    return attempt((prior,), TruthFactor, prior.values["truth_factor"])


def _guesses(section: Section, name: str) -> Any:
    """Return the guesses of one variable: a number, "all levels", or a table."""
    value = section.values[name]
    if value == "all levels":
        return AllLevels()
    if value == "range":
        return Range()
    if isinstance(value, str):
        section.refuse(_GUESSES, name)
    if not isinstance(value, dict):
        return section.whole(name, least=2)
    own = section.section(name)
    if set(value) == {"values"}:
        if not isinstance(value["values"], list):
            own.refuse("must be a list of guesses.", "values")
        return Values(value["values"])
    if "range" in value:
        own.refuse_unknown(("range", "n", "margin"))
        ends = _within(own, "range")
        return attempt((own,), Range, own.whole("n"), value.get("margin", 0.1), ends)
    kinds = [kind for kind in _EVEN if kind in value]
    if len(kinds) != 1:
        own.refuse(_GUESSES)
    return _even(own, kinds[0])


def _even(own: Section, kind: str) -> Any:
    """Return evenly spaced guesses."""
    strategy, known = _EVEN[kind]
    own.refuse_unknown((kind, *known))
    n = own.whole(kind, least=2)
    given = {key: own.values[key] for key in known if key in own.values}
    for key, one in given.items():
        if key != "within" and (isinstance(one, bool) or not isinstance(one, int | float)):
            own.refuse("must be a number.", key)
    if "within" in given:
        given["within"] = _within(own)
    required = {"additive": ("below", "above"), "interval": ("low", "high")}
    for key in required.get(kind, ()):
        if key not in given:
            own.refuse(f"lacks {key}, in the variable's units.")
    return attempt((own,), strategy, n, **given)


def _within(section: Section, key: str = "within") -> tuple[float, float]:
    value = section.values[key]
    good = isinstance(value, list) and len(value) == 2
    if not good or any(isinstance(v, bool) or not isinstance(v, int | float) for v in value):
        section.refuse("must be [low, high]; -inf and inf leave a side open.", key)
    return float(value[0]), float(value[1])


def _criteria(top: Section, folder: Path, variables: tuple[str, ...]) -> Criteria:
    if "criteria" not in top.values:
        return DEFAULT
    section = top.section("criteria")
    section.refuse_unknown((*KEYS, "policy", "file"))
    if "policy" not in section.values and "file" not in section.values:
        criteria = Criteria.from_section(section)
        if isinstance(criteria.variables, Mapping):
            _refuse_unsynthesized(section.section("variables"), variables)
        return criteria
    for key in KEYS:
        if key in section.values:
            section.refuse("a policy has its own limits; leave this out.", key)
    policy, name = section.text("policy"), section.text("file")
    if name is None:
        if policy not in policy_names():
            section.refuse(f'{no_policy(str(policy))} Yours: file = "policies.toml".', "policy")
        criteria = Criteria.named(str(policy))
    else:
        file = _file(section, folder, name, "file")
        key = "file" if policy is None else "policy"
        criteria = attempt((section, key), Criteria.from_toml, file, policy)
    for variable in criteria.variables if isinstance(criteria.variables, Mapping) else ():
        if variable not in variables:
            section.refuse(
                f"the policy has limits on {variable!r}, which is not synthesized."
                f"{nearest(variable, variables)}",
                "policy",
            )
    return criteria
