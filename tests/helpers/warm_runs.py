"""Runs of the command line without the seconds that a process needs to begin.

``python -m helpers.warm_runs STUDY`` runs a study once, so that all is imported and compiled, and
then forks a process for each line that it reads: a JSON list of the largest file that may be
written, or null, the pipe that takes standard error, and the arguments. It answers with the
process's id, and with its exit code once it has ended. A second argument makes parts small.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class WarmRun:
    """A forked run, as `subprocess.Popen` has it."""

    def __init__(self, server: subprocess.Popen[str], errors: int) -> None:
        self._server, self._errors = server, errors
        self.pid = int(self._line())
        self.returncode: int | None = None

    def _line(self) -> str:
        assert self._server.stdout is not None
        return self._server.stdout.readline()

    def poll(self) -> int | None:
        """Return None while it runs: it is a zombie until the server has been asked."""
        state = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        return 0 if state.split()[0] == "Z" else None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end; return what it printed, to standard error alone."""
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a warm run", timeout)
            time.sleep(0.002)
        _tell(self._server, "reap")
        self.returncode = int(self._line())
        with contextlib.suppress(BlockingIOError):
            return "", os.read(self._errors, 1 << 16).decode()
        return "", ""


@contextlib.contextmanager
def warm_runs(study: Path, errors: Path, *how: str) -> Iterator[Any]:
    """Yield what begins a run: a function of the study's path and the largest size of a file."""
    server = subprocess.Popen(
        [sys.executable, "-m", "helpers.warm_runs", str(study), *how],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    os.mkfifo(errors)  # what limits files does not limit what is said there
    number = os.open(errors, os.O_RDWR | os.O_NONBLOCK)

    def start(path: Path, most: int | None = None, *options: str) -> WarmRun:
        _tell(server, json.dumps([most, str(errors), ["run", str(path), *options]]))
        return WarmRun(server, number)

    try:
        yield start
    finally:
        os.close(number)
        errors.unlink()
        server.communicate()


def _tell(server: subprocess.Popen[str], line: str) -> None:
    assert server.stdin is not None
    server.stdin.write(line + "\n")
    server.stdin.flush()


def draw_once() -> None:
    """Draw each picture of a study once, whatever its numbers: most of its seconds are theirs."""
    from synrisk.report import svg

    draw, drawn = svg.draw, {}

    def drawn_before(picture: Any, number: int) -> str:
        key = picture["title"], picture["kind"], number
        if key not in drawn:
            drawn[key] = draw(picture, number)
        return drawn[key]

    svg.draw = drawn_before


# -- within the server ----------------------------------------------------------------------------
def _serve(study: str, *how: str) -> None:
    from helpers.parted_studies import make_parts_small
    from helpers.studies import synrisk

    draw_once()
    if how:
        make_parts_small()
    assert synrisk("run", study, "-q").exit_code in (0, 1, 3)
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin:
        most, errors, arguments = json.loads(line)
        pid = os.fork()
        if not pid:
            _run(most, errors, arguments)
        print(pid, flush=True)  # noqa: T201
        sys.stdin.readline()
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201


def _run(most: int | None, errors: str, arguments: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    number = os.open(errors, os.O_WRONLY)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for here, there in ((nowhere, 0), (nowhere, 1), (number, 2)):
        os.dup2(here, there)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(k), "w") for k in (1, 2))
    if most is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
    sys.argv = ["synrisk", *arguments]
    from synrisk_command import main

    code: Any = 70
    try:
        main()
    except SystemExit as left:
        code = left.code or 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
