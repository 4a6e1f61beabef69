"""The risk of more records than memory holds the guesses of: evaluated and written part by part."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np

from synrisk.assessment.asked import Asked, Read
from synrisk.assessment.notes import note_on_chains, note_on_joint, note_on_stacks, notes_of
from synrisk.assessment.parted_result import PartedRisk
from synrisk.base.digests import digest
from synrisk.base.errors import OptionError, UnreliableError, counted, listed
from synrisk.base.messages import setting
from synrisk.base.progress import under_way
from synrisk.base.workers import Workers
from synrisk.core.summary import RiskArrays
from synrisk.data.part_files import KEPT, PartFolder, tell_anew
from synrisk.risk import tables
from synrisk.risk.estimators.choose import prepare_all
from synrisk.risk.estimators.paper import Paired
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.grid_size import rows_of_part
from synrisk.risk.guesses import Values
from synrisk.risk.intruder_prior import Table
from synrisk.risk.parted_evaluation import (
    PartedEvaluation,
    extents_of,
    parts_of,
    positions_of,
)
from synrisk.risk.question import widths
from synrisk.risk.release_checks import ReleaseChecks, check_release
from synrisk.risk.stored_checks import check_stored
from synrisk.synthesis.release import fingerprint


def refuse_for_parts(asked: Asked, records: Any) -> None:
    """Raise for options that need all records at once."""
    problem = ""
    if records is not None:
        problem = "is of all records: leave records= out"
    elif asked.keeping == "keep":
        problem = (
            f"keeps no joint posteriors; joint(label) works one out: leave {setting('joint')} out"
        )
    elif asked.unreliable == "fit":
        problem = "fits no record anew at its guesses; use on_unreliable='flag'"
    elif isinstance(asked.question.prior, Table):
        problem = "takes an intruder_prior by name or MostlyModel, not a table"
    else:
        by_record = [
            name
            for name, one in asked.question.guesses.items()
            if isinstance(one, Values) and np.ndim(one.values) > 1
        ]
        if by_record:
            problem = f"takes one list of Values for all records; {listed(by_record)} has more"
    if problem:
        raise OptionError(f"out= {problem}.")


def evaluate_parts(
    asked: Asked, read: Read, out: str | os.PathLike[str], team: Workers
) -> PartedRisk:
    """Evaluate all records into a folder; parts of an earlier run that fit stay as they are."""
    synthesizer, n_records = asked.synthesizer, asked.synthesizer.n_records
    evaluation = _prepared(asked, read, team)
    with PartFolder.opened(out) as folder:
        made_from = _made_from(asked, read, evaluation)
        states = folder.begin(made_from)
        with under_way("Evaluating records", n_records) as on_records:
            for number, (part, state) in enumerate(zip(evaluation.parts, states, strict=True)):
                if state == KEPT:
                    on_records(part.stop - part.start)
                    continue
                own = evaluation.of(positions_of(part))
                result = own.run(
                    team, keep_joint=False, with_errors=asked.with_errors, on_records=on_records
                )
                folder.write(number, _table(own, result), made_from[number])
        folder.end(len(states))
    checks = None
    if asked.diagnostics:
        checks = _checks(asked, read, team)
    notes = (
        *notes_of(synthesizer, read.release, evaluation.extents),
        *note_on_joint(evaluation.template),
        *note_on_stacks(asked.draws, read.given_stacks, synthesizer.plan.synthesized),
        *(note_on_chains(synthesizer, read.given_stacks) if asked.with_errors else ()),
    )
    risk = PartedRisk.of(
        folder.path,
        evaluation,
        read.release,
        dict(zip(synthesizer.plan.synthesized, asked.estimator_names, strict=True)),
        dict(zip(synthesizer.plan.synthesized, asked.n_draws_used, strict=True)),
        notes,
        checks,
        states,
        tuple(fingerprint(dataset) for dataset in read.release),
        with_errors=asked.with_errors,
    )
    tell_anew(states, "Parts of the risk")
    if asked.unreliable == "raise":
        n_bad = sum(int((~part["reliable"]).sum()) for part in risk.parts(["reliable"]))
        if n_bad:
            raise UnreliableError(
                f"{counted(n_bad, 'record')} of {n_records:,} cannot be relied on. Use more "
                "draws, fit the models with synrisk.fit, or on_unreliable='flag' to see which."
            )
    return risk


def _prepared(asked: Asked, read: Read, team: Workers) -> PartedEvaluation:
    """Return what evaluates any part; how far all guesses go is found in a pass over all."""
    synthesizer, question, n_datasets = asked.synthesizer, asked.question, len(read.release)
    first = np.zeros(1, dtype=np.int64)
    shape = widths(synthesizer, question.targets(synthesizer, first, n_datasets))
    n_rows = rows_of_part(sum(shape))
    is_joint = asked.checked_size(shape, min(n_rows, synthesizer.n_records))
    parts = parts_of(synthesizer.n_records, n_rows)
    extents = extents_of(question, synthesizer, parts, n_datasets)
    estimates = prepare_all(
        synthesizer,
        asked.estimators,
        asked.draws,
        read.release,
        extents,
        team,
        read.given_stacks,
    )
    template = Evaluation(
        synthesizer,
        estimates,
        Paired.of(estimates) if asked.is_paired else None,
        question.grids(synthesizer, first, n_datasets),
        question.prior,
        first,
        question=question,
        asked=asked.axes,
        is_joint=is_joint,
    )
    return PartedEvaluation(template, question, n_datasets, extents, tuple(parts))


def _made_from(asked: Asked, read: Read, evaluation: PartedEvaluation) -> list[dict[str, Any]]:
    """Return by what each part is known again; digests tell nothing of what they are of."""
    synthesizer = asked.synthesizer
    common = {
        "version": metadata.version("synrisk"),
        "models or records": synthesizer.digest,
        "release": digest([dataset.columns for dataset in read.release], read.given_stacks),
        "settings": digest(
            replace(asked.question, prior=None),  # type: ignore[arg-type]  # beside it
            type(asked.question.prior).__qualname__,
            asked.question.prior.model_share,
            asked.question.prior.truth_factor,
            asked.estimator_names,
            asked.n_draws_used,
            asked.axes,
            evaluation.template.is_joint,
            asked.with_errors,
        ),
    }
    return [{**common, "records": [one.start, one.stop]} for one in evaluation.parts]


def _table(evaluation: Evaluation, result: RiskArrays) -> Any:
    """Return a part as it is written: the columns of `records`, and what summaries ask for."""
    import pyarrow as pa

    labels = tables.labels_of(evaluation.synthesizer, evaluation.positions, evaluation.asked)
    grids = evaluation.asked_grids
    table = tables.part_table(result, grids, labels)
    columns = {str(name): table[name] for name in table.columns}
    record = labels.records.to_numpy()
    try:
        return pa.table({"record": pa.array(record), **columns})
    except (pa.ArrowException, TypeError):
        pass  # labels of several kinds, or tuples, have no type of their own
    return pa.table({"record": pa.array([str(label) for label in record]), **columns})


def _checks(asked: Asked, read: Read, team: Workers) -> ReleaseChecks:
    """Check the release: at once where all records are in memory, else by blocks."""
    synthesizer = asked.synthesizer
    with team.open() as opened:
        if synthesizer.confidential.step > 1:
            return check_stored(synthesizer, read.release, opened, read.near)
        sampled = [dataset.sample for dataset in read.release]
        return check_release(synthesizer.sample, sampled, opened, read.near)
