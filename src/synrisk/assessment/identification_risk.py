"""Identification risk of partly synthetic data: could an intruder pick a person's own row?"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.audit.radius import Radius, radii
from synrisk.audit.row_matches import Matches, find_matches, in_place, refuse_moved
from synrisk.audit.shared_codes import (
    check_columns,
    column_names,
    files_of,
    is_number,
    read_files,
    refuse_overlap,
)
from synrisk.base.arrays import FloatArray
from synrisk.base.errors import OptionError, counted, listed, within_memory
from synrisk.core.measures import JOINT, RecordMeasures, measures_of_truth
from synrisk.data.archive import intact, pack, unpack
from synrisk.data.frames import TableLike
from synrisk.data.netcdf import Contents, load, save
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.reasons import CALLED, PASSED, KnownReason
from synrisk.verdict.verdict import Verdict, judge

_KIND = "an identification risk"  # of file
_DEFAULT = Criteria(gain=0.1)
_RIGHT_ROW = "right row"
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
    """

    known: tuple[str, ...]
    synthesized: tuple[str, ...]
    radius: Mapping[str, Radius]
    notes: tuple[str, ...]
    _matches: Matches
    _labels: pd.Index[Any]

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
        """
        found = self._matches
        before, after = self._before_and_after()
        columns: dict[str, Any] = {
            "match_risk": after,
            "before": before,
            "gain": after - before,
        }
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
        (``unique_matches`` of them). The standard error needs two datasets.
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
        mean = table.mean()
        if self.n_datasets < _OVER_DATASETS:
            error = mean * np.nan
        else:
            error = table.std(ddof=1) / np.sqrt(self.n_datasets)
        table.loc["mean"], table.loc["standard error"] = mean, error
        return table

    @property
    def measures(self) -> RecordMeasures:
        """The probability of the right row by record, without the synthesized values and with."""
        before, after = self._before_and_after()
        exact, all_ = np.zeros(len(self._labels)), np.ones(len(self._labels), dtype=bool)
        return RecordMeasures(measures_of_truth(JOINT, before, after, exact, exact, all_))

    def verdict(self, criteria: Criteria | None = None, *, rows: str = CALLED) -> Verdict:
        """Return whether the release keeps the criteria, as it is.

        Parameters
        ----------
        criteria
            Limits on ``probability`` (of the right row), ``gain`` (what the synthesized values add
            to it) or ``lift``. By default the gain is at most 0.1.
        rows
            What the verdict calls records: "people", "households".
        """
        criteria = _DEFAULT if criteria is None else criteria
        if isinstance(criteria, Criteria):
            if not criteria.limits:
                raise OptionError(
                    "An identification is of all variables together: the criteria need a limit "
                    "beside variables=, such as Criteria(gain=0.1)."
                )
            if "log_odds_range" in criteria.limits:
                raise OptionError(
                    "An identification risk has no log_odds_range; limit gain, probability or lift."
                )
        gain = self.measures[JOINT, "gain"]
        n_found = int((gain.before == 1.0).sum())
        return judge(
            criteria,
            self.measures,
            self._labels,
            None,
            len(self._labels),
            rows=rows,
            sought=_RIGHT_ROW,
            about_release=(KnownReason(PASSED, self.known, n_found, len(self._labels), rows),),
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
        }
        save(path, Contents(_KIND, meta, arrays, pd.DataFrame(index=self._labels)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IdentificationRisk:
        """Load what `save` wrote."""
        contents = load(path, _KIND)

        def made() -> IdentificationRisk:
            meta, arrays = contents.meta, contents.arrays
            labels = contents.table.index
            return cls(
                tuple(unpack(str, name, arrays) for name in meta["known"]),
                tuple(unpack(str, name, arrays) for name in meta["synthesized"]),
                {name: unpack(Radius, own, arrays) for name, own in meta["radius"]},
                tuple(unpack(str, note, arrays) for note in meta["notes"]),
                unpack(Matches, meta["matches"], arrays, sizes={"record": len(labels)}),
                labels,
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
) -> IdentificationRisk:
    """Return how surely an intruder picks each record's own row of a partly synthetic release.

    For record i and dataset l the matches are the rows whose known variables equal the record's
    and whose synthesized ones are within the radius of its confidential ones: c of them; T = 1 if
    its own row is among them. The expected match risk is Σ T/c, the true match rate the share of
    records with c = T = 1, the false match rate the share of T = 0 among those with c = 1 (Reiter
    & Mitra 2009; Hornby & Hu 2021, whose numbers these are).

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
    frame, datasets = read_files(confidential, synthetic)
    names = (*known_names, *synthesized_names)
    check_columns(files_of(frame, datasets), names)
    levels = [name for name in names if not is_number(frame[name])]
    own = radii(radius, known_names, synthesized_names, levels)
    frame, placed = in_place(frame, datasets, _checked_id(id))
    refuse_moved(frame, placed, [name for name in known_names if own[name].is_equality])
    found = find_matches(frame, placed, known_names, synthesized_names, own)
    labels = frame.index if id is None else pd.Index(frame[id], name=id)
    return IdentificationRisk(
        known_names, synthesized_names, own, _notes(frame, names, own, id), found, labels
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
