import io
import sys
from threading import Event

import pytest
from helpers.cases import two_gaussians
from numba import njit

import synrisk as sr
from synrisk.base.progress import COMPILING, bar, steps


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
