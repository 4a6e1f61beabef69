import io
import sys
from threading import Event

import numpy as np
import pandas as pd
import pytest
from helpers.cases import two_gaussians
from helpers.secret import SECRET
from numba import njit
from rich.progress import Progress

import synrisk as sr
from synrisk.assessment import evaluate_parts
from synrisk.base.chunks import ROWS
from synrisk.base.progress import COMPILING, bar, steps
from synrisk.data import partitions


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("progress", [None, False, True])
def test_nothing_is_shown_without_a_terminal(progress, capsys):
    synthesizer, release = two_gaussians()
    sr.attribute_risk(synthesizer, release, progress=progress, question="paper")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == ""


def test_a_bar_is_shown_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    synthesizer, release = two_gaussians()
    sr.attribute_risk(synthesizer, release, progress=False, question="paper")
    assert terminal.getvalue() == ""
    sr.attribute_risk(synthesizer, release, progress=True, question="paper")
    assert "Evaluating records" in terminal.getvalue()
    assert "40/40" in terminal.getvalue()


def test_steps_and_bars_share_one_display(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with steps(True) as show, show("Evaluating the risk"), bar(True, "Records", 7) as on_records:
        on_records(7)
    assert "Evaluating the risk" in terminal.getvalue()
    assert "7/7" in terminal.getvalue()
    assert "left: " in terminal.getvalue()


def test_compilation_is_said_once_and_only_when_it_happens(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("synrisk.base.progress._said", Event())
    with steps(True) as show, show("Evaluating the risk"):
        pass
    assert COMPILING not in terminal.getvalue()
    tripled, halved = njit(lambda x: 3 * x), njit(lambda x: x / 2)
    with steps(True) as show, show("Evaluating the risk"):
        assert halved(3.0) == 1.5
    assert terminal.getvalue().count(COMPILING) == 1
    with steps(True) as show, show("Evaluating the risk"):
        tripled(halved(3.0))
    assert terminal.getvalue().count(COMPILING) == 1


def test_steps_are_silent_where_nobody_looks(monkeypatch, capsys):
    with steps(True) as show, show("Fitting"):
        pass
    assert capsys.readouterr().err == ""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with steps(False) as show, show("Fitting"):
        pass
    assert terminal.getvalue() == ""


def test_progress_is_yes_or_no():
    synthesizer, release = two_gaussians()
    with pytest.raises(sr.OptionError, match="progress"):
        sr.attribute_risk(synthesizer, release, progress="often", question="paper")
    with pytest.raises(sr.OptionError, match="progress"):
        synthesizer.synthesize(progress=1)


@pytest.fixture(name="bars")
def make_bars(monkeypatch):
    """Note what each bar is called, how long it is, and how far it came."""
    bars = []
    add, update = Progress.add_task, Progress.update

    def noted(display, what, total=None, **more):
        number = add(display, what, total=total, **more)
        bars.append([what, total, 0])
        places[number] = len(bars) - 1
        return number

    def moved(display, number, advance=0, **more):
        bars[places[number]][2] += advance
        update(display, number, advance=advance, **more)

    places = {}
    monkeypatch.setattr(Progress, "add_task", noted)
    monkeypatch.setattr(Progress, "update", moved)
    return bars


@pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")
@pytest.mark.parametrize("executor", ["serial", 2, sr.Processes(1)], ids=str)
def test_every_pass_over_stored_records_is_shown_whatever_does_the_work(
    executor, bars, tmp_path, monkeypatch
):
    n = 2 * ROWS + 300
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(evaluate_parts, "rows_of_part", lambda _: ROWS)
    monkeypatch.setattr(partitions, "_MOST_SAMPLED", n // 2)
    rng = np.random.default_rng(1)
    x = rng.normal(size=n)
    data = pd.DataFrame({"y": x + rng.normal(size=n), "k": rng.poisson(np.exp(0.3 * x)), "x": x})
    (tmp_path / "people").mkdir()
    data.to_parquet(tmp_path / "people" / "part-0.parquet")
    how = {"executor": executor, "progress": True}
    plan = [sr.Regression("y ~ x"), sr.Regression("k ~ x", "poisson")]
    fitted = sr.fit(plan, tmp_path / "people", n_draws=20, seed=1, **how)
    release = fitted.synthesize(seed=SECRET, out=tmp_path / "release", **how)
    risk = sr.attribute_risk(fitted, release, guesses=3, out=tmp_path / "risk", **how)
    risk.verdict(sr.Criteria(gain=0.9), further=1, progress=True)
    passes = {what for what, _, _ in bars}
    assert passes >= {
        "The confidential data", "Fitting models", "Sums of products", "Step of Newton",
        "Weights of the draws", "Dataset 1", "Laying out guesses", "Evaluating records",
        "Checking the release by blocks", "Reading parts of the risk", "Another release",
    }  # fmt: skip
    assert {done for what, _, done in bars if what == "Evaluating records"} == {n}
    # Three chunks of records, and where a release is stacked with these three more.
    steps = {(total, done) for what, total, done in bars if what == "Step of Newton"}
    assert steps == {(3, 3), (6, 6)}
    assert [what for what, total, done in bars if done > total] == []
    # Of some tables the first rows alone are looked at; all else is gone through.
    unfinished = {what for what, total, done in bars if done < total}
    assert unfinished <= {"Going through the table"}
