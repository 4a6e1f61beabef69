"""Posteriors of regressions: exact for gaussian models, Laplace with weights, or NUTS."""

from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.evidence import Evidence
from synrisk.fitting.prior_scales import Scales
from synrisk.fitting.regression import (
    Fit,
    Refit,
    draws_for_moments,
    evidence_of_regression,
    fit_regression,
    furthest_records,
    known_by_sums,
    moments_of_draws,
    moments_of_regression,
    nodes_of_regression,
    refit_regression,
    sums_of_regression,
)
from synrisk.fitting.sigma_quadrature import Furthest, KnownGivenSigma
from synrisk.fitting.standardise import Standardisation
from synrisk.fitting.sufficient_statistics import Sums

__all__ = [
    "CommonNumbers",
    "Evidence",
    "Fit",
    "Furthest",
    "KnownGivenSigma",
    "Refit",
    "Scales",
    "Standardisation",
    "Sums",
    "draws_for_moments",
    "evidence_of_regression",
    "fit_regression",
    "furthest_records",
    "known_by_sums",
    "moments_of_draws",
    "moments_of_regression",
    "nodes_of_regression",
    "refit_regression",
    "sums_of_regression",
]
