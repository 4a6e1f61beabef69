"""Which records and which variables are evaluated: what somebody names, checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import IntArray
from synrisk.base.errors import OptionError, counted, got, listed, nearest
from synrisk.base.messages import place_of, setting
from synrisk.risk.estimators.choose import PAPER
from synrisk.risk.intruder_prior import Prior, Table


def chosen_records(records: Any, labels: pd.Index[Any]) -> IntArray:
    """Return where the records that `records` names stand among `labels`; None names all."""
    if records is None:
        return np.arange(len(labels), dtype=np.int64)
    if isinstance(records, np.ndarray) and records.ndim == 0:
        records = records.item()
    several = isinstance(records, Iterable) and not isinstance(records, str | bytes)
    wanted = list(records) if several else [records]
    if not wanted:
        raise OptionError("records= is empty; leave it out to evaluate all records.")
    positions = positions_of(wanted, labels)
    n_repeated = len(positions) - len(np.unique(positions))
    if n_repeated:
        raise OptionError(f"records= repeats {counted(n_repeated, 'label')}.")
    return positions


def chosen_variables(variables: Any, names: Sequence[str]) -> tuple[int, ...] | None:
    """Return the axes of the variables that are asked for, in order; None where all are."""
    if variables is None:
        return None
    wanted = [variables] if isinstance(variables, str) else variables
    if not isinstance(wanted, Iterable) or isinstance(wanted, bytes):
        raise OptionError(f"variables= takes names of synthesized variables; got {got(variables)}.")
    chosen = list(wanted)
    for name in chosen:
        if not isinstance(name, str) or name not in names:
            raise OptionError(
                f"variables= names {got(name)}, which is not synthesized.{nearest(name, names)} "
                f"The synthesized variables are {listed(names)}.",
                about=place_of("variables"),
            )
    if not chosen:
        raise OptionError("variables= is empty; leave it out to evaluate all variables.")
    if len(set(chosen)) < len(chosen):
        raise OptionError("variables= repeats a name.", about=place_of("variables"))
    axes = tuple(sorted(names.index(name) for name in chosen))
    return None if len(axes) == len(names) else axes


def refuse_some_variables(method: str, prior: Prior, keeping: str) -> None:
    """Raise where the others cannot be summed out."""
    if method == PAPER:
        raise OptionError(
            "variables= needs one table a model, which the paper's estimator does not have; use "
            f"{setting('estimator', 'auto')} or 'importance', or leave variables= out.",
            about=place_of("variables"),
        )
    if isinstance(prior, Table):
        raise OptionError(
            "variables= is for a prior that is a product of tables; one that is given over the "
            "joint grid needs all variables. Leave variables= out.",
            about=place_of("variables"),
        )
    if keeping == "keep":
        raise OptionError(
            "joint='keep' keeps the joint posterior of all variables; leave variables= out, or "
            "joint=.",
            about=place_of("variables"),
        )


def positions_of(wanted: list[Any], labels: pd.Index[Any]) -> IntArray:
    """Return where labels stand among those of the records."""
    if any(not isinstance(label, Hashable) or isinstance(label, slice) for label in wanted):
        raise OptionError("A record is named by its label; records= takes a list of labels.")
    # As objects where the labels are: text that is not valid Unicode has no other type.
    kind: Any = object if labels.dtype == object else None
    sought: pd.Index[Any] = pd.Index(wanted, dtype=kind, tupleize_cols=False)
    positions = labels.get_indexer(sought)
    n_unknown = int((positions < 0).sum())
    if n_unknown:
        kind = labels.dtype
        counted_from_0 = len(labels) and labels.dtype.kind == "i" and labels[0] == 0
        numbered = "; rows without labels are counted from 0" if counted_from_0 else ""
        raise OptionError(
            f"{counted(n_unknown, 'label is', 'labels are')} not among the evaluated records; "
            "labels are those of the confidential data's index or id column "
            f"(type {kind}){numbered}."
        )
    return positions.astype(np.int64)
