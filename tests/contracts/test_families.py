"""What every registered family must do; a new family is picked up by being listed in FAMILIES.

Two with auxiliary parameters of their own, written in the tests, are held to the same.
"""

import numpy as np
import pytest
from helpers.families import HeavyTailed, Overdispersed
from scipy import stats

from synrisk.data.schema import Factor, Numeric
from synrisk.models import families
from synrisk.models.families import family

# Example responses and an independent log density of y given its predictors, for each family.
EXAMPLES = {
    "gaussian": (Numeric("y"), [-1.3, 0.0, 2.4]),
    "bernoulli": (Numeric("y"), [0.0, 1.0]),
    "categorical": (Factor("y", ("a", "b", "c", "d")), [0.0, 1.0, 2.0, 3.0]),
    "poisson": (Numeric("y"), [0.0, 1.0, 4.0]),
    "rounded_gaussian": (Numeric("y"), [-2.0, 0.0, 1.0]),
    "heavy_tailed": (Numeric("y"), [-1.3, 0.0, 2.4]),
    "overdispersed": (Numeric("y"), [0.0, 1.0, 4.0]),
    "gamma": (Numeric("y"), [-1.3, 0.0, 1.4]),
    "lognormal": (Numeric("y"), [-1.3, 0.0, 2.4]),
    "student_t": (Numeric("y"), [-1.3, 0.0, 2.4]),
    "beta": (Numeric("y"), [-1.3, 0.0, 2.4]),
    "ordered_logit": (Factor("y", ("a", "b", "c", "d"), True), [0.0, 1.0, 2.0, 3.0]),
    "negative_binomial": (Numeric("y"), [0.0, 1.0, 4.0]),
    "hurdle_poisson": (Numeric("y"), [0.0, 1.0, 4.0]),
    "zero_inflated_poisson": (Numeric("y"), [0.0, 1.0, 4.0]),
    "hurdle_lognormal": (Numeric("y"), [0.0, 1.0, 4.0]),
    "hurdle_gamma": (Numeric("y"), [0.0, 1.0, 4.0]),
    "hurdle_negative_binomial": (Numeric("y"), [0.0, 1.0, 4.0]),
    "zero_inflated_negative_binomial": (Numeric("y"), [0.0, 1.0, 4.0]),
    "binomial_trials": (Numeric("y", (0.0, 5.0)), [0.0, 1.0, 4.0, 5.0]),
    "truncated_gaussian": (Numeric("y", (-1.5, 3.0)), [-1.3, 0.0, 2.4]),
    "rounded_student_t": (Numeric("y"), [-2.0, 0.0, 1.0]),
    "rounded_lognormal": (Numeric("y"), [0.0, 1.0, 4.0]),
    "rounded_gamma": (Numeric("y"), [0.0, 1.0, 4.0]),
    "rounded_beta": (Numeric("y"), [0.0, 0.37, 0.99, 1.0]),
}
# Settled for the example's response: levels, bounds and trials matter to some.
FAMILIES = (
    *(known.given(EXAMPLES[known.name][0]) for known in families.FAMILIES),
    HeavyTailed(),
    Overdispersed(),
)
OUTSIDE = {
    "gaussian": np.inf,
    "bernoulli": 2.0,
    "categorical": 4.0,
    "poisson": -1.0,
    "rounded_gaussian": 0.5,
    "heavy_tailed": np.inf,
    "overdispersed": 0.5,
    "gamma": -np.inf,
    "lognormal": -np.inf,
    "student_t": np.inf,
    "beta": np.inf,
    "ordered_logit": 4.0,
    "negative_binomial": 0.5,
    "hurdle_poisson": -1.0,
    "zero_inflated_poisson": 0.5,
    "hurdle_lognormal": -1.0,
    "hurdle_gamma": 0.5,
    "hurdle_negative_binomial": -1.0,
    "zero_inflated_negative_binomial": 0.5,
    "binomial_trials": 6.0,
    "truncated_gaussian": 3.5,
    "rounded_student_t": 0.5,
    "rounded_lognormal": -1.0,
    "rounded_gamma": 0.5,
    "rounded_beta": 1.01,
}


def independent_log_density(name, y, eta, auxiliary):
    if name == "gamma":  # of the logarithm: the density times y
        return frozen(name, eta[0], auxiliary).logpdf(np.exp(y)) + y
    if name == "beta":  # of the logit: the density times y(1 − y)
        (mean, share), phi = 1 / (1 + np.exp(-np.array([eta[0], y]))), auxiliary[0]
        density = stats.beta.logpdf(share, mean * phi, (1 - mean) * phi)
        return density + np.log(share * (1 - share))
    if name in ("gaussian", "lognormal"):
        return stats.norm.logpdf(y, eta[0], auxiliary[0])
    if name.startswith("rounded"):
        half = 0.005 if name == "rounded_beta" else 0.5
        at = frozen(name.removeprefix("rounded_"), eta[0], auxiliary)
        return np.log(np.diff(at.cdf([y - half, y + half]))[0])
    if name == "truncated_gaussian":
        bounds = (np.array([-1.5, 3.0]) - eta[0]) / auxiliary[0]
        return stats.truncnorm.logpdf(y, *bounds, eta[0], auxiliary[0])
    if name in ("bernoulli", "binomial_trials"):
        return stats.binom.logpmf(y, 1 if name == "bernoulli" else 5, 1 / (1 + np.exp(-eta[0])))
    if name in ("student_t", "heavy_tailed"):
        return stats.t.logpdf(y, auxiliary[1], eta[0], auxiliary[0])
    if name in ("poisson", "negative_binomial", "overdispersed"):
        name = name.replace("overdispersed", "negative_binomial")
        return frozen(name, eta[0], auxiliary).logpmf(y)
    if name == "ordered_logit":
        cuts = np.array([-np.inf, 0.0, *np.cumsum(auxiliary), np.inf])
        return np.log(np.diff(stats.logistic.cdf(cuts[int(y) : int(y) + 2] - eta[0]))[0])
    if name.startswith(("hurdle", "zero_inflated")):
        return log_density_with_zeros(name, y, eta[0], auxiliary)
    odds = np.exp(np.array([0.0, *eta]))
    return np.log(odds[int(y)] / odds.sum())


def frozen(name, eta, auxiliary):
    """SciPy's distribution of a response itself."""
    mean, shape = np.exp(eta), auxiliary[0] if len(auxiliary) else None
    if name == "beta":
        share = 1 / (1 + np.exp(-eta))
        return stats.beta(share * shape, (1 - share) * shape)
    return {
        "gaussian": lambda: stats.norm(eta, shape),
        "student_t": lambda: stats.t(auxiliary[1], eta, shape),
        "lognormal": lambda: stats.lognorm(shape, 0, mean),
        "gamma": lambda: stats.gamma(shape, 0, mean / shape),
        "poisson": lambda: stats.poisson(mean),
        "negative_binomial": lambda: stats.nbinom(shape, shape / (shape + mean)),
    }[name]()


def log_density_with_zeros(name, y, eta, auxiliary):
    p = auxiliary[-1] / (1 + auxiliary[-1])
    hurdle = name.startswith("hurdle")
    at = frozen(name.removeprefix("hurdle_").removeprefix("zero_inflated_"), eta, auxiliary)
    if name in ("hurdle_lognormal", "hurdle_gamma"):
        above = at.cdf(y + 0.5) - (at.cdf(y - 0.5) if y > 1 else 0.0)
    else:
        above = at.pmf(y) / (at.sf(0) if hurdle else 1.0)
    if hurdle:
        return np.log((1 - p) * above if y else p)
    return np.log((1 - p) * above + (0.0 if y else p))


def case(known, n=6, seed=0):
    rng = np.random.default_rng(seed)
    variable, values = EXAMPLES[known.name]
    y = rng.choice(values, n)
    eta = rng.normal(size=(n, known.n_predictors(variable)))
    auxiliary = rng.uniform(0.5, 2.0, size=(n, len(known.auxiliary)))
    return variable, y, eta, auxiliary


every = pytest.mark.parametrize("known", FAMILIES, ids=lambda f: f.name)


def test_every_family_has_an_example():
    assert {f.name for f in FAMILIES} == set(EXAMPLES)


@every
def test_names_lead_to_it(known, monkeypatch):
    monkeypatch.setattr(families, "FAMILIES", FAMILIES)
    for name in (known.name, *known.aliases):
        assert family(name) is known
    assert family(known) is known
    assert known.wants


@every
def test_log_density_is_the_distributions(known):
    _, y, eta, auxiliary = case(known)
    found = known.log_density(y, eta, auxiliary)
    expected = [
        independent_log_density(known.name, *row) for row in zip(y, eta, auxiliary, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@every
def test_probabilities_up_to_a_value_add_up(known):
    _, y, eta, auxiliary = case(known)
    found = known.cdf(y, eta, auxiliary)
    if found is None:
        return
    if known.is_continuous:
        step = 1e-5  # central differences, as below
        up, down = (known.cdf(y + s * step, eta, auxiliary) for s in (1, -1))
        density = np.exp(known.log_density(y, eta, auxiliary))
        np.testing.assert_allclose((up - down) / (2 * step), density, atol=1e-8)
    elif np.isfinite(known.least):
        for row, value in enumerate(y):
            upto = known.on_grid(known.grid_step * np.arange(round(value / known.grid_step) + 1.0))
            p = np.exp(known.log_density(upto, eta[[row]], auxiliary[[row]]))
            assert p.sum() == pytest.approx(found[row], rel=1e-12)
        assert (known.cdf(-np.ones(6), eta, auxiliary) == 0).all()
    assert ((found > 0) & (found <= 1)).all()


@every
def test_log_density_broadcasts_guesses_and_draws(known):
    _, y, eta, auxiliary = case(known)
    grid = known.log_density(y[:, None], eta[None], auxiliary[None])
    assert grid.shape == (6, 6)
    np.testing.assert_allclose(np.diag(grid), known.log_density(y, eta, auxiliary), rtol=1e-13)


def shifted(known, y, eta, auxiliary, k, step):
    """eta and auxiliary with the k-th of (eta, log auxiliary) moved by `step`."""
    eta, auxiliary = eta.copy(), np.array(auxiliary)
    if k < eta.shape[1]:
        eta[:, k] += step
    else:
        auxiliary[:, k - eta.shape[1]] *= np.exp(step)
    return y, eta, auxiliary


@every
def test_derivatives_are_those_of_the_log_density(known):
    _, y, eta, auxiliary = case(known)
    step = 1e-5
    for k in range(eta.shape[1] + len(known.auxiliary)):
        up, down = (shifted(known, y, eta, auxiliary, k, s * step) for s in (1, -1))
        # Central differences: an error of step² from the third derivative, 1e-16/step of rounding.
        np.testing.assert_allclose(
            known.score(y, eta, auxiliary)[:, k],
            (known.log_density(*up) - known.log_density(*down)) / (2 * step),
            atol=1e-8,
        )
        np.testing.assert_allclose(
            known.curvature(y, eta, auxiliary)[:, :, k],
            (known.score(*up) - known.score(*down)) / (2 * step),
            atol=1e-8,
        )


@every
def test_derivative_shapes(known):
    _, y, eta, auxiliary = case(known)
    n = eta.shape[1] + len(known.auxiliary)
    assert known.score(y, eta, auxiliary).shape == (6, n)
    assert known.curvature(y, eta, auxiliary).shape == (6, n, n)
    shared = auxiliary[0]  # one value for all rows, as in a fit
    assert known.score(y, eta, shared).shape == (6, n)
    assert known.curvature(y, eta, shared).shape == (6, n, n)


@every
def test_events_are_sets_of_records(known):
    _, y, _, _ = case(known)
    events = known.events(y)
    settles = not known.is_continuous and not known.identity_link
    assert bool(events) is settles  # of others no outcome can be settled
    for event in events:
        assert event.shape == y.shape
        assert event.dtype == bool
    if known.is_classification:
        assert np.sum(events, axis=0).tolist() == [1] * len(y)


@every
def test_support(known):
    variable, values = EXAMPLES[known.name]
    assert known.supports(np.array(values), variable).all()
    assert not known.supports(np.array([OUTSIDE[known.name], np.nan]), variable).any()
    assert known.fits(variable)
    every_value = known.all_values(variable)
    if every_value is not None:
        _, _, eta, auxiliary = case(known)
        total = np.exp(known.log_density(every_value[:, None], eta[None], auxiliary[None]))
        np.testing.assert_allclose(total.sum(axis=0), 1.0, rtol=1e-13)


@every
def test_draws_have_the_distribution(known):
    variable, values = EXAMPLES[known.name]
    n = 40_000
    eta = np.tile(case(known, n=1)[2], (n, 1))
    auxiliary = np.full((n, len(known.auxiliary)), 1.3)
    drawn = known.draw(eta, auxiliary, np.random.default_rng(5))
    assert drawn.shape == (n,)
    assert known.supports(drawn.astype(float), variable).all()
    if known.is_continuous:
        grid = np.linspace(drawn.min() - 1.0, drawn.max() + 1.0, 400_001)
        density = np.exp(known.log_density(grid, eta[:1], auxiliary[:1]))
        density = np.where(known.supports(grid, variable), density, 0.0)
        cumulative = np.cumsum(density) * (grid[1] - grid[0])
        test = stats.kstest(drawn, lambda v: np.interp(v, grid, cumulative / cumulative[-1]))
        assert (
            test.pvalue > 1e-3
        )  # a fixed seed: one draw of a test that is right 999 times in 1000
        return
    for value in values:
        p = np.exp(known.log_density(np.array(value), eta[0], auxiliary[0]))
        standard_error = np.sqrt(p * (1 - p) / n)
        assert abs((drawn == value).mean() - p) < 4 * standard_error


@every
def test_capabilities_are_consistent(known):
    """What is exact is the normal linear model: its log density is ours at one sigma."""
    if known.exact:
        assert known.auxiliary_names == ("sigma",)
        assert known.identity_link
        _, y, eta, auxiliary = case(known)
        normal = stats.norm.logpdf(y, eta[:, 0], auxiliary[:, 0])
        np.testing.assert_allclose(known.log_density(y, eta, auxiliary), normal, rtol=1e-12)
    for own in known.auxiliary:
        units = 3.0 if own.in_response_units else 1 / 9 if own.in_inverse_squares else 1.0
        assert own.default_mean(3.0) == pytest.approx(own.prior_mean * units)


@every
def test_far_values_stay_finite(known):
    _, values = EXAMPLES[known.name]
    n_predictors = known.n_predictors(EXAMPLES[known.name][0])
    for size in (-800.0, 800.0):
        eta = np.full((1, n_predictors), size)
        auxiliary = np.ones((1, len(known.auxiliary)))
        for value in values:
            assert np.isfinite(known.log_density(np.array([value]), eta, auxiliary)).all()
