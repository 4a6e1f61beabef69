"""Do more people and rows agree in every whole number than nearly agree?

Whole numbers agree by chance. How often they do is seen beside it: over a few steps densities are
even, so that of all pairs of a person and a row that differ by at most w steps in each number a
share of 1/(2w + 1) to the power of their number differs by none. Where values are heaped, on tens
or on hundreds, more do; the columns by themselves tell by how much, from many more pairs than any
copies make; of a column alone pairs within a file do. And where pairs within a file agree oftener
than that, in families or in people who round all that they say, this is no way to tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import bdtrc

from synrisk.audit.compared_files import Files, Numbers
from synrisk.base.arrays import FloatArray, IntArray
from synrisk.risk.neighbours import middle_spread
from synrisk.risk.value_steps import is_rounded

_WIDE = 0.15  # of the spread of a number, in steps
_MOST_ROWS = 20_000  # in a file: more tell by other ways
_MOST_BY_CHANCE = 0.3  # pairs that agree, by person: beyond, they come in crowds
_CONTRADICTED = 0.01  # the probability of as many that agree within a file
# By how probable so many more than within the files are, the least probability that is told.
_LEAST_P = ((0.1, 0.01), (0.01, 5e-4), (0.0, 0.0))
_OFF_GRID = 1e-6  # of a step
_MOST_STEPS = 2**40
_APART = 4.0  # boxes between levels


@dataclass(frozen=True)
class EqualRows:
    """Pairs of a person and a row that nearly agree, and how many of them agree in all.

    Attributes
    ----------
    n_near, n_equal
        The numbers of pairs.
    expected
        How many would be equal by chance.
    p
        The probability of as many.
    """

    n_near: int
    n_equal: int
    expected: float
    p: float


def equal_rows(files: Files, dataset: Numbers) -> EqualRows | None:
    """Return how many rows agree with a person in every column; None where none do by chance."""
    if max(len(files.people), len(dataset)) > _MOST_ROWS:
        return None
    numbers = [name for name in files.made if not files.few_values(name)]
    if not numbers:
        return None
    grids = [_grid(files.column(files.people, name), files.column(dataset, name))
             for name in numbers]  # fmt: skip
    if any(one is None for one in grids):
        return None
    steps = [one for one in grids if one is not None]
    levels = [name for name in files.made if files.few_values(name)]
    own, theirs = (
        _Points.of(
            np.column_stack([one[k] for one in steps]),
            [files.filled(table, name) for name in levels],
            np.array([one[2] for one in steps]),
        )
        for k, table in enumerate((files.people, dataset))
    )
    found = _pairs(own, theirs)
    if found.expected > _MOST_BY_CHANCE * min(len(files.people), len(dataset)):
        return None
    within = [_pairs(one, one) for one in (own, theirs)]
    n_near, n_equal = (sum(getattr(one, of) for one in within) for of in ("n_near", "n_equal"))
    share = sum(one.expected for one in within) / max(n_near, 1)
    if len(numbers) == 1:
        share = found.expected / max(found.n_near, 1)
    if n_equal and bdtrc(n_equal - 1, n_near, min(share, 1.0)) < _CONTRADICTED:
        return None
    # As many pairs are of a person and a row as within both files, or fewer, whatever heaps them.
    own_pairs, mixed = found.n_near, found.n_near + n_near
    more = float(bdtrc(found.n_equal - 1, found.n_equal + n_equal, own_pairs / max(mixed, 1)))
    least = next(least for limit, least in _LEAST_P if more >= limit)
    return replace(found, p=max(found.p, least))


def _grid(own: FloatArray, theirs: FloatArray) -> tuple[IntArray, IntArray, int] | None:
    """Return both columns in steps, and how many of these are near; None where there are none."""
    if (
        np.isnan(own).any()
        or np.isnan(theirs).any()
        or not (is_rounded(own) and is_rounded(theirs))
    ):
        return None
    values = np.unique(np.concatenate([own, theirs]))
    step = float(np.diff(values).min())
    places = (values - values[0]) / step
    if places[-1] > _MOST_STEPS or np.abs(places - np.rint(places)).max() > _OFF_GRID:
        return None
    near = max(1, int(_WIDE * float(middle_spread(own[:, None])[0]) / step))
    people, rows = (np.rint((one - values[0]) / step).astype(np.int64) for one in (own, theirs))
    return people, rows, near


@dataclass(frozen=True, eq=False, repr=False)
class _Points:
    """Rows of a file: their numbers in steps, which levels they have, and what is near."""

    steps: IntArray
    levels: FloatArray
    near: IntArray

    @classmethod
    def of(cls, steps: IntArray, levels: list[FloatArray], near: IntArray) -> _Points:
        """Return the rows of a file."""
        stacked = np.column_stack([np.zeros(len(steps)), *levels])
        return cls(steps, stacked, near)

    @property
    def boxes(self) -> FloatArray:
        """Points that are at most 1 apart, in every direction, where rows nearly agree."""
        return np.column_stack([self.steps / (self.near + 0.5), _APART * self.levels])

    @property
    def whole(self) -> FloatArray:
        """Points that are equal where rows are."""
        return np.column_stack([self.steps.astype(np.float64), self.levels])


def _pairs(own: _Points, theirs: _Points) -> EqualRows:
    """Return the pairs of two files, or of one."""
    from scipy.spatial import cKDTree  # which takes long to import

    is_one = own is theirs
    trees = [cKDTree(one.boxes) for one in (own, theirs)]
    n_near = int(trees[0].count_neighbors(trees[1], 1.0, p=np.inf))
    _, codes = np.unique(np.concatenate([own.whole, theirs.whole]), axis=0, return_inverse=True)
    n_own, n_theirs = (
        np.bincount(part, minlength=int(codes.max()) + 1)
        for part in (codes[: len(own.steps)], codes[len(own.steps) :])
    )
    n_equal = int((n_own * n_theirs).sum())
    if is_one:  # each pair once, and nobody with themselves
        n_near, n_equal = (n_near - len(own.steps)) // 2, (n_equal - len(own.steps)) // 2
    share = 1.0
    is_alone = len(own.near) == 1 and not is_one
    for k, near in enumerate(own.near):
        if is_alone:  # which has these very pairs
            share /= 2 * int(near) + 1
            continue
        share *= _share(own.steps[:, k], theirs.steps[:, k], int(near), is_one=is_one)
    expected = n_near * share
    p = float(bdtrc(n_equal - 1, n_near, share)) if n_equal else 1.0
    return EqualRows(n_near, n_equal, expected, p)


def _share(own: IntArray, theirs: IntArray, near: int, *, is_one: bool) -> float:
    """Return which share of pairs that nearly agree in one number agree, evenly or heaped."""
    ordered = np.sort(theirs)

    def upto(end: IntArray) -> int:
        return int(np.searchsorted(ordered, end, side="right").sum())

    n_equal = upto(own) - upto(own - 1) - (len(own) if is_one else 0)
    n_near = upto(own + near) - upto(own - near - 1) - (len(own) if is_one else 0)
    return max(1.0 / (2 * near + 1), n_equal / max(n_near, 1))
