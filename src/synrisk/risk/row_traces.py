"""Traces that confidential values leave in rows which stand for their records.

Not in the values themselves, which are compared elsewhere, but in what goes with them: which people
are there and how often, the order of rows, last digits, labels, values that are brought to a bound,
who is among the largest, and columns that were kept but not as they were. If the models drew the
release, none of that goes with what a record has beyond its model's mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, pdtrc
from scipy.stats import rankdata

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.data.schema import as_real_numbers
from synrisk.risk.linked_rows import residuals_of_records, residuals_of_rows
from synrisk.risk.row_groups import groupings, kept_codes
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_LEAST = 20  # pairs of a record and a row
_N_BINS = 10  # of a kept number or a linear predictor, within which is compared
_N_DIGITS = 8  # decimals, from a tenth of a standard deviation downwards
_TOP = (5, 10, 20)
_SORTED = 0.95  # of steps from a row to the next, in one direction
_MOST_KEYS = 4  # columns by which rows may have been sorted, one within the other
_ROUNDING = 3e-5  # of a feature's spread
_LEAST_COMMON = 3  # times that a value occurs


class Sign(NamedTuple):
    """One thing that may be a trace, of a table or a block of it.

    Attributes
    ----------
    what
        By which it is known again in another block.
    z
        A correlation in standard deviations of chance, of either sign; NaN of what is counted.
    found, expected
        How often something was found, and would be by chance.
    """

    what: str
    z: float
    found: int = 0
    expected: float = math.nan

    @property
    def p(self) -> float:
        """The probability of as much."""
        if math.isnan(self.z):
            return float(pdtrc(self.found - 1, self.expected)) if self.found else 1.0
        return float(2.0 * ndtr(-abs(self.z)))


def trace(synthesizer: Synthesizer, dataset: Released) -> float | None:
    """Return the probability of as plain a trace, times the number of those looked for."""
    return plainest([signs(synthesizer, dataset)])


def plainest(blocks: Sequence[Sequence[Sign]]) -> float | None:
    """Return the probability of as plain a trace, in a block or in all of them together.

    Times the number of those looked for; None where nothing was.
    """
    p = [one.p for of_block in blocks for one in of_block]
    if len(blocks) > 1:
        by_what: dict[str, list[Sign]] = {}
        for of_block in blocks:
            for one in of_block:
                by_what.setdefault(one.what, []).append(one)
        p += [_together(same).p for same in by_what.values() if len(same) > 1]
    return min(min(p) * len(p), 1.0) if p else None


def _together(same: Sequence[Sign]) -> Sign:
    """Return what the same sign says of several blocks: normal and Poisson numbers add up."""
    z = sum(one.z for one in same) / math.sqrt(len(same))
    return Sign(same[0].what, z, sum(one.found for one in same), sum(one.expected for one in same))


def signs(synthesizer: Synthesizer, dataset: Released) -> list[Sign]:
    """Return everything that may be a trace."""
    with np.errstate(all="ignore"):
        return list(_signs(synthesizer, dataset))


def _signs(synthesizer: Synthesizer, dataset: Released) -> Iterator[Sign]:
    kept = _strata(synthesizer, dataset)
    yield from _of_numbers(synthesizer, dataset, kept)
    for groups in groupings(synthesizer, dataset):
        if not (groups.is_by_place or groups.name_most):
            continue
        records, rows = groups.pairs()
        if len(records) < _LEAST:
            continue
        truths = _truths(synthesizer)[records]
        features = {**_digits(synthesizer, dataset), **_labels(dataset)}
        told = {name: values[rows] for name, values in features.items()}
        yield from _associations(truths, told, kept[records])
        if not groups.is_by_place:
            sorted_by = _sorted_by(dataset)
            within = sorted_by[rows] if sorted_by.any() else kept[records]
            yield from _associations(truths, {"order": rows.astype(np.float64)}, within)
        for name, changed, own in _changes(synthesizer, dataset):
            yield from _associations(truths, {name: changed[rows]}, own[records])
        for model in synthesizer.models:
            yield from _of_values(synthesizer, model, dataset, records, rows)
            if model.regression.distribution.is_continuous:
                # The size of what a row misses its mean by tells nothing of its sign.
                size = np.abs(residuals_of_rows(synthesizer, model, dataset)[rows, 0])
                of_size = {f"size of {model.response}": size}
                yield from _associations(truths, of_size, kept[records])
                of_both = {f"both sizes of {model.response}": size}
                yield from _associations(np.abs(truths), of_both, kept[records])


def _truths(synthesizer: Synthesizer) -> FloatArray:
    """Return what records have beyond their models' means, ``(record, predictor of any model)``."""
    return np.column_stack(
        [residuals_of_records(synthesizer, model) for model in synthesizer.models]
    )


def _strata(synthesizer: Synthesizer, dataset: Released) -> IntArray:
    """Return a cell for each record by what is kept of it, numbers in bins; 0 where too few."""
    columns = []
    for name, codes in kept_codes(synthesizer, dataset).items():
        numbers, n_text = as_real_numbers(synthesizer.data[name])
        if not n_text and len(np.unique(numbers)) > _N_BINS:
            columns.append(_binned(numbers))
        else:
            columns.append(codes.records)
    strata = np.zeros(synthesizer.n_records, dtype=np.int64)
    for column in columns:
        finer = pd.MultiIndex.from_arrays([strata, column]).factorize()[0]
        if len(finer) >= _N_BINS * (int(finer.max(initial=0)) + 1):
            strata = finer
    return strata


def _binned(numbers: FloatArray) -> IntArray:
    edges = np.nanquantile(numbers, np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1])
    return np.asarray(np.searchsorted(edges, numbers, side="right"))


def _associations(
    truths: FloatArray, features: Mapping[str, FloatArray], within: IntArray
) -> Iterator[Sign]:
    """Yield correlations of ranks, within strata.

    Nothing of what is constant there, nor of rows about which something is not known.
    """
    if not features:
        return
    told = np.column_stack(list(features.values()))
    known = np.isfinite(truths).all(axis=1) & np.isfinite(told).all(axis=1)
    codes = np.unique(within[known], return_inverse=True)[1]
    df = int(known.sum()) - int(codes.max(initial=-1)) - 2
    if df < _LEAST // 2:
        return
    one, other = (_centred_scores(of[known], codes) for of in (truths, told))
    sizes = np.sqrt(np.sum(one**2, axis=0)), np.sqrt(np.sum(other**2, axis=0))
    z = math.sqrt(df) * (one.T @ other) / np.outer(*sizes)
    # What is left where the feature follows from the strata is rounding.
    varies = [size > _ROUNDING * math.sqrt(len(one)) for size in sizes]
    for k, of_truth in enumerate(z):
        for j, (name, value) in enumerate(zip(features, of_truth, strict=True)):
            if varies[0][k] and varies[1][j]:
                yield Sign(f"{name}, {k}", float(value))


def _centred_scores(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return the normal scores of each column's ranks, beyond the mean of their stratum."""
    scores = ndtri((rankdata(values, axis=0) - 0.5) / len(values))
    means = [np.bincount(codes, column) for column in scores.T]
    return np.asarray(scores - (np.column_stack(means) / np.bincount(codes)[:, None])[codes])


def _of_numbers(synthesizer: Synthesizer, dataset: Released, kept: IntArray) -> Iterator[Sign]:
    """Yield whether those who are there, and how often, differ from others in what is hidden."""
    codes = list(kept_codes(synthesizer, dataset).values())
    if not codes or len(dataset.kept) == 0:
        return
    both = pd.MultiIndex.from_arrays(
        [np.concatenate([of.records, of.rows]) for of in codes]
    ).factorize()[0]
    own, theirs = both[: synthesizer.n_records], both[synthesizer.n_records :]
    size = int(both.max()) + 1
    n_records, n_rows = np.bincount(own, minlength=size), np.bincount(theirs, minlength=size)
    often = (n_rows / np.maximum(n_records, 1))[own]
    if np.ptp(often) == 0.0:
        return
    yield from _associations(_truths(synthesizer), {"how often": often}, kept)


def _digits(synthesizer: Synthesizer, dataset: Released) -> dict[str, FloatArray]:
    """Return the decimals of synthesized numbers that a model leaves to chance, and parities."""
    found = {}
    for model in synthesizer.models:
        values = dataset.columns[model.response].astype(np.float64)
        if not model.regression.distribution.is_continuous or not np.std(values) > 0.0:
            continue
        first = math.floor(math.log10(float(np.std(values)) / 10.0))
        for step in 10.0 ** np.arange(first, first - _N_DIGITS, -1, dtype=np.float64):
            name = f"{model.response} by {step:g}"
            found[f"fraction of {name}"] = np.mod(values, step) / step
            found[f"parity of {name}"] = np.mod(np.floor(values / step + 1e-6), 2.0)
    return found


def _sorted_by(dataset: Released) -> IntArray:
    """Return the rows' places in the values that they were sorted by, as far as these are there."""
    frame = dataset.frame[dataset.kept]
    columns = []
    for name in frame.columns:
        column = frame[name].astype(str) if frame[name].dtype == object else frame[name]
        columns.append(pd.factorize(column, sort=True)[0])
    within = np.zeros(int(dataset.kept.sum()), dtype=np.int64)
    for _ in range(_MOST_KEYS):
        same = np.diff(within) == 0
        rising = [_share_rising(np.diff(codes)[same]) for codes in columns]
        if not rising or max(rising) < _SORTED:
            break
        key = columns.pop(int(np.argmax(rising)))
        within = pd.MultiIndex.from_arrays([within, key]).factorize()[0]
    return within


def _share_rising(steps: IntArray) -> float:
    """Return the share of steps in one direction; 0 where there is none."""
    moved = steps[steps != 0]
    return float(max((moved > 0).mean(), (moved < 0).mean())) if len(moved) else 0.0


def _labels(dataset: Released) -> dict[str, FloatArray]:
    """Return the parities and last digits of the rows' labels, where these are no count."""
    labels = dataset.frame.index
    if isinstance(labels, pd.MultiIndex) or not pd.api.types.is_numeric_dtype(labels.dtype):
        return {}
    numbers = labels.to_numpy(dtype=np.float64)[dataset.kept]
    if len(numbers) and not (np.diff(np.sort(numbers)) == 1).all():
        return {
            "parity of labels": np.mod(np.floor(numbers), 2.0),
            "last digit of labels": np.mod(numbers, 10.0),
        }
    return {}


def _changes(
    synthesizer: Synthesizer, dataset: Released
) -> Iterator[tuple[str, FloatArray, IntArray]]:
    """Yield columns that were kept but not as they were, and the record's own values of them.

    One that was rounded or put in wider groups is the same for all records of one value.
    """
    for name, codes in kept_codes(synthesizer, dataset).items():
        numbers, n_text = as_real_numbers(dataset.frame[name][dataset.kept])
        if n_text:
            numbers = codes.rows.astype(np.float64)
        known = np.nan_to_num(numbers, nan=np.nanmin(numbers, initial=0.0) - 1.0)
        yield f"change of {name}", known, codes.records


def _of_values(
    synthesizer: Synthesizer, model: Model, dataset: Released, records: IntArray, rows: IntArray
) -> Iterator[Sign]:
    """Yield whether the largest, and common values, are those of the same people.

    The number of both is about Poisson, and less spread, if rows are others'.
    """
    name = model.response
    if not model.regression.distribution.is_continuous:
        return
    truth = residuals_of_records(synthesizer, model)[records, 0]
    drawn = residuals_of_rows(synthesizer, model, dataset)[rows, 0]
    n = len(rows)
    for sign in (1.0, -1.0):
        own, theirs = (np.argsort(-sign * of) for of in (truth, drawn))
        for k in (k for k in _TOP if 4 * k <= n):
            both = len(np.intersect1d(own[:k], theirs[:k]))
            yield Sign(
                f"{k} {'largest' if sign > 0 else 'least'} {name}", math.nan, both, k * k / n
            )
    eta, _ = model.mean_predictors(synthesizer.refits.design(model, dataset))
    within_eta = _binned(eta[rows, 0])
    gap = model.regression.distribution.gap_code
    own, theirs = synthesizer.columns[name][records], dataset.columns[name][rows]
    values, n_values = np.unique(own, return_counts=True)
    for value in values[n_values >= _LEAST_COMMON]:
        here, there = own == value, theirs == value
        within = _binned(eta[rows, -1]) if value == gap else within_eta  # that of being missing
        if int(there.sum()) >= _LEAST_COMMON:
            size = np.bincount(within)
            a, b = (np.bincount(within, of) for of in (here, there))
            expected = float(np.sum(a * b / np.maximum(size, 1)))
            what = f"{name} of {float(value)!r}"
            yield Sign(what, math.nan, int((here & there).sum()), expected)
