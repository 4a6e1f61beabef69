"""Damaged and hostile inputs for everything that reads: nothing but a result or a SynriskError.

``python benchmarks/attack.py --minutes 60`` tries as many as there is time for, in processes of
their own, two at a time: CSV, Parquet and folders of it, files of R, SPSS, SAS and Stata, saved
results, parts of a risk, executors, studies, criteria, manifests, draws, formulas, names, options,
and links that a racing process swaps in.
Whatever ends a process, computes for more than 30 s, sleeps for more than a minute, takes more than
20 minutes in all or 2 GB, raises anything else than a SynriskError or shows a value of the data is
told, with the command that tries the same input again, and the exit code is 1. See
tests/helpers/attacks.py.

``--only interruptions`` kills 40 runs of a study at random moments, interrupts 40, lets the disk be
full at 40 places, begins two at once and writes to a folder that is read-only: nothing is lost, and
the next run gives what it should. Of a study of data in parts, which goes on with ``--resume``,
nothing that was whole is made again, and all bits are the same (``--kind parts`` tries these
alone). See
tests/helpers/interruptions.py.

``--seed source`` takes the seed from what src/ holds: other inputs with every change of the code,
and the same ones again for the same code.
"""

from __future__ import annotations

import argparse
import hashlib
import secrets
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from helpers import interruptions
from helpers.attack_workers import Tally, attack
from helpers.attacks import ATTACKS

_SOURCE = Path(__file__).parent.parent / "src"
_SLICE = 60.0  # seconds of one reader at a time
_INTERRUPTIONS = "interruptions"


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, print a table, and return how many problems were found, 1 at most."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="how long")
    parser.add_argument(
        "--seed", type=_seed, default=None, help='of all inputs, or "source"; else a new one'
    )
    parser.add_argument(
        "--only", action="append", choices=(*ATTACKS, _INTERRUPTIONS), help="a reader"
    )
    parser.add_argument("--most", type=int, default=None, help="inputs of each reader")
    parser.add_argument("--input", type=int, default=None, help="one input of that reader")
    parser.add_argument("--processes", type=int, default=2, help="at a time")
    parser.add_argument("--times", type=int, default=40, help="of each kind of interruption")
    parser.add_argument("--kind", default="", help="of interruption: kill, full disk, parts, …")
    options = parser.parse_args(arguments)
    seed = secrets.randbits(32) if options.seed is None else options.seed
    readers = options.only or list(ATTACKS)
    print(f"seed {seed}", flush=True)
    if readers == [_INTERRUPTIONS]:
        return _interrupt(seed, options.times, options.kind)
    tallies = {reader: Tally(next_number=options.input or 0) for reader in readers}
    if options.input is not None:
        attack(readers[0], seed, tallies[readers[0]], seconds=600, inputs=1)
    else:
        seconds = 60 * options.minutes
        _attack_all(readers, seed, tallies, seconds, options.processes, options.most)
    return _tell(tallies)


def _seed(word: str) -> int:
    """Return a seed: a number, or the digest of the source."""
    if word != "source":
        return int(word)
    digest = hashlib.sha256()
    for path in sorted(_SOURCE.rglob("*.py")):
        digest.update(path.relative_to(_SOURCE).as_posix().encode() + b"\0" + path.read_bytes())
    return int.from_bytes(digest.digest()[:4], "big")


def _attack_all(
    readers: Sequence[str],
    seed: int,
    tallies: dict[str, Tally],
    seconds: float,
    n: int,
    most: int | None,
) -> None:
    """Give every reader its share of the time, in turns."""
    end = time.monotonic() + seconds
    shares = {reader: ATTACKS[reader].share for reader in readers}
    turns = max(1, round(seconds * n / (sum(shares.values()) * _SLICE)))
    each = seconds * n / (sum(shares.values()) * turns)
    with ThreadPoolExecutor(n) as pool:
        for turn in range(turns):
            list(
                pool.map(
                    lambda one: _turn(one, seed, tallies[one], each * shares[one], most),
                    sorted(readers, key=shares.__getitem__, reverse=True),
                )
            )
            n_inputs = sum(one.n for one in tallies.values())
            n_problems = sum(len(one.problems) for one in tallies.values())
            left = max(0.0, end - time.monotonic()) / 60
            print(
                f"turn {turn + 1} of {turns}: {n_inputs:,} inputs, {n_problems} problems, "
                f"{left:.1f} minutes left",
                flush=True,
            )


def _turn(reader: str, seed: int, tally: Tally, seconds: float, most: int | None) -> None:
    n_known = len(tally.problems)
    left = None if most is None else max(0, most - tally.next_number)
    attack(reader, seed, tally, seconds=seconds, inputs=left)
    for problem in tally.problems[n_known:]:
        print(f"PROBLEM {problem}", flush=True)


def _tell(tallies: dict[str, Tally]) -> int:
    heading = ("reader", "inputs", "taken", "refused", "not made", "problems", "slowest", "largest")
    print("{:<20}{:>8}{:>8}{:>9}{:>10}{:>10}{:>10}{:>10}".format(*heading))
    for reader, tally in tallies.items():
        print(
            f"{reader:<20}{tally.n:>8,}{tally.outcomes['taken']:>8,}"
            f"{tally.outcomes['refused']:>9,}{tally.n_not_made:>10,}{len(tally.problems):>10,}"
            f"{tally.slowest:>8.1f} s{tally.largest / 1e9:>7.1f} GB"
        )
    for reader, tally in tallies.items():
        for why, n in tally.not_made.items():
            print(f"{reader}: {n:,} {why}")
    problems = [problem for tally in tallies.values() for problem in tally.problems]
    print(f"{sum(tally.n for tally in tallies.values()):,} inputs, {len(problems):,} problems")
    for problem in problems:
        print(problem)
    return int(bool(problems))


def _interrupt(seed: int, times: int, kind: str) -> int:
    """Try every kind of interruption; return 1 if something was lost, else 0."""
    n_failed = 0
    for name, attempt in _kinds(np.random.default_rng(seed), times):
        if kind not in name:
            continue
        try:
            print(f"{name}: {attempt()}", flush=True)
        except Exception:
            n_failed += 1
            print(f"PROBLEM {name}: {traceback.format_exc()}", flush=True)
    print(f"{n_failed} problems")
    return int(n_failed > 0)


def _kinds(rng: np.random.Generator, times: int) -> Iterator[tuple[str, Callable[[], str]]]:
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        bench = interruptions.Bench(Path(folder))
        with bench.warm():
            for name, number in (("kill -9", signal.SIGKILL), ("Ctrl-C", signal.SIGINT)):
                for _ in range(times):
                    yield name, partial(interruptions.stop_at_random, bench, rng, number)
            for k in range(times):
                yield "no larger file", partial(interruptions.limit_files, bench, k / times)
        for _ in range(max(1, times // 10)):
            yield "two at once", partial(interruptions.run_two_at_once, bench, rng)
        yield "read-only", partial(interruptions.run_into_read_only, bench)
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        parted = interruptions.PartedBench(Path(folder))
        stop = interruptions.stop_parts_at_random
        with parted.warm():
            for _ in range(times):
                yield "parts, kill -9", partial(stop, parted, rng, signal.SIGKILL)
            for _ in range(max(1, times // 10)):
                yield "parts, Ctrl-C", partial(stop, parted, rng, signal.SIGINT)
    if not interruptions.can_mount():
        print("No full disk: nobody but root can mount a small one, nor root in some containers.")
        return
    with (
        tempfile.TemporaryDirectory(prefix="attack-") as folder,
        interruptions.small_disk(1 << 24) as disk,
    ):
        bench = interruptions.Bench(Path(folder), disk / "out")
        with bench.warm():
            for k in range(times):
                yield "full disk", partial(interruptions.fill_disk, bench, k / times)
    with (
        tempfile.TemporaryDirectory(prefix="attack-") as folder,
        interruptions.small_disk(1 << 24) as disk,
    ):
        parted = interruptions.PartedBench(Path(folder), disk / "out")
        with parted.warm():
            for k in range(10):
                yield "parts, full disk", partial(interruptions.fill_disk_of_parts, parted, k / 10)


if __name__ == "__main__":
    sys.exit(main())
