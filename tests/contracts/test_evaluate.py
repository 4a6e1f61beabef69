"""The evaluation of a block is a pure function, and holds nothing of other records."""

import pickle
from dataclasses import fields

import numpy as np
import pytest
from helpers.cases import people

import synrisk as sr
from synrisk.risk.evaluate_block import evaluate

PLAN = [
    sr.Regression("b ~ x + u"),
    sr.Regression("k ~ b + x", "poisson"),
    sr.Regression("r ~ k + bs(b, df=4)", "categorical", weights="w"),
]
ESTIMATORS = ["auto", "stacked", "importance", "paper"]
PRIORS = ["uniform", "model", "table", sr.TruthFactor(3)]


def evaluation_of(n, estimator="auto", prior="uniform"):
    data = people(n).assign(w=np.linspace(0.5, 2.0, n))
    synthesizer = sr.fit(PLAN, data, seed=1, n_draws=40)
    if isinstance(prior, str) and prior == "table":
        table = np.random.default_rng(1).dirichlet(np.ones(3 * 3 * 3), n).reshape(n, 3, 3, 3)
        prior = np.log(table)
    return sr.attribute_risk(
        synthesizer,
        synthesizer.synthesize(2, seed=2),
        guesses={"b": 3, "k": sr.Values([0, 1, 9]), "r": sr.AllLevels()},
        estimator=estimator,
        intruder_prior=prior,
        question="paper",
    )._evaluation


def arrays_of(result):
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            yield field.name, value
        elif isinstance(value, tuple):
            yield from ((f"{field.name}{k}", part) for k, part in enumerate(value))
        elif value is not None:
            yield from arrays_of(value)


def same(one, other):
    pairs = list(zip(arrays_of(one), arrays_of(other), strict=True))
    assert len(pairs) > 10
    for (name, a), (_, b) in pairs:
        np.testing.assert_array_equal(a, b, err_msg=name)


def options(estimator):
    return {"keep_joint": True, "with_errors": estimator != "paper"}


@pytest.mark.parametrize(
    ("estimator", "prior"),
    [(e, "uniform") for e in ESTIMATORS] + [("auto", p) for p in PRIORS[1:]],
    ids=str,
)
def test_it_is_the_same_wherever_it_runs(estimator, prior):
    """As in another process: the evaluator and the block as bytes, and back."""
    evaluation = evaluation_of(30, estimator, prior)
    block = evaluation.records(slice(5, 25))
    here = evaluate(evaluation.evaluator, block, **options(estimator))
    sent = pickle.loads(pickle.dumps((evaluation.evaluator, block)))  # noqa: S301 - our own bytes
    same(here, evaluate(*sent, **options(estimator)))
    same(here, evaluate(evaluation.evaluator, block, **options(estimator)))  # nothing was changed


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_record_does_not_depend_on_its_block(estimator):
    evaluation = evaluation_of(30, estimator)
    whole = evaluate(evaluation.evaluator, evaluation.records(slice(0, 30)), **options(estimator))
    for first in range(0, 30, 7):
        rows = slice(first, min(first + 7, 30))
        part = evaluate(evaluation.evaluator, evaluation.records(rows), **options(estimator))
        for (name, a), (_, b) in zip(arrays_of(whole), arrays_of(part), strict=True):
            np.testing.assert_array_equal(a[rows], b, err_msg=name)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_a_task_holds_nothing_of_the_whole_table(prior):
    """Ten times the people: the same evaluator but for words, and the same block."""
    small, large = (evaluation_of(n, "auto", prior) for n in (60, 600))
    size = [len(pickle.dumps(one.evaluator)) for one in (small, large)]
    # Nodes of sigma differ by a few; a column of 600 doubles more would be 4,320 bytes.
    assert abs(size[1] - size[0]) < 4_000
    blocks = [one.records(slice(0, 20)) for one in (small, large)]
    size = [len(pickle.dumps(block)) for block in blocks]
    assert abs(size[1] - size[0]) < 200
