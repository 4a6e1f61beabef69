"""Two files: no dangerous release passes, and honest ones do."""

import numpy as np
import pytest
from helpers.dangerous import MAKERS, honest

import synrisk as sr

N = 500
NOTICED = (
    "the 5 richest",
    "the 5 richest, noise 0.001",
    "a tenth, noise 0.01",
    "half, noise 0.05",
    "everybody moved",
    "everybody, correlation 0.95",
)


@pytest.mark.parametrize("kind", NOTICED)
def test_a_dangerous_release_never_passes(kind):
    data, synthesizer, release = honest(N, 1, 1)
    made = MAKERS[kind][1](synthesizer, data, release, np.random.default_rng(1))
    assert sr.audit(data, made, seed=1).verdict().outcome != "passed"


def test_honest_releases_do_not_fail():
    """Ten of them: one in a thousand may warn of copies."""
    data, synthesizer, _ = honest(N, 1, 1)
    for seed in range(10):
        release = synthesizer.synthesize(1, seed=2**90 + seed)
        verdict = sr.audit(data, release, sensitive="Income", seed=seed).verdict()
        assert verdict.outcome == "passed", seed
