"""Posteriors of regressions: exact for gaussian models, Laplace with weights, or NUTS."""

from synrisk.fitting.numbers import CommonNumbers
from synrisk.fitting.regression import (
    Fit,
    Refit,
    fit_regression,
    nodes_of_regression,
    refit_regression,
)
from synrisk.fitting.rows import Standardisation
from synrisk.fitting.scaling import Scales

__all__ = [
    "CommonNumbers",
    "Fit",
    "Refit",
    "Scales",
    "Standardisation",
    "fit_regression",
    "nodes_of_regression",
    "refit_regression",
]
