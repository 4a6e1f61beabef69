"""Measures of nearest rows: linkability, DCR and NNDR."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from synrisk.audit.board_measure import share_of
from synrisk.audit.gower_distances import Mixed, nearest
from synrisk.audit.key_counts import Found
from synrisk.audit.singling_out import ANONYMETER
from synrisk.base.arrays import BoolArray, FloatArray, IntArray

DCR = "DCR and NNDR: Zhao, Kunar, Birke & Chen 2021"


def linkability(
    parts: tuple[tuple[Mixed, Mixed], tuple[Mixed, Mixed]],
    targets: IntArray,
    n_neighbours: int,
    rng: np.random.Generator,
) -> Found:
    """Return for how many records two sets of columns lead to the same row of the release.

    Parameters
    ----------
    parts
        For each set of columns the confidential records and the release.
    targets
        The records that are tried.
    n_neighbours
        Among so many nearest rows.
    rng
        Tells apart rows that are equally near.
    """
    to_rows, to_others = [], []
    for records, rows in parts:
        tried = records.take(targets)
        k = min(n_neighbours, len(rows))
        to_rows.append(nearest(tried, rows, k, ties=rng)[1])
        k = min(n_neighbours, len(records) - 1)
        to_others.append(nearest(tried, records, k, targets, rng)[1])
    linked, by_others = _meet(*to_rows), _meet(*to_others)
    return Found(
        "linkability", share_of(linked.sum(), len(targets)),
        share_of(by_others.sum(), len(targets)), np.nan,
        _placed(linked, targets, len(parts[0][0])), ANONYMETER,
        f"Records of which two sets of columns have a row among their {n_neighbours} nearest in "
        "common, by Gower's distance, equally near ones at random; chance: the other confidential "
        f"records in place of the release. {_tried(targets, len(parts[0][0]))}",
    )  # fmt: skip


def _meet(one: IntArray, other: IntArray) -> BoolArray:
    return np.asarray((one[:, :, None] == other[:, None, :]).any(axis=(1, 2)))


def nearest_measures(records: Mixed, rows: Mixed, targets: IntArray) -> Iterator[Found]:
    """Yield how near records are to the release, against how near to other records.

    Parameters
    ----------
    records, rows
        The confidential records and the release.
    targets
        The records that are tried.
    """
    n, n_rows = len(records), len(rows)
    tried, how = records.take(targets), _tried(targets, n)
    to_rows = nearest(tried, rows, min(2, n_rows))[0]
    to_others = nearest(tried, records, min(2, n - 1), targets)[0]
    nearer, equal = to_rows[:, 0] < to_others[:, 0], to_rows[:, 0] == to_others[:, 0]
    counted = _placed(nearer, targets, n)
    yield Found(
        "DCR", float(np.median(to_rows[:, 0])), float(np.median(to_others[:, 0])), np.nan,
        _placed(to_rows[:, 0] == 0.0, targets, n), DCR,
        "The median of records' Gower distances to the nearest row of the release (not a share); "
        "chance: to the nearest other record. It counts the records at distance 0. A small "
        f"release is farther away than so many others. {how}",
    )  # fmt: skip
    yield Found(
        "DCR share", share_of(nearer.sum() + 0.5 * equal.sum(), len(targets)),
        n_rows / (n_rows + n - 1.0), np.nan, counted, DCR,
        "Records that are nearer to a row of the release than to any other record (half of those "
        "equally near); chance: by the numbers of rows and of other records, where the release is "
        f"a fresh sample. {how}",
    )  # fmt: skip
    if min(to_rows.shape[1], to_others.shape[1]) > 1:
        yield Found(
            "NNDR", float(np.median(_ratio(to_rows))), float(np.median(_ratio(to_others))), np.nan,
            np.zeros(n, dtype=bool), DCR,
            "The median over records of the distance to the nearest row over that to the second "
            "nearest (not a share); chance: among the other records. 0 over 0 is 1. It counts no "
            f"record. {how}",
        )  # fmt: skip


def _ratio(distances: FloatArray) -> FloatArray:
    first, second = distances[:, 0], distances[:, 1]
    return np.where(second > 0, first / np.where(second > 0, second, 1.0), 1.0)


def _placed(found: BoolArray, targets: IntArray, n_records: int) -> BoolArray:
    everybody = np.zeros(n_records, dtype=bool)
    everybody[targets[found]] = True
    return everybody


def _tried(targets: IntArray, n_records: int) -> str:
    if len(targets) == n_records:
        return "All records are tried."
    return f"A random {len(targets):,} of {n_records:,} records are tried."
