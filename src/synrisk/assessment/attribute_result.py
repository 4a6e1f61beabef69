"""Attribute disclosure risk: the result that users hold."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
import xarray as xr

from synrisk.assessment.selection import positions_of
from synrisk.base.arrays import IntArray
from synrisk.base.errors import OptionError, counted, got, listed
from synrisk.base.progress import with_progress
from synrisk.base.workers import workers
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.core.spread import Spread
from synrisk.core.summary import RiskArrays
from synrisk.data.archive import intact, pack, unpack
from synrisk.data.frames import TableLike
from synrisk.data.netcdf import Contents, load, save
from synrisk.plots import Plots
from synrisk.plots.view import Drawn, Evaluated, confidential_column
from synrisk.report import Source, write_report
from synrisk.risk import tables
from synrisk.risk.diagnostics import findings, table_of
from synrisk.risk.doubts import Doubt
from synrisk.risk.estimators.estimate import Finding
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.evaluation_file import evaluation_from_contents, evaluation_to_contents
from synrisk.risk.further_releases import further_releases
from synrisk.risk.grid_size import MOST_CELLS
from synrisk.risk.guesses import Grid
from synrisk.risk.guesses.spaced import is_real
from synrisk.risk.intruder_prior import Uniform
from synrisk.risk.question import Question
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.synthesis.synthesizer import Synthesizer
from synrisk.utility import Utility
from synrisk.verdict.criteria import DEFAULT, Criteria
from synrisk.verdict.reasons import CALLED, PASSED
from synrisk.verdict.verdict import Outlook, RecordPart, Verdict, judge_parts

ReportKind: TypeAlias = Literal["sharing", "inside"]

_KIND = "an attribute risk"  # of file
_NOUN = re.compile(r"[^\W\d_](?:[\w \-]{0,30}\w)?")


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
    release_check
        Whether the release looks as if it came from these models, and whether rows were copied;
        None where diagnostics were not asked for.
    fingerprints
        By which the datasets that were evaluated are known again, whatever the order of their
        rows; none in a file of before they were kept.
    doubts
        Why the risk of some records is not known, whatever their numbers say: they are undecided.
    """

    estimator: dict[str, str]
    n_datasets: int
    n_draws: dict[str, int]
    _notes: tuple[str, ...]
    release_check: ReleaseChecks | None
    _evaluation: Evaluation
    _result: RiskArrays
    _labels: tables.Labels
    fingerprints: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    def __repr__(self) -> str:
        sizes = " × ".join(str(grid.n_guesses) for grid in self._grids)
        by = "" if self.is_joint else ", by variable"
        return (
            f"<AttributeRisk: {listed(self._labels.names)}; "
            f"{counted(len(self._labels.records), 'record')}; {sizes} guesses{by}; "
            f"{counted(self.n_datasets, 'dataset')}; "
            f"estimated by {listed(dict.fromkeys(self.estimator.values()))}>"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers should know about how they were made."""
        failures = () if self.release_check is None else self.release_check.failures
        return (*self._notes, *failures)

    @property
    def not_evaluated(self) -> tuple[str, ...]:
        """The synthesized variables that were not asked for (``variables=``): summed out."""
        names = self.synthesizer.plan.synthesized
        return tuple(name for name in names if name not in self._labels.names)

    @property
    def is_joint(self) -> bool:
        """Whether the joint grid was evaluated, guess by guess.

        Where it is too large, the probability of all true values together is summed up without it,
        and so are those of every variable. What needs each joint guess is not known then: the rank
        of the truth among them, and ``log_odds_range_99``; both stand by variable.
        """
        return self._evaluation.is_joint

    @cached_property
    def _records(self) -> pd.DataFrame:
        return tables.record_table(self._result, self._grids, self._labels)

    @property
    def _grids(self) -> tuple[Grid, ...]:
        return self._evaluation.asked_grids

    @property
    def records(self) -> pd.DataFrame:
        """A row a record: in the confidential data's order, or in that of ``records=``.

        ``before`` and ``after``: the probability that all true values are guessed, within the
        tolerance, without the release and with it; ``gain``, what the release adds, with its
        standard error ``gain_mcse``. The same numbers by the paper's names: ``probability`` (after)
        with ``mcse``, ``prior`` (before); ``lift`` (the one over the other), ``rank`` of the truth
        (1 is the most probable; ties share the average) with ``rank_low`` and ``rank_high``,
        which Monte-Carlo error leaves open, ``n_guesses``,
        ``log_odds_range`` (the most that the release moved the log odds between two guesses) with
        a bound on its standard error, and ``log_odds_range_99``, that among the guesses which the
        models hold most probable, 99 % together; ``ess`` and
        ``khat`` (the effective number of draws at the record's worst guess, and the tail of their
        weights there), ``reliable``; and for each synthesized variable V ``before_V``,
        ``after_V``, ``gain_V``, their errors, ``probability_V``, ``prior_V``, ``mcse_V``,
        ``best_guess_V`` (by V's marginal) and ``abs_diff_V``, its distance
        from the truth (0 or 1 for unordered levels).

        Where the joint grid is too large to be evaluated (`is_joint`), ``rank`` and
        ``log_odds_range_99`` are NaN, and there are ``rank_V``, of the truth among V's own guesses,
        and ``log_odds_range_99_V``, how far the release moved the log odds between two of those
        that have 99 % of what the models predict of V; neither has an error.
        """
        return self._records.copy()

    def summary(self, by: str | None = None) -> pd.DataFrame:
        """Return a row for the joint and for each variable, or these for each group of `by`.

        ``prior`` is the mean before the release; ``mean``, ``median``, ``q95`` and ``max`` are of
        the probability after it, and ``gain_q95`` and ``gain_max`` of what it adds.
        ``share_best`` is the share of records whose truth is the one most probable guess.
        ``release_check`` says whether the release looks as if it came from the model ("passed",
        "failed", "not known"), for the joint also whether rows were copied: see `release_check`.

        Parameters
        ----------
        by
            A column of the confidential data.
        """
        groups = None if by is None else self._groups(by)
        table = self._summary_table(groups)
        checks = self.release_check
        status = {
            name: "not known"
            if checks is None
            else checks.status(None if name == "joint" else name)
            for name in ("joint", *self._labels.names)
        }
        table["release_check"] = [status[of] for of in table.index.get_level_values("of")]
        return table

    def _summary_table(self, groups: pd.Series[Any] | None) -> pd.DataFrame:
        if groups is not None:
            return tables.summary_by(self._columns_by_group(), groups)
        drawn, nothing = self._drawn, Spread(list)
        wanted = ("probability", "prior", "gain", "is_above", "is_best")
        lines = {}
        for of in (JOINT, *self._labels.names):
            own = {name: drawn.spread(of, name) for name in wanted}
            off = nothing if of == JOINT else drawn.differences(self._labels.axis(of))
            lines[of] = tables.summary_line({**own, "abs_diff": off})
        return tables.summary_of(lines)

    def _columns_by_group(self) -> Iterator[tuple[str, pd.DataFrame]]:
        return tables.summary_columns(self._result, self._grids, self._labels)

    def diagnostics(self) -> pd.DataFrame:
        """Return what is shaky, why, and what to do: a row a finding, none if all is well."""
        return table_of(self._findings())

    def _findings(self) -> list[Finding]:
        return findings(self._evaluation, self._result, self.release_check, self.doubts)

    @property
    def synthesizer(self) -> Synthesizer:
        """The models and the confidential data that the risk was evaluated with."""
        return self._evaluation.synthesizer

    @property
    def plot(self) -> Plots:
        """Plots: ``risk.plot.probability()``, ``.marginals()``, ``.ranks()`` and others."""
        return Plots(self._drawn, self._one)

    @cached_property
    def _drawn(self) -> Drawn:
        return Evaluated(self._evaluation, self._result, self._labels)

    def _one(self, record: Hashable) -> tuple[xr.DataArray, list[int]]:
        """Return one record's joint posterior, and where the truth stands on each axis."""
        row = self._row(record)
        return self.joint(record), tables.truth_among(self._grids, row)

    @with_progress
    def verdict(
        self,
        criteria: Criteria | None = None,
        *,
        further: int = 4,
        rows: str = CALLED,
        progress: bool | None = None,  # noqa: ARG002 - of what shows it
    ) -> Verdict:
        """Return whether the release keeps the criteria: passed, failed, or cannot be judged.

        Records that were not evaluated (``records=``) count as undecided.

        Parameters
        ----------
        criteria
            The limits: `Criteria`, `Criteria.from_toml` or `Criteria.named`. By default the
            release may add ten percentage points to the probability of the truth, of all variables
            together and of each: ``Criteria(gain=0.1, variables=Criteria(gain=0.1))``.
        further
            So many other releases of the same fit are made and evaluated, for how gains vary over
            releases, and a release that passes is judged with half and twice the tolerance too; 0
            does without both.
        rows
            What the verdict calls records: "people", "households".
        progress
            As in `attribute_risk`.
        """
        if isinstance(further, bool) or not isinstance(further, int) or further < 0:
            raise OptionError("further must be a whole number from 0: releases beside this one.")
        if not isinstance(rows, str) or not _NOUN.fullmatch(rows):
            raise OptionError("rows is what records are called: a word such as 'people'.")
        criteria = DEFAULT if criteria is None else criteria
        left_out, names = self.not_evaluated, self._labels.names
        judged = judge_parts(
            criteria,
            names,
            self._parts(),
            self.release_check,
            self.synthesizer.n_records,
            self._within,
            rows,
            joint=listed(names) if left_out and len(names) > 1 else JOINT,
            left_out=left_out,
        )
        question = self._evaluation.question
        judged = judged.asked([] if question is None else question.differences(self.synthesizer))
        if not further:
            return judged
        if judged.of_limits == PASSED:
            judged = judged.under(self._at_other_tolerances(criteria))
        return judged.beside(self._at_further(criteria, further))

    def _at_other_tolerances(self, criteria: Criteria) -> Mapping[str, RecordMeasures | Outlook]:
        del criteria  # of parts of records something is summed up by them
        return self._of_other_tolerances

    def _at_further(
        self, criteria: Criteria, n_releases: int
    ) -> Sequence[RecordMeasures | Outlook]:
        del criteria
        return self._of_further(n_releases)

    def _parts(self) -> Iterable[RecordPart]:
        """Yield what is judged."""
        yield RecordPart(self.measures, self._labels.records, self.doubts)

    @cached_property
    def _of_other_tolerances(self) -> dict[str, RecordMeasures]:
        question = self._evaluation.question
        if question is None or not question.is_of_ranges:
            return {}
        return {
            name: self._asked_otherwise(question.within(factor))
            for name, factor in (("half", 0.5), ("twice", 2.0))
        }

    @cached_property
    def measures(self) -> RecordMeasures:
        """What limits, plots and comparisons ask for: numbers by record, with their errors."""
        return tables.record_measures(self._result, self._grids, self._labels)

    @property
    def _within(self) -> dict[str, str]:
        """What counts as the truth, in words, by variable and for the joint."""
        question = self._evaluation.question
        if question is None:
            return {}
        words = {
            name: question.tolerances[name].words(family)
            for name, family in zip(self._labels.names, self._labels.families, strict=True)
        }
        if len(set(words.values())) == 1:
            return {JOINT: next(iter(words.values())), **words}
        each = listed(f"{name} {own or 'exactly'}" for name, own in words.items())
        return {JOINT: f"({each})", **words}

    def _of_further(self, n_releases: int) -> list[RecordMeasures]:
        """Return the measures of further releases of the same fit; none where there can be none."""
        if not self.fingerprints or self._evaluation.paired is not None:
            return []
        known = self.__dict__.setdefault("_further", {})
        if n_releases not in known:
            with workers(None).shared() as team:
                found = [
                    one.run(team, keep_joint=False, with_errors=False)
                    for one in further_releases(
                        self._evaluation,
                        self._evaluation.grids,
                        self.fingerprints,
                        n_releases,
                        team,
                    )
                ]
            known[n_releases] = [
                tables.record_measures(one, self._grids, self._labels) for one in found
            ]
        measures: list[RecordMeasures] = known[n_releases]
        return measures

    def sensitivity(self, criteria: Criteria | None = None) -> pd.DataFrame:
        """Return the verdict under other assumptions, without fitting anything anew.

        A row each: as asked; a uniform prior; half the tolerance, and twice that. Columns are the
        outcome of the limits (the checks of the release do not change), and the largest gain of
        all variables together and of each.

        Parameters
        ----------
        criteria
            The limits, as in `verdict`.
        """
        question = self._evaluation.question
        if question is None or not question.is_of_ranges:
            raise OptionError(
                "sensitivity is of guesses in a range (guesses='range'), which may be laid out "
                "again for another tolerance."
            )
        criteria = DEFAULT if criteria is None else criteria
        asked = {
            "as asked": question,
            "uniform prior": replace(question, prior=Uniform()),
            "half the tolerance": question.within(0.5),
            "twice the tolerance": question.within(2.0),
        }
        rows = {name: self._row_under(name, other, criteria) for name, other in asked.items()}
        return pd.DataFrame(rows).T.rename_axis("question").infer_objects()

    def _row_under(self, name: str, question: Question, criteria: Criteria) -> dict[str, Any]:
        """Return the outcome of the limits and the largest gains under another question."""
        del name  # of parts of records what is found is kept by it
        gains: dict[str, Any] = {}

        def noted() -> Iterator[RecordPart]:
            for part in self._parts_under(question):
                for of in (JOINT, *self._labels.names):
                    own = part.measures[of, "gain"].value.max()
                    column = "largest_gain" if of == JOINT else f"largest_gain_{of}"
                    gains[column] = np.maximum(gains.get(column, own), own)
                yield part

        judged = judge_parts(
            criteria,
            self._labels.names,
            noted(),
            self.release_check,
            self.synthesizer.n_records,
            left_out=self.not_evaluated,
        )
        return {"limits": judged.of_limits} | gains

    def _parts_under(self, question: Question) -> Iterable[RecordPart]:
        """Yield what is judged under another question."""
        asked = self._evaluation.question
        measures = self.measures if question is asked else self._asked_otherwise(question)
        yield RecordPart(measures, self._labels.records, self.doubts)

    def _asked_otherwise(self, question: Question) -> RecordMeasures:
        evaluation = self._evaluation
        grids = question.grids(self.synthesizer, evaluation.positions, self.n_datasets)
        other = replace(evaluation, grids=grids, prior=question.prior, question=question, fitted={})
        with_errors = self._result.errors is not None
        with workers(None).shared() as team:
            result = other.run(team, keep_joint=False, with_errors=with_errors)
        return tables.record_measures(result, grids, self._labels)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        kind: ReportKind = "sharing",
        criteria: Criteria | None = None,
        synthetic: TableLike | Sequence[TableLike] | None = None,
        title: str | None = None,
        utility: Utility | None = None,
        rows: str = CALLED,
    ) -> Path:
        """Write a report as one HTML file, and its facts as JSON beside it; return its path.

        Parameters
        ----------
        path
            A name that ends in ``.html``.
        kind
            ``"sharing"``: whether the limits are kept, gains in wide bands, what was assumed and
            released, and pictures of the release. ``"inside"``: everything, with the riskiest
            records by label, in files that their owner alone can read.
        criteria
            The limits that the report opens with a verdict on, as in `verdict`.
        synthetic
            The release that was evaluated, for pictures of its distributions and its hash.
        title
            The page's title.
        utility
            What `synrisk.utility` measured of the same release, for a section on it.
        rows
            What the report calls records: "people", "households".
        """
        if utility is not None:
            self._check_utility(utility)
        source = self._source(criteria, utility, rows, sharing=kind == "sharing")
        return write_report(path, source, kind=kind, synthetic=synthetic, title=title)

    def _source(
        self, criteria: Criteria | None, utility: Utility | None, rows: str, *, sharing: bool
    ) -> Source:
        """Return what a report is made of; what stays inside is not worked out for sharing."""
        verdict = (
            self.verdict(criteria, rows=rows, further=0)
            if sharing
            else self.verdict(criteria, rows=rows)
        )
        return Source(
            self._drawn,
            self._tables,
            self._findings(),
            self.release_check,
            self._notes,
            self.estimator,
            self.n_draws,
            self.n_datasets,
            verdict,
            utility,
            None if sharing else self._sensitivity(criteria),
            rows,
        )

    def _sensitivity(self, criteria: Criteria | None) -> pd.DataFrame | None:
        question = self._evaluation.question
        if question is None or not question.is_of_ranges:
            return None
        return self.sensitivity(criteria)

    def _tables(self, columns: Sequence[str]) -> Iterable[pd.DataFrame]:
        """Yield columns of `records`, some records after the others."""
        yield self._records[list(columns)]

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

    def considered(self, variable: str) -> pd.DataFrame | None:
        """Return the range of values that each record's guesses stand for: for inside use.

        Columns are ``low`` and ``high``, in the variable's units, and ``tolerance``, how far from
        the truth a value counts as learnt; None where guesses are listed.
        """
        axis = self._labels.axis(variable)
        question, tolerance = self._evaluation.question, self._grids[axis].tolerance
        span = question and question.span(variable, self.synthesizer, self.n_datasets)
        if not span:
            return None
        columns = {"low": span[0], "high": span[1], "tolerance": tolerance}
        return pd.DataFrame(columns, index=self._labels.records)

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
        near = grid.apart_from_gap(np.abs(grid.values - truth) <= within * (1.0 + 1e-12))
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
        synthesizer = self.synthesizer
        meta, arrays = synthesizer.to_contents()
        stored, of_evaluation = evaluation_to_contents(self._evaluation, self._result)
        meta["risk"] = {
            "estimator": self.estimator,
            "n_datasets": self.n_datasets,
            "n_draws": self.n_draws,
            "notes": list(self._notes),
            "checks": pack(self.release_check, arrays, "check"),
            "fingerprints": list(self.fingerprints),
            "doubts": pack(self.doubts, arrays, "doubt"),
            **stored,
        }
        save(path, Contents(_KIND, meta, arrays | of_evaluation, synthesizer.data))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AttributeRisk:
        """Load what `save` wrote."""
        contents = load(path, _KIND)
        return intact(lambda: cls._from_contents(contents))

    @classmethod
    def _from_contents(cls, contents: Contents) -> AttributeRisk:
        meta, arrays = contents.meta["risk"], contents.arrays
        synthesizer = Synthesizer.from_contents(contents.meta, arrays, contents.table)
        evaluation, result = evaluation_from_contents(synthesizer, meta, arrays)
        stored, names = meta["checks"], [model.response for model in synthesizer.models]
        checks = None if stored is None else ReleaseChecks.from_file(stored, arrays)
        return cls(
            {name: unpack(str, meta["estimator"][name], arrays) for name in names},
            unpack(int, meta["n_datasets"], arrays),
            {name: unpack(int, meta["n_draws"][name], arrays) for name in names},
            tuple(unpack(str, note, arrays) for note in meta["notes"]),
            checks,
            evaluation,
            result,
            tables.labels_of(synthesizer, evaluation.positions, evaluation.asked),
            tuple(unpack(str, one, arrays) for one in meta["fingerprints"]),
            tuple(
                unpack(Doubt, packed, arrays, sizes={"record": len(evaluation.positions)})
                for packed in meta["doubts"]
            ),
        )

    def _log_joint(self, row: int) -> Any:
        if self._result.joint is not None:
            return self._result.joint[row]
        return self._log_joint_of(self._evaluation, row)

    @staticmethod
    def _log_joint_of(evaluation: Evaluation, row: int) -> Any:
        shape = evaluation.shape
        if math.prod(shape) > MOST_CELLS:
            raise OptionError(
                f"The joint grid of {len(shape)} variables has {math.prod(shape):.3g} cells a "
                f"record, and at most {MOST_CELLS:,} are built. Use marginal(variable), for each."
            )
        return evaluation.log_joint(row)

    def _row(self, record: Hashable) -> int:
        rows = positions_of([record], self._labels.records)
        return int(rows[0])

    @property
    def _positions(self) -> IntArray:
        return self._evaluation.positions

    def _groups(self, by: str) -> pd.Series[Any]:
        if not isinstance(by, str):
            raise OptionError(f"by= is the name of a column; got {type(by).__name__}.")
        groups = confidential_column(self.synthesizer, by, self._positions, "by=")
        if groups.dtype in (np.float16, np.longdouble):
            groups = groups.astype(np.float64)
        if groups.map(lambda value: not isinstance(value, Hashable)).any():
            raise OptionError(f"by={by!r} holds lists or other nested values, not groups.")
        return groups
