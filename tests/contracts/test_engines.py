"""Worker processes and a cluster of Dask: the same bits, and nothing is lost with a worker."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
from helpers import engine_tasks as tasks

import synrisk as sr
from synrisk.assessment import evaluate_parts
from synrisk.base.dask_cluster import DaskCluster
from synrisk.base.process_pool import ProcessPool
from synrisk.base.workers import workers
from synrisk.data.part_files import KEPT, PartFolder
from synrisk.risk import release_checks

PLAN = [
    sr.Regression("y ~ x"),
    sr.Regression("k ~ y + x", "poisson"),
    sr.Regression("b ~ x", "bernoulli"),
    sr.Regression("g ~ y", "categorical"),
]


def people(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    y = 1.0 + x + rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "y": y,
            "k": rng.poisson(np.exp(0.3 + 0.2 * y)),
            "b": (rng.random(n) < 1 / (1 + np.exp(-x))).astype(int),
            "g": np.array(["a", "b", "c"])[rng.integers(3, size=n)],
        }
    )


def numbers(executor):
    """Return all that a fit, a synthesis and an evaluation give."""
    fitted = sr.fit(PLAN, people(6000), seed=1, n_draws=50, executor=executor)
    release = fitted.synthesize(seed=2, executor=executor)
    guesses = {"y": 3, "k": 3, "b": sr.AllLevels(), "g": sr.AllLevels()}
    risk = sr.attribute_risk(
        fitted, release, guesses=guesses, question="paper", estimator="importance",
        n_draws=20, executor=executor,
    )  # fmt: skip
    coefficients = [model.posterior.coefficients for model in fitted.models]
    return coefficients, release[0], risk.records, risk.release_check.distance


@pytest.fixture(name="serial", scope="module")
def make_serial():
    return numbers("serial")


@pytest.fixture(name="cluster", scope="module")
def make_cluster():
    distributed = pytest.importorskip("distributed")
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(processes=True, host="127.0.0.1", **settings) as cluster:
        yield cluster


@pytest.fixture(name="client")
def make_client(cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        yield client


def assert_same(found, expected):
    for one, other in zip(found[0], expected[0], strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(found[1:], expected[1:], strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.parametrize("spec", ["threads", sr.Processes(1), sr.Processes(3)], ids=str)
def test_the_bits_are_those_of_one_thread(serial, spec):
    assert_same(numbers(spec), serial)


def test_the_bits_of_a_cluster_are_those_of_one_thread(serial, client):
    assert_same(numbers(client), serial)


def test_the_bits_do_not_depend_on_the_threads_of_blas(serial):
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(1):
        assert_same(numbers("threads"), serial)


STAGES = ["fitting", "synthesizing", "evaluating", "checking"]


@pytest.fixture(name="stage", params=STAGES)
def make_stage(request, monkeypatch):
    """Tell a stage's work from others' by what it does; checks fit models too."""
    doing, checking = request.param, []
    if doing == "checking":
        compare = release_checks.compare_fits
        monkeypatch.setattr(
            release_checks, "compare_fits", lambda *given: checking.append(1) or compare(*given)
        )
    return lambda what: bool(checking) if doing == "checking" else what == doing


def test_a_worker_of_a_cluster_that_is_killed_takes_nothing_along(
    serial, client, stage, monkeypatch
):
    killed = []
    result = DaskCluster._result

    def and_kill(self, task, asked):
        found = result(self, task, asked)
        if stage(task.what) and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return found

    monkeypatch.setattr(DaskCluster, "_result", and_kill)
    assert_same(numbers(client), serial)
    assert killed


def test_a_process_that_is_killed_takes_nothing_along(serial, stage, monkeypatch):
    killed = []
    asked = ProcessPool._asked

    def and_kill(self, k, task, item):
        answer = asked(self, k, task, item)
        if not stage(task.what) or killed:
            return answer
        process = self._workers[k].process
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        killed.append(process.pid)
        return asked(self, k, task, item)  # to one that is dead

    monkeypatch.setattr(ProcessPool, "_asked", and_kill)
    assert_same(numbers(sr.Processes(2)), serial)
    assert killed


@pytest.fixture(name="engine", params=["processes", "dask"])
def make_engine(request):
    spec = sr.Processes(2) if request.param == "processes" else request.getfixturevalue("client")
    with workers(spec).open() as executor:
        if request.param == "dask":
            executor.own._client.run(sys.path.extend, [p for p in sys.path if p.endswith("tests")])
        yield executor


def test_what_all_pieces_need_is_sent_once_and_results_are_in_order(engine):
    table = tasks.Table(np.arange(100_000))
    tasks.Table.n_sent = 0
    found = list(engine.map(partial(tasks.add, table), range(20)))
    assert [int(values[0]) for values, _ in found] == list(range(20))
    assert len({pid for _, pid in found}) == 2
    assert list(engine.map(partial(tasks.add, table), range(6)))[5][0][1] == 6
    assert tasks.Table.n_sent <= 2


def test_few_pieces_are_laid_out_ahead(engine):
    taken = []
    results = engine.map(tasks.sleep, (taken.append(k) or 0.0 for k in range(1000)))
    next(results)
    assert len(taken) < 20
    results.close()


def test_a_worker_that_dies_is_replaced(engine, tmp_path):
    found = engine.map(partial(tasks.die_once, str(tmp_path / "died")), range(30))
    assert list(found) == [k * k for k in range(30)]
    assert (tmp_path / "died").exists()


def test_an_error_of_ours_comes_as_it_is(engine):
    with pytest.raises(sr.GuessError, match=r"^four$") as caught:
        list(engine.map(tasks.fail, range(9)))
    assert caught.value.about == ("risk", "guesses")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_any_other_error_shows_no_value(engine):
    with pytest.raises(sr.EngineError, match=r"KeyError at engine_tasks.py line \d+") as caught:
        list(engine.map(tasks.break_down, range(9)))
    assert "4711" not in str(caught.value)
    assert caught.value.__context__ is None


def test_work_within_the_results_of_other_work(engine):
    found = [sum(engine.map(tasks.fail, range(3))) for _ in engine.map(tasks.fail, range(4))]
    assert found == [3, 3, 3, 3]


def test_what_kills_every_worker_is_an_error():
    with (
        workers(sr.Processes(2)).open() as executor,
        pytest.raises(sr.EngineError, match="3 worker processes ended"),
    ):
        list(executor.map(tasks.die, range(9)))


def test_warnings_of_processes_are_given_here():
    with workers(sr.Processes(2)).open() as executor, pytest.warns(RuntimeWarning, match="piece"):
        assert list(executor.map(tasks.warn, range(4))) == [0, 1, 2, 3]


def test_processes_end_at_once_with_whoever_asked():
    with workers(sr.Processes(2)).open() as executor:
        results = executor.map(tasks.sleep, [0.0, 0.0, *[60.0] * 6])
        next(results)
        started = [worker.process for worker in executor.own._workers.values()]
        begun = time.monotonic()
    assert time.monotonic() - begun < 20
    assert started
    assert all(process.poll() is not None for process in started)


def test_what_cannot_be_sent_is_said():
    with workers(sr.Processes(2)).open() as executor:
        lock = threading.Lock()
        with pytest.raises(sr.OptionError, match="cannot be sent to another process") as caught:
            list(executor.map(partial(tasks.add, lock), range(3)))
    assert caught.value.__context__ is None


_OWN = """
import synrisk as sr
from functools import partial
from synrisk.base.workers import workers
from synrisk.data.part_files import KEPT, PartFolder
from synrisk.risk import release_checks

def own(k):
    return k

print("run")
with workers(sr.Processes(2)).open() as executor:
    try:
        list(executor.map(own, range(3)))
    except sr.OptionError as error:
        print(error)
    print(list(executor.map(abs, range(3))))
"""


def test_the_program_is_not_run_again(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(_OWN)
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=120, check=True
    )
    first, message, last = done.stdout.splitlines()
    assert (first, last) == ("run", "[0, 1, 2]")
    assert "'own' is defined in the program" in message


@pytest.mark.parametrize("n", [0, -1, True, 2.5, "2"])
def test_processes_are_at_least_one(n):
    with pytest.raises(sr.OptionError, match="whole number from 1"):
        sr.Processes(n)


def test_nobody_answers(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("synrisk.base.dask_cluster._ANSWERS_IN", 1.0)
    with pytest.raises(
        sr.EngineError, match=r"no scheduler of Dask answers at 'tcp://127.0.0.1:9'"
    ):
        workers("tcp://127.0.0.1:9")


def test_results_that_are_long_on_their_way_come_all_the_same(client, monkeypatch):
    monkeypatch.setattr("synrisk.base.dask_cluster._LOOKS", 1e-3)
    with workers(client).open() as executor:
        assert list(executor.map(tasks.sleep, [0.01] * 40)) == [0.01] * 40


def test_data_that_went_to_a_worker_that_died_are_sent_again(monkeypatch):
    monkeypatch.setattr("synrisk.base.dask_cluster._LOOKS", 0.0)

    class Client:
        status = "running"
        answers = iter([OSError("the worker is gone"), ["a promise"]])

        def scatter(self, data, **options):
            del data, options
            answer = next(self.answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

    assert DaskCluster(Client(), 1).sent(7) == "a promise"


def test_an_address_is_opened_and_closed(cluster, serial):
    assert_same(numbers(cluster.scheduler_address), serial)


def test_a_closed_client_is_refused(cluster):
    from distributed import Client

    client = Client(cluster, set_as_default=False)
    client.close()
    with pytest.raises(sr.EngineError, match="client of Dask is closed"):
        workers(client)


@pytest.fixture(name="own_scheduler")
def make_own_scheduler(monkeypatch):
    """A scheduler that may be killed, and a client of it with one worker."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("synrisk.base.dask_cluster._GONE_AFTER", 3.0)
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port",
         "0", "--no-dashboard"], stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        address = next(w for line in scheduler.stderr for w in line.split() if "tcp://" in w)
        worker = subprocess.Popen(
            [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
             "--no-dashboard", "--death-timeout", "5"], stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            with distributed.Client(address, set_as_default=False) as client:
                client.wait_for_workers(1, timeout=60)
                yield scheduler, client
        finally:
            worker.kill()
            worker.wait()
    finally:
        scheduler.kill()
        scheduler.wait()
        scheduler.stderr.close()


GONE = r"scheduler is gone|client of Dask is"


def test_a_scheduler_that_is_gone_is_an_error(own_scheduler):
    scheduler, client = own_scheduler
    with workers(client).open() as executor:
        results = iter(executor.map(abs, range(10_000)))
        next(results)
        scheduler.kill()
        begun = time.monotonic()
        with pytest.raises(sr.EngineError, match=GONE):
            list(results)
        assert time.monotonic() - begun < 60


def test_a_risk_whose_scheduler_was_killed_is_gone_on_with(own_scheduler, tmp_path, monkeypatch):
    """By whatever engine: parts that are whole stay, and the bits are those of one run."""
    scheduler, client = own_scheduler
    monkeypatch.setattr(evaluate_parts, "rows_of_part", lambda _: 1_000)
    fitted = sr.fit(PLAN[:2], people(4000), seed=1, n_draws=20)
    release = fitted.synthesize(seed=2)
    asked = {"question": "paper", "guesses": 3, "diagnostics": False}
    write = PartFolder.write

    def and_kill(folder, number, *given):
        write(folder, number, *given)
        if number == 1:
            scheduler.kill()

    with monkeypatch.context() as once:
        once.setattr(PartFolder, "write", and_kill)
        with pytest.raises(sr.EngineError, match=GONE):
            sr.attribute_risk(fitted, release, out=tmp_path / "risk", executor=client, **asked)
    again = sr.attribute_risk(fitted, release, out=tmp_path / "risk", **asked)
    assert [state == KEPT for state in again.states] == [True, True, False, False]
    whole = sr.attribute_risk(fitted, release, executor="serial", **asked)
    pd.testing.assert_frame_equal(again.records, whole.records, check_exact=True)
