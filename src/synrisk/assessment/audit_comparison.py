"""Several audits side by side: what each release teaches, and how useful it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synrisk.assessment.audit_result import Audit
from synrisk.assessment.comparison_result import (
    Comparison,
    as_table,
    check_same_data,
    model_of,
    notes_on,
    row_of_measures,
    row_of_utility,
)
from synrisk.base.errors import OptionError, listed
from synrisk.core.measures import JOINT
from synrisk.data.schema import Factor
from synrisk.plots.of_comparison import NO, YES
from synrisk.utility import Utility, utility
from synrisk.verdict.criteria import Criteria


def compare_audits(
    audits: Mapping[str, Audit], criteria: Criteria | None, options: Mapping[str, Any]
) -> Comparison:
    """Return what several releases of the same people teach about them.

    Parameters
    ----------
    audits
        By name.
    criteria
        Limits for a verdict on each, or None.
    options
        Of `utility`.
    """
    check_same_data({name: one.people for name, one in audits.items()})
    names = _shared_columns(audits)
    if options["variables"] is None:
        options = {**options, "variables": names}
    utilities = {name: _utility(one, options) for name, one in audits.items()}
    model = model_of(utilities.values())
    rows = {
        name: {
            **_risk_row(one),
            **row_of_utility(utilities[name], model),
            **({} if criteria is None else {"verdict": one.verdict(criteria).outcome}),
            **_judged(one),
        }
        for name, one in audits.items()
    }
    cautions, said = _fairness(audits)
    return Comparison(as_table(rows), audits, utilities, notes_on(model, said, utilities), cautions)


def _shared_columns(audits: Mapping[str, Audit]) -> tuple[str, ...]:
    """Return the columns that all audits compare."""
    first, *others = audits.values()
    shared = tuple(
        name for name in first.people.columns if all(name in one.people.columns for one in others)
    )
    if not shared:
        raise OptionError("compare: the audits have no column in common.")
    return shared


def _utility(audit: Audit, options: Mapping[str, Any]) -> Utility:
    """Return how useful a release is; rows with a gap are left out."""
    levels = {
        name: list(variable.levels)
        for name, variable in audit.variables.items()
        if isinstance(variable, Factor)
    }
    return utility(audit.people, list(audit.release), types=levels, missing="drop", **options)


def _risk_row(audit: Audit) -> dict[str, Any]:
    return {
        "n_datasets": audit.n_datasets,
        **row_of_measures(audit.measures),
        "too_close": int(audit.copies.named.sum()),
        "reliable": float(audit.measures[JOINT, "gain"].reliable.mean()),
    }


def _judged(audit: Audit) -> dict[str, str]:
    """Return whether gains are all that is to be said: rows that are copies tell more."""
    found = audit.copies.found or audit.copies.doubts
    if not found:
        return {"judged": YES, "why": ""}
    return {"judged": NO, "why": " ".join(one.sentence for one in found)}


def _fairness(audits: Mapping[str, Audit]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what makes the audits no fair comparison: in a few words, and in sentences."""
    cautions, notes = [], []
    if len({frozenset(one.measures.variables) for one in audits.values()}) > 1:
        cautions.append("sensitive columns differ")
        sought = "; ".join(
            f"{name!r}: {listed(one.measures.variables)}" for name, one in audits.items()
        )
        notes.append(
            f"The audits seek other columns ({sought}); what is learnt of more columns is not what "
            "is learnt of fewer."
        )
    if len({None if one.keys is None else frozenset(one.keys) for one in audits.values()}) > 1:
        cautions.append("known columns differ")
        notes.append(
            "The audits take the intruder to know other columns (keys), so compare them with the "
            "same ones."
        )
    return tuple(cautions), tuple(notes)
