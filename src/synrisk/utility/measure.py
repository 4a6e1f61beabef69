"""The function that users call, and the result that they hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd

from synrisk.base.errors import FileError, OptionError, counted, got, listed, nearest, one_of
from synrisk.base.seeds import checked_seed
from synrisk.data.frames import TableLike
from synrisk.data.schema import Missing, Types
from synrisk.models.plan import Plan, Regression
from synrisk.plots.of_utility import UtilityPlots
from synrisk.synthesis.synthesizer import Synthesizer
from synrisk.utility.distributions import KINDS, marginal_table, pair_table
from synrisk.utility.intervals import RULES, UNCHANGED, interval_table, overlap_of_copy
from synrisk.utility.propensity import (
    MODELS,
    Scored,
    is_too_large,
    n_columns,
    score_cart,
    score_logistic,
)
from synrisk.utility.reading import Sides, column_names, read_sides

ParametersName: TypeAlias = Literal["posterior", "fitted"]
PARAMETERS: tuple[str, ...] = get_args(ParametersName)
_SAID = {
    "main": "main effects",
    "interactions": "main effects and two-way interactions",
    "cart": "a classification tree",
}

_WORDS = {"model": MODELS, "rule": RULES, "kind": KINDS}  # columns that hold one of a few words
# The columns of each table, after those that name its rows.
_TABLES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "propensity": (
        ("model", "dataset"),
        ("pmse", "expected", "sd", "ratio", "z", "specks", "n_parameters", "n_left_out"),
    ),
    "intervals": (
        ("analysis", "term"),
        (
            *("estimate_confidential", "se_confidential", "low_confidential", "high_confidential"),
            *("estimate_synthetic", "se_synthetic", "low_synthetic", "high_synthetic"),
            *("df_synthetic", "rule", "difference", "overlap", "overlap_as_data"),
        ),
    ),
    "marginals": (
        ("variable",),
        (
            *("kind", "synthesized", "mean_difference", "sd_ratio", "quantile_difference"),
            *("total_variation", "by_chance", "hellinger"),
        ),
    ),
    "pairs": (
        ("first", "second"),
        (
            *("correlation_confidential", "correlation_synthetic", "correlation_difference"),
            *("total_variation", "by_chance", "hellinger"),
        ),
    ),
}


@dataclass(frozen=True, eq=False, repr=False)
class Utility:
    """How much of what the confidential data say a release still says.

    Made by `utility`. Tables hold no value of a record; means and shares are of all of them. They
    are for inside use all the same: `AttributeRisk.report` tells what may be shared.

    Attributes
    ----------
    n_records, n_rows
        The number of confidential records, and of rows of each synthetic dataset.
    synthesized
        The variables that were compared and are synthesized.
    propensity
        A row a model and dataset: ``pmse``, what it would be on average (``expected``, with
        standard deviation ``sd``) if the release came from the right models, ``ratio`` of the
        first two (1 is as good as it gets), ``z``, ``specks`` (the Kolmogorov–Smirnov distance
        between the scores of both sides), ``n_parameters``, ``n_left_out``.
    intervals
        A row an estimate: from the confidential data, from the release (combined by ``rule``),
        their ``difference`` in standard errors of the confidential estimate, the ``overlap`` of
        their confidence intervals, and that of the intervals of somebody who takes the release for
        the data (``overlap_as_data``).
    marginals
        A row a variable: differences of means and quantiles in standard deviations, the ratio of
        standard deviations, total variation and Hellinger distance between shares of levels or
        bins, and the total variation that chance makes (``by_chance``).
    pairs
        A row a pair of variables: correlations, and distances between shares of crossed bins.
    level
        Of the confidence intervals.
    parameters
        Whether the synthesis drew its parameters from their posterior, or fitted them.
    notes
        What a reader of the numbers should know.
    """

    n_records: int
    n_rows: tuple[int, ...]
    synthesized: tuple[str, ...]
    propensity: pd.DataFrame
    intervals: pd.DataFrame
    marginals: pd.DataFrame
    pairs: pd.DataFrame
    level: float
    parameters: str
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        found = ", ".join(
            f"{what} {row['value']:.3g}"
            for what, row in self.summary().iterrows()
            if np.isfinite(row["value"])
        )
        return (
            f"<Utility: {counted(self.n_records, 'record')}; "
            f"{counted(len(self.n_rows), 'dataset')}; {found}>"
        )

    def summary(self) -> pd.DataFrame:
        """Return a row a measure: its value, what the right models would give, and what a copy has.

        Over datasets and estimates these are means, but for the largest difference and distance,
        whose variables the tables name. NaN where a measure does not apply.
        """
        names = list(dict.fromkeys(self.propensity.index.get_level_values("model")))
        scored = {name: self.propensity.loc[name] for name in names}
        rows: list[tuple[str, float, float, float]] = [
            (f"pmse_ratio_{name}", _mean(of["ratio"]), 1.0, 0.0) for name, of in scored.items()
        ]
        rows += [
            (f"specks_{name}", _mean(of["specks"]), np.nan, 0.0) for name, of in scored.items()
        ]
        told = self.intervals[self.intervals["rule"] != UNCHANGED]
        copy = overlap_of_copy(
            len(self.n_rows),
            partial=len(self.synthesized) < len(self.marginals),
            fitted=self.parameters == "fitted",
        )
        rows += [
            ("overlap", _mean(told["overlap"]), np.nan, copy),
            ("overlap_as_data", _mean(told["overlap_as_data"]), np.nan, 1.0),
            ("mean_difference", _largest(self.marginals["mean_difference"]), np.nan, 0.0),
            (
                "total_variation",
                _largest(self.marginals["total_variation"]),
                _largest(self.marginals["by_chance"]),
                0.0,
            ),
            (
                "total_variation_of_pairs",
                _largest(self.pairs["total_variation"]),
                _largest(self.pairs["by_chance"]),
                0.0,
            ),
            ("correlation_difference", _largest(self.pairs["correlation_difference"]), np.nan, 0.0),
        ]
        return pd.DataFrame(rows, columns=["measure", "value", "right_models", "copy"]).set_index(
            "measure"
        )

    @property
    def plot(self) -> UtilityPlots:
        """Plots: ``utility.plot.overlap()`` and ``.marginals()``."""
        return UtilityPlots(self.intervals, self.marginals, self.level)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "n_records": self.n_records,
            "n_rows": list(self.n_rows),
            "synthesized": list(self.synthesized),
            "level": self.level,
            "parameters": self.parameters,
            "notes": list(self.notes),
            "summary": _stored(self.summary()),
            "propensity": _stored(self.propensity),
            "intervals": _stored(self.intervals),
            "marginals": _stored(self.marginals),
            "pairs": _stored(self.pairs),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Utility:
        """Return what `to_json` stored."""
        try:
            return cls(
                int(stored["n_records"]),
                tuple(int(n) for n in stored["n_rows"]),
                _texts(stored["synthesized"]),
                _restored(stored["propensity"], "propensity"),
                _restored(stored["intervals"], "intervals"),
                _restored(stored["marginals"], "marginals"),
                _restored(stored["pairs"], "pairs"),
                float(stored["level"]),
                one_of("parameters", stored["parameters"], PARAMETERS),
                _texts(stored["notes"]),
            )
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError, OptionError):
            problem = "The stored utility lacks a part; it may be of another version of synrisk."
        raise FileError(problem)


def utility(
    confidential: TableLike | Synthesizer,
    synthetic: TableLike | Sequence[TableLike],
    *,
    regressions: Regression | Sequence[Regression] | None = None,
    variables: Iterable[str] | None = None,
    synthesized: Iterable[str] | None = None,
    propensity: str | Sequence[str] = ("main", "interactions"),
    parameters: ParametersName = "posterior",
    level: float = 0.95,
    types: Types | None = None,
    id: str | None = None,  # noqa: A002 - the public name
    missing: Missing = "error",
    seed: int | None = None,
) -> Utility:
    """Measure how much of what the confidential data say a release still says.

    Parameters
    ----------
    confidential
        The confidential data (a frame, a CSV or Parquet file), or a `Synthesizer`, which holds
        them.
    synthetic
        The release: a synthetic dataset, or a list of them (frames or files).
    regressions
        Analyses whose confidence intervals are compared; those of the Synthesizer's plan where
        there is one and none are given. They are estimated without weights.
    variables
        The columns to compare: by default those that the plan uses, or all that both sides have.
    synthesized
        Those that are synthesized: by default the plan's, or those that are not equal row by row
        (or with the rows in another order, where that cannot be chance).
    propensity
        The models that try to tell both sides apart: ``"main"`` (logistic, main effects),
        ``"interactions"`` (and all products of two variables and squares), ``"cart"`` (a
        classification tree; the extra ``cart``), or several of these. Interactions are left out,
        and said to be, where they are too many for the rows.
    parameters
        ``"posterior"``: the synthesis drew its parameters from their posterior for each dataset, as
        `Synthesizer.synthesize` does. ``"fitted"``: it used one fit's parameters for all. The null
        distribution of the logistic pMSE and the variances of single datasets depend on it.
    level
        Of the confidence intervals.
    types, id, missing
        As in `fit`, for confidential data that are not in a Synthesizer. Where the release has the
        row of a record that ``missing="drop"`` leaves out, both are left out.
    seed
        Of the permutations of ``"cart"``.
    """
    models = _models(propensity)
    one_of("parameters", parameters, PARAMETERS)
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise OptionError("level must be a number between 0 and 1, such as 0.95.")
    start = checked_seed(seed)
    if variables is not None:
        variables = column_names("variables", variables)
    analyses = _analyses(regressions, confidential, variables)
    sides = read_sides(
        confidential,
        synthetic,
        analyses,
        variables=variables,
        synthesized=synthesized,
        types=types,
        id_column=id,
        missing=missing,
    )
    fitted = parameters == "fitted"
    scored, notes = _scored(sides, models, start, fitted=fitted)
    intervals, said = interval_table(sides, analyses, float(level), fitted=fitted)
    return Utility(
        confidential.n_records if isinstance(confidential, Synthesizer) else sides.n_records,
        sides.n_rows,
        sides.synthesized,
        scored,
        intervals,
        marginal_table(sides),
        pair_table(sides),
        float(level),
        parameters,
        (*sides.notes, *notes, *said),
    )


def _models(propensity: Any) -> tuple[str, ...]:
    named = (propensity,) if isinstance(propensity, str) else propensity
    if not isinstance(named, Sequence) or not named:
        raise OptionError(f"propensity must be one or several of {listed(MODELS)}.")
    for one in named:
        if not isinstance(one, str) or one not in MODELS:
            raise OptionError(
                f"propensity must be one or several of {listed(MODELS)}; got {got(one)}."
                f"{nearest(one, MODELS)}"
            )
    return tuple(dict.fromkeys(named))


def _analyses(
    regressions: Any, confidential: Any, variables: Iterable[str] | None
) -> tuple[Regression, ...]:
    """Return the regressions given, else those of the plan that need no other columns."""
    if regressions is not None:
        return _regressions(regressions)
    if not isinstance(confidential, Synthesizer):
        return ()
    plan = tuple(r.of_values for r in confidential.plan.regressions)
    if variables is None:
        return plan
    return tuple(r for r in plan if {r.response, *r.parsed.predictors} <= {*variables})


def _regressions(regressions: Any) -> tuple[Regression, ...]:
    given = (regressions,) if isinstance(regressions, Regression) else regressions
    # Analyses form no sequence: each is checked as a plan of its own.
    return tuple(of_one for one in _as_list(given) for of_one in Plan.of([one]).regressions)


def _as_list(given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise OptionError(f"regressions= is a Regression or a list of them; got {got(given)}.")
    return list(given)


def _scored(
    sides: Sides, models: Sequence[str], seed: int, *, fitted: bool
) -> tuple[pd.DataFrame, list[str]]:
    notes: list[str] = []
    rows = []
    for model in models:
        if model != "cart" and is_too_large(sides, model):
            notes.append(
                f"The propensity model with {_SAID[model]} would have "
                f"{n_columns(sides, model):,} columns, too many for these rows; it is left out."
            )
            continue
        found = [
            score_cart(sides, k, seed)
            if model == "cart"
            else score_logistic(sides, k, model, fitted=fitted)
            for k in range(len(sides.datasets))
        ]
        notes += _said(model, found)
        for number, one in enumerate(found, 1):
            rows.append(
                {
                    "model": model,
                    "dataset": number,
                    "pmse": one.pmse,
                    "expected": one.expected,
                    "sd": one.sd,
                    "ratio": one.ratio,
                    "z": one.z,
                    "specks": one.specks,
                    "n_parameters": one.n_parameters,
                    "n_left_out": one.n_left_out,
                }
            )
    columns = [
        "model", "dataset", "pmse", "expected", "sd", "ratio", "z", "specks", "n_parameters",
        "n_left_out",
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).set_index(["model", "dataset"]), notes


def _said(model: str, found: Sequence[Scored]) -> list[str]:
    """Return what to know about the scores of one model."""
    notes = []
    left_out = max(one.n_left_out for one in found)
    if left_out:
        notes.append(
            f"The propensity model with {_SAID[model]}: {counted(left_out, 'column')} that others "
            "determine left out."
        )
    if model != "cart" and any(one.separated for one in found):
        notes.append(
            f"The propensity model with {_SAID[model]} tells some rows apart almost for certain; "
            "a small ridge keeps its scores finite."
        )
    if any(not one.expected > 0 for one in found):
        notes.append(
            f"The propensity model with {_SAID[model]}: synthesized columns equal the confidential "
            "ones row by row, so there is no chance to measure against: is it a copy?"
        )
    return notes


def _mean(values: pd.Series[Any]) -> float:
    known = values.to_numpy(dtype=np.float64)
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else math.nan


def _largest(values: pd.Series[Any]) -> float:
    known = np.abs(values.to_numpy(dtype=np.float64))
    known = known[np.isfinite(known)]
    return float(known.max()) if len(known) else math.nan


def _stored(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Return columns as lists; numbers that JSON does not have as text or None."""
    plain = frame.reset_index()
    return {str(name): [_plain(value) for value in plain[name].tolist()] for name in plain.columns}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _texts(stored: Any) -> tuple[str, ...]:
    if not isinstance(stored, list) or not all(isinstance(text, str) for text in stored):
        raise TypeError
    return tuple(stored)


def _restored(stored: Mapping[str, Sequence[Any]], table: str) -> pd.DataFrame:
    """Return a table with all its columns, each of its kind, or raise."""
    index, columns = _TABLES[table]
    made: dict[str, Any] = {}
    for name in (*index, *columns):
        values = stored[name]
        if name in ("dataset", "n_parameters", "n_left_out"):
            made[name] = np.array([int(value) for value in values], dtype=np.int64)
        elif name == "synthesized":
            made[name] = np.array([bool(value) for value in values])
        elif name in _WORDS:
            made[name] = [one_of(name, value, _WORDS[name]) for value in values]
        elif name in index:
            made[name] = _texts(values)
        else:
            made[name] = [math.nan if value is None else float(value) for value in values]
    return pd.DataFrame(made).set_index(list(index))
