"""The console's entry: Ctrl-C ends it quietly from the very start, while synrisk is being imported.

It stands beside the package, because whatever is imported from the package imports all of it, which
takes a second or two.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

_INTERRUPTED = 130
_MESSAGE = "synrisk: Interrupted; no file was left half-written.\n"


def main() -> None:
    """Run the command line."""
    # A shell that runs jobs in the background has them ignore Ctrl-C; that stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from synrisk.study.cli import app

    app()


def _leave(_: int, __: FrameType | None) -> None:
    """End the process at once; an exception could be caught by a library that is being imported."""
    sys.stderr.write(_MESSAGE)
    sys.stderr.flush()
    os._exit(_INTERRUPTED)
