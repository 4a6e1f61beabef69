"""What can be wrong with a regression's data: collinear columns, no noise, separation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import DataError, listed
from synrisk.models.design_columns import DesignColumn
from synrisk.models.families import Family

_DEPENDENT = 1e-11  # the smallest eigenvalue of the columns' correlations
_INVOLVED = 1e-4  # the least share of a column in a dependency
_SAME = 1e-13  # values closer than this, relatively, are the same but for rounding
_EXTREME = 1e100
_NO_NOISE = 1e-12  # the share of the response's variance that predictors leave


def variance_inflation(
    standardised: FloatArray, columns: Sequence[DesignColumn], what: str
) -> FloatArray:
    """Return each column's variance inflation factor; raise where columns are dependent.

    The intercept has none (NaN), nor has a column without records (a level that nobody has): its
    coefficient is the prior's.
    """
    factors = np.full(len(columns), np.nan)
    used = [k for k, column in enumerate(columns) if column.parts and standardised[:, k].any()]
    if not used:
        return factors
    part = standardised[:, used]
    size = np.sqrt((part * part).sum(axis=0))
    correlations = (part / size).T @ (part / size)
    values, vectors = np.linalg.eigh(correlations)
    if values[0] < _DEPENDENT:
        involved = np.abs(vectors[:, 0]) > _INVOLVED
        names = [columns[k].public for k, one in zip(used, involved, strict=True) if one]
        raise DataError(
            f"{what}: the columns {listed(names, 20)} are collinear: one follows from the others, "
            "so their coefficients cannot be told apart. Leave one out."
        )
    factors[used] = np.diag(np.linalg.inv(correlations))
    return factors


def refuse_extreme_scales(matrix: FloatArray, y: FloatArray, what: str) -> None:
    """Raise where squares of values over- or underflow."""
    for name, values in (("the response", y), ("a predictor", matrix)):
        size = np.abs(values).max(axis=0, initial=0.0)
        if ((size > _EXTREME) | ((size > 0) & (size < 1.0 / _EXTREME))).any():
            raise DataError(f"{what}: {name} is on an extreme scale; use other units.")


def refuse_constant_columns(matrix: FloatArray, columns: Sequence[DesignColumn], what: str) -> None:
    """Raise where a column beside the intercept has one value; a level may lack records."""
    constant = []
    for k, column in enumerate(columns):
        size = float(np.abs(matrix[:, k]).max())
        is_level = any(part.level is not None for part in column.parts)
        if (
            column.parts
            and float(np.ptp(matrix[:, k])) <= _SAME * size
            and not (is_level and not size)
        ):
            constant.append(column.public)
    if constant:
        raise DataError(
            f"{what}: {listed(constant)} has the same value for every record, so its coefficient "
            "cannot be told from the intercept. Leave it out."
        )


def refuse_certain_response(
    standardised: FloatArray, y: FloatArray, what: str, *, centre: bool
) -> None:
    """Raise where a continuous response does not vary, or follows from its predictors."""
    apart = y - y.mean()
    if np.abs(apart).max() <= _SAME * np.abs(y).max():
        raise DataError(f"{what}: the response has the same value for every record.")
    if len(y) <= standardised.shape[1]:
        return  # as many coefficients as records: no noise is left, whatever the response
    whole = apart if centre else y
    estimate, _, _, _ = np.linalg.lstsq(standardised, whole)
    left = float(((whole - standardised @ estimate) ** 2).sum())
    if left < _NO_NOISE * float((whole**2).sum()):
        raise DataError(
            f"{what}: the response follows from its predictors without any noise, so there is no "
            "sigma to estimate. Is a predictor a copy or a transform of it?"
        )


def separated_columns(
    family: Family, y: FloatArray, matrix: FloatArray, columns: Sequence[DesignColumn]
) -> list[tuple[int | None, str]]:
    """Return the columns that settle an outcome, with a name; None stands for a reference level.

    Looked for one column at a time: a level at which some outcome never occurs, and a number whose
    ranges do not overlap between outcomes.
    """
    events = [event for event in family.events(y) if event.any() and not event.all()]
    found: list[tuple[int | None, str]] = []
    levels: dict[str, BoolArray] = {}
    for k, column in enumerate(columns):
        if len(column.parts) != 1:
            continue
        if column.parts[0].level is None:
            if family.is_classification and _parts_outcomes(matrix[:, k], events):
                found.append((k, column.public))
            continue
        inside = matrix[:, k] != 0
        factor = column.public.rpartition("[")[0]
        levels[factor] = levels.get(factor, np.zeros(len(y), dtype=bool)) | inside
        if _lacks_an_outcome(inside, events):
            found.append((k, column.public))
    found += [
        (None, f"{factor}[reference]")
        for factor, others in levels.items()
        if _lacks_an_outcome(~others, events)
    ]
    return found


def _parts_outcomes(values: FloatArray, events: Sequence[BoolArray]) -> bool:
    """Tell whether the ranges of a number do not overlap between two outcomes."""
    ranges = [(values[event], values[~event]) for event in events]
    parts = any(a.max() <= b.min() or b.max() <= a.min() for a, b in ranges)
    return parts and len(np.unique(values)) > 1


def _lacks_an_outcome(at_level: BoolArray, events: Sequence[BoolArray]) -> bool:
    """Tell whether some outcome never occurs at a level that records have."""
    return bool(at_level.any()) and any(not event[at_level].any() for event in events)


def has_one_outcome(family: Family, y: FloatArray) -> bool:
    """Tell whether an outcome that matters never occurs, or always."""
    events = family.events(y)
    alone = len(events) == 1 and family.is_classification
    return alone or any(not event.any() for event in events)


def separation_notes(
    response: str, found: Sequence[str], *, completely: bool, constant: bool
) -> tuple[str, ...]:
    """Return what to say about separation."""
    if constant:
        note = "has the same outcome for every record, so its coefficients are the prior's."
        return (f"{response} {note}",)
    if not found and not completely:
        return ()
    by = listed(found, 20) if found else "a combination of its predictors"
    if completely:
        settled = f"separated completely by {by}: every record's outcome is settled, so the size"
        text = f"{response} is {settled} of the coefficients is the prior's."
    else:
        settled = f"separated by {by}: an outcome of all records there is settled, so the size of"
        text = f"{response} is {settled} these coefficients is the prior's."
    return (text,)
