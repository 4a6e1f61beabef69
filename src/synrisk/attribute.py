"""Attribute disclosure risk: the function that users call and the result that they hold."""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from synrisk import tables
from synrisk.advice import place_of, setting
from synrisk.checks import ReleaseChecks, check_release
from synrisk.criteria import Criteria, Verdict, judge
from synrisk.errors import (
    DrawsError,
    OptionError,
    UnreliableError,
    counted,
    got,
    listed,
    nearest,
)
from synrisk.estimation import estimates_of, kinds_of
from synrisk.estimators import KINDS, AtGuesses, ModelEstimate
from synrisk.executors import workers
from synrisk.findings import ReliabilityWarning, findings, table_of
from synrisk.guesses import Grid, Target, for_target, lay_out, strategies
from synrisk.guesses.even import is_real
from synrisk.intruder import FromModel, Table, prior_from_json, prior_to_json
from synrisk.intruder import prior as resolve_prior
from synrisk.io import TableLike
from synrisk.plots import Plots
from synrisk.plots.numbers import Drawn
from synrisk.posterior import Posterior
from synrisk.progress import bar
from synrisk.refitting import MOST_FITTED, fit_at_guesses, rows_to_fit
from synrisk.release import Released, read_release
from synrisk.report import Source, write_report
from synrisk.result import ErrorArrays, RiskArrays
from synrisk.risk import Evaluation, check_size
from synrisk.schema import FloatArray, IntArray
from synrisk.storage import Contents, load, save
from synrisk.synthesizer import Synthesizer
from synrisk.twins import refuse_twins
from synrisk.utility import Utility

EstimatorName: TypeAlias = Literal["auto", "exact", "stacked", "importance", "paper"]
UnreliableName: TypeAlias = Literal["flag", "fit", "raise"]
JointName: TypeAlias = Literal["auto", "keep", "drop"]
ReportKind: TypeAlias = Literal["sharing", "inside"]

_ESTIMATORS = ("auto", "exact", "stacked", "importance", "paper")
_JOINTS = ("auto", "keep", "drop")
_ERRORS = tuple(ErrorArrays.__dataclass_fields__)
_MOST_KEPT = 1 << 28  # bytes of joint posteriors that "auto" keeps


@dataclass(frozen=True, eq=False, repr=False)
class AttributeRisk:
    """What a worst-case intruder could learn about each record from a release.

    Made by `attribute_risk`. The intruder knows every other record, the unsynthesized values of
    this one, and the synthesis models. Probabilities are over the guesses that were laid out.

    Attributes
    ----------
    estimator
        How the likelihood was estimated, by variable: "exact", "stacked", "importance", "paper".
    n_datasets
        The number of synthetic datasets.
    n_draws
        The number of posterior draws used, by variable; 0 for an exact one.
    notes
        What a reader of the numbers should know about how they were made.
    release_check
        Whether the release looks as if it came from these models, and whether rows were copied;
        None where diagnostics were not asked for.
    """

    estimator: dict[str, str]
    n_datasets: int
    n_draws: dict[str, int]
    notes: tuple[str, ...]
    release_check: ReleaseChecks | None
    _evaluation: Evaluation
    _result: RiskArrays
    _labels: tables.Labels

    def __repr__(self) -> str:
        sizes = " × ".join(str(n) for n in self._evaluation.shape)
        return (
            f"<AttributeRisk: {listed(self._labels.names)}; "
            f"{counted(len(self._labels.records), 'record')}; {sizes} guesses; "
            f"{counted(self.n_datasets, 'dataset')}; "
            f"estimated by {listed(dict.fromkeys(self.estimator.values()))}>"
        )

    @cached_property
    def _records(self) -> pd.DataFrame:
        return tables.record_table(self._result, self._grids, self._labels)

    @property
    def _grids(self) -> tuple[Grid, ...]:
        return self._evaluation.grids

    @property
    def records(self) -> pd.DataFrame:
        """A row a record: in the confidential data's order, or in that of ``records=``.

        ``probability`` of the true values given the release, ``prior``, ``lift`` (the one over the
        other), ``rank`` of the truth (1 is the most probable; ties share the average) with
        ``rank_low`` and ``rank_high``, which Monte-Carlo error leaves open, ``n_guesses``,
        ``log_odds_range`` (the most that the release moved the log odds between two guesses) with
        a bound on its standard error, ``mcse`` (the standard error of ``probability``), ``ess`` and
        ``khat`` (the effective number of draws at the record's worst guess, and the tail of their
        weights there), ``reliable``; and for each synthesized variable V ``probability_V``,
        ``mcse_V``, ``best_guess_V`` (by V's marginal) and ``abs_diff_V``, its distance from the
        truth (0 or 1 for unordered levels).
        """
        return self._records.copy()

    def summary(self, by: str | None = None) -> pd.DataFrame:
        """Return a row for the joint and for each variable, or these for each group of `by`.

        ``share_best`` is the share of records whose truth is the one most probable guess.
        ``release_check`` says whether the release looks as if it came from the model ("passed",
        "failed", "not known"), for the joint also whether rows were copied: see `release_check`.

        Parameters
        ----------
        by
            A column of the confidential data.
        """
        groups = None if by is None else self._groups(by)
        table = tables.summary_table(self._result, self._grids, self._labels, groups)
        checks = self.release_check
        status = {
            name: "not known"
            if checks is None
            else checks.status(None if name == "joint" else name)
            for name in ("joint", *self._labels.names)
        }
        table["release_check"] = [status[of] for of in table.index.get_level_values("of")]
        return table

    def diagnostics(self) -> pd.DataFrame:
        """Return what is shaky, why, and what to do: a row a finding, none if all is well."""
        return table_of(findings(self._evaluation, self._result, self.release_check))

    @property
    def synthesizer(self) -> Synthesizer:
        """The models and the confidential data that the risk was evaluated with."""
        return self._evaluation.synthesizer

    @property
    def plot(self) -> Plots:
        """Plots: ``risk.plot.probability()``, ``.marginals()``, ``.ranks()`` and others."""
        drawn = Drawn(self._evaluation, self._result, self._labels)
        return Plots(drawn, self._row, self._log_joint)

    def verdict(self, criteria: Criteria) -> Verdict:
        """Return whether the release keeps the criteria: passed, failed, or cannot be judged.

        Records that were not evaluated (``records=``) count as undecided.

        Parameters
        ----------
        criteria
            The limits: `Criteria`, `Criteria.from_toml` or `Criteria.named`.
        """
        return judge(
            criteria,
            self._records,
            self._result.prior_marginals,
            self._labels.names,
            self.release_check,
            self._evaluation.synthesizer.n_records,
        )

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        kind: ReportKind = "sharing",
        criteria: Criteria | None = None,
        synthetic: TableLike | Sequence[TableLike] | None = None,
        title: str | None = None,
        utility: Utility | None = None,
    ) -> Path:
        """Write a report as one HTML file, and its facts as JSON beside it; return its path.

        Parameters
        ----------
        path
            A name that ends in ``.html``.
        kind
            ``"sharing"``: nothing about single records, no smallest or largest value, no count
            below 10. ``"inside"``: everything, with the riskiest records by label, in files that
            their owner alone can read.
        criteria
            The limits that the report opens with a verdict on; None opens it with plain numbers.
        synthetic
            The release that was evaluated, for pictures of its distributions and its hash.
        title
            The page's title.
        utility
            What `synrisk.utility` measured of the same release, for a section on it.
        """
        if utility is not None:
            self._check_utility(utility)
        source = Source(
            Drawn(self._evaluation, self._result, self._labels),
            self._records,
            self.diagnostics(),
            self.release_check,
            self.notes,
            self.estimator,
            self.n_draws,
            self.n_datasets,
            None if criteria is None else self.verdict(criteria),
            utility,
        )
        return write_report(path, source, kind=kind, synthetic=synthetic, title=title)

    def _check_utility(self, utility: Any) -> None:
        if not isinstance(utility, Utility):
            raise OptionError(f"utility must be what synrisk.utility returns; got {got(utility)}.")
        of = (utility.n_records, len(utility.n_rows))
        if of != (self.synthesizer.n_records, self.n_datasets):
            raise OptionError(
                f"utility= is of {counted(of[0], 'record')} and {counted(of[1], 'dataset')}, the "
                f"risk of {self.synthesizer.n_records:,} and {self.n_datasets:,}; measure it on "
                "the release that was evaluated."
            )

    def joint(self, record: Hashable) -> xr.DataArray:
        """Return one record's posterior over all its guesses, a dimension a variable.

        Parameters
        ----------
        record
            The record's label.
        """
        row = self._row(record)
        return tables.joint_array(self._log_joint(row), row, self._grids, self._labels)

    def ranking(self, record: Hashable) -> pd.DataFrame:
        """Return every guess of one record with its probability, prior and rank, best first."""
        row = self._row(record)
        return tables.ranking_table(
            self._log_joint(row),
            self._evaluation.log_prior(row),
            row,
            self._grids,
            self._labels,
        )

    def marginal(self, variable: str) -> xr.DataArray:
        """Return the probabilities of one variable's guesses, ``(record, guess)``.

        The coordinate ``value`` holds the guesses, ``truth`` the index of the true one.
        """
        axis = self._labels.axis(variable)
        return tables.marginal_array(self._result, axis, self._grids, self._labels)

    def probability_within(
        self, variable: str, radius: float, *, percent: bool = False
    ) -> pd.Series[Any]:
        """Return for each record the probability that a variable lies within `radius` of the truth.

        Parameters
        ----------
        variable
            A synthesized variable with an order.
        radius
            How near, in the variable's units; 0 is the truth alone.
        percent
            Whether `radius` is a percentage of the truth.
        """
        axis = self._labels.axis(variable)
        family = self._labels.families[axis]
        if not family.is_ordered:
            raise OptionError(f"{variable!r} has no order, so nothing is near to a level.")
        if not is_real(radius) or radius < 0 or not isinstance(percent, bool):
            raise OptionError("radius must be a number from 0; percent True or False.")
        grid = self._grids[axis]
        truth = grid.values[np.arange(len(grid.values)), grid.truth][:, None]
        within = np.abs(truth) * radius / 100.0 if percent else np.full(truth.shape, float(radius))
        near = np.abs(grid.values - truth) <= within * (1.0 + 1e-12)
        total = np.where(near & grid.present, self._result.marginals[axis], 0.0).sum(axis=1)
        return pd.Series(total, index=self._labels.records, name=f"probability_within_{variable}")

    def to_dataset(self) -> xr.Dataset:
        """Return everything as an xarray Dataset over ``record`` and ``guess_V``."""
        attributes = {
            "estimator": str(self.estimator),
            "n_datasets": self.n_datasets,
            "n_draws": str(self.n_draws),
            "notes": "\n".join(self.notes),
        }
        return tables.dataset(self._result, self._grids, self._labels, attributes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save everything to a NetCDF file that its owner alone can read.

        The file holds the confidential data and the draws, so that `joint` works after loading.
        """
        evaluation, result = self._evaluation, self._result
        meta, arrays = evaluation.synthesizer.to_contents()
        fitted: list[list[Any]] = []
        meta["risk"] = {
            "estimator": self.estimator,
            "kinds": [estimate.name for estimate in evaluation.estimates],
            "paired": evaluation.paired,
            "n_datasets": self.n_datasets,
            "n_draws": self.n_draws,
            "notes": list(self.notes),
            "checks": None if self.release_check is None else self.release_check.to_json(),
            "prior": prior_to_json(evaluation.prior),
            "with_errors": result.errors is not None,
            "around_truth": [grid.around_truth for grid in self._grids],
            "n_replaced": [grid.n_replaced for grid in self._grids],
            "grid_notes": [list(grid.notes) for grid in self._grids],
            "fitted": fitted,
        }
        arrays |= {
            "positions": evaluation.positions,
            "probability": result.probability,
            "prior": result.prior,
            "rank": result.rank,
            "n_guesses": result.n_guesses,
            "best": result.best,
            "log_odds_range": result.log_odds_range,
            "prior_marginals": result.prior_marginals,
        }
        for k, grid in enumerate(self._grids):
            for name, values in evaluation.estimates[k].to_arrays().items():
                arrays[f"estimate_{k}_{name}"] = values
            arrays[f"guesses_{k}"] = np.asarray(grid.values)
            arrays[f"truth_{k}"] = grid.truth
            arrays[f"present_{k}"] = np.asarray(grid.present)
            arrays[f"marginal_{k}"] = result.marginals[k]
        for row, estimates in evaluation.fitted.items():
            for k, estimate in enumerate(estimates):
                kind = estimate.name if estimate is not evaluation.estimates[k] else None
                if kind is not None:
                    fitted.append([row, k, kind])
                    for name, values in estimate.to_arrays().items():
                        arrays[f"fitted_{row}_{k}_{name}"] = values
        if result.errors is not None:
            arrays |= {f"error_{name}": values for name, values in vars(result.errors).items()}
        if result.joint is not None:
            arrays["joint"] = result.joint
        if isinstance(evaluation.prior, Table):
            arrays["table"] = np.asarray(evaluation.prior.log_probabilities)
        save(path, Contents("an attribute risk", meta, arrays, evaluation.synthesizer.data))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AttributeRisk:
        """Load what `save` wrote."""
        contents = load(path, "an attribute risk")
        meta, arrays = contents.meta["risk"], contents.arrays
        synthesizer = Synthesizer.from_contents(contents.meta, arrays, contents.table)
        variables = range(len(synthesizer.models))
        grids = tuple(
            Grid(
                arrays[f"guesses_{k}"],
                arrays[f"truth_{k}"],
                arrays[f"present_{k}"],
                meta["around_truth"][k],
                # Not in files of before they were kept.
                tuple(meta["grid_notes"][k]) if "grid_notes" in meta else (),
                meta["n_replaced"][k] if "n_replaced" in meta else 0,
            )
            for k in variables
        )
        estimates = tuple(
            KINDS[meta["kinds"][k]].from_arrays(
                model.regression.distribution, arrays, f"estimate_{k}_"
            )
            for k, model in enumerate(synthesizer.models)
        )
        evaluation = Evaluation(
            synthesizer,
            estimates,
            meta["paired"],
            grids,
            prior_from_json(meta["prior"], arrays.get("table")),
            arrays["positions"],
            _fitted_from_arrays(synthesizer, estimates, meta["fitted"], arrays),
        )
        result = RiskArrays(
            arrays["probability"],
            arrays["prior"],
            arrays["rank"],
            arrays["n_guesses"],
            tuple(arrays[f"marginal_{k}"] for k in variables),
            arrays["prior_marginals"],
            arrays["best"],
            arrays["log_odds_range"],
            ErrorArrays(**{name: arrays[f"error_{name}"] for name in _ERRORS})
            if meta["with_errors"]
            else None,
            arrays.get("joint"),
        )
        return cls(
            dict(meta["estimator"]),
            meta["n_datasets"],
            dict(meta["n_draws"]),
            tuple(meta["notes"]),
            None if meta["checks"] is None else ReleaseChecks.from_json(meta["checks"]),
            evaluation,
            result,
            _labels(synthesizer, arrays["positions"]),
        )

    def _log_joint(self, row: int) -> Any:
        if self._result.joint is not None:
            return self._result.joint[row]
        return self._evaluation.log_joint(row)

    def _row(self, record: Hashable) -> int:
        rows = _positions_of([record], self._labels.records)
        return int(rows[0])

    def _groups(self, by: str) -> pd.Series[Any]:
        data = self._evaluation.synthesizer.data
        if not isinstance(by, str):
            raise OptionError(f"by= is the name of a column; got {type(by).__name__}.")
        if by not in data.columns:
            raise OptionError(
                f"by={by!r} is not a column of the confidential data.{nearest(by, data.columns)}"
            )
        groups = data[by].iloc[self._evaluation.positions]
        if groups.dtype in (np.float16, np.longdouble):
            groups = groups.astype(np.float64)
        if groups.map(lambda value: not isinstance(value, Hashable)).any():
            raise OptionError(f"by={by!r} holds lists or other nested values, not groups.")
        return groups


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
    method = _choose("estimator", estimator, _ESTIMATORS)
    if not isinstance(diagnostics, bool):
        raise OptionError(f"diagnostics must be True or False; got {got(diagnostics)}.")
    keeping = _choose("joint", joint, _JOINTS)
    unreliable = _choose("on_unreliable", on_unreliable, ("flag", "fit", "raise"))
    if unreliable != "flag" and (not diagnostics or method == "paper"):
        raise OptionError(
            f"on_unreliable={unreliable!r} needs to know what is reliable: use diagnostics=True, "
            "and an estimator other than 'paper'."
        )
    team = workers(executor)
    chosen = strategies(guesses, synthesizer.plan.synthesized)
    believed = resolve_prior(intruder_prior)
    positions = _chosen_records(records, synthesizer.data.index)
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
    estimates = estimates_of(synthesizer, kinds, draws, release, grids, team, given_stacks)
    evaluation = Evaluation(synthesizer, estimates, method == "paper", grids, believed, positions)
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
    shaky = findings(evaluation, result, checks) if diagnostics else []
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
        _labels(synthesizer, positions),
    )


def _fitted_from_arrays(
    synthesizer: Synthesizer,
    estimates: tuple[ModelEstimate, ...],
    stored: Sequence[tuple[int, int, str]],
    arrays: Mapping[str, Any],
) -> dict[int, tuple[ModelEstimate, ...]]:
    """Return the estimates of records that were fitted at each guess."""
    kinds: dict[str, Any] = {**KINDS, AtGuesses.name: AtGuesses}
    found: dict[int, list[ModelEstimate]] = {}
    for row, k, kind in stored:
        family = synthesizer.models[k].regression.distribution
        own = kinds[kind].from_arrays(family, arrays, f"fitted_{row}_{k}_")
        found.setdefault(row, list(estimates))[k] = own
    return {row: tuple(own) for row, own in found.items()}


def _labels(synthesizer: Synthesizer, positions: IntArray) -> tables.Labels:
    return tables.Labels(
        synthesizer.data.index[positions],
        tuple(synthesizer.schema.variables[name] for name in synthesizer.plan.synthesized),
        tuple(regression.distribution for regression in synthesizer.plan.regressions),
    )


def _choose(name: str, value: Any, options: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in options:
        raise OptionError(
            f"{name} must be one of {listed(options)}; got {got(value)}.{nearest(value, options)}"
        )
    return value


def _chosen_records(records: Any, labels: pd.Index[Any]) -> IntArray:
    if records is None:
        return np.arange(len(labels), dtype=np.int64)
    if isinstance(records, np.ndarray) and records.ndim == 0:
        records = records.item()
    several = isinstance(records, Iterable) and not isinstance(records, str | bytes)
    wanted = list(records) if several else [records]
    if not wanted:
        raise OptionError("records= is empty; leave it out to evaluate all records.")
    positions = _positions_of(wanted, labels)
    n_repeated = len(positions) - len(np.unique(positions))
    if n_repeated:
        raise OptionError(f"records= repeats {counted(n_repeated, 'label')}.")
    return positions


def _positions_of(wanted: list[Any], labels: pd.Index[Any]) -> IntArray:
    if any(not isinstance(label, Hashable) or isinstance(label, slice) for label in wanted):
        raise OptionError("A record is named by its label; records= takes a list of labels.")
    # As objects where the labels are: text that is not valid Unicode has no other type.
    kind: Any = object if labels.dtype == object else None
    sought: pd.Index[Any] = pd.Index(wanted, dtype=kind, tupleize_cols=False)
    positions = labels.get_indexer(sought)
    n_unknown = int((positions < 0).sum())
    if n_unknown:
        kind = labels.dtype
        raise OptionError(
            f"{counted(n_unknown, 'label is', 'labels are')} not among the evaluated records; "
            f"labels are those of the confidential data's index or id column (type {kind})."
        )
    return positions.astype(np.int64)


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


def _spread(values: FloatArray) -> float:
    with np.errstate(over="ignore"):
        spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    return spread if np.isfinite(spread) else 0.0


def _target(synthesizer: Synthesizer, name: str, positions: IntArray) -> Target:
    plan = synthesizer.plan
    values = synthesizer.columns[name].astype(np.float64)
    return Target(
        synthesizer.schema.variables[name],
        plan.regressions[plan.synthesized.index(name)],
        values[positions],
        np.unique(values),
        _spread(values),
        positions,
        len(values),
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


__all__ = ["AttributeRisk", "attribute_risk"]
