"""What tables larger than memory cost: seconds and memory of every stage, by the number of records.

``python benchmarks/many_records.py 1000000 10000000`` writes so many records to a folder of Parquet
files, fits a gaussian, a Poisson and a bernoulli model, synthesizes a dataset, evaluates the risk
and judges it, each number in a process of its own. ``--executor processes`` (or ``serial``,
``threads``, ``dask``) says what runs the work, ``--workers`` how many, ``--memory`` keeps the table
in memory, as a frame. Every row ends with a digest of the records' gains: the same, whatever runs
the work.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr

ROWS_A_FILE = 500_000
SEED = 123456789012345678901234567890  # secret enough that nobody tries it


def people(first: int, n: int) -> pd.DataFrame:
    """Return simulated records from `first` on."""
    rng = np.random.default_rng([2026, first])
    age = rng.integers(18, 90, n)
    income = 9.5 + 0.01 * age + rng.normal(0.0, 0.6, n)
    visits = rng.poisson(np.exp(0.2 + 0.012 * age - 0.05 * (income - 10.0)))
    ill = rng.random(n) < 1.0 / (1.0 + np.exp(3.0 - 0.03 * age - 0.1 * visits))
    return pd.DataFrame(
        {"Age": age, "LogIncome": income, "Visits": visits, "Ill": ill.astype(np.int64)}
    )


PLAN = [
    sr.Regression("LogIncome ~ Age", "gaussian"),
    sr.Regression("Visits ~ Age + LogIncome", "poisson"),
    sr.Regression("Ill ~ Age + Visits", "bernoulli"),
]


def write(folder: Path, n: int) -> None:
    """Write so many records to files of Parquet."""
    for first in range(0, n, ROWS_A_FILE):
        part = people(first, min(ROWS_A_FILE, n - first))
        part.to_parquet(folder / f"part-{first // ROWS_A_FILE:05d}.parquet", index=False)


@contextmanager
def measured(stage: str, n: int) -> Iterator[None]:
    """Print seconds, records a second, and the largest memory until now of any process."""
    wall, cpu = time.perf_counter(), _cpu()
    yield
    wall, cpu = time.perf_counter() - wall, _cpu() - cpu
    own, others = (
        resource.getrusage(who).ru_maxrss / 2**20
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(
        f"{n:>11,} {stage:<12}{wall:>8.1f} s{cpu:>9.1f} s of CPU{n / wall:>12,.0f} a second"
        f"{own:>7.2f} GiB{others:>6.2f} in others",
        flush=True,
    )


def _cpu() -> float:
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def go(
    n: int, executor: Any, n_draws: int, n_used: int | None, *, in_memory: bool, further: int
) -> None:
    """Run every stage once."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        data: Any = place / "people"
        data.mkdir()
        write(data, n)
        if in_memory:
            data = pd.read_parquet(data)
        out: dict[str, Any] = {} if in_memory else {"out": place / "release"}
        with measured("fit", n):
            synthesizer = sr.fit(PLAN, data, n_draws=n_draws, seed=SEED, executor=executor)
        with measured("synthesize", n):
            release = synthesizer.synthesize(seed=SEED + 1, executor=executor, **out)
        with measured("risk", n):
            out = {} if in_memory else {"out": place / "risk"}
            risk = sr.attribute_risk(synthesizer, release, n_draws=n_used, executor=executor, **out)
        with measured("verdict", n):
            verdict = risk.verdict(further=further)
        with measured("summary", n):
            risk.summary()
        digest = hashlib.sha256()
        parts = [risk.records] if in_memory else risk.parts()
        for part in parts:
            digest.update(part["gain"].to_numpy().tobytes())
        print(f"{n:>11,} {verdict.outcome}, {digest.hexdigest()[:16]}", flush=True)


def main() -> None:
    """Run each number of records in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("records", type=int, nargs="+", help="how many")
    parser.add_argument("--executor", default="threads", help="serial, threads, processes, dask")
    parser.add_argument("--workers", type=int, default=2, help="how many")
    parser.add_argument("--draws", type=int, default=1000, help="posterior draws")
    parser.add_argument("--used", type=int, default=None, help="draws that the risk takes")
    parser.add_argument("--memory", action="store_true", help="a table in memory")
    parser.add_argument("--further", type=int, default=0, help="releases beside, in the verdict")
    options = parser.parse_args()
    if len(options.records) > 1:
        others = sys.argv[1 + len(options.records) :]
        for n in options.records:
            subprocess.run([sys.executable, __file__, str(n), *others], check=True)  # noqa: S603
        return
    (n,) = options.records
    how = {"in_memory": options.memory, "further": options.further}
    if options.executor == "dask":
        import distributed

        with (
            distributed.LocalCluster(
                n_workers=options.workers, threads_per_worker=1, dashboard_address=None
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            go(n, client, options.draws, options.used, **how)
        return
    executor = {
        "serial": "serial",
        "threads": options.workers,
        "processes": sr.Processes(options.workers),
    }[options.executor]
    go(n, executor, options.draws, options.used, **how)


if __name__ == "__main__":
    main()
