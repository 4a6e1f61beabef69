"""Identification risk of partly synthetic data: could an intruder pick a person's own row?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from synrisk.audit.radius import Radius, radii
from synrisk.audit.row_matches import Matches, cells_of, find_matches, in_place, refuse_moved
from synrisk.audit.row_posteriors import (
    RowPosteriors,
    refuse_models,
    row_posteriors,
)
from synrisk.audit.row_search import Candidates
from synrisk.audit.shared_codes import (
    CONFIDENTIAL,
    check_columns,
    column_names,
    files_of,
    is_number,
    read_files,
    refuse_overlap,
)
from synrisk.base.arrays import FloatArray
from synrisk.base.errors import DataError, OptionError, counted, got, listed, within_memory
from synrisk.base.workers import Serial
from synrisk.core.measures import JOINT, RecordMeasures, measures_of_truth
from synrisk.data.archive import intact, pack, unpack
from synrisk.data.frames import TableLike, read_table
from synrisk.data.netcdf import Contents, load, save
from synrisk.risk.release_checks import ReleaseChecks, check_release
from synrisk.synthesis.release import as_datasets, levels_as_text, read_dataset, read_release
from synrisk.synthesis.synthesizer import Synthesizer
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.of_row_search import judge_rows
from synrisk.verdict.reasons import CALLED
from synrisk.verdict.verdict import Verdict

_KIND = "an identification risk"  # of file
_DEFAULT = Criteria(gain=0.1)
_OVER_DATASETS = 2  # datasets, for a standard error


@dataclass(frozen=True, eq=False, repr=False)
class IdentificationRisk:
    """How surely an intruder picks each record's own row of a partly synthetic release.

    Made by `identification_risk`. The intruder knows some released variables of a target exactly,
    and its synthesized ones within a radius.

    Attributes
    ----------
    known, synthesized
        The variables.
    radius
        By variable, how near a row must be.
    notes
        What the numbers assume.
    release_check
        What was found about the release, where the models are given: their probability assumes that
        it came from them.
    """

    known: tuple[str, ...]
    synthesized: tuple[str, ...]
    radius: Mapping[str, Radius]
    notes: tuple[str, ...]
    _matches: Matches
    _labels: pd.Index[Any]
    release_check: ReleaseChecks | None = None
    _posteriors: RowPosteriors | None = None

    def __repr__(self) -> str:
        near = listed(f"{name} {own.words}" for name, own in self.radius.items())
        return (
            f"<IdentificationRisk: {counted(len(self._labels), 'record')}; "
            f"{counted(self.n_datasets, 'dataset')}; {near}>"
        )

    @property
    def n_datasets(self) -> int:
        """The number of synthetic datasets."""
        return int(self._matches.n_matches.shape[1])

    @property
    def records(self) -> pd.DataFrame:
        """A row a record, in the confidential data's order.

        ``match_risk`` is the probability of picking the record's own row among those that match,
        averaged over the datasets; ``before`` that of who has the known values alone; and ``gain``
        the difference. For dataset l: ``c_l`` rows match; ``T_l`` tells whether the own row is one
        of them, ``K_l`` whether it is the only one, ``F_l`` whether another row is.

        With a synthesizer, ``posterior`` is the probability that the models give the record's own
        row, for somebody who has all datasets; ``posterior_mcse`` its Monte-Carlo error (and that
        of the approximation where there are many records, see the notes), ``posterior_gain`` the
        difference from ``before``, and ``reliable`` tells whether both can be relied on. With
        several datasets ``posterior_by_one`` is that of somebody who has one of them, averaged.
        """
        found, by_models = self._matches, self._posteriors
        before, after = self._before_and_after()
        columns: dict[str, Any] = {
            "match_risk": after,
            "before": before,
            "gain": after - before,
        }
        if by_models is not None:
            columns |= {
                "posterior": by_models.together,
                "posterior_mcse": by_models.error_together,
                "posterior_gain": by_models.together - before,
                "reliable": by_models.is_reliable_together,
            }
            if self.n_datasets > 1:
                columns["posterior_by_one"] = by_models.mean
        for k in range(self.n_datasets):
            columns |= {
                f"c_{k + 1}": found.n_matches[:, k],
                f"T_{k + 1}": found.is_own[:, k],
                f"K_{k + 1}": found.is_true[:, k],
                f"F_{k + 1}": found.is_false[:, k],
            }
        return pd.DataFrame(columns, index=self._labels)

    def _before_and_after(self) -> tuple[FloatArray, FloatArray]:
        return self._matches.risk_by_known.mean(axis=1), self._matches.risk.mean(axis=1)

    def summary(self) -> pd.DataFrame:
        """Return the rates of each dataset, their mean, and its standard error over datasets.

        ``expected_match_risk`` is how many records an intruder identifies on average who picks one
        of the matches of each; ``by_known`` the same number with the known values alone.
        ``true_match_rate`` is the share of records whose one match is their own row, and
        ``false_match_rate`` the share of other rows among all records' only matches
        (``unique_matches`` of them). With a synthesizer ``expected_by_models`` is how many records
        the models' probabilities of the own rows add up to: what an intruder who knows the models
        expects to find by picking rows as often as they are probable; ``together`` who has all
        datasets. The standard error needs two datasets.
        """
        found = self._matches
        n_unique = found.is_unique.sum(axis=0)
        with np.errstate(invalid="ignore"):
            false_rate = found.is_false.sum(axis=0) / np.where(n_unique, n_unique, np.nan)
        table = pd.DataFrame(
            {
                "expected_match_risk": found.risk.sum(axis=0),
                "by_known": found.risk_by_known.sum(axis=0),
                "true_match_rate": found.is_true.mean(axis=0),
                "false_match_rate": false_rate,
                "unique_matches": n_unique.astype(np.float64),
            },
            index=pd.Index([str(k + 1) for k in range(self.n_datasets)], name="dataset"),
        )
        if self._posteriors is not None:
            of_rows = self._posteriors.probability.sum(axis=0)
            table.insert(2, "expected_by_models", of_rows)
        mean = table.mean()
        if self.n_datasets < _OVER_DATASETS:
            error = mean * np.nan
        else:
            error = table.std(ddof=1) / np.sqrt(self.n_datasets)
        table.loc["mean"], table.loc["standard error"] = mean, error
        if self._posteriors is not None and self.n_datasets > 1:
            table.loc["together"] = np.nan
            table.loc["together", "expected_by_models"] = self._posteriors.together.sum()
        return table

    @property
    def measures(self) -> RecordMeasures:
        """The probability of the right row by record, without the synthesized values and with.

        By the models where they are given, else by counting matches.
        """
        by_models = self._by_models()
        return self._by_counting() if by_models is None else by_models

    def _by_counting(self) -> RecordMeasures:
        before, after = self._before_and_after()
        exact, all_ = np.zeros(len(self._labels)), np.ones(len(self._labels), dtype=bool)
        return RecordMeasures(measures_of_truth(JOINT, before, after, exact, exact, all_))

    def _by_models(self) -> RecordMeasures | None:
        found = self._posteriors
        if found is None:
            return None
        before, _ = self._before_and_after()
        after, error, reliable = found.together, found.error_together, found.is_reliable_together
        return RecordMeasures(measures_of_truth(JOINT, before, after, error, error, reliable))

    def verdict(self, criteria: Criteria | None = None, *, rows: str = CALLED) -> Verdict:
        """Return whether the release keeps the criteria, as it is.

        Limits are held to the models' probability where they are given, which a release that does
        not look like its models voids; else to the counted one. Both stand in `records`.

        Parameters
        ----------
        criteria
            Limits on ``probability`` (of the right row), ``gain`` (what the synthesized values add
            to it) or ``lift``. By default the gain is at most 0.1.
        rows
            What the verdict calls records: "people", "households".
        """
        return judge_rows(
            _DEFAULT if criteria is None else criteria,
            self._by_counting(),
            self._by_models(),
            self._labels,
            self.known,
            self.release_check,
            () if self._posteriors is None else self._posteriors.linking,
            rows,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save everything to a NetCDF file that its owner alone can read."""
        arrays: dict[str, Any] = {}
        meta = {
            "known": list(self.known),
            "synthesized": list(self.synthesized),
            "radius": pack(self.radius, arrays, "radius"),
            "notes": list(self.notes),
            "matches": pack(self._matches, arrays, "matches"),
            "checks": pack(self.release_check, arrays, "check"),
            "posteriors": pack(self._posteriors, arrays, "posteriors"),
        }
        save(path, Contents(_KIND, meta, arrays, pd.DataFrame(index=self._labels)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IdentificationRisk:
        """Load what `save` wrote."""
        contents = load(path, _KIND)

        def made() -> IdentificationRisk:
            meta, arrays = contents.meta, contents.arrays
            labels, sizes = contents.table.index, {"record": len(contents.table)}
            checks, posteriors = meta.get("checks"), meta.get("posteriors")
            return cls(
                tuple(unpack(str, name, arrays) for name in meta["known"]),
                tuple(unpack(str, name, arrays) for name in meta["synthesized"]),
                {name: unpack(Radius, own, arrays) for name, own in meta["radius"]},
                tuple(unpack(str, note, arrays) for note in meta["notes"]),
                unpack(Matches, meta["matches"], arrays, sizes=sizes),
                labels,
                None if checks is None else ReleaseChecks.from_file(checks, arrays),
                None
                if posteriors is None
                else unpack(RowPosteriors, posteriors, arrays, sizes=sizes),
            )

        return intact(made)


@within_memory
def identification_risk(
    confidential: TableLike,
    synthetic: TableLike | list[TableLike],
    *,
    known: list[str],
    synthesized: list[str],
    radius: float | Radius | Mapping[str, float | Radius],
    id: str | None = None,  # noqa: A002 - as in `fit`
    synthesizer: Synthesizer | None = None,
) -> IdentificationRisk:
    """Return how surely an intruder picks each record's own row of a partly synthetic release.

    For record i and dataset l the matches are the rows whose known variables equal the record's
    and whose synthesized ones are within the radius of its confidential ones: c of them; T = 1 if
    its own row is among them. The expected match risk is Σ T/c, the true match rate the share of
    records with c = T = 1, the false match rate the share of T = 0 among those with c = 1 (Reiter
    & Mitra 2009; Hornby & Hu 2021, whose numbers these are).

    Whoever knows the models that made the release knows that a row's synthetic values do not depend
    on its own record's, so that a match is chance. With `synthesizer` the probability of each
    record's own row for such an intruder stands beside the counts, and a verdict is about it.

    Parameters
    ----------
    confidential
        The records.
    synthetic
        A dataset, or a list of them. Row i is that of record i, unless `id` names the records.
    known
        The released, unsynthesized variables that the intruder knows of a target.
    synthesized
        The synthesized variables that the intruder knows about.
    radius
        How near a synthesized value must be to the confidential one: a share of it (0.1 is ten
        percent), `Radius`, or a mapping of these by variable. It may name a known variable, which
        is then known so roughly. Levels match where they are equal.
    id
        A column that names the records in all files.
    synthesizer
        The models that made the release, fitted by `fit` to the confidential data.

    Examples
    --------
    >>> people = {"Age": [30, 30, 41], "Income": [100.0, 200.0, 300.0]}
    >>> release = {"Age": [30, 30, 41], "Income": [205.0, 190.0, 500.0]}
    >>> risk = identification_risk(
    ...     people, release, known=["Age"], synthesized=["Income"], radius=0.1
    ... )
    >>> risk.records[["c_1", "T_1", "match_risk", "before"]]
       c_1    T_1  match_risk  before
    0    0  False         0.0     0.5
    1    2   True         0.5     0.5
    2    0  False         0.0     1.0
    """
    known_names = column_names(known, "known")
    synthesized_names = column_names(synthesized, "synthesized")
    if not synthesized_names:
        raise OptionError("synthesized= is empty: name the synthesized variables to match by.")
    refuse_overlap(known_names, synthesized_names, ("known", "synthesized"))
    if synthesizer is not None:
        _check_synthesizer(synthesizer, known_names, synthesized_names)
        confidential, synthetic = _read_as_modelled(synthesizer, confidential, synthetic)
    frame, datasets = read_files(confidential, synthetic)
    names = (*known_names, *synthesized_names)
    check_columns(files_of(frame, datasets), names)
    levels = [name for name in names if not is_number(frame[name])]
    own = radii(radius, known_names, synthesized_names, levels)
    frame, placed = in_place(frame, datasets, _checked_id(id))
    refuse_moved(frame, placed, [name for name in known_names if own[name].is_equality])
    found = find_matches(frame, placed, known_names, synthesized_names, own)
    labels = frame.index if id is None else pd.Index(frame[id], name=id)
    risk = IdentificationRisk(
        known_names, synthesized_names, own, _notes(frame, names, own, id), found, labels
    )
    return risk if synthesizer is None else _with_models(risk, synthesizer, frame, placed)


def _with_models(
    risk: IdentificationRisk,
    synthesizer: Synthesizer,
    frame: pd.DataFrame,
    placed: list[pd.DataFrame],
) -> IdentificationRisk:
    """Return a risk with the probability of each record's own row by the models."""
    _refuse_other_records(synthesizer, frame)
    release = read_release(synthesizer.confidential, placed)
    cells, rough = cells_of(files_of(frame, placed), risk.known, risk.radius)
    candidates = [
        Candidates(cells[0], cells[k], tuple((v[k], low, high) for v, low, high in rough))
        for k in range(1, len(cells))
    ]
    radius = {name: risk.radius[name] for name in risk.synthesized}
    exactly = [name for name in risk.known if risk.radius[name].is_equality]
    found = row_posteriors(synthesizer, release, candidates, exactly, radius)
    checks = check_release(synthesizer, release, Serial())
    notes = (*risk.notes, *_notes_on_models(synthesizer, len(placed), found))
    return replace(risk, notes=notes, release_check=checks, _posteriors=found)


def _check_synthesizer(
    synthesizer: Any, known: tuple[str, ...], synthesized: tuple[str, ...]
) -> None:
    if not isinstance(synthesizer, Synthesizer):
        raise OptionError(f"synthesizer= is what synrisk.fit returns; got {got(synthesizer)}.")
    refuse_models(synthesizer, known, synthesized)


def _read_as_modelled(
    synthesizer: Synthesizer, confidential: TableLike, synthetic: Any
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Return the files, with levels read as the synthesizer has them."""
    schema = synthesizer.schema
    datasets = [
        read_dataset(one, f"Synthetic dataset {number}", schema)
        for number, one in enumerate(as_datasets(synthetic), 1)
    ]
    return read_table(confidential, CONFIDENTIAL, text=levels_as_text(schema)), datasets


def _refuse_other_records(synthesizer: Synthesizer, frame: pd.DataFrame) -> None:
    """Raise unless the records are those that the synthesizer was fitted to, in their order."""
    names = synthesizer.plan.columns
    columns, kept = synthesizer.schema.encode(frame, names, CONFIDENTIAL)
    same = bool(kept.all()) and len(frame) == synthesizer.n_records
    differing = (
        [name for name in names if not np.array_equal(columns[name], synthesizer.columns[name])]
        if same
        else []
    )
    if not same or differing:
        what = f"differ in {listed(differing)}" if same else "are others"
        raise DataError(
            f"{CONFIDENTIAL} must be the records that the synthesizer was fitted to, in their "
            f"order (synthesizer.data); they {what}."
        )


def _checked_id(name: Any) -> str | None:
    if name is not None and not isinstance(name, str):
        raise OptionError(f"id= is the name of a column; got {type(name).__name__}.")
    return name


def _notes(
    frame: pd.DataFrame, names: tuple[str, ...], own: Mapping[str, Radius], by: str | None
) -> tuple[str, ...]:
    near = listed(f"{name} {radius.words}" for name, radius in own.items())
    place = "stands in its place" if by is None else f"has the same {by}"
    notes = [
        f"Each record's own row {place} in the release.",
        f"A row matches a record if it has {near}; at a radius itself it does not match.",
        (
            "The intruder has the target's confidential values to match by, and picks one of the "
            "matches without looking further: no model is used, and other records are not known."
        ),
    ]
    n_gaps = int(frame[list(names)].isna().any(axis=1).sum())
    if n_gaps:
        notes.append(f"{counted(n_gaps, 'record')} with missing values: a gap matches a gap.")
    return tuple(notes)


def _notes_on_models(
    synthesizer: Synthesizer, n_datasets: int, found: RowPosteriors
) -> tuple[str, ...]:
    notes = [
        (
            "posterior: the probability of the own row for somebody who knows the models and has "
            "the release, beside what is known of the target. It assumes that the release came "
            "from these models; match_risk assumes nothing, and counts chance matches too."
        )
    ]
    if n_datasets > 1:
        notes.append(
            "posterior is that of somebody who has all datasets, and knows that a row is the same "
            "record's in each; posterior_by_one has one of them, averaged, as match_risk is."
        )
    n_near = int(found.is_approximate.sum())
    if n_near:
        notes.append(
            f"For {counted(n_near, 'record')} posterior is an approximation, right to the second "
            "order in one over the number of records; posterior_mcse has the size of its "
            "correction too."
        )
    weighted = [model.response for model in synthesizer.models if model.record_weights is not None]
    if weighted:
        notes.append(
            f"{listed(weighted)} was fitted with weights, which posterior takes no notice of: it "
            "is approximate there."
        )
    return tuple(notes)
