"""NUTS by nutpie, on the log posterior that Laplace's weights are computed with.

The sampler moves in coordinates in which the posterior at its mode is a standard normal. It is the
slow way to the same draws: for posteriors that importance sampling does not reach, and for checks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import OptionError
from synrisk.fitting.laplace import Fitted, Problem, find_mode
from synrisk.fitting.standardise import lower_root

_CHAINS = 4
_TUNING = 600
_LEAST_JUDGED = 100  # draws of a chain: of fewer, nothing is measured
_LARGEST_RHAT = 1.05


def nuts(problem: Problem, start: FloatArray, n_draws: int, seed: int) -> Fitted:
    """Draw from the posterior by four chains, of lengths that differ by one at most.

    However few draws are asked for, the chains run long enough to be judged; those that are kept
    are evenly spread over them, and have their share of the effective number.

    Parameters
    ----------
    problem
        The posterior.
    start
        Where the search for the mode begins.
    n_draws
        Of all chains together.
    seed
        A whole number from 0, below 2^63.
    """
    sampler = _nutpie()
    mode, precision = find_mode(problem, start)
    root = lower_root(np.asarray(np.linalg.inv(precision), dtype=np.float64))
    per_chain = max(-(-n_draws // _CHAINS), _LEAST_JUDGED)
    density = _standardised(problem, mode, root)
    z, divergent = _sample(sampler, density, len(mode), per_chain, seed)
    theta = mode + z @ root.T
    reliable, ess = _judged(theta, divergent)
    ess = float(np.clip(ess * n_draws / (_CHAINS * per_chain), 1.0, n_draws))
    kept = [n_draws // _CHAINS + (k < n_draws % _CHAINS) for k in range(_CHAINS)]
    draws = np.concatenate([_spread(chain, n) for chain, n in zip(theta, kept, strict=True)])
    chain: IntArray = np.repeat(np.arange(_CHAINS, dtype=np.int64), kept)
    log_weights = np.full(n_draws, -np.log(n_draws))
    return Fitted(draws, log_weights, mode, -np.inf, ess, reliable, chain)


def _spread(chain: FloatArray, n: int) -> FloatArray:
    """Return `n` draws of a chain, evenly spread over it; all where it has no more."""
    return np.asarray(chain[np.arange(n) * len(chain) // max(n, 1)])


def _standardised(
    problem: Problem, mode: FloatArray, root: FloatArray
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    at_mode = problem.log_posterior(mode)

    def log_density(z: FloatArray) -> tuple[float, FloatArray]:
        theta = mode + root @ np.asarray(z)
        gradient, _ = problem.derivatives(theta)
        return problem.log_posterior(theta) - at_mode, np.asarray(gradient @ root)

    return log_density


def _sample(
    sampler: tuple[Any, Any],
    log_density: Callable[[FloatArray], tuple[float, FloatArray]],
    n_parameters: int,
    per_chain: int,
    seed: int,
) -> tuple[FloatArray, int]:
    """Return draws ``(chain, draw, parameter)``, and how many of them diverged."""
    nutpie, compiled = sampler

    def expand(*_: Any) -> Callable[[FloatArray], dict[str, FloatArray]]:
        return lambda z: {"z": np.asarray(z)}

    model = compiled.from_pyfunc(
        n_parameters, lambda: log_density, expand, [np.dtype("float64")], [(n_parameters,)], ["z"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ on its own next version
        trace = nutpie.sample(
            model,
            draws=per_chain,
            tune=_TUNING,
            chains=_CHAINS,
            cores=1,
            seed=seed,
            save_warmup=False,
            progress_bar=False,
        )
    z = trace["posterior"]["z"].transpose("chain", "draw", ...).to_numpy()
    return np.asarray(z, dtype=np.float64), int(trace["sample_stats"]["diverging"].sum())


def _nutpie() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import nutpie
            from nutpie import compiled_pyfunc
    except ImportError:
        raise OptionError(
            "engine='nuts' needs nutpie; install it with pip install 'synrisk[nuts]'."
        ) from None
    return nutpie, compiled_pyfunc


def _judged(theta: FloatArray, divergent: int) -> tuple[bool, float]:
    """Return whether the chains agree, and the smallest effective number of draws."""
    from arviz_stats.base import array_stats

    n_draws = theta.shape[0] * theta.shape[1]
    rhat = max(float(array_stats.rhat(values)) for values in np.moveaxis(theta, 2, 0))
    ess = min(float(array_stats.ess(values)) for values in np.moveaxis(theta, 2, 0))
    return divergent <= n_draws // 100 and rhat <= _LARGEST_RHAT, ess
