"""Rows that stand for a record: whether they hold more of it than the model would give them.

A row may hold what is known of its record in another column, or that of the record before or after.
Where columns that are released as they are tell a record only among a few, groups of rows are
compared with groups of records: by the sums of what they miss their model's mean by.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import TypeVar

import numpy as np
from scipy.special import bdtrc, ndtr, ndtri, stdtr

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.seeds import stream
from synrisk.fitting import whitening
from synrisk.models.families import Family
from synrisk.risk.row_groups import Groups, groupings
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_LEVEL = 0.003  # of all comparisons of rows with records in an honest release
_TAIL_BEFORE = 1e-3  # of each, in files of earlier versions
_CHANCE_BEFORE = 4.0  # standard deviations, likewise
_N_CHANCES = 20  # draws over which chance agreement is averaged
_N_PERMUTED = 10_000
_N_RESPONSES = 30  # over which a row's information is averaged
_MOST_PERMUTED_ROWS = 200_000_000
_LEAST_LEFT = 1e-12  # of the residuals, beside what other parameters would change


@dataclass(frozen=True)
class Agreement:
    """How many rows of a dataset hold the level or count of the record that they stand for.

    Attributes
    ----------
    agree
        So many do.
    expected, sd
        So many would if the model had drawn them, and the standard deviation of that.
    p_larger
        The probability that as many or more do: if the model had drawn them, or if rows stood for
        records at random, whichever is larger. NaN in files of earlier versions.
    tail
        It warns below this probability.
    """

    variable: str
    dataset: int
    n_rows: int
    agree: int
    expected: float
    sd: float
    p_larger: float = math.nan
    tail: float = _TAIL_BEFORE

    @property
    def is_too_often(self) -> bool:
        """Whether more rows hold their record's value than by chance."""
        if not math.isnan(self.p_larger):
            return self.p_larger < self.tail
        beyond = self.agree - self.expected > _CHANCE_BEFORE * self.sd
        return bool(beyond and _binomial_tail(self.agree, self.n_rows, self.expected) < self.tail)

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words."""
        if not self.is_too_often:
            return None
        return (
            f"{self.agree:,} of {self.n_rows:,} rows of dataset {self.dataset} hold the "
            f"{self.variable} of the confidential record that they stand for; the model would give "
            f"about {self.expected:,.0f}: was it copied? The limits do not see that."
        )


@dataclass(frozen=True)
class Residuals:
    """Whether rows miss their model's mean in the same way as the records that they stand for.

    Attributes
    ----------
    n_groups
        The number of groups of rows and records that are compared: as many as rows where each
        stands for one record; 0 in files of earlier versions.
    of_records
        The records' variable, where it is another one.
    shift
        How many places after its own record's a row was compared with.
    correlation
        Of the residuals of rows with those of their records; of groups, of their sums.
    z
        In standard deviations of chance.
    p_larger
        The probability of as large a correlation, of either sign, if the model had drawn the rows.
    tail
        It warns below this probability.
    """

    variable: str
    dataset: int
    n_rows: int
    correlation: float
    z: float
    p_larger: float
    tail: float
    n_groups: int = 0
    of_records: str = ""
    shift: int = 0

    @property
    def are_too_alike(self) -> bool:
        """Whether rows follow their records more than by chance."""
        return self.p_larger < self.tail

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words."""
        if not self.are_too_alike:
            return None
        whom = "that they stand for"
        if 0 < self.n_groups < self.n_rows:
            whom = "with the same values of what is released as it is"
        if self.of_records or self.shift:
            place = {0: "", 1: " one place further", -1: " one place before"}[self.shift]
            return (
                f"How rows of dataset {self.dataset} miss the mean of {self.variable} goes with "
                f"the {self.of_records or self.variable} of the confidential records "
                f"{whom}{place} (a correlation of {self.correlation:.2f}, {abs(self.z):.1f} "
                "standard deviations of chance): were they made of these? The limits do not see "
                "that."
            )
        return (
            f"Rows of dataset {self.dataset} miss the mean of {self.variable} "
            f"{'as' if self.correlation > 0 else 'on the other side than'} the confidential "
            f"records do {whom} (their residuals have the correlation "
            f"{self.correlation:.2f}, {self.z:.1f} standard deviations of chance): were they "
            "copied in part? The limits do not see that."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Agreeing:
    """How many rows agree with their records, in a table or a block of it: blocks add up.

    Attributes
    ----------
    expected, variance
        How many would, under each of some draws of the model, and its variance.
    if_permuted
        Mean and variance of how many would, over all orders of the rows.
    """

    n_rows: int
    agree: int
    expected: FloatArray
    variance: FloatArray
    if_permuted: tuple[float, float]

    def __add__(self, other: Agreeing) -> Agreeing:
        """Return that of the rows of both."""
        (mean, variance), (of_other, variance_of_other) = self.if_permuted, other.if_permuted
        return Agreeing(
            self.n_rows + other.n_rows,
            self.agree + other.agree,
            self.expected + other.expected,
            self.variance + other.variance,
            (mean + of_other, variance + variance_of_other),
        )

    def judged(self, name: str, number: int) -> Agreement:
        """Return it beside what chance would give."""
        expected = float(np.mean(self.expected))
        sd = float(np.sqrt(np.mean(self.variance) + np.var(self.expected)))
        mean, variance = self.if_permuted
        p_larger = max(
            _normal_tail(self.agree, expected, sd),
            _binomial_tail(self.agree, self.n_rows, expected),  # of few rows it is not normal
            _normal_tail(self.agree, mean, math.sqrt(variance)),
        )
        return Agreement(name, number, self.n_rows, self.agree, expected, sd, p_larger)


@dataclass(frozen=True, eq=False, repr=False)
class LinkedRows:
    """What rows of one dataset and the records that they stand for have in common.

    Attributes
    ----------
    agreeing
        By variable of levels or counts.
    residuals
        With the square root of the degrees of freedom of each.
    """

    agreeing: dict[str, Agreeing]
    residuals: list[tuple[Residuals, float]]


def compare_rows(
    synthesizer: Synthesizer, release: Sequence[Released]
) -> tuple[tuple[Agreement, ...], tuple[Residuals, ...]]:
    """Compare rows with the records that they stand for."""
    return all_linked(
        (number, [linked_rows(synthesizer, number, dataset, groups)])
        for number, dataset in enumerate(release, 1)
        for groups in groupings(synthesizer, dataset)
    )


def all_linked(
    found: Iterable[tuple[int, Sequence[LinkedRows]]],
) -> tuple[tuple[Agreement, ...], tuple[Residuals, ...]]:
    """Return what was found of all datasets, by block, each judged as one of so many."""
    agreements: list[Agreement] = []
    residuals: list[Residuals] = []
    for number, blocks in found:
        agreements += _agreements(number, blocks)
        residuals += _residuals_together(blocks)
    tail = _LEVEL / max(len(agreements) + len(residuals), 1)
    return (
        tuple(replace(agreement, tail=tail) for agreement in agreements),
        tuple(replace(residual, tail=tail) for residual in residuals),
    )


def linked_rows(
    synthesizer: Synthesizer, number: int, dataset: Released, groups: Groups
) -> LinkedRows:
    """Compare rows of a dataset, or of a block of it, with the records that they stand for."""
    agreeing: dict[str, Agreeing] = {}
    residuals: list[tuple[Residuals, float]] = []
    # Where few rows have a record of their own, only groups of them tell.
    pairs = groups.pairs() if groups.name_most else None
    for model in synthesizer.models:
        if pairs is not None and len(pairs[1]) and not model.regression.distribution.is_continuous:
            agreeing[model.response] = _agreeing(synthesizer, model, dataset, *pairs)
        residuals += _residuals(synthesizer, model, number, dataset, groups)
    return LinkedRows(agreeing, residuals)


def _agreements(number: int, blocks: Sequence[LinkedRows]) -> list[Agreement]:
    """Return how many rows agree: in all blocks together, or in one of them."""
    by_name: dict[str, list[Agreeing]] = {}
    for block in blocks:
        for name, one in block.agreeing.items():
            by_name.setdefault(name, []).append(one)
    found = []
    for name, parts in by_name.items():
        whole = reduce(operator.add, parts).judged(name, number)
        single = [one.judged(name, number) for one in parts]
        found.append(_one_of(whole, single))
    return found


def _residuals_together(blocks: Sequence[LinkedRows]) -> list[Residuals]:
    """Return the correlations of all blocks together, or of one of them."""
    by_kind: dict[tuple[str, str, int, int], list[tuple[Residuals, float]]] = {}
    for block in blocks:
        seen: Counter[tuple[str, str, int]] = Counter()
        for one, root in block.residuals:
            what = (one.variable, one.of_records, one.shift)
            by_kind.setdefault((*what, seen[what]), []).append((one, root))
            seen[what] += 1
    found = []
    for parts in by_kind.values():
        single = [one for one, _ in parts]
        found.append(_one_of(single[0] if len(parts) == 1 else _correlated(parts), single))
    return found


def _correlated(parts: Sequence[tuple[Residuals, float]]) -> Residuals:
    """Return one correlation for all blocks: normal numbers weighted by the roots of their rows."""
    one, roots = parts[0][0], np.array([root for _, root in parts])
    z = float(roots @ np.array([of.z for of, _ in parts])) / float(np.sqrt(roots @ roots))
    correlation = float(roots**2 @ np.array([of.correlation for of, _ in parts]))
    return replace(
        one,
        n_rows=sum(of.n_rows for of, _ in parts),
        n_groups=sum(of.n_groups for of, _ in parts),
        correlation=correlation / float(roots @ roots),
        z=z,
        p_larger=float(2.0 * ndtr(-abs(z))),
    )


_Kind = TypeVar("_Kind", Agreement, Residuals)


def _one_of(whole: _Kind, single: Sequence[_Kind]) -> _Kind:
    """Return what tells most, of all blocks together and of each, as one of so many looks."""
    if len(single) == 1:
        return whole
    by_block = min(single, key=lambda one: one.p_larger)
    p, of_block = whole.p_larger, len(single) * by_block.p_larger
    told = by_block if of_block < min(p, _LEVEL) else whole
    return replace(told, p_larger=min(2.0 * min(p, of_block), 1.0))


def _agreeing(
    synthesizer: Synthesizer,
    model: Model,
    dataset: Released,
    records: IntArray,
    rows: IntArray,
) -> Agreeing:
    """Count rows with the level or count of their record, beside what chance would give."""
    name = model.regression.response
    truth = synthesizer.columns[name][records]
    values = dataset.columns[name][rows]
    expected, variance = _chance(synthesizer, model, dataset, truth.astype(np.float64), rows)
    agree = int((values == truth).sum())
    return Agreeing(len(rows), agree, expected, variance, _if_permuted(values, truth))


def _normal_tail(found: float, expected: float, sd: float) -> float:
    if sd > 0.0:
        return float(ndtr((expected - found) / sd))
    return 0.0 if found > expected + 0.5 else 1.0


def _binomial_tail(agree: int, n_rows: int, expected: float) -> float:
    return float(bdtrc(agree - 1, n_rows, min(expected / n_rows, 1.0)))


def _if_permuted(values: FloatArray, truth: FloatArray) -> tuple[float, float]:
    """Return mean and variance of how many agree, over all orders of the rows.

    Of n rows, a_k with the value k, and records, b_k with it: Σ a_k b_k/n, and the variance of a
    permuted sum, (Σ a b − Σ a b²/n − Σ a² b/n + (Σ a b/n)²)/(n − 1).
    """
    n = len(values)
    _, codes = np.unique(np.concatenate([values, truth]), return_inverse=True)
    n_values = int(codes.max()) + 1
    a, b = (np.bincount(part, minlength=n_values).astype(np.float64) for part in np.split(codes, 2))
    mean = float(a @ b) / n
    square = float(a @ b) - float(a @ (b * b)) / n - float((a * a) @ b) / n + mean**2
    return mean, max(square, 0.0) / max(n - 1, 1)


def _residuals(
    synthesizer: Synthesizer, model: Model, number: int, dataset: Released, groups: Groups
) -> list[tuple[Residuals, float]]:
    """Correlate the residuals of rows with those of their records, by linear predictor."""
    own, columns = rows_in_groups(synthesizer, model, dataset, groups)
    shifts = (0, 1, -1) if groups.is_by_place else (0,)
    theirs = {
        (other.response, shift): groups.sums_of_records(
            np.roll(residuals_of_records(synthesizer, other), -shift, axis=0)
        )
        for other, shift in product(synthesizer.models, shifts)
    }
    size = len(groups.rows), groups.n_groups
    return correlations(model, number, own, columns, theirs, size)


def rows_in_groups(
    synthesizer: Synthesizer, model: Model, dataset: Released, groups: Groups
) -> tuple[FloatArray, FloatArray]:
    """Return sums of residuals and of what other parameters would change, ``(group, predictor)``.

    The latter ``(group, predictor, column of the design)``.
    """
    design = synthesizer.refits.design(model, dataset)
    own, weight = _standardised_residuals(model, design, dataset.columns[model.response])
    changes = [groups.sums_of_rows(weight[:, [k]] * design) for k in range(own.shape[1])]
    return groups.sums_of_rows(own), np.stack(changes, axis=1)


def correlations(
    model: Model,
    number: int,
    own: FloatArray,
    columns: FloatArray,
    theirs: Mapping[tuple[str, int], FloatArray],
    size: tuple[int, int],
) -> list[tuple[Residuals, float]]:
    """Correlate sums of residuals of rows with those of records.

    Parameters
    ----------
    model, number
        Of the rows.
    own, columns
        As `rows_in_groups` returns them.
    theirs
        Of records, ``(group, predictor)``, by their variable and shift.
    size
        The numbers of rows and of groups.
    """
    name = model.response
    rng = stream(0, "release check", dataset=number, variable=name)
    found = []
    for (other, shift), of_records in theirs.items():
        told = "" if other == name else other
        for k, j in product(range(own.shape[1]), range(of_records.shape[1])):
            one = _correlation(model, own[:, k], of_records[:, j], columns[:, k], rng)
            if one is not None:
                (correlation, z, p), df, (n_rows, n_groups) = one[:3], one[3], size
                residuals = Residuals(
                    name, number, n_rows, correlation, z, p, _LEVEL, n_groups, told, shift
                )
                found.append((residuals, math.sqrt(df)))
    return found


def residuals_of_rows(synthesizer: Synthesizer, model: Model, dataset: Released) -> FloatArray:
    """Return the residuals of a dataset's rows, ``(row, predictor)``."""
    design = synthesizer.refits.design(model, dataset)
    return _standardised_residuals(model, design, dataset.columns[model.response])[0]


def residuals_of_records(synthesizer: Synthesizer, model: Model) -> FloatArray:
    """Return the residuals of the confidential records, ``(record, predictor)``."""
    design = synthesizer.refits.design
    return synthesizer.memory.recall(
        f"residuals of {model.response}",
        lambda: _standardised_residuals(
            model, design(model, None), synthesizer.columns[model.response]
        )[0],
    )


def _correlation(
    model: Model,
    own: FloatArray,
    theirs: FloatArray,
    columns: FloatArray,
    rng: np.random.Generator,
) -> tuple[float, float, float, int] | None:
    """Return a correlation, z, the probability of one as large, and degrees of freedom.

    Sums over the rows of a group, divided by the root of their number, have variance one whatever
    the number. What other parameters would change is taken out of rows and records: then they share
    nothing under the model, and the correlation of normal residuals is Student's. None of too few
    groups.
    """
    with np.errstate(all="ignore"):
        known = np.isfinite(own) & np.isfinite(columns).all(axis=1) & np.isfinite(theirs)
        columns = columns[known]
        gram = columns.T @ columns
        if not np.isfinite(gram).all():
            return None
        basis = whitening(gram)
        left = [
            part[known] - columns @ (basis @ (basis.T @ (columns.T @ part[known])))
            for part in (own, theirs)
        ]
        size, whole = (
            math.sqrt(float(one @ one) * float(other @ other))
            for one, other in (left, [part[known] for part in (own, theirs)])
        )
    df = int(known.sum()) - basis.shape[1] - 1
    # What is left of groups that the predictors tell apart is rounding.
    if df < 1 or not _LEAST_LEFT * whole < size < math.inf:
        return None
    correlation = min(max(float(left[0] @ left[1]) / size, -1.0), 1.0)
    t = correlation * math.sqrt(df / max(1.0 - correlation**2, 1e-300))
    p_larger = min(2.0 * float(stdtr(df, -abs(t))), 1.0)
    z = math.sqrt(df) * correlation
    if p_larger > 0.0:
        z = math.copysign(float(ndtri(0.5 * p_larger)), correlation)
    if not model.regression.distribution.exact and p_larger < _LEVEL:
        p_larger = max(p_larger, _permuted_tail(left[0], left[1], rng))
    return correlation, z, p_larger, df


def _standardised_residuals(
    model: Model, design: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return residuals in standard deviations, and how much they change with the predictor.

    That is s/√i of the score s and the expected information i of each linear predictor: for most
    families (y − mean)/sd. Both are ``(row, predictor)``.
    """
    family = model.regression.distribution
    y = model.regression.on_model_scale(values.astype(np.float64))
    with np.errstate(all="ignore"):
        eta, auxiliary = model.mean_predictors(design)
        score = family.score(y, eta, auxiliary)[:, : eta.shape[1]]  # without that of auxiliaries
        root = np.sqrt(_expected_information(family, eta, auxiliary))
        return np.asarray(score / root), np.asarray(root)


def _expected_information(family: Family, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
    """Return each row's information about its predictors, over responses that are drawn.

    That of the response itself would be a part of the residual: both of a row and of its record,
    which have the same predictors, could be larger on one side than on the other.
    """
    given = np.broadcast_to(auxiliary, (len(eta), len(auxiliary)))
    rng = np.random.default_rng(0)
    found: list[FloatArray] = []
    with contextlib.suppress(ValueError):  # rates beyond NumPy's
        for _ in range(_N_RESPONSES):
            y = family.draw(eta, given, rng).astype(np.float64)
            curvature = family.curvature(y, eta, auxiliary)
            found.append(-np.diagonal(curvature, axis1=1, axis2=2)[:, : eta.shape[1]])
            if len(found) > 1 and np.array_equal(found[0], found[-1]):  # it knows no response
                return found[0]
        return np.asarray(np.mean(found, axis=0))
    return np.full(eta.shape, np.nan)


def _permuted_tail(own: FloatArray, theirs: FloatArray, rng: np.random.Generator) -> float:
    """Return the share of orders of the records in which the product is as large; 0 if too many."""
    if len(own) * _N_PERMUTED > _MOST_PERMUTED_ROWS:
        return 0.0
    least = abs(own @ theirs) * (1.0 - 1e-9)
    return float(np.mean([abs(own @ rng.permutation(theirs)) >= least for _ in range(_N_PERMUTED)]))


def _chance(
    synthesizer: Synthesizer, model: Model, dataset: Released, truth: FloatArray, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return how many rows the model would give `truth` under some draws, and its variance."""
    regression, draws = model.regression, model.posterior
    log_density = regression.distribution.log_density
    matrix = synthesizer.refits.design(model, dataset)[rows]
    y = regression.on_model_scale(truth)
    # Draws by their weight, the parameters being as uncertain as they are.
    steps = (np.arange(_N_CHANCES) + 0.5) / _N_CHANCES
    chosen = np.searchsorted(np.cumsum(np.exp(draws.log_weights)), steps)
    means, variances = [], []
    for h in np.minimum(chosen, draws.n_draws - 1):
        auxiliary = np.broadcast_to(draws.auxiliary[h], (len(y), draws.auxiliary.shape[1]))
        eta = matrix @ draws.coefficients[h]
        with np.errstate(over="ignore"):  # rates beyond all numbers
            p = np.exp(log_density(y, eta, auxiliary))
        means.append(p.sum())
        variances.append((p * (1.0 - p)).sum())
    return np.array(means), np.array(variances)
