"""What a study file says, and where in it the cause of an error stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from synrisk.base.errors import SettingsError, SynriskError
from synrisk.base.messages import Place
from synrisk.data.schema import (
    Missing,
)
from synrisk.data.toml import Section
from synrisk.models.plan import Regression
from synrisk.verdict.criteria import Criteria

Made = TypeVar("Made")
Given = ParamSpec("Given")
AUDIT, IDENTIFICATION = "audit", "identification"  # risks beside that of the attributes
BY_MODELS, BY_MATCHES = "models", "matches"  # whose probability of a row limits hold for


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
