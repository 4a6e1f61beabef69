"""Group-level terms where all is known in closed form: normal coefficients, a random spread.

The likelihood of a release is that of the guess's data, the spread and all coefficients integrated
out; the estimate has draws given the confidential data alone. So it is seen that leaving a record
out by its own density is enough: the prior of the coefficients does not change with the guess.
"""

import itertools

import numpy as np
import pandas as pd
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_normal

import synrisk as sr

LEVELS = ["p", "q", "s"]
SPREADS = (0.3, 1.5)  # of the coefficients by group, each as probable as the other
N, H = 15, 8000


def design(region):
    return np.column_stack([np.ones(len(region)), *(region == k for k in range(3))])


def prior_covariance(spread):
    return np.diag([4.0, *[spread**2] * 3])


def posterior(region, y, spread):
    """Mean and covariance of the coefficients given rows with a residual sd of 1."""
    x = design(region)
    covariance = np.linalg.inv(np.linalg.inv(prior_covariance(spread)) + x.T @ x)
    return covariance @ x.T @ y, covariance


def log_evidence(region, y, spread):
    x = design(region)
    return multivariate_normal.logpdf(
        y, np.zeros(len(y)), np.eye(len(y)) + x @ prior_covariance(spread) @ x.T
    )


def log_marginal(region, y):
    return logsumexp([log_evidence(region, y, spread) for spread in SPREADS]) - np.log(2)


def log_dirichlet(region):
    counts = np.bincount(region, minlength=3) + 1.0
    return gammaln(counts).sum() - gammaln(counts.sum())


def world():
    rng = np.random.default_rng(17)
    region = np.r_[0, 1, 2, rng.integers(0, 3, N - 3)]
    y = np.array([0.5, -1.2, 1.0])[region] + rng.normal(size=N)
    y[4] += 3.0
    logs = np.array([log_evidence(region, y, spread) for spread in SPREADS])
    weights = np.exp(logs - logsumexp(logs))
    draws = np.empty((H, 4))
    for k, n in enumerate(rng.multinomial(H, weights)):
        first = 0 if k == 0 else H - n
        mean, covariance = posterior(region, y, SPREADS[k])
        draws[first : first + n] = rng.multivariate_normal(mean, covariance, n)
    rng.shuffle(draws)
    shares = rng.dirichlet(np.bincount(region, minlength=3) + 1.0, H)
    return rng, region, y, draws, shares


def test_the_posterior_of_a_guess_is_that_of_the_integrated_likelihood():
    rng, region, y, draws, shares = world()
    data = pd.DataFrame({"region": np.array(LEVELS)[region], "y": y})
    of_region = pd.DataFrame(
        {f"b_mu{LEVELS[k]}_Intercept": np.log(shares[:, k] / shares[:, 0]) for k in (1, 2)}
    )
    of_y = pd.DataFrame({"b_Intercept": draws[:, 0], "sigma": np.ones(H)})
    for k, level in enumerate(LEVELS):
        of_y[f"r_region[{level},Intercept]"] = draws[:, 1 + k]
    plan = [sr.Regression("region ~ 1", "categorical"), sr.Regression("y ~ 1 + (1 | region)")]
    synthesizer = sr.Synthesizer.from_draws(plan, data, [of_region, of_y], types={"region": LEVELS})
    made = rng.choice(3, N, p=shares[0])
    values = draws[0, 0] + draws[0, 1 + made] + rng.normal(size=N)
    release = [pd.DataFrame({"region": np.array(LEVELS)[made], "y": values})]
    risk = sr.attribute_risk(
        synthesizer, release, question="paper", guesses={"y": sr.Additive(5, 3.0, 3.0)},
    )  # fmt: skip
    apart = []
    for i in range(N):
        grid = risk.joint(i).coords["y"].to_numpy()
        exact, kept = np.empty((3, 5)), np.empty((3, 5))
        for k, j in itertools.product(range(3), range(5)):
            other, moved = np.r_[region[:i], k, region[i + 1 :]], np.r_[y[:i], grid[j], y[i + 1 :]]
            of_groups = log_dirichlet(np.r_[other, made]) - log_dirichlet(other)
            exact[k, j] = of_groups + _ratio(other, moved, made, values)
            kept[k, j] = of_groups + _ratio(region, moved, made, values)
        exact, kept = (np.exp(one - logsumexp(one)) for one in (exact, kept))
        own = risk.records.loc[i]
        j = int(np.abs(grid - y[i]).argmin())
        apart.append((own["probability"] - exact[region[i], j]) / own["mcse"])
        # Not following the guess for the group would be seen.
        wrong = abs(kept[region[i], j] - exact[region[i], j]) / own["mcse"]
        apart[-1] = (apart[-1], wrong)
    z, wrong = np.array(apart).T
    # Records share the draws, so their errors go together; each is a standard normal.
    assert np.abs(z).max() < 4.0
    assert np.median(wrong) > 8.0


def _ratio(region, y, made, values):
    """Log p(release | everybody with the guess)."""
    both = log_marginal(np.r_[region, made], np.r_[y, values])
    return both - log_marginal(region, y)
