"""Posteriors of regressions: exact for gaussian models, Laplace with weights, or NUTS."""

from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.evidence import Evidence
from synrisk.fitting.frozen import FrozenRegression, Table
from synrisk.fitting.prior_scales import Scales
from synrisk.fitting.regression import (
    Fit,
    Refit,
    draws_for_moments,
    fit_regression,
    moments_of_draws,
)
from synrisk.fitting.sigma_quadrature import Furthest, KnownGivenSigma
from synrisk.fitting.standardise import Standardisation
from synrisk.fitting.sufficient_statistics import Sums

__all__ = [
    "CommonNumbers",
    "Evidence",
    "Fit",
    "FrozenRegression",
    "Furthest",
    "KnownGivenSigma",
    "Refit",
    "Scales",
    "Standardisation",
    "Sums",
    "Table",
    "draws_for_moments",
    "fit_regression",
    "moments_of_draws",
]
