"""What wide plans cost: chains of more and more variables, and many variables of mixed families.

``python benchmarks/wide_plans.py chain`` prints processor seconds of a chain of 4, 8, 16 and 32
variables; ``python benchmarks/wide_plans.py mixed 14 10000`` prints seconds of every stage and the
largest memory of fit, synthesis and risk of so many variables and records.
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

import synrisk as sr
from synrisk.base.workers import workers

KINDS = ("gaussian", "poisson", "bernoulli", "gaussian", "categorical", "gaussian", "gamma")
_RECORDS = 400


def chain(n: int, family: str) -> tuple[list[sr.Regression], pd.DataFrame]:
    """Return a plan in which each variable is predicted by the one before, and its data."""
    rng = np.random.default_rng(1)
    columns, before = {"x": rng.normal(size=_RECORDS)}, rng.normal(size=_RECORDS)
    for k in range(n):
        mean = 0.4 * before
        if family == "poisson":
            own = rng.poisson(np.exp(0.5 + 0.3 * mean)).astype(np.float64)
            before = (own - own.mean()) / own.std()
        else:
            before = own = mean + rng.normal(size=_RECORDS)
        columns[f"v{k}"] = own.astype(np.int64) if family == "poisson" else own
    plan = [sr.Regression(f"v{k} ~ {f'v{k - 1}' if k else 'x'}", family) for k in range(n)]
    return plan, pd.DataFrame(columns)


def time_chains() -> None:
    """Print processor seconds by the length of a chain, the least of three."""
    for family in ("gaussian", "poisson"):
        for n in (4, 8, 16, 32):
            plan, data = chain(n, family)
            synthesizer = sr.fit(plan, data, n_draws=200, seed=1)
            release = synthesizer.synthesize()
            guesses = sr.Range(20)
            risk = sr.attribute_risk(
                synthesizer, release, diagnostics=False, guesses=guesses, records=[0]
            )
            grids = risk._evaluation.question.grids(synthesizer, np.arange(_RECORDS), 1)
            everybody = replace(
                risk._evaluation, grids=grids, positions=np.arange(_RECORDS), is_joint=False
            )
            took = {True: [], False: []}
            for with_errors in (True, False) * 3:
                with workers("serial").shared() as team:
                    start = time.process_time()
                    everybody.run(team, keep_joint=False, with_errors=with_errors)
                    took[with_errors].append(time.process_time() - start)
            without, with_ = min(took[False]), min(took[True])
            print(
                f"{family:9} {n:3} variables: {1e3 * without / _RECORDS:8.3f} ms a record, "
                f"{1e3 * with_ / _RECORDS:8.3f} with errors",
                flush=True,
            )


def mixed(n: int, n_records: int) -> tuple[list[sr.Regression], pd.DataFrame]:
    """Return a plan of mixed families, each with one or two synthesized predictors."""
    rng = np.random.default_rng(11)
    columns = {"x": rng.normal(size=n_records), "g": rng.choice(["a", "b", "c"], size=n_records)}
    plan, names, scores = [], [], {}
    for k in range(n):
        kind, name = KINDS[k % len(KINDS)], f"v{k:02d}"
        parents = [*names[-1:], *([names[-3]] if k % 3 == 2 and k >= 3 else [])]
        eta = 0.2 * columns["x"] + sum(0.35 * scores[parent] for parent in parents)
        if kind == "gaussian":
            values = score = eta + rng.normal(size=n_records)
        elif kind == "poisson":
            values = rng.poisson(np.exp(0.6 + 0.4 * eta))
            score = (values - values.mean()) / values.std()
        elif kind == "bernoulli":
            score = (rng.random(n_records) < 1.0 / (1.0 + np.exp(-eta))) * 1.0
            values = np.where(score > 0, "yes", "no")
        elif kind == "categorical":
            odds = np.exp(np.stack([0.0 * eta, 0.5 * eta, -0.3 * eta], axis=1))
            shares = np.cumsum(odds / odds.sum(axis=1, keepdims=True), axis=1)
            code = (rng.random(n_records)[:, None] > shares[:, :2]).sum(axis=1)
            values, score = np.array(["p", "q", "r"])[code], code - 1.0
        else:
            values = rng.gamma(4.0, np.exp(0.3 * eta) / 4.0)
            score = np.log(values)
        terms = ["x", *parents, *(["g"] if k % 4 == 0 else [])]
        plan.append(sr.Regression(f"{name} ~ {' + '.join(terms)}", kind))
        columns[name], scores[name] = values, score
        names.append(name)
    return plan, pd.DataFrame(columns)


def time_mixed(n: int, n_records: int) -> None:
    """Print what every stage takes."""
    wall, cpu = time.perf_counter(), time.process_time()

    def say(what: str) -> None:
        nonlocal wall, cpu
        now, used = time.perf_counter(), time.process_time()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        took = f"{now - wall:8.1f} s, {used - cpu:8.1f} s of processor time"
        print(f"{what:12} {took}, {peak:,.0f} MB", flush=True)
        wall, cpu = now, used

    plan, data = mixed(n, n_records)
    say("data")
    synthesizer = sr.fit(plan, data, seed=1)
    say("fit")
    release = synthesizer.synthesize()
    say("synthesis")
    risk = sr.attribute_risk(synthesizer, release)
    say("risk")
    print(risk)
    print(risk.verdict(further=0))
    say("verdict")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1] == "chain":
        time_chains()
    else:
        time_mixed(int(sys.argv[2]), int(sys.argv[3]))
