"""A study from end to end: data in, models, synthetic data, risk, verdict, and a folder out."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import pandas as pd

from synrisk.assessment.attribute_result import AttributeRisk, ReportKind
from synrisk.assessment.attribute_risk import attribute_risk
from synrisk.assessment.parted_result import PartedRisk
from synrisk.base.errors import (
    DisclosureError,
    FileError,
    OptionError,
    SynriskError,
    SyntheticDataError,
    counted,
    listed,
)
from synrisk.base.progress import steps
from synrisk.base.seeds import checked_seed
from synrisk.base.workers import Workers, workers
from synrisk.data.csv_dialects import FileWarning
from synrisk.data.frames import read_table
from synrisk.data.households import load_households
from synrisk.data.output_files import sha256
from synrisk.data.parquet_folders import parquet_files
from synrisk.data.part_files import CONTENTS, KEPT, PartsWarning, tell_anew
from synrisk.data.partitions import folder_digest, partitions
from synrisk.data.schema import check_types, require_columns, text_columns
from synrisk.data.toml import Section
from synrisk.models.plan import Regression
from synrisk.risk.diagnostics import ReliabilityWarning
from synrisk.study.folder import (
    Staging,
    about_mode,
    check_folder,
    json_text,
    read_manifest,
    refuse_own_inputs,
    writing,
)
from synrisk.study.further_risks import (
    FurtherRisk,
    check_further,
    evaluate_further,
    further_names,
    further_of,
    load_further,
    page_names,
    plain_numbers,
)
from synrisk.study.study import AUDIT, Study, attempt, blame
from synrisk.study.unfinished import RISK_PARTS, Unfinished, dataset_name, notes_name
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.datasets import SynthesisWarning
from synrisk.synthesis.synthesizer import Synthesizer, fit
from synrisk.utility import Utility, utility
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.reasons import CALLED
from synrisk.verdict.verdict import Verdict

RISK, RECORDS, SUMMARY, UTILITY = "risk.nc", "records.csv", "summary.json", "utility.json"
REPORTS = {"sharing": "report.html", "inside": "report-inside.html"}  # each with .json beside
_WHAT = "The confidential data"
_TOLD = (SynthesisWarning, FileWarning, PartsWarning)  # warnings that a run tells as notes
_VERSIONS = ("synrisk", "numpy", "numba", "pandas", "scipy")


@dataclass(frozen=True, repr=False)
class Done:
    """What a run made.

    Attributes
    ----------
    folder
        Where it is.
    title
        What the study is called.
    risk, verdict
        The risk; the verdict where there are criteria.
    kinds
        The reports that were written.
    warnings
        What else to know.
    utility
        How useful the release is, where that was measured.
    further
        The risks beside it that the study asks for.
    """

    folder: Path
    title: str
    risk: AttributeRisk
    verdict: Verdict | None
    kinds: tuple[str, ...]
    warnings: tuple[str, ...]
    utility: Utility | None = None
    further: tuple[FurtherRisk, ...] = ()

    @property
    def reports(self) -> dict[str, Path]:
        """The reports by kind."""
        return {kind: self.folder / REPORTS[kind] for kind in self.kinds}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of all risks."""
        own = () if self.verdict is None else (self.verdict,)
        return (*own, *(one.verdict for one in self.further))


def run(
    study: Study,
    *,
    seeds: Mapping[str, int] | None = None,
    progress: bool = False,
    resume: bool = False,
) -> Done:
    """Run a study and write its folder.

    Parameters
    ----------
    study
        What the study file says.
    seeds
        Those of an earlier run, of `seeds_of`; None takes the study's, or draws a secret one.
    progress
        Whether to show what is being done, if standard error is a terminal.
    resume
        Whether to go on where an earlier run of data in parts ended, with its seeds.
    """
    if resume:
        _refuse_to_resume(study, seeds)
    files, names = _files(study), _names(study)
    attempt((study.top, "output"), refuse_own_inputs, study.output, names, files)
    attempt((study.top, "output"), check_folder, study.output, names)
    inputs = {Path(os.path.relpath(f, study.path.parent)).as_posix(): sha256(f) for f in files}
    with (
        writing(study.output, names) as staging,
        _caught() as said,
        steps(progress) as show,
        attempt((study.top, "engine"), workers, study.executor).shared() as team,
    ):
        with show("Reading the confidential data"):
            data = _read_data(study)
        parts, gone_on = None, list[str]()
        if study.in_parts:
            parts = Unfinished(staging.into, study.output, 0 if study.files else study.m)
            seeds, gone_on = _begin_parts(study, parts, seeds, inputs, resume=resume)
        seeds = _seeds(study) if seeds is None else seeds
        with show("Fitting the models" if study.draws is None else "Reading the draws"):
            synthesizer = _synthesizer(study, data, seeds["fit"], team)
            _write_draws(synthesizer, study, staging)
        with show("Synthesizing" if study.files is None else "Reading the synthetic data"):
            release = _release(study, synthesizer, seeds["synthesis"], team, parts)
            synthetic = _write_release(release, study, staging)
        with show("Evaluating the risk"):
            risk = _evaluate(study, synthesizer, release, team, parts, progress=progress)
        measured = None
        if study.utility is not None:
            with show("Measuring the utility"):
                measured = _measure(study, study.utility, synthesizer, release, seeds["fit"])
        further = []
        for name in study.further:
            with show("Auditing" if name == AUDIT else "Looking for people's rows"):
                further.append(evaluate_further(study, name, synthesizer, release, seeds["fit"]))
        with show("Writing the results"):
            _write_results(study, staging, risk, measured)
            for one in further:
                one.write_results(staging)
        with show("Writing the report"):
            verdict = _write_findings(
                staging,
                risk,
                synthetic,
                study.kinds,
                study.criteria,
                study.title,
                study.rows,
                measured,
                further,
            )
        manifest = _manifest(study, seeds, inputs, synthetic)
        if parts is None:
            staging.commit(manifest)
        else:
            staging.commit(manifest, parts.files())
            parts.remove()
    if parts is not None and isinstance(risk, PartedRisk):
        risk = risk.moved_to(study.output / RISK_PARTS)
        if resume:
            gone_on.insert(0, _about_kept([*parts.states, *risk.states]))
    notes = (*_about_place(study), *gone_on, *said)
    return Done(
        study.output, study.title, risk, verdict, study.kinds, notes, measured, tuple(further)
    )


def _refuse_to_resume(study: Study, seeds: Mapping[str, int] | None) -> None:
    if not study.in_parts:
        raise OptionError(
            "--resume is for data that are read in parts: [data] file names a folder of Parquet "
            "files. This study's are in memory, and are evaluated in one go: leave --resume out. "
            "--seed-from gives the same synthetic data again."
        )
    if seeds is not None:
        raise OptionError("--resume takes the seed of the earlier run: leave --seed-from out.")


def _begin_parts(
    study: Study,
    parts: Unfinished,
    seeds: Mapping[str, int] | None,
    inputs: Mapping[str, str],
    *,
    resume: bool,
) -> tuple[Mapping[str, int], list[str]]:
    """Make a place for parts, or go on with an earlier run's; return the seeds, and what to say."""
    notes = []
    earlier = parts.earlier() if resume else None
    if resume and earlier is None:
        raise FileError(
            f"--resume: there is no earlier run in {study.output} to go on with. Leave it out."
        )
    if seeds is None:
        seeds = _seeds(study)
    if earlier is not None:
        seeds = _seeds_of_both(study, earlier["seeds"])
        notes += _changes(study, earlier, inputs)
    begun = {
        "seeds": seeds,
        "inputs": inputs,
        "versions": versions(),
        "settings": study.top.values,
    }
    if parts.begin(begun, resume=resume):
        notes.append(
            "An earlier run had not ended. This one began anew, and removed what it had made; "
            "--resume goes on instead."
        )
    return seeds, notes


def _about_kept(states: Sequence[str]) -> str:
    """Say how much of an earlier run was gone on with."""
    return (
        f"Of the {counted(len(states), 'part')} of datasets and risk {states.count(KEPT):,} were "
        "kept as an earlier run left them."
    )


def _seeds_of_both(study: Study, earlier: Mapping[str, int]) -> dict[str, int]:
    """Return the study's own seeds, and of an earlier run those that it does not have."""
    fit_seed = earlier["fit"] if study.seed is None else study.seed
    synthesis = earlier["synthesis"] if study.seed is None else study.seed
    if study.synthesis_seed is not None:
        synthesis = study.synthesis_seed
    return {"fit": fit_seed, "synthesis": synthesis}


def _changes(study: Study, earlier: Mapping[str, Any], inputs: Mapping[str, str]) -> list[str]:
    """Say what has changed since an earlier run began: by names alone."""
    own = study.path.name
    before, notes = earlier.get("inputs"), []
    if isinstance(before, dict):
        files = [n for n in sorted({*before, *inputs}) if before.get(n) != inputs.get(n)]
        files = [name for name in files if name != own]
        if files:
            notes.append(f"Changed, come or gone since the earlier run: {listed(files)}.")
    before = earlier.get("settings")
    if isinstance(before, dict):
        now = json.loads(json_text(study.top.values))
        then = json.loads(json_text(before))
        keys = [key for key in {**then, **now} if then.get(key) != now.get(key)]
        if keys:
            notes.append(f"Other settings than in the earlier run: {listed(keys)}.")
    before = earlier.get("versions")
    if isinstance(before, dict):
        others = [name for name, number in versions().items() if before.get(name) != number]
        if others:
            notes.append(f"Other versions than in the earlier run: {listed(others)}.")
    return notes


def _about_place(study: Study) -> list[str]:
    """Return what to know of where the results are."""
    results = study.output.resolve()
    own = study.path.parent.resolve()
    notes = [about_mode(study.output)]
    if own not in results.parents:
        notes.insert(0, f"The results are outside the study's folder: {results}")
    return [note for note in notes if note]


def _seeds(study: Study) -> dict[str, int]:
    """Return the study's seeds; where it has none, one secret for all: streams keep them apart."""
    seed = checked_seed(study.seed)
    return {
        "fit": seed,
        "synthesis": seed if study.synthesis_seed is None else study.synthesis_seed,
    }


def seeds_of(manifest: Path, study: Study) -> dict[str, int]:
    """Return the seeds of an earlier run, whose manifest or folder is named."""
    if study.seed is not None or study.synthesis_seed is not None:
        raise OptionError("--seed-from: the study file has a seed of its own; take it out.")
    stored = read_manifest(manifest) or {}
    seeds = stored.get("seeds")
    names = ("fit", "synthesis")
    if not isinstance(seeds, dict) or any(type(seeds.get(name)) is not int for name in names):
        raise FileError(f"--seed-from: {manifest} is no manifest of synrisk run with its seeds.")
    return {name: seeds[name] for name in names}


def report(
    folder: Path,
    *,
    kinds: tuple[str, ...] = (),
    criteria: Criteria | None = None,
    title: str | None = None,
    progress: bool = False,
) -> Done:
    """Make the reports of a folder anew from the risk that is saved in it.

    Parameters
    ----------
    folder
        What `run` wrote.
    kinds
        Reports to write beside those that are there.
    criteria, title
        The limits and the title; None keeps those of the last time.
    progress
        Whether to show what is being done, if standard error is a terminal.
    """
    manifest = _whole_manifest(folder)
    # All reports of a folder are made anew, so that they agree.
    chosen = tuple(kind for kind in REPORTS if kind in {*manifest["kinds"], *kinds})
    title = title or str(manifest["title"])
    if criteria is None:
        criteria = _criteria_of(folder, manifest)
    rows = str(manifest.get("rows", CALLED))
    names = [SUMMARY, *(name for kind in chosen for name in report_names(kind))]
    if AUDIT in further_of(manifest):
        names += page_names(chosen)
    synthetic, said = _synthetic_of(folder, manifest)
    with writing(folder, names, keep=True) as staging, steps(progress) as show:
        if read_manifest(folder) != manifest:
            raise FileError(f"Another run has written to {folder} meanwhile; try again.")
        with show("Reading the risk"):
            risk = AttributeRisk.load(folder / RISK)
            measured = _measured(folder, manifest)
            further = load_further(folder, manifest, rows)
        with show("Writing the report"):
            verdict = _write_findings(
                staging, risk, synthetic, chosen, criteria, title, rows, measured, further
            )
        manifest |= {
            "title": title,
            "criteria": None if criteria is None else criteria.to_json(),
            "kinds": list(chosen),
        }
        staging.commit(manifest)
    note = about_mode(folder)
    said = (*said, note) if note else said
    return Done(folder, title, risk, verdict, chosen, said, measured, tuple(further))


def _whole_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder whose risk is as it was written."""
    if not folder.is_dir():
        raise FileError(f"There is no folder {folder}.")
    manifest = read_manifest(folder)
    if manifest is None or not _is_of_a_run(manifest):
        raise FileError(f"{folder} was not written by synrisk run: it has no manifest of one.")
    if not manifest.get("complete"):
        raise FileError(f"The last run into {folder} was stopped while it moved its files; rerun.")
    if f"{RISK_PARTS}/{CONTENTS}" in manifest["outputs"]:
        raise FileError(
            f"The risk in {folder} lies in parts. Change the study, and run it with --resume: its "
            "reports are made anew, and parts that fit are not evaluated again."
        )
    if not (folder / RISK).is_file() or sha256(folder / RISK) != manifest["outputs"].get(RISK):
        raise FileError(f"{folder / RISK} is not the file that synrisk run wrote; run it again.")
    return manifest


def _is_of_a_run(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a manifest has what `report` needs, each of the right kind."""
    title, kinds = manifest.get("title"), manifest.get("kinds")
    synthetic = manifest.get("synthetic")
    return (
        isinstance(title, str)
        and isinstance(kinds, list)
        and all(kind in tuple(REPORTS) for kind in kinds)
        and "criteria" in manifest
        and isinstance(synthetic, list)
        and all(
            isinstance(one, dict) and all(isinstance(one.get(k), str) for k in ("file", "sha256"))
            for one in synthetic
        )
    )


def _criteria_of(folder: Path, manifest: Mapping[str, Any]) -> Criteria | None:
    """Return the limits that a folder was judged by."""
    if manifest["criteria"] is None:
        return None
    with contextlib.suppress(SynriskError, TypeError, ValueError, AttributeError):
        return Criteria.from_json(manifest["criteria"])
    raise FileError(f"The criteria in the manifest of {folder} are damaged; run it again.")


def _synthetic_of(
    folder: Path, manifest: Mapping[str, Any]
) -> tuple[list[Path] | None, tuple[str, ...]]:
    """Return the release that was evaluated, or None and why."""
    paths = [folder / one["file"] for one in manifest["synthetic"]]
    if all(path.is_file() for path in paths):
        for path, one in zip(paths, manifest["synthetic"], strict=True):
            if sha256(path) != one["sha256"]:
                raise FileError(
                    f"{path} has changed since its risk was evaluated; run the study again."
                )
        return paths, ()
    said = "The synthetic data are not where they were; the report is without their distributions."
    return None, (said,)


@contextmanager
def _caught() -> Iterator[list[str]]:
    """Yield a list for what is told as notes; warnings of the risk are among its findings."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore", ReliabilityWarning)
        for kind in _TOLD:
            warnings.simplefilter("always", kind)
        yield said
    for one in caught:
        if issubclass(one.category, _TOLD):
            said.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def versions() -> dict[str, str]:
    """Return the versions that the numbers depend on."""
    return {"python": platform.python_version(), **{name: version(name) for name in _VERSIONS}}


def _files(study: Study) -> list[Path]:
    """Return every file that is read."""
    files = [study.path, *(study.draws or ()), *(study.files or ())]
    if isinstance(study.data, Path):
        files.append(study.data)
    files = [own for file in files for own in (parquet_files(file) if file.is_dir() else [file])]
    policies = study.top.section("criteria").values.get("file")
    if policies is not None:
        files.append(study.path.parent / policies)
    if AUDIT in study.further and study.further[AUDIT].options["holdout"] is not None:
        files.append(study.further[AUDIT].options["holdout"])
    return files


def _names(study: Study) -> list[str]:
    names = [RISK_PARTS, SUMMARY] if study.in_parts else [RISK, RECORDS, SUMMARY]
    if study.utility is not None:
        names.append(UTILITY)
    names += [name for kind in study.kinds for name in report_names(kind)]
    names += further_names(study)
    if study.files is None:
        numbers = range(1, study.m + 1)
        if study.in_parts:
            names += [name(number) for number in numbers for name in (dataset_name, notes_name)]
        else:
            names += [_synthetic_name(study, number) for number in numbers]
    if study.draws is None:
        names += [_draws_name(k, r.response) for k, r in enumerate(study.regressions, 1)]
    return names


def report_names(kind: str) -> tuple[str, str]:
    """Return what a report and its facts are called."""
    page = REPORTS[kind]
    return page, str(Path(page).with_suffix(".json"))


def _synthetic_name(study: Study, number: int) -> str:
    return f"synthetic{number}.{study.format}"


def _draws_name(number: int, variable: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", variable)[:100]
    return f"draws{number}_{plain}.csv"


def _read_data(study: Study) -> pd.DataFrame | Path:
    """Return the confidential data, or the folder of their parts; columns are checked."""
    if not study.in_parts:
        frame = _read_frame(study)
        _check_models(study, frame)
        _check_analyses(study, frame)
        check_further(study, frame, _WHAT)
        return frame
    folder = cast("Path", study.data)
    table = attempt((study.top.section("data"), "file"), partitions, folder, _WHAT)
    for model, regression in zip(study.top.sections("model"), study.regressions, strict=True):
        attempt((model, "formula"), table.require, _columns(regression))
        if regression.weights is not None:
            attempt((model, "weights"), table.require, [regression.weights])
    return folder


def _read_frame(study: Study) -> pd.DataFrame:
    section = study.top.section("data")
    if isinstance(study.data, Path):
        text = attempt((section, "types"), text_columns, study.types)
        if study.id is not None:
            text = {study.id: [], **text}
        frame = attempt((section, "file"), read_table, study.data, _WHAT, text=text)
    else:
        frame = load_households()
    for name, declared in study.types.items():
        attempt((section, "types", name), check_types, {name: declared}, frame)
    if study.id is not None:
        attempt((section, "id"), require_columns, frame, [study.id], _WHAT)
        n_repeated = int(frame[study.id].duplicated().sum())
        if n_repeated:
            section.refuse(
                f"repeats {counted(n_repeated, 'label')}; every record needs its own.", "id"
            )
    for k, name in enumerate(study.drop):
        attempt((section, "drop", k), require_columns, frame, [name], _WHAT)
    return frame.drop(columns=list(study.drop))


def _check_models(study: Study, frame: pd.DataFrame) -> None:
    """Raise where the data do not suit a model, and say which."""
    for model, regression in zip(study.top.sections("model"), study.regressions, strict=True):
        used = [name for name in study.drop if name in _columns(regression)]
        if used:
            model.refuse(f"uses {used[0]!r}, which is left out (data.drop).", "formula")
        if regression.weights is not None:
            attempt((model, "weights"), require_columns, frame, [regression.weights], _WHAT)
        _check_formula(study, model, regression, frame)


def _check_analyses(study: Study, frame: pd.DataFrame) -> None:
    """Raise where the data do not suit an analysis of the utility, before any work."""
    if study.utility is None:
        return
    section = study.top.section("utility")
    for k, name in enumerate(study.utility["variables"] or ()):
        attempt((section, "variables", k), require_columns, frame, [name], _WHAT)
    analyses = study.utility["regressions"] or ()
    for one, regression in zip(section.sections("regression"), analyses, strict=True):
        _check_formula(study, one, regression, frame)


def _check_formula(
    study: Study, section: Section, regression: Regression, frame: pd.DataFrame
) -> None:
    """Raise where the data do not suit a formula, and say where it stands.

    Its own columns alone are read, since models may be many; all where one is not there, for the
    message to name the nearest.
    """
    others = (regression.weights, study.id)
    used = [*_columns(regression), *(name for name in others if name is not None)]
    types = study.types
    if all(name in frame.columns for name in used):
        frame = frame[list(dict.fromkeys(used))]
        types = {name: types[name] for name in used if name in types}
    attempt(
        (section, "formula"),
        Confidential.read,
        regression,
        frame,
        types=types,
        id_column=study.id,
        missing=study.missing,
    )


def _columns(regression: Regression) -> tuple[str, ...]:
    return (regression.response, *regression.parsed.predictors)


def _synthesizer(study: Study, data: pd.DataFrame | Path, seed: int, team: Workers) -> Synthesizer:
    """Fit the plan or take its draws; where that fails, say for which model."""
    models = study.top.sections("model")
    every = range(len(models))

    def of(chosen: Sequence[int]) -> Synthesizer:
        regressions = [study.regressions[k] for k in chosen]
        options: dict[str, Any] = {
            "types": study.types,
            "id": study.id,
            "missing": study.missing,
            "release": None if study.in_parts else study.release,
        }
        if study.draws is None:
            return fit(regressions, data, seed=seed, executor=team, **study.fit, **options)
        draws = [study.draws[k] for k in chosen]
        rename = {r.response: study.rename.get(r.response, {}) for r in regressions}
        if not any(rename.values()):
            return Synthesizer.from_draws(regressions, data, draws, **options)
        return Synthesizer.from_draws(regressions, data, draws, rename=rename, **options)

    try:
        return of(every)
    except SynriskError as error:
        problem, about = error.in_study(), error.about
        of_columns = isinstance(error, DisclosureError)
    for k in () if of_columns else every:
        attempt((models[k], "formula" if study.draws is None else "draws"), of, [k])
    return blame((study.top, "data" if of_columns else "model"), problem, about)


def _write_draws(synthesizer: Synthesizer, study: Study, staging: Staging) -> None:
    if study.draws is not None:
        return
    for number, model in enumerate(synthesizer.models, 1):
        name = model.regression.response
        with staging.create(_draws_name(number, name)) as file:
            synthesizer.draws(name).to_csv(file, index=False, mode="wb")


def _release(
    study: Study, synthesizer: Synthesizer, seed: int, team: Workers, parts: Unfinished | None
) -> list[Any]:
    if study.files is not None:
        return list(study.files)
    section = study.top.section("synthesis" if "synthesis" in study.top.values else "data")
    if parts is not None:
        folders = parts.datasets()
        states = attempt((section,), synthesizer.go_on_synthesizing, folders, seed, executor=team)
        tell_anew(states, "Parts of the datasets")
        parts.states.extend(states)
        return [folder.path for folder in folders]
    return list(attempt((section,), synthesizer.synthesize, m=study.m, seed=seed, executor=team))


def _write_release(release: Sequence[Any], study: Study, staging: Staging) -> list[Path]:
    """Write the synthetic data; return the files of the release."""
    if study.files is not None or study.in_parts:
        return list(release)
    paths = []
    for number, dataset in enumerate(release, 1):
        name = _synthetic_name(study, number)
        with staging.create(name) as file:
            if study.format == "csv":
                dataset.to_csv(file, index=False, mode="wb")
            else:
                dataset.to_parquet(file, index=False)
        paths.append(staging.path(name))
    return paths


def _listed(path: Path, study: Study) -> dict[str, str]:
    """Return where a synthetic dataset is, seen from the folder, and its digest."""
    is_made = study.files is None
    here = path.name if is_made else os.path.relpath(path, study.output)
    digest = folder_digest(path) if path.is_dir() else sha256(path)
    return {"file": Path(here).as_posix(), "sha256": digest}


def _evaluate(
    study: Study,
    synthesizer: Synthesizer,
    release: Sequence[Any],
    team: Workers,
    parts: Unfinished | None,
    *,
    progress: bool,
) -> AttributeRisk:
    out = None if parts is None else parts.risk
    try:
        return attribute_risk(
            synthesizer, list(release), executor=team, progress=progress, out=out, **study.risk
        )
    except SynriskError as error:
        at = ("synthesis", "files") if isinstance(error, SyntheticDataError) else ("risk",)
        problem, about = error.in_study(), error.about
    return blame((study.top, *at), problem, about)


def _measure(
    study: Study,
    options: Mapping[str, Any],
    synthesizer: Synthesizer,
    release: Sequence[Any],
    seed: int,
) -> Utility:
    at = (study.top.section("utility"),)
    return attempt(at, utility, synthesizer, list(release), seed=seed, **options)


def _measured(folder: Path, manifest: Mapping[str, Any]) -> Utility | None:
    """Return the utility that a folder holds, or None where it was not measured."""
    digest = manifest["outputs"].get(UTILITY)
    if digest is None:
        return None
    path = folder / UTILITY
    if not path.is_file() or sha256(path) != digest:
        raise FileError(f"{path} is not the file that synrisk run wrote; run it again.")
    with contextlib.suppress(Exception):  # not chained: its message may hold values
        return Utility.from_json(json.loads(path.read_text(encoding="utf-8")))
    raise FileError(f"{path} cannot be read; run it again.")


def _write_results(
    study: Study, staging: Staging, risk: AttributeRisk, measured: Utility | None
) -> None:
    if study.in_parts:
        return  # they are in parts
    risk.save(staging.path(RISK))
    with staging.create(RECORDS) as file:
        risk.records.to_csv(file, index_label=study.id or "record", mode="wb")
    if measured is not None:
        staging.write_json(UTILITY, measured.to_json())


def _manifest(
    study: Study,
    seeds: Mapping[str, int],
    inputs: Mapping[str, str],
    synthetic: Sequence[Path],
) -> dict[str, Any]:
    """Return what a run's numbers came from."""
    return {
        "title": study.title,
        "settings": study.top.values,
        "criteria": study.criteria.to_json(),
        "rows": study.rows,
        "further": {name: one.criteria.to_json() for name, one in study.further.items()},
        "kinds": list(study.kinds),
        "seeds": seeds,
        "versions": versions(),
        "inputs": inputs,
        "synthetic": [_listed(path, study) for path in synthetic],
    }


def _write_findings(
    staging: Staging,
    risk: AttributeRisk,
    synthetic: list[Path] | None,
    kinds: tuple[str, ...],
    criteria: Criteria | None,
    title: str,
    rows: str,
    measured: Utility | None,
    further: Sequence[FurtherRisk],
) -> Verdict:
    """Write the reports, and for machines what was found; return the verdict."""
    verdict = risk.verdict(criteria, rows=rows)
    for kind in kinds:
        risk.report(
            staging.path(REPORTS[kind]),
            kind=cast("ReportKind", kind),
            criteria=criteria,
            synthetic=synthetic,
            title=title,
            utility=measured,
            rows=rows,
        )
    for one in further:
        one.write_pages(staging, kinds, title, rows)
    staging.write_json(
        SUMMARY,
        {
            "title": title,
            "verdict": verdict.to_json(),
            "summary": {str(of): plain_numbers(row) for of, row in risk.summary().iterrows()},
            "estimator": risk.estimator,
            "n_datasets": risk.n_datasets,
            "n_draws": risk.n_draws,
            "notes": list(risk.notes),
            "findings": risk.diagnostics().to_dict("records"),
            "utility": None if measured is None else plain_numbers(measured.summary()["value"]),
            **{one.name: one.to_json() for one in further},
        },
    )
    return verdict
