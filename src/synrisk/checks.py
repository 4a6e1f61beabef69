"""Checks that stand beside the risk, which assumes that the release came from these models.

A plain copy of the confidential data looks safest of all, since only sufficient statistics enter; a
release that has nothing to do with the models looks worst (METHOD §6). So the fits to the
confidential and to the synthetic data are compared, copied rows are looked for, and levels and
counts are compared with those of the record that a row stands for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.stats import binom, chi2

from synrisk.errors import SynriskError
from synrisk.executors import Executor
from synrisk.model import Model
from synrisk.release import Released
from synrisk.schema import FloatArray, IntArray
from synrisk.synthesizer import Synthesizer

TAIL = 1e-3  # of χ², on either side
_RADIUS = 1e-3  # in standard deviations of each variable
_CHANCE = 4.0  # standard deviations of a difference of counts
_MORE_COPIES = 0.01  # share of rows beyond what the confidential data have among themselves
_NEARLY_ALL = 0.9  # of the rows
_N_CHANCES = 100  # draws over which chance agreement is averaged
_DISTANCE = ["variable", "dataset", "d2", "df", "p_smaller"]
_COPIES = ["dataset", "n_rows", "exact", "near", "exact_own", "near_own"]
_AGREEMENT = ["variable", "dataset", "n_rows", "agree", "expected", "sd"]


def _no_agreement() -> pd.DataFrame:
    return pd.DataFrame(columns=_AGREEMENT).set_index(["variable", "dataset"])


@dataclass(frozen=True, eq=False)
class ReleaseChecks:
    """What was found about a release.

    Attributes
    ----------
    distance
        A row a model and dataset: D² between the fits, its degrees of freedom, and the probability
        of a smaller one if the release came from the model; NaN where draws made elsewhere are too
        few, or of the synthetic rows no fit can be made.
    copies
        A row a dataset: how many synthetic rows hold a confidential record's values in all
        continuous synthesized variables, how many come within a thousandth of a standard deviation,
        and how many confidential records do so among themselves.
    agreement
        A row a variable of levels or counts and a dataset whose rows stand for records: how many
        hold their record's value, and how many would if the model had drawn them, with its
        standard deviation.
    """

    distance: pd.DataFrame
    copies: pd.DataFrame
    agreement: pd.DataFrame = field(default_factory=_no_agreement)

    @property
    def failures(self) -> tuple[str, ...]:
        """What is wrong, in plain words."""
        found = []
        for key, row in zip(self.distance.index, self.distance.to_dict("records"), strict=True):
            variable, number = key
            if row["p_smaller"] > 1.0 - TAIL:
                found.append(
                    f"Dataset {number} does not look as if it came from the model of {variable}: "
                    f"the fits differ by D² = {row['d2']:.1f} with {row['df']:.0f} degrees of "
                    "freedom. The risk assumes that it did."
                )
            elif row["p_smaller"] < TAIL:
                found.append(
                    f"Dataset {number} follows the confidential data of {variable} more closely "
                    f"than its model would (D² = {row['d2']:.3f} with {row['df']:.0f} degrees of "
                    "freedom): was it copied or adjusted? The risk does not see that."
                )
        copies = self.copies.to_dict("records")
        for number, row, copied in zip(self.copies.index, copies, self.copied, strict=True):
            if copied:
                found.append(
                    f"{row['exact']:,.0f} of {row['n_rows']:,.0f} rows of dataset {number} are "
                    f"copies of confidential records, {row['near']:,.0f} nearly so. The risk does "
                    "not see copies."
                )
        agreements = self.agreement.to_dict("records")
        for key, row, agrees in zip(self.agreement.index, agreements, self.agreeing, strict=True):
            if agrees:
                variable, number = key
                found.append(
                    f"{row['agree']:,.0f} of {row['n_rows']:,.0f} rows of dataset {number} hold "
                    f"the {variable} of the confidential record that they stand for; the model "
                    f"would give about {row['expected']:,.0f}: was it copied? The risk does not "
                    "see that."
                )
        return tuple(found)

    @property
    def unchecked(self) -> tuple[tuple[str, int], ...]:
        """The variables and datasets whose fits could not be compared."""
        return tuple(self.distance.index[self.distance["p_smaller"].isna()])

    def status(self, variable: str | None = None) -> str:
        """Return "passed", "failed" or "not known" for a variable, or for the whole release.

        Copies are looked for in all continuous variables at once: they count for the whole.
        """
        rows = self.distance
        if variable is not None:
            rows = rows[rows.index.get_level_values("variable") == variable]
        p = rows["p_smaller"].to_numpy(dtype=np.float64)
        together = self.agreement.index[list(self.agreeing)].get_level_values("variable")
        if len(together) if variable is None else variable in together:
            return "failed"
        if ((p < TAIL) | (p > 1.0 - TAIL)).any() or (variable is None and any(self.copied)):
            return "failed"
        return "passed" if len(p) and np.isfinite(p).all() else "not known"

    @property
    def copied(self) -> tuple[bool, ...]:
        """For each dataset, whether more of its rows are near confidential records than should."""
        return tuple(
            _all_copied(row["exact"], row["exact_own"], row["n_rows"])
            or _too_many(row["exact"], row["exact_own"], row["n_rows"])
            or _too_many(row["near"], row["near_own"], row["n_rows"])
            for row in self.copies.to_dict("records")
        )

    @property
    def agreeing(self) -> tuple[bool, ...]:
        """For each row of `agreement`, whether more hold their record's value than should."""
        return tuple(_agrees_too_often(row) for row in self.agreement.to_dict("records"))

    def to_json(self) -> dict[str, Any]:
        """Return the checks as JSON has them."""
        return {
            "distance": _without_nan(self.distance.reset_index()),
            "copies": _without_nan(self.copies.reset_index()),
            "agreement": _without_nan(self.agreement.reset_index()),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ReleaseChecks:
        """Return what `to_json` stored."""
        numbers = {"d2": np.float64, "df": np.float64, "p_smaller": np.float64}
        distance = pd.DataFrame(stored["distance"]).astype(numbers)
        distance = distance.set_index(["variable", "dataset"])
        copies = pd.DataFrame(stored["copies"]).set_index("dataset")
        if "agreement" not in stored:  # in files of before there was one
            return cls(distance, copies)
        agreement = pd.DataFrame(stored["agreement"]).set_index(["variable", "dataset"])
        return cls(distance, copies, agreement)


def _without_nan(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Return columns as lists with None for NaN, which JSON does not have."""
    return {
        str(name): [None if value != value else value for value in frame[name].tolist()]
        for name in frame.columns
    }


def _too_many(found: float, own: float, n_rows: float) -> bool:
    """Tell whether there are more near rows than among confidential records, and than by chance."""
    return bool(found - own > _MORE_COPIES * n_rows + _CHANCE * np.sqrt(found + own))


def _all_copied(exact: float, own: float, n_rows: float) -> bool:
    """Tell whether nearly all rows are copies, however few, though records seldom repeat."""
    share = min(own / n_rows, 1.0)
    seldom = share < 0.5 or binom.sf(exact - 1, n_rows, share) < TAIL
    return bool(exact >= max(_NEARLY_ALL * n_rows, 1.0) and seldom)


def _agrees_too_often(row: Mapping[Any, Any]) -> bool:
    """Tell whether rows hold their records' values more often than the model would draw them."""
    beyond = row["agree"] - row["expected"] > _CHANCE * row["sd"]
    # Of few rows the count is not normal.
    chance = min(row["expected"] / row["n_rows"], 1.0)
    return bool(beyond and binom.sf(row["agree"] - 1, row["n_rows"], chance) < TAIL)


def check_release(
    synthesizer: Synthesizer, release: Sequence[Released], executor: Executor
) -> ReleaseChecks:
    """Compare the fits to the confidential and to each synthetic dataset, and look for copies."""
    rows = []
    for model in synthesizer.models:
        own, df = synthesizer.moments_given_everybody(model, executor), len(model.posterior.names)
        for number, dataset in enumerate(release, 1):
            alone = None
            # Too few or too odd rows have no fit of their own: nothing to compare. Fewer rows than
            # parameters have one by the prior alone.
            if own is not None and len(dataset.columns[model.regression.response]) >= df:
                with contextlib.suppress(SynriskError):
                    alone = synthesizer.moments_given_release(model, dataset, executor)
            d2 = _distance(own, alone)
            rows.append(
                {
                    "variable": model.regression.response,
                    "dataset": number,
                    "d2": d2,
                    "df": float(df),
                    "p_smaller": float(chi2.cdf(d2, df)),
                }
            )
    distance = pd.DataFrame(rows, columns=_DISTANCE).set_index(["variable", "dataset"])
    return ReleaseChecks(distance, _copies(synthesizer, release), _agreement(synthesizer, release))


def _distance(
    one: tuple[FloatArray, FloatArray] | None, other: tuple[FloatArray, FloatArray] | None
) -> float:
    """Return Δ'(V + V')⁻¹Δ of two posteriors; NaN where one is not known."""
    if one is not None and other is not None:
        apart = one[0] - other[0]
        with contextlib.suppress(np.linalg.LinAlgError):
            return float(apart @ np.linalg.solve(one[1] + other[1], apart))
    return float("nan")


def _copies(synthesizer: Synthesizer, release: Sequence[Released]) -> pd.DataFrame:
    """Count synthetic rows at or near a confidential record's continuous synthesized values."""
    names = [
        regression.response
        for regression in synthesizer.plan.regressions
        if regression.distribution.is_continuous
    ]
    if not names:
        return pd.DataFrame(columns=_COPIES).set_index("dataset")
    own = np.column_stack([synthesizer.columns[name] for name in names])
    with np.errstate(over="ignore"):
        spread = own.std(axis=0)
    spread = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
    tree = cKDTree(own / spread)
    # A record's nearest is itself; a missing second one is infinitely far.
    beside = np.asarray(tree.query(own / spread, k=[2], p=np.inf)[0])[:, 0]
    rows = []
    for number, dataset in enumerate(release, 1):
        values = np.column_stack([dataset.columns[name] for name in names]) / spread
        nearest = np.asarray(tree.query(values, p=np.inf)[0])
        share = len(values) / len(own)
        rows.append(
            {
                "dataset": number,
                "n_rows": len(values),
                "exact": int((nearest == 0).sum()),
                "near": int((nearest <= _RADIUS).sum()),
                "exact_own": share * int((beside == 0).sum()),
                "near_own": share * int((beside <= _RADIUS).sum()),
            }
        )
    return pd.DataFrame(rows, columns=_COPIES).set_index("dataset")


def _agreement(synthesizer: Synthesizer, release: Sequence[Released]) -> pd.DataFrame:
    """Count rows with the level or count of their record, beside what the model would give."""
    discrete = [m for m in synthesizer.models if not m.regression.distribution.is_continuous]
    rows = []
    for number, dataset in enumerate(release, 1):
        if not discrete:
            break
        mine, theirs = _linked(synthesizer, dataset)
        for model in discrete if len(mine) else ():
            name = model.regression.response
            truth = synthesizer.columns[name][mine]
            expected, sd = _chance(synthesizer, model, dataset, truth.astype(np.float64), theirs)
            agree = int((dataset.columns[name][theirs] == truth).sum())
            values = (name, number, len(mine), agree, expected, sd)
            rows.append(dict(zip(_AGREEMENT, values, strict=True)))
    return pd.DataFrame(rows, columns=_AGREEMENT).set_index(["variable", "dataset"])


def _linked(synthesizer: Synthesizer, dataset: Released) -> tuple[IntArray, IntArray]:
    """Return the records, and the rows that stand for them.

    By columns that are not synthesized, where these name most rows' record; else by place, where
    there are as many rows as records; else there are none.
    """
    kept = [n for n in synthesizer.plan.columns if n not in synthesizer.plan.synthesized]
    n_rows = len(dataset.columns[synthesizer.plan.synthesized[0]])
    if kept:
        keys = [f"key{k}" for k in range(len(kept))]
        own, released = (
            pd.DataFrame({key: of[name] for key, name in zip(keys, kept, strict=True)})
            for of in (synthesizer.columns, dataset.columns)
        )
        own = own.assign(place=np.arange(len(own))).drop_duplicates(keys, keep=False)
        places = released.merge(own, how="left", on=keys)["place"].fillna(-1).to_numpy(np.int64)
        rows = np.flatnonzero(places >= 0)
        if 2 * len(rows) >= n_rows:
            return places[rows], rows
    places = np.arange(n_rows if n_rows == synthesizer.n_records else 0)
    return places, places


def _chance(
    synthesizer: Synthesizer, model: Model, dataset: Released, truth: FloatArray, rows: IntArray
) -> tuple[float, float]:
    """Return how many rows the model would give `truth`, and the standard deviation of that."""
    regression, draws = model.regression, model.posterior
    matrix = synthesizer.released_design(model, dataset)[rows]
    y = regression.on_model_scale(truth)
    # Draws by their weight, the parameters being as uncertain as they are.
    steps = (np.arange(_N_CHANCES) + 0.5) / _N_CHANCES
    chosen = np.searchsorted(np.cumsum(np.exp(draws.log_weights)), steps)
    means, variances = [], []
    for h in np.minimum(chosen, draws.n_draws - 1):
        auxiliary = np.broadcast_to(draws.auxiliary[h], (len(y), draws.auxiliary.shape[1]))
        eta = matrix @ draws.coefficients[h]
        with np.errstate(over="ignore"):  # rates beyond all numbers
            p = np.exp(regression.distribution.log_density(y, eta, auxiliary))
        means.append(p.sum())
        variances.append((p * (1.0 - p)).sum())
    return float(np.mean(means)), float(np.sqrt(np.mean(variances) + np.var(means)))
