"""Nearest rows by Gower's distance: numbers over their range, levels equal or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synrisk.audit.shared_codes import File, is_number, numbers_of, shared_codes
from synrisk.base.arrays import FloatArray, IntArray

_PAIRS = 1 << 20  # distances that are held at once
_TIE = 1e-9  # of one column: equally near rows are told apart at random by less


@dataclass(frozen=True, repr=False)
class Mixed:
    """Rows of numbers and levels.

    Attributes
    ----------
    numbers
        Over the range of both files, ``(row, column)``; gaps are levels.
    levels
        Codes, ``(row, column)``.
    """

    numbers: FloatArray
    levels: IntArray

    def __len__(self) -> int:
        return len(self.levels)

    def take(self, rows: IntArray) -> Mixed:
        """Return some of the rows."""
        return Mixed(self.numbers[rows], self.levels[rows])

    def distances(self, row: slice, others: Mixed) -> FloatArray:
        """Return the sum over columns of |difference| of numbers and of levels that differ."""
        total = np.zeros((len(self.levels[row]), len(others)))
        apart = np.empty_like(total)
        for k in range(self.numbers.shape[1]):
            np.subtract(self.numbers[row, k][:, None], others.numbers[:, k], out=apart)
            total += np.abs(apart, out=apart)
        for k in range(self.levels.shape[1]):
            total += self.levels[row, k][:, None] != others.levels[:, k]
        return total


def mixed_rows(files: Sequence[File], names: Sequence[str]) -> list[Mixed]:
    """Return files as rows between which there are distances; a gap is a level of its own."""
    numbers: list[list[FloatArray]] = []
    levels: list[list[IntArray]] = []
    for name in names:
        if not is_number(files[0].frame[name]):
            levels.append(shared_codes([file.frame[name] for file in files]))
            continue
        values = numbers_of(files, name)
        gaps = [np.isnan(own) for own in values]
        if any(gap.any() for gap in gaps):
            levels.append([gap.astype(np.int64) for gap in gaps])
        known = np.concatenate([own[~gap] for own, gap in zip(values, gaps, strict=True)])
        low, width = (known.min(), np.ptp(known) or 1.0) if len(known) else (0.0, 1.0)
        numbers.append([np.where(np.isnan(own), 0.0, (own - low) / width) for own in values])
    return [
        Mixed(_beside([own[k] for own in numbers], n), _beside([own[k] for own in levels], n))
        for k, n in enumerate(len(file.frame) for file in files)
    ]


def _beside(columns: Sequence[Any], n_rows: int) -> Any:
    """Return columns as one array, each in one piece of memory."""
    if not columns:
        return np.empty((n_rows, 0), dtype=np.int64)
    return np.asfortranarray(np.stack(columns, axis=1))


def nearest(
    targets: Mixed,
    rows: Mixed,
    n_nearest: int,
    own: IntArray | None = None,
    ties: np.random.Generator | None = None,
) -> tuple[FloatArray, IntArray]:
    """Return the distances of the nearest rows and their positions, ``(target, 1 … n_nearest)``.

    Parameters
    ----------
    targets, rows
        Of the same columns.
    n_nearest
        How many; at most as many as there are rows.
    own
        Of each target the row that is itself, which does not count.
    ties
        Chooses among rows that are equally near; without it any may be taken.
    """
    distances, positions = [], []
    for part in _parts(len(targets), len(rows)):
        found = targets.distances(part, rows)
        if own is not None:
            found[np.arange(len(found)), own[part]] = np.inf
        mixed = found
        if ties is not None:
            mixed = ties.random(found.shape, dtype=np.float32) * _TIE + found
        if n_nearest == 1:
            order = np.argmin(mixed, axis=1)[:, None]
        else:
            order = np.argpartition(mixed, n_nearest - 1, axis=1)[:, :n_nearest]
        near = np.take_along_axis(found, order, axis=1)
        inside = np.argsort(near, axis=1, kind="stable")
        distances.append(np.take_along_axis(near, inside, axis=1))
        positions.append(np.take_along_axis(order, inside, axis=1))
    return np.concatenate(distances), np.concatenate(positions).astype(np.int64)


def _parts(n_targets: int, n_rows: int) -> Iterator[slice]:
    size = max(1, _PAIRS // n_rows)
    for first in range(0, n_targets, size):
        yield slice(first, min(first + size, n_targets))
