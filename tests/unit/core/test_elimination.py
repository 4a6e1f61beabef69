"""Large joints by elimination and counting equal the joint that is built."""

import numpy as np
import pandas as pd
import pytest
from helpers.cases import gaussian_draws, people

import synrisk as sr
from synrisk.core import elimination
from synrisk.core import summary as result
from synrisk.risk import evaluate_block as evaluate_module

PLANS = {
    "chain": ("b ~ 1", "c ~ b", "x ~ c", "z ~ x"),
    "fork": ("b ~ 1", "c ~ b", "x ~ b", "z ~ b"),
    "collider": ("b ~ 1", "c ~ 1", "x ~ b + c", "z ~ c + x"),
    "apart": ("b ~ 1", "c ~ 1", "x ~ 1", "z ~ 1"),
    "full": ("b ~ 1", "c ~ b", "x ~ b + c", "z ~ b*c + x"),
}


def case(name):
    data = people()
    draws, plan = [], []
    for k, formula in enumerate(PLANS[name]):
        regression = sr.Regression(formula)
        terms = ["Intercept", *(":".join(f.name for f in t) for t in regression.parsed.terms)]
        draws.append(gaussian_draws(9, terms, [0.1] * len(terms), seed=k, spread=0.1))
        plan.append(regression)
    release = data[["b", "c", "x", "z"]].iloc[::-1]
    return sr.Synthesizer.from_draws(plan, data, draws), release


def both(monkeypatch, synthesizer, release, **options):
    monkeypatch.setattr(evaluate_module, "_LARGE_JOINT", 10**9)
    built = sr.attribute_risk(synthesizer, release, **options, question="paper")
    monkeypatch.setattr(evaluate_module, "_LARGE_JOINT", 0)
    eliminated = sr.attribute_risk(synthesizer, release, **options, question="paper")
    return built, eliminated


def same(built, eliminated):
    pd.testing.assert_frame_equal(
        built.records, eliminated.records, check_exact=False, rtol=1e-11, atol=1e-14
    )
    np.testing.assert_array_equal(built.records["rank"], eliminated.records["rank"])
    pd.testing.assert_frame_equal(built.summary(), eliminated.summary(), rtol=1e-11)
    for name in ("b", "z"):
        np.testing.assert_allclose(
            built.marginal(name), eliminated.marginal(name), rtol=1e-10, atol=1e-14
        )


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("factor", [None, 7.0, 0.2])
def test_elimination_equals_the_joint(monkeypatch, name, factor):
    synthesizer, release = case(name)
    prior = "uniform" if factor is None else sr.TruthFactor(factor)
    options = {"guesses": [3, 4, 2, 3], "intruder_prior": prior}
    same(*both(monkeypatch, synthesizer, [release] * 2, **options))


def test_ragged_grids(monkeypatch):
    synthesizer, release = case("collider")
    guesses = {}
    for k, name in enumerate(("b", "x")):
        truth = synthesizer.data[name].to_numpy()
        table = np.column_stack([truth - 1, truth, truth + 0.5])
        table[k::3, 2] = np.nan
        guesses[name] = sr.Values(table)
    same(*both(monkeypatch, synthesizer, release, guesses=guesses | {"c": 3, "z": 2}))


def test_ties_share_the_average_rank(monkeypatch):
    synthesizer, release = case("chain")
    options = {"guesses": [3, 2, 3, 2], "n_draws": 1}
    built, eliminated = both(monkeypatch, synthesizer, release, **options)
    assert (eliminated.records["rank"] == (36 + 1) / 2).all()
    same(built, eliminated)


def test_records_whose_sums_underflow_are_built(monkeypatch):
    synthesizer, release = case("full")
    monkeypatch.setattr(result, "LOST", np.inf)  # every record is taken for lost
    same(*both(monkeypatch, synthesizer, release, guesses=3))


def test_a_kept_joint_agrees_with_the_eliminated_marginals(monkeypatch):
    synthesizer, release = case("fork")
    monkeypatch.setattr(evaluate_module, "_LARGE_JOINT", 0)
    kept = sr.attribute_risk(
        synthesizer, release, guesses=3, joint="keep", question="paper"
    ).to_dataset()
    dropped = sr.attribute_risk(
        synthesizer, release, guesses=3, joint="drop", question="paper"
    ).to_dataset()
    assert kept.drop_vars("joint").identical(dropped)
    others = ["guess_b", "guess_c", "guess_z"]
    np.testing.assert_allclose(kept["joint"].sum(others), kept["marginal_x"], rtol=1e-11)


def test_large_joints_are_eliminated_by_themselves(monkeypatch):
    synthesizer, release = case("chain")
    calls = []
    original = elimination.plan_elimination
    monkeypatch.setattr(elimination, "plan_elimination", lambda *a: calls.append(a) or original(*a))
    risk = sr.attribute_risk(synthesizer, release, guesses=7, joint="drop", question="paper")
    assert calls
    assert (risk.records["n_guesses"] == 7**4).all()
    np.testing.assert_allclose(risk.marginal("c").sum("guess"), 1.0, rtol=1e-12)
