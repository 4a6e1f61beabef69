"""A study from end to end: data in, models, synthetic data, risk, verdict, and a folder out."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from synrisk.assessment.attribute_result import AttributeRisk
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
from synrisk.data.output_files import sha256
from synrisk.data.parquet_folders import parquet_files
from synrisk.data.part_files import KEPT, PartsWarning, tell_anew
from synrisk.data.partitions import folder_digest
from synrisk.risk.diagnostics import ReliabilityWarning
from synrisk.study.confidential_table import read_data
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
    evaluate_further,
    further_names,
)
from synrisk.study.results import (
    RECORDS,
    RISK,
    SUMMARY,
    UTILITY,
    Done,
    report_names,
    versions,
    write_findings,
)
from synrisk.study.study import AUDIT, Study, attempt, blame
from synrisk.study.unfinished import RISK_PARTS, Unfinished, dataset_name, notes_name
from synrisk.synthesis.datasets import SynthesisWarning
from synrisk.synthesis.synthesizer import Synthesizer, fit
from synrisk.utility import Utility, utility

_TOLD = (SynthesisWarning, FileWarning, PartsWarning)  # warnings that a run tells as notes


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
            data = read_data(study)
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
            verdict = write_findings(
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


def _synthetic_name(study: Study, number: int) -> str:
    return f"synthetic{number}.{study.format}"


def _draws_name(number: int, variable: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", variable)[:100]
    return f"draws{number}_{plain}.csv"


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
