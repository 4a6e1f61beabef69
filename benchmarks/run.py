"""Whole calls against numpy.exp over as many doubles, in one run: ratios, not times.

The paper's second application on the built-in sample: n = 5126, 11 × 11 guesses, 50 draws, which
makes 31.0 million weights. Pairs are interleaved and the median ratio is reported.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import synrisk as sr

N_DRAWS, N_GUESSES, N_PAIRS = 50, 11, 5


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def application() -> tuple[sr.Synthesizer, pd.DataFrame]:
    """Return the second application with draws near its posterior, and a release."""
    rng = np.random.default_rng(1)
    people = sr.load_households()
    first = pd.DataFrame(
        {"Intercept": rng.normal(8.86, 0.012, N_DRAWS), "sigma": rng.normal(0.88, 0.009, N_DRAWS)}
    )
    slope = rng.normal(0.77, 0.017, N_DRAWS)
    second = pd.DataFrame(
        {
            "Intercept": rng.normal(10.70, 0.015, N_DRAWS) - 8.86 * slope,
            "LogExpenditure": slope,
            "sigma": rng.normal(1.05, 0.010, N_DRAWS),
        }
    )
    release = people[["LogExpenditure", "LogIncome"]].sample(frac=1.0, replace=True, random_state=1)
    plan = [sr.Regression("LogExpenditure ~ 1"), sr.Regression("LogIncome ~ LogExpenditure")]
    return sr.Synthesizer.from_draws(plan, people, [first, second]), release


def main() -> None:
    """Print the table and write it as JSON."""
    synthesizer, release = application()
    n_weights = synthesizer.n_records * N_GUESSES**2 * N_DRAWS
    values = np.random.default_rng(2).standard_normal(n_weights)
    out = np.empty_like(values)
    rows = {}
    for estimator in ("paper", "importance"):
        ratios, own = [], []
        for _ in range(N_PAIRS):
            call = seconds(
                lambda e=estimator: sr.attribute_risk(
                    synthesizer, release, guesses=N_GUESSES, estimator=e, joint="drop"
                )
            )
            ratios.append(call / seconds(lambda: np.exp(values, out=out)))
            own.append(call)
        rows[estimator] = {"ratio": statistics.median(ratios), "seconds": statistics.median(own)}
    print(f"{n_weights / 1e6:.1f} million weights; median of {N_PAIRS} interleaved pairs")
    for name, row in rows.items():
        print(f"{name:12s} {row['ratio']:7.2f} × numpy.exp  ({row['seconds']:.3f} s)")
    path = Path("build/benchmarks.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"Written: {path}")


if __name__ == "__main__":
    main()
