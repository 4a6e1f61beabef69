"""Risk and utility of several releases side by side: the result that users hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.assessment.attribute_result import AttributeRisk
from synrisk.assessment.audit_result import Audit
from synrisk.base.errors import OptionError, listed
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.core.ranks import TIE
from synrisk.data.schema import equal_rows
from synrisk.plots.of_comparison import NO, UNCHECKED, ComparisonPlots
from synrisk.utility import Utility

ONE_RELEASE = (
    "One release is one realisation: its records share the draw of the parameters, so a difference "
    "between releases may be luck."
)
SAME = 1e-9  # of a number: what a trip through CSV may change


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Risk and utility of several releases.

    Made by `compare`.

    Attributes
    ----------
    table
        A row a release: ``n_datasets``; over records the mean ``prior``, ``probability``,
        ``gain_q95``, ``gain_max`` of all variables together and ``gain_max_of_one``, the largest
        of any one of them, ``lift_mean``, ``lift_q95``, ``lift_max``,
        ``share_above_prior`` and ``log_odds_range_q95``, the share ``reliable``; ``pmse_ratio``,
        ``specks``, ``overlap`` and ``overlap_as_data`` (means; `Utility.summary`); ``verdict``,
        where there are criteria; ``judged``, whether the risk can be judged ("yes", "no", "not
        checked", or "accepted": not checked, and the criteria accept that), and ``why`` not.
        ``reliable`` is NaN where Monte-Carlo errors are not known (``diagnostics=False``, the
        estimator "paper"). Of audits there is no ``log_odds_range_q95``, but ``too_close``, how
        many people are named as copied.
    risks, utilities
        The results by name.
    notes
        What a reader of the table should know.
    cautions
        Why risks are no fair comparison, in a few words for plots; the notes tell more.
    """

    table: pd.DataFrame
    risks: Mapping[str, AttributeRisk | Audit]
    utilities: Mapping[str, Utility]
    notes: tuple[str, ...]
    cautions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shaky = self.table.index[self.table["judged"].isin([NO, UNCHECKED])]
        said = f"; the risk of {listed(shaky)} cannot be judged" if len(shaky) else ""
        return f"<Comparison: {listed(self.table.index)}{said}>"

    @property
    def plot(self) -> ComparisonPlots:
        """Plots: ``comparison.plot.map()`` and ``.curve()``."""
        synthesizers = [
            id(risk.synthesizer) for risk in self.risks.values() if isinstance(risk, AttributeRisk)
        ]
        first = list(dict.fromkeys(synthesizers))
        groups = [first.index(one) for one in synthesizers]
        return ComparisonPlots(self.table, groups, self.cautions)


def row_of_measures(measures: RecordMeasures) -> dict[str, float]:
    """Return what a row of the table says of a risk, whatever kind it is of."""
    gain, lift = measures[JOINT, "gain"], measures[JOINT, "lift"].value
    of_one = [float(measures[name, "gain"].value.max()) for name in measures.variables]
    return {
        "prior": float(gain.before.mean()),
        "probability": float(gain.after.mean()),
        "gain_q95": float(np.quantile(gain.value, 0.95)),
        "gain_max": float(gain.value.max()),
        "gain_max_of_one": max(of_one),
        "lift_mean": float(lift.mean()),
        "lift_q95": float(np.quantile(lift, 0.95)),
        "lift_max": float(lift.max()),
        "share_above_prior": float((lift > np.exp(TIE)).mean()),
    }


def row_of_utility(found: Utility, model: str) -> dict[str, float]:
    """Return what a row of the table says of a utility."""
    value = found.summary()["value"]
    return {
        "pmse_ratio": float(value.get(f"pmse_ratio_{model}", np.nan)),
        "specks": float(value.get(f"specks_{model}", np.nan)),
        "overlap": float(value["overlap"]),
        "overlap_as_data": float(value["overlap_as_data"]),
    }


def model_of(utilities: Iterable[Utility]) -> str:
    """Return the propensity model that the table shows: the richest that all have."""
    known = [set(one.propensity.index.get_level_values("model")) for one in utilities]
    shared = set.intersection(*known)
    return next((name for name in ("interactions", "main", "cart") if name in shared), "")


def as_table(rows: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return a row a release."""
    return pd.DataFrame.from_dict(dict(rows), orient="index").rename_axis("release")


def notes_on(model: str, said: Iterable[str], utilities: Mapping[str, Utility]) -> tuple[str, ...]:
    """Return what a reader of the table should know."""
    return (
        *([f"pmse_ratio and specks are of the propensity model {model!r}."] if model else []),
        *said,
        ONE_RELEASE,
        *(f"{name}: {note}" for name, one in utilities.items() for note in one.notes),
    )


def check_same_data(tables: Mapping[str, pd.DataFrame]) -> None:
    """Raise unless all are of the same records: their numbers could not be compared.

    Labels do not tell: after `reset_index` those of any two halves of a table are the same.
    """
    first, *others = tables
    own = tables[first]
    for name in others:
        data = tables[name]
        if not own.index.equals(data.index):
            raise OptionError(
                f"compare: {first!r} and {name!r} are not of the same confidential records."
            )
        shared = own.columns.intersection(data.columns)
        differ = [
            column
            for column in shared
            if not equal_rows(own[column], data[column], rtol=SAME).all()
        ]
        if differ:
            raise OptionError(
                f"compare: {first!r} and {name!r} are not of the same confidential records: they "
                f"have the same labels, but other values of {listed(differ)}."
            )
