"""The audit of a release by two files: the result that users hold."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synrisk.assessment.attribute_result import ReportKind
from synrisk.audit.board_measure import BoardMeasures
from synrisk.audit.compared_files import Files, Numbers
from synrisk.audit.copies import Copies
from synrisk.audit.count_measures import count_measures
from synrisk.audit.learnt_values import Learnt, Lesson
from synrisk.audit.membership import HeldOutMembership, membership_of_files
from synrisk.audit.rows_in_place import InPlace, in_place
from synrisk.base.errors import FileError, OptionError, counted, got, listed
from synrisk.core.measures import JOINT, RecordMeasure, RecordMeasures, measures_of_truth
from synrisk.data.archive import intact, pack, unpack
from synrisk.data.netcdf import Contents, load, save
from synrisk.data.schema import Schema, Variable
from synrisk.plots.of_audit import AuditPlots
from synrisk.report.audit_page import AuditSource, Digest, write_audit_report
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.of_two_files import ASSUMED, judge_audit
from synrisk.verdict.reasons import CALLED
from synrisk.verdict.verdict import Verdict

_KIND = "an audit"  # of file
_CONFIDENCE = 1.96
_SURELY_MORE = 0.02  # of a gain
DEFAULT_CRITERIA = Criteria(gain=0.1)  # of the column of which most is learnt, and so of each


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What a release teaches about each person, by two files alone.

    Made by `audit`. Nothing is assumed of how the release was made. The intruder knows other
    columns of a person (``keys``, by default all others) and all other people; he trusts the rows
    nearest to the person as far as such rows are right for others, beyond what the nearest other
    people tell. One who also knows the models is not evaluated: see `attribute_risk`.

    Attributes
    ----------
    copies
        How near rows come to people: by way and dataset, and by person.
    n_datasets
        The number of synthetic datasets.
    """

    copies: Copies
    _files: Files
    _lessons: Mapping[str, Lesson]
    _digests: tuple[Digest, ...] = ()

    def __repr__(self) -> str:
        held_out = "" if self._files.others is None else f"; {len(self._files.others):,} held out"
        return (
            f"<Audit: {listed(self._lessons)}; {counted(len(self._files.people), 'record')}; "
            f"{counted(self.n_datasets, 'dataset')}{held_out}>"
        )

    @property
    def n_datasets(self) -> int:
        """The number of synthetic datasets."""
        return len(self._files.release)

    @property
    def held_out_copies(self) -> int:
        """How many held-out rows stand in the confidential file too, and were left out."""
        return self._files.held_out_copies

    @property
    def variables(self) -> Mapping[str, Variable]:
        """What the compared columns hold."""
        return self._files.variables

    @property
    def keys(self) -> tuple[str, ...] | None:
        """What the intruder knows of a person; None for all columns but the one that is sought."""
        return self._files.keys

    @property
    def people(self) -> pd.DataFrame:
        """The confidential records, in the compared columns."""
        return self._files.frame(self._files.people)

    @property
    def release(self) -> tuple[pd.DataFrame, ...]:
        """The synthetic datasets, in the compared columns."""
        return tuple(map(self._files.frame, self._files.release))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers should know about how they were made."""
        found = tuple(one.sentence for one in self.copies.found)
        near = [f"{name} {words}" for name, words in self._within.items() if words]
        learnt = (f"A value counts as learnt: {listed(near)}; others exactly.",) if near else ()
        return (*self._files.notes, *learnt, *found, ASSUMED)

    @property
    def records(self) -> pd.DataFrame:
        """A row a record, in the confidential data's order.

        ``before`` and ``after``: the probability of the true value, within the tolerance, to
        somebody who knows all other people, without the release and with it, of the sensitive
        column of which the release teaches most; ``gain``, what it adds, with its standard error
        ``gain_error``; ``closeness``, the probability of a row as near as the nearest one is;
        ``copied``, that the nearest row is the person's own, as it is or moved a little, where the
        release as a whole is too close, and ``too_close``, whether the person is named as copied.
        For each sensitive column V ``before_V``, ``after_V``, ``gain_V``, ``gain_error_V``, and
        ``alone_V``, what the release alone tells somebody who knows nobody else.
        """
        return self._records.copy()

    @cached_property
    def _records(self) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for of in (JOINT, *self._lessons):
            gain, end = self.measures[of, "gain"], "" if of == JOINT else f"_{of}"
            columns |= {
                f"before{end}": gain.before,
                f"after{end}": gain.after,
                f"gain{end}": gain.value,
                f"gain_error{end}": gain.error,
            }
            if of == JOINT:
                columns |= {
                    "closeness": self.copies.p,
                    "copied": self.copies.copied,
                    "too_close": self.copies.named,
                }
            else:
                columns[f"alone{end}"] = self._lessons[of].people.alone
        return pd.DataFrame(columns, index=self._files.labels)

    @cached_property
    def measures(self) -> RecordMeasures:
        """What limits, plots and comparisons ask for: numbers by record, with their errors."""
        found: list[RecordMeasure] = []
        for of, (learnt, error) in self._by_part.items():
            found += measures_of_truth(
                of, learnt.before, learnt.after, error, learnt.gain_error, self._reliable(learnt)
            )
        return RecordMeasures(found)

    def _reliable(self, learnt: Learnt) -> Any:
        """Return of whom a gain can be relied on.

        Where known columns are released as they are, a row stands in each person's place, and tells
        also what follows from these columns more closely than other people show: two files cannot
        part that from a copy.
        """
        keys = self._files.names if self._files.keys is None else self._files.keys
        is_kept = any(name in self._files.kept for name in keys)
        return ~(is_kept & learnt.in_place & (learnt.gain > _SURELY_MORE))

    @property
    def _by_part(self) -> dict[str, tuple[Learnt, Any]]:
        """Return what was learnt by column, and of that of which most was, by record."""
        parts = [lesson.people for lesson in self._lessons.values()]
        best = np.argmax([part.gain for part in parts], axis=0)

        def chosen(name: str) -> Any:
            values = np.array([getattr(part, name) for part in parts])
            return values[best, np.arange(len(best))]

        names = ("before", "after", "before_error", "gain_error", "alone", "in_place")
        joint = Learnt(*(chosen(name) for name in names))
        of_all = {JOINT: joint} | {name: one.people for name, one in self._lessons.items()}
        return {
            of: (learnt, np.hypot(learnt.before_error, learnt.gain_error))
            for of, learnt in of_all.items()
        }

    def summary(self) -> pd.DataFrame:
        """Return a row for the column of which each person's most is learnt, and for each column.

        ``before`` and ``after`` are means; ``gain`` is the mean of what the release adds, with
        ``gain_q95`` and ``gain_max``; ``alone`` the mean of what the release alone tells, and
        ``log_ratio`` the mean logarithm of that over ``before``, with its standard error: below 0
        the release alone tells less than other people do. Where people were held out,
        ``gain_held_out`` is the mean gain of these, and ``difference`` what people in the file
        have beyond it, with the ends of its interval of 95 %, ``low`` and ``high``.
        """
        rows = {of: self._summary_row(of) for of in (JOINT, *self._lessons)}
        return pd.DataFrame(rows).T.rename_axis("of")

    def _summary_row(self, of: str) -> dict[str, float]:
        learnt, gain = self._by_part[of][0], self.measures[of, "gain"].value
        row = {
            "before": learnt.before.mean(),
            "after": learnt.after.mean(),
            "gain": gain.mean(),
            "gain_q95": np.quantile(gain, 0.95),
            "gain_max": gain.max(),
        }
        if of != JOINT:  # which has no column that a release alone could be asked for
            ratio = np.log(learnt.alone / np.maximum(learnt.before, 1e-12))
            error = ratio.std(ddof=1) / np.sqrt(len(ratio))
            row |= {
                "alone": learnt.alone.mean(),
                "log_ratio": ratio.mean(),
                "log_ratio_error": error,
            }
        if self._files.others is None:
            return row
        others = self._gain_of_others(of)
        difference = gain.mean() - others.mean()
        error = np.sqrt(gain.var(ddof=1) / len(gain) + others.var(ddof=1) / len(others))
        return row | {
            "gain_held_out": others.mean(),
            "difference": difference,
            "low": difference - _CONFIDENCE * error,
            "high": difference + _CONFIDENCE * error,
        }

    def _gain_of_others(self, of: str) -> Any:
        gains = {
            name: lesson.others.gain
            for name, lesson in self._lessons.items()
            if lesson.others is not None
        }
        return np.max(list(gains.values()), axis=0) if of == JOINT else gains[of]

    @property
    def held_out(self) -> pd.DataFrame:
        """A row a held-out person: ``before_V``, ``after_V``, ``gain_V`` and ``alone_V``."""
        if self._files.others is None:
            raise OptionError("Nobody was held out: give holdout= to audit.")
        columns: dict[str, Any] = {}
        for name, lesson in self._lessons.items():
            others = lesson.others
            assert others is not None  # noqa: S101 - of all columns or of none
            columns |= {
                f"before_{name}": others.before,
                f"after_{name}": others.after,
                f"gain_{name}": others.gain,
                f"alone_{name}": others.alone,
            }
        return pd.DataFrame(columns)

    def board_measures(self, dataset: int = 1) -> BoardMeasures:
        """Return the measures that boards cite, each with its chance level and its records.

        By the keys and the sensitive columns of this audit: uniques and replicated uniques, DiSCO
        and its relatives, TCAP, singling out, linkability, distances to the nearest row.

        Parameters
        ----------
        dataset
            Which of the release, from 1.
        """
        files = self._files
        if files.keys is None:
            raise OptionError("These measures are by keys: name them in audit(…, keys=[…]).")
        people, rows = files.frame(files.people), self._rows_of(dataset)
        return count_measures(people, rows, files.keys, files.sensitive, seed=0)

    def membership(self, dataset: int = 1, *, confidence: float = 0.95) -> HeldOutMembership:
        """Return how well nearness to the release tells who was in the confidential file.

        It needs people who were not: ``audit(…, holdout=…)``. Columns that are released as they
        are count too, since everybody can look people up by these.

        Parameters
        ----------
        dataset
            Which of the release, from 1.
        confidence
            Of the intervals, and of the bound on ε.
        """
        files = self._files
        if files.others is None:
            raise OptionError(
                "Who was in the file is told from people who were not: name their file in "
                "audit(…, holdout=…)."
            )
        people, others = files.frame(files.people), files.frame(files.others)
        return membership_of_files(
            people, others, self._rows_of(dataset), files.names, confidence=confidence
        )

    def _rows_of(self, dataset: object) -> pd.DataFrame:
        """Return a dataset of the release by its number, from 1."""
        if isinstance(dataset, bool) or not isinstance(dataset, int):
            raise OptionError(f"dataset is the number of one; got {got(dataset)}.")
        if not 1 <= dataset <= self.n_datasets:
            raise OptionError(f"dataset must be from 1 to {self.n_datasets}.")
        return self._files.frame(self._files.release[dataset - 1])

    @property
    def _within(self) -> dict[str, str]:
        """What counts as the truth, in words, by column."""
        found = {name: self._files.tolerance(name) for name in self._lessons}
        return {
            name: "" if tolerance is None or self._files.few_values(name) else tolerance.in_words
            for name, tolerance in found.items()
        }

    @cached_property
    def _in_place(self) -> InPlace:
        return in_place(self._files)

    @property
    def plot(self) -> AuditPlots:
        """Plots: ``audit.plot.before_after()``, ``.exceedance()`` and ``.closeness()``."""
        return AuditPlots(self.measures, self.copies)

    def verdict(self, criteria: Criteria | None = None, *, rows: str = CALLED) -> Verdict:
        """Return whether the release keeps the criteria: passed, failed, or cannot be judged.

        A release with rows too close to people fails, whatever the limits are.

        Parameters
        ----------
        criteria
            The limits, as for `AttributeRisk.verdict`; those of ``variables`` are of sensitive
            columns. By default the release may add ten percentage points to the probability of the
            truth of any of these: ``Criteria(gain=0.1)``.
        rows
            What the verdict calls records: "people", "households".
        """
        criteria = DEFAULT_CRITERIA if criteria is None else criteria
        return judge_audit(
            criteria,
            self.measures,
            self._files.labels,
            self.copies,
            self._files.kept,
            self._files.added,
            self._within,
            rows,
            n_alone=self._files.n_alone,
            with_more_gaps=self._files.with_more_gaps,
            in_rows=self._in_place,
        )

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        kind: ReportKind = "sharing",
        criteria: Criteria | None = None,
        title: str | None = None,
        rows: str = CALLED,
    ) -> Path:
        """Write a report as one HTML file, and its facts as JSON beside it; return its path.

        Parameters
        ----------
        path
            A name that ends in ``.html``.
        kind
            ``"sharing"``: whether the limits are kept, gains in wide bands, what was assumed, and
            pictures of the release. ``"inside"``: everything, with the people of whom most is
            learnt by label, in files that their owner alone can read.
        criteria
            The limits that the report opens with a verdict on, as in `verdict`.
        title
            The page's title.
        rows
            What the report calls records: "people", "households".
        """
        sharing = kind == "sharing"  # checked where it is written
        source = AuditSource(
            self._files,
            self.measures,
            self.copies,
            self.verdict(criteria, rows=rows),
            self.records,
            self.summary(),
            self._within,
            self.notes,
            self._digests,
            rows,
            None if sharing or self._files.keys is None else self.board_measures(),
        )
        return write_audit_report(path, source, kind=kind, title=title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save everything to a NetCDF file that its owner alone can read: it holds the data."""
        files, arrays = self._files, dict[str, Any]()
        meta = {
            "schema": Schema(files.variables, "error").to_json(),
            "people": pack(files.people, arrays, "people"),
            "release": pack(files.release, arrays, "release"),
            "others": pack(files.others, arrays, "others"),
            "keys": None if files.keys is None else list(files.keys),
            "sensitive": list(files.sensitive),
            "kept": list(files.kept),
            "notes": list(files.notes),
            "added": list(files.added),
            "held_out_copies": files.held_out_copies,
            "copies": pack(self.copies, arrays, "copies"),
            "lessons": [
                pack(one, arrays, f"lesson{k}") for k, one in enumerate(self._lessons.values())
            ],
            "digests": pack(self._digests, arrays, "digest"),
        }
        table = pd.DataFrame({"position": np.arange(len(files.labels))}, index=files.labels)
        save(path, Contents(_KIND, {"audit": meta}, arrays, table))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Audit:
        """Load what `save` wrote."""
        contents = load(path, _KIND)
        return intact(lambda: cls._from_contents(contents))

    @classmethod
    def _from_contents(cls, contents: Contents) -> Audit:
        meta, arrays, labels = contents.meta["audit"], contents.arrays, contents.table.index
        variables = Schema.from_json(meta["schema"]).variables
        sizes = {"record": len(labels), "column": len(variables)}
        of_people = sizes | {"row": len(labels)}
        stored = meta["others"]
        others = None if stored is None else unpack(Numbers, stored, arrays, sizes=sizes)

        def words(key: str) -> tuple[str, ...]:
            return tuple(unpack(str, one, arrays) for one in meta[key])

        files = Files(
            variables,
            unpack(Numbers, meta["people"], arrays, sizes=of_people),
            tuple(unpack(Numbers, one, arrays, sizes=sizes) for one in meta["release"]),
            others,
            None if meta["keys"] is None else words("keys"),
            words("sensitive"),
            words("kept"),
            labels,
            words("notes"),
            words("added"),
            unpack(int, meta.get("held_out_copies", 0), arrays),
        )
        named = {*(files.keys or ()), *files.sensitive, *files.kept}
        if files.held_out_copies < 0 or (files.held_out_copies and others is None):
            raise FileError("The file has held-out rows that are not among its own.")
        if not files.release:
            raise FileError("The file has no synthetic dataset.")
        if not named <= set(files.names) or not files.has_known_levels:
            raise FileError("The file has columns or levels that are not among its own.")
        lessons = {
            name: cls._lesson(packed, arrays, len(labels), None if others is None else len(others))
            for name, packed in zip(files.sensitive, meta["lessons"], strict=True)
        }
        copies = unpack(Copies, meta["copies"], arrays, sizes=sizes)
        digests = tuple(unpack(Digest, one, arrays) for one in meta["digests"])
        return cls(copies, files, lessons, digests)

    @staticmethod
    def _lesson(packed: Any, arrays: Any, n_people: int, n_others: int | None) -> Lesson:
        people = unpack(Learnt, packed["people"], arrays, sizes={"record": n_people})
        if n_others is None:
            return Lesson(people, None)
        others = unpack(Learnt, packed["others"], arrays, sizes={"record": n_others})
        return Lesson(people, others)
