"""Attacks in processes of their own, so that a crash, a hang or a full memory is seen and told.

``python -m helpers.attack_workers READER SEED FIRST FOLDER`` makes inputs from the number FIRST on
until it is ended, and tells by the pipe on file 3 which it begins and what came of it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MOST_SECONDS = 30.0  # of computing; a machine that does other things too is slower
MOST_SECONDS_ASLEEP = 60.0  # one after the other: nothing computes, nor would if it were let
MOST_MINUTES = 20.0  # in all, however little of them a starved machine gives
MOST_BYTES = 2 * 10**9
_SLACK = 2 * 10**9  # beyond which a process is ended at once
_PIPE = 3
_ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    # Threads of BLAS spin while others use their core, and all of that would count as computing.
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass
class Tally:
    """What came of the inputs of one reader."""

    outcomes: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    slowest: float = 0.0
    largest: int = 0
    next_number: int = 0

    @property
    def n(self) -> int:
        """How many inputs were given to the reader."""
        return self.outcomes.total() - self.n_not_made

    @property
    def not_made(self) -> dict[str, int]:
        """How many inputs could not be made, by what stood in the way."""
        return {why: n for why, n in self.outcomes.items() if why.startswith("not made")}

    @property
    def n_not_made(self) -> int:
        """How many could not be made in all."""
        return sum(self.not_made.values())


def attack(
    reader: str, seed: int, tally: Tally, *, seconds: float, inputs: int | None = None
) -> None:
    """Make inputs for a reader and give them to it, in processes that may die of them.

    Parameters
    ----------
    reader
        A name of `attacks.ATTACKS`.
    seed
        Of all inputs, with their numbers.
    tally
        Filled; the next input has the number that it tells.
    seconds
        How long; an input that has begun is waited for.
    inputs
        How many at most.
    """
    last = None if inputs is None else tally.next_number + inputs
    while seconds > 0 and (last is None or tally.next_number < last):
        with tempfile.TemporaryDirectory(prefix="attack-") as folder:
            seconds -= _watch(reader, seed, tally, Path(folder), seconds, last)


def _watch(
    reader: str, seed: int, tally: Tally, folder: Path, seconds: float, last: int | None
) -> float:
    """Follow one process until the time is over or it ends by itself, which it should not.

    Return how long it took from the first input on.
    """
    read, write = os.pipe()
    with (folder / "errors").open("wb") as errors:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "helpers.attack_workers",
                reader, str(seed), str(tally.next_number), str(folder), str(write),
            ],
            stdout=errors, stderr=errors, stdin=subprocess.DEVNULL, pass_fds=(write,),
            env={**os.environ, **_ENVIRONMENT},
            start_new_session=True,
        )  # fmt: skip
    os.close(write)
    number: int | None = None  # of the input that is being tried
    begun, how = float("inf"), ""  # preparations are not counted
    with os.fdopen(read, "rb", buffering=0) as pipe:
        waiting, watch = b"", Watch(process.pid)
        while True:
            if select.select([pipe], [], [], 0.1)[0]:
                piece = pipe.read(1 << 16)
                if not piece:
                    break
                *lines, waiting = (waiting + piece).split(b"\n")
                for line in lines:
                    told = json.loads(line)
                    number = _note(told, reader, seed, tally)
                    begun = min(begun, time.monotonic())
                    watch = Watch(process.pid)
            is_over = time.monotonic() > begun + seconds
            if (is_over and number is None) or (last is not None and tally.next_number >= last):
                number = None
                break
            how = watch.too_much() if number is not None else ""
            if how:
                break
    if how:
        process.send_signal(signal.SIGABRT)  # it tells where it is
        time.sleep(1.0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that it started
    code = process.wait()
    if number is not None or code not in (0, -9):
        said = _told_last(folder / "errors")
        how = f"{how or f'the process ended with {code}'}: {said}"
        if number is None:
            raise RuntimeError(f"{reader}: the attack itself failed: {said}")
        tally.outcomes["crashed"] += 1
        tally.problems.append(f"{_again(reader, seed, number)}: {how}")
        tally.next_number = number + 1
    return time.monotonic() - begun


def _told_last(file: Path) -> str:
    """Return the end of what a process said, without the long list of modules after its stacks."""
    said = file.read_bytes().decode(errors="replace")
    return said.partition("Extension modules:")[0][-6_000:]


def _again(reader: str, seed: int, number: int) -> str:
    return f"--only {reader!r} --seed {seed} --input {number}"


def _note(told: dict[str, Any], reader: str, seed: int, tally: Tally) -> int | None:
    """Write down what a process tells; return the number of the input that it has begun."""
    if "outcome" not in told:
        return int(told["number"])
    problems = list(told["problems"])
    tally.largest = max(tally.largest, told["bytes"])
    tally.slowest = max(tally.slowest, told["seconds"])
    if told["bytes"] > MOST_BYTES:
        problems.append(f"{told['bytes'] / 1e9:.1f} GB of memory")
    tally.outcomes[told["outcome"]] += 1
    tally.problems += [f"{_again(reader, seed, told['number'])}: {one}" for one in problems]
    tally.next_number = told["number"] + 1
    return None


class Watch:
    """How long a process and those that it started compute and sleep over one input.

    A machine that others use, or that stands still itself, lets a process wait that could go on;
    that is told from a deadlock by its threads: one that could run is running or would be.
    Moments at which all sleep are counted, so that a clock that leaps counts as one of them.
    """

    def __init__(self, pid: int) -> None:
        self._pid, self._begun = pid, time.monotonic()
        self._at_first = self._computed = _activity(pid)[0]
        self._looked, self._asleep = self._begun, 0.0

    def too_much(self) -> str:
        """Tell whether it computes or sleeps for too long, or takes too much memory."""
        (computed, is_awake), now = _activity(self._pid), time.monotonic()
        if is_awake or computed != self._computed:
            self._asleep = 0.0
        else:
            self._asleep += min(now - self._looked, 1.0)
        self._computed, self._looked = computed, now
        if computed - self._at_first > MOST_SECONDS:
            return f"more than {MOST_SECONDS:.0f} s"
        if self._asleep > MOST_SECONDS_ASLEEP:
            return f"all its threads sleep, for {MOST_SECONDS_ASLEEP:.0f} s"
        if now - self._begun > 60 * MOST_MINUTES:
            return f"more than {MOST_MINUTES:.0f} minutes, though it computed for {computed:.0f} s"
        n_bytes = _memory_of(self._pid, "VmRSS")
        return f"{n_bytes / 1e9:.1f} GB of memory" if n_bytes > MOST_BYTES + _SLACK else ""


def _activity(pid: int) -> tuple[float, bool]:
    """Return the seconds that a process and its children computed, and whether any could go on.

    A thread that waits for a disk (D) could: it is not another thread that it waits for.
    """
    seconds, is_awake = 0.0, False
    with contextlib.suppress(OSError):  # it has ended meanwhile
        ticks = _stat(f"/proc/{pid}")[11:15]  # its own, and those of children that have ended
        seconds = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        for thread in Path(f"/proc/{pid}/task").iterdir():
            is_awake |= _stat(thread)[0] in "RD"
            for child in (thread / "children").read_text(encoding="utf-8").split():
                own, is_child_awake = _activity(int(child))
                seconds, is_awake = seconds + own, is_awake or is_child_awake
    return seconds, is_awake


def _stat(place: str | Path) -> list[str]:
    """Return what the system says of a process or a thread, from its state on."""
    return Path(place, "stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def _memory_of(pid: int | str, which: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith(which):
                return 1024 * int(line.split()[1])
    return 0


# -- within a process -----------------------------------------------------------------------------
class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextlib.contextmanager
def _heard(file: Path) -> Iterator[list[str]]:
    """Yield a list that holds afterwards what was printed, logged and warned of."""
    said: list[str] = []
    listener = _Heard()
    logging.getLogger().addHandler(listener)
    kept = [os.dup(1), os.dup(2)]
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        for which in (1, 2):
            os.dup2(number, which)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        for which, was in zip((1, 2), kept, strict=True):
            os.dup2(was, which)
            os.close(was)
        os.close(number)
        logging.getLogger().removeHandler(listener)
        said += [file.read_bytes().decode(errors="replace"), *listener.said]
        said += [str(one.message) for one in caught]


def try_one(reader: str, seed: int, number: int, good: Any, folder: Path) -> tuple[str, list[str]]:
    """Make one input, give it to its reader, and return what came of it and what is wrong.

    An input that cannot be made has the outcome ``"not made"`` and the exception's name; whatever
    else than a SynriskError is raised afterwards is wrong, wherever it comes from.
    """
    import numpy as np

    import synrisk as sr
    from helpers.attack_cases import Case, Marks, people, said_by
    from helpers.attacks import ATTACKS

    own = folder / "input"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir()
    rng = np.random.default_rng([seed, zlib.crc32(reader.encode()), number])
    case = Case(rng, own, good)
    outcome, problems = "taken", []
    with _heard(folder / "said") as said:
        made, why = None, ""
        try:
            made = ATTACKS[reader].make(case)
        except Exception as error:
            why = f"not made: {type(error).__name__} at {_place(error)}"
        if why:
            return why, []
        try:
            ATTACKS[reader].give(case, made)
            outcome = "refused" if case.is_refused else outcome
        except sr.SynriskError as error:
            outcome = "refused"
            said += said_by(error)
        except Exception as error:
            outcome = "raw exception"
            ours = _place(error, str(Path(sr.__file__).parent))
            problems.append(f"{type(error).__name__} at {ours}: {str(error)[:200]}")
    problems += case.problems
    marks = Marks(people())
    for text in (*said, *case.said):
        if found := marks.found(text, case.declared):
            at = text.find(found)
            problems.append(f"a marked value ({found}): {text[max(0, at - 150) : at + 60]!r}")
            break
    return outcome, problems


def _place(error: BaseException, within: str = "") -> str:
    """Return where an exception was raised, or the last place within a folder that led there."""
    trace = traceback.extract_tb(error.__traceback__)
    last = [one for one in trace if one.filename.startswith(within)] or trace
    return f"{Path(last[-1].filename).name}:{last[-1].lineno} ({last[-1].name})"


def _work(reader: str, seed: int, first: int, folder: Path, pipe: int) -> None:
    from helpers.attacks import ATTACKS

    faulthandler.enable(os.fdopen(os.dup(2), "wb"))
    place = folder / "good"
    place.mkdir()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        good = ATTACKS[reader].prepare(place)
    number = first
    while True:
        os.write(pipe, json.dumps({"number": number}).encode() + b"\n")
        with contextlib.suppress(OSError):  # begin to measure the memory anew
            Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        begun = time.process_time()
        outcome, problems = try_one(reader, seed, number, good, folder)
        told = {
            "number": number,
            "outcome": outcome,
            "problems": problems,
            "seconds": time.process_time() - begun,
            "bytes": _memory_of("self", "VmHWM"),
        }
        os.write(pipe, json.dumps(told).encode() + b"\n")
        number += 1


if __name__ == "__main__":
    reader, seed, first, folder, pipe = sys.argv[1:]
    _work(reader, int(seed), int(first), Path(folder), int(pipe))
