"""Membership: against closed forms, fits without the record, and worlds whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm, poisson

import synrisk as sr
from synrisk.audit.membership import (
    ModelMembership,
    by_draws,
    membership_by_holdout,
    membership_by_models,
    membership_of_files,
)
from synrisk.base.workers import Serial
from synrisk.synthesis.release import read_release


def people(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 1.0 + x + rng.normal(size=n)
    y[0] += 6.0  # somebody who stands out
    return pd.DataFrame({"x": x, "y": y, "k": rng.poisson(3.0, n)})


def log_ratio(synthesizer, release):
    return membership_by_models(synthesizer, read_release(synthesizer.confidential, release))


def log_evidence(z, y, prior):
    """Return the log density of rows under the normal-inverse-gamma prior."""
    n, p = z.shape
    before = np.eye(p) * prior.precision
    after = before + z.T @ z
    mean = np.linalg.solve(after, before @ prior.mean + z.T @ y)
    s0 = prior.df * prior.spread**2
    s = s0 + y @ y + prior.mean @ before @ prior.mean - mean @ after @ mean
    df = prior.df + n
    return (
        -0.5 * n * np.log(np.pi)
        + 0.5 * (np.linalg.slogdet(before)[1] - np.linalg.slogdet(after)[1])
        + gammaln(df / 2) - gammaln(prior.df / 2)
        + 0.5 * prior.df * np.log(s0) - 0.5 * df * np.log(s)
    )  # fmt: skip


@pytest.mark.parametrize("m", [1, 2])
def test_the_ratio_of_a_gaussian_model_is_that_of_evidences_with_and_without_the_record(m):
    data = people(20, 1)[["x", "y"]]
    plan = [sr.Regression("y ~ x", prior=sr.Conjugate(scale=5.0, df=3.0))]
    synthesizer = sr.fit(plan, data, n_draws=200, seed=2)
    release = synthesizer.synthesize(m=m, seed=3)
    frozen = synthesizer.models[0].fit.frozen
    prior = frozen._prior

    def rows(frame):
        matrix = np.column_stack([np.ones(len(frame)), frame["x"]])
        return frozen.standardisation.apply(matrix), frame["y"].to_numpy()

    def log_of_release(records):
        alone = log_evidence(*rows(records), prior)
        stacked = [pd.concat([records, one[["x", "y"]]]) for one in release]
        return sum(log_evidence(*rows(one), prior) - alone for one in stacked)

    everybody = log_of_release(data)
    expected = [everybody - log_of_release(data.drop(index=i)) for i in data.index]

    found = log_ratio(synthesizer, release)

    np.testing.assert_allclose(found.log_ratio, expected, rtol=0, atol=1e-8)
    assert not found.error.any()
    assert found.epsilon(0.95) == pytest.approx(np.abs(expected).max(), abs=1e-8)
    advantage = np.maximum(1 - np.exp(-np.array(expected)), 0).mean()
    assert found.advantage == (pytest.approx(advantage), 0.0)


def test_the_ratio_of_a_poisson_model_is_that_of_sums_over_its_one_parameter():
    data = people(25, 4)[["k"]]
    synthesizer = sr.fit([sr.Regression("k ~ 1", family="poisson")], data, n_draws=2000, seed=5)
    release = synthesizer.synthesize(seed=6)
    prior = synthesizer.models[0].fit.priors[0]
    theta = np.linspace(-2.0, 4.0, 20_001)
    log_prior = norm.logpdf(theta, prior.mean, prior.sd)

    def log_density(values):
        return poisson.logpmf(np.asarray(values)[:, None], np.exp(theta)).sum(axis=0)

    def log_of_release(records):
        own = log_prior + log_density(records)
        return logsumexp(own + log_density(release[0]["k"])) - logsumexp(own)

    everybody = log_of_release(data["k"])
    expected = [everybody - log_of_release(data["k"].drop(index=i)) for i in data.index]

    found = log_ratio(synthesizer, release)

    assert (found.error < 0.01).all()
    assert (np.abs(found.log_ratio - expected) < 5 * found.error + 1e-4).all()


def test_over_releases_with_the_record_the_inverse_ratio_has_mean_one():
    # E[p(Ỹ|y_-i)/p(Ỹ|y) | y] = 1, whatever the record: no other size of the ratio keeps that.
    data = people(12, 7)[["x", "y"]]
    plan = [sr.Regression("y ~ x", prior=sr.Conjugate(scale=5.0, df=3.0))]
    synthesizer = sr.fit(plan, data, n_draws=4000, seed=8)
    release = synthesizer.synthesize(m=300, seed=9)
    inverse = np.array([np.exp(-log_ratio(synthesizer, one).log_ratio) for one in release])
    error = inverse.std(axis=0, ddof=1) / np.sqrt(len(inverse))
    assert (np.abs(inverse.mean(axis=0) - 1.0) < 4 * error).all()
    assert np.abs(inverse.mean(axis=0) - 1.0)[1:].max() < 0.2


def test_measures_are_of_even_odds_before():
    data = people(20, 1)[["x", "y"]]
    synthesizer = sr.fit([sr.Regression("y ~ x")], data, n_draws=100, seed=2)
    found = log_ratio(synthesizer, synthesizer.synthesize(seed=3))
    measure = found.measures["joint", "gain"]
    np.testing.assert_allclose(measure.value, 1 / (1 + np.exp(-found.log_ratio)) - 0.5)


def test_draws_made_elsewhere_are_refused():
    data = people(20, 1)[["x", "y"]]
    plan = [sr.Regression("y ~ x")]
    draws = sr.fit(plan, data, n_draws=50, seed=2).draws("y").drop(columns="weight")
    synthesizer = sr.Synthesizer.from_draws(plan, data, [draws])
    with pytest.raises(sr.OptionError, match="made elsewhere"):
        membership_by_models(synthesizer, [])


def test_the_bound_by_draws_is_above_the_exact_ratio_in_at_most_a_twentieth_of_worlds():
    plan = [sr.Regression("y ~ x", prior=sr.Conjugate(scale=5.0, df=3.0))]
    too_high, shares, n_worlds = 0, [], 60
    for seed in range(n_worlds):
        data = people(40, 100 + seed)[["x", "y"]]
        data.loc[0, "y"] -= 3.0  # who still stands out
        synthesizer = sr.fit(plan, data, n_draws=400, seed=2**70 + seed)
        made = synthesizer.synthesize(seed=2**71 + seed)
        release = read_release(synthesizer.confidential, made)
        truth = membership_by_models(synthesizer, release).epsilon(0.95)
        drawn = ModelMembership(*by_draws(synthesizer, synthesizer.models[0], release, Serial()))
        too_high += drawn.epsilon(0.95) > truth
        shares.append(drawn.epsilon(0.95) / truth)
    assert too_high / n_worlds < 0.05 + 4 * np.sqrt(0.05 * 0.95 / n_worlds)
    assert np.mean(shares) > 0.4  # it says something


def test_who_cannot_be_relied_on_is_left_out_of_the_bound():
    ratio, error = np.array([0.1, 3.0, -0.2]), np.array([0.0, 0.0, 0.05])
    found = ModelMembership(ratio, error, np.array([True, False, True]))
    assert found.epsilon(0.95) == pytest.approx(0.1)
    assert found.measures["joint", "gain"].reliable.tolist() == [True, False, True]


N_WORLDS = 400


def test_intervals_of_the_auc_and_the_advantage_hold_the_truth():
    rng = np.random.default_rng(10)
    truth = norm.cdf(0.5 / np.sqrt(2))
    advantage = 2 * norm.cdf(0.25) - 1
    inside = np.zeros(2)
    for _ in range(N_WORLDS):
        found = membership_by_holdout(rng.normal(0.5, 1, 150), rng.normal(0, 1, 100))
        inside[0] += found.auc_interval[0] <= truth <= found.auc_interval[1]
    for _ in range(N_WORLDS):
        found = membership_by_holdout(rng.normal(0.5, 1, 150), rng.normal(0, 1, 150))
        low, high = found.advantage_interval
        inside[1] += low <= advantage <= high
    assert (inside / N_WORLDS > 0.95 - 4 * np.sqrt(0.95 * 0.05 / N_WORLDS)).all()


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_bound_on_epsilon_is_above_it_in_at_most_a_twentieth_of_worlds(epsilon, share):
    # Randomised response: a score of 1 is e^ε times as likely for somebody who was in it.
    rng = np.random.default_rng(11)
    right = np.exp(epsilon) / (1 + np.exp(epsilon))
    bounds = []
    for _ in range(N_WORLDS):
        is_member = rng.random(400) < share
        score = (rng.random(400) < np.where(is_member, right, 1 - right)).astype(float)
        score += 0.5 * rng.random(400)
        bounds.append(membership_by_holdout(score[is_member], score[~is_member]).epsilon)
    too_high = np.mean(np.array(bounds) > epsilon)
    assert too_high < 0.05 + 4 * np.sqrt(0.05 * 0.95 / N_WORLDS)
    if epsilon and share == 0.5:
        assert np.mean(bounds) > 0.6 * epsilon


def files(rng, n=150, n_copied=0):
    everybody = people(3 * n, rng.integers(1 << 30))
    everybody["level"] = rng.choice(["a", "b"], 3 * n)
    own, out, release = (everybody.iloc[k * n : (k + 1) * n].copy() for k in range(3))
    release.iloc[:n_copied] = own.iloc[:n_copied]
    return own, out, release


def test_a_release_of_other_people_tells_nothing_of_who_was_in_it():
    rng = np.random.default_rng(12)
    names = ["x", "y", "k", "level"]
    found = [membership_of_files(*files(rng), names) for _ in range(60)]
    auc = np.array([one.auc for one in found])
    assert abs(auc.mean() - 0.5) < 4 * auc.std(ddof=1) / np.sqrt(60)
    missed = np.mean([not one.auc_interval[0] <= 0.5 <= one.auc_interval[1] for one in found])
    assert missed < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 60)
    assert np.mean([one.epsilon > 0 for one in found]) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 60)


def test_copied_people_are_told_from_held_out_ones():
    found = membership_of_files(*files(np.random.default_rng(13), n_copied=60), ["x", "y", "k"])
    assert found.auc_interval[0] > 0.55
    assert found.advantage > 0.2
    assert found.epsilon > 1.0


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"holdout": None}, sr.DataError, "The held-out data"),
        ({"drop": "k"}, sr.DataError, "The held-out data: there is no column 'k'"),
        ({"empty": True}, sr.DataError, "The held-out data: there are no rows"),
        ({"names": []}, sr.OptionError, "names= is empty"),
        ({"twice": True}, sr.OptionError, "one dataset"),
    ],
)
def test_mistakes_with_a_held_out_file_are_told(change, error, words):
    own, out, release = files(np.random.default_rng(14))
    if "holdout" in change:
        out = None
    elif "drop" in change:
        out = out.drop(columns="k")
    elif "empty" in change:
        out = out.iloc[:0]
    synthetic = [release, release] if "twice" in change else release
    with pytest.raises(error, match=words):
        membership_of_files(own, out, synthetic, change.get("names", ["x", "k"]))


@pytest.mark.parametrize(
    ("members", "others", "given", "words"),
    [
        (np.zeros(5), np.zeros(50), {}, "at least 20 people"),
        (np.full(50, np.nan), np.zeros(50), {}, "finite"),
        (np.zeros(50), np.zeros(50), {"confidence": 95}, "between 0 and 1"),
    ],
)
def test_scores_that_cannot_be_judged_are_refused(members, others, given, words):
    with pytest.raises(sr.OptionError, match=words):
        membership_by_holdout(members, others, **given)
