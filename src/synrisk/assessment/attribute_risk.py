"""Attribute disclosure risk: the function that users call."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from synrisk.assessment.attribute_result import AttributeRisk, labels_of, positions_of
from synrisk.base.arrays import IntArray
from synrisk.base.errors import (
    DrawsError,
    OptionError,
    UnreliableError,
    counted,
    got,
    listed,
    one_of,
)
from synrisk.base.messages import place_of, setting
from synrisk.base.progress import bar
from synrisk.base.workers import workers
from synrisk.data.frames import TableLike
from synrisk.data.schema import Columns
from synrisk.models.posterior import Posterior
from synrisk.risk.diagnostics import ReliabilityWarning, findings
from synrisk.risk.estimators.at_guesses import MOST_FITTED, fit_at_guesses, rows_to_fit
from synrisk.risk.estimators.choose import estimates_of, kinds_of
from synrisk.risk.evaluation import Evaluation, check_size
from synrisk.risk.guesses import Grid, Target, for_target, lay_out, strategies
from synrisk.risk.intruder_prior import FromModel
from synrisk.risk.intruder_prior import prior as resolve_prior
from synrisk.risk.release_checks import check_release
from synrisk.synthesis.leaks import refuse_twins
from synrisk.synthesis.release import Released, fingerprint, read_release
from synrisk.synthesis.synthesizer import Synthesizer

EstimatorName: TypeAlias = Literal["auto", "exact", "stacked", "importance", "paper"]
UnreliableName: TypeAlias = Literal["flag", "fit", "raise"]
JointName: TypeAlias = Literal["auto", "keep", "drop"]

_MOST_KEPT = 1 << 28  # bytes of joint posteriors that "auto" keeps


def attribute_risk(
    synthesizer: Synthesizer,
    synthetic: TableLike | Sequence[TableLike],
    *,
    guesses: Any = 11,
    intruder_prior: Any = "uniform",
    n_draws: int | None = None,
    estimator: EstimatorName = "auto",
    stacked: Sequence[Any] | None = None,
    records: Iterable[Hashable] | Hashable | None = None,
    joint: JointName = "auto",
    diagnostics: bool = True,
    on_unreliable: UnreliableName = "flag",
    executor: Any = None,
    progress: bool | None = None,
) -> AttributeRisk:
    """Evaluate what a worst-case intruder could learn about each record from a release.

    Parameters
    ----------
    synthesizer
        The models and the confidential data.
    synthetic
        The release: a synthetic dataset, or a list of them (frames, CSV or Parquet files). Any
        number and order of rows; only the columns that the plan uses are required.
    guesses
        A number of guesses (that many within ±10 % of the truth for a continuous variable, every
        level or observed value for a discrete one), a strategy (`Relative`, `Additive`,
        `Interval`, `Values`, `AllLevels`), or a dict by variable or a list of these.
    intruder_prior
        ``"uniform"``; ``"model"``, what an intruder who knows everybody else and the models
        believes before the release; ``TruthFactor(k)``; or log probabilities over the joint grid:
        an array ``(guess₁, …)`` for all records, or ``(record, guess₁, …)``.
    n_draws
        Use the first so many posterior draws; None uses all.
    estimator
        ``"exact"``: by quadrature, for gaussian models made by `fit`. ``"stacked"``: by draws given
        the confidential data and given these and the release stacked, for models made by `fit`
        or with `stacked`.
        ``"importance"``: importance sampling with one table a model, for draws of regressions
        that were fitted separately. ``"paper"``: the paper's, draw h of all models together, also
        right for draws of one joint posterior. ``"auto"``: for each model the first of these that
        it allows.
    stacked
        For draws that were made elsewhere: an entry a dataset, each a list of tables of draws by
        model (or a dict by response), given the confidential rows and those of that dataset
        together, with priors, levels and centring as in the fits to the confidential data. Read
        as `Synthesizer.from_draws` reads draws. Their numbers may differ: each mean is over all
        draws of its own fit (the first `n_draws` of each), and the fits' errors add.
    records
        Labels of the records to evaluate; None evaluates all.
    joint
        ``"keep"`` keeps every record's joint posterior, ``"drop"`` none; ``"auto"`` keeps them up
        to 256 MB. `AttributeRisk.joint` works either way.
    diagnostics
        Whether to estimate the Monte-Carlo error of every number, which takes about as long again.
    on_unreliable
        What to do about records that cannot be relied on: ``"flag"`` them in the column
        ``reliable``, with a warning; ``"fit"`` models made by `fit` anew at each of their guesses,
        for up to 50 records, those most at risk first, which takes seconds a record; or
        ``"raise"``.
    executor
        None or ``"threads"`` uses a thread for each core, ``"serial"`` one; a number is a number
        of threads; or an object with a ``map`` method. Results are the same to the last bit.
    progress
        True shows a bar with the time left, if standard error is a terminal.
    """
    if not isinstance(synthesizer, Synthesizer):
        raise OptionError(
            "The first argument must be a Synthesizer (see Synthesizer.from_draws); got "
            f"{type(synthesizer).__name__}."
        )
    method = one_of("estimator", estimator, get_args(EstimatorName))
    if not isinstance(diagnostics, bool):
        raise OptionError(f"diagnostics must be True or False; got {got(diagnostics)}.")
    keeping = one_of("joint", joint, get_args(JointName))
    unreliable = one_of("on_unreliable", on_unreliable, get_args(UnreliableName))
    if unreliable != "flag" and (not diagnostics or method == "paper"):
        raise OptionError(
            f"on_unreliable={unreliable!r} needs to know what is reliable: use diagnostics=True, "
            "and an estimator other than 'paper'."
        )
    if unreliable == "fit" and all(model.fit is None for model in synthesizer.models):
        raise OptionError(
            "on_unreliable='fit' is for models made by synrisk.fit; draws that were made elsewhere "
            "cannot be fitted anew. Use 'flag'."
        )
    team_of = workers(executor)
    chosen = strategies(guesses, synthesizer.plan.synthesized)
    believed = resolve_prior(intruder_prior)
    positions = chosen_records(records, synthesizer.data.index)
    kinds = kinds_of(synthesizer, method, with_stacks=stacked is not None)
    draws = _first_draws(synthesizer, n_draws, paired=method == "paper")
    release = read_release(synthesizer.confidential, synthetic)
    refuse_twins(synthesizer.confidential, release)
    given_stacks = () if stacked is None else _stacks(synthesizer, stacked, len(release), n_draws)
    targets = [_target(synthesizer, name, positions) for name in synthesizer.plan.synthesized]
    laid = [(for_target(chosen[target.name], target), target) for target in targets]
    shape = tuple(strategy.width(target) for strategy, target in laid)
    n_used = [0 if kind == "exact" else d.n_draws for kind, d in zip(kinds, draws, strict=True)]
    check_size(synthesizer, shape, n_used, paired=method == "paper")
    grids = tuple(lay_out(strategy, target) for strategy, target in laid)
    if isinstance(believed, FromModel) and method == "paper":
        raise OptionError(
            f"{setting('intruder_prior', 'model')} needs one table a model; use "
            f"{setting('estimator', 'auto')} or 'importance'.",
            about=place_of("intruder_prior"),
        )
    believed = believed.check(grids, positions, synthesizer.n_records)
    with team_of.shared() as team:
        estimates = estimates_of(synthesizer, kinds, draws, release, grids, team, given_stacks)
        evaluation = Evaluation(
            synthesizer, estimates, method == "paper", grids, believed, positions
        )
        n_bytes = 8 * len(positions) * int(np.prod(evaluation.shape, dtype=np.float64))
        keep_joint = keeping == "keep" or (keeping == "auto" and n_bytes <= _MOST_KEPT)
        with bar(progress, "Evaluating records", len(positions)) as on_records:
            result = evaluation.run(
                team,
                keep_joint=keep_joint,
                with_errors=diagnostics and method != "paper",
                on_records=on_records,
            )
        n_fitted = 0
        if unreliable == "fit":
            chosen_rows = rows_to_fit(evaluation, result)[:MOST_FITTED]
            n_fitted = len(chosen_rows)
            with bar(progress, "Fitting at guesses", n_fitted) as on_records, team.open() as opened:
                evaluation = fit_at_guesses(
                    evaluation, result, chosen_rows, release, opened, on_records
                )
        if unreliable == "raise" and result.errors is not None and not result.errors.reliable.all():
            n_bad = int((~result.errors.reliable).sum())
            raise UnreliableError(
                f"{counted(n_bad, 'record')} of {len(positions):,} cannot be relied on. Use more "
                "draws, fit the models with synrisk.fit, or on_unreliable='flag' to see which."
            )
        checks = None
        if diagnostics:
            with team.open() as opened:
                checks = check_release(synthesizer, release, opened)
    found = findings(evaluation, result, checks) if diagnostics else []
    shaky = [one for one in found if not one.by_choice]
    if shaky:
        warnings.warn(
            f"{counted(len(shaky), 'finding')} about these numbers: "
            f"{' '.join(one.what for one in shaky)} See risk.diagnostics().",
            ReliabilityWarning,
            stacklevel=2,
        )
    names = synthesizer.plan.synthesized
    said = ["paper"] * len(names) if method == "paper" else kinds
    return AttributeRisk(
        dict(zip(names, said, strict=True)),
        len(release),
        dict(zip(names, n_used, strict=True)),
        (
            *_notes(synthesizer, release, grids),
            *((f"{counted(n_fitted, 'record')} fitted at each guess.",) if n_fitted else ()),
            *_note_on_stacks(draws, given_stacks, names),
            *(
                _note_on_chains(synthesizer, given_stacks)
                if diagnostics and method != "paper"
                else ()
            ),
            *(checks.failures if checks else ()),
        ),
        checks,
        evaluation,
        result,
        labels_of(synthesizer, positions),
        tuple(fingerprint(dataset) for dataset in release),
    )


def chosen_records(records: Any, labels: pd.Index[Any]) -> IntArray:
    """Return where the records that `records` names stand among `labels`; None names all."""
    if records is None:
        return np.arange(len(labels), dtype=np.int64)
    if isinstance(records, np.ndarray) and records.ndim == 0:
        records = records.item()
    several = isinstance(records, Iterable) and not isinstance(records, str | bytes)
    wanted = list(records) if several else [records]
    if not wanted:
        raise OptionError("records= is empty; leave it out to evaluate all records.")
    positions = positions_of(wanted, labels)
    n_repeated = len(positions) - len(np.unique(positions))
    if n_repeated:
        raise OptionError(f"records= repeats {counted(n_repeated, 'label')}.")
    return positions


def _first_draws(
    synthesizer: Synthesizer, n_draws: int | None, *, paired: bool
) -> tuple[Posterior, ...]:
    available = {m.regression.response: m.posterior.n_draws for m in synthesizer.models}
    if n_draws is not None:
        if isinstance(n_draws, bool) or not isinstance(n_draws, int | np.integer) or n_draws < 1:
            raise OptionError("n_draws must be a whole number from 1, or None for all draws.")
        fewer = [f"{name} ({n:,})" for name, n in available.items() if n < n_draws]
        if fewer:
            raise DrawsError(
                f"n_draws is {n_draws:,}, but there are fewer draws for {listed(fewer)}.",
                about=place_of("n_draws"),
            )
    elif paired and len(set(available.values())) > 1:
        found = listed(f"{name} {n:,}" for name, n in available.items())
        raise DrawsError(
            f"{setting('estimator', 'paper')} takes draw h of all models together, but they differ "
            f"in number: {found}. Give n_draws, or use {setting('estimator', 'importance')}.",
            about=place_of("estimator"),
        )
    chosen = [
        m.posterior if n_draws is None else m.posterior.first(int(n_draws))
        for m in synthesizer.models
    ]
    log_weights = [draws.log_weights for draws in chosen]
    if paired:  # a draw of all models has the product of their weights
        log_weights = [np.sum(log_weights, axis=0)]
    if not all(np.isfinite(of_model).any() for of_model in log_weights):
        raise DrawsError(
            f"The draws that are used all have weight zero; use more ({setting('n_draws')}).",
            about=place_of("n_draws"),
        )
    return tuple(chosen)


def _stacks(
    synthesizer: Synthesizer, stacked: Any, n_datasets: int, n_draws: int | None
) -> tuple[tuple[Posterior, ...], ...]:
    """Return the draws given the stacks, by dataset and model; the first `n_draws` of each."""
    read = synthesizer.read_stacked(stacked, n_datasets)
    if n_draws is None:
        return read
    for number, of_dataset in enumerate(read, 1):
        for name, draws in zip(synthesizer.plan.synthesized, of_dataset, strict=True):
            if draws.n_draws < n_draws:
                raise DrawsError(
                    f"n_draws={n_draws:,}, but there are {draws.n_draws:,} draws for {name!r} "
                    f"given the stack of dataset {number}."
                )
    first = tuple(tuple(draws.first(int(n_draws)) for draws in of_dataset) for of_dataset in read)
    if not all(
        np.isfinite(draws.log_weights).any() for of_dataset in first for draws in of_dataset
    ):
        raise DrawsError(
            f"The draws that are used all have weight zero; use more ({setting('n_draws')}).",
            about=place_of("n_draws"),
        )
    return first


def _target(synthesizer: Synthesizer, name: str, positions: IntArray) -> Target:
    plan = synthesizer.plan
    values = synthesizer.columns[name].astype(np.float64)
    return Target(
        synthesizer.schema.variables[name],
        plan.regressions[plan.synthesized.index(name)],
        values[positions],
        values,
        positions,
    )


def _note_on_stacks(
    draws: Sequence[Posterior], given_stacks: Sequence[Sequence[Posterior]], names: Sequence[str]
) -> tuple[str, ...]:
    """Say where fits made elsewhere differ in their numbers of draws."""
    notes = []
    for k, name in enumerate(names):
        numbers = [of_dataset[k].n_draws for of_dataset in given_stacks]
        if set(numbers) - {draws[k].n_draws}:
            found = listed(f"{n:,}" for n in numbers)
            notes.append(
                f"{name} has {draws[k].n_draws:,} draws given the confidential data, and {found} "
                "given the stacks: each mean is over all draws of its own fit."
            )
    return tuple(notes)


def _note_on_chains(
    synthesizer: Synthesizer, given_stacks: Sequence[Sequence[Posterior]]
) -> tuple[str, ...]:
    foreign = [
        model.regression.response
        for k, model in enumerate(synthesizer.models)
        if model.fit is None
        and any(d.chain is None for d in (model.posterior, *(of[k] for of in given_stacks)))
    ]
    if not foreign:
        return ()
    note = "are not known: errors are estimated by batches of adjacent draws, as of one chain."
    return (f"The chains of the draws for {listed(foreign)} {note}",)


def _notes(
    synthesizer: Synthesizer, release: Sequence[Released], grids: Sequence[Grid]
) -> tuple[str, ...]:
    notes = list(synthesizer.notes)
    if synthesizer.n_dropped:
        notes.append(
            f"{counted(synthesizer.n_dropped, 'confidential record')} with missing values left out."
        )
    for number, dataset in enumerate(release, 1):
        n_dropped = len(dataset.frame) - int(dataset.kept.sum())
        if n_dropped:
            notes.append(
                f"{counted(n_dropped, 'row')} of synthetic dataset {number} with missing "
                "values left out."
            )
    notes += [
        f"Synthetic datasets {one + 1} and {other + 1} are the same: they count as two independent "
        "ones."
        for other in range(len(release))
        for one in range(other)
        if _same(release[one].columns, release[other].columns)
    ]
    notes += [note for grid in grids for note in grid.notes]
    around = [
        name
        for name, grid in zip(synthesizer.plan.synthesized, grids, strict=True)
        if grid.around_truth
    ]
    if around:
        notes.append(
            f"The guesses for {listed(around)} are laid out around the truth, a set that no "
            "intruder owns: read the probability as a comparison within that set, not as an "
            "intruder's belief."
        )
    return tuple(notes)


def _same(one: Columns, other: Columns) -> bool:
    return all(np.array_equal(values, other[name]) for name, values in one.items())
