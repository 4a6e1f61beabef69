"""Two checks that stand beside the risk, which assumes that the release came from these models.

A plain copy of the confidential data looks safest of all, since only sufficient statistics enter; a
release that has nothing to do with the models looks worst (METHOD §6). So the fits to the
confidential and to the synthetic data are compared, and copied rows are looked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from scipy.stats import chi2

from synrisk.errors import SynriskError
from synrisk.executors import Executor
from synrisk.release import Released
from synrisk.schema import FloatArray
from synrisk.synthesizer import Synthesizer

TAIL = 1e-3  # of χ², on either side
_DRAWS_A_PARAMETER = 20  # for the covariance of draws to be known
_RADIUS = 1e-3  # in standard deviations of each variable
_CHANCE = 4.0  # standard deviations of a difference of counts
_MORE_COPIES = 0.01  # share of rows beyond what the confidential data have among themselves


@dataclass(frozen=True, eq=False)
class ReleaseChecks:
    """What was found about a release.

    Attributes
    ----------
    distance
        A row a model and dataset: D² between the fits, its degrees of freedom, and the probability
        of a smaller one if the release came from the model; NaN where there are too few draws, or
        synthetic rows of which no fit can be made.
    copies
        A row a dataset: how many synthetic rows hold a confidential record's values in all
        continuous synthesized variables, how many come within a thousandth of a standard deviation,
        and how many confidential records do so among themselves.
    """

    distance: pd.DataFrame
    copies: pd.DataFrame

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
        return tuple(found)

    def status(self, variable: str | None = None) -> str:
        """Return "passed", "failed" or "not known" for a variable, or for the whole release.

        Copies are looked for in all continuous variables at once: they count for the whole.
        """
        rows = self.distance
        if variable is not None:
            rows = rows[rows.index.get_level_values("variable") == variable]
        p = rows["p_smaller"].to_numpy(dtype=np.float64)
        if ((p < TAIL) | (p > 1.0 - TAIL)).any() or (variable is None and any(self.copied)):
            return "failed"
        return "passed" if len(p) and np.isfinite(p).all() else "not known"

    @property
    def copied(self) -> tuple[bool, ...]:
        """For each dataset, whether more of its rows are near confidential records than should."""
        return tuple(
            _too_many(row["exact"], row["exact_own"], row["n_rows"])
            or _too_many(row["near"], row["near_own"], row["n_rows"])
            for row in self.copies.to_dict("records")
        )

    def to_json(self) -> dict[str, Any]:
        """Return the checks as JSON has them."""
        return {
            "distance": _without_nan(self.distance.reset_index()),
            "copies": _without_nan(self.copies.reset_index()),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ReleaseChecks:
        """Return what `to_json` stored."""
        numbers = {"d2": np.float64, "df": np.float64, "p_smaller": np.float64}
        distance = pd.DataFrame(stored["distance"]).astype(numbers)
        distance = distance.set_index(["variable", "dataset"])
        copies = pd.DataFrame(stored["copies"])
        return cls(distance, copies.set_index("dataset"))


def _without_nan(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Return columns as lists with None for NaN, which JSON does not have."""
    return {
        str(name): [None if value != value else value for value in frame[name].tolist()]
        for name in frame.columns
    }


def _too_many(found: float, own: float, n_rows: float) -> bool:
    """Tell whether there are more near rows than among confidential records, and than by chance."""
    return bool(found - own > _MORE_COPIES * n_rows + _CHANCE * np.sqrt(found + own))


def check_release(
    synthesizer: Synthesizer, release: Sequence[Released], executor: Executor
) -> ReleaseChecks:
    """Compare the fits to the confidential and to each synthetic dataset, and look for copies."""
    rows = []
    for model in synthesizer.models:
        if model.fit is None:
            continue
        own = synthesizer.moments(model, [], executor, confidential=True)
        for number, dataset in enumerate(release, 1):
            alone = None
            # Too few or too odd rows have no fit of their own: nothing to compare.
            with contextlib.suppress(SynriskError):
                alone = synthesizer.moments(model, [dataset], executor, confidential=False)
            d2, df = _distance(own, alone), float(len(model.posterior.names))
            rows.append(
                {
                    "variable": model.regression.response,
                    "dataset": number,
                    "d2": d2,
                    "df": df,
                    "p_smaller": float(chi2.cdf(d2, df)),
                }
            )
    columns = ["variable", "dataset", "d2", "df", "p_smaller"]
    distance = pd.DataFrame(rows, columns=columns).set_index(["variable", "dataset"])
    return ReleaseChecks(distance, _copies(synthesizer, release))


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
    columns = ["dataset", "n_rows", "exact", "near", "exact_own", "near_own"]
    if not names:
        return pd.DataFrame(columns=columns).set_index("dataset")
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
    return pd.DataFrame(rows, columns=columns).set_index("dataset")
