"""Attribute disclosure risk: the function that users call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from synrisk.assessment.asked import Asked, Read
from synrisk.assessment.attribute_result import AttributeRisk
from synrisk.assessment.evaluate_parts import evaluate_parts, refuse_for_parts
from synrisk.assessment.notes import (
    note_on_chains,
    note_on_fitted,
    note_on_joint,
    note_on_left,
    note_on_stacks,
    notes_of,
)
from synrisk.assessment.selection import (
    chosen_records,
    chosen_variables,
    refuse_some_variables,
)
from synrisk.base.arrays import FloatArray
from synrisk.base.errors import (
    DrawsError,
    OptionError,
    UnreliableError,
    counted,
    got,
    listed,
    one_of,
    within_memory,
)
from synrisk.base.messages import place_of, setting
from synrisk.base.progress import under_way, with_progress
from synrisk.base.workers import Workers, workers
from synrisk.core.summary import RiskArrays
from synrisk.data.frames import TableLike
from synrisk.models.posterior import Posterior
from synrisk.risk import tables
from synrisk.risk.diagnostics import ReliabilityWarning, findings
from synrisk.risk.doubts import doubts_about
from synrisk.risk.estimators.choose import PAPER, estimators_of, prepare_all
from synrisk.risk.estimators.estimate import Finding
from synrisk.risk.estimators.paper import Paired
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.grid_size import WIDE
from synrisk.risk.guesses import Grid, GuessSpan
from synrisk.risk.intruder_prior import Prior, Table
from synrisk.risk.question import Question, QuestionName, lay_out_all, widths
from synrisk.risk.release_checks import check_release
from synrisk.synthesis.leaks import refuse_leaks
from synrisk.synthesis.release import fingerprint, read_release
from synrisk.synthesis.synthesizer import Synthesizer

EstimatorName: TypeAlias = Literal["auto", "exact", "stacked", "importance", "paper"]
UnreliableName: TypeAlias = Literal["auto", "flag", "fit", "raise"]
JointName: TypeAlias = Literal["auto", "keep", "drop"]

_MOST_FITTED = 50  # records, at each of their guesses: seconds a record
_MOST_SECONDS_FITTED = 20.0  # of all these fits together, where nobody asked for them
_MOST_KEPT = 1 << 28  # bytes of joint posteriors that "auto" keeps


@with_progress
@within_memory
def attribute_risk(
    synthesizer: Synthesizer,
    synthetic: TableLike | Sequence[TableLike],
    *,
    question: QuestionName = "release",
    guesses: Any = None,
    intruder_prior: Any = None,
    tolerance: Any = None,
    n_draws: int | None = None,
    estimator: EstimatorName = "auto",
    stacked: Sequence[Any] | None = None,
    records: Iterable[Hashable] | Hashable | None = None,
    variables: Iterable[str] | str | None = None,
    joint: JointName = "auto",
    diagnostics: bool = True,
    on_unreliable: UnreliableName = "auto",
    executor: Any = None,
    progress: bool | None = None,  # noqa: ARG001 - of what shows it
    out: str | os.PathLike[str] | None = None,
) -> AttributeRisk:
    """Evaluate what a worst-case intruder could learn about each record from a release.

    Parameters
    ----------
    synthesizer
        The models and the confidential data.
    synthetic
        The release: a synthetic dataset, or a list of them (frames, CSV or Parquet files). Any
        number and order of rows; only the columns that the plan uses are required.
    question
        ``"release"``, the question to sign a release by: guesses are ``"range"``, the prior
        ``"mostly-model"``, and a value counts as learnt within a tenth of the truth. ``"paper"``,
        the paper's: 11 guesses within ±10 % of the truth or every level, all equally likely, and
        the truth alone counts. What is given below takes the place of these.
    guesses
        ``"range"`` or a `Range`: every value in a range; a number of guesses (that many within
        ±10 % of the truth for a continuous variable, every level or observed value for a discrete
        one); a strategy (`Relative`, `Additive`, `Interval`, `Values`, `AllLevels`); or a dict by
        variable or a list of these.
    intruder_prior
        ``"mostly-model"`` or ``MostlyModel(share)``: 0.9 of what an intruder who knows everybody
        else and the models believes before the release, and 0.1 uniform over the range;
        ``"model"``, that alone; ``"uniform"``; ``TruthFactor(k)``; or log probabilities over the
        joint grid: an array ``(guess₁, …)`` for all records, or ``(record, guess₁, …)``.
    tolerance
        How near to the truth a value counts as learnt: a share of it (0.1), a `Tolerance`, or a
        dict of these by variable. By default a tenth for guesses in a range, in the variable's own
        units, or a quarter of a standard deviation where a tenth of the truth says nothing (a year
        of birth, a logarithm), and equality for levels, for counts below 10, and among listed
        guesses.
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
    variables
        Synthesized variables to evaluate; None evaluates all. The others are summed out: nobody is
        taken to know them, and the numbers of a variable are the same whatever else is asked for.
        ``before``, ``after`` and ``gain`` are of those that are asked for, together. A verdict
        is open where there are limits on others.
    joint
        ``"keep"`` evaluates the joint grid of all guesses and keeps every record's posterior over
        it, ``"drop"`` evaluates it and keeps none. ``"auto"`` evaluates it where it is small (up to
        2,000,000 cells a record, or 100,000 of five variables or more) and keeps it up to
        256 MB; where it is larger every variable, and all together, are summed up over the
        variables that hang together in the formulas, with the same numbers: all but the
        rank of the truth and ``log_odds_range_99``, which are given by variable.
    diagnostics
        Whether to estimate the Monte-Carlo error of every number, which takes about as long again.
    on_unreliable
        What to do about records that cannot be relied on: ``"flag"`` them in the column
        ``reliable``, with a warning; ``"fit"`` models made by `fit` anew at each of their guesses,
        for up to 50 records, those most at risk first, which takes seconds a record and needs 20
        draws; or ``"raise"``. ``"auto"`` fits where they are 50 at most and all fits together take
        about 20 seconds at most, and else flags, and a note says how long ``"fit"`` would take;
        for ``question="paper"`` it flags.
    executor
        None or ``"threads"`` uses a thread for each core, ``"serial"`` one; a number is a number
        of threads. ``"processes"`` uses a process for each core, `Processes` (n) so many; a
        ``distributed.Client`` or the address of a scheduler (``"tcp://127.0.0.1:8786"``) a cluster
        of Dask. Or an object with a ``map`` method. Results are the same to the last bit.
    progress
        True shows a bar with the time left for every pass, over all workers, if standard error is
        a terminal.
    out
        A folder for more records than memory holds the guesses of: they are evaluated a part at a
        time, and each part is written to a Parquet file, with the same numbers. Where a run ended
        early, another with the same arguments goes on: parts that are whole and fit are kept. The
        result is a `PartedRisk`. Records that cannot be relied on are flagged, not fitted anew.
    """
    asked = _check(
        synthesizer,
        question=(question, guesses, intruder_prior, tolerance),
        n_draws=n_draws,
        estimator=estimator,
        with_stacks=stacked is not None,
        records=records,
        variables=variables,
        joint=joint,
        diagnostics=diagnostics,
        on_unreliable=on_unreliable,
    )
    if out is not None:
        refuse_for_parts(asked, records)
    elif synthesizer.confidential.is_stored:
        raise OptionError(
            "The confidential data were read in parts, and so is the risk of all of them "
            "evaluated: name a folder, out='…'."
        )
    team_of = workers(executor)
    read = _read(asked, synthetic, stacked, n_draws)
    if out is not None:
        with team_of.shared() as team:
            parted = evaluate_parts(asked, read, out, team)
        if asked.diagnostics:
            _warn(parted.shaky)
        return parted
    laid = _lay_out(asked, len(read.release))
    with team_of.shared() as team:
        evaluation, result, on_fitted = _evaluate(asked, read, laid, team)
        checks = None
        if asked.diagnostics:
            with team.open() as opened:
                checks = check_release(synthesizer, read.release, opened, read.near)
    doubts = doubts_about(
        synthesizer,
        read.release,
        laid.extents,
        asked.positions,
        dict(zip(evaluation.axes, result.prior_marginals.T, strict=True)),
    )
    if asked.diagnostics:
        _warn(findings(evaluation, result, checks, doubts))
    names = synthesizer.plan.synthesized
    return AttributeRisk(
        dict(zip(names, asked.estimator_names, strict=True)),
        len(read.release),
        dict(zip(names, asked.n_draws_used, strict=True)),
        (
            *notes_of(synthesizer, read.release, laid.extents),
            *note_on_joint(evaluation),
            *on_fitted,
            *note_on_stacks(asked.draws, read.given_stacks, names),
            *(note_on_chains(synthesizer, read.given_stacks) if asked.with_errors else ()),
        ),
        checks,
        evaluation,
        result,
        tables.labels_of(synthesizer, asked.positions, asked.axes),
        tuple(fingerprint(dataset) for dataset in read.release),
        doubts,
    )


def _check(
    synthesizer: Any,
    *,
    question: tuple[Any, Any, Any, Any],
    n_draws: Any,
    estimator: Any,
    with_stacks: bool,
    records: Any,
    variables: Any,
    joint: Any,
    diagnostics: Any,
    on_unreliable: Any,
) -> Asked:
    """Return what was asked for, or raise; the release has not been looked at."""
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
    if unreliable in ("fit", "raise") and (not diagnostics or method == PAPER):
        raise OptionError(
            f"on_unreliable={unreliable!r} needs to know what is reliable: use diagnostics=True, "
            "and an estimator other than 'paper'."
        )
    if unreliable == "fit" and all(model.fit is None for model in synthesizer.models):
        raise OptionError(
            "on_unreliable='fit' is for models made by synrisk.fit; draws that were made elsewhere "
            "cannot be fitted anew. Use 'flag'."
        )
    name, *given = question
    asked = Question.of(name, synthesizer, *given)
    if unreliable == "auto" and name == "paper":
        unreliable = "flag"
    if asked.prior.needs_models and method == PAPER:
        raise OptionError(
            "A prior that is made of the models needs one table a model; use "
            f"{setting('estimator', 'auto')} or 'importance', or the paper's own question: "
            f"{setting('question', 'paper')}.",
            about=place_of("intruder_prior"),
        )
    axes = chosen_variables(variables, synthesizer.plan.synthesized)
    if axes is not None:
        refuse_some_variables(method, asked.prior, keeping)
    # Guesses are as many as there is room for: of the joint grid, or of what hangs together in it.
    needs_joint = method == PAPER or isinstance(asked.prior, Table) or keeping != "auto"
    wide = len(synthesizer.plan.synthesized) >= WIDE and (not needs_joint or axes is not None)
    return Asked(
        synthesizer,
        method,
        estimators_of(synthesizer, method, with_stacks=with_stacks),
        replace(asked, is_wide=wide),
        chosen_records(records, synthesizer.data.index),
        axes,
        _first_draws(synthesizer, n_draws, paired=method == PAPER),
        keeping,
        diagnostics,
        unreliable,
    )


def _read(asked: Asked, synthetic: Any, stacked: Any, n_draws: int | None) -> Read:
    """Read the release, and refuse it where it gives values away."""
    synthesizer = asked.synthesizer
    release = read_release(synthesizer.confidential, synthetic)
    sampled = [dataset.sample for dataset in release]
    near = refuse_leaks(synthesizer.confidential.sample, sampled, synthesizer.memory)
    given_stacks = () if stacked is None else _stacks(synthesizer, stacked, len(release), n_draws)
    return Read(release, given_stacks, near)


@dataclass(frozen=True, repr=False)
class _LaidOut:
    """The guesses, how far they go, and the prior over them."""

    grids: tuple[Grid, ...]
    extents: tuple[GuessSpan, ...]
    prior: Prior
    is_joint: bool


def _lay_out(asked: Asked, n_datasets: int) -> _LaidOut:
    synthesizer, positions = asked.synthesizer, asked.positions
    laid = asked.question.targets(synthesizer, positions, n_datasets)
    is_joint = asked.checked_size(widths(synthesizer, laid), len(positions))
    grids = lay_out_all(synthesizer, positions, laid)
    prior = asked.question.prior.check(grids, positions, synthesizer.n_records)
    extents = tuple(map(GuessSpan.of, grids, synthesizer.plan.regressions))
    return _LaidOut(grids, extents, prior, is_joint)


def _evaluate(
    asked: Asked, read: Read, laid: _LaidOut, team: Workers
) -> tuple[Evaluation, RiskArrays, tuple[str, ...]]:
    """Evaluate the records, those that are unreliable anew if asked for; say how many."""
    estimates = prepare_all(
        asked.synthesizer,
        asked.estimators,
        asked.draws,
        read.release,
        laid.extents,
        team,
        read.given_stacks,
    )
    evaluation = Evaluation(
        asked.synthesizer,
        estimates,
        Paired.of(estimates) if asked.is_paired else None,
        laid.grids,
        laid.prior,
        asked.positions,
        question=asked.question,
        asked=asked.axes,
        is_joint=laid.is_joint,
    )
    n_records = len(asked.positions)
    n_bytes = 8 * n_records * int(np.prod(evaluation.shape, dtype=np.float64))
    with under_way("Evaluating records", n_records) as on_records:
        result = evaluation.run(
            team,
            keep_joint=asked.keeping == "keep"
            or (asked.keeping == "auto" and n_bytes <= _MOST_KEPT),
            with_errors=asked.with_errors,
            on_records=on_records,
        )
    n_fitted = 0
    left: tuple[str, ...] = ()
    rows = evaluation.rows_to_fit(result) if asked.unreliable in ("auto", "fit") else []
    at_most = rows[:_MOST_FITTED]
    seconds = evaluation.seconds_to_fit(at_most, read.release) if asked.unreliable == "auto" else 0
    if rows and asked.unreliable == "auto" and not _are_few(rows, seconds):
        left = note_on_left(len(rows), len(at_most), seconds)
    elif rows:
        rows = at_most
        n_fitted = len(rows)
        with under_way("Fitting at guesses", n_fitted) as on_records, team.open() as opened:
            evaluation = evaluation.fit_at_guesses(result, rows, read.release, opened, on_records)
    if asked.unreliable == "raise" and result.errors is not None:
        n_bad = int((~result.errors.reliable).sum())
        if n_bad:
            raise UnreliableError(
                f"{counted(n_bad, 'record')} of {n_records:,} cannot be relied on. Use more "
                "draws, fit the models with synrisk.fit, or on_unreliable='flag' to see which."
            )
    return evaluation, result, (*note_on_fitted(n_fitted), *left)


def _are_few(rows: Sequence[int], seconds: float) -> bool:
    """Tell whether records may be fitted at their guesses though nobody asked for it."""
    return len(rows) <= _MOST_FITTED and seconds <= _MOST_SECONDS_FITTED


def _warn(found: Sequence[Finding]) -> None:
    """Warn once of what is shaky, unless whoever called asked for it."""
    shaky = [finding for finding in found if not finding.by_choice]
    if shaky:
        warnings.warn(
            f"{counted(len(shaky), 'finding')} about these numbers: "
            f"{' '.join(str(finding.what) for finding in shaky)} See risk.diagnostics().",
            ReliabilityWarning,
            stacklevel=3,
        )


def _first_draws(
    synthesizer: Synthesizer, n_draws: int | None, *, paired: bool
) -> tuple[Posterior, ...]:
    """Return each model's draws, the first `n_draws` of them if it is given."""
    _check_n_draws(synthesizer, n_draws, paired=paired)
    draws = [
        model.posterior if n_draws is None else model.posterior.first(int(n_draws))
        for model in synthesizer.models
    ]
    log_weights = [of_model.log_weights for of_model in draws]
    if paired:  # a draw of all models has the product of their weights
        log_weights = [np.sum(log_weights, axis=0)]
    _refuse_weightless(log_weights)
    return tuple(draws)


def _check_n_draws(synthesizer: Synthesizer, n_draws: Any, *, paired: bool) -> None:
    available = {model.response: model.posterior.n_draws for model in synthesizer.models}
    if n_draws is None:
        if paired and len(set(available.values())) > 1:
            found = listed(f"{name} {n:,}" for name, n in available.items())
            raise DrawsError(
                f"{setting('estimator', 'paper')} takes draw h of all models together, but they "
                f"differ in number: {found}. Give n_draws, or use "
                f"{setting('estimator', 'importance')}.",
                about=place_of("estimator"),
            )
        return
    if isinstance(n_draws, bool) or not isinstance(n_draws, int | np.integer) or n_draws < 1:
        raise OptionError("n_draws must be a whole number from 1, or None for all draws.")
    fewer = [f"{name} ({n:,})" for name, n in available.items() if n < n_draws]
    if fewer:
        raise DrawsError(
            f"n_draws is {n_draws:,}, but there are fewer draws for {listed(fewer)}.",
            about=place_of("n_draws"),
        )


def _refuse_weightless(log_weights: Iterable[FloatArray]) -> None:
    if not all(np.isfinite(of_model).any() for of_model in log_weights):
        raise DrawsError(
            f"The draws that are used all have weight zero; use more ({setting('n_draws')}).",
            about=place_of("n_draws"),
        )


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
    _refuse_weightless(draws.log_weights for of_dataset in first for draws in of_dataset)
    return first
