"""Rows that stand for a record: whether they hold more of it than the model would give them.

A row may hold what is known of its record in another column, or that of the record before or after.
Where columns that are released as they are tell a record only among a few, groups of rows are
compared with groups of records: by the sums of what they miss their model's mean by.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

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


def compare_rows(
    synthesizer: Synthesizer, release: Sequence[Released]
) -> tuple[tuple[Agreement, ...], tuple[Residuals, ...]]:
    """Compare rows with the records that they stand for."""
    agreements: list[Agreement] = []
    residuals: list[Residuals] = []
    for number, dataset in enumerate(release, 1):
        for groups in groupings(synthesizer, dataset):
            # Where few rows have a record of their own, only groups of them tell.
            pairs = groups.pairs() if groups.name_most else None
            for model in synthesizer.models:
                family = model.regression.distribution
                if pairs is not None and not family.is_continuous:
                    agreements.append(_agreement(synthesizer, model, number, dataset, *pairs))
                residuals += _residuals(synthesizer, model, number, dataset, groups)
    tail = _LEVEL / max(len(agreements) + len(residuals), 1)
    return (
        tuple(replace(agreement, tail=tail) for agreement in agreements),
        tuple(replace(residual, tail=tail) for residual in residuals),
    )


def _agreement(
    synthesizer: Synthesizer,
    model: Model,
    number: int,
    dataset: Released,
    records: IntArray,
    rows: IntArray,
) -> Agreement:
    """Count rows with the level or count of their record, beside what chance would give."""
    name = model.regression.response
    truth = synthesizer.columns[name][records]
    values = dataset.columns[name][rows]
    expected, sd = _chance(synthesizer, model, dataset, truth.astype(np.float64), rows)
    agree = int((values == truth).sum())
    p_larger = max(
        _normal_tail(agree, expected, sd),
        _binomial_tail(agree, len(rows), expected),  # of few rows the count is not normal
        _normal_tail(agree, *_if_permuted(values, truth)),
    )
    return Agreement(name, number, len(rows), agree, expected, sd, p_larger)


def _normal_tail(found: float, expected: float, sd: float) -> float:
    if sd > 0.0:
        return float(ndtr((expected - found) / sd))
    return 0.0 if found > expected + 0.5 else 1.0


def _binomial_tail(agree: int, n_rows: int, expected: float) -> float:
    return float(bdtrc(agree - 1, n_rows, min(expected / n_rows, 1.0)))


def _if_permuted(values: FloatArray, truth: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation of how many agree, over all orders of the rows.

    Of n rows, a_k with the value k, and records, b_k with it: Σ a_k b_k/n, and the variance of a
    permuted sum, (Σ a b − Σ a b²/n − Σ a² b/n + (Σ a b/n)²)/(n − 1).
    """
    n = len(values)
    _, codes = np.unique(np.concatenate([values, truth]), return_inverse=True)
    n_values = int(codes.max()) + 1
    a, b = (np.bincount(part, minlength=n_values).astype(np.float64) for part in np.split(codes, 2))
    mean = float(a @ b) / n
    square = float(a @ b) - float(a @ (b * b)) / n - float((a * a) @ b) / n + mean**2
    return mean, math.sqrt(max(square, 0.0) / max(n - 1, 1))


def _residuals(
    synthesizer: Synthesizer, model: Model, number: int, dataset: Released, groups: Groups
) -> list[Residuals]:
    """Correlate the residuals of rows with those of their records, by linear predictor."""
    name = model.response
    design = synthesizer.refits.design(model, dataset)
    own, weight = _standardised_residuals(model, design, dataset.columns[name])
    rng = stream(0, "release check", dataset=number, variable=name)
    shifts = (0, 1, -1) if groups.is_by_place else (0,)
    found = []
    for other, shift in product(synthesizer.models, shifts):
        theirs = np.roll(residuals_of_records(synthesizer, other), -shift, axis=0)
        of_records = "" if other is model else other.response
        for k, j in product(range(own.shape[1]), range(theirs.shape[1])):
            columns = weight[:, [k]] * design
            one = _correlation(model, own[:, k], theirs[:, j], columns, groups, rng)
            if one is not None:
                n_rows, n_groups = len(groups.rows), groups.n_groups
                found.append(
                    Residuals(name, number, n_rows, *one, _LEVEL, n_groups, of_records, shift)
                )
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
    groups: Groups,
    rng: np.random.Generator,
) -> tuple[float, float, float] | None:
    """Return a correlation, z and the probability of one as large; None of too few groups.

    Sums over the rows of a group, divided by the root of their number, have variance one whatever
    the number. What other parameters would change is taken out of rows and records: then they share
    nothing under the model, and the correlation of normal residuals is Student's.
    """
    with np.errstate(all="ignore"):
        by_group = groups.sums_of_rows(np.column_stack([own, columns]))
        parts = by_group[:, 0], groups.sums_of_records(theirs)
        known = np.isfinite(by_group).all(axis=1) & np.isfinite(parts[1])
        columns = by_group[known, 1:]
        gram = columns.T @ columns
        if not np.isfinite(gram).all():
            return None
        basis = whitening(gram)
        left = [
            part[known] - columns @ (basis @ (basis.T @ (columns.T @ part[known])))
            for part in parts
        ]
        size, whole = (
            math.sqrt(float(one @ one) * float(other @ other))
            for one, other in (left, [part[known] for part in parts])
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
    return correlation, z, p_larger


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
) -> tuple[float, float]:
    """Return how many rows the model would give `truth`, and the standard deviation of that."""
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
    return float(np.mean(means)), float(np.sqrt(np.mean(variances) + np.var(means)))
