"""Wide plans: the numbers of every variable, and of all together, without the joint grid."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET

import synrisk as sr
from synrisk.base.workers import workers

pytestmark = pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")

MODELS = (
    sr.Regression("a ~ x"),
    sr.Regression("k ~ a", "poisson"),
    sr.Regression("o ~ k + x", "bernoulli"),
    sr.Regression("d ~ a + o"),
    sr.Regression("e ~ d + k", "poisson"),
)
PRIORS = {
    "mostly-model": {"intruder_prior": "mostly-model"},
    "model": {"intruder_prior": "model"},
    "uniform": {"intruder_prior": "uniform"},
    "truth factor": {"intruder_prior": sr.TruthFactor(3.0), "question": "paper", "guesses": 5},
    "truth less likely": {
        "intruder_prior": sr.TruthFactor(0.4), "question": "paper", "guesses": 5,
    },
    "listed guesses": {"guesses": 4, "tolerance": 0.2},
}  # fmt: skip
SOME = (0, 7, 31, 58)


def table(n=60):
    rng = np.random.default_rng(3)
    x = rng.normal(size=n)
    a = 0.5 * x + rng.normal(size=n)
    k = rng.poisson(np.exp(0.3 + 0.2 * a))
    o = rng.integers(0, 2, n)
    d = 0.4 * a + 0.3 * o + rng.normal(size=n)
    return pd.DataFrame({"x": x, "a": a, "k": k, "o": o, "d": d, "e": rng.poisson(1.2, n)})


@pytest.fixture(scope="module", params=[2, 3, 4, 5])
def made(request):
    synthesizer = sr.fit(MODELS[: request.param], table(), n_draws=80, seed=1)
    return synthesizer, synthesizer.synthesize(m=2, seed=SECRET)


@pytest.fixture(scope="module")
def four():
    synthesizer = sr.fit(MODELS[:4], table(), n_draws=80, seed=1)
    return synthesizer, synthesizer.synthesize(seed=SECRET)


def evaluated(risk, *, is_joint=False, with_errors=True, executor="serial"):
    """Return what an evaluation of a risk gives with the joint grid, or without it."""
    evaluation = replace(risk._evaluation, is_joint=is_joint)
    with workers(executor).shared() as team:
        return evaluation.run(team, keep_joint=False, with_errors=with_errors)


@pytest.mark.parametrize("options", PRIORS.values(), ids=PRIORS)
def test_numbers_and_errors_are_those_of_the_joint_grid(made, options):
    synthesizer, release = made
    risk = sr.attribute_risk(
        synthesizer, release, records=SOME, joint="drop", diagnostics=False, **options
    )
    by_joint, by_variable = evaluated(risk, is_joint=True), evaluated(risk)
    close = {"rtol": 1e-9, "atol": 1e-13}
    for name in ("probability", "prior", "prior_marginals", "n_guesses", "best"):
        np.testing.assert_allclose(getattr(by_variable, name), getattr(by_joint, name), **close)
    for own, other in zip(by_variable.marginals, by_joint.marginals, strict=True):
        np.testing.assert_allclose(own, other, **close)
    known = np.isfinite(by_joint.log_odds_range)  # counted cells have none without errors
    np.testing.assert_allclose(
        by_variable.log_odds_range[known], by_joint.log_odds_range[known], **close
    )
    for name in ("mcse", "prior_mcse", "gain_mcse", "range_mcse", "ess", "khat", "reliable"):
        own, other = getattr(by_variable.errors, name), getattr(by_joint.errors, name)
        assert (own is None) == (other is None), name
        if own is not None:
            np.testing.assert_allclose(own, other, rtol=1e-7, atol=1e-13, err_msg=name)
    assert np.isnan(by_variable.rank).all()
    assert not by_variable.is_joint


def test_a_mixture_of_two_products_by_loops():
    """Naive loops over every cell: 0.9 of what the models predict and 0.1 uniform, jointly."""
    synthesizer = sr.fit(MODELS[:3], table(), n_draws=80, seed=1)
    release = synthesizer.synthesize(seed=SECRET)
    risk = sr.attribute_risk(
        synthesizer, release, records=SOME, guesses=sr.Range(8), diagnostics=False
    )
    evaluation = risk._evaluation
    evaluator = evaluation.evaluator
    records = evaluation.records(slice(0, len(SOME)))
    block = evaluator.encode(records)
    tables = [
        (*estimate.log_both(own, evaluator.shape, None), encoder.log_measure(own, records), axes)
        for estimate, own, encoder, axes in zip(
            evaluator.estimates, block.models, evaluator.encoders, evaluator.axes, strict=True
        )
    ]
    result = evaluated(risk, with_errors=False)
    shape = evaluator.shape
    for i in range(len(SOME)):
        model, uniform, likelihood, near = {}, {}, {}, {}
        for cell in itertools.product(*(range(n) for n in shape)):
            if not all(g.present[i, c] for g, c in zip(records.grids, cell, strict=True)):
                continue
            log_l, log_p, wide = 0.0, 0.0, 1.0
            for log_table, predicted, measure, axes in tables:
                place = 0
                for axis in axes:
                    place = place * shape[axis] + cell[axis]
                log_l += log_table[i, place]
                log_p += predicted[i, place] + measure[i, cell[axes[-1]]]
            for grid, c in zip(records.grids, cell, strict=True):
                wide *= 1.0 if grid.log_widths is None else np.exp(grid.log_widths[i, c])
            model[cell], uniform[cell], likelihood[cell] = np.exp(log_p), wide, np.exp(log_l)
            near[cell] = [g.near[i, c] for g, c in zip(records.grids, cell, strict=True)]
        of_model, of_uniform = sum(model.values()), sum(uniform.values())
        before = {c: 0.9 * model[c] / of_model + 0.1 * uniform[c] / of_uniform for c in model}
        after = {c: before[c] * likelihood[c] for c in before}
        total = sum(after.values())
        assert result.prior[i] == pytest.approx(
            sum(v for c, v in before.items() if all(near[c])), rel=1e-9
        )
        assert result.probability[i] == pytest.approx(
            sum(v for c, v in after.items() if all(near[c])) / total, rel=1e-9
        )
        for axis, n in enumerate(shape):
            wanted = [sum(v for c, v in after.items() if c[axis] == g) / total for g in range(n)]
            np.testing.assert_allclose(result.marginals[axis][i], wanted, rtol=1e-9, atol=1e-14)
            assert result.prior_marginals[i, axis] == pytest.approx(
                sum(v for c, v in before.items() if near[c][axis]), rel=1e-9
            )


def test_ranges_by_variable_are_of_its_own_odds():
    synthesizer = sr.fit(MODELS[:2], table(), n_draws=80, seed=1)
    release = synthesizer.synthesize(seed=SECRET)
    risk = sr.attribute_risk(
        synthesizer, release, records=SOME, intruder_prior="model", diagnostics=False
    )
    found = evaluated(risk, with_errors=False).likely_ranges
    for row, record in enumerate(SOME):
        after = risk.joint(record).to_numpy()
        before = np.exp(risk._evaluation.log_prior(row))
        kept = np.ix_(*[np.flatnonzero(g.present[row]) for g in risk._grids])
        before = before[kept]
        for axis in range(2):
            grid = risk._grids[axis]
            p, q = before.sum(axis=1 - axis), after.sum(axis=1 - axis)
            widths = np.zeros(len(p))
            if grid.log_widths is not None:
                widths = grid.log_widths[row][grid.present[row]]
            order = np.argsort(-p / np.exp(widths), kind="stable")
            n_likely = int(np.searchsorted(np.cumsum(p[order]), 0.99)) + 1
            likely = order[:n_likely]
            moved = np.log(q[likely] / p[likely])
            assert found[row, axis] == pytest.approx(np.ptp(moved), rel=1e-6)


@pytest.mark.parametrize("asked", [(0,), (2,), (1, 3), (0, 2, 3)], ids=str)
def test_some_variables_have_the_numbers_that_they_have_among_all(asked, four):
    synthesizer, release = four
    names = [synthesizer.plan.synthesized[axis] for axis in asked]
    options = {"records": SOME, "on_unreliable": "flag"}
    whole = sr.attribute_risk(synthesizer, release, joint="keep", **options)
    some = sr.attribute_risk(synthesizer, release, variables=names, **options)
    everything = whole.records
    for name in names:
        for column in ("before", "after", "gain", "before_mcse", "gain_mcse", "mcse"):
            np.testing.assert_allclose(
                some.records[f"{column}_{name}"], everything[f"{column}_{name}"],
                rtol=1e-7, atol=1e-13,
            )  # fmt: skip
    assert not any(f"before_{n}" in some.records for n in some.not_evaluated)
    near = [whole._grids[axis].near for axis in range(4)]
    for row in range(len(SOME)):
        joint = np.exp(whole._log_joint(row))
        inside = joint[np.ix_(*[
            np.flatnonzero(own[row]) if axis in asked else np.arange(joint.shape[axis])
            for axis, own in enumerate(near)
        ])]  # fmt: skip
        assert some.records["after"].iloc[row] == pytest.approx(inside.sum(), rel=1e-9)
    if len(asked) == 1:
        np.testing.assert_array_equal(some.records["rank"], some.records[f"rank_{names[0]}"])
        assert some.records["log_odds_range"].notna().all()
    else:
        assert some.records["rank"].isna().all()
        assert some.records["log_odds_range"].isna().all()
    shown = some.joint(SOME[1])
    others = [n for n in whole.joint(SOME[1]).dims if n not in names]
    np.testing.assert_allclose(shown, whole.joint(SOME[1]).sum(others), rtol=1e-9)


def test_blocks_and_workers_do_not_change_a_bit(monkeypatch):
    synthesizer = sr.fit(MODELS, table(), n_draws=80, seed=1)
    release = synthesizer.synthesize(seed=SECRET)
    risk = sr.attribute_risk(synthesizer, release, diagnostics=False)
    whole = evaluated(risk, executor="threads")
    monkeypatch.setattr("synrisk.risk.evaluate_block._BLOCK_NUMBERS", 1 << 18)
    parts = evaluated(risk)
    for own, other in ((whole, parts), (whole.errors, parts.errors)):
        for name, values in vars(own).items():
            if isinstance(values, np.ndarray):
                np.testing.assert_array_equal(values, getattr(other, name), err_msg=name)
    for own, other in zip(whole.marginals, parts.marginals, strict=True):
        np.testing.assert_array_equal(own, other)
