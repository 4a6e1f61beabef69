"""Other releases of the same fit: a release is one toss of a coin, and may have been chosen.

Whoever synthesizes until a verdict passes has chosen a lucky release. What a few others of the same
models would have given stands beside it.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from synrisk.base.workers import Workers
from synrisk.data.column_store import TemporaryFolder
from synrisk.risk.estimators.choose import estimators_of, prepare_all
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.guesses import Grid, GuessSpan
from synrisk.synthesis.datasets import HeldBackWarning, SynthesisWarning
from synrisk.synthesis.release import Released, read_release
from synrisk.synthesis.synthesizer import Synthesizer

_AUTO = "auto"


def further_releases(
    evaluation: Evaluation,
    grids: Sequence[Grid | GuessSpan],
    fingerprints: Sequence[str],
    n_releases: int,
    team: Workers,
) -> Iterator[Evaluation]:
    """Yield what evaluates the records for further releases of the same size.

    They are made anew each time, the same for the same release, and nobody sees them.

    Parameters
    ----------
    evaluation
        That of the release in hand.
    grids
        The guesses of all records, or how far these go, for each variable.
    fingerprints
        Of its datasets.
    n_releases
        How many others.
    team
        Who does the work.
    """
    synthesizer = evaluation.synthesizer
    estimators = estimators_of(synthesizer, _AUTO, with_stacks=False)
    draws = tuple(model.posterior for model in synthesizer.models)
    for number in range(n_releases):
        words = "\x1f".join(["further release", str(number), *fingerprints])
        seed = int.from_bytes(hashlib.blake2b(words.encode(), digest_size=16).digest())
        release = _release(synthesizer, len(fingerprints), seed, team)
        estimates = prepare_all(synthesizer, estimators, draws, release, grids, team, ())
        yield replace(evaluation, estimates=estimates, paired=None, fitted={})


def _release(synthesizer: Synthesizer, m: int, seed: int, team: Workers) -> list[Released]:
    """Make a release and read it; of stored records by way of a temporary folder."""
    is_stored = synthesizer.confidential.is_stored
    folder = TemporaryFolder() if is_stored else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SynthesisWarning)  # said of the release in hand
        warnings.simplefilter("ignore", HeldBackWarning)
        if folder is None:
            datasets: Any = synthesizer.synthesize(m, seed=seed, executor=team)
        else:
            out = folder.path / "release"
            datasets = synthesizer.synthesize(m, seed=seed, executor=team, out=out)
    return read_release(synthesizer.confidential, datasets)
