"""What a release tells of one value of a linear model, in closed form.

The fit to a release scatters about the confidential one with twice its covariance, so that the
information about y_i is m (h_i/2 + z_i²/n)/σ², to order 1/n: here against the mean curvature of the
exact log likelihood over releases.
"""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr


@pytest.mark.parametrize("m", [1, 3])
def test_the_information_about_a_value(m):
    rng = np.random.default_rng(0)
    n, n_releases, step = 100, 200, 0.02
    x = rng.normal(size=n)
    y = 1.0 + x + rng.normal(size=n)
    x[1], y[0] = 6.0, y[0] + 4.0  # one with leverage, one with a residual
    y[1] = 1.0 + x[1]
    weak = {"Intercept": sr.Normal(0, 50), "x": sr.Normal(0, 50)}
    fitted = sr.fit(sr.Regression("y ~ x"), pd.DataFrame({"x": x, "y": y}), seed=1, prior=weak)
    design = np.column_stack([np.ones(n), x])
    hat = design @ np.linalg.inv(design.T @ design) @ design.T
    leverage, residual = np.diag(hat), y - hat @ y
    sigma2 = residual @ residual / (n - 2)
    information = m * (leverage / 2 + residual**2 / (n * sigma2)) / sigma2
    curvature = []
    for seed in range(n_releases):
        risk = sr.attribute_risk(
            fitted,
            fitted.synthesize(m, seed=seed),
            guesses=sr.Additive(3, step, step),
            diagnostics=False,
            question="paper",
        )
        log_p = np.log(risk.marginal("y").to_numpy())
        curvature.append(-(log_p @ [1.0, -2.0, 1.0]) / step**2)
    mean = np.mean(curvature, axis=0)
    error = np.std(curvature, axis=0, ddof=1) / np.sqrt(n_releases)
    for record in (0, 1):
        # Four standard errors, and a few terms of order 1/n.
        allowed = 4 * error[record] + 5 / n * information[record]
        assert mean[record] == pytest.approx(information[record], abs=allowed)
        assert allowed < 0.35 * information[record]  # half of the z² term would be seen
