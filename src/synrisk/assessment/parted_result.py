"""Attribute disclosure risk of many records: a result that lies in parts in a folder."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from synrisk.assessment.attribute_result import AttributeRisk
from synrisk.base.arrays import IntArray
from synrisk.base.errors import OptionError, counted
from synrisk.base.memory_limit import refuse_beyond
from synrisk.base.progress import under_way
from synrisk.base.workers import Workers, workers
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.core.summary import RiskArrays
from synrisk.data.output_files import KnownFile
from synrisk.data.part_files import PartFolder, read_part
from synrisk.data.partitions import sampling_step
from synrisk.plots.view import Drawn, OfTable, Piece
from synrisk.risk import tables
from synrisk.risk.diagnostics import ErrorsInShort, findings_of
from synrisk.risk.doubts import Doubt, Suspicion, is_known, suspicions
from synrisk.risk.estimators.estimate import Finding
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.further_releases import further_releases
from synrisk.risk.parted_evaluation import PartedEvaluation, positions_of
from synrisk.risk.question import Question
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.risk.tables import Labels
from synrisk.synthesis.release import Released
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.verdict import Outlook, RecordPart

if TYPE_CHECKING:
    import pyarrow.dataset

_COPIES = 3  # of the numbers that are read: as they are read, as they are given, and beside


class PartedRisk(AttributeRisk):
    """An `AttributeRisk` of more records than memory holds, in a folder of Parquet files.

    Made by `attribute_risk` with ``out=FOLDER``; the same call again finds the parts and evaluates
    nothing anew. ``verdict``, ``summary``, ``diagnostics``, ``report``, ``sensitivity``, ``joint``
    and ``ranking`` are those of `AttributeRisk`, read a part at a time. Plots that show single
    records or densities show 100,000 of more records, evenly spread, and say so. What needs all
    records at once (``marginal``, ``considered``, ``probability_within``, ``to_dataset``,
    ``save``) is refused.

    Attributes
    ----------
    folder
        Where the parts are; its owner alone can read it.
    states
        Of each part "new", "kept" from an earlier run, or why it was made anew.
    """

    folder: Path
    states: tuple[str, ...]
    _files: tuple[KnownFile, ...]
    _parted: PartedEvaluation
    _release: Sequence[Released]
    _with_errors: bool

    @classmethod
    def of(
        cls,
        folder: Path,
        evaluation: PartedEvaluation,
        release: Sequence[Released],
        estimator: dict[str, str],
        n_draws: dict[str, int],
        notes: tuple[str, ...],
        checks: ReleaseChecks | None,
        states: Sequence[str],
        fingerprints: tuple[str, ...],
        *,
        with_errors: bool,
    ) -> PartedRisk:
        """Return the result that lies in a folder."""
        made = cls.__new__(cls)
        template = evaluation.template
        vars(made).update(
            estimator=estimator,
            n_datasets=len(release),
            n_draws=n_draws,
            _notes=notes,
            release_check=checks,
            _evaluation=template,
            _labels=tables.labels_of(template.synthesizer, slice(None), template.asked),
            fingerprints=fingerprints,
            folder=folder,
            states=tuple(states),
            _files=PartFolder(folder).files(len(states)),
            _parted=evaluation,
            _release=release,
            _with_errors=with_errors,
        )
        return made

    def moved_to(self, folder: Path) -> PartedRisk:
        """Return the same result, of parts that were moved to another folder."""
        made = PartedRisk.__new__(PartedRisk)
        kept = {name: value for name, value in vars(self).items() if name != "_drawn"}
        files = tuple(replace(file, path=folder / file.path.name) for file in self._files)
        vars(made).update({**kept, "folder": folder, "_files": files})
        return made

    @property
    def _result(self) -> RiskArrays:
        raise self._refusal()

    def _refusal(self) -> OptionError:
        is_stored = self.synthesizer.confidential.is_stored
        return OptionError(
            f"This needs all records at once, and they lie in parts in {self.folder}. Read them "
            "a part at a time (risk.parts(), risk.table), or "
            + ("ask for one (joint, ranking)." if is_stored else "evaluate some (records=).")
        )

    # -- the parts ---------------------------------------------------------------------------------
    @property
    def table(self) -> pyarrow.dataset.Dataset:
        """The records as a dataset of pyarrow, which reads what it is asked for.

        Columns are those of ``records``, with the label as ``record`` and, for each variable V,
        ``is_best_V``: whether the truth is the one most probable guess.
        """
        import pyarrow.dataset as ds

        for file in self._files:
            file.refuse_changed(str(self.folder))
        return ds.dataset([str(file.path) for file in self._files], format="parquet")

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield the records, or some of their columns, a part at a time."""
        with under_way("Reading parts of the risk", len(self._labels.records)) as advance:
            for rows, file in zip(self._parted.parts, self._files, strict=True):
                part = read_part(file, rows.stop - rows.start, columns)
                part.index = self._labels.records[rows]
                yield part
                advance(rows.stop - rows.start)

    @property
    def records(self) -> pd.DataFrame:
        """All records as one table, as those of an `AttributeRisk`; refused where it is too large.

        `table` and `parts` read some columns, or a part at a time.
        """
        columns = [name for name in self.table.schema.names if name not in self._beside]
        self._refuse_beyond_memory(len(columns), "The table")
        return pd.concat(self.parts(columns))

    def _refuse_beyond_memory(self, n_columns: int, what: str) -> None:
        n_records = len(self._labels.records)
        refuse_beyond(
            _COPIES * 8 * n_columns * n_records,
            f"{what} of {counted(n_records, 'record')}",
            f"Read {counted(len(self._files), 'part')} one after the other (risk.parts(), "
            "risk.table).",
        )

    @property
    def _beside(self) -> set[str]:
        return {"record", *tables.names_beside(self._labels.names)}

    # -- what is summed up and shown ---------------------------------------------------------------
    def _columns_by_group(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield what a summary by group is made of: four columns of all records at a time."""
        wanted = ["probability", "prior", "rank"]
        self._refuse_beyond_memory(1 + len(wanted), "A summary")
        joint = pd.concat(self.parts(wanted), ignore_index=True)
        rank = joint.pop("rank")
        yield JOINT, joint.assign(is_best=np.where(rank.isna(), np.nan, rank == 1), abs_diff=np.nan)
        for name in self._labels.names:
            kinds = ["probability", "prior", "is_best", "abs_diff"]
            own = pd.concat(self.parts([f"{k}_{name}" for k in kinds]), ignore_index=True)
            yield name, own.set_axis(kinds, axis=1)

    @cached_property
    def _drawn(self) -> Drawn:
        return _InParts(self._files, self._parted, self._labels, with_errors=self._with_errors)

    def _one(self, record: Hashable) -> tuple[xr.DataArray, list[int]]:
        grids = self._alone(record).asked_grids
        return self.joint(record), tables.truth_among(grids, 0)

    def _tables(self, columns: Sequence[str]) -> Iterable[pd.DataFrame]:
        return self.parts(columns)

    @property
    def _positions(self) -> IntArray:
        return np.arange(len(self._labels.records))

    # -- what is judged ----------------------------------------------------------------------------
    @cached_property
    def _suspicions(self) -> tuple[Suspicion, ...]:
        names = [f"before_{name}" for name in self._labels.names]
        n_known = np.zeros(len(names))
        for part in self.parts(names):
            n_known += [is_known(part[name].to_numpy()).sum() for name in names]
        shares = dict(zip(self._evaluation.axes, n_known / len(self._labels.records), strict=True))
        return suspicions(self.synthesizer, self._release, self._parted.extents, shares)

    def _doubts_of(self, positions: IntArray, part: pd.DataFrame) -> tuple[Doubt, ...]:
        return tuple(
            one.about(positions, part[f"before_{one.variable}"].to_numpy())
            for one in self._suspicions
        )

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Why the risk of some records is not known, whatever their numbers say."""
        names = [f"before_{name}" for name in self._labels.names]
        found = [
            self._doubts_of(positions_of(rows), part)
            for rows, part in zip(self._parted.parts, self.parts(names), strict=True)
        ]
        whole = [
            Doubt(one.variable, one.why, one.what_to_do, np.concatenate([d.records for d in same]))
            for one, *others in zip(*found, strict=True)
            for same in [(one, *others)]
        ]
        return tuple(doubt for doubt in whole if doubt.records.any())

    def _parts(self) -> Iterable[RecordPart]:
        names = self._labels.names
        for rows, part in zip(self._parted.parts, self.parts(), strict=True):
            doubts = self._doubts_of(positions_of(rows), part)
            columns = {str(name): part[name].to_numpy() for name in part.columns}
            measures = tables.measures_of_columns(columns.__getitem__, names)
            yield RecordPart(measures, part.index, doubts)

    @property
    def shaky(self) -> list[Finding]:
        """What `diagnostics` lists."""
        return self._findings()

    def _findings(self) -> list[Finding]:
        errors = None
        if self._with_errors:
            names = () if self.is_joint else self._labels.names
            for part in self.parts():
                own = ErrorsInShort.of_table(part, names)
                errors = own if errors is None else errors.and_of(own)
        doubts = [doubt.finding() for doubt in self.doubts]
        return findings_of(self._evaluation, errors, self.release_check, doubts)

    # -- what is evaluated again -------------------------------------------------------------------
    def _outlook(
        self, criteria: Criteria, evaluation: PartedEvaluation, team: Workers, what: str
    ) -> Outlook:
        return Outlook.of(criteria, self._measured(evaluation, team, what))

    def _measured(
        self, evaluation: PartedEvaluation, team: Workers, what: str, *, with_errors: bool = False
    ) -> Iterator[RecordMeasures]:
        for one, result in evaluation.run(team, what, with_errors=with_errors):
            labels = tables.labels_of(self.synthesizer, one.positions, one.asked)
            yield tables.record_measures(result, one.asked_grids, labels)

    def _row_under(self, name: str, question: Question, criteria: Criteria) -> dict[str, Any]:
        known = self._remembered("assumptions", criteria)
        if name not in known:
            known[name] = super()._row_under(name, question, criteria)
        row: dict[str, Any] = known[name]
        return row

    def _parts_under(self, question: Question) -> Iterable[RecordPart]:
        if question is self._evaluation.question:
            yield from self._parts()
            return
        parted = self._parted.under(question)
        names = [f"before_{name}" for name in self._labels.names]
        with workers(None).shared() as team:
            found = self._measured(
                parted, team, "Under another assumption", with_errors=self._with_errors
            )
            for rows, measures, part in zip(
                self._parted.parts, found, self.parts(names), strict=True
            ):
                doubts = self._doubts_of(positions_of(rows), part)
                yield RecordPart(measures, part.index, doubts)

    def _remembered(self, what: str, criteria: Criteria) -> dict[Any, Any]:
        found: dict[Any, Any] = vars(self).setdefault("_outlooks", {})
        own: dict[Any, Any] = found.setdefault((what, repr(criteria.to_json())), {})
        return own

    def _at_other_tolerances(self, criteria: Criteria) -> dict[str, RecordMeasures | Outlook]:
        question: Question = self._parted.question
        if not question.is_of_ranges:
            return {}
        known = self._remembered("tolerances", criteria)
        with workers(None).shared() as team:
            for name, factor in (("half", 0.5), ("twice", 2.0)):
                if name not in known:
                    other = self._parted.under(question.within(factor))
                    known[name] = self._outlook(criteria, other, team, "At another tolerance")
        return known

    def _at_further(self, criteria: Criteria, n_releases: int) -> list[RecordMeasures | Outlook]:
        if self._evaluation.paired is not None:
            return []
        known = self._remembered(f"{n_releases} releases", criteria)
        if not known:
            with workers(None).shared() as team:
                others = further_releases(
                    self._evaluation, self._parted.extents, self.fingerprints, n_releases, team
                )
                for number, template in enumerate(others):
                    parted = self._parted.by(template)
                    known[number] = self._outlook(criteria, parted, team, "Another release")
        return list(known.values())

    def _alone(self, record: Hashable) -> Evaluation:
        return self._parted.of(np.array([self._row(record)]))

    def joint(self, record: Hashable) -> xr.DataArray:
        """Return one record's posterior over all its guesses, worked out anew."""
        one = self._alone(record)
        return tables.joint_array(self._log_joint_of(one, 0), 0, one.asked_grids, self._labels)

    def ranking(self, record: Hashable) -> pd.DataFrame:
        """Return every guess of one record with its probability, prior and rank, best first."""
        one = self._alone(record)
        logs = self._log_joint_of(one, 0), one.log_prior(0)
        return tables.ranking_table(*logs, 0, one.asked_grids, self._labels)

    def considered(self, variable: str) -> pd.DataFrame | None:
        """Refuse: it is of all records at once."""
        del variable
        raise self._refusal()


class _InParts(Drawn):
    """The records of a folder of parts, as plots and reports take them."""

    def __init__(
        self,
        files: Sequence[KnownFile],
        parted: PartedEvaluation,
        labels: Labels,
        *,
        with_errors: bool,
    ) -> None:
        self._files, self._parted, self._with_errors = files, parted, with_errors
        self.evaluation, self.labels = parted.template, labels

    def pieces(self) -> Iterator[Piece]:
        """Yield the parts, of which columns are read when they are wanted."""
        for rows, file in zip(self._parted.parts, self._files, strict=True):
            yield self._piece(positions_of(rows), partial(_column, file, rows))

    @cached_property
    def sample(self) -> Piece:
        """All records, or where they are too many some of them, evenly spread."""
        n_records = len(self.labels.records)
        step = sampling_step(n_records)
        positions = np.arange(0, n_records, step)

        def read(name: str) -> npt.NDArray[Any]:
            kept = [
                _column(file, rows, name)[-rows.start % step :: step]
                for rows, file in zip(self._parted.parts, self._files, strict=True)
            ]
            return np.concatenate(kept)

        return self._piece(positions, cache(read), None if step == 1 else n_records)

    def _piece(
        self,
        positions: IntArray,
        read: Callable[[str], npt.NDArray[Any]],
        sampled_from: int | None = None,
    ) -> Piece:
        return OfTable(
            self._parted.of,
            self.evaluation,
            replace(self.labels, records=self.labels.records[positions]),
            positions,
            read,
            with_errors=self._with_errors,
            sampled_from=sampled_from,
        )


def _column(file: KnownFile, rows: slice, name: str) -> npt.NDArray[Any]:
    """Read a column of a part."""
    return read_part(file, rows.stop - rows.start, [name])[name].to_numpy()
