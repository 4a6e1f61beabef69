"""What every model of a variable must do: regressions of every family, and one of another kind."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.cases import people
from helpers.cells import ALPHA, CellEncoder, CellEstimate, CellModel, counts

import synrisk as sr
from synrisk.base.workers import Serial, workers
from synrisk.risk.evaluate_block import evaluate
from synrisk.synthesis.datasets import synthesize
from synrisk.synthesis.release import read_release

FORMULAS = {
    "gaussian": "b ~ x + u",
    "bernoulli": "o ~ x",
    "categorical": "r ~ u",
    "poisson": "k ~ u + x",
}
KINDS = [*FORMULAS, "cells"]


def fitted(family="categorical", formula="r ~ u", n=400):
    return sr.fit(sr.Regression(formula, family), people(n), seed=1, n_draws=60)


def model_of(kind):
    if kind != "cells":
        synthesizer = fitted(kind, FORMULAS[kind])
        return synthesizer, synthesizer.models[0]
    synthesizer = fitted()
    table = counts(synthesizer.columns, "r", "u", 3, 3)
    return synthesizer, CellModel(synthesizer.plan.regressions[0], table)


@pytest.fixture(scope="module", params=KINDS)
def case(request):
    return model_of(request.param)


def sampled(case, rows=slice(None), seed=5):
    synthesizer, model = case
    columns = {name: values[rows] for name, values in synthesizer.columns.items()}
    n_rows = len(next(iter(columns.values())))
    draw = model.posterior_draw(np.random.default_rng(3))
    return model.sample(columns, n_rows, draw, np.random.default_rng(seed), "The rows")


def test_samples_are_in_the_support(case):
    synthesizer, model = case
    values = sampled(case)
    assert values.shape == (synthesizer.n_records,)
    assert values.dtype == np.float64
    variable = synthesizer.schema.variables[model.response]
    assert model.regression.distribution.supports(values, variable).all()


def test_the_same_stream_gives_the_same_values(case):
    np.testing.assert_array_equal(sampled(case), sampled(case))
    assert (sampled(case) != sampled(case, seed=6)).any()


def test_parameters_differ_between_datasets(case):
    _, model = case
    rng = np.random.default_rng(1)
    draws = [np.asarray(model.posterior_draw(rng)) for _ in range(20)]
    assert any((draw != draws[0]).any() for draw in draws)


def test_datasets_are_made_without_confidential_values_of_the_response(case):
    synthesizer, model = case
    (released,) = synthesize(synthesizer.confidential, [model], 1, 7, Serial())
    kept = [n for n in synthesizer.data.columns if n not in synthesizer.confidential.held_back]
    assert list(released.columns) == kept
    columns = {n: v for n, v in synthesizer.columns.items() if n != model.response}
    draw = model.posterior_draw(np.random.default_rng(3))
    model.sample(columns, synthesizer.n_records, draw, np.random.default_rng(5), "The rows")


def naive_log_ratio(table, released, given, own, truth):
    """L of METHOD §10 at each cell (predictor, response), straight from the formula."""
    found = np.empty((len(given), len(own)))
    c = table.copy()
    c[truth] -= 1
    for a, u in enumerate(given):
        for b, y in enumerate(own):
            total = 1.0
            for s in released:
                after = (c[u, y] + ALPHA + s[u, y]) / (c[u].sum() + 3 * ALPHA + s[u].sum())
                total *= after / ((c[u, y] + ALPHA) / (c[u].sum() + 3 * ALPHA))
            found[a, b] = np.log(total)
    return found


def cell_case(plan, n=60):
    """A synthesizer, its risk, and the closed estimate of r given u for the same release."""
    synthesizer = sr.fit(plan, people(n), seed=1, n_draws=60)
    release = synthesizer.synthesize(2, seed=2)
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    table = counts(synthesizer.columns, "r", "u", 3, 3)
    released = tuple(
        counts(dataset.columns, "r", "u", 3, 3)
        for dataset in read_release(synthesizer.confidential, release)
    )
    return synthesizer, risk._evaluation, table, released


def replaced(evaluation, k, encoder, estimate):
    own = evaluation.evaluator
    encoders, estimates = list(own.encoders), list(own.estimates)
    encoders[k], estimates[k] = encoder, estimate
    return type(own)(tuple(encoders), tuple(estimates), None, own.shape)


def test_a_model_of_another_kind_is_evaluated_as_its_formula_says():
    plan = sr.Regression("r ~ u", "categorical")
    synthesizer, evaluation, table, released = cell_case(plan)
    evaluator = replaced(evaluation, 0, CellEncoder(0, None, "u"), CellEstimate(table, released))
    block = evaluation.records(slice(0, 60))
    found = evaluate(evaluator, block, keep_joint=True, with_errors=True)
    assert (found.errors.mcse == 0).all()
    u, r = synthesizer.columns["u"].astype(int), synthesizer.columns["r"].astype(int)
    for i in range(60):
        log_l = naive_log_ratio(table, released, [u[i]], range(3), (u[i], r[i]))[0]
        p = np.exp(log_l) / np.exp(log_l).sum()
        assert found.probability[i] == pytest.approx(p[r[i]], rel=1e-12)
        np.testing.assert_allclose(np.exp(found.joint[i]), p, rtol=1e-12)


@pytest.mark.parametrize("large", [False, True])
def test_it_stands_beside_a_regression_whose_guesses_it_follows(monkeypatch, large):
    """u by a regression, then r by cells of u: over the joint grid, also by elimination."""
    if large:
        monkeypatch.setattr("synrisk.risk.evaluate_block._LARGE_JOINT", 0)
    plan = [sr.Regression("u ~ x", "categorical"), sr.Regression("r ~ u", "categorical")]
    synthesizer, evaluation, table, released = cell_case(plan)
    evaluator = replaced(evaluation, 1, CellEncoder(1, 0, "u"), CellEstimate(table, released))
    block = evaluation.records(slice(0, 60))
    assert evaluator.eliminates(block.grids, block.prior) == large
    found = evaluate(evaluator, block, keep_joint=False, with_errors=True)
    assert (found.errors.mcse > 0).all()  # of the regression's draws
    encoded = evaluator.encode(block)
    of_u = evaluator.estimates[0].log_table(encoded.models[0], evaluator.shape)
    u, r = synthesizer.columns["u"].astype(int), synthesizer.columns["r"].astype(int)
    for i in range(60):
        log_l = of_u[i][:, None] + naive_log_ratio(
            table, released, range(3), range(3), (u[i], r[i])
        )
        p = np.exp(log_l) / np.exp(log_l).sum()
        assert found.probability[i] == pytest.approx(p[u[i], r[i]], rel=1e-12)
        assert found.rank[i] == 1 + (p > p[u[i], r[i]] * (1 + 1e-9)).sum()


def test_its_predictive_density_is_a_prior():
    plan = sr.Regression("r ~ u", "categorical")
    synthesizer, _, table, released = cell_case(plan)
    release = synthesizer.synthesize(2, seed=2)
    believed = sr.attribute_risk(
        synthesizer, release, intruder_prior="model", question="paper"
    )._evaluation
    evaluator = replaced(believed, 0, CellEncoder(0, None, "u"), CellEstimate(table, released))
    found = evaluate(evaluator, believed.records(slice(0, 60)), keep_joint=False, with_errors=True)
    u, r = synthesizer.columns["u"].astype(int), synthesizer.columns["r"].astype(int)
    for i in range(60):
        c = table[u[i]].copy()
        c[r[i]] -= 1
        assert found.prior[i] == pytest.approx((c[r[i]] + ALPHA) / (c + ALPHA).sum(), rel=1e-12)


def test_blocks_of_it_run_like_any_other():
    """Through the map over blocks, in threads, to the last bit."""
    plan = sr.Regression("r ~ u", "categorical")
    _, evaluation, table, released = cell_case(plan)
    evaluator = replaced(evaluation, 0, CellEncoder(0, None, "u"), CellEstimate(table, released))
    own = replace(evaluation)
    object.__setattr__(own, "evaluator", evaluator)
    runs = [own.run(workers(n), keep_joint=True, with_errors=True) for n in ("serial", 2)]
    np.testing.assert_array_equal(runs[0].probability, runs[1].probability)
    np.testing.assert_array_equal(runs[0].joint, runs[1].joint)
