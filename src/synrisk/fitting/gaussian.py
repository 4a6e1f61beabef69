"""Gaussian models under normal priors: exact given sigma, and sigma has one dimension.

Given sigma the coefficients are normal. The marginal posterior of log sigma is known up to a
constant, so it is tabulated and drawn from by its inverse CDF: no proposals and no weights, also
where it has two modes (a prior that contradicts the data) or long tails (few records).

With prior N(m, D²) of the standardised coefficients, δ = γ − m, residuals r = y − Xm,
A = D X'ΩX D = U diag(λ) U' and c = U'D X'Ωr,

    −2 log p(y|σ) = 2N log σ + Σ log(1 + λ/σ²) + (R + Σ c²σ²/(λ(σ² + λ)))/σ²

where R is the sum of squares that least squares leaves and N = Σω.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from synrisk.executors import Executor
from synrisk.fitting.laplace import Fitted, NormalPrior
from synrisk.fitting.numbers import CommonNumbers
from synrisk.fitting.rows import Rows, lower_root
from synrisk.fitting.sums import Sums
from synrisk.schema import FloatArray

_NULL = 1e-13  # eigenvalues below this share of the largest carry no data
# Points of the tables of log sigma, refined twice: for draws, for moments, and for moments where
# the log density is concave, so that no mode can be missed.
_FOR_DRAWS, _FOR_MOMENTS, _IF_CONCAVE = (4001, 4001, 8001), (4001, 1001, 1001), (121, 201, 401)
_IF_NORMAL = 121  # points where it is also nearly normal
_DEEP = 45.0  # how far below its maximum the log density is tabulated
_WIDE = 60.0  # log sigma is looked for so far to either side of log spread
_REACH = 11.0  # and where it is nearly normal so many standard deviations
_LEAST_NORMAL = 100.0  # rows, for that
_MOST_GAUSS = 15  # nodes
_LARGEST_MOVE = 2.0  # standard deviations of log sigma, for a Gauss rule: the table must hold it
_STEP, _TAIL = 0.6, 7.0  # of the even grid, in standard deviations of log sigma
_MOST_NODES = 2000
_LEAST_LEVERAGE_LEFT = 1e-6
_LEAST_LEFT = 1e-12  # of the sum of squares, without the furthest record
_WORTH_A_TRY = 1e-6  # for a normal density
_AGREE = 1e-9  # of a Gauss rule with the table, where a guess moves sigma most
_NEAR = 0.3  # standard deviations, and of their logarithm
_MOST_AT_ONCE = 1 << 22  # numbers in the covariances of a batch of draws


def _tabulate(
    log_density: Callable[[FloatArray], FloatArray], spread: float, sizes: tuple[int, int, int]
) -> tuple[FloatArray, FloatArray]:
    """Return log sigma on a grid that is refined twice, and its cumulative probability."""
    middle, (first, *others) = np.log(spread), sizes
    grid = np.linspace(middle - _WIDE, middle + _WIDE, first)
    for n_points in others:
        with np.errstate(over="ignore"):
            log_p = log_density(grid)
        deep = np.flatnonzero(log_p > log_p.max() - _DEEP)
        low, high = grid[max(deep[0] - 1, 0)], grid[min(deep[-1] + 1, len(grid) - 1)]
        grid = np.linspace(low, high, n_points)
    log_p = log_density(grid)
    density = np.exp(log_p - log_p.max())
    steps = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return grid, steps / steps[-1]


def _centre(known: KnownGivenSigma) -> tuple[FloatArray, FloatArray, float, float]:
    """Return log sigma at some points, their probabilities, the mean and standard deviation.

    The trapezoidal rule, which is as good as exact for what ends so deep.
    """
    grid, log_p = _nearly_normal(known) if known.is_concave else (None, None)
    if grid is None or log_p is None:
        sizes = _IF_CONCAVE if known.is_concave else _FOR_MOMENTS
        grid, _ = _tabulate(known.log_density, known.spread, sizes)
        log_p = known.log_density(grid)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = float(p @ grid)
    return grid, p, mean, float(np.sqrt(p @ (grid - mean) ** 2))


def _nearly_normal(
    known: KnownGivenSigma,
) -> tuple[FloatArray, FloatArray] | tuple[None, None]:
    """Return points of log sigma and the log density there, if these are where it lies.

    What is concave and lies so deep at both ends has nothing beyond them.
    """
    left, n = known.squares
    if left <= 0 or n < _LEAST_NORMAL:
        return None, None
    middle, half = 0.5 * math.log(left / n), _REACH / math.sqrt(2.0 * n)
    grid = np.linspace(middle - half, middle + half, _IF_NORMAL)
    log_p = known.log_density(grid)
    depth = log_p.max() - max(log_p[0], log_p[-1])
    return (grid, log_p) if depth > _DEEP else (None, None)


def _normalised(log_weight: FloatArray) -> FloatArray:
    return np.asarray(log_weight - np.logaddexp.reduce(log_weight))


class KnownGivenSigma(Protocol):
    """A gaussian posterior whose coefficients are normal given sigma."""

    @property
    def spread(self) -> float:
        """The scale that sigma is looked for about."""

    @property
    def squares(self) -> tuple[float, float]:
        """The sum of squares that is left, and about how many make it up."""

    @property
    def is_concave(self) -> bool:
        """Whether the log density of log sigma is known to be concave."""

    def log_density(self, log_sigma: FloatArray) -> FloatArray:
        """Return the log posterior density of log sigma, up to a constant."""

    def given(self, log_sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the coefficients given each log sigma."""

    def moments(self) -> tuple[FloatArray, FloatArray] | None:
        """Return mean and covariance of the coefficients and log sigma; None if there is none."""


def quadrature(
    known: KnownGivenSigma, sums: Sums, furthest: Furthest, reach: float
) -> tuple[FloatArray, FloatArray]:
    """Return nodes of log sigma and the logs of their weights, which sum to one.

    The nodes must also serve where a record is taken out and a guess put in its place: an outlier
    may move sigma by many standard deviations. Where none does, a few nodes of a Gauss rule are
    enough; else an even grid covers where sigma may go (the trapezoidal rule, whose error for a
    normal density at this step is below 1e-15).

    Parameters
    ----------
    known
        The posterior.
    sums
        Over the rows that it was given.
    furthest
        Of the confidential records among them.
    reach
        How far guesses may lie from the truth.
    """
    points, p, mean, sd = _centre(known)
    moves = _Moves.of(known, mean, sums, furthest, reach)
    if max(moves.fall, moves.rise) < _LARGEST_MOVE * sd:
        rule = _gauss_rule(points, p, sd, moves)
        if rule is not None:
            return rule[0], np.log(rule[1])
    first = min(float(points[0]), mean - _TAIL * sd - moves.fall)
    last = max(float(points[-1]), mean + _TAIL * sd + moves.rise)
    n_nodes = min(_MOST_NODES, int(np.ceil((last - first) / (_STEP * sd))) + 1)
    nodes = np.linspace(first, last, n_nodes)
    return nodes, _normalised(known.log_density(nodes))


@dataclass(frozen=True, repr=False)
class Furthest:
    """How far confidential records lie from a fit to them, and so from a fit to these and others.

    Attributes
    ----------
    mean, precision
        Of the coefficients, given about the sigma of the fit.
    error
        The largest error, in units of its own standard deviation without the record's row, times
        sigma.
    leverage
        The largest leverage over what it leaves.
    heaviest
        The largest weight.
    """

    mean: FloatArray
    precision: FloatArray
    error: float
    leverage: float
    heaviest: float

    @classmethod
    def of(cls, known: KnownGivenSigma, records: Sequence[Rows], executor: Executor) -> Furthest:
        """Return it of the records that a fit was given."""
        _, _, log_sigma, _ = _centre(known)
        mean, covariance = (part[0] for part in known.given(np.array([log_sigma])))
        sigma2 = math.exp(2.0 * log_sigma)

        def in_part(part: Rows) -> tuple[float, float, float]:
            squares = part.omega * (part.y - part.matrix @ mean) ** 2
            projected = part.matrix @ covariance
            leverage = part.omega / sigma2 * np.einsum("ij,ij->i", projected, part.matrix)
            left = np.maximum(1.0 - leverage, _LEAST_LEVERAGE_LEFT)
            found = (squares / left).max(), (leverage / left).max(), part.omega.max()
            return float(found[0]), float(found[1]), float(found[2])

        parts = zip(*executor.map(in_part, records), strict=True)
        error, leverage, heaviest = (max(of_parts) for of_parts in parts)
        precision = sigma2 * np.linalg.pinv(covariance, hermitian=True)
        return cls(mean, precision, math.sqrt(error), leverage, heaviest)

    def from_mean(self, mean: FloatArray) -> float:
        """Return how far a record's error may be from another fit's mean, at most.

        |x'Δ| is at most √(x'Cx · Δ'C⁻¹Δ).
        """
        apart = mean - self.mean
        squared = float(apart @ self.precision @ apart)
        return self.error + math.sqrt(self.leverage * max(squared, 0.0))


@dataclass(frozen=True, repr=False)
class _Moves:
    """What taking a record out, and putting a guess in its place, does to sigma at most.

    Attributes
    ----------
    log_sigma
        About where it lies.
    out, inside
        The squared errors that go with the furthest record, and that come with a far guess, in
        units of sigma².
    total
        The squared errors of all rows, in these.
    """

    log_sigma: float
    out: float
    inside: float
    total: float

    @classmethod
    def of(
        cls, known: KnownGivenSigma, log_sigma: float, sums: Sums, furthest: Furthest, reach: float
    ) -> _Moves:
        mean = known.given(np.array([log_sigma]))[0][0]
        error = furthest.from_mean(mean)
        sigma2 = math.exp(2.0 * log_sigma)
        inside = (error + math.sqrt(furthest.heaviest) * reach) ** 2
        total = sums.squared_errors(mean)
        return cls(log_sigma, error**2 / sigma2, inside / sigma2, total / sigma2)

    @property
    def fall(self) -> float:
        """How far log sigma falls without the furthest record."""
        return -0.5 * math.log(max(1.0 - self.out / self.total, _LEAST_LEFT))

    @property
    def rise(self) -> float:
        """How far log sigma rises with a far guess."""
        return 0.5 * math.log1p(self.inside / self.total)

    def factors(self, log_sigma: FloatArray) -> FloatArray:
        """Return what the two multiply the density by, ``(2, point)``."""
        inverse = np.expm1(2.0 * (self.log_sigma - log_sigma))
        return np.exp(0.5 * np.array([self.out, -self.inside])[:, None] * inverse)


def _gauss_rule(
    points: FloatArray, p: FloatArray, sd: float, moves: _Moves
) -> tuple[FloatArray, FloatArray] | None:
    """Return the fewest nodes, and their weights, that serve wherever sigma may go.

    The rule is that of the density itself, by the recurrence of its orthogonal polynomials
    (Stieltjes). It is tried where a record or a guess moves sigma most, from as many nodes on as a
    normal density would need.
    """
    x = (points - points.mean()) / sd
    wanted = moves.factors(points) @ p
    jacobi, norm = np.zeros((_MOST_GAUSS, _MOST_GAUSS)), 1.0
    before, now = np.zeros(len(x)), np.ones(len(x))
    error = 1.0
    for n in range(_MOST_GAUSS):
        jacobi[n, n] = float(p * now * now @ x) / norm
        error *= 0.5 * (max(moves.fall, moves.rise) / sd) ** 2 / (2 * n + 1)  # of n + 1 nodes
        if error < _WORTH_A_TRY:
            z, vectors = np.linalg.eigh(jacobi[: n + 1, : n + 1])
            nodes, weight = points.mean() + sd * z, vectors[0] ** 2
            if (np.abs(moves.factors(nodes) @ weight / wanted - 1.0) < _AGREE).all():
                return nodes, weight
        if n + 1 < _MOST_GAUSS:
            beside = jacobi[n, n - 1] ** 2 if n else 0.0
            before, now = now, (x - jacobi[n, n]) * now - beside * before
            norm, last = float(p @ (now * now)), norm
            jacobi[n, n + 1] = jacobi[n + 1, n] = math.sqrt(norm / last)
    return None


@dataclass(frozen=True, repr=False)
class GaussianPosterior:
    """The posterior of a gaussian model under normal priors.

    Attributes
    ----------
    prior
        Of the standardised coefficients and of sigma.
    n_effective, left
        N and R of the module's formula.
    values, vectors, projection
        λ, D·U and c.
    spread
        The scale that sigma is looked for about.
    """

    prior: NormalPrior
    n_effective: float
    left: float
    values: FloatArray
    vectors: FloatArray
    projection: FloatArray
    spread: float

    @classmethod
    def of(cls, sums: Sums, prior: NormalPrior, spread: float) -> GaussianPosterior:
        """Return the posterior given sums over rows, about the prior's mean."""
        values, vectors = np.linalg.eigh(prior.sd[:, None] * sums.gram * prior.sd)
        values = np.where(values > _NULL * max(float(values.max()), 0.0), values, 0.0)
        scaled = prior.sd[:, None] * vectors
        projection = np.where(values > 0, scaled.T @ sums.products, 0.0)
        fitted = prior.mean + scaled @ (projection / np.where(values > 0, values, 1.0))
        left = sums.squared_errors(fitted)
        return cls(prior, sums.n_effective, left, values, scaled, projection, spread)

    @property
    def squares(self) -> tuple[float, float]:
        """The sum of squares that is left, and about how many make it up."""
        return self.left, self.n_effective

    @property
    def is_concave(self) -> bool:
        """Whether the log density of log sigma is known to be concave.

        Its second derivative is −2R/σ² − ρσ − Σ 2λσ²/(σ² + λ)² · (1 − (c/λ)² (λ − σ²)/(λ + σ²)),
        ρ being sigma's prior rate: where least squares stays within one prior standard deviation in
        every direction, no term is positive.
        """
        data = self.values > 0
        return bool((np.abs(self.projection[data]) <= self.values[data]).all())

    def log_density(self, log_sigma: FloatArray) -> FloatArray:
        """Return the log posterior density of log sigma, up to a constant."""
        sigma2 = np.exp(2.0 * log_sigma)[..., None]
        data = self.values > 0
        values, squares = self.values[data], self.projection[data] ** 2
        shrunk = (squares * sigma2 / (values * (sigma2 + values))).sum(axis=-1)
        log_p = -self.n_effective * log_sigma
        log_p = log_p - 0.5 * np.log1p(values / sigma2).sum(axis=-1)
        log_p = log_p - 0.5 * (self.left + shrunk) / sigma2[..., 0]
        return np.asarray(log_p + log_sigma - self.prior.rate[0] * np.exp(log_sigma))

    def given(self, log_sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the coefficients given each log sigma."""
        sigma2 = np.exp(2.0 * log_sigma)[:, None]
        mean = self.prior.mean + (self.projection / (sigma2 + self.values)) @ self.vectors.T
        shrinkage = sigma2 / (sigma2 + self.values)
        covariance = (self.vectors * shrinkage[:, None, :]) @ self.vectors.T
        return mean, covariance

    def table(self) -> tuple[FloatArray, FloatArray]:
        """Return log sigma on a fine grid, and its cumulative probability."""
        return _tabulate(self.log_density, self.spread, _FOR_DRAWS)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the coefficients and log sigma."""
        log_sigma, p, mean, sd = _centre(self)
        sigma2 = np.exp(2.0 * log_sigma)[:, None]
        along = self.projection / (sigma2 + self.values)
        centre = p @ along
        apart = along - centre
        within = np.diag(p @ (sigma2 / (sigma2 + self.values)))
        cross = self.vectors @ (apart.T @ (p * (log_sigma - mean)))
        coefficients = self.vectors @ (within + apart.T @ (p[:, None] * apart)) @ self.vectors.T
        covariance = np.block([[coefficients, cross[:, None]], [cross, np.array([[sd**2]])]])
        return np.append(self.prior.mean + self.vectors @ centre, mean), covariance

    def agrees(self, fitted: Fitted) -> bool:
        """Tell whether weighted draws have about the right mean and spread of log sigma."""
        _, _, mean, sd = _centre(self)
        weights, drawn = np.exp(fitted.log_weights), fitted.theta[:, -1]
        own = float(weights @ drawn)
        own_sd = float(np.sqrt(weights @ (drawn - own) ** 2))
        return abs(own - mean) < _NEAR * sd and abs(np.log(own_sd / sd)) < _NEAR

    def draw(self, numbers: CommonNumbers) -> Fitted:
        """Draw log sigma by its inverse CDF and the coefficients given it."""
        grid, cumulative = self.table()
        log_sigma = np.interp(numbers.u, cumulative, grid)
        n_draws, n_columns = numbers.z.shape
        coefficients = np.empty((n_draws, n_columns))
        size = max(1, _MOST_AT_ONCE // n_columns**2)
        for first in range(0, n_draws, size):
            part = slice(first, first + size)
            mean, covariance = self.given(log_sigma[part])
            root = lower_root(covariance)
            coefficients[part] = mean + np.einsum("hij,hj->hi", root, numbers.z[part])
        theta = np.concatenate([coefficients, log_sigma[:, None]], axis=1)
        equal = np.full(n_draws, -np.log(n_draws))
        at_mode = grid[[int(np.argmax(self.log_density(grid)))]]
        mode = np.append(self.given(at_mode)[0][0], at_mode)
        return Fitted(theta, equal, mode, -np.inf, float(n_draws), True)
