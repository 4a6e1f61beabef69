"""Is the bound on ε of a membership risk too high more often than it says?

``python benchmarks/membership.py 300 60,400 400,2000 1,3`` draws so many worlds of each number of
records, of draws and of datasets, in which a gaussian model has the largest log ratio exactly, and
compares it with the bound that the same model's draws give. One record of each world stands out.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product

import numpy as np
import pandas as pd

import synrisk as sr
from synrisk.audit.membership import ModelMembership, by_draws, membership_by_models
from synrisk.base.workers import Serial
from synrisk.synthesis.release import read_release

CONFIDENCE = (0.5, 0.8, 0.95)
_PLAN = [sr.Regression("y ~ x", prior=sr.Conjugate(scale=5.0, df=3.0))]


def world(
    n: int, n_draws: int, m: int, seed: int, away: float = 4.0
) -> tuple[ModelMembership, ModelMembership]:
    """Return the membership of a world's records exactly, and by draws."""
    rng = np.random.default_rng([n, n_draws, m, seed])
    x = rng.normal(size=n)
    y = 1.0 + x + rng.normal(size=n)
    y[0] += away
    people = pd.DataFrame({"x": x, "y": y})
    synthesizer = sr.fit(_PLAN, people, n_draws=n_draws, seed=int(rng.integers(2**60)))
    made = synthesizer.synthesize(m=m, seed=int(rng.integers(2**60)))
    release = read_release(synthesizer.confidential, made)
    exact = membership_by_models(synthesizer, release)
    drawn = ModelMembership(*by_draws(synthesizer, synthesizer.models[0], release, Serial()))
    return exact, drawn


def main(n_worlds: int, *settings: list[int]) -> None:
    """Print a row by numbers of records, draws and datasets."""
    for n, n_draws, m in product(*settings):
        worlds = [world(n, n_draws, m, seed) for seed in range(n_worlds)]
        truth = np.array([exact.epsilon(0.95) for exact, _ in worlds])
        told = []
        for confidence in CONFIDENCE:
            bound = np.array([drawn.epsilon(confidence) for _, drawn in worlds])
            told.append(f"{confidence:g}: {int((bound > truth).sum())}")
        share = float((bound / truth).mean())
        z = np.concatenate(
            [(b.log_ratio - a.log_ratio)[b.is_reliable] / b.error[b.is_reliable] for a, b in worlds]
        )
        n_open = sum(int((~drawn.is_reliable).sum()) for _, drawn in worlds)
        print(
            f"n {n:>5} draws {n_draws:>5} m {m}: too high of {n_worlds} at {', '.join(told)}; at "
            f"{CONFIDENCE[-1]:g} on average {share:.2f} of the truth ({truth.mean():.2f}); sd of "
            f"errors {z.std():.2f} reported ones; unreliable {n_open / n_worlds:.2f} records",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    words = [*sys.argv[1:], *("300", "60,400", "400,2000", "1,3")[len(sys.argv) - 1 :]]
    main(int(words[0]), *([int(one) for one in word.split(",")] for word in words[1:4]))
