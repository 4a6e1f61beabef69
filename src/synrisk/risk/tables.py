"""Labelled tables and arrays made of a result: what users see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import OptionError, got, listed, nearest
from synrisk.core.measures import (
    JOINT,
    RecordMeasure,
    RecordMeasures,
    measures_of_truth,
)
from synrisk.core.ranks import TIE, marginal_ranks
from synrisk.core.spread import Spread
from synrisk.core.summary import ErrorArrays, RiskArrays
from synrisk.data.schema import Variable
from synrisk.models.families import Family
from synrisk.risk.guesses import Grid
from synrisk.synthesis.synthesizer import Synthesizer


@dataclass(frozen=True, repr=False)
class Labels:
    """Names for the axes of a result."""

    records: pd.Index[Any]
    variables: tuple[Variable, ...]
    families: tuple[Family, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The synthesized variables' names."""
        return tuple(variable.name for variable in self.variables)

    def axis(self, name: str) -> int:
        """Return the axis of a synthesized variable."""
        if not isinstance(name, str) or name not in self.names:
            raise OptionError(
                f"{got(name)} is not a synthesized variable.{nearest(name, self.names)} "
                f"They are {listed(self.names)}."
            )
        return self.names.index(name)

    def decode(self, axis: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what a user sees for guesses on an axis: numbers, counts as integers, labels."""
        seen = self.variables[axis].decode(values)
        family = self.families[axis]
        whole = not family.is_continuous and family.grid_step == np.rint(family.grid_step)
        if seen.dtype.kind == "f" and whole:
            return seen.astype(np.int64)
        return seen


def labels_of(
    synthesizer: Synthesizer, positions: slice | IntArray, asked: Sequence[int] | None
) -> Labels:
    """Return what the evaluated records and the variables are called; `asked` are these."""
    plan = synthesizer.plan
    axes = range(len(plan.synthesized)) if asked is None else asked
    return Labels(
        synthesizer.data.index[positions],
        tuple(synthesizer.schema.variables[plan.synthesized[axis]] for axis in axes),
        tuple(plan.regressions[axis].distribution for axis in axes),
    )


def record_table(result: RiskArrays, grids: tuple[Grid, ...], labels: Labels) -> pd.DataFrame:
    """Return a row a record."""
    rows = np.arange(len(labels.records))
    errors = result.errors or ErrorArrays.unknown(len(rows), len(grids))
    columns: dict[str, Any] = {
        "before": result.prior,
        "after": result.probability,
        "gain": result.probability - result.prior,
        "before_mcse": errors.of_prior[:, 0],
        "gain_mcse": errors.of_gain[:, 0],
        "probability": result.probability,
        "prior": result.prior,
        "lift": result.probability / result.prior,
        "rank": result.rank,
        "rank_low": errors.rank_low,
        "rank_high": errors.rank_high,
        "n_guesses": _or_countless(result.n_guesses),
        "log_odds_range": result.log_odds_range,
        "log_odds_range_mcse": errors.range_mcse,
        "log_odds_range_99": _or_unknown(result.likely_range, len(rows)),
        "log_odds_range_99_mcse": _or_unknown(errors.likely_range_mcse, len(rows)),
        "mcse": errors.mcse[:, 0],
        "ess": errors.ess,
        "khat": errors.khat,
        "reliable": errors.reliable,
    }
    for axis, grid in enumerate(grids):
        name, best = labels.names[axis], result.best[:, axis]
        guess, truth = grid.values[rows, best], grid.values[rows, grid.truth]
        before, after = result.prior_marginals[:, axis], near_truth(result, grids, axis)
        columns[f"before_{name}"] = before
        columns[f"after_{name}"] = after
        columns[f"gain_{name}"] = after - before
        columns[f"before_mcse_{name}"] = errors.of_prior[:, 1 + axis]
        columns[f"gain_mcse_{name}"] = errors.of_gain[:, 1 + axis]
        columns[f"probability_{name}"] = after
        columns[f"prior_{name}"] = before
        columns[f"mcse_{name}"] = errors.mcse[:, 1 + axis]
        columns[f"best_guess_{name}"] = labels.decode(axis, guess)
        columns[f"abs_diff_{name}"] = difference(labels.families[axis], guess, truth)
        if result.likely_ranges is not None:
            columns[f"rank_{name}"] = own_ranks(result, grids, axis)
            columns[f"log_odds_range_99_{name}"] = result.likely_ranges[:, axis]
    return pd.DataFrame(columns, index=labels.records)


def record_measures(result: RiskArrays, grids: tuple[Grid, ...], labels: Labels) -> RecordMeasures:
    """Return the measures by record that limits and plots are about."""
    rows = np.arange(len(labels.records))
    errors = result.errors or ErrorArrays.unknown(len(rows), len(grids))
    reliable, joint = errors.reliable, (result.prior, result.probability)
    measures = [
        *measures_of_truth(JOINT, *joint, errors.mcse[:, 0], errors.of_gain[:, 0], reliable)
    ]
    measures.append(
        RecordMeasure(
            "log_odds_range",
            JOINT,
            result.log_odds_range,
            errors.range_mcse,
            reliable,
            *joint,
            is_log=True,
        )
    )
    for axis, name in enumerate(labels.names):
        before, after = result.prior_marginals[:, axis], near_truth(result, grids, axis)
        of_errors = (errors.mcse[:, 1 + axis], errors.of_gain[:, 1 + axis])
        measures += measures_of_truth(name, before, after, *of_errors, reliable)
    return RecordMeasures(measures)


def part_table(result: RiskArrays, grids: tuple[Grid, ...], labels: Labels) -> pd.DataFrame:
    """Return a row a record, as `record_table`, with all that summaries and reports ask for."""
    table = record_table(result, grids, labels)
    beside: dict[str, Any] = {}
    for axis, name in enumerate(labels.names):
        beside[is_best_name(name)] = is_best(result, grids, axis)
        beside[own_rank_name(name)] = own_ranks(result, grids, axis)
        beside[own_guesses_name(name)] = grids[axis].present.sum(axis=1)
    return pd.concat([table, pd.DataFrame(beside, index=table.index)], axis=1)


def is_best_name(name: str) -> str:
    """Return what the column is called that tells whether the truth is the best guess."""
    return f"is_best_{name}"


def own_rank_name(name: str) -> str:
    """Return what the column with a variable's rank among its own guesses is called."""
    return f"own_rank_{name}"


def own_guesses_name(name: str) -> str:
    """Return what the column with the number of a variable's own guesses is called."""
    return f"own_guesses_{name}"


def names_beside(names: Iterable[str]) -> set[str]:
    """Return the columns of `part_table` that are not those of `record_table`."""
    makers = (is_best_name, own_rank_name, own_guesses_name)
    return {make(name) for name in names for make in makers}


def measures_of_columns(
    read: Callable[[str], npt.NDArray[Any]], names: Iterable[str]
) -> RecordMeasures:
    """Return the measures of records by the columns that `record_table` has, of some variables."""
    joint, reliable = (read("before"), read("after")), read("reliable")
    measures = [*measures_of_truth(JOINT, *joint, read("mcse"), read("gain_mcse"), reliable)]
    moved, of_moved = read("log_odds_range"), read("log_odds_range_mcse")
    measures.append(
        RecordMeasure("log_odds_range", JOINT, moved, of_moved, reliable, *joint, is_log=True)
    )
    for name in names:
        before, after = read(f"before_{name}"), read(f"after_{name}")
        of_errors = (read(f"mcse_{name}"), read(f"gain_mcse_{name}"))
        measures += measures_of_truth(name, before, after, *of_errors, reliable)
    return RecordMeasures(measures)


def own_ranks(result: RiskArrays, grids: tuple[Grid, ...], axis: int) -> FloatArray:
    """Return the rank of each truth of a variable among the variable's own guesses."""
    grid = grids[axis]
    return marginal_ranks(_density(result, grids, axis), grid.truth, grid.present)


def near_truth(result: RiskArrays, grids: tuple[Grid, ...], axis: int) -> FloatArray:
    """Return the probability that a variable is near the truth."""
    grid, marginal = grids[axis], result.marginals[axis]
    if grid.is_pointed:
        return np.asarray(marginal[np.arange(len(marginal)), grid.truth])
    return np.asarray(np.where(grid.near, marginal, 0.0).sum(axis=1))


def _density(result: RiskArrays, grids: tuple[Grid, ...], axis: int) -> FloatArray:
    """Return the probabilities of a variable's guesses over what these stand for."""
    marginal, log_widths = result.marginals[axis], grids[axis].log_widths
    return marginal if log_widths is None else np.asarray(marginal * np.exp(-log_widths))


def _or_countless(n_guesses: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers of cells; NaN where they are more than an integer counts."""
    return np.where(n_guesses == 0, np.nan, n_guesses) if (n_guesses == 0).any() else n_guesses


def _or_unknown(values: FloatArray | None, n_records: int) -> FloatArray:
    return np.full(n_records, np.nan) if values is None else values


def difference(family: Family, guess: FloatArray, truth: FloatArray) -> FloatArray:
    """Return |guess − truth|, or 0 and 1 where levels have no order."""
    if family.gap_code is not None:  # a value and none are no distance apart
        gaps = (guess == family.gap_code, truth == family.gap_code)
        return np.where(gaps[0] != gaps[1], np.nan, np.abs(guess - truth))
    if family.is_ordered:
        return np.asarray(np.abs(guess - truth))
    return np.asarray(guess != truth, dtype=np.float64)


def summary_columns(
    result: RiskArrays, grids: tuple[Grid, ...], labels: Labels
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield what a summary by group is made of, for the joint and for each variable."""
    rows = np.arange(len(labels.records))
    yield (
        JOINT,
        pd.DataFrame(
            {
                "probability": result.probability,
                "prior": result.prior,
                "is_best": np.where(np.isnan(result.rank), np.nan, result.rank == 1),
                "abs_diff": np.nan,
            }
        ),
    )
    for axis, grid in enumerate(grids):
        best = result.best[:, axis]
        guess, truth = grid.values[rows, best], grid.values[rows, grid.truth]
        yield (
            labels.names[axis],
            pd.DataFrame(
                {
                    "probability": near_truth(result, grids, axis),
                    "prior": result.prior_marginals[:, axis],
                    "is_best": is_best(result, grids, axis),
                    "abs_diff": difference(labels.families[axis], guess, truth),
                }
            ),
        )


def is_best(result: RiskArrays, grids: tuple[Grid, ...], axis: int) -> BoolArray:
    """Tell whose truth of a variable is the one most probable guess."""
    grid, density = grids[axis], _density(result, grids, axis)
    truth = density[np.arange(len(density)), grid.truth][:, None]
    return np.asarray((density >= truth * (1.0 - TIE)).sum(axis=1) == 1)


def summary_by(columns: Iterable[tuple[str, pd.DataFrame]], groups: pd.Series[Any]) -> pd.DataFrame:
    """Return a row for the joint and each variable, by group.

    `columns` are asked for one after the other: ``probability``, ``prior``, ``is_best`` and
    ``abs_diff`` of all records.
    """
    keys = groups.astype(object).where(groups.notna(), None)
    rows = {label: (keys == label).to_numpy() for label in groups.dropna().unique()}
    if keys.isna().any():
        rows["(missing)"] = keys.isna().to_numpy()
    lines: dict[Any, dict[str, Any]] = {label: {} for label in rows}
    for name, frame in columns:
        for label, own in rows.items():
            lines[label][name] = _line(frame[own])
    tables = {label: summary_of(own) for label, own in lines.items()}
    ordered = groups.cat.categories if isinstance(groups.dtype, pd.CategoricalDtype) else None
    order = [g for g in ordered if g in tables] if ordered is not None else _sorted(tables)
    order += [g for g in tables if g not in order]
    grouped: pd.DataFrame = pd.concat({g: tables[g] for g in order}, names=[str(groups.name), "of"])
    return grouped


def _sorted(keys: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:
        return sorted(keys, key=str)


def _line(part: pd.DataFrame) -> dict[str, Any]:
    columns = {str(name): part[name].to_numpy() for name in part}
    after, prior = columns["probability"], columns["prior"]
    columns |= {"gain": after - prior, "is_above": after > prior * np.exp(TIE)}
    return summary_line({name: Spread.of(values) for name, values in columns.items()})


def summary_line(of: Mapping[str, Spread]) -> dict[str, Any]:
    """Return the row of a summary."""
    after, gain = of["probability"], of["gain"]
    return {
        "n_records": after.ends.n,
        "prior": of["prior"].mean,
        "mean": after.mean,
        "median": after.quantile(0.5),
        "q95": after.quantile(0.95),
        "max": after.ends.largest,
        "gain_q95": gain.quantile(0.95),
        "gain_max": gain.ends.largest,
        "share_above_prior": of["is_above"].mean,
        "share_best": of["is_best"].mean,
        "mean_abs_diff": of["abs_diff"].where(lambda off: ~np.isnan(off)).mean,
    }


def summary_of(lines: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return a summary of its rows by name."""
    return pd.DataFrame(lines).T.rename_axis("of").astype({"n_records": np.int64})


def joint_array(
    log_posterior: FloatArray, row: int, grids: tuple[Grid, ...], labels: Labels
) -> xr.DataArray:
    """Return one record's joint posterior over the guesses that it has."""
    kept = [np.flatnonzero(grid.present[row]) for grid in grids]
    coordinates = {
        labels.names[axis]: labels.decode(axis, grid.values[row][kept[axis]])
        for axis, grid in enumerate(grids)
    }
    return xr.DataArray(
        np.exp(log_posterior[np.ix_(*kept)]),
        coords=coordinates,
        dims=labels.names,
        name="probability",
    )


def truth_among(grids: tuple[Grid, ...], row: int) -> list[int]:
    """Return where the truth of a record stands among the guesses that it has, by variable."""
    return [int(grid.present[row, : grid.truth[row]].sum()) for grid in grids]


def ranking_table(
    log_posterior: FloatArray,
    log_prior: FloatArray,
    row: int,
    grids: tuple[Grid, ...],
    labels: Labels,
) -> pd.DataFrame:
    """Return every guess of one record, the most probable first."""
    kept = np.ix_(*[np.flatnonzero(grid.present[row]) for grid in grids])
    index = [np.asarray(i).ravel() for i in np.broadcast_arrays(*kept)]
    columns: dict[str, Any] = {
        labels.names[axis]: labels.decode(axis, grid.values[row][index[axis]])
        for axis, grid in enumerate(grids)
    }
    log_p = log_posterior[kept].ravel()
    is_truth = np.all([i == grid.truth[row] for i, grid in zip(index, grids, strict=True)], axis=0)
    columns |= {
        "probability": np.exp(log_p),
        "prior": np.exp(log_prior[kept]).ravel(),
        "rank": all_ranks(log_p),
        "is_truth": is_truth,
    }
    return pd.DataFrame(columns).sort_values("rank", kind="stable", ignore_index=True)


def all_ranks(log_p: FloatArray) -> FloatArray:
    """Return the rank of every cell, 1 the most probable, ties sharing the average."""
    ordered = np.sort(log_p)
    above = len(ordered) - np.searchsorted(ordered, log_p + TIE, side="right")
    below = np.searchsorted(ordered, log_p - TIE, side="left")
    return np.asarray(above + (len(ordered) - above - below + 1) / 2.0)


def marginal_array(
    result: RiskArrays, axis: int, grids: tuple[Grid, ...], labels: Labels
) -> xr.DataArray:
    """Return the marginal posterior of one variable, ``(record, guess)``, with its guesses."""
    grid = grids[axis]
    values = labels.decode(axis, grid.values)
    return xr.DataArray(
        np.where(grid.present, result.marginals[axis], np.nan),
        dims=("record", "guess"),
        coords={
            "record": labels.records.to_numpy(),
            "value": (("record", "guess"), values),
            "truth": ("record", grid.truth),
        },
        name=f"probability_{labels.names[axis]}",
    )


def dataset(
    result: RiskArrays, grids: tuple[Grid, ...], labels: Labels, attributes: Mapping[str, Any]
) -> xr.Dataset:
    """Return everything as an xarray Dataset; guesses of V lie on the dimension ``guess_V``."""
    records = record_table(result, grids, labels)
    variables: dict[str, Any] = {
        str(name): ("record", records[name].to_numpy()) for name in records.columns
    }
    for axis, name in enumerate(labels.names):
        dims = ("record", f"guess_{name}")
        variables[f"guesses_{name}"] = (dims, labels.decode(axis, grids[axis].values))
        variables[f"present_{name}"] = (dims, grids[axis].present)
        variables[f"marginal_{name}"] = (dims, result.marginals[axis])
        variables[f"prior_{name}"] = ("record", result.prior_marginals[:, axis])
        variables[f"truth_{name}"] = ("record", grids[axis].truth)
    if result.joint is not None:
        dims_ = ("record", *(f"guess_{name}" for name in labels.names))
        variables["joint"] = (dims_, np.exp(result.joint))
    return xr.Dataset(
        variables, coords={"record": labels.records.to_numpy()}, attrs=dict(attributes)
    )
