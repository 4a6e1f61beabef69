"""Runs that end where nobody expects it: killed, interrupted, on a full disk, two at once.

After each, what an earlier run wrote is there, or the new run's files are, all of them and whole;
nothing else is left once the next run has been, and that one gives what it should.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from helpers.parted_studies import STUDY as PARTED
from helpers.parted_studies import parted_study_in
from helpers.studies import SEED_LINE, STUDY, as_json, study_in, synrisk, table
from helpers.warm_runs import draw_once, warm_runs
from synrisk.study.unfinished import NAME as UNFINISHED

# A shell that runs jobs in the background has them ignore Ctrl-C, and nohup the end of a terminal;
# these must not. On a busy machine whoever watches a run for a moment must come before it, or the
# moment is over.
CODE = (
    "import os, signal, sys; os.nice(10); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "signal.signal(signal.SIGHUP, signal.SIG_DFL); "
    "from synrisk_command import main; main()"
)
INTERRUPTED = "synrisk: Interrupted; no file was left half-written.\n"
TOO_LATE = "synrisk: Interrupted; new results had been written by then, and every file is whole.\n"
_JUDGED = (0, 1, 3)
_LONGEST = 120.0  # seconds that a process is waited for
# As on a full disk, where none can be made: no file may grow beyond a size.
_LIMITED = (
    "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    "most = int(sys.argv.pop(1)); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY)); "
    "from synrisk_command import main; main()"
)

Moment = tuple[Callable[[Path], bool], float]


def made(name: str) -> Callable[[Path], bool]:
    """A file that is being made, in the hidden folder."""
    return lambda out: any(out.glob(f".synrisk-*/{name}"))


def placed(name: str) -> Callable[[Path], bool]:
    """A file that is in its place, and was not there before."""
    return lambda out: (out / name).exists()


def start(path: Path, most: int | None = None) -> subprocess.Popen[str]:
    """Begin a run, which may write no larger file than one of `most` bytes."""
    code = [CODE] if most is None else [_LIMITED, str(most)]
    return subprocess.Popen(
        [sys.executable, "-c", *code, "run", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(
    process: Any, out: Path, moment: Moment, number: int = signal.SIGINT
) -> tuple[int, str]:
    """Send a signal as soon as a moment is seen; return how the process ended."""
    seen, delay = moment
    deadline = time.monotonic() + _LONGEST
    while process.poll() is None and not seen(out):
        assert time.monotonic() < deadline
        time.sleep(0.0005)
    time.sleep(delay)
    process.send_signal(number)
    _, words = process.communicate(timeout=_LONGEST)
    return process.returncode, words


def digests(out: Path) -> dict[str, str]:
    """Return the digests of a folder's files but for the manifest, hidden ones too."""
    return {
        file.relative_to(out).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        if file.is_file()
        else "a folder"
        for file in out.rglob("*")
        if file.name != "manifest.json" and not (file.is_dir() and any(file.iterdir()))
    }


def check_whole(out: Path) -> None:
    """Every file that the manifest names is there and whole, and there is nothing else."""
    manifest = as_json(out / "manifest.json")
    assert manifest["complete"]
    assert digests(out) == manifest["outputs"]


class Bench:
    """A study that is run again and again, and what its results should be.

    Parameters
    ----------
    folder
        Where the study, its data and its results are.
    output
        Where the results go, if elsewhere.

    Attributes
    ----------
    start
        Begins a run; `warm` lets processes do so that need not begin themselves.
    results
        The digests of its tables.
    seconds
        How long a run takes.
    """

    def __init__(self, folder: Path, output: Path | None = None) -> None:
        self.start: Callable[..., Any] = start
        self.out = folder / "out" if output is None else output
        text = STUDY if output is None else STUDY.replace('"out"', f'"{output.as_posix()}"')
        self.path = study_in(folder, text, table(200))
        self.results, self._text = self.rerun(), text  # the first run compiles
        begun = time.monotonic()
        self.check_next_run()
        self.seconds = time.monotonic() - begun

    @contextlib.contextmanager
    def warm(self) -> Iterator[None]:
        """Begin runs by forks of a process that has done one."""
        draw_once()
        with warm_runs(self.path, self.path.with_name("errors")) as self.start:
            begun = time.monotonic()
            self.start(self.path).communicate(_LONGEST)
            self.seconds = time.monotonic() - begun
            yield
        self.start = start

    def rerun(self) -> dict[str, str]:
        """Run the study to its end, and return what it gives."""
        done = synrisk("run", self.path, "-q")
        assert done.exit_code in _JUDGED, done.output
        check_whole(self.out)
        return {name: digest for name, digest in digests(self.out).items() if name.endswith(".csv")}

    def change(self, rng: np.random.Generator) -> None:
        """Let the next run give other results, so that old and new are told apart."""
        other = f"seed = {int(rng.integers(2**60, 2**61))}\n"
        self.path.write_text(self._text.replace(SEED_LINE, other), encoding="utf-8")

    def check_next_run(self) -> None:
        """The next run of the first study gives what it did at first, and nothing else is left."""
        self.path.write_text(self._text, encoding="utf-8")
        assert self.rerun() == self.results


def stop_at_random(bench: Bench, rng: np.random.Generator, number: int) -> str:
    """Send a signal at any moment of a run over earlier results; return when that was."""
    before = digests(bench.out)
    bench.change(rng)
    delay = float(rng.uniform(0.0, 1.1 * bench.seconds))
    code, words = interrupt(bench.start(bench.path), bench.out, (made(""), delay), number)
    if number == signal.SIGKILL:
        assert code in (-number, *_JUDGED)
        _check_old_or_new(bench.out, before)
    else:
        assert code in (130, *_JUDGED), (code, words)
        assert words in ((INTERRUPTED, TOO_LATE) if code == 130 else ("",))
        check_whole(bench.out)
        assert (digests(bench.out) == before) == (words == INTERRUPTED)
    bench.check_next_run()
    return f"after {delay:.2f} s: {'done' if code in _JUDGED else 'stopped'}"


def _check_old_or_new(out: Path, before: dict[str, str]) -> None:
    """Each file is what the manifest says, or what it was before."""
    manifest = as_json(out / "manifest.json")
    found = {n: d for n, d in digests(out).items() if not n.startswith(".synrisk-")}
    if manifest["complete"]:
        assert found == manifest["outputs"]
    for name, digest in found.items():
        assert digest in (manifest["outputs"].get(name), before.get(name))


# -- a study of data in parts, which a later run goes on with -----------------------------------
class PartedBench:
    """A study of data in parts that is stopped and gone on with, and what it should give.

    Parameters
    ----------
    folder
        Where the study and its data are.
    output
        Where the results go, if elsewhere.
    """

    def __init__(self, folder: Path, output: Path | None = None) -> None:
        self.out = folder / "out" if output is None else output
        text = PARTED.replace('output = "out"', f'output = "{self.out.as_posix()}"\n{SEED_LINE}')
        self.path = parted_study_in(folder, text)
        self.start: Callable[..., Any] = start
        self.results: dict[str, str] = {}
        self.seconds = 0.0

    @contextlib.contextmanager
    def warm(self) -> Iterator[None]:
        """Begin runs by forks of a process that has done one."""
        with warm_runs(self.path, self.path.with_name("errors"), "small") as self.start:
            shutil.rmtree(self.out)
            begun = time.monotonic()
            self._end(self.start(self.path))
            self.seconds = time.monotonic() - begun
            self.results = self._parts(self.out)
            assert len(self.results) == 12
            yield

    def _end(self, process: Any) -> tuple[int, str]:
        _, words = process.communicate(timeout=_LONGEST)
        return process.returncode, words

    @staticmethod
    def _parts(folder: Path) -> dict[str, str]:
        return {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.glob("*/part-*.parquet"))
        }

    def begin_anew(self) -> None:
        """Let nothing be there."""
        shutil.rmtree(self.out, ignore_errors=True)

    def finished(self) -> dict[str, int]:
        """Return when each part was made that a stopped run has left, after a look at each."""
        times = {}
        for folder in (self.out, self.out / UNFINISHED):
            for name, digest in self._parts(folder).items():
                assert digest == self.results[name], f"half of {name}"
                part = Path(name)
                is_risk = part.parent.name == "risk"
                beside = part.parent if is_risk else Path(f"{part.parent}-notes")
                if (folder / beside / f"{part.stem}.json").exists():
                    times[name] = (folder / name).stat().st_mtime_ns
        return times

    def go_on(self) -> int:
        """Go on to the end; return how many parts were kept."""
        kept = self.finished()
        code, words = self._end(self.start(self.path, None, "--resume"))
        if code == 2:  # the run was stopped before it had begun
            assert not kept, words
            assert "no earlier run" in words, words
            code, words = self._end(self.start(self.path))
        assert code in _JUDGED, (code, words)
        check_whole(self.out)
        assert self._parts(self.out) == self.results
        for name, made_at in kept.items():
            assert (self.out / name).stat().st_mtime_ns == made_at, f"{name} was made again"
        assert not (self.out / UNFINISHED).exists()
        return len(kept)


def stop_parts_at_random(bench: PartedBench, rng: np.random.Generator, number: int) -> str:
    """Stop a run at any moment, half of the time its successor too, and go on to the end."""
    bench.begin_anew()
    said = []
    for options in ((), ("--resume",))[: int(rng.integers(1, 3))]:
        delay = float(rng.uniform(0.0, 1.1 * bench.seconds))
        process = bench.start(bench.path, None, *options)
        time.sleep(delay)
        if process.poll() is None:
            process.send_signal(number)
        code, words = bench._end(process)
        assert code in (-number, 130, 2, *_JUDGED), (code, words)
        assert "Traceback" not in words, words
        said.append(f"after {delay:.2f} s {'done' if code in _JUDGED else 'stopped'}")
    return f"{', '.join(said)}; {bench.go_on()} parts kept"


def fill_disk_of_parts(bench: PartedBench, share: float) -> str:
    """Run on a small disk that has a share of the room left that the results take; then go on."""
    bench.begin_anew()
    bench._end(bench.start(bench.path))
    n_bytes = sum(-(-f.stat().st_size // 4096) * 4096 for f in bench.out.rglob("*") if f.is_file())
    bench.begin_anew()
    filler = bench.out.parent / "filler"
    left = os.statvfs(bench.out.parent)
    filler.write_bytes(bytes(left.f_bavail * left.f_frsize - int(share * n_bytes)))
    code, words = bench._end(bench.start(bench.path))
    assert code in (2, *_JUDGED), (code, words)
    if code == 2:
        assert words.count("\n") == 1, words
        assert "space" in words, words
    filler.unlink()
    return f"{share:.2f} of the room: exit code {code}; {bench.go_on()} parts kept"


@contextlib.contextmanager
def small_disk(n_bytes: int) -> Iterator[Path]:
    """Yield a folder on a disk of that size; raise OSError where none can be made."""
    with tempfile.TemporaryDirectory(prefix="disk-") as folder:
        _mount("-t", "tmpfs", "-o", f"size={n_bytes},mode=0700", "none", folder)
        try:
            yield Path(folder)
        finally:
            _unmount(folder)


def _mount(*arguments: str) -> None:
    program = shutil.which("mount")
    if program is None:
        raise OSError("nothing can be mounted here: there is no mount")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"nothing can be mounted here: {done.stderr.strip()}")


def _unmount(folder: str) -> None:
    subprocess.run([shutil.which("umount") or "umount", "--lazy", folder], check=False)


def can_mount() -> bool:
    """Tell whether a small disk can be made: by root, and not in every container."""
    with contextlib.suppress(OSError), small_disk(1 << 20):
        return True
    return False


def fill_disk(bench: Bench, share: float) -> str:
    """Run on a small disk that has a share of the room left that the results take."""
    filler = bench.out.parent / "filler"
    left = os.statvfs(bench.out)
    n_others = left.f_bavail * left.f_frsize - int(share * _n_bytes(bench.out))
    filler.write_bytes(bytes(n_others))
    code = _run_short_of_room(bench, bench.start(bench.path))
    filler.unlink()
    bench.check_next_run()
    return f"{share:.2f} of the room: exit code {code}"


def limit_files(bench: Bench, share: float) -> str:
    """Run where no file may be larger than a share of the largest one."""
    most = int(share * max(file.stat().st_size for file in bench.out.iterdir()))
    code = _run_short_of_room(bench, bench.start(bench.path, most))
    bench.check_next_run()
    return f"files up to {most:,} bytes: exit code {code}"


def _run_short_of_room(bench: Bench, process: Any) -> int:
    before = digests(bench.out)
    _, words = process.communicate(timeout=_LONGEST)
    code = process.returncode
    assert code in (2, *_JUDGED), (code, words)
    if code == 2:
        assert words.count("\n") == 1, words
        assert "space" in words or "too large" in words, words
        assert digests(bench.out) == before
    check_whole(bench.out)
    return code


def _n_bytes(folder: Path) -> int:
    """Return the room that a folder's files take, in pages."""
    return sum(-(-file.stat().st_size // 4096) * 4096 for file in folder.iterdir())


def run_two_at_once(bench: Bench, rng: np.random.Generator) -> str:
    """Begin two runs within a moment; one of them has the folder."""
    first = start(bench.path)
    time.sleep(float(rng.uniform(0.0, 0.3)))
    second = start(bench.path)
    words = [process.communicate(timeout=_LONGEST)[1] for process in (first, second)]
    codes = [process.returncode for process in (first, second)]
    assert any(code in _JUDGED for code in codes), words
    for code, said in zip(codes, words, strict=True):
        assert code in _JUDGED or "Another run is writing to the folder" in said, said
    bench.check_next_run()
    return f"exit codes {codes}"


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only: by its mode, or by a mount for root, whom no mode stops."""
    if os.geteuid():
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,ro,bind", str(folder))
        yield
    finally:
        _unmount(str(folder))


def run_into_read_only(bench: Bench) -> str:
    """Run into a folder that cannot be written; all stays as it is."""
    before = digests(bench.out)
    with read_only(bench.out):
        for command in (("run", bench.path), ("report", bench.out)):
            done: Any = synrisk(*command)
            assert done.exit_code == 2, done.output
            assert "cannot be written" in done.stderr, done.stderr
            assert digests(bench.out) == before
    bench.check_next_run()
    return "refused"
