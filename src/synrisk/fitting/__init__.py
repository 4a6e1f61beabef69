"""Posteriors of regressions: exact for gaussian models, Laplace with weights, or NUTS."""

from synrisk.fitting.common_random_numbers import CommonNumbers
from synrisk.fitting.evidence import Evidence
from synrisk.fitting.frozen import FrozenRegression
from synrisk.fitting.laplace import expected_information, likelihood_derivatives
from synrisk.fitting.predictive_distance import (
    ScoreDistance,
    gaussian_distance,
    known_by_moments,
    whitening,
)
from synrisk.fitting.prior_scales import Scales
from synrisk.fitting.regression import (
    DRAWS_AT_A_GUESS,
    Fit,
    Refit,
    fit_regression,
    moments_of_draws,
    refuse_too_large,
)
from synrisk.fitting.sigma_quadrature import Furthest, KnownGivenSigma, Reach
from synrisk.fitting.standardise import Chunk, Chunks, Rows, Standardisation, all_chunks
from synrisk.fitting.sufficient_statistics import Sums, gram_of
from synrisk.fitting.table import ArrayTable, ColumnTable, PartOfTable, Table, are_stored, table_of

__all__ = [
    "DRAWS_AT_A_GUESS",
    "ArrayTable",
    "Chunk",
    "Chunks",
    "ColumnTable",
    "CommonNumbers",
    "Evidence",
    "Fit",
    "FrozenRegression",
    "Furthest",
    "KnownGivenSigma",
    "PartOfTable",
    "Reach",
    "Refit",
    "Rows",
    "Scales",
    "ScoreDistance",
    "Standardisation",
    "Sums",
    "Table",
    "all_chunks",
    "are_stored",
    "expected_information",
    "fit_regression",
    "gaussian_distance",
    "gram_of",
    "known_by_moments",
    "likelihood_derivatives",
    "moments_of_draws",
    "refuse_too_large",
    "table_of",
    "whitening",
]
