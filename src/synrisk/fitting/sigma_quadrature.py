"""Sigma of a gaussian model: one dimension, whose posterior is tabulated and summed over nodes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import FitError
from synrisk.base.kept import called
from synrisk.base.messages import setting
from synrisk.base.workers import Executor
from synrisk.fitting.standardise import Chunk, Chunks, Rows
from synrisk.fitting.sufficient_statistics import Sums

# Points of the tables of log sigma, refined twice: for draws, for moments, and for moments where
# the log density is concave, so that no mode can be missed.
FOR_DRAWS, _FOR_MOMENTS, _IF_CONCAVE = (4001, 4001, 8001), (4001, 1001, 1001), (121, 201, 401)
_IF_NORMAL = 121  # points where it is also nearly normal
_DEEP = 45.0  # how far below its maximum the log density is tabulated
_WIDE = 60.0  # log sigma is looked for so far to either side of log spread
_REACH = 11.0  # and where it is nearly normal so many standard deviations
_LEAST_NORMAL = 100.0  # rows, for that
_MOST_GAUSS = 15  # nodes
_LARGEST_MOVE = 2.0  # standard deviations of log sigma, for a Gauss rule: the table must hold it
_STEP, _TAIL = 0.6, 7.0  # of the even grid, in standard deviations of log sigma
# Of few records the density is that of exp(−k u − ½ e^(−2u)), analytic for |Im u| < π/4: the rule's
# error is exp(−π²/(2·step)).
_WIDEST_STEP = 0.2
_MOST_NODES = 20_000
_FOR_MODE, _ROUNDS = 201, 3  # points, and how often their range is narrowed
_LEAST_LEVERAGE_LEFT = 1e-6
_LOOSE = 1.25  # a bound of the largest error over that of another fit
_LEAST_LEFT = 1e-12  # of the sum of squares, without the furthest record
_WORTH_A_TRY = 1e-6  # for a normal density
_AGREE = 1e-9  # of a Gauss rule with the table, where a guess moves sigma most


def tabulate(
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


def _normalised(log_weight: FloatArray) -> FloatArray:
    return np.asarray(log_weight - np.logaddexp.reduce(log_weight))


class KnownGivenSigma(ABC):
    """A gaussian posterior whose coefficients are normal given sigma."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """What sigma is looked for about."""

    @property
    @abstractmethod
    def squares(self) -> tuple[float, float]:
        """The sum of squares that is left, and about how many make it up."""

    @property
    @abstractmethod
    def is_concave(self) -> bool:
        """Whether the log density of log sigma is known to be concave."""

    @abstractmethod
    def log_density(self, log_sigma: FloatArray) -> FloatArray:
        """Return the log posterior density of log sigma, up to a constant."""

    @abstractmethod
    def second_derivative(self, log_sigma: float) -> float:
        """Return the second derivative of the log density by log sigma."""

    @abstractmethod
    def given(self, log_sigma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the coefficients given each log sigma."""

    @abstractmethod
    def moments(self) -> tuple[FloatArray, FloatArray] | None:
        """Return mean and covariance of the coefficients and log sigma; None if there is none."""

    @cached_property
    def log_sigma(self) -> Marginal:
        """The posterior of log sigma."""
        grid, log_p = self._nearly_normal() if self.is_concave else (None, None)
        if grid is None or log_p is None:
            sizes = _IF_CONCAVE if self.is_concave else _FOR_MOMENTS
            grid, _ = tabulate(self.log_density, self.scale, sizes)
            log_p = self.log_density(grid)
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        mean = float(p @ grid)
        return Marginal(grid, p, mean, math.sqrt(p @ (grid - mean) ** 2))

    def _nearly_normal(self) -> tuple[FloatArray, FloatArray] | tuple[None, None]:
        """Return points of log sigma and the log density there, if these are where it lies.

        What is concave and lies so deep at both ends has nothing beyond them.
        """
        left, n = self.squares
        if left <= 0 or n < _LEAST_NORMAL:
            return None, None
        middle, half = 0.5 * math.log(left / n), _REACH / math.sqrt(2.0 * n)
        grid = np.linspace(middle - half, middle + half, _IF_NORMAL)
        log_p = self.log_density(grid)
        depth = log_p.max() - max(log_p[0], log_p[-1])
        return (grid, log_p) if depth > _DEEP else (None, None)


@dataclass(frozen=True, repr=False)
class Marginal:
    """The posterior of log sigma by the trapezoidal rule, as good as exact for what ends so deep.

    Attributes
    ----------
    points, p
        Values at even distances, and their probabilities.
    mean, sd
        Of these.
    """

    points: FloatArray
    p: FloatArray
    mean: float
    sd: float


@dataclass(frozen=True)
class Reach:
    """How far a guess may lie from a record's truth, and from what the model expects there.

    Both are bounds, on the model's scale.
    """

    from_truth: float
    from_model: float = math.inf


def quadrature(
    known: KnownGivenSigma, sums: Sums, furthest: Furthest, reach: Reach, what: str
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
        Of the confidential records among them, from this posterior.
    reach
        How far guesses may lie.
    what
        The model, for messages.
    """
    marginal = known.log_sigma
    mean, sd = marginal.mean, marginal.sd
    moves = _Moves.of(known, sums, furthest, reach)
    if max(moves.fall, moves.rise) < _LARGEST_MOVE * sd:
        rule = _gauss_rule(marginal, moves)
        if rule is not None:
            return rule[0], np.log(rule[1])
    first = min(float(marginal.points[0]), mean - _TAIL * sd - moves.fall)
    last = max(float(marginal.points[-1]), mean + _TAIL * sd + moves.rise)
    step = min(_STEP * min(sd, *moves.narrowest(known, first, last)), _WIDEST_STEP)
    n_nodes = math.ceil((last - first) / step) + 1
    if n_nodes > _MOST_NODES:
        raise FitError(
            f"{what}: a record, or a guess for it, lies so far from all others that sigma would "
            "move further than the exact estimator can follow. Look for a mistake in the data, "
            f"narrow the guesses, or use {setting('estimator', 'importance')}."
        )
    nodes = np.linspace(first, last, n_nodes)
    return nodes, _normalised(known.log_density(nodes))


@dataclass(frozen=True, repr=False)
class Furthest:
    """How far confidential records lie from a fit.

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
    left
        The least share of the squared errors that remains without a record, by least squares.
    """

    mean: FloatArray
    precision: FloatArray
    error: float
    leverage: float
    heaviest: float
    left: float

    @classmethod
    def of(
        cls, known: KnownGivenSigma, sums: Sums, records: Chunks, executor: Executor
    ) -> Furthest:
        """Return it of records, and of a fit that was given them with others in `sums`."""
        log_sigma = known.log_sigma.mean
        mean, covariance = (part[0] for part in known.given(np.array([log_sigma])))
        sigma2 = math.exp(2.0 * log_sigma)
        # The posterior's mean gives way to a gross outlier a little less than least squares, which
        # leave exactly this without it.
        inverse = np.asarray(np.linalg.pinv(sums.gram, hermitian=True), dtype=np.float64)
        least = sums.centre + inverse @ sums.products
        in_part = partial(_furthest_in, mean, covariance / sigma2, least, inverse)
        parts = zip(*executor.map(in_part, records), strict=True)
        error, leverage, heaviest, largest = (max(of_parts) for of_parts in parts)
        precision = sigma2 * np.linalg.pinv(covariance, hermitian=True)
        total = sums.squared_errors(least)  # 0 where there are as many coefficients as records
        left = max(1.0 - largest / total, 0.0) if total > 0.0 else 0.0
        return cls(mean, precision, math.sqrt(error), leverage, heaviest, left)

    def under(self, known: KnownGivenSigma) -> Furthest | None:
        """Return a bound under a fit that was given more rows; None where it would be loose.

        |x'Δ| is at most √(x'Cx · Δ'C⁻¹Δ), which for a record that settles a coefficient alone is
        much more than it is.
        """
        mean = known.given(np.array([known.log_sigma.mean]))[0][0]
        apart = mean - self.mean
        squared = float(apart @ self.precision @ apart)
        error = self.error + math.sqrt(self.leverage * max(squared, 0.0))
        return replace(self, error=error) if error < _LOOSE * self.error else None


@called("fitting", "Furthest records")
def _furthest_in(
    mean: FloatArray, covariance: FloatArray, least: FloatArray, inverse: FloatArray, chunk: Chunk
) -> tuple[float, float, float, float]:
    """Return the largest of a chunk's errors, leverages, weights and parts of least squares."""
    part = chunk.read()
    squares, leverage, left = _without(part, mean, covariance)
    by_least_squares, _, remaining = _without(part, least, inverse)
    return (
        float((squares / left).max()),
        float((leverage / left).max()),
        float(part.omega.max()),
        float((by_least_squares / remaining).max()),
    )


def _without(
    rows: Rows, mean: FloatArray, inverse: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rows' squared errors and leverages, and what these leave."""
    squares = rows.omega * (rows.y - rows.matrix @ mean) ** 2
    leverage = rows.omega * np.einsum("ij,ij->i", rows.matrix @ inverse, rows.matrix)
    return squares, leverage, np.maximum(1.0 - leverage, _LEAST_LEVERAGE_LEFT)


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
    left
        The least share of them that remains without a record.
    """

    log_sigma: float
    out: float
    inside: float
    total: float
    left: float

    @classmethod
    def of(cls, known: KnownGivenSigma, sums: Sums, furthest: Furthest, reach: Reach) -> _Moves:
        log_sigma = known.log_sigma.mean
        mean = known.given(np.array([log_sigma]))[0][0]
        error, sigma2 = furthest.error, math.exp(2.0 * log_sigma)
        root = math.sqrt(furthest.heaviest)
        inside = min(error + root * reach.from_truth, root * reach.from_model) ** 2
        total = sums.squared_errors(mean)
        out = error**2
        left = min(furthest.left, 1.0 - out / total)
        return cls(log_sigma, out / sigma2, inside / sigma2, total / sigma2, left)

    @property
    def fall(self) -> float:
        """How far log sigma falls without the furthest record."""
        return -0.5 * math.log(max(self.left, _LEAST_LEFT))

    @property
    def rise(self) -> float:
        """How far log sigma rises with a far guess."""
        return 0.5 * math.log1p(self.inside / self.total)

    def narrowest(self, known: KnownGivenSigma, first: float, last: float) -> list[float]:
        """Return the standard deviations of log sigma without the record, and with the guess.

        By the curvature at the mode: a prior on sigma may hold it more tightly there.
        """
        found = []
        for change in (self.total * (1.0 - self.left), -self.inside):

            def log_density(at: FloatArray, change: float = change) -> FloatArray:
                return known.log_density(at) + 0.5 * change * np.exp(2.0 * (self.log_sigma - at))

            grid = np.linspace(first, last, _FOR_MODE)
            for _ in range(_ROUNDS):
                top = int(np.argmax(log_density(grid)))
                low, high = grid[max(top - 1, 0)], grid[min(top + 1, _FOR_MODE - 1)]
                grid = np.linspace(low, high, _FOR_MODE)
            mode = 0.5 * float(low + high)
            # Differences would be of noise: of an outlier's square, all but a little is taken out.
            curvature = -known.second_derivative(mode)
            curvature -= 2.0 * change * math.exp(2.0 * (self.log_sigma - mode))
            found.append(1.0 / math.sqrt(curvature) if curvature > 0 else math.inf)
        return found

    def factors(self, log_sigma: FloatArray) -> FloatArray:
        """Return what the two multiply the density by, ``(2, point)``."""
        inverse = np.expm1(2.0 * (self.log_sigma - log_sigma))
        return np.exp(0.5 * np.array([self.out, -self.inside])[:, None] * inverse)


def _gauss_rule(marginal: Marginal, moves: _Moves) -> tuple[FloatArray, FloatArray] | None:
    """Return the fewest nodes, and their weights, that serve wherever sigma may go.

    The rule is that of the density itself, by the recurrence of its orthogonal polynomials
    (Stieltjes). It is tried where a record or a guess moves sigma most, from as many nodes on as a
    normal density would need.
    """
    p, mean, sd = marginal.p, marginal.mean, marginal.sd
    x = (marginal.points - mean) / sd
    wanted = moves.factors(marginal.points) @ p
    jacobi, norm = np.zeros((_MOST_GAUSS, _MOST_GAUSS)), 1.0
    before, now = np.zeros(len(x)), np.ones(len(x))
    error = 1.0
    for n in range(_MOST_GAUSS):
        jacobi[n, n] = float(p * now * now @ x) / norm
        error *= 0.5 * (max(moves.fall, moves.rise) / sd) ** 2 / (2 * n + 1)  # of n + 1 nodes
        if error < _WORTH_A_TRY:
            z, vectors = np.linalg.eigh(jacobi[: n + 1, : n + 1])
            nodes, weight = mean + sd * z, vectors[0] ** 2
            if (np.abs(moves.factors(nodes) @ weight / wanted - 1.0) < _AGREE).all():
                return nodes, weight
        if n + 1 < _MOST_GAUSS:
            beside = jacobi[n, n - 1] ** 2 if n else 0.0
            before, now = now, (x - jacobi[n, n]) * now - beside * before
            norm, last = float(p @ (now * now)), norm
            jacobi[n, n + 1] = jacobi[n + 1, n] = math.sqrt(norm / last)
    return None
