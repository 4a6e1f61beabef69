"""Monte-Carlo errors against their definition, and what is said where they are not known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats
from helpers.cases import one_gaussian, people
from helpers.secret import SECRET
from numba import njit

import synrisk as sr
from synrisk.base.workers import workers
from synrisk.core import table_errors
from synrisk.core.kernels import tail_shape
from synrisk.core.summary import MixedPrior
from synrisk.core.table_errors import ErrorSets
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.risk.estimators.importance import Importance
from synrisk.risk.estimators.stacked import Stacked
from synrisk.risk.mcse import Near, _Joint


@njit
def compiled_tail_shape(log_weights):
    return tail_shape(log_weights)


@pytest.mark.parametrize("n", [200, 226, 1000, 4001])
@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0])
def test_tail_shapes_are_those_of_psis(n, shape):
    log_weights = np.log(np.random.default_rng(n).pareto(1 / shape, n) + 1.0)
    expected = array_stats.psislw(-log_weights)[1]
    assert compiled_tail_shape(log_weights.copy()) == pytest.approx(expected, abs=1e-9)


def test_weights_without_a_tail():
    assert compiled_tail_shape(np.zeros(500)) == -np.inf


def evaluated(estimates, evaluation):
    changed = replace(evaluation, estimates=tuple(estimates))
    return changed.run(workers("serial"), keep_joint=False, with_errors=False)


def with_log_v(estimate, h, by):
    """The estimate with the weight of draw `h` changed in every set of draws."""

    def moved(draws):
        log_v = draws.log_v.copy()
        log_v[h] += by
        return replace(draws, log_v=log_v)

    if isinstance(estimate, Stacked):
        stacked = tuple(moved(draws) for draws in estimate.stacked)
        return replace(estimate, draws=moved(estimate.draws), stacked=stacked)
    return replace(estimate, draws=moved(estimate.draws))


def mcse_by_differences(risk, step=1e-4):
    """Σ over models and units of (Σ_{h∈u} ∂P/∂log v_h)²: the jackknife's formula, numerically."""
    evaluation = risk._evaluation
    total = 0.0
    for k, estimate in enumerate(evaluation.estimates):
        units = estimate.units if isinstance(estimate, Importance) else estimate.units[0]
        size = units.size
        n_draws = len(estimate.draws.log_v)
        effects = []
        for h in range(n_draws):
            found = []
            for by in (step, -step):
                others = list(evaluation.estimates)
                others[k] = with_log_v(estimate, h, by)
                result = evaluated(others, evaluation)
                rows = np.arange(len(result.probability))
                truths = [
                    marginal[rows, grid.truth]
                    for marginal, grid in zip(result.marginals, evaluation.grids, strict=True)
                ]
                found.append(np.stack([result.probability, *truths], axis=1))
            effects.append((found[0] - found[1]) / (2 * step))
        layout = np.arange(n_draws) if units.layout is None else units.layout
        n_units = -(-len(layout) // size)
        batches = [layout[u * size : (u + 1) * size] for u in range(n_units)]
        sums = [sum(effects[h] for h in batch if h >= 0) for batch in batches]
        total = total + n_units / (n_units - 1) * np.sum(np.square(sums), axis=0)
    return np.sqrt(total)


PLAN = [
    sr.Regression("k ~ x", "poisson"),
    sr.Regression("r ~ k", "categorical"),
    sr.Regression("o ~ k + z", "bernoulli"),
]


ERRORS = ["mcse", "mcse_k", "mcse_r", "mcse_o"]


@pytest.mark.parametrize(
    ("estimator", "n_fitted", "n_draws", "n_rows", "m"),
    [("stacked", 14, 14, 30, 1), ("stacked", 15, 15, 30, 2), ("importance", 400, 96, 5, 2)],
)
def test_standard_errors_are_those_of_the_formula(estimator, n_fitted, n_draws, n_rows, m):
    """A chain and a fork: the joint probability and each marginal one.

    By importance a short release leaves enough effective draws; of a part of the draws no moments
    are matched.
    """
    synthesizer = sr.fit(PLAN, people(30), seed=1, n_draws=n_fitted)
    release = [rows.head(n_rows) for rows in synthesizer.synthesize(m, seed=SECRET + 2)]
    risk = sr.attribute_risk(
        synthesizer,
        release,
        estimator=estimator,
        records=[0, 7, 21],
        n_draws=n_draws,
        question="paper",
    )
    found = risk.records[ERRORS].to_numpy()
    np.testing.assert_allclose(found, mcse_by_differences(risk), rtol=1e-4)


def test_too_few_effective_draws_leave_the_standard_errors_unknown():
    synthesizer = sr.fit(PLAN, people(30), seed=1, n_draws=14)
    release = synthesizer.synthesize(1, seed=SECRET + 2)
    risk = sr.attribute_risk(
        synthesizer, release, estimator="importance", records=[0, 7, 21], question="paper"
    )
    assert all(estimate.release_ess.min() < 20 for estimate in risk._evaluation.estimates)
    assert risk.records[ERRORS].isna().all(axis=None)


def test_standard_errors_of_importance_sampling_are_those_of_the_formula():
    data = people(30)
    synthesizer = sr.fit(sr.Regression("k ~ 1", "poisson"), data, seed=1, n_draws=400)
    release = synthesizer.synthesize(1, seed=SECRET + 3)
    risk = sr.attribute_risk(  # of a part of the draws no moments are matched
        synthesizer,
        release,
        estimator="importance",
        records=[0, 7, 21],
        n_draws=96,
        question="paper",
    )
    assert risk._evaluation.estimates[0].release_ess.min() > 20
    found = risk.records[["mcse", "mcse_k"]].to_numpy()
    np.testing.assert_allclose(found, mcse_by_differences(risk), rtol=1e-4)


@pytest.mark.parametrize("formula", ["k ~ 1", "b ~ 1"])
def test_standard_errors_of_chains_are_those_of_the_formula(formula):
    """Chains of 61 draws do not fill their last batches."""
    data = people(30)
    family = "poisson" if formula == "k ~ 1" else "gaussian"
    fitted = sr.fit(sr.Regression(formula, family), data, seed=1, n_draws=183)
    draws = fitted.draws(formula[0]).assign(**{".chain": np.repeat([1, 2, 3], 61)})
    synthesizer = sr.Synthesizer.from_draws(sr.Regression(formula, family), data, draws)
    risk = sr.attribute_risk(
        synthesizer, fitted.synthesize(1, seed=SECRET + 3), records=[0, 7, 21], question="paper"
    )
    estimate = risk._evaluation.estimates[0]
    assert estimate.units.layout is not None
    assert estimate.release_ess.min() > 20
    assert estimate.error_sets[0].n_draws == 183
    found = risk.records[["mcse", f"mcse_{formula[0]}"]].to_numpy()
    np.testing.assert_allclose(found, mcse_by_differences(risk), rtol=1e-4)
    assert not any("chains" in note for note in risk.notes)


def test_exact_numbers_have_no_error():
    data = people(40)
    synthesizer = sr.fit(sr.Regression("b ~ x"), data, seed=1, n_draws=10)
    risk = sr.attribute_risk(
        synthesizer, synthesizer.synthesize(1, seed=SECRET + 2), question="paper"
    )
    records = risk.records
    assert (records["mcse"] == 0).all()
    assert (records["ess"] == np.inf).all()
    assert records["reliable"].all()
    assert (records["rank_low"] <= records["rank"]).all()
    assert (records["rank_high"] >= records["rank"]).all()
    assert len(risk.diagnostics()) == 0


def test_the_rank_lies_in_its_interval():
    data = people(60)
    synthesizer = sr.fit(PLAN, data, seed=1, n_draws=300)
    records = sr.attribute_risk(
        synthesizer, synthesizer.synthesize(1, seed=SECRET + 2), question="paper"
    ).records
    assert (records["rank_low"] <= records["rank"]).all()
    assert (records["rank_high"] >= records["rank"]).all()
    assert (records["rank_high"] > records["rank_low"]).any()
    assert (records["log_odds_range_mcse"] > 0).all()
    lift = records["probability"] / records["prior"]
    np.testing.assert_allclose(records["lift"], lift, rtol=1e-14)


def test_the_log_odds_range_is_that_of_the_joint():
    data = people(30)
    synthesizer = sr.fit(PLAN[:2], data, seed=1, n_draws=50)
    risk = sr.attribute_risk(
        synthesizer, synthesizer.synthesize(2, seed=SECRET + 2), question="paper"
    )
    for record in (0, 12):
        logs = np.log(risk.joint(record).to_numpy())  # the prior is uniform
        expected = logs.max() - logs.min()
        assert risk.records.loc[record, "log_odds_range"] == pytest.approx(expected, rel=1e-9)


def test_too_few_effective_draws_are_said_and_warned_of():
    synthesizer, _ = one_gaussian(n_draws=8)
    release = synthesizer.synthesize(1, seed=SECRET)
    with pytest.warns(sr.ReliabilityWarning, match="2 findings.*error of b cannot be estimated"):
        risk = sr.attribute_risk(synthesizer, release, question="paper")
    assert risk.records["mcse"].isna().all()
    assert not risk.records["reliable"].any()
    finding = risk.diagnostics().iloc[0]
    assert "8 draws carry the weight of" in finding["why"]
    assert "Let synrisk fit the models" in finding["what_to_do"]


@pytest.mark.parametrize("n_draws", [1, 2, 3, 9])
def test_the_error_of_a_few_draws_is_not_known(n_draws):
    data = people(40)
    fitted = sr.fit(sr.Regression("k ~ x", "poisson"), data, seed=1, n_draws=400)
    release = fitted.synthesize(1, seed=SECRET + 2)
    risk = sr.attribute_risk(fitted, release, n_draws=n_draws, question="paper")
    assert risk.records[["mcse", "rank_low", "log_odds_range_mcse"]].isna().all().all()
    assert not risk.records["reliable"].any()
    assert "cannot be estimated" in risk.diagnostics()["what"].iloc[0]
    # The check of the release needs no draws of the fit.
    assert risk.release_check.status("k") == "passed"
    few = sr.fit(sr.Regression("b ~ x"), data, seed=1, n_draws=n_draws)
    other = sr.attribute_risk(few, few.synthesize(1, seed=SECRET + 2), question="paper")
    assert list(other.summary()["release_check"]) == ["passed", "passed"]


@pytest.mark.parametrize("n_draws", [20, 50, 100])
def test_an_outlier_whose_weight_a_few_draws_carry_does_not_pass(n_draws):
    """His gain is 0.59 by fits at his guesses, and 0.06 to 0.12 by so few draws."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{k}": rng.normal(size=150) for k in range(4)})
    table["y"] = rng.poisson(np.exp(0.5 + 0.3 * table["x0"]))
    table.loc[0, ["x1", "x2", "y"]] = 6, 6, 40
    plan = sr.Regression("y ~ x0 + x1 + x2 + x3", "poisson")
    synthesizer = sr.fit(plan, table, n_draws=200, seed=SECRET)
    release = synthesizer.synthesize(seed=SECRET + 1)
    with pytest.warns(sr.ReliabilityWarning):
        risk = sr.attribute_risk(synthesizer, release, n_draws=n_draws, on_unreliable="flag")
    assert not risk.records.loc[0, "reliable"]
    assert risk.verdict(further=0).outcome != "passed"


def test_the_error_of_the_range_does_not_depend_on_the_prior():
    fitted = sr.fit(sr.Regression("k ~ x", "poisson"), people(40), seed=1, n_draws=200)
    release = fitted.synthesize(2, seed=SECRET + 2)
    one, two = (
        sr.attribute_risk(fitted, release, intruder_prior=prior, question="paper").records
        for prior in ("uniform", "model")
    )
    names = ["log_odds_range", "log_odds_range_mcse", "ess"]
    np.testing.assert_allclose(one[names], two[names], rtol=1e-9)


def test_what_cannot_be_relied_on_may_be_an_error():
    synthesizer, release = one_gaussian(n_draws=8)
    with pytest.raises(sr.UnreliableError, match="40 records of 40 cannot be relied on"):
        sr.attribute_risk(synthesizer, release, on_unreliable="raise", question="paper")
    with pytest.raises(sr.OptionError, match="needs to know what is reliable"):
        sr.attribute_risk(
            synthesizer, release, on_unreliable="raise", diagnostics=False, question="paper"
        )
    with pytest.raises(sr.OptionError, match="on_unreliable must be one of auto, flag, fit, raise"):
        sr.attribute_risk(synthesizer, release, on_unreliable="ignore", question="paper")
    fitted = sr.fit(sr.Regression("b ~ x"), people(40), seed=1, n_draws=10)
    release = fitted.synthesize(1, seed=SECRET + 1)
    assert (
        len(sr.attribute_risk(fitted, release, on_unreliable="raise", question="paper").records)
        == 40
    )


def test_diagnostics_can_be_left_out():
    synthesizer, release = one_gaussian(n_draws=8)
    risk = sr.attribute_risk(synthesizer, release, diagnostics=False, question="paper")
    assert risk.records["mcse"].isna().all()
    assert risk.release_check is None
    assert "diagnostics=False" in risk.diagnostics()["why"].iloc[0]
    with pytest.raises(sr.OptionError, match="diagnostics must be True or False"):
        sr.attribute_risk(synthesizer, release, diagnostics="yes", question="paper")


def test_errors_are_the_same_whatever_the_workers():
    data = people(600)
    synthesizer = sr.fit(PLAN, data, seed=1, n_draws=40)
    release = synthesizer.synthesize(1, seed=SECRET + 2)
    one, two = (
        sr.attribute_risk(synthesizer, release, executor=executor, question="paper").records
        for executor in ("serial", 2)
    )
    pd.testing.assert_frame_equal(one, two, check_exact=True)


def test_errors_and_checks_are_saved(tmp_path):
    data = people(60)
    synthesizer = sr.fit([sr.Regression("b ~ x"), *PLAN[:1]], data, seed=1, n_draws=60)
    risk = sr.attribute_risk(
        synthesizer, synthesizer.synthesize(2, seed=SECRET + 2), question="paper"
    )
    risk.save(tmp_path / "risk.nc")
    again = sr.AttributeRisk.load(tmp_path / "risk.nc")
    pd.testing.assert_frame_equal(risk.records, again.records, check_exact=True)
    pd.testing.assert_frame_equal(risk.diagnostics(), again.diagnostics())
    pd.testing.assert_frame_equal(risk.release_check.distance, again.release_check.distance)
    pd.testing.assert_frame_equal(
        risk.release_check.closeness, again.release_check.closeness, check_dtype=False
    )


# -- the checks of the release --------------------------------------------------------------------
def linear(n=400, seed=0):
    data = people(n, seed)[["x", "b", "k"]]
    return sr.fit([sr.Regression("b ~ x"), sr.Regression("k ~ b", "poisson")], data, seed=1), data


def test_honest_releases_pass():
    synthesizer, _ = linear()
    failures = [
        sr.attribute_risk(
            synthesizer, dataset, records=[0], question="paper"
        ).release_check.failures
        for dataset in synthesizer.synthesize(20, seed=SECRET + 3)
    ]
    # Forty χ² tests with 0.002 each: two datasets fail in one of 300 choices of the seed.
    assert sum(map(bool, failures)) <= 1


def test_distances_of_honest_releases_are_chi_squared():
    synthesizer, _ = linear()
    p = pd.concat(
        [
            sr.attribute_risk(
                synthesizer, dataset, records=[0], question="paper"
            ).release_check.distance["p_smaller"]
            for dataset in synthesizer.synthesize(40, seed=SECRET + 4)
        ]
    )
    # The mean of 80 uniforms has the sd 0.032; Poisson and normal posteriors are not quite normal.
    assert abs(p.mean() - 0.5) < 4.5 * 0.289 / np.sqrt(80)


def test_a_copy_is_caught_by_both_checks():
    synthesizer, data = linear()
    risk = sr.attribute_risk(synthesizer, data.copy(), records=[0], question="paper")
    failures = " ".join(risk.release_check.failures)
    assert "more closely than its model would" in failures
    assert "In dataset 1, 400 of 400 confidential records looked at are repeated to the" in failures
    assert set(risk.release_check.failures) <= set(risk.notes)
    assert risk.summary().loc["joint", "release_check"] == "failed"
    nearly = data.assign(b=data["b"] * (1 + 1e-7))
    close = sr.attribute_risk(
        synthesizer, nearly, records=[0], question="paper"
    ).release_check.closeness
    assert close.loc[("own record", 1), "found"] > 390
    assert close.loc[("values", 1), "found"] == 0


def test_an_independent_release_is_caught():
    synthesizer, data = linear()
    foreign = data.assign(b=data["b"].to_numpy()[::-1] + 5.0, k=data["k"].to_numpy()[::-1])
    with pytest.warns(sr.ReliabilityWarning, match="does not look as if it came"):
        sr.attribute_risk(synthesizer, foreign, records=[0], question="paper")


def copied(risk):
    return {one.dataset for one in risk.release_check.close if one.is_too_close} - {0}


def test_a_dataset_of_copies_is_caught_however_short():
    synthesizer, data = linear()
    honest = synthesizer.synthesize(1, seed=SECRET + 2)
    for n in (1, 3, 20):
        risk = sr.attribute_risk(
            synthesizer, [*honest, data.head(n)], records=[0], question="paper"
        )
        assert copied(risk) == {2}
        assert risk.verdict(sr.Criteria(lift=100)).outcome == "failed"
        short = [*honest, honest[0].head(n)]
        assert copied(sr.attribute_risk(synthesizer, short, records=[0], question="paper")) == set()


def levels(n=300):
    data = people(n)[["x", "r"]]
    synthesizer = sr.fit(sr.Regression("r ~ x", "categorical"), data, seed=1, n_draws=400)
    theirs = sr.Synthesizer.from_draws(
        sr.Regression("r ~ x", "categorical"), data, synthesizer.draws("r")
    )
    return data, synthesizer, theirs


def test_copied_levels_are_caught_by_the_rows_that_hold_their_records_own():
    data, synthesizer, theirs = levels()
    for one in (synthesizer, theirs):
        for dataset in synthesizer.synthesize(5, seed=SECRET + 1):
            check = sr.attribute_risk(one, dataset, records=[0], question="paper").release_check
            assert set(check.closeness.index.get_level_values("compared")) == {
                "own record",
                "tables",
            }
            assert check.status() == "passed"
            (row,) = check.agreement.to_dict("records")
            assert abs(row["agree"] - row["expected"]) < 4 * row["sd"]
        for copied in (data, data.sample(frac=1, random_state=1), data.head(100)):
            risk = sr.attribute_risk(one, copied, records=[0], question="paper")
            said = " ".join(risk.release_check.failures)
            assert "hold the r of the confidential record" in said
            assert risk.summary().loc["r", "release_check"] == "failed"


def test_rows_stand_for_records_by_their_place_where_nothing_else_tells():
    data = people(300)[["r", "k"]]
    synthesizer = sr.fit(sr.Regression("k ~ 1", "poisson"), data, seed=1, n_draws=200)
    assert (
        len(
            sr.attribute_risk(
                synthesizer, data, records=[0], question="paper"
            ).release_check.agreement
        )
        == 1
    )
    shorter = synthesizer.synthesize(1, seed=SECRET + 2)[0].head(250)
    assert not len(
        sr.attribute_risk(
            synthesizer, shorter, records=[0], question="paper"
        ).release_check.agreement
    )


def test_draws_made_elsewhere_are_compared_with_a_fit_to_the_release():
    synthesizer, data = linear()
    draws = [synthesizer.draws(name) for name in ("b", "k")]
    theirs = sr.Synthesizer.from_draws(synthesizer.plan.regressions, data, draws)
    release = synthesizer.synthesize(2, seed=SECRET + 2)
    ours, others = (
        sr.attribute_risk(one, release, records=[0], question="paper").release_check
        for one in (synthesizer, theirs)
    )
    # Other priors and a finite number of draws: the same to a tenth.
    np.testing.assert_allclose(others.distance["d2"], ours.distance["d2"], rtol=0.1)
    copied = sr.attribute_risk(theirs, data, records=[0], question="paper").release_check
    assert (copied.distance["p_smaller"] < 1e-3).all()


def test_what_could_not_be_compared_is_found_and_does_not_pass():
    synthesizer, data = linear()
    few = [synthesizer.draws(name).head(20) for name in ("b", "k")]
    theirs = sr.Synthesizer.from_draws(synthesizer.plan.regressions, data, few)
    release = synthesizer.synthesize(2, seed=SECRET + 2)
    risk = sr.attribute_risk(theirs, release, records=[0], question="paper")
    assert risk.release_check.unchecked == (("b", 1), ("b", 2), ("k", 1), ("k", 2))
    assert "model of b could not be checked (dataset 1, 2)" in " ".join(risk.diagnostics()["what"])
    # Two rows tell nothing about three parameters, but the other dataset does.
    risk = sr.attribute_risk(
        synthesizer, [release[0], release[1].head(2)], records=[0], question="paper"
    )
    assert risk.release_check.unchecked == (("b", 2),)
    assert "for b in dataset 2" in " ".join(risk.verdict(sr.Criteria(lift=100)).sentences())


# -- matched moments of many parameters ------------------------------------------------------------
@pytest.mark.parametrize("truly", [0.0, 0.5, 0.7])
def test_the_share_that_matched_moments_explain_is_found(monkeypatch, truly):
    """Effects of products of normals, and of noise; by so many units the prior share has no say.

    The estimate has the sd √(p (p + 1))/n = 0.005 without a share, and the effects' own squares,
    whose kurtosis is 9, add 0.7·√(8/2000) = 0.044 where it is large.
    """
    monkeypatch.setattr(table_errors, "_UNITS_A_PARAMETER", 200)
    numbers = CommonNumbers.draw(np.random.default_rng(4), 4000, 10)
    z = numbers.matched_normals()
    assert numbers.matched_directions() is None
    one = np.ones((1, 1, 4000))
    family = sr.Regression("k ~ 1", "poisson").distribution
    sets = ErrorSets(
        family, 2, one, one, np.zeros((1, 4000)), one, np.ones((1, 1)), None, one[0, :, :1],
        normals=z,
    )  # fmt: skip
    share, form = sets.credit()
    assert form.shape == (2000, 2000)
    noise = np.random.default_rng(5).normal(size=2000)
    effects = np.sqrt(truly) * z[:, 1] * z[:, 4] + np.sqrt(1 - truly) * noise
    found = share + effects @ form @ effects / (effects @ effects)
    assert abs(found - truly) < 4 * (0.005 + 0.063 * truly)


# -- derivatives of what is reported ---------------------------------------------------------------
@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (2,)])
@pytest.mark.parametrize("tolerant", [False, True])
def test_derivatives_in_the_logs_of_a_models_cells(axes, tolerant):
    """Of a posterior with the prior s·p + (1 − s)·u, against central differences."""
    rng, shape, share, n = np.random.default_rng(7), (3, 4, 2), 0.9, 5
    log_l, log_p = rng.normal(size=(2, n, 24))
    log_p[:, 5] = -np.inf  # no model predicts it
    truth = np.stack([rng.integers(size, size=n) for size in shape], axis=1)
    near = [np.arange(size) == truth[:, [axis]] for axis, size in enumerate(shape)]
    if tolerant:
        near = [one | (rng.random(one.shape) < 0.4) for one in near]
    by_axis = [
        one.reshape(n, *(size if k == axis else 1 for k, size in enumerate(shape)))
        for axis, one in enumerate(near)
    ]
    by_axis = [np.broadcast_to(one, (n, *shape)).reshape(n, 24) for one in by_axis]
    targets = np.stack([np.logical_and.reduce(by_axis), *by_axis])
    cell_of = np.indices(shape).reshape(3, 24)[list(axes)]
    table = tuple(shape[axis] for axis in axes)
    cell_of = np.ravel_multi_index(tuple(cell_of), table)

    def worked_out(by_likelihood, by_prediction):
        p = np.exp(log_p + by_prediction[cell_of])
        p /= p.sum(axis=1, keepdims=True)
        prior = share * p + (1 - share) / 24
        posterior = np.exp(log_l + by_likelihood[cell_of]) * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        after, before = np.sum(targets * posterior, axis=2), np.sum(targets * prior, axis=2)
        return p, prior, posterior, np.concatenate([after, before, after - before])

    # The differences are off by the step's square, and by rounding over the step.
    nothing, step, off = np.zeros(np.prod(table)), 1e-5, {"rtol": 0, "atol": 1e-9}
    p, prior, posterior, _ = worked_out(nothing, nothing)
    missed = np.concatenate([~one for one in near], axis=1).astype(float)
    joint = _Joint(np.log(posterior), Near(truth, missed if tolerant else missed[:0, :0], p), shape)
    mixed = MixedPrior(np.log(prior), p, np.zeros(n), truth)
    found = joint.derivatives(axes, mixed, share)
    for cell, by in enumerate(np.eye(len(nothing)) * step):
        up, down = worked_out(by, nothing)[3], worked_out(-by, nothing)[3]
        np.testing.assert_allclose(found.within[:, cell, 1:].T, (up - down) / 2 / step, **off)
        up, down = worked_out(nothing, by)[3], worked_out(nothing, -by)[3]
        np.testing.assert_allclose(found.by_prior[:, cell, 1:].T, (up - down) / 2 / step, **off)
    assert (found.within[:, :, 0] == 0).all()
    assert (found.by_prior[:, :, 0] == 0).all()
