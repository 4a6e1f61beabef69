"""Benchmarks: ratios taken in one run, as a table and as JSON (build/benchmarks.json).

The paper's second application on the built-in sample: n = 5126, 11 × 11 guesses, 50 draws, which
makes 31.0 million weights, against one-thread ``numpy.exp`` into a preallocated array over as many
doubles. Pairs are interleaved and medians reported: machines are noisy, ratios less so.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr

N_DRAWS, N_GUESSES, N_PAIRS = 50, 11, 9
R_SECONDS_A_RECORD = 14.0  # the R package, on the paper's own sample (13–25 s)
MANY = 1_000_000


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def median_seconds(call: Callable[[], object], n: int = 5) -> float:
    """Time a call several times, after one that does not count."""
    call()
    return statistics.median(seconds(call) for _ in range(n))


def application(n_records: int | None = None, n_draws: int = N_DRAWS) -> tuple[Any, Any]:
    """Return the second application with draws near its posterior, and a release."""
    rng = np.random.default_rng(1)
    if n_records is None:
        people = sr.load_households()[["LogExpenditure", "LogIncome"]]
    else:
        spent = rng.normal(8.86, 0.88, n_records)
        earned = rng.normal(3.88 + 0.77 * spent, 1.05)
        people = pd.DataFrame({"LogExpenditure": spent, "LogIncome": earned})
    scale = np.sqrt(5126 / len(people))
    slope = rng.normal(0.77, 0.017 * scale, n_draws)
    draws = [
        pd.DataFrame(
            {
                "Intercept": rng.normal(8.86, 0.012 * scale, n_draws),
                "sigma": rng.normal(0.88, 0.009 * scale, n_draws),
            }
        ),
        pd.DataFrame(
            {
                "Intercept": rng.normal(10.70, 0.015 * scale, n_draws) - 8.86 * slope,
                "LogExpenditure": slope,
                "sigma": rng.normal(1.05, 0.010 * scale, n_draws),
            }
        ),
    ]
    release = people.sample(frac=1.0, replace=True, random_state=1, ignore_index=True)
    plan = [sr.Regression("LogExpenditure ~ 1"), sr.Regression("LogIncome ~ LogExpenditure")]
    return sr.Synthesizer.from_draws(plan, people, draws), release


def evaluate(case: tuple[Any, Any], estimator: str = "importance", **options: Any) -> Any:
    """Evaluate an application, the joint dropped; without diagnostics unless asked for."""
    synthesizer, release = case
    options = {"diagnostics": False, "joint": "drop", **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sr.ReliabilityWarning)  # fifty draws are too few to be sure
        return sr.attribute_risk(
            synthesizer, release, estimator=estimator, **options, question="paper"
        )


def fitted_application() -> tuple[Any, Any]:
    """Return the second application, fitted here, and a release."""
    people = sr.load_households()[["LogExpenditure", "LogIncome"]]
    plan = [sr.Regression("LogExpenditure ~ 1"), sr.Regression("LogIncome ~ LogExpenditure")]
    synthesizer = sr.fit(plan, people, seed=1)
    return synthesizer, synthesizer.synthesize(1, seed=2)


def against_exp() -> dict[str, float]:
    """The whole call against numpy.exp over as many doubles."""
    case = application()
    n_weights = case[0].n_records * N_GUESSES**2 * N_DRAWS
    values = np.random.default_rng(2).standard_normal(n_weights)
    out = np.empty_like(values)
    np.exp(values, out=out)
    rows = {"weights (million)": n_weights / 1e6}
    for estimator in ("paper", "importance"):
        evaluate(case, estimator)
        pairs = [
            (
                seconds(lambda e=estimator: evaluate(case, e)),
                seconds(lambda: np.exp(values, out=out)),
            )
            for _ in range(N_PAIRS)
        ]
        rows[f"{estimator}: whole call / numpy.exp"] = statistics.median(a / b for a, b in pairs)
        rows[f"{estimator}: whole call (s)"] = statistics.median(a for a, _ in pairs)
    rows["numpy.exp (s)"] = statistics.median(b for _, b in pairs)
    fitted = fitted_application()
    evaluate(fitted, "auto", diagnostics=True)
    name = "auto with diagnostics"
    rows[f"{name}: whole call / numpy.exp"] = _median_ratio([fitted] * N_PAIRS, values, out)
    # What no release changes is kept with the synthesizer: its first call has to work that out.
    fresh = [fitted_application() for _ in range(N_PAIRS)]
    rows[f"{name}, first of a synthesizer / numpy.exp"] = _median_ratio(fresh, values, out)
    del fresh
    for estimator in ("importance", "stacked"):
        without = median_seconds(lambda e=estimator: evaluate(fitted, e))
        with_errors = median_seconds(lambda e=estimator: evaluate(fitted, e, diagnostics=True))
        rows[f"{estimator}: with diagnostics / without"] = with_errors / without
    whole = R_SECONDS_A_RECORD * case[0].n_records
    rows["R package / paper"] = whole / rows["paper: whole call (s)"]
    return rows


def _median_ratio(cases: list[tuple[Any, Any]], values: Any, out: Any) -> float:
    """Time "auto" with diagnostics on each case, against numpy.exp."""
    return statistics.median(
        seconds(lambda c=case: evaluate(c, "auto", diagnostics=True))
        / seconds(lambda: np.exp(values, out=out))
        for case in cases
    )


def growth() -> dict[str, float]:
    """How the time grows; every figure is a ratio of two times of this run."""
    rows = {}
    for estimator in ("paper", "importance"):
        base = median_seconds(lambda e=estimator: evaluate(application_small, e))
        larger = {
            "10 × records": lambda e=estimator: evaluate(application_large, e),
            "4 × draws": lambda e=estimator: evaluate(application_draws, e),
            "2 × guesses a variable": lambda e=estimator: evaluate(
                application_small, e, guesses=2 * N_GUESSES
            ),
            "5 datasets": lambda e=estimator: evaluate(
                (application_small[0], [application_small[1]] * 5), e
            ),
            "1 thread": lambda e=estimator: evaluate(application_small, e, executor="serial"),
        }
        for name, call in larger.items():
            rows[f"{estimator}: {name}"] = median_seconds(call, 3) / base
    return rows


def fits() -> dict[str, float]:
    """Fits and synthesis of the applications' models, 1,000 draws, and of many more records."""
    people = sr.load_households()
    models = {
        "LogIncome ~ LogExpenditure": "gaussian",
        "KidsCount ~ LogExpenditure + Urban": "poisson",
        "Race ~ LogIncome": "categorical",
    }
    many = people.sample(100_000, replace=True, random_state=1, ignore_index=True)
    rows = {}
    for formula, family in models.items():
        for data in (people, many):
            columns = [name for name in data.columns if name in formula.replace("~", "+").split()]
            model, used = sr.Regression(formula, family), data[columns]
            name = f"{formula}, {len(data):,} records"
            rows[f"{name} (s)"] = median_seconds(lambda m=model, d=used: sr.fit(m, d, seed=1), 3)
    return rows


def in_new_process(code: str, **environment: str) -> str:
    """Run code in a Python of its own."""
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip().splitlines()[-1]


def costs() -> dict[str, float]:
    """Imports, the first call of an installation, and memory, each in a process of its own."""
    clock = "import time; start = time.perf_counter(); "
    stop = "; print(time.perf_counter() - start)"
    here = str(Path(__file__).parent)
    call = f"import sys; sys.path.insert(0, {here!r}); import run; case = run.application(); "
    rows = {"import synrisk (s)": float(in_new_process(clock + "import synrisk" + stop))}
    with tempfile.TemporaryDirectory() as folder:
        once = call + clock + "run.evaluate(case, 'paper'); run.evaluate(case)" + stop
        for name in ("first calls, compiling (s)", "first calls, from the cache (s)"):
            rows[name] = float(in_new_process(once, NUMBA_CACHE_DIR=folder))
    for n in (MANY // 10, MANY):
        code = call.replace("run.application()", f"run.application({n})") + (
            "run.evaluate(case); import resource; "
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)"
        )
        rows[f"memory in all at {n:,} records (GB)"] = float(in_new_process(code))
    return rows


def main() -> None:
    """Print the tables and write them as JSON."""
    results = {}
    for title, part in (
        ("against numpy.exp", against_exp),
        ("growth", growth),
        ("fits", fits),
        ("costs", costs),
    ):
        results[title] = part()
        print(f"\n{title}")
        for name, value in results[title].items():
            print(f"  {name:56s} {value:14,.3f}")
    path = Path("build/benchmarks.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")
    print(f"\nWritten: {path}")


if __name__ == "__main__":
    application_small = application()
    application_large = application(51_260)
    application_draws = application(n_draws=4 * N_DRAWS)
    main()
