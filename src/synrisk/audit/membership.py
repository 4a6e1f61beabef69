"""Was somebody in the data that a release was made from?

**By models.** Whoever knows all other records y_-i and the models asks whether the release Ỹ came
from y or from y_-i. With θ | y the fit to everybody, f the density of record i and ω_i its exponent
in the fit,

    p(Ỹ | y) / p(Ỹ | y_-i) = p(y_i | y_-i, Ỹ) / p(y_i | y_-i)
                           = E[f(y_i|θ)^-ω | y] / E[f(y_i|θ)^-ω | y, Ỹ]

because p(Ỹ|y_-i) = E[p(Ỹ|θ) f^-ω | y] / E[f^-ω | y], and for any h E[p(Ỹ|θ) h(θ) | y] is
p(Ỹ|y) E[h(θ) | y, Ỹ]. The log is a sum over models and datasets (METHOD §4). Gaussian models have
both expectations exactly: given σ the coefficients are normal, and with τ = ω/σ², e the record's
residual and v the variance of its fitted value

    E[f^-ω | σ] ∝ σ^ω (1 − τv)^-½ exp(½ τ e²/(1 − τv))

Others take draws of both fits from the same random numbers.

**By a held-out file.** Without models, people who were in it are compared with people who were not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, expit, logsumexp, ndtri

from synrisk.audit.gower_distances import Mixed, mixed_rows, nearest
from synrisk.audit.shared_codes import (
    File,
    check_columns,
    column_names,
    files_of,
    read_files,
    refuse_empty,
)
from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import OptionError, listed, within_memory
from synrisk.base.workers import Executor, Serial
from synrisk.core.batches import Units
from synrisk.core.likelihood import Nodes
from synrisk.core.measures import JOINT, RecordMeasures, measures_of_truth
from synrisk.data.frames import TableLike, read_table
from synrisk.data.schema import Factor, label_key
from synrisk.fitting import Reach
from synrisk.fitting.psis import LEAST_JUDGED, are_reliable, smoothed
from synrisk.models.posterior import Posterior
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_HELD_OUT = "The held-out data"
_FEW = 256  # records, whose densities at all draws are held at once
_PAIR = 2  # draws of a fit come in antithetic pairs
_LEAST_EVEN = 0.8  # of the draws, above which the tail of their weights need not be looked at
# Shares of all people that are called members, the most suspicious first: fixed without the data.
_CALLED = (0.01, 0.05, 0.1, 0.25, 0.5)
_LEAST_CALLED = 5
_LEAST_HELD_OUT = 20


@dataclass(frozen=True, eq=False, repr=False)
class ModelMembership:
    """What a release tells somebody who knows the models and all others about who was in it.

    It is of this release: another one of the same fit would give other numbers.

    Attributes
    ----------
    log_ratio, error
        log p(Ỹ | y) − log p(Ỹ | y_-i) of each record, and its Monte-Carlo standard error (0 where
        it is exact).
    is_reliable
        Of which records both can be relied on.
    """

    log_ratio: FloatArray
    error: FloatArray
    is_reliable: BoolArray

    @property
    def probability(self) -> FloatArray:
        """That the record was in it, for who held that as likely as not."""
        return np.asarray(expit(self.log_ratio))

    @property
    def advantage(self) -> tuple[float, float]:
        """The mean over records of how much oftener a best test is right than wrong; its error.

        That is the total variation between releases with a record and without it,
        E[(1 − p(Ỹ|y_-i)/p(Ỹ|y))₊ | y]: each record gives one unbiased draw of it. Records share the
        release, so the mean is as lucky as that is. The error is Monte Carlo's alone, at most: as
        if it were the same way for all records, which share the draws.
        """
        inverse = np.exp(np.minimum(-self.log_ratio, 0.0))
        error = np.where(self.log_ratio > 0.0, inverse * self.error, 0.0)
        return float((1.0 - inverse).mean()), float(error.mean())

    def epsilon(self, confidence: float) -> float:
        """Return a lower bound on ε of pure differential privacy, one record added or removed.

        Such a mechanism gives no release whose probability differs by more than e^ε: the largest
        |log ratio| that happened is a bound. Exact ratios make it certain; from others as many
        standard errors are taken off as hold for all records at once with that confidence, and
        those that cannot be relied on are left out. It does not bound (ε, δ).
        """
        z = float(ndtri(1.0 - 0.5 * (1.0 - confidence) / len(self.log_ratio)))
        least = np.abs(self.log_ratio) - z * self.error
        return float(max(0.0, least[self.is_reliable].max(initial=0.0)))

    @property
    def measures(self) -> RecordMeasures:
        """The probability of membership by record, ½ before the release."""
        after = self.probability
        error = after * (1.0 - after) * self.error
        before, known = np.full(after.shape, 0.5), self.is_reliable & np.isfinite(self.log_ratio)
        return RecordMeasures(measures_of_truth(JOINT, before, after, error, error, known))


def membership_by_models(
    synthesizer: Synthesizer, release: Sequence[Released], executor: Executor | None = None
) -> ModelMembership:
    """Return the likelihood ratio of a release with each record and without it.

    Parameters
    ----------
    synthesizer
        The models, made by `fit`.
    release
        The datasets, as `read_release` returns them.
    executor
        Maps over chunks of rows.
    """
    foreign = [model.response for model in synthesizer.models if model.fit is None]
    if foreign:
        raise OptionError(
            f"Membership needs fits to confidential and synthetic rows; the draws of "
            f"{listed(foreign)} were made elsewhere. Use synrisk.fit."
        )
    executor = Serial() if executor is None else executor
    n_records = synthesizer.n_records
    log_ratio, variance = np.zeros(n_records), np.zeros(n_records)
    is_reliable = np.ones(n_records, dtype=bool)
    for model in synthesizer.models:
        is_reliable &= ~alone_with_level(synthesizer, model)
        if model.regression.distribution.exact:
            log_ratio += _exact(synthesizer, model, release, executor)
            continue
        own, error, reliable = by_draws(synthesizer, model, release, executor)
        log_ratio += own
        variance += error**2
        is_reliable &= reliable
    return ModelMembership(log_ratio, np.sqrt(variance), is_reliable)


def alone_with_level(synthesizer: Synthesizer, model: Model) -> BoolArray:
    """Tell whose level nobody else has: that it can be released at all says who was in the data.

    Levels that were declared, and true and false, are possible whoever has them.
    """
    variable = synthesizer.schema.variables[model.response]
    codes = synthesizer.columns[model.response]
    if not isinstance(variable, Factor):
        return np.zeros(len(codes), dtype=bool)
    stated = {label_key(level) for level in variable.stated}
    is_read = np.array(
        [
            label_key(level) not in stated and not isinstance(level, bool | np.bool_)
            for level in variable.levels
        ]
    )
    n_each = np.bincount(codes, minlength=len(variable.levels))
    return np.asarray((n_each[codes] == 1) & is_read[codes])


def _exact(
    synthesizer: Synthesizer, model: Model, release: Sequence[Released], executor: Executor
) -> FloatArray:
    refits, here = synthesizer.refits, Reach(0.0)
    alone = _log_inverse(synthesizer, model, refits.nodes(model, None, here, executor))
    total = np.zeros(len(alone))
    for one in release:
        stacked = refits.nodes(model, one, here, executor)
        total += alone - _log_inverse(synthesizer, model, stacked)
    return total


def _log_inverse(synthesizer: Synthesizer, model: Model, nodes: Nodes) -> FloatArray:
    """Return log E[f^-ω] of each record by nodes, but for what no fit changes."""
    matrix, y, omega = _rows_of(synthesizer, model)
    x = (matrix - nodes.centre) / nodes.spread
    terms = np.empty((len(y), len(nodes.sigma)))
    for q, sigma in enumerate(nodes.sigma):
        tau = omega / sigma**2
        left = 1.0 - tau * np.einsum("ij,jk,ik->i", x, nodes.covariance[q], x)
        error = y - (x * nodes.mean[q]).sum(axis=1)
        terms[:, q] = omega * math.log(sigma) - 0.5 * np.log(left) + 0.5 * tau * error**2 / left
    return np.asarray(logsumexp(terms + nodes.log_weight, axis=1))


def _rows_of(synthesizer: Synthesizer, model: Model) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the design, the response on the model's scale and the exponents of the records."""
    matrix = synthesizer.refits.design(model, None)
    y = model.regression.on_model_scale(synthesizer.columns[model.response])
    weights = model.record_weights
    return matrix, y.astype(np.float64), np.ones(len(y)) if weights is None else weights


def by_draws(
    synthesizer: Synthesizer, model: Model, release: Sequence[Released], executor: Executor
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the log ratios of one model, their errors, and which can be relied on.

    Draws of all fits are made from the same random numbers, but for those of Markov chains.
    """
    refits = [synthesizer.refits.refit(model, one, executor) for one in release]
    fits = [model.posterior, *(one.posterior for one in refits)]
    n_draws = min(fit.n_draws for fit in fits)
    n_draws -= n_draws % _PAIR
    fits = [fit.first(n_draws) for fit in fits]
    chain = fits[0].chain
    matrix, y, omega = _rows_of(synthesizer, model)
    log_ratio, error = np.empty(len(y)), np.empty(len(y))
    is_reliable = np.full(len(y), all(one.reliable for one in refits))
    for first in range(0, len(y), _FEW):
        part = slice(first, min(first + _FEW, len(y)))
        total, square = np.zeros(part.stop - part.start), np.zeros(part.stop - part.start)
        moved = np.zeros((part.stop - part.start, n_draws))
        for k, fit in enumerate(fits):
            weights = _log_weights(model, fit, matrix[part], y[part], omega[part])
            log_mean = logsumexp(weights, axis=1)
            weights -= log_mean[:, None]
            influence = np.exp(weights) - np.exp(fit.log_weights)
            sign = float(len(release)) if k == 0 else -1.0
            total += sign * log_mean
            if k == 0 and chain is not None:
                square += sign**2 * _variance(influence, Units.of_chains(chain, n_draws))
            else:
                moved += sign * influence
            is_reliable[part] &= _can_be_relied_on(weights)
        log_ratio[part] = total
        error[part] = np.sqrt(square + _variance(moved, Units(_PAIR)))
    return log_ratio, error, is_reliable


def _log_weights(
    model: Model, fit: Posterior, matrix: FloatArray, y: FloatArray, omega: FloatArray
) -> FloatArray:
    """Return the log of each draw's part of E[f^-ω], by record."""
    eta = np.einsum("ic,hcp->ihp", matrix, fit.coefficients)
    auxiliary = np.broadcast_to(fit.auxiliary, (len(y), *fit.auxiliary.shape))
    log_density = model.regression.distribution.log_density(y[:, None], eta, auxiliary)
    return fit.log_weights - logsumexp(fit.log_weights) - omega[:, None] * log_density


def _variance(influence: FloatArray, units: Units) -> FloatArray:
    """Return the variance of a log mean by what each draw moves it."""
    placed = units.laid_out(influence) * units.occupied(influence.shape[1])
    starts = np.arange(0, placed.shape[1], units.size)
    of_units = np.add.reduceat(placed, starts, axis=1)
    n_units = len(starts)
    return np.asarray(n_units / max(n_units - 1, 1) * (of_units**2).sum(axis=1))


def _can_be_relied_on(log_weights: FloatArray) -> BoolArray:
    """Tell whose weights a few draws do not carry; the tail is looked at where they are uneven."""
    n_draws = log_weights.shape[1]
    sizes = 1.0 / np.exp(2.0 * log_weights).sum(axis=1)
    khat = np.full(len(sizes), np.nan)
    if n_draws >= LEAST_JUDGED:
        for i in np.flatnonzero(sizes < _LEAST_EVEN * n_draws):
            khat[i] = smoothed(log_weights[i])[1]
    return are_reliable(khat, sizes, n_draws)


@dataclass(frozen=True, repr=False)
class HeldOutMembership:
    """How well people who were in the data are told from people who were not.

    It is of this release; intervals are over people, at the given confidence.

    Attributes
    ----------
    auc, auc_interval
        The probability that somebody who was in it scores higher than somebody who was not; ½ is
        chance.
    advantage, advantage_interval
        Of calling the upper half of all people members: the share of members called so less the
        share of others.
    epsilon
        A lower bound on ε of pure differential privacy, at least 0: were it lower, so many right
        calls among the most suspicious people would be too unlikely. People must have been put in
        or held out at random.
    confidence
        Of the intervals and the bound.
    n_members, n_others
        The numbers of people.
    """

    auc: float
    auc_interval: tuple[float, float]
    advantage: float
    advantage_interval: tuple[float, float]
    epsilon: float
    confidence: float
    n_members: int
    n_others: int

    def __repr__(self) -> str:
        low, high = self.auc_interval
        least, most = self.advantage_interval
        return (
            f"<HeldOutMembership: AUC {self.auc:.3f} ({low:.3f} to {high:.3f}; chance is 0.5), "
            f"advantage {self.advantage:.3f} ({least:.3f} to {most:.3f}), ε at least "
            f"{self.epsilon:.2f}, at {self.confidence:.0%}; {self.n_members:,} people in the data, "
            f"{self.n_others:,} held out>"
        )


def membership_by_holdout(
    members: FloatArray, others: FloatArray, *, confidence: float = 0.95
) -> HeldOutMembership:
    """Return how well scores tell people who were in the data from held-out ones.

    The interval of the AUC is DeLong's (1988). ε is bounded from one release (Steinke, Nasr &
    Jagielski, Privacy auditing with one (1) training run, 2023): under ε each call "member" is
    right with a probability of at most πe^ε/(πe^ε + 1 − π), π the share of members, whatever the
    other calls; so a Clopper–Pearson bound on the share of right calls bounds ε. The bound is the
    best of five numbers of calls, fixed beforehand, at a fifth of the error each.

    Parameters
    ----------
    members, others
        Scores, larger ones of people that look more like members: minus the distance to the
        nearest row of the release, or a log ratio of densities.
    confidence
        Of intervals and bound.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> found = membership_by_holdout(rng.normal(3, 1, 200), rng.normal(0, 1, 200))
    >>> print(found.auc > 0.95, found.epsilon > 1)
    True True
    """
    if not isinstance(confidence, float) or not 0.0 < confidence < 1.0:
        raise OptionError("confidence must be a number between 0 and 1, such as 0.95.")
    if min(len(members), len(others)) < _LEAST_HELD_OUT:
        raise OptionError(
            f"Membership is judged by at least {_LEAST_HELD_OUT} people on either side; there are "
            f"{len(members):,} who were in the data and {len(others):,} held out."
        )
    if not (np.isfinite(members).all() and np.isfinite(others).all()):
        raise OptionError("Scores of membership must be finite numbers.")
    z = float(ndtri(0.5 + 0.5 * confidence))
    auc, error = _auc(members, others)
    middle = np.median(np.concatenate([members, others]))
    rates = [_share_above(own, middle) for own in (members, others)]
    spread = math.sqrt(
        sum(p * (1.0 - p) / len(own) for p, own in zip(rates, (members, others), strict=True))
    )
    advantage = rates[0] - rates[1]
    return HeldOutMembership(
        auc,
        (max(0.0, auc - z * error), min(1.0, auc + z * error)),
        advantage,
        (max(-1.0, advantage - z * spread), min(1.0, advantage + z * spread)),
        _epsilon(members, others, confidence),
        confidence,
        len(members),
        len(others),
    )


def _share_above(scores: FloatArray, middle: float) -> float:
    """Return the share of scores above the middle, half of those at it."""
    return float((scores > middle).mean() + 0.5 * (scores == middle).mean())


def _auc(members: FloatArray, others: FloatArray) -> tuple[float, float]:
    """Return the area under the curve and its standard error, by placements (DeLong 1988)."""
    from scipy.stats import rankdata  # which takes long to import

    n, m = len(members), len(others)
    ranks = rankdata(np.concatenate([members, others]))
    above = (ranks[:n] - rankdata(members)) / m  # the share of others below each member
    below = 1.0 - (ranks[n:] - rankdata(others)) / n
    error = math.sqrt(above.var(ddof=1) / n + below.var(ddof=1) / m)
    return float(above.mean()), error


def _epsilon(members: FloatArray, others: FloatArray, confidence: float) -> float:
    """Return a lower bound on ε by the share of members among the most suspicious people."""
    scores = np.concatenate([members, others])
    is_member = np.arange(len(scores)) < len(members)
    # Among equal scores those who were not members come first: no credit for ties.
    order = np.lexsort((is_member, -scores))
    right = np.cumsum(is_member[order])
    odds = math.log(len(members) / len(others))
    sizes = {max(_LEAST_CALLED, int(share * len(scores))) for share in _CALLED}
    level = (1.0 - confidence) / len(_CALLED)
    best = 0.0
    for n_called in sizes:
        n_right = int(right[n_called - 1])
        if n_right:
            share = float(betaincinv(n_right, n_called - n_right + 1, level))
            best = max(best, math.log(share / (1.0 - share)) - odds)
    return best


@within_memory
def membership_of_files(
    confidential: TableLike,
    holdout: TableLike,
    synthetic: TableLike,
    names: Sequence[str],
    *,
    confidence: float = 0.95,
) -> HeldOutMembership:
    """Return how well nearness to a release tells who was in the data it was made from.

    The score of a person is d/(d + s): s is the Gower distance to the nearest row of the release, d
    that to the nearest other person of both files together. A release that does not depend on who
    was put in and who was held out leaves the scores of both exchangeable.

    Parameters
    ----------
    confidential, holdout
        People who were in the data and people who were not, parted at random.
    synthetic
        One dataset of the release.
    names
        The columns to compare.
    confidence
        Of intervals and bound.
    """
    columns = column_names(names, "names")
    if not columns:
        raise OptionError("names= is empty: name the columns to compare.")
    frame, datasets = read_files(confidential, synthetic)
    if len(datasets) != 1:
        raise OptionError("Membership by a held-out file is of one dataset; call for each.")
    others = File(read_table(holdout, _HELD_OUT), _HELD_OUT)
    refuse_empty(others)
    files = [*files_of(frame, datasets), others]
    check_columns(files, columns)
    own, rows, out = mixed_rows(files, columns)
    everybody = Mixed(
        np.concatenate([own.numbers, out.numbers]), np.concatenate([own.levels, out.levels])
    )
    to_rows = nearest(everybody, rows, 1)[0][:, 0]
    to_others = nearest(everybody, everybody, 1, np.arange(len(everybody)))[0][:, 0]
    total = to_rows + to_others
    scores = np.where(total > 0, to_others / np.where(total > 0, total, 1.0), 0.5)
    return membership_by_holdout(scores[: len(own)], scores[len(own) :], confidence=confidence)
