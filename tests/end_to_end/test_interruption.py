"""Runs stopped at every stage: whole files or none, no litter, and the next run succeeds."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from helpers import interruptions
from helpers.interruptions import (
    CODE,
    INTERRUPTED,
    TOO_LATE,
    Bench,
    can_mount,
    check_whole,
    interrupt,
    made,
    placed,
    start,
)
from helpers.studies import SEED_LINE, STUDY, as_json, study_in, synrisk, table

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
ROOM = pytest.mark.skipif(
    sys.platform == "win32" or not can_mount(),
    reason="nobody but root can mount a small disk, and no root in some containers",
)

# What is seen of the folder, and how long after it the interruption comes.
MOMENTS = {
    "reading": (made(""), 0.0),
    "fitting": (made(""), 0.03),
    "draws": (made("draws1_Income.csv"), 0.0),
    "evaluating": (made("synthetic2.csv"), 0.0),
    "saving the risk": (made(".synrisk-*"), 0.0),
    "records": (made("records.csv"), 0.0),
    "drawing the report": (made("records.csv"), 0.3),
    "summary": (made("summary.json"), 0.0),
    "moving in": (placed("manifest.json"), 0.0),
}


@pytest.mark.parametrize("module", ["synrisk", "numpy", "pandas", "typer", "synrisk.study.cli"])
def test_interrupted_imports_say_so_without_a_traceback(module):
    """Ctrl-C as soon as a module is looked for."""
    code = f"""
import os, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""
    first, rest = CODE.split("; from ")
    done = subprocess.run(
        [sys.executable, "-c", f"{first}\n{code}\nfrom {rest}", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == INTERRUPTED
    assert (done.returncode, done.stdout) == (130, "")


@pytest.mark.parametrize(
    "moment", ["reading", "draws", "evaluating", "saving the risk", "summary", "moving in"]
)
def test_interrupted_runs_leave_all_or_nothing(tmp_path, moment):
    path = study_in(tmp_path, data=table(1500))
    out = tmp_path / "out"
    code, words = interrupt(start(path), out, MOMENTS[moment])
    late = moment in ("summary", "moving in")
    assert code in ((0, 130) if late else (130,))
    if code == 130:
        assert words == (TOO_LATE if out.exists() else INTERRUPTED)
    if out.exists():
        check_whole(out)
    else:
        assert code == 130
        assert sorted(file.name for file in tmp_path.iterdir()) == ["people.csv", "study.toml"]
    assert synrisk("run", path, "-q").exit_code == 0
    check_whole(out)


@pytest.mark.parametrize("moment", ["evaluating", "records"])
def test_what_an_earlier_run_wrote_stays_until_the_new_is_whole(tmp_path, moment):
    path = study_in(tmp_path, data=table(1500))
    out = tmp_path / "out"
    assert synrisk("run", path, "-q").exit_code == 0
    before = as_json(out / "manifest.json")
    path.write_text(STUDY.replace(SEED_LINE, "seed = 4\n"), encoding="utf-8")
    code, _ = interrupt(start(path), out, MOMENTS[moment])
    check_whole(out)
    if code == 130 and as_json(out / "manifest.json")["seeds"]["fit"] == 3:
        assert as_json(out / "manifest.json") == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_termination_is_an_interruption_too(tmp_path, number):
    path = study_in(tmp_path, data=table(1500))
    code, _ = interrupt(start(path), tmp_path / "out", MOMENTS["evaluating"], number)
    assert code == 130
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("moment", ["fitting", "evaluating", "drawing the report"])
def test_whoever_presses_twice_leaves_nothing_either(tmp_path, moment):
    path, out = study_in(tmp_path, data=table(1500)), tmp_path / "out"
    process = start(path)
    seen, delay = MOMENTS[moment]
    while process.poll() is None and not seen(out):
        time.sleep(0.0005)
    time.sleep(delay)
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        time.sleep(0.0005)
    _, words = process.communicate(timeout=120)
    assert process.returncode == 130
    assert words == INTERRUPTED
    assert sorted(file.name for file in tmp_path.iterdir()) == ["people.csv", "study.toml"]


def test_an_interruption_that_a_library_would_drop_ends_the_run(tmp_path):
    """As in a call back from compiled code, or under a lock that another thread waits for."""
    path = study_in(tmp_path)
    code = """
import os, signal, synrisk.study.run as study

def dropping(*_, **__):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
    except BaseException:
        pass
    raise SystemExit("it was dropped")

study.attribute_risk = dropping
"""
    done = run_after(code, path)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == INTERRUPTED
    assert not (tmp_path / "out").exists()


def test_an_interruption_that_comes_too_late_says_that_there_are_new_results(tmp_path):
    path = study_in(tmp_path)
    code = """
import os, signal
from synrisk.study.folder import Staging

place = Staging._place_manifest

def interrupted(*given):
    place(*given)
    os.kill(os.getpid(), signal.SIGINT)

Staging._place_manifest = interrupted
"""
    done = run_after(code, path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", TOO_LATE)
    check_whole(tmp_path / "out")


def run_after(code, path):
    """Run a study in a process that runs some code first."""
    first, rest = CODE.split("; from ")
    return subprocess.run(
        [sys.executable, "-c", f"{first}\n{code}\nfrom {rest}", "run", str(path), "-q"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_after_a_kill_the_next_run_still_knows_its_files(tmp_path):
    """Nothing can be cleaned up then: the next run does, by the manifest and the process's id."""
    path = study_in(tmp_path, data=table(1500))
    out = tmp_path / "out"
    interrupt(start(path), out, MOMENTS["moving in"], signal.SIGKILL)
    assert synrisk("run", path, "-q").exit_code == 0
    check_whole(out)


# -- more of these: benchmarks/attack.py --only interruptions ----------------------------------
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopped_at_any_moment_the_earlier_results_or_the_new_ones_are_whole(tmp_path, number):
    bench, rng = Bench(tmp_path), np.random.default_rng(int(number))
    for _ in range(3):
        interruptions.stop_at_random(bench, rng, number)


@ROOM
def test_a_full_disk_is_said_and_leaves_the_earlier_results(tmp_path):
    with interruptions.small_disk(1 << 24) as disk:
        bench = Bench(tmp_path, disk / "out")
        for share in (0.0, 0.4, 0.8):
            assert interruptions.fill_disk(bench, share).endswith("exit code 2")


def test_data_in_parts_are_gone_on_with_wherever_a_run_was_stopped(tmp_path):
    bench, rng = interruptions.PartedBench(tmp_path), np.random.default_rng(9)
    with bench.warm():
        for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGINT):
            interruptions.stop_parts_at_random(bench, rng, number)


@ROOM
def test_data_in_parts_are_gone_on_with_after_a_full_disk(tmp_path):
    with interruptions.small_disk(1 << 24) as disk:
        bench = interruptions.PartedBench(tmp_path, disk / "out")
        with bench.warm():
            assert "exit code 2" in interruptions.fill_disk_of_parts(bench, 0.6)


def test_a_file_that_may_not_grow_is_said_and_leaves_the_earlier_results(tmp_path):
    bench = Bench(tmp_path)
    for share in (0.0, 0.3, 0.8):
        assert interruptions.limit_files(bench, share).endswith("exit code 2")


@pytest.mark.skipif(
    sys.platform == "win32" or (os.geteuid() == 0 and not can_mount()),
    reason="root may write anywhere, and cannot mount anything read-only here",
)
def test_a_read_only_folder_stays_as_it_is(tmp_path):
    interruptions.run_into_read_only(Bench(tmp_path))
