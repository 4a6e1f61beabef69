"""A flexible regression of a synthesized variable on all released columns together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.synthesis.relations import Beside, Hidden, Relation, sampled

_LARGEST = 1e30
_MOST_ROWS = 4000
_LEAST_ROWS = 20
_N_TREES = 40
_FIRST = 8  # trees by which a variable is left alone: where these give away little, so do all
_LITTLE = 0.5  # of what is a finding
_TOLD = 0.8  # of the trees' gain: the columns that are named have so much of it
_MOST_NAMED = 3


def flexible_relations(hidden: Sequence[Hidden], beside: Beside) -> list[Relation]:
    """Return the variables that trees guess, of each record those that have not seen it."""
    found = []
    for variable in hidden:
        if beside.names and len(variable.values) >= _LEAST_ROWS:
            relation = _by_trees(variable, beside)
            found += [] if relation is None else [relation]
    return found


def _by_trees(hidden: Hidden, beside: Beside) -> Relation | None:
    rows = sampled(len(hidden.values), _MOST_ROWS)
    variable, columns = hidden.rows(rows), beside.rows(rows)
    names = columns.names
    coded: dict[str, Any] = {**columns.groups, **columns.numbers}
    x = np.column_stack([coded[name] for name in names]).astype(np.float64)
    # Of values only the order matters, and the trees hold them in single precision.
    x = np.clip(np.nan_to_num(x, nan=-_LARGEST), -_LARGEST, _LARGEST)
    if not variable.may_be_found(_guessed(variable, x, _FIRST)[0], _LITTLE):
        return None
    given, importances = _guessed(variable, x, _N_TREES)
    refused = variable.judged(given)
    if refused is None:
        return None
    ranked = np.argsort(-importances)
    n_named = int(np.searchsorted(np.cumsum(importances[ranked]), _TOLD)) + 1
    chosen = tuple(names[k] for k in ranked[: min(n_named, _MOST_NAMED)])
    words = "predicted by the released columns together, above all by"
    return Relation(hidden.name, chosen, (), words, refused)


def _guessed(variable: Hidden, x: FloatArray, n_trees: int) -> tuple[BoolArray, FloatArray]:
    """Return which values trees give away that have not seen them, and the columns' gains."""
    # Half a second to import; a session without a released column never does.
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
    )

    options: dict[str, Any] = {
        "n_estimators": n_trees,
        "bootstrap": True,
        "max_features": None,
        "min_samples_leaf": 2,
        "random_state": 0,
    }
    if variable.are_levels:
        classes, codes = np.unique(variable.values, return_inverse=True)
        trees: Any = ExtraTreesClassifier(**options).fit(x, codes)
        votes = _out_of_bag(trees, x, len(classes))
        guesses = classes[np.argmax(votes, axis=1)]
        guesses[votes.sum(axis=1) == 0] = np.nan
    else:
        logs = bool((variable.values > 0).all())
        y = np.log(variable.values) if logs else variable.values
        trees = ExtraTreesRegressor(**options).fit(x, y)
        fitted = _out_of_bag(trees, x, 0)
        guesses = np.exp(fitted) if logs else fitted
    return variable.given(guesses), np.asarray(trees.feature_importances_)


def _out_of_bag(trees: Any, x: FloatArray, n_classes: int) -> FloatArray:
    """Return the mean of the trees that did not see a row, or for classes their sum."""
    n = len(x)
    total = np.zeros((n, n_classes) if n_classes else n)
    counts = np.zeros(n)
    for tree, drawn in zip(trees.estimators_, trees.estimators_samples_, strict=True):
        unseen = np.bincount(drawn, minlength=n) == 0
        total[unseen] += tree.predict_proba(x[unseen]) if n_classes else tree.predict(x[unseen])
        counts[unseen] += 1
    if n_classes:
        return total
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
