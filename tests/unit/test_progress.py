import io
import sys

import pytest
from helpers.cases import two_gaussians

import synrisk as sr


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("progress", [None, False, True])
def test_nothing_is_shown_without_a_terminal(progress, capsys):
    synthesizer, release = two_gaussians()
    sr.attribute_risk(synthesizer, release, progress=progress)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == ""


def test_a_bar_is_shown_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    synthesizer, release = two_gaussians()
    sr.attribute_risk(synthesizer, release, progress=False)
    assert terminal.getvalue() == ""
    sr.attribute_risk(synthesizer, release, progress=True)
    assert "Evaluating records" in terminal.getvalue()
    assert "40/40" in terminal.getvalue()


def test_progress_is_yes_or_no():
    synthesizer, release = two_gaussians()
    with pytest.raises(sr.OptionError, match="progress"):
        sr.attribute_risk(synthesizer, release, progress="often")
