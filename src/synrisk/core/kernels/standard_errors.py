"""Kernel of the Monte-Carlo error: once more over the weights, when the posterior is known.

With normalised weights p_h(c) of each set of draws at cell c, signed + for draws given the release
and − for draws given the confidential data alone (METHOD §5),

    q_u(c) = Σ_{h∈u} Σ sign · p_h(c)    the effect of a unit of draws on log L(c)
    φ_u    = Σ_c K(c) q_u(c)            its effect on a probability whose derivatives are K

and the squares of φ over the units (a draw, an antithetic pair, a batch) estimate the variance.
Some of the units are enough for that; the evenness of the weights is judged by all draws, at the
guess where those of the used ones are least even.
Where second moments of the random numbers were matched, what is linear in them has no error: its
directions are taken out of φ; or, where they are many, the share of φ's variance that they explain.
A probability P_T of a set T of cells has the derivatives P(c within T) − P_T·P(c): the effects on
what lies within T and on everything are summed apart. Where the prior is what draws without the
release predict, their effect on it is added with derivatives of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from synrisk.core.kernels import plain
from synrisk.core.kernels.compiling import as_kernel, within_kernels
from synrisk.core.kernels.digest import sources_digest
from synrisk.core.kernels.exp_log import (
    LOG2E,
    exp2_to_five_digits,
    exponential,
    largest,
    wide_vectors,
)
from synrisk.core.kernels.predictors import add_terms_at, at_record, compiled, fill_bases
from synrisk.core.kernels.signatures import (
    B1,
    F1,
    F2,
    F3,
    F4,
    FAST,
    MATCHED,
    RECORDS,
    SETS,
    Draws,
)
from synrisk.core.kernels.simd import N_LANES, broadcast, load, store
from synrisk.models.families import Compiled, Family

_LEAST_LOG = -690.0  # of a weight against the largest
_EVEN = 0.98  # effective share of weights that leave the tail of what they multiply as it is


@cache
def error_kernel(family: Family) -> Callable[..., None]:
    """Return the kernel of a family, compiled or from numba's cache."""
    if family.compiled is None:
        return plain.errors(family, _errors_of(plain.LISTED))
    return _errors_of(family.compiled)


@cache
def _errors_of(functions: Compiled) -> Callable[..., None]:
    kernel: Callable[..., None] = _make_errors(*compiled(functions), sources_digest(functions))
    return kernel


@within_kernels()
def _mean_log(theta: Any, excess: Any, n: Any, lanes: Any) -> Any:
    """Return the mean of log(1 − theta·excess); `excess` is filled up by zeros."""
    wide_vectors()
    total = broadcast(0.0)
    for first in range(0, len(excess), N_LANES):
        total += math.log(1.0 - load(excess, first) * theta)
    store(lanes, 0, total)
    whole = 0.0
    for j in range(N_LANES):
        whole += lanes[j]
    return whole / n


@within_kernels()
def _bring_up_largest(values: Any, n: Any) -> None:
    """Put the `n` largest values last, in order: numba takes seconds to compile np.partition."""
    low, high, wanted = 0, len(values) - 1, len(values) - n
    while low < high:  # Hoare's selection
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left, right = left + 1, right - 1
        if wanted <= right:
            high = right
        elif wanted >= left:
            low = left
        else:
            break
    for j in range(wanted + 1, len(values)):
        value, k = values[j], j
        while k > wanted and values[k - 1] > value:
            values[k] = values[k - 1]
            k -= 1
        values[k] = value


@within_kernels()
def tail_shape(log_weights: Any) -> Any:
    """k̂ of the largest weights: a generalised Pareto tail by Zhang and Stephens' estimator.

    The log weights are left in another order.
    """
    n = len(log_weights)
    n_tail = int(3.0 * math.sqrt(n)) if n > 225 else n // 5  # as PSIS has it
    _bring_up_largest(log_weights, n_tail + 1)
    top = log_weights[n - 1]
    threshold = math.exp(max(log_weights[n - n_tail - 1] - top, _LEAST_LOG))
    excess, lanes = np.zeros(-(-n_tail // N_LANES) * N_LANES), np.empty(N_LANES)
    for j in range(n_tail):
        excess[j] = math.exp(max(log_weights[n - n_tail + j] - top, _LEAST_LOG)) - threshold
    largest = excess[n_tail - 1]
    if not largest > 0.0 or not excess[0] >= 0.0:
        return -np.inf
    quartile = max(excess[int(n_tail / 4 + 0.5) - 1], 1e-300)
    n_grid = 30 + int(math.sqrt(n_tail))
    theta, log_profile = np.empty(n_grid), np.empty(n_grid)
    best = -np.inf
    for j in range(n_grid):
        theta[j] = 1.0 / largest
        theta[j] += (1.0 - math.sqrt(n_grid / (j + 0.5))) / (3.0 * quartile)
        k = _mean_log(theta[j], excess, n_tail, lanes)
        log_profile[j] = n_tail * (math.log(-theta[j] / k) - k - 1.0)
        best = max(best, log_profile[j])
    total, mean = 0.0, 0.0
    for j in range(n_grid):
        weight = math.exp(log_profile[j] - best)
        total += weight
        mean += weight * theta[j]
    k = _mean_log(mean / total, excess, n_tail, lanes)
    return (n_tail * k + 10.0 * 0.5) / (n_tail + 10.0)  # a weak prior at ½, as PSIS has it


@within_kernels(fastmath=FAST)
def _sum_units(values: Any, unit_size: Any, out: Any) -> None:
    """Sum adjacent draws into units."""
    n_draws = len(values)
    n_whole = n_draws // unit_size
    if unit_size == 2:
        for u in range(n_whole):
            out[u] = values[2 * u] + values[2 * u + 1]
    else:
        for u in range(n_whole):
            total = 0.0
            for h in range(u * unit_size, (u + 1) * unit_size):
                total += values[h]
            out[u] = total
    if n_whole < len(out):
        total = 0.0
        for h in range(n_whole * unit_size, n_draws):
            total += values[h]
        out[n_whole] = total


@within_kernels(fastmath=FAST)
def _squares(values: Any, matched: Any) -> Any:
    """Σ value² over the units, less what matched moments leave no error in."""
    basis, share, form, most = matched
    total = 0.0
    for u in range(len(values)):
        total += values[u] * values[u]
    for direction in range(len(basis)):
        along = 0.0
        for u in range(len(values)):
            along += values[u] * basis[direction, u]
        total -= along * along
    if len(form) > 0:
        first, explained = 0.0, 0.0
        for u in range(len(form)):
            along = 0.0
            for other in range(len(form)):
                along += form[u, other] * values[other]
            explained += values[u] * along
            first += values[u] * values[u]
        if first > 0.0:
            total *= 1.0 - min(max(share + explained / first, 0.0), most)
    return max(total, 0.0)


@within_kernels(fastmath=FAST)
def _effective(log_weights: Any) -> Any:
    """(Σ v)²/Σ v² of log weights."""
    top = largest(log_weights)
    total, squares = 0.0, 0.0
    for h in range(len(log_weights)):
        weight = exponential(log_weights[h] - top)
        total += weight
        squares += weight * weight
    return total * total / squares


@within_kernels(fastmath=FAST)
def _variances(effects: Any, within: Any, matched: Any, variance: Any) -> None:
    """The variance of each target from the effects on what lies within it, and on everything."""
    n_cells = len(within)
    for r in range(1, len(effects)):
        total = 0.0
        for c in range(n_cells):
            total += within[c, r]
        for u in range(effects.shape[1]):
            effects[r, u] -= total * effects[0, u]
        variance[r - 1] = _squares(effects[r], matched)


def _make_errors(varying: Any, base: Any, digest: str) -> Any:
    signature = types.void(
        RECORDS, SETS, F3, SETS, F3, F2, F2, B1, types.int64, F2, MATCHED, F3, F3, F4,
        types.float64, F2, F2, F2, F2, F1, F1,
    )  # fmt: skip

    @as_kernel(signature, fastmath=FAST)
    def errors(
        records: Any,
        draws: Any,
        log_weights: Any,  # (set, factor, draw): of what v·w is multiplied by
        used: Any,  # those draws that errors are estimated by
        used_weights: Any,  # the same of these, not in logs
        signs: Any,  # (set, factor)
        prior_signs: Any,  # (set, factor): how the sums enter the log of what is predicted
        predicts: Any,  # (set): whether a guess has its own exponent there, not the record's
        unit_size: Any,  # adjacent draws
        at_truth: Any,  # ([likelihood, prior], unit): q at the truth, of the units that are used
        matched: Any,  # what matched moments leave no error in
        within: Any,  # (record, cell, [all, target …]): probabilities of cells, and within targets
        by_prior: Any,  # (record, cell, [all, target …]): derivatives in the prior; or (0, 0, 0)
        totals: Any,  # (set, record, factor, cell): the sums of the weights, NaN where lost
        least_even: Any,  # effective number of draws from which k̂ is not needed
        known_khat: Any,  # (set, factor): of v times the factor, or NaN
        variance: Any,  # (record, target)
        apart: Any,  # (record, cell): the variance of log L against the truth's
        apart_with_prior: Any,  # the same with what is predicted; or (0, 0)
        ess: Any,  # (record): the smallest effective number of all draws
        khat: Any,  # (record): of their weights at that guess
    ) -> None:
        _ = digest
        values, places, guesses, truth, omega, power = records
        beta, parameters, log_v = draws
        n_records, n_guesses = guesses.shape
        n_parents, n_targets = places.shape[1], within.shape[2]
        n_sets, n_factors, n_draws = log_weights.shape
        n_predictors, n_units = beta.shape[2], at_truth.shape[1]
        n_used = used_weights.shape[2]
        eta = np.empty((n_sets, n_parents, n_predictors, n_used))
        bases = np.empty((n_sets, n_parents, n_used))
        offset = np.empty((n_sets, n_used))
        row, q, sums = np.empty(n_used), np.empty((2, n_used)), np.empty((2, n_units))
        n_q = 2 if len(by_prior) > 0 else 1
        effects = np.empty((n_targets, n_units))
        all_eta, two = np.empty((2, n_predictors, n_draws)), np.empty((2, n_draws))
        whole_row, exponent = np.empty(n_draws), np.empty(n_sets)
        fewest = np.empty((n_sets, n_factors))
        worst = np.empty((n_sets, n_factors), dtype=np.int64)
        for i in range(n_records):
            for s in range(n_sets):
                of_set = Draws(used.beta[s], used.parameters[s], used.log_v[s])
                exponent[s] = power[i] if predicts[s] else omega[i]
                at_record(
                    varying, base, i, records, of_set, exponent[s], eta[s], bases[s], offset[s]
                )
            effects[:] = 0.0
            fewest[:], worst[:] = np.inf, 0
            # Where a guess has its own exponent, the truth's weights are not 1: they come first.
            for k in range(-1 if predicts.any() else 0, n_parents * n_guesses):
                c = k if k >= 0 else truth[i, 0] * n_guesses + truth[i, 1]
                p, y = c // n_guesses, guesses[i, c % n_guesses]
                q[:n_q] = 0.0
                for s in range(n_sets):
                    own_eta, own_parameters = eta[s], used.parameters[s]
                    for h in range(n_used):
                        value = varying(y, own_eta, p, h, own_parameters) - bases[s, p, h]
                        row[h] = (offset[s, h] + exponent[s] * value) * LOG2E
                    lost = False
                    for f in range(n_factors):
                        lost |= np.isnan(totals[s, i, f, c])
                    if lost:
                        top = largest(row)
                        for h in range(n_used):
                            row[h] -= top
                    exp2_to_five_digits(row)
                    for f in range(n_factors):
                        weights, total = used_weights[s, f], totals[s, i, f, c]
                        if lost:  # the sum over all draws is not known: as among those used
                            among = 0.0
                            for h in range(n_used):
                                among += row[h] * weights[h]
                            total = among * n_draws / n_used
                        by, among, squares = signs[s, f] / total, 0.0, 0.0
                        for h in range(n_used):
                            part = row[h] * weights[h]
                            among += part
                            squares += part * part
                            q[0, h] += by * part
                        if n_q > 1 and prior_signs[s, f] != 0.0:
                            by = prior_signs[s, f] / total
                            for h in range(n_used):
                                q[1, h] += by * (row[h] * weights[h])
                        effective = among * among / squares
                        if effective < fewest[s, f]:
                            fewest[s, f], worst[s, f] = effective, c
                for j in range(n_q):
                    _sum_units(q[j], unit_size, sums[j])
                if k < 0:
                    at_truth = sums.copy()
                    continue
                for r in range(n_targets):
                    by = within[i, c, r]
                    if by != 0.0:
                        for u in range(n_units):
                            effects[r, u] += by * sums[0, u]
                    if n_q > 1:
                        by = by_prior[i, c, r]
                        for u in range(n_units):
                            effects[r, u] += by * sums[1, u]
                total, both = 0.0, 0.0
                for u in range(n_units):
                    total += (sums[0, u] - at_truth[0, u]) ** 2
                apart[i, c] = total
                if n_q > 1:
                    for u in range(n_units):
                        difference = sums[0, u] - at_truth[0, u] + sums[1, u] - at_truth[1, u]
                        both += difference * difference
                    apart_with_prior[i, c] = both
            _variances(effects, within[i], matched, variance[i])
            # All draws are looked at where the used ones are least even.
            s, f = 0, 0
            for one in range(n_sets):
                for other in range(n_factors):
                    fewer = fewest[one, other] < fewest[s, f]
                    if signs[one, other] != 0.0 and (signs[s, f] == 0.0 or fewer):
                        s, f = one, other
            c = worst[s, f]
            p, y = c // n_guesses, guesses[i, c % n_guesses]
            y_true, own_parameters = guesses[i, truth[i, 1]], parameters[s]
            add_terms_at(i, values, places[:, p], beta[s], all_eta, 0)
            add_terms_at(i, values, places[:, truth[i, 0]], beta[s], all_eta, 1)
            fill_bases(base, all_eta, 0, own_parameters, two, 0)
            fill_bases(base, all_eta, 1, own_parameters, two, 1)
            for h in range(n_draws):
                value = varying(y, all_eta, 0, h, own_parameters)
                value -= varying(y_true, all_eta, 1, h, own_parameters)
                value -= two[0, h] - two[1, h]
                whole_row[h] = log_v[s, h] + log_weights[s, f, h] + omega[i] * value
                if exponent[s] != omega[i]:
                    value = varying(y, all_eta, 0, h, own_parameters) - two[0, h]
                    whole_row[h] += (exponent[s] - omega[i]) * value
            ess[i] = _effective(whole_row)
            khat[i] = np.nan
            if ess[i] < least_even:
                even = fewest[s, 0] >= _EVEN * n_used
                known = even and not np.isnan(known_khat[s, f])
                khat[i] = known_khat[s, f] if known else tail_shape(whole_row)

    return errors
