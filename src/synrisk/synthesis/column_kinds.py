"""What a column holds, told by its values, and the family that suits it.

A reason says in words why; it never holds a value of the data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import logit

from synrisk.base.arrays import FloatArray
from synrisk.data.schema import as_real_numbers
from synrisk.synthesis.identifiers import identifies, names_people
from synrisk.synthesis.rounding import are_too_wide

Kind: TypeAlias = Literal[
    "id", "text", "date", "constant", "other",
    "two classes", "classes", "ordered", "count", "measurement", "amount", "amount with zeros",
    "share",
]  # fmt: skip

LEFT_OUT: tuple[Kind, ...] = ("id", "text", "date", "constant", "other")
_MOST_LEVELS = 30  # of text that is taken for classes
_FEW = 12  # values of an answer or a band
_FEW_WHOLE = 10
_MOST_CODES = 30  # whole numbers from 0 or 1 on that have none between them
_PEOPLE_A_VALUE = 5.0  # of a number that takes few values
_PEOPLE_A_BAND = 10.0  # of one that is not whole, or leaves whole numbers out
_UNLIKE_A_COUNT = 0.2  # total variation between values and the count that has their moments
_UNLIKE_A_LONGER_COUNT = 0.1
_SMALLEST_COUNT = 2.0  # a count has values as small; years of age and scores have not
_SURELY_POSITIVE = 5.0  # standard deviations between the mean and 0
_RATHER_POSITIVE = 3.75  # of whole numbers that vary less than counts
_SKEWED = 1.5
_SKEWED_PREDICTOR = 1.0
_LEFT_SKEWED = -0.5  # of a logarithm, as that of a gamma variable is
_HEAVY_TAILED = 5.0  # excess kurtosis
_OVERDISPERSED = 1.3  # variance over mean of a count
_UNDERDISPERSED = 0.6
_OFTEN_ZERO = 0.02
_LARGE = 20.0  # whole numbers that are more like amounts than like counts
_VERY_LARGE = 1_000.0  # those that are amounts of money and the like: a step of 1 is nothing
_WIDE_SHARES = 0.6  # the span from which numbers between 0 and 1 are taken for shares
_NEARLY_ALL = 0.8
_MOST_DIGITS = 4
_MOST_DATES = 0.9
_LARGEST_WHOLE = 2.0**53
_PARTS_1 = 1e-9
_LEAST_SHARE = 0.001  # a step of shares
_DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ].*)?\s*"
)
_ID = re.compile(r"(.*[^A-Za-z])?[iI][dD]s?|.*[a-z]I[dD]s?")
_SHARE_NAME = re.compile(r"(?i).*(share|ratio|rate|percent|pct|prop|fraction|mtr).*")


_ROUNDED = {
    "gaussian": "rounded_gaussian", "rounded_gaussian": "rounded_gaussian",
    "student_t": "rounded_student_t", "lognormal": "rounded_lognormal", "gamma": "rounded_gamma",
    "beta": "rounded_beta", "hurdle_lognormal": "hurdle_lognormal",
}  # fmt: skip


@dataclass(frozen=True)
class ColumnKind:
    """What a column is taken for.

    Attributes
    ----------
    kind
        What it holds.
    families
        Those that suit it, the best first; none where it is left out.
    scale
        The function of it in which its model is about linear: "log", "log1p", "logit" or "".
    as_predictor
        How it enters a formula: the same where it is skewed.
    is_category
        Whether the data must be told that it holds levels.
    step
        What all values are multiples of, where that matters.
    reason
        Why, without a value of the data.
    """

    name: str
    kind: Kind
    reason: str
    families: tuple[str, ...] = ()
    scale: str = ""
    as_predictor: str = "{}"
    is_category: bool = False
    step: float = 1.0

    @property
    def has_levels(self) -> bool:
        """Whether its model is of levels."""
        return self.kind in ("two classes", "classes", "ordered")

    def on_grid(self, values: FloatArray, n_different: int) -> ColumnKind:
        """Return the kind with families of rounded values, where rounding is coarse or seen.

        All values are multiples of a step of which a standard deviation has few, by the measure of
        `synthesis.rounding`; of whole numbers only those of more than 1.
        """
        step = _common_step(values) if n_different > _FEW else 0.0
        families = tuple(_ROUNDED[name] for name in self.families if name in _ROUNDED)
        known = step == 1.0 and (set(families) & set(self.families) or self.kind == "amount")
        if not step or known or not families or not _is_coarse(values, step, self.scale):
            return self
        others = tuple(name for name in self.families if name not in families)
        told = "whole numbers" if step == 1.0 else f"multiples of {step:g}"
        reason = f"{self.reason}; all {told}, and few of these apart"
        return replace(self, families=families + others, reason=reason, step=step)


def kinds_of_columns(frame: pd.DataFrame) -> dict[str, ColumnKind]:
    """Return what each column of a table is taken for."""
    return {str(name): _kind(frame[name]) for name in frame.columns}


def _kind(column: pd.Series[Any]) -> ColumnKind:
    name, known = str(column.name), column.dropna()
    kinds = pd.api.types
    if kinds.is_datetime64_any_dtype(known.dtype) or kinds.is_timedelta64_dtype(known.dtype):
        return ColumnKind(name, "date", _OF_DATES)
    if not known.map(np.isscalar).all() or kinds.is_complex_dtype(known.dtype):
        return ColumnKind(name, "other", "holds neither numbers nor text")
    n_different = int(known.nunique())
    if n_different < 2:
        return ColumnKind(name, "constant", "has one value or none")
    if kinds.is_bool_dtype(known.dtype):
        return ColumnKind(name, "two classes", "true or false", ("bernoulli",))
    if kinds.is_numeric_dtype(known.dtype):
        called_id = _ID.fullmatch(name) is not None and identifies(column)
        if called_id or names_people(column) or _counts_groups(known):
            return ColumnKind(name, "id", "counts or names the records, or groups of them")
        return _kind_of_numbers(name, known.to_numpy(dtype=np.float64))
    return _kind_of_text(name, column, known, n_different)


_OF_DATES = "dates: there is no family for them; make numbers of them (days, years) to model them"


def _kind_of_text(
    name: str, column: pd.Series[Any], known: pd.Series[Any], n_different: int
) -> ColumnKind:
    dtype = known.dtype
    is_category = isinstance(dtype, pd.CategoricalDtype)
    if n_different == 2:
        return ColumnKind(name, "two classes", "two levels", ("bernoulli",))
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        return ColumnKind(name, "ordered", "levels in an order", ("ordered_logit", "categorical"))
    texts = known.astype(str)
    if texts.map(lambda text: bool(_DATE.fullmatch(text))).mean() >= _MOST_DATES:
        return ColumnKind(name, "date", _OF_DATES)
    nearly_all = n_different >= _NEARLY_ALL * len(known)
    if not is_category and nearly_all and names_people(column):
        return ColumnKind(name, "id", "text that nearly everybody alone has")
    if n_different > _MOST_LEVELS or (not is_category and identifies(column)):
        return ColumnKind(name, "text", "text with many levels, or words that may name people")
    looks_numeric = 2 * as_real_numbers(known)[1] < len(known)
    reason = (
        "text with few levels; if these have an order, list them in types and take ordered_logit"
    )
    return ColumnKind(name, "classes", reason, ("categorical",), is_category=looks_numeric)


def _counts_groups(known: pd.Series[Any]) -> bool:
    """Tell whether whole numbers count groups of rows that stand together: households, persons."""
    values = known.to_numpy(dtype=np.float64)
    steps = np.diff(values)
    n_groups = int((steps != 0).sum()) + 1
    return bool(np.isin(steps, (0.0, 1.0)).all()) and n_groups > _MOST_LEVELS


def _kind_of_numbers(name: str, values: FloatArray) -> ColumnKind:
    different, counts = np.unique(values, return_counts=True)
    if len(different) == 2:
        is_category = not np.array_equal(different, [0.0, 1.0])
        return ColumnKind(
            name, "two classes", "two values", ("bernoulli",), is_category=is_category
        )
    finite = values[np.isfinite(values)]  # others are refused when a study runs
    whole = bool((finite == np.rint(finite)).all())
    ordered = _ordered_reason(different, counts, whole)
    if ordered:
        return ColumnKind(name, "ordered", ordered, ("ordered_logit", "categorical"))
    is_whole = whole and finite.min() >= 0
    own = (_kind_of_whole_numbers if is_whole else _kind_of_any_numbers)(name, finite)
    return own.on_grid(finite, len(different))


def _ordered_reason(different: FloatArray, counts: Any, whole: bool) -> str:
    """Say why few values are answers or bands in an order; "" where they are not."""
    n, k = int(counts.sum()), len(different)
    consecutive = whole and different[-1] - different[0] + 1 == k
    if consecutive and n >= _PEOPLE_A_VALUE * k and different[0] in (0.0, 1.0):
        if k <= _FEW_WHOLE and different[0] == 1.0:
            return "whole numbers from 1 on, few and all there: answers or grades in an order"
        unlike = _unlike_a_count(different, counts)
        if k <= _FEW_WHOLE and unlike > _UNLIKE_A_COUNT:
            return "few whole numbers, spread as answers are and counts are not"
        mean, sd = _moments(different, counts)
        short = mean < _RATHER_POSITIVE * sd
        if _FEW_WHOLE < k <= _MOST_CODES and short and unlike > _UNLIKE_A_LONGER_COUNT:
            return "whole numbers without a gap, spread as bands are and counts are not"
        return ""
    if consecutive and k <= _FEW_WHOLE and n >= _PEOPLE_A_VALUE * k and different[0] > 1.0:
        return "few whole numbers: levels in an order"
    if not consecutive and k <= _FEW and n >= _PEOPLE_A_BAND * k:
        return "few values that leave out those between: bands in an order"
    return ""


def _moments(different: FloatArray, counts: Any) -> tuple[float, float]:
    mean = float(np.average(different, weights=counts))
    return mean, float(np.sqrt(np.average((different - mean) ** 2, weights=counts)))


def _unlike_a_count(different: FloatArray, counts: Any) -> float:
    """Return how far values are from a Poisson or negative binomial with their moments."""
    from scipy.stats import nbinom, poisson  # which take long to import

    mean, sd = _moments(different, counts)
    at = np.arange(different[-1] + 1)
    own = np.zeros(len(at))
    own[different.astype(np.int64)] = counts / counts.sum()
    if sd**2 > mean:
        shape = mean**2 / (sd**2 - mean)
        theirs = nbinom.pmf(at, shape, shape / (shape + mean))
    else:
        theirs = poisson.pmf(at, mean)
    return float(0.5 * (np.abs(own - theirs).sum() + max(0.0, 1.0 - theirs.sum())))


def _kind_of_whole_numbers(name: str, values: FloatArray) -> ColumnKind:
    mean, sd, least = float(values.mean()), float(values.std()), float(values.min())
    zeros = float((values == 0).mean())
    ratio = sd**2 / mean
    rarely_small = (values <= _SMALLEST_COUNT).mean() < _OFTEN_ZERO and np.median(values) > _LARGE
    if least > _SMALLEST_COUNT or (least > 0.0 and rarely_small):
        if mean > _SURELY_POSITIVE * sd or (ratio < 1.0 and mean > _RATHER_POSITIVE * sd):
            reason = "whole numbers about a middle, far from 0"
            return ColumnKind(name, "measurement", reason, ("rounded_gaussian",))
        reason = "whole numbers above 0, some of them large"
        families = ("negative_binomial", "lognormal")
        if np.median(values) > _VERY_LARGE:
            families = ("lognormal", "negative_binomial")
        term = _term_of_amounts(values)
        return ColumnKind(name, "amount", reason, families, "log", term)
    if ratio < _UNDERDISPERSED and mean > _RATHER_POSITIVE * sd:
        reason = "whole numbers about a middle that vary less than counts"
        return ColumnKind(name, "measurement", reason, ("rounded_gaussian", "poisson"))
    term = "log1p({})" if float(values.max()) > _LARGE else "{}"
    if zeros > _OFTEN_ZERO and np.median(values[values > 0]) > _LARGE:
        reason = "whole amounts, and many that are 0"
        families = ("hurdle_lognormal", "negative_binomial")
        return ColumnKind(name, "amount with zeros", reason, families, "log1p", term)
    if ratio > _OVERDISPERSED:
        reason = "whole numbers from 0 that vary more than their mean"
        return ColumnKind(name, "count", reason, ("negative_binomial",), "log1p", term)
    reason = "whole numbers from 0 that vary about as much as their mean"
    return ColumnKind(name, "count", reason, ("poisson",), "log1p", term)


def _kind_of_any_numbers(name: str, values: FloatArray) -> ColumnKind:
    from scipy.stats import kurtosis, skew  # which take long to import

    mean, sd, least, largest = (
        float(f(values)) for f in (np.mean, np.std, np.min, np.max)
    )  # fmt: skip
    whole = bool((values == np.rint(values)).all())
    if (
        least > 0.0
        and largest < 1.0
        and (largest - least > _WIDE_SHARES or _SHARE_NAME.match(name))
    ):
        return ColumnKind(name, "share", "between 0 and 1", ("beta",), "logit")
    if least == 0.0:
        return _kind_of_amounts_with_zeros(name, values)
    skewness = float(skew(values))
    if least > 0.0 and (mean < _SURELY_POSITIVE * sd or skewness > _SKEWED):
        reason = "above 0 and skewed, or near enough to 0 for a normal model to go below"
        families = ("lognormal", "gamma")
        if float(skew(np.log(values))) < _LEFT_SKEWED:
            reason, families = "above 0, its logarithm skewed to the left", ("gamma", "lognormal")
        return ColumnKind(name, "amount", reason, families, "log", _term_of_amounts(values))
    if whole:
        reason = "whole numbers about a middle"
        return ColumnKind(name, "measurement", reason, ("rounded_gaussian",))
    if float(kurtosis(values)) > _HEAVY_TAILED:
        reason = "numbers about a middle, some of them far away"
        return ColumnKind(name, "measurement", reason, ("student_t", "gaussian"))
    return ColumnKind(name, "measurement", "numbers about a middle", ("gaussian",))


def _kind_of_amounts_with_zeros(name: str, values: FloatArray) -> ColumnKind:
    """Return that of amounts that are not whole; their model needs a grid."""
    for digits in range(1, _MOST_DIGITS + 1):
        scaled = values * 10.0**digits
        if np.allclose(scaled, np.rint(scaled), rtol=1e-12, atol=1e-7):
            reason = f"not whole, some 0 and none below, {digits} decimal digits"
            families = ("hurdle_lognormal",)
            step = float(f"1e-{digits}")
            kind = ColumnKind(name, "amount with zeros", reason, families, "log1p", "log1p({})")
            return replace(kind, step=step)
    reason = (
        f"not whole, some 0 and none below, more than {_MOST_DIGITS} decimal digits: round it, "
        "and hurdle_lognormal is a model of it"
    )
    return ColumnKind(name, "amount with zeros", reason)


def _common_step(values: FloatArray) -> float:
    """Return what all values are multiples of, with few digits; 0 where there is nothing."""
    for digits in range(_MOST_DIGITS + 1):
        scaled = values * 10.0**digits
        if np.abs(scaled).max() > _LARGEST_WHOLE:
            return 0.0
        if np.allclose(scaled, np.rint(scaled), rtol=1e-12, atol=1e-7):
            step = int(np.gcd.reduce(np.rint(scaled).astype(np.int64)))
            return step / 10.0**digits
    return 0.0


def _is_coarse(values: FloatArray, step: float, scale: str) -> bool:
    """Tell whether a standard deviation of values, on their model's scale, has few steps."""
    if scale == "logit":
        parts = 1.0 / step
        if abs(parts - round(parts)) > _PARTS_1 or not step >= _LEAST_SHARE:
            return False
        inside = np.clip(values, 0.25 * step, 1.0 - 0.25 * step)
        return are_too_wide(step / (inside * (1.0 - inside)), float(np.std(logit(inside))))
    if scale:  # amounts, those above 0
        above = values[values > 0]
        return are_too_wide(step / above, float(np.std(np.log(above))))
    return are_too_wide(np.full(len(values), step), float(np.std(values)))


def _term_of_amounts(values: FloatArray) -> str:
    """Return how amounts enter a formula: their logarithm where they are skewed."""
    from scipy.stats import skew  # which takes long to import

    return "log({})" if float(skew(values)) > _SKEWED_PREDICTOR else "{}"
