"""Tasks for workers elsewhere, which import them by name."""

import os
import signal
import time
import warnings
from pathlib import Path

import synrisk as sr
from synrisk.base.kept import Kept

WAIT = 0.02


class Table(Kept):
    """Says how often it was sent."""

    n_sent = 0

    def __init__(self, value):
        self.value = value

    def __getstate__(self):
        type(self).n_sent += 1
        return {"value": self.value}


def add(table, k):
    time.sleep(WAIT)
    return table.value + k, os.getpid()


def die_once(marker, k):
    """Kill this process at the fifth piece, the first time that it comes."""
    if k == 5 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return k * k


def die(k):
    if k == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return k


def fail(k):
    if k == 4:
        raise sr.GuessError("four", about=("risk", "guesses"))
    return k


def break_down(k):
    if k == 4:
        raise KeyError("SECRET 4711")
    return k


def warn(k):
    warnings.warn(f"piece {k}", RuntimeWarning, stacklevel=1)
    return k


def sleep(seconds):
    time.sleep(seconds)
    return seconds
