"""Fits against closed forms, and what a fit refuses or reports."""

import sys

import numpy as np
import pandas as pd
import pytest
from helpers.cases import people
from scipy.special import log_expit, logsumexp
from scipy.stats import chi2, multivariate_t

import synrisk as sr
from synrisk.base.workers import Serial
from synrisk.fitting import conjugate, frozen, laplace, normal_prior, sigma_quadrature
from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.laplace import NormalPrior
from synrisk.fitting.psis import are_reliable, effective_size, is_reliable, smoothed
from synrisk.fitting.standardise import Rows, Standardisation
from synrisk.fitting.sufficient_statistics import Sums

SIGMAS = 4.5  # standard errors; the seeds are fixed


@pytest.fixture(autouse=True)
def nothing_is_released(monkeypatch):
    """Here are fits to data whose predictors give the response away: no release could have them."""
    monkeypatch.setattr("synrisk.synthesis.synthesizer.refuse_exact", lambda *_: None)


def weighted_moments(fitted, variable, name):
    """The weighted mean and sd of a parameter, and their standard errors."""
    draws = fitted.draws(variable)
    weight, values = draws["weight"].to_numpy(), draws[name].to_numpy()
    mean = np.sum(weight * values)
    apart = values - mean
    sd = np.sqrt(np.sum(weight * apart**2))
    of_sd = np.sqrt(np.sum(weight**2 * (apart**2 - sd**2) ** 2)) / (2 * sd)
    return mean, sd, np.sqrt(np.sum(weight**2 * apart**2)), of_sd


# -- random numbers -------------------------------------------------------------------------------
def test_numbers_come_in_antithetic_pairs_with_matched_moments():
    numbers = CommonNumbers.draw(np.random.default_rng(0), 200, 5)
    np.testing.assert_array_equal(numbers.z[::2], -numbers.z[1::2])
    np.testing.assert_allclose(numbers.u[::2], 1.0 - numbers.u[1::2])
    np.testing.assert_allclose(numbers.z.T @ numbers.z / 200, np.eye(5), atol=1e-13)


def test_an_odd_number_of_draws_lacks_the_last_partner():
    numbers = CommonNumbers.draw(np.random.default_rng(0), 7, 2)
    assert numbers.z.shape == (7, 2)
    np.testing.assert_array_equal(numbers.z[0:6:2], -numbers.z[1:6:2])


def test_chi_squares_of_different_degrees_move_together():
    numbers = CommonNumbers.draw(np.random.default_rng(0), 400, 1)
    np.testing.assert_allclose(numbers.chi_square(7.0), chi2.ppf(numbers.u, 7.0), rtol=1e-9)
    assert np.corrcoef(numbers.chi_square(30.0), numbers.chi_square(60.0))[0, 1] > 0.99


# -- importance weights ---------------------------------------------------------------------------
def test_smoothing_looks_at_the_upper_tail_of_the_weights():
    """psislw takes negative log weights; with the wrong sign a light tail looks like this one."""
    rng = np.random.default_rng(1)
    heavy = rng.pareto(1.0, 4000) + 1.0  # the tail's shape is 1
    log_weights, khat = smoothed(np.log(heavy))
    assert 0.8 < khat < 1.2
    assert np.argmax(log_weights) == np.argmax(heavy)
    assert np.exp(log_weights).sum() == pytest.approx(1.0, abs=1e-12)
    _, light = smoothed(-np.log(heavy))  # uniform weights: the tail's shape is −1
    assert light < -0.5


def test_equal_weights_have_no_tail():
    log_weights, khat = smoothed(np.full(300, -3.0))
    np.testing.assert_allclose(np.exp(log_weights), 1 / 300)
    assert khat == -np.inf
    assert effective_size(log_weights) == pytest.approx(300)


def test_weights_are_reliable_where_they_are_even_or_their_tail_is_short():
    assert not is_reliable(3.0, 10.0, 100)
    assert not is_reliable(np.nan, 49.0, 100)  # nothing is known of the tail of so few
    assert is_reliable(np.nan, 51.0, 100)
    assert are_reliable(np.nan, 40.0, 100, evenness=0.7)  # the draws by themselves are as 70
    assert not is_reliable(0.9, 100.0, 1000)
    assert is_reliable(0.9, 850.0, 1000)
    assert is_reliable(0.5, 100.0, 1000)
    assert not is_reliable(0.6, 20.0, 200)  # 1 − 1/log10(200) = 0.565


# -- standardisation ------------------------------------------------------------------------------
@pytest.mark.parametrize("intercept", [0, None])
def test_coefficients_come_back_to_their_own_scale(intercept):
    rng = np.random.default_rng(2)
    matrix = rng.normal(5.0, [1.0, 30.0, 0.01], (50, 3))
    if intercept == 0:
        matrix[:, 0] = 1.0
    standard = Standardisation.of(matrix, intercept)
    gamma = rng.normal(size=(7, 3, 2))
    own = standard.coefficients(gamma)
    np.testing.assert_allclose(matrix @ own, standard.apply(matrix) @ gamma, atol=1e-9)


# -- the exact engine -----------------------------------------------------------------------------
def closed_form(x, y, omega, prior_mean, prior_precision, df, spread):
    """The normal-inverse-gamma posterior on the columns' own scale."""
    precision = np.diag(prior_precision) + (x.T * omega) @ x
    mean = np.linalg.solve(precision, np.diag(prior_precision) @ prior_mean + (x.T * omega) @ y)
    squares = df * spread**2 + np.sum(omega * y**2)
    squares += prior_mean @ np.diag(prior_precision) @ prior_mean - mean @ precision @ mean
    return mean, precision, df + omega.sum(), squares


def conjugate_case(extra=None, n_draws=4000):
    data = people(60)
    data["w"] = np.random.default_rng(4).uniform(0.3, 2.0, len(data))
    model = sr.Regression("b ~ x + z", weights="w")
    fitted = sr.fit(model, data, prior=sr.Conjugate(3.0, 2.0), n_draws=n_draws, seed=3)
    x = np.column_stack([np.ones(60), data["x"] - data["x"].mean(), data["z"] - data["z"].mean()])
    y, omega = data["b"].to_numpy(), data["w"].to_numpy()
    sd = x[:, 1:].std(axis=0, ddof=1)
    spread = y.std(ddof=1)
    prior_mean = np.array([y.mean(), 0.0, 0.0])
    prior_precision = np.concatenate([[1.0], sd**2]) / 3.0**2
    if extra is not None:
        more = np.column_stack(
            [np.ones(len(extra)), extra["x"] - data["x"].mean(), extra["z"] - data["z"].mean()]
        )
        x, y = np.concatenate([x, more]), np.concatenate([y, extra["b"]])
        omega = np.concatenate([omega, np.ones(len(extra))])
    known = closed_form(x, y, omega, prior_mean, prior_precision, 2.0, spread)
    return fitted, known


def agrees_with_closed_form(draws, known):
    mean, precision, df, squares = known
    covariance = np.linalg.inv(precision) * squares / (df - 2)  # of a multivariate t
    n = len(draws)
    for k, name in ((1, "x"), (2, "z")):
        sd = np.sqrt(covariance[k, k])
        assert abs(draws[name].mean() - mean[k]) < SIGMAS * sd / np.sqrt(n)
        assert abs(draws[name].std() / sd - 1) < SIGMAS / np.sqrt(n)
    sigma2 = draws["sigma"] ** 2
    np.testing.assert_allclose(  # quantiles of sigma² are those of the inverse χ²
        np.quantile(sigma2, [0.1, 0.5, 0.9]), squares / chi2.ppf([0.9, 0.5, 0.1], df), rtol=0.03
    )


def test_exact_draws_have_the_conjugate_posterior():
    fitted, known = conjugate_case()
    draws = fitted.draws("b")
    agrees_with_closed_form(draws, known)
    assert (draws["weight"] == draws["weight"].iloc[0]).all()
    described = fitted.describe().loc["b"]
    assert set(described["engine"]) == {"exact"}
    assert described.loc["x", "mode"] == pytest.approx(known[0][1], rel=1e-10)


def test_exact_coefficients_are_multivariate_t():
    """The χ² of Mahalanobis distances: F distributed, looked at by its mean."""
    fitted, (mean, precision, df, squares) = conjugate_case(n_draws=2000)
    draws = fitted.draws("b")[["x", "z"]].to_numpy()
    shape = np.linalg.inv(precision)[1:, 1:] * squares / df
    expected = multivariate_t(mean[1:], shape, df=df)
    level = expected.logpdf(draws).mean()
    sample = expected.rvs(20_000, random_state=1)
    own = expected.logpdf(sample)
    assert abs(level - own.mean()) < SIGMAS * own.std() * np.sqrt(1 / 2000 + 1 / 20_000)


def test_a_refit_stacks_rows_and_keeps_the_prior():
    rng = np.random.default_rng(9)
    extra = people(50, seed=8)
    extra["b"] = 25.0 + 3.0 * rng.normal(
        size=50
    )  # on another scale: a prior scaled anew would show
    fitted, known = conjugate_case(extra)
    again = fitted.refit(extra)["b"]
    agrees_with_closed_form(again.posterior.frame(), known)


def test_draws_of_a_fit_and_its_refit_move_together():
    data = people(400)
    plan = [
        sr.Regression("b ~ x"),
        sr.Regression("k ~ b + z", "poisson"),
        sr.Regression("o ~ x", "bernoulli"),
        sr.Regression("r ~ z", "categorical"),
    ]
    fitted = sr.fit(plan, data, seed=1, n_draws=400)
    release = fitted.synthesize(1, seed=2)[0]
    for name, again in fitted.refit(release).items():
        before, after = fitted.draws(name), again.posterior.frame()
        for parameter in before.columns.drop("weight"):
            assert np.corrcoef(before[parameter], after[parameter])[0, 1] > 0.98
            assert after[parameter].std() < before[parameter].std()
        assert again.reliable


def test_a_laplace_refit_is_the_fit_to_the_stack():
    """With priors on fixed scales the stack can be fitted as data; only the numbers differ."""
    data, extra = people(80), people(70, seed=5)
    prior = {"Intercept": sr.Normal(0.0, 2.0), "x": sr.Normal(0.0, 1.0), "z": sr.Normal(0.0, 1.0)}
    model = sr.Regression("k ~ 0 + x + z", "poisson", prior={"x": prior["x"], "z": prior["z"]})
    fitted = sr.fit(model, data, n_draws=6000, seed=1)
    again = fitted.refit(extra)["k"].posterior.frame()
    stacked = sr.fit(model, pd.concat([data, extra], ignore_index=True), n_draws=6000, seed=2)
    for name in ("x", "z"):
        mean, sd, of_mean, of_sd = weighted_moments(stacked, "k", name)
        weight = again["weight"].to_numpy()
        own = np.sum(weight * again[name])
        assert abs(own - mean) < SIGMAS * np.sqrt(2) * of_mean
        own_sd = np.sqrt(np.sum(weight * (again[name] - own) ** 2))
        assert abs(own_sd - sd) < SIGMAS * np.sqrt(2) * of_sd


def test_a_refit_takes_one_dataset():
    fitted = sr.fit(sr.Regression("b ~ x"), people(40), seed=1, n_draws=10)
    with pytest.raises(sr.OptionError, match="one synthetic dataset at a time; got 2"):
        fitted.refit(fitted.synthesize(2, seed=1))


def test_draws_made_elsewhere_cannot_be_refitted():
    data = people(30)
    draws = pd.DataFrame({"Intercept": [10.0, 10.1], "sigma": [1.0, 1.1]})
    synthesizer = sr.Synthesizer.from_draws(sr.Regression("b ~ 1"), data, draws)
    with pytest.raises(sr.OptionError, match="were made elsewhere"):
        synthesizer.refit(data)


# -- the Laplace engine ---------------------------------------------------------------------------
@pytest.mark.parametrize("width", [2.5, 10.0, 100.0, 1e4])
def test_a_separated_outcome_has_the_posterior_of_its_prior(width):
    """Thirty successes and no failure: one parameter, so quadrature is exact."""
    data = pd.DataFrame({"o": np.ones(30, dtype=int)})
    prior = {"Intercept": sr.Normal(0.0, width)}
    fitted = sr.fit(sr.Regression("o ~ 1", "bernoulli"), data, prior=prior, n_draws=4000, seed=7)
    at = np.concatenate(
        [np.linspace(-5, 30, 200_001), np.geomspace(30.0001, 30 + 9 * width, 200_001)]
    )
    log_p = 30 * log_expit(at) - 0.5 * (at / width) ** 2
    p = np.exp(log_p - log_p.max()) * np.gradient(at)
    p /= p.sum()
    true_mean = p @ at
    true_sd = np.sqrt(p @ (at - true_mean) ** 2)
    mean, sd, of_mean, of_sd = weighted_moments(fitted, "o", "Intercept")
    assert abs(mean - true_mean) < SIGMAS * of_mean
    assert abs(sd - true_sd) < SIGMAS * of_sd
    assert fitted.describe()["ess"].iloc[0] > 1500


def test_record_weights_are_exponents():
    """A record of weight three is three records; one of weight zero is none."""
    data = people(40)
    data["w"] = np.array([0, 1, 3, 2] * 10)
    repeated = data.loc[np.repeat(data.index, data["w"])].reset_index(drop=True)
    prior = {"Intercept": sr.Normal(0.0, 3.0), "x": sr.Normal(0.0, 3.0)}
    for formula, family in (("k ~ 0 + x", "poisson"), ("o ~ 0 + x", "bernoulli")):
        one = sr.fit(
            sr.Regression(formula, family, weights="w", prior={"x": prior["x"]}), data, seed=1
        )
        two = sr.fit(sr.Regression(formula, family, prior={"x": prior["x"]}), repeated, seed=1)
        np.testing.assert_allclose(one.describe()["mode"], two.describe()["mode"], atol=1e-7)
        np.testing.assert_allclose(one.describe()["sd"], two.describe()["sd"], rtol=0.05)


def test_the_mode_is_stationary():
    """The derivative of the log posterior by hand, at the mode that describe shows."""
    data = people(120)
    fitted = sr.fit(sr.Regression("k ~ x + z", "poisson"), data, prior="paper", seed=1)
    mode = fitted.describe()["mode"].to_numpy()
    x = np.column_stack([np.ones(120), data["x"], data["z"]])
    means = x.mean(axis=0)
    residual = data["k"] - np.exp(x @ mode)
    alpha = means @ mode
    gradient = x.T @ residual - alpha / 2.5**2 * means
    gradient[1:] -= mode[1:] / 2.0**2
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)


def test_few_draws_are_judged_by_more():
    fitted = sr.fit(sr.Regression("o ~ x", "bernoulli"), people(60), n_draws=20, seed=1)
    assert len(fitted.draws("o")) == 20
    assert np.isfinite(fitted.describe()["khat"]).all()


def test_a_posterior_far_from_normal_is_refused_with_advice():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {
            "r": rng.choice(list("abcdefghij"), 60, p=[0.55] + [0.05] * 9),
            "x": rng.normal(size=60),
            "u": rng.choice(list("pqrs"), 60),
        }
    )
    model = sr.Regression("r ~ x + u", "categorical")
    for n_draws in (1000, 50):
        with pytest.raises(sr.FitError, match="Merge rare levels") as caught:
            sr.fit(model, data, n_draws=n_draws, seed=1)
        assert "from_draws" in str(caught.value)
        assert "More draws do not help" in str(caught.value)


def rare_levels():
    """Six levels, the rarest with seven of 1,500 records, and 30 parameters."""
    rng = np.random.default_rng(3)
    data = sr.load_households()[["Race", "LogIncome"]]
    noise = {f"z{k}": rng.normal(size=len(data)) for k in range(4)}
    data = pd.concat([data, pd.DataFrame(noise)], axis=1)
    return data.sample(1500, random_state=1, ignore_index=True)


RARE = sr.Regression("Race ~ LogIncome + z0 + z1 + z2 + z3", "categorical")


@pytest.mark.parametrize("n_draws", [50, 200, 1000])
def test_whether_a_fit_is_accepted_does_not_depend_on_its_seed(n_draws):
    """Proposals at the mode leave 4 to 18 % of the draws, and k̂ from 0.1 to 0.8 by the seed."""
    data = rare_levels()
    fits = [
        sr.fit(RARE, data, n_draws=n_draws, seed=seed, executor="serial").models[0].fit
        for seed in range(8)
    ]
    assert all(fit.adapted for fit in fits)
    assert len({fit.khat for fit in fits}) == 1
    assert min(fit.ess for fit in fits) > 0.15 * n_draws


def test_proposals_laid_out_anew_draw_the_same_posterior(monkeypatch):
    """Against many draws of the proposals at the mode, which are bad but not wrong."""
    data = rare_levels()
    fitted = sr.fit(RARE, data, n_draws=4000, seed=1)
    monkeypatch.setattr(laplace, "_GOOD_ENOUGH", 0.0)
    slow = sr.fit(RARE, data, n_draws=100_000, seed=2)
    assert not slow.models[0].fit.adapted
    for name in fitted.models[0].posterior.names:
        one, two = (weighted_moments(each, "Race", name) for each in (fitted, slow))
        for k in (0, 1):
            assert abs(one[k] - two[k]) < SIGMAS * np.hypot(one[k + 2], two[k + 2]), name


def test_a_refit_lays_its_proposals_out_as_the_fit_did(monkeypatch):
    data = rare_levels()
    fitted = sr.fit(RARE, data, n_draws=200, seed=1)
    release = fitted.synthesize(1, seed=2)[0]
    asked = []

    def spy(*arguments, adapted):
        asked.append(adapted)
        return laplace.laplace(*arguments, adapted=adapted)

    monkeypatch.setattr(frozen, "laplace", spy)
    again = fitted.refit(release)["Race"]
    assert asked == [True]
    assert again.reliable
    one = fitted.models[0].posterior.coefficients.reshape(200, -1)
    two = again.posterior.coefficients.reshape(200, -1)
    moving = [np.corrcoef(one[:, k], two[:, k])[0, 1] for k in range(one.shape[1])]
    assert min(moving) > 0.8


def test_even_proposals_are_not_tried(monkeypatch):
    """Fits that proposals at the mode carry keep every bit of their draws."""
    monkeypatch.setattr(laplace, "_tried", None)
    data = sr.load_households()
    for formula, family in (
        ("Race ~ LogIncome", "categorical"),
        ("KidsCount ~ LogExpenditure + Urban", "poisson"),
        ("Urban ~ LogIncome", "bernoulli"),
    ):
        for n_draws in (50, 1000):
            model = sr.fit(sr.Regression(formula, family), data, n_draws=n_draws, seed=1).models[0]
            assert not model.fit.adapted


@pytest.mark.parametrize("executor", ["serial", 2, 3])
def test_fits_have_the_same_bits_whatever_the_workers(executor):
    data = pd.concat([people(3000, seed=s) for s in range(3)], ignore_index=True)
    plan = [sr.Regression("b ~ x + u"), sr.Regression("r ~ b", "categorical")]
    one = sr.fit(plan, data, seed=1, n_draws=100, executor=executor)
    two = sr.fit(plan, data, seed=1, n_draws=100)
    for name in ("b", "r"):
        pd.testing.assert_frame_equal(one.draws(name), two.draws(name), check_exact=True)


def test_another_seed_gives_other_draws():
    data = people(50)
    model = sr.Regression("b ~ x")
    one, two, three = (sr.fit(model, data, seed=s).draws("b") for s in (1, 1, 2))
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    assert not np.allclose(one, three)
    assert not np.allclose(*(sr.fit(model, data).draws("b") for _ in range(2)))


# -- what is reported -----------------------------------------------------------------------------
def separated_people():
    data = people(120)
    data["v"] = pd.Categorical(np.where(np.arange(120) < 6, "rare", "usual"), ["usual", "rare"])
    data["o"] = np.where(data["v"] == "rare", 1, data["o"])
    data["k"] = np.where(data["v"] == "rare", 0, data["k"])
    data["r"] = data["r"].where(data["v"] != "rare", "low")
    return data


@pytest.mark.parametrize(
    ("formula", "family", "parameters"),
    [
        ("o ~ x + v", "bernoulli", ["v[T.rare]"]),
        ("k ~ x + v", "poisson", ["v[T.rare]"]),
        ("r ~ x + v", "categorical", ["mid:v[T.rare]", "top:v[T.rare]"]),
    ],
)
def test_separation_is_reported_by_variable_and_level(formula, family, parameters):
    fitted = sr.fit(sr.Regression(formula, family), separated_people(), seed=1)
    described = fitted.describe().droplevel("variable")
    assert described.index[described["separated"]].tolist() == parameters
    assert len(fitted.notes) == 1
    assert "v[T.rare]" in fitted.notes[0]
    assert (described.loc[parameters, "sd"] > 1.0).all()  # proper, and wide as the prior
    risk = sr.attribute_risk(fitted, fitted.synthesize(1, seed=2), question="paper")
    assert fitted.notes[0] in risk.notes


def test_a_separated_reference_level_is_reported():
    data = separated_people()
    data["v"] = data["v"].cat.reorder_categories(["rare", "usual"])
    fitted = sr.fit(sr.Regression("o ~ x + v", "bernoulli"), data, seed=1)
    assert "v[reference]" in fitted.notes[0]


def test_a_complete_separation_names_its_level():
    data = people(80).assign(o=lambda d: (d["u"] == "q").astype(int))
    fitted = sr.fit(sr.Regression("o ~ u", "bernoulli"), data, seed=1)
    assert "separated completely by u[T.q]" in fitted.notes[0]


@pytest.mark.parametrize(
    ("family", "value"), [("poisson", 0), ("bernoulli", 1), ("bernoulli", 0), ("categorical", 1)]
)
def test_one_outcome_for_all_is_reported(family, value):
    data = people(50).assign(y=value)
    types = {"y": [1, 2]} if family == "categorical" else None
    fitted = sr.fit(sr.Regression("y ~ x", family), data, seed=1, types=types)
    assert fitted.notes == (
        "y has the same outcome for every record, so its coefficients are the prior's.",
    )
    assert np.isfinite(fitted.describe()["sd"]).all()


def test_numbers_that_settle_an_outcome_are_reported():
    data = people(80)
    data["o"] = (data["x"] > 0.2).astype(int)
    fitted = sr.fit(sr.Regression("o ~ x + z", "bernoulli"), data, seed=1)
    assert fitted.describe().loc[("o", "x"), "separated"]
    assert "separated completely" in fitted.notes[0]


def test_nothing_is_reported_where_nothing_is_separated():
    fitted = sr.fit(sr.Regression("o ~ x + u", "bernoulli"), people(200), seed=1)
    assert fitted.notes == ()
    assert not fitted.describe()["separated"].any()


def test_variance_inflation_is_that_of_a_regression_on_the_others():
    data = people(200)
    data["near"] = data["x"] + 0.1 * data["z"] + 0.05 * data["c"]
    fitted = sr.fit(sr.Regression("b ~ x + z + near"), data, seed=1)
    others = np.column_stack([np.ones(200), data["z"], data["near"]])
    left = data["x"] - others @ np.linalg.lstsq(others, data["x"])[0]
    expected = ((data["x"] - data["x"].mean()) ** 2).sum() / (left**2).sum()
    vif = fitted.describe()["vif"].droplevel("variable")
    assert vif["x"] == pytest.approx(expected, rel=1e-8)
    assert np.isnan(vif["Intercept"])


def test_a_level_that_nobody_has_keeps_its_prior():
    data = people(100)
    types = {"u": ["p", "q", "s", "unseen"]}
    fitted = sr.fit(sr.Regression("b ~ u"), data, types=types, prior="paper", seed=1, n_draws=4000)
    mean, sd, of_mean, of_sd = weighted_moments(fitted, "b", "u[T.unseen]")
    assert abs(mean) < SIGMAS * of_mean
    assert abs(sd - 2.0) < SIGMAS * of_sd


# -- what is refused ------------------------------------------------------------------------------
REFUSED = {
    "collinear": ("b ~ x + I(2 * x)", {}, sr.DataError, "x, I(2 * x) are collinear"),
    "collinear factor": ("b ~ u + twin", {}, sr.DataError, "are collinear"),
    "constant": ("b ~ x + one", {}, sr.DataError, "one has the same value for every record"),
    "constant response": ("one ~ x", {}, sr.DataError, "the response has the same value"),
    "no noise": ("copy ~ x + b", {}, sr.DataError, "without any noise"),
    "zeros": ("b ~ x + zero", {}, sr.DataError, "zero has the same value for every record"),
    "the same but for rounding": ("b ~ rounded", {}, sr.DataError, "rounded has the same value"),
    "extreme predictor": ("b ~ huge", {}, sr.DataError, "a predictor is on an extreme scale"),
    "extreme response": ("tiny ~ x", {}, sr.DataError, "the response is on an extreme scale"),
    "too many draws": ("b ~ x", {"n_draws": 10**13}, sr.OptionError, "to 1,000,000"),
    "laplace with conjugate": (
        "b ~ x", {"engine": "laplace", "prior": "conjugate"}, sr.OptionError, "drawn from exactly",
    ),
    "engine": ("b ~ x", {"engine": "laplac"}, sr.OptionError, "Did you mean 'laplace'"),
    "prior": ("b ~ x", {"prior": "flat"}, sr.PriorError, "prior must be one of"),
    "no parameter": ("b ~ x", {"prior": {"y": sr.Normal(0, 1)}}, sr.PriorError, "no parameter"),
    "wrong kind": ("b ~ x", {"prior": {"x": sr.Exponential(1)}}, sr.PriorError, "of type Normal"),
    "no draws": ("b ~ x", {"n_draws": 0}, sr.OptionError, "whole number from 1"),
    "seed": ("b ~ x", {"seed": 1.5}, sr.OptionError, "seed must be a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_fitted_is_refused(name):
    formula, options, error, message = REFUSED[name]
    data = people(60).assign(one=4.0)
    data["copy"] = 3.0 * data["b"] - data["x"]
    data["twin"] = data["u"].astype(str) + "!"
    data["zero"], data["rounded"] = 0.0, np.where(data["x"] > 0, 0.3, 0.1 + 0.2)
    data["huge"], data["tiny"] = 1e170 * data["x"], 1e-170 * data["x"]
    with pytest.raises(error) as caught:
        sr.fit(sr.Regression(formula), data, **options)
    assert message in str(caught.value)


def test_a_flat_prior_needs_records_for_every_coefficient():
    data = people(3)
    flat = sr.Conjugate(np.inf, 0.0)
    with pytest.raises(sr.FitError, match="too few records"):
        sr.fit(sr.Regression("b ~ x + z"), data, prior=flat, seed=1)
    data = people(40).assign(w=lambda d: (d["u"] != "s").astype(float))
    with pytest.raises(sr.FitError, match="some coefficient is not settled"):
        sr.fit(sr.Regression("b ~ u", weights="w"), data, prior=flat, seed=1)
    with pytest.raises(sr.FitError, match="too small weights"):
        sr.fit(
            sr.Regression("b ~ x", weights="w"), data.assign(w=1e-6), prior=sr.Conjugate(10, 0.1)
        )


@pytest.mark.parametrize("seed", range(12))
def test_a_level_without_weight_is_refused_under_a_flat_prior_whatever_the_rounding(seed):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": rng.normal(size=40), "g": rng.choice(["p", "q", "r"], size=40)})
    data["y"], data["w"] = data["x"] + rng.normal(size=40), 1.0
    data.loc[3, "g"], data.loc[3, "w"] = "alone", 0.0
    regression = sr.Regression("y ~ x + g", weights="w", prior=sr.Conjugate(np.inf))
    with pytest.raises(sr.FitError, match="some coefficient is not settled"):
        sr.fit(regression, data, seed=1, n_draws=20)


@pytest.mark.parametrize("seed", range(6))
def test_large_counts_have_a_mode_whatever_the_rounding(seed):
    """The log posterior is about 1e14, so rounding hides its last rises; its slope is exact."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame({"x": rng.normal(size=200)})
    data["y"] = rng.poisson(1e10 * np.exp(0.2 * data["x"]))
    draws = sr.fit(sr.Regression("y ~ x", "poisson"), data, seed=1, n_draws=200).draws("y")
    sd = 1.0 / np.sqrt(1e10 * 200)  # of the intercept, about; counts are noise of that size
    assert abs(draws["Intercept"] - np.log(1e10)).max() < 20 * sd


def test_counts_that_drown_in_rounding_are_refused():
    x = np.random.default_rng(5).normal(size=300)
    counts = np.floor(1e15 * np.exp(0.1 * x + 0.2 * np.random.default_rng(7).normal(size=300)))
    with pytest.raises(sr.FitError, match="Count in larger units"):
        sr.fit(sr.Regression("k ~ x", "poisson"), pd.DataFrame({"k": counts, "x": x}), seed=1)


def test_exact_draws_are_for_gaussian_models():
    with pytest.raises(sr.OptionError, match="engine='exact' is for gaussian models"):
        sr.fit(sr.Regression("k ~ x", "poisson"), people(), engine="exact")


def test_a_noise_free_response_is_seen_without_an_intercept():
    data = people(60).assign(y=lambda d: 2.0 * d["x"], shifted=lambda d: 5.0 + 0.0 * d["x"])
    with pytest.raises(sr.DataError, match="without any noise"):
        sr.fit(sr.Regression("y ~ 0 + x"), data, seed=1)
    apart = data["x"] - data["x"].mean()
    noisy = data.assign(apart=apart, z5=5.0 + 2.0 * apart)
    assert sr.fit(sr.Regression("z5 ~ 0 + apart"), noisy, seed=1).describe()["sd"].gt(0).all()


def by_quadrature(x, y, priors, rate):
    """Posterior mean and sd of the coefficients and sigma of a gaussian model, exactly.

    Priors are on the coefficients of `x` as it is; the first column is the intercept.
    """
    centre, width = np.array(priors).T
    logs = np.linspace(np.log(y.std()) - 25, np.log(y.std()) + 12, 60_001)
    sigma2 = np.exp(2 * logs)
    log_p, means, variances = [], [], []
    for one in sigma2:
        precision = x.T @ x / one + np.diag(width**-2.0)
        mean = np.linalg.solve(precision, x.T @ y / one + centre / width**2)
        log_p.append(
            -0.5 * np.sum((y - x @ mean) ** 2) / one
            - 0.5 * np.sum(((mean - centre) / width) ** 2)
            - 0.5 * np.linalg.slogdet(precision)[1]
        )
        means.append(mean)
        variances.append(np.diag(np.linalg.inv(precision)))
    log_p = np.array(log_p) - len(y) * logs + logs - rate * np.exp(logs)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    mean = p @ np.array(means)
    sd = np.sqrt(p @ (np.array(variances) + (np.array(means) - mean) ** 2))
    sigma = p @ np.exp(logs)
    return np.append(mean, sigma), np.append(sd, np.sqrt(p @ (np.exp(logs) - sigma) ** 2))


HARD = {
    "four records nearly on a line": (np.arange(4.0) - 1.5, [0.0, 1.0, 2.01, 3.0], (1.5, 3.0)),
    "three records": (np.array([-1.0, -0.5, 1.5]), [0.3, -1.1, 0.9], (0.0, 2.0)),
    "two records": (np.array([-1.0, 1.0]), [0.3, -1.1], (0.0, 2.0)),
    "a prior against the data": (
        (lambda x: x - x.mean())(np.random.default_rng(0).normal(size=20)),
        np.random.default_rng(1).normal(size=20),
        (10.0, 1.0),
    ),
}


@pytest.mark.parametrize("name", HARD)
def test_gaussian_posteriors_that_are_far_from_normal_are_exact(name):
    x, y, intercept = HARD[name]
    data = pd.DataFrame({"x": x, "y": y})
    prior = {
        "Intercept": sr.Normal(*intercept), "x": sr.Normal(0.0, 2.0), "sigma": sr.Exponential(0.7)
    }  # fmt: skip
    design = np.column_stack([np.ones(len(x)), x])
    expected, spread = by_quadrature(design, np.array(y), [intercept, (0.0, 2.0)], 0.7)
    fitted = sr.fit(sr.Regression("y ~ x"), data, prior=prior, n_draws=20_000, seed=4)
    for k, parameter in enumerate(["Intercept", "x", "sigma"]):
        mean, sd, of_mean, of_sd = weighted_moments(fitted, "y", parameter)
        assert abs(mean - expected[k]) < SIGMAS * of_mean
        assert abs(sd - spread[k]) < SIGMAS * of_sd
    if name != "three records":  # there Laplace is near enough
        with pytest.raises(sr.FitError, match=r"engine='auto'|no posterior mode"):
            sr.fit(sr.Regression("y ~ x"), data, prior=prior, seed=4, engine="laplace")


def test_laplace_and_exact_draws_of_a_gaussian_model_agree():
    data = people(80)
    one, two = (
        sr.fit(sr.Regression("b ~ x + u"), data, n_draws=8000, seed=1, engine=engine)
        for engine in ("exact", "laplace")
    )
    for name in ("Intercept", "x", "u[T.q]", "sigma"):
        mean, sd, of_mean, of_sd = weighted_moments(two, "b", name)
        assert abs(weighted_moments(one, "b", name)[0] - mean) < SIGMAS * np.sqrt(2) * of_mean
        assert abs(weighted_moments(one, "b", name)[1] - sd) < SIGMAS * np.sqrt(2) * of_sd
    np.testing.assert_allclose(one.describe()["mode"], two.describe()["mode"], rtol=0.05)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e4, 1e9])
@pytest.mark.parametrize("engine", ["exact", "laplace"])
def test_a_response_may_be_in_any_unit(unit, engine):
    """Scaled priors make the posterior follow the unit."""
    data = people(200)
    fits = [
        sr.fit(sr.Regression("b ~ x"), data.assign(b=data["b"] * by), seed=1, engine=engine)
        for by in (1.0, unit)
    ]
    one, two = (fitted.describe()[["mean", "sd"]] for fitted in fits)
    np.testing.assert_allclose(one * unit, two, rtol=1e-5)


def test_the_conjugate_prior_is_for_gaussian_models():
    with pytest.raises(sr.OptionError, match="for gaussian models"):
        sr.fit(sr.Regression("k ~ x", "poisson"), people(), prior="conjugate")


def test_without_nutpie_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(sr.SynriskError, match=r"synrisk\[nuts\]") as raised:
        sr.fit(sr.Regression("k ~ x", "poisson"), people(), engine="nuts")
    assert raised.value.__cause__ is None
    with pytest.raises(sr.SynriskError, match="conjugate prior is drawn from exactly"):
        sr.fit(sr.Regression("b ~ x", prior="conjugate"), people(), engine="nuts")


def test_a_level_for_each_record_is_said():
    data = people(60)
    data["name"] = pd.Categorical([f"n{k}" for k in range(60)])
    synthesizer = sr.fit(sr.Regression("b ~ name"), data, seed=1, n_draws=20)
    (note,) = synthesizer.notes
    assert "name, a predictor of b, has 60 levels for 60 records" in note
    assert (
        note
        in sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=1), question="paper").notes
    )
    assert sr.fit(sr.Regression("b ~ r"), data, seed=1, n_draws=20).notes == ()


def a_gaussian_posterior(prior_sd):
    """Few rows about (3, -2) with a prior about (0, 0): a narrow one contradicts them."""
    rng = np.random.default_rng(4)
    matrix = np.column_stack([np.ones(12), rng.normal(size=12)])
    y = matrix @ [3.0, -2.0] + 0.3 * rng.normal(size=12)
    rows = [Rows(matrix, y, rng.uniform(0.5, 1.5, 12))]
    prior = NormalPrior(np.zeros(2), np.full(2, prior_sd), np.array([1.0]))
    return normal_prior.GaussianPosterior.of(Sums.of(rows, prior.mean, Serial()), prior, 1.0)


def moments_on_a_grid(known):
    """Mean and covariance of coefficients and log sigma by the trapezoidal rule."""
    log_sigma = np.linspace(-25.0, 25.0, 200_001)
    with np.errstate(over="ignore"):
        log_p = known.log_density(log_sigma)
    kept = log_p > log_p.max() - 60.0
    log_sigma, p = log_sigma[kept], np.exp(log_p[kept] - log_p.max())
    p /= p.sum()
    mean, covariance = known.given(log_sigma)
    theta = np.column_stack([mean, log_sigma])
    centre = p @ theta
    total = (theta - centre).T @ (p[:, None] * (theta - centre))
    total[:-1, :-1] += np.einsum("q,qij->ij", p, covariance)
    return centre, total


@pytest.mark.parametrize(("prior_sd", "concave"), [(10.0, True), (4.0, True), (0.5, False)])
def test_moments_of_gaussian_models_are_those_of_a_fine_grid(prior_sd, concave):
    known = a_gaussian_posterior(prior_sd)
    assert known.is_concave is concave
    # Points about h = 0.05 sd apart: the variance within a step is h²/12 of the whole.
    for found, expected in zip(known.moments(), moments_on_a_grid(known), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_two_modes_of_sigma_are_both_seen():
    known = a_gaussian_posterior(0.45)
    log_sigma = np.linspace(-4.0, 4.0, 801)
    slope = np.diff(known.log_density(log_sigma)) > 0
    assert np.count_nonzero(slope[:-1] & ~slope[1:]) == 2  # maxima
    for found, expected in zip(known.moments(), moments_on_a_grid(known), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_moments_under_the_conjugate_prior_are_those_of_a_fine_grid():
    covariance = np.array([[0.3, 0.1], [0.1, 0.2]])
    known = conjugate.ConjugatePosterior(np.array([1.0, -2.0]), covariance, 9.0, 4.0)
    for found, expected in zip(known.moments(), moments_on_a_grid(known), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    assert conjugate.ConjugatePosterior(np.zeros(2), covariance, 2.0, 4.0).moments() is None


A_CONJUGATE = conjugate.ConjugatePosterior(np.zeros(1), np.ones((1, 1)), 9.0, 4.0)


@pytest.mark.parametrize("known", [*map(a_gaussian_posterior, (10.0, 0.45)), A_CONJUGATE])
@pytest.mark.parametrize("at", [-3.0, -1.0, 0.0, 0.7, 4.0])
def test_the_second_derivative_is_that_of_the_log_density(known, at):
    """Against Cauchy's formula on a circle about the point: no differences, nothing cancels.

    The nearest singularity, σ² = −λ, is π/2 away, so 64 points are off by (0.5/(π/2))^62.
    """
    radius, turn = 0.5, np.exp(2j * np.pi * np.arange(64) / 64)
    on_circle = known.log_density(at + radius * turn)
    expected = 2.0 * (on_circle / turn**2).mean().real / radius**2
    rounding = 2.0**-52 * np.abs(on_circle).max() / radius**2
    assert known.second_derivative(at) == pytest.approx(expected, rel=1e-13, abs=10 * rounding)


def test_sums_over_tables_add_up_to_those_over_all_rows():
    rng = np.random.default_rng(8)
    matrix = np.column_stack([np.ones(90), rng.normal(size=(90, 2))])
    y, omega = 5.0 + rng.normal(size=90), rng.uniform(0.2, 3.0, 90)
    parts = [Rows(matrix[at], y[at], omega[at]) for at in (slice(30), slice(30, 32), slice(32, 90))]
    centre, coefficients = np.array([5.0, 0.0, 0.0]), np.array([3.0, -1.0, 0.5])
    # The second has fewer rows than columns.
    one, two, three = (Sums.of([part], centre, Serial()) for part in parts)
    for found in (one + two + three, Sums.of(parts, centre, Serial())):
        np.testing.assert_allclose(found.gram, matrix.T @ (omega[:, None] * matrix), rtol=1e-13)
        residual = omega * (y - matrix @ centre)
        np.testing.assert_allclose(found.products, residual @ matrix, rtol=1e-12)
        errors = omega @ (y - matrix @ coefficients) ** 2
        np.testing.assert_allclose(found.squared_errors(coefficients), errors, rtol=1e-13)
        assert found.n_effective == pytest.approx(omega.sum(), rel=1e-14)


def test_sums_of_rows_that_are_nearly_collinear_keep_their_digits():
    rng = np.random.default_rng(9)
    x = rng.normal(size=500)
    matrix = np.column_stack([np.ones(500), x, x + 1e-7 * rng.normal(size=500)])
    y = matrix @ [1.0, 2.0, 3.0] + rng.normal(size=500)
    rows = Rows(matrix, y, np.ones(500))
    sums = Sums.of([rows], np.zeros(3), Serial())
    for coefficients in ([1.0, 2.0, 3.0], [1.0, 5.0, 0.0], [0.0, 400.0, -395.0]):
        errors = ((y - matrix @ coefficients) ** 2).sum()
        assert sums.squared_errors(np.array(coefficients)) == pytest.approx(errors, rel=1e-9)


@pytest.mark.parametrize("n", [40, 300, 5_000])
@pytest.mark.parametrize("prior_sd", [0.05, 5.0])
@pytest.mark.parametrize("reach", [0.5, 2.0, 9.0])
@pytest.mark.parametrize("stacked", [None, 0.0, 3.0])
def test_nodes_serve_where_a_guess_takes_the_place_of_the_furthest_record(
    n, prior_sd, reach, stacked
):
    """E f over sigma, f being what the exchange does to the density, against a fine grid.

    Given the records alone, or also rows of the same model, or of one that is shifted.
    """
    rng = np.random.default_rng(n)
    matrix = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = matrix @ [0.1, -0.2] + rng.normal(size=n)
    rows = [Rows(matrix, y, np.ones(n))]
    prior = NormalPrior(np.zeros(2), np.full(2, prior_sd), np.array([1.0]))
    sums = Sums.of(rows, prior.mean, Serial())
    alone = normal_prior.GaussianPosterior.of(sums, prior, 1.0)
    furthest = sigma_quadrature.Furthest.of(alone, sums, rows, Serial())
    known = alone
    if stacked is not None:
        other = matrix @ [0.1 + stacked, -0.2] + rng.normal(size=n)
        sums += Sums.of([Rows(matrix, other, np.ones(n))], prior.mean, Serial())
        known = normal_prior.GaussianPosterior.of(sums, prior, 1.0)
        exact = sigma_quadrature.Furthest.of(known, sums, rows, Serial())
        furthest = furthest.under(known) or exact
        assert exact.error <= furthest.error * (1 + 1e-12)
    log_sigma, log_weight = sigma_quadrature.quadrature(
        known, sums, furthest, sigma_quadrature.Reach(reach), "The model"
    )
    # Log densities are of the order of n, and so is their rounding.
    assert np.exp(log_weight).sum() == pytest.approx(1.0, abs=10 * n * 2.0**-52)
    fine = np.linspace(log_sigma.mean() - 2.0, log_sigma.mean() + 2.0, 200_001)
    log_p = known.log_density(fine)
    out = y - matrix @ known.given(log_sigma[:1])[0][0]
    record = np.argmax(np.abs(out))

    def log_moved(at, guess):
        mean = known.given(at)[0] @ matrix[record]
        apart = (y[record] - mean) ** 2 - (guess - mean) ** 2
        return 0.5 * apart * np.exp(-2.0 * at)

    for guess in y[record] + np.sign(out[record]) * np.linspace(-reach, reach, 7):
        expected = logsumexp(log_p + log_moved(fine, guess)) - logsumexp(log_p)
        found = logsumexp(log_weight + log_moved(log_sigma, guess))
        assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(6))
def test_sums_of_a_nearly_exact_fit_by_nearly_equal_columns_keep_their_digits(noise, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=150)
    matrix = np.column_stack([np.ones(150), x, x + 1e-4 * rng.normal(size=150)])
    y = 3.0 + 2.0 * x + noise * rng.normal(size=150)
    sums = Sums.of([Rows(matrix, y, np.ones(150))], np.array([3.0, 0.0, 0.0]), Serial())
    least = np.linalg.lstsq(matrix, y)[0]
    errors = ((y - matrix @ least) ** 2).sum()
    # Errors of the response's last digits stay: 1e-16 of its size against the noise.
    assert sums.squared_errors(least) == pytest.approx(errors, rel=1e-9, abs=0.0)
