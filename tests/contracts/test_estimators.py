"""What every estimator must do, and that one more is picked up by being listed in ESTIMATORS."""

import json
import re
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from helpers.cases import people

import synrisk as sr
from synrisk.base.workers import workers
from synrisk.core.table_errors import empty_totals
from synrisk.data.archive import pack, unpack
from synrisk.models.families import Family
from synrisk.models.families import family as family_of
from synrisk.risk.estimators import choose
from synrisk.risk.estimators.choose import ESTIMATORS, estimators_of, prepare_all
from synrisk.risk.estimators.estimate import Estimate, Estimator
from synrisk.synthesis.release import read_release

FORMULAS = {"gaussian": "b ~ x", "bernoulli": "o ~ x", "categorical": "r ~ x", "poisson": "k ~ x"}
every = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.name)
families = pytest.mark.parametrize("family", FORMULAS)
taken = pytest.mark.parametrize(
    ("estimator", "family"),
    [(e, f) for e in ESTIMATORS for f in FORMULAS if e.uses_draws or family_of(f).exact],
    ids=lambda value: getattr(value, "name", value),
)


@cache
def case(family, elsewhere=False):
    plan = sr.Regression(FORMULAS[family], family)
    data = people(80).assign(o=lambda d: d["o"].astype(bool))
    synthesizer = fitted = sr.fit(plan, data, seed=1, n_draws=200)
    if elsewhere:
        draws = fitted.draws(plan.response)
        synthesizer = sr.Synthesizer.from_draws(plan, data, draws)
    release = fitted.synthesize(2, seed=2)
    return (
        synthesizer,
        release,
        sr.attribute_risk(synthesizer, release, question="paper")._evaluation,
    )


def prepared(estimator, family):
    synthesizer, release, evaluation = case(family)
    read = read_release(synthesizer.confidential, release)
    draws = [model.posterior for model in synthesizer.models]
    team = workers("serial")
    (made,) = prepare_all(synthesizer, [estimator], draws, read, evaluation.grids, team)
    block = evaluation.evaluator.encode(evaluation.records(slice(0, 80))).models[0]
    return made, block, evaluation.shape


@every
@families
def test_a_model_is_taken_or_refused_in_words(estimator, family):
    for elsewhere in (False, True):
        synthesizer, release, _ = case(family, elsewhere)
        why = estimator.refusal(synthesizer.models[0], with_stacks=False)
        if why is None:
            risk = sr.attribute_risk(
                synthesizer, release, estimator=estimator.name, question="paper"
            )
            assert set(risk.estimator.values()) == {estimator.name}
            assert (set(risk.n_draws.values()) == {0}) == (not estimator.uses_draws)
        else:
            assert why.endswith(".")
            with pytest.raises(sr.OptionError, match=f"estimator={estimator.name!r} (is|needs)"):
                sr.attribute_risk(synthesizer, release, estimator=estimator.name, question="paper")


@families
@pytest.mark.parametrize("elsewhere", [False, True])
def test_auto_takes_the_first_that_a_model_allows(family, elsewhere):
    synthesizer, _, evaluation = case(family, elsewhere)
    (model,) = synthesizer.models
    first = next(e for e in ESTIMATORS if e.refusal(model, with_stacks=False) is None)
    assert evaluation.estimates[0].name == first.name
    assert estimators_of(synthesizer, "auto") == [first]


@taken
def test_tables_are_finite_and_a_records_own(estimator, family):
    made, block, shape = prepared(estimator, family)
    table = made.log_table(block, shape)
    assert table.shape == block.table_shape
    assert np.isfinite(table).all()
    assert made.log_predictive(block, shape).shape == table.shape
    for rows in (slice(0, 8), slice(13, 14), slice(40, 80)):
        np.testing.assert_array_equal(made.log_table(block.part(rows), shape), table[rows])
    assert isinstance(made, Estimate)
    assert made.name == estimator.name


@taken
def test_errors_are_known_where_something_was_drawn(estimator, family):
    made, block, shape = prepared(estimator, family)
    n_records, n_cells = block.table_shape
    within = np.full((n_records, n_cells, 2), 1.0 / n_cells)
    totals = empty_totals(made.error_sets, block) if made.error_sets else None
    made.log_table(block, shape, totals)
    errors = made.errors(block, shape, within, None, totals)
    assert bool(errors) == made.is_drawn
    for error in errors:
        assert error.table.variance.shape == (n_records, 1)
        assert (error.table.ess > 0).all()
        assert (error.table.ess <= error.n_draws * (1 + 1e-9)).all()


@taken
def test_estimates_come_back_from_a_file(estimator, family):
    made, block, shape = prepared(estimator, family)
    arrays = {}
    packed = json.loads(json.dumps(pack(made, arrays, "estimate", leave=(Family,))))
    given = {Family: case(family)[0].models[0].regression.distribution}
    again = unpack(type(made), packed, arrays, given)
    np.testing.assert_array_equal(again.log_table(block, shape), made.log_table(block, shape))


@taken
def test_findings_name_the_variable(estimator, family):
    made, _, _ = prepared(estimator, family)
    for finding in made.findings("the variable"):
        assert re.search("the variable", str(finding.what))


@dataclass(frozen=True)
class Nothing(Estimate):
    """Says that the release tells nothing."""

    name = "nothing"
    is_drawn = False

    def log_table(self, block, shape, totals=None):
        return np.zeros(block.table_shape)

    def log_predictive(self, block, shape):
        return np.zeros(block.table_shape)


class NothingEstimator(Estimator):
    name = "nothing"
    uses_draws = False

    def refusal(self, model, *, with_stacks):
        return None if model.regression.distribution.name == "poisson" else "is for counts."

    def prepare(self, request):
        return Nothing()


def test_one_more_estimator_touches_nothing_else(monkeypatch):
    monkeypatch.setattr(choose, "ESTIMATORS", (NothingEstimator(), *ESTIMATORS))
    plan = [sr.Regression("b ~ x"), sr.Regression("k ~ b", "poisson")]
    synthesizer = sr.fit(plan, people(40), seed=1, n_draws=40)
    risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(1, seed=2), question="paper")
    assert risk.estimator == {"b": "exact", "k": "nothing"}
    records = risk.records
    np.testing.assert_allclose(records["probability_k"], records["prior_k"], rtol=1e-12)
    assert (records["mcse"] == 0).all()
