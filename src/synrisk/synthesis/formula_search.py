"""An order of synthesis and short formulas, by leave-one-out prediction.

Every column becomes a few numbers: its value on the scale of its model, or an indicator of each of
its levels. Least squares predict these, each record by a fit without it (in closed form, by
leverages); what that explains of a column says how well others predict it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import as_real_numbers
from synrisk.models.formula.parser import parse
from synrisk.models.formula.transforms import Transform
from synrisk.synthesis.column_kinds import ColumnKind
from synrisk.synthesis.relations import sampled

_MOST_ROWS = 2_000
_MOST_PREDICTORS = 3
_LEAST_GAIN = 0.01  # of the variance, that a further predictor must explain
_ROWS_A_COEFFICIENT = 10
_MOST_PREDICTOR_LEVELS = 10
_LEAST_IN_A_LEVEL = 5
_NEGLIGIBLE = 1e-9  # singular values, of the largest
_ALONE = 1e-6  # what is left of a record's weight where it alone settles a coefficient


@dataclass(frozen=True, repr=False)
class Encoded:
    """A column as numbers, of a sample of the rows.

    Attributes
    ----------
    response
        What is predicted, ``(row, number)``.
    predictor
        What it predicts others by; None where it has too many or too rare levels.
    known
        The rows in which it has a value.
    """

    response: FloatArray
    predictor: FloatArray | None
    known: BoolArray


@dataclass(frozen=True)
class Found:
    """A column's predictors, with what they explain of it together, one after the other."""

    name: str
    predictors: tuple[str, ...]
    explained: tuple[float, ...]


def encode(
    frame: pd.DataFrame, kinds: Mapping[str, ColumnKind], modelled: Sequence[str]
) -> dict[str, Encoded]:
    """Encode columns; those that are `modelled` predict others as their model has them."""
    rows = frame.iloc[sampled(len(frame), _MOST_ROWS)]
    return {
        name: _encoded(rows[name], kinds[name], name in modelled) for name in kinds if name in rows
    }


def _encoded(column: pd.Series[Any], kind: ColumnKind, modelled: bool) -> Encoded:
    numeric = pd.api.types.is_numeric_dtype(column.dtype) and not kind.is_category
    if not numeric or (kind.has_levels and modelled):
        return _encoded_levels(column, kind)
    values = as_real_numbers(column)[0]
    known = np.isfinite(values)
    with np.errstate(all="ignore"):
        response = Transform((kind.scale,) if kind.scale else ()).apply(values)[:, None]
        term = parse(f"{kind.as_predictor.format('x')} ~ 1")
        predictor = term.transform.apply(values)[:, None]
    return Encoded(response, predictor, known)


def _encoded_levels(column: pd.Series[Any], kind: ColumnKind) -> Encoded:
    codes, levels = pd.factorize(column, sort=kind.kind == "ordered")
    known = codes >= 0
    indicators = (codes[:, None] == np.arange(len(levels))).astype(np.float64)
    counts = indicators.sum(axis=0)
    few = len(levels) <= _MOST_PREDICTOR_LEVELS and counts.min() >= _LEAST_IN_A_LEVEL
    response = codes[:, None].astype(np.float64) if kind.kind == "ordered" else indicators[:, 1:]
    return Encoded(response, indicators[:, 1:] if few else None, known)


def in_order(
    encoded: Mapping[str, Encoded],
    given: Sequence[str],
    wanted: Sequence[str],
    n_coefficients: Mapping[str, int],
) -> list[Found]:
    """Return the wanted columns in an order in which each is well predicted by those before it.

    Parameters
    ----------
    encoded
        The columns.
    given
        Those that are there before any is synthesized.
    wanted
        Those to be synthesized.
    n_coefficients
        For each of these, how many coefficients a column of its design has.
    """
    left, before, found = list(wanted), list(given), []
    alone = {
        (name, other): _explained(encoded[name], [encoded[other]])
        for name in wanted
        for other in (*given, *wanted)
        if other != name and encoded[other].predictor is not None
    }
    while left:
        best = max(left, key=lambda name: _worth(name, before, left, alone))
        found.append(_formula(best, before, encoded, n_coefficients[best]))
        left.remove(best)
        before.append(best)
    return found


def _worth(
    name: str,
    before: Sequence[str],
    left: Sequence[str],
    alone: Mapping[tuple[str, str], float],
) -> tuple[float, float]:
    """Return how well a column is predicted by one before it, and how well it predicts others."""
    own = max((alone.get((name, other), 0.0) for other in before), default=0.0)
    others = sum(max(alone.get((other, name), 0.0), 0.0) for other in left if other != name)
    return (round(own, 3), others)


def _formula(
    name: str, before: Sequence[str], encoded: Mapping[str, Encoded], n_coefficients: int
) -> Found:
    """Add predictors one by one, as long as each explains enough."""
    own, chosen, explained = encoded[name], list[str](), list[float]()
    most = int(own.known.sum()) // (_ROWS_A_COEFFICIENT * n_coefficients)
    while len(chosen) < _MOST_PREDICTORS:
        tried = {}
        for other in before:
            design = [encoded[one] for one in (*chosen, other)]
            if other not in chosen and 1 + sum(_width(one) for one in design) <= most:
                tried[other] = _explained(own, design)
        best = max(tried, key=lambda other: tried[other], default=None)
        if best is None or tried[best] < (explained[-1] if explained else 0.0) + _LEAST_GAIN:
            break
        chosen.append(best)
        explained.append(tried[best])
    return Found(name, tuple(chosen), tuple(explained))


def _width(encoded: Encoded) -> int:
    """Return the columns of a design, more than any where it predicts nothing."""
    return 10**9 if encoded.predictor is None else encoded.predictor.shape[1]


def _explained(own: Encoded, design: Sequence[Encoded]) -> float:
    """Return the share of the squares about the mean that predictions without the record save."""
    parts = [one.predictor for one in design if one.predictor is not None]
    rows = own.known & np.all([one.known for one in design], axis=0)
    n = int(rows.sum())
    if len(parts) < len(design) or n <= 2 + sum(part.shape[1] for part in parts):
        return -np.inf
    x = np.concatenate([part[rows] for part in parts], axis=1)
    y = own.response[rows] - own.response[rows].mean(axis=0)
    x = x - x.mean(axis=0)
    spread = x.std(axis=0)
    total = float((y * y).sum())
    if not total or not (spread > 0).all() or not np.isfinite(x).all():
        return -np.inf
    basis, size, _ = np.linalg.svd(x / spread, full_matrices=False)
    basis = basis[:, size > _NEGLIGIBLE * size[0]]
    rest = 1.0 - 1.0 / n - (basis * basis).sum(axis=1)  # one less the leverage
    errors = (y - basis @ (basis.T @ y)) / np.maximum(rest, _ALONE)[:, None]
    return 1.0 - float((errors * errors).sum()) / (total * (n / (n - 1)) ** 2)
