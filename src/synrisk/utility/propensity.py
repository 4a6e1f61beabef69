"""Propensity scores: can a model tell synthetic rows from confidential ones?

With N rows of both sides, a share c of them synthetic, and a row's estimated probability p of being
synthetic, pMSE = Σ (p − c)² / N (Woo et al. 2009). A logistic model with k parameters cannot tell
rows of the right model apart but by chance; in the coordinates z in which its columns have unit
covariance

    pMSE ≈ c² (1 − c)² |z̄_synthetic − z̄_confidential|²

so its null distribution is that of a difference of means, Σ_j λ_j χ²₁ times c² (1 − c)² s, where

    s = 1/n_synthetic                          parameters of the synthesis fitted to the data
    s = 1/n_synthetic + 1/n_confidential       parameters drawn from their posterior given the data

and λ are the eigenvalues of the covariance of z given the columns that stayed: all one where
everything is synthetic. The first of these gives the expectation (k − 1)(1 − c)² c / N of Snoke et
al. (2018). The second is larger by 1/(1 − c), a factor of two for sides of equal size: a posterior
draw misses the data's own means by as much as the data miss the truth.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from synrisk.base.arrays import FloatArray
from synrisk.base.seeds import stream
from synrisk.data.schema import Columns, Factor
from synrisk.utility.reading import Sides, unit_of

MODELS = ("main", "interactions", "cart")
_MOST_COLUMNS = 1000
_ROWS_A_COLUMN = 5
_RANK = 1e-7  # of the largest singular value
_RIDGE = 1e-6  # of each row's weight, so that separated rows have finite scores
_SEPARATED = 9.0  # of a linear predictor: a score within 1e-4 of 0 or 1
_NO_VARIANCE = 1e-12  # of a coordinate of unit variance: rounding
_MOST_STEPS = 100
_LEAF = 0.01  # the least share of the rows in a tree's leaf: smaller ones fit chance
_LEAST_LEAF = 20
_N_PERMUTATIONS = 50


@dataclass(frozen=True)
class Scored:
    """How well one model tells one dataset from the confidential data.

    Attributes
    ----------
    pmse, expected, sd
        The mean squared error, and what it would be for a release from the right models.
    specks
        The Kolmogorov–Smirnov distance between the scores of both sides.
    n_parameters
        Of the model, with its intercept; of a tree the number of leaves.
    n_left_out
        Columns that others determine, left out.
    separated
        Whether scores reach 0 or 1, or nearly so.
    """

    pmse: float
    expected: float
    sd: float
    specks: float
    n_parameters: int
    n_left_out: int
    separated: bool

    @property
    def ratio(self) -> float:
        """The pMSE over its expectation; 0 where the sides are the same, whatever chance makes."""
        if self.expected > 0:
            return self.pmse / self.expected
        return 0.0 if self.pmse < _NO_VARIANCE else float("nan")

    @property
    def z(self) -> float:
        """The pMSE's distance from its expectation in standard deviations."""
        return (self.pmse - self.expected) / self.sd if self.sd > 0 else float("nan")


def main_effects(sides: Sides, rows: Columns) -> list[FloatArray]:
    """Return the columns of each variable: a number itself, a factor's levels but the first."""
    blocks = []
    for name in sides.names:
        variable, values = sides.schema.variables[name], rows[name]
        if isinstance(variable, Factor):
            levels = np.arange(1, len(variable.levels))
            blocks.append((values[:, None] == levels).astype(np.float64))
        else:
            blocks.append((np.asarray(values, dtype=np.float64) / unit_of(values))[:, None])
    return blocks


def n_columns(sides: Sides, model: str) -> int:
    """Return how many columns a logistic model has, without its intercept."""
    sizes, n_squares = [], 0
    for name in sides.names:
        variable = sides.schema.variables[name]
        sizes.append(len(variable.levels) - 1 if isinstance(variable, Factor) else 1)
        n_squares += not isinstance(variable, Factor)
    if model == "main":
        return sum(sizes)
    total = sum(sizes)
    products = (total * total - sum(size * size for size in sizes)) // 2
    return total + products + n_squares


def is_too_large(sides: Sides, model: str) -> bool:
    """Tell whether a logistic model has more columns than the rows can carry."""
    n_rows = sides.n_records + min(sides.n_rows)
    return n_columns(sides, model) > min(_MOST_COLUMNS, n_rows // _ROWS_A_COLUMN)


def score_logistic(sides: Sides, number: int, model: str, *, fitted: bool) -> Scored:
    """Score one dataset by a logistic model.

    Parameters
    ----------
    sides
        Both sides.
    number
        The dataset, from 0.
    model
        "main", or "interactions" for these, all products of two variables, and squares.
    fitted
        Whether the synthesis took its parameters as they were fitted.
    """
    both = _stacked(sides.confidential, sides.datasets[number])
    blocks = [_standardised(block) for block in main_effects(sides, both)]
    if model == "interactions":
        blocks += _products(sides, blocks)
    z, n_left_out = _whitened(np.concatenate(blocks, axis=1))
    n1, n2 = sides.n_records, sides.n_rows[number]
    is_synthetic = np.arange(n1 + n2) >= n1
    p, separated = _logistic(z, is_synthetic)
    c = n2 / (n1 + n2)
    eigenvalues = _eigenvalues(z, n1, paired=sides.paired)
    scale = (c * (1.0 - c)) ** 2 * (1.0 / n2 + (0.0 if fitted else 1.0 / n1))
    return Scored(
        float(np.mean((p - c) ** 2)),
        scale * float(eigenvalues.sum()),
        scale * float(np.sqrt(2.0 * (eigenvalues**2).sum())),
        specks(p, is_synthetic),
        z.shape[1] + 1,
        n_left_out,
        separated,
    )


def specks(scores: FloatArray, is_synthetic: npt.NDArray[np.bool_]) -> float:
    """Return the Kolmogorov–Smirnov distance between the scores of both sides."""
    # Equal rows have equal scores but for rounding, which must not part them.
    rounded = np.round(scores, 10)
    from scipy.stats import ks_2samp  # which takes long to import

    return float(ks_2samp(rounded[is_synthetic], rounded[~is_synthetic], method="asymp").statistic)


def _stacked(own: Columns, synthetic: Columns) -> dict[str, npt.NDArray[Any]]:
    return {name: np.concatenate([own[name], synthetic[name]]) for name in own}


def _standardised(block: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        centred = block - block.mean(axis=0)
        spread = centred.std(axis=0)
    still = ~(spread > 1e-13 * np.maximum(np.abs(block).max(axis=0), 1e-300))
    return np.where(still, 0.0, centred / np.where(still, 1.0, spread))


def _products(sides: Sides, blocks: Sequence[FloatArray]) -> list[FloatArray]:
    """Return all products of columns of two variables, and the squares of numbers."""
    made = []
    for j, left in enumerate(blocks):
        if not isinstance(sides.schema.variables[sides.names[j]], Factor):
            made.append(_standardised(left * left))
        for right in blocks[:j]:
            product = left[:, :, None] * right[:, None, :]
            made.append(_standardised(product.reshape(len(left), -1)))
    return made


def _whitened(matrix: FloatArray) -> tuple[FloatArray, int]:
    """Return coordinates of unit covariance, and how many columns others determine."""
    centred = matrix - matrix.mean(axis=0)
    vectors, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    kept = sizes > _RANK * max(float(sizes.max(initial=0.0)), 1e-300)
    z = vectors[:, kept] * np.sqrt(len(matrix))
    return z, matrix.shape[1] - int(kept.sum())


def _logistic(z: FloatArray, y: npt.NDArray[np.bool_]) -> tuple[FloatArray, bool]:
    """Return the scores of a logistic regression, and whether they nearly reach 0 or 1."""
    x = np.concatenate([np.ones((len(z), 1)), z], axis=1)
    ridge = np.full(x.shape[1], _RIDGE * len(x))
    ridge[0] = 0.0
    sign = np.where(y, 1.0, -1.0)

    def loss(beta: FloatArray) -> float:
        return float(np.logaddexp(0.0, -sign * (x @ beta)).sum() + 0.5 * ridge @ (beta * beta))

    beta = np.zeros(x.shape[1])
    beta[0] = np.log(y.mean() / (1.0 - y.mean()))
    value = loss(beta)
    for _ in range(_MOST_STEPS):
        p = expit(x @ beta)
        gradient = x.T @ (y - p) - ridge * beta
        hessian = x.T @ ((p * (1.0 - p))[:, None] * x) + np.diag(ridge + 1e-12 * len(x))
        step = np.linalg.solve(hessian, gradient)
        decrement = float(gradient @ step)
        if decrement < 1e-12:
            break
        shorter = 1.0
        while loss(beta + shorter * step) > value and shorter > 1e-9:
            shorter *= 0.5
        beta = beta + shorter * step
        value = loss(beta)
    eta = x @ beta
    return np.asarray(expit(eta)), bool(np.abs(eta).max() > _SEPARATED)


def _eigenvalues(z: FloatArray, n_records: int, *, paired: bool) -> FloatArray:
    """Return the variances of z given the columns that stayed; all one where none did.

    Within a pair both rows have the same columns that stayed, so the difference has twice the
    covariance given these. Its mean is what is tested, and is taken away.
    """
    if not paired:
        return np.ones(z.shape[1])
    apart = z[:n_records] - z[n_records:]
    apart = apart - apart.mean(axis=0)
    found = np.linalg.eigvalsh(0.5 * apart.T @ apart / len(apart))
    return np.where(found > _NO_VARIANCE, found, 0.0)


def score_cart(sides: Sides, number: int, seed: int) -> Scored:
    """Score one dataset by a classification tree; its null distribution is by permutation.

    Where rows are pairs, the two of a pair change sides at random; else all rows do.
    """
    both = _stacked(sides.confidential, sides.datasets[number])
    # A factor's codes have no order, so it stands by its levels.
    x = np.concatenate(main_effects(sides, both), axis=1)
    n1, n2 = sides.n_records, sides.n_rows[number]
    is_synthetic = np.arange(n1 + n2) >= n1
    tree = tree_maker()
    scores, n_leaves = tree(x, is_synthetic)
    rng = stream(seed, "utility", dataset=number)
    null = np.array(
        [
            pmse_of(tree(x, permuted)[0], permuted)
            for permuted in (
                _permuted(is_synthetic, rng, paired=sides.paired) for _ in range(_N_PERMUTATIONS)
            )
        ]
    )
    reaches = bool(((scores == 0.0) | (scores == 1.0)).any())
    return Scored(
        pmse_of(scores, is_synthetic),
        float(null.mean()),
        float(null.std(ddof=1)),
        specks(scores, is_synthetic),
        n_leaves,
        0,
        reaches,
    )


def pmse_of(scores: FloatArray, is_synthetic: npt.NDArray[np.bool_]) -> float:
    """Return the mean squared distance of scores from the share of synthetic rows."""
    return float(np.mean((scores - is_synthetic.mean()) ** 2))


def _permuted(
    is_synthetic: npt.NDArray[np.bool_], rng: np.random.Generator, *, paired: bool
) -> npt.NDArray[np.bool_]:
    if not paired:
        return rng.permutation(is_synthetic)
    swapped = rng.random(len(is_synthetic) // 2) < 0.5
    return np.concatenate([swapped, ~swapped])


def tree_maker() -> Callable[[FloatArray, npt.NDArray[np.bool_]], tuple[FloatArray, int]]:
    """Return what fits a tree and gives its scores and the number of its leaves."""
    sklearn: Any = importlib.import_module("sklearn.tree")  # slow, and without types

    def fitted(x: FloatArray, y: npt.NDArray[np.bool_]) -> tuple[FloatArray, int]:
        leaf = max(_LEAST_LEAF, int(_LEAF * len(x)))
        tree = sklearn.DecisionTreeClassifier(min_samples_leaf=leaf, random_state=0).fit(x, y)
        scores = np.asarray(tree.predict_proba(x)[:, list(tree.classes_).index(True)])
        return scores, int(tree.get_n_leaves())

    return fitted
