"""Posterior predictive checks: do the models give such values as the confidential data have?

Each model draws its response for the confidential records many times (their own predictors, a draw
of the parameters each). What is told of the data, the share of zeros, the variance, the skewness
and the ends of what the model leaves unexplained, should look like one more of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import FitError
from synrisk.base.seeds import stream
from synrisk.data.schema import Columns, Factor, Numeric, Variable
from synrisk.models.families import FAMILIES, Family
from synrisk.synthesis.variable_model import VariableModel

_N_REPLICATES, _MOST_VALUES = 100, 2_000_000
_LEAST_RECORDS = 20
_FAR = 4.0  # standard deviations of the replicates, beyond all of which the data must lie
_LEAST_SHARE = 0.02  # by which shares of zeros must differ
_LEAST_RATIO = 1.2  # of variances, and of the ends
_LEAST_SKEWNESS = 0.5
_IMPOSSIBLE = 0.001  # of the values

Checked: TypeAlias = Literal["zeros", "variance", "skewness", "smallest", "largest", "impossible"]


@dataclass(frozen=True)
class PredictiveCheck:
    """How a statistic of the confidential data compares with what a model gives.

    Attributes
    ----------
    variable
        The response.
    checked
        ``"zeros"``: their share. ``"variance"``, ``"skewness"``, ``"smallest"``, ``"largest"``: of
        the response less what the model expects of it, on the model's scale. ``"impossible"``: the
        share of values below 0, or above 1, where the confidential data have none.
    confidential
        The statistic of the confidential data.
    expected, sd
        Its mean and standard deviation over what the model draws.
    is_misfit
        Whether the data lie beyond all that the model draws, and by so much that it matters.
    """

    variable: str
    checked: Checked
    confidential: float
    expected: float
    sd: float
    is_misfit: bool
    remedy: str = ""

    @property
    def words(self) -> str:
        """What does not fit, without a person's value."""
        more = self.confidential > self.expected
        return {
            "zeros": (
                f"{_percent(self.confidential)} of the values are 0, and the model gives "
                f"{_percent(self.expected)}"
            ),
            "variance": f"the values vary {'more' if more else 'less'} than the model lets them",
            "skewness": f"they are skewed to the {'right' if more else 'left'} of the model's",
            "smallest": "the smallest lie further out than the model's",
            "largest": "the largest lie further out than the model's",
            "impossible": (
                f"{_percent(self.expected)} of what the model gives lies where the data have "
                "nothing (below 0, above 1, or outside a declared range)"
            ),
        }[self.checked]


def misfit_notes(checks: Iterable[PredictiveCheck]) -> list[str]:
    """Return a sentence for each variable that does not fit, and what would mend it."""
    by_variable: dict[str, list[PredictiveCheck]] = {}
    for one in checks:
        if one.is_misfit:
            by_variable.setdefault(one.variable, []).append(one)
    notes = []
    for name, misfits in by_variable.items():
        found = "; ".join(one.words for one in misfits)
        # One cause shows in several ways, and the first of them tells most about it.
        notes.append(f"{name} does not fit its model: {found}. {misfits[0].remedy}")
    return notes


def check_predictions(
    model: VariableModel, variable: Variable, columns: Columns
) -> tuple[PredictiveCheck, ...]:
    """Compare the confidential data with what a model draws for the same records.

    Nothing is compared of factors, of a model with record weights (it is of a population, not of
    these records), or with fewer than 20 records.
    """
    regression = model.regression
    family = regression.distribution
    values = np.asarray(columns[model.response], dtype=np.float64)
    is_number = not isinstance(variable, Factor) and family.all_values(variable) is None
    if not is_number or regression.weights is not None or len(values) < _LEAST_RECORDS:
        return ()
    rows = np.arange(0, len(values), -(-len(values) * _N_REPLICATES // _MOST_VALUES))
    on_scale, own_values = regression.on_model_scale(values[rows]), values[rows]
    try:
        drawn = _replicates(model, {name: of[rows] for name, of in columns.items()}, len(rows))
    except FitError:  # told where a release is drawn
        return ()
    with np.errstate(all="ignore"):
        own = np.asarray(regression.transform.inverse(drawn))
    if not np.isfinite(own).all():
        return ()
    expected = drawn.mean(axis=0)
    errors, drawn_errors = on_scale - expected, drawn - expected
    checks = [_zeros(own_values, own), _impossible(own_values, own, variable)]
    if family.is_continuous:
        checks.append(_compared("skewness", _skewness, errors, drawn_errors))
    else:
        checks.append(_compared("variance", _variance, errors, drawn_errors))
    checks += [
        _compared("smallest", _smallest, errors, drawn_errors),
        _compared("largest", _largest, errors, drawn_errors),
    ]
    return tuple(
        replace(one, variable=model.response, remedy=_remedy(one, family, own_values))
        for one in checks
    )


def _remedy(check: PredictiveCheck, family: Family, values: FloatArray) -> str:
    """Say which family or transform would fit better, of those that there are."""
    more = check.confidential > check.expected
    amounts = f"log(…) of it{_families('lognormal', 'gamma')}"
    if check.checked == "zeros":
        if family.is_continuous:
            return f"Model whether it is 0 as a variable of its own{_families('hurdle_lognormal')}."
        if not more:
            return f"Leave predictors in that part zeros from others{_families('hurdle_poisson')}."
        return f"Try predictors of the zeros{_families('negative_binomial', 'zero_inflated')}."
    if check.checked == "variance":
        return (
            f"Try further predictors{_families('negative_binomial')}."
            if more
            else "Declare its levels as a factor, if these are few."
        )
    if check.checked in ("impossible", "skewness"):
        if values.min() >= 0 and values.max() <= 1:
            return f"Model it within its bounds{_families('beta')}."
        if values.min() > 0 and (more or check.checked == "impossible"):
            return f"Model {amounts}."
    if check.checked == "impossible":
        return f"Model log1p(…) of it{_families('hurdle_lognormal')}."
    if family.is_continuous:
        return f"Try further predictors or a transform{_families('student')}."
    return f"Try further predictors{_families('negative_binomial')}."


def _families(*names: str) -> str:
    """Return which of some families there are, to be added to a sentence."""
    there = [f'family="{one.name}"' for one in FAMILIES if one.name.startswith(names)]
    return f", or {' or '.join(there)}" if there else ""


def _replicates(model: VariableModel, columns: Columns, n_rows: int) -> FloatArray:
    """Return responses on the model's scale, ``(replicate, record)``."""
    rng = stream(0, "predictive checks", variable=model.response)
    what = "The predictive check"
    return np.stack(
        [
            model.sample(columns, n_rows, model.posterior_draw(rng), rng, what)
            for _ in range(_N_REPLICATES)
        ]
    )


def _compared(
    checked: Checked, statistic: Callable[[FloatArray], FloatArray], data: FloatArray,
    drawn: FloatArray,
) -> PredictiveCheck:  # fmt: skip
    """Compare a statistic, by rows."""
    with np.errstate(all="ignore"):  # of numbers beyond squaring nothing is told
        own, theirs = float(statistic(data[None])[0]), statistic(drawn)
        mean, sd = float(theirs.mean()), float(theirs.std(ddof=1))
    beyond = own > theirs.max() or own < theirs.min()
    if checked == "skewness":
        matters = abs(own - mean) > _LEAST_SKEWNESS
    elif checked == "variance":
        matters = not mean / _LEAST_RATIO <= own <= mean * _LEAST_RATIO
    else:
        matters = abs(own) > _LEAST_RATIO * abs(mean)  # nearer than the model's is no harm
    is_misfit = bool(beyond and matters and abs(own - mean) > _FAR * sd)
    return PredictiveCheck("", checked, own, mean, sd, is_misfit)


def _zeros(values: FloatArray, drawn: FloatArray) -> PredictiveCheck:
    own, theirs = float((values == 0).mean()), (drawn == 0).mean(axis=1)
    mean, sd = float(theirs.mean()), float(theirs.std(ddof=1))
    by_chance = math.sqrt(max(own * (1.0 - own), 1e-12) / len(values))
    far = abs(own - mean) > max(_FAR * max(sd, by_chance), _LEAST_SHARE)
    return PredictiveCheck("", "zeros", own, mean, sd, far)


def _impossible(values: FloatArray, drawn: FloatArray, variable: Variable) -> PredictiveCheck:
    """Compare the shares of values outside what the data, or somebody, say that there is."""
    low = 0.0 if values.min() >= 0 else -math.inf
    high = 1.0 if low == 0.0 and values.max() <= 1 else math.inf
    if isinstance(variable, Numeric) and variable.bounds is not None:
        low, high = variable.bounds
    theirs = ((drawn < low) | (drawn > high)).mean(axis=1)
    mean, sd = float(theirs.mean()), float(theirs.std(ddof=1))
    return PredictiveCheck("", "impossible", 0.0, mean, sd, mean > _IMPOSSIBLE)


def _skewness(errors: FloatArray) -> FloatArray:
    centred = errors - errors.mean(axis=1, keepdims=True)
    return np.asarray((centred**3).mean(axis=1) / np.maximum(_variance(errors), 1e-300) ** 1.5)


def _variance(errors: FloatArray) -> FloatArray:
    return np.asarray(errors.var(axis=1))


def _smallest(errors: FloatArray) -> FloatArray:
    return np.asarray(errors.min(axis=1))


def _largest(errors: FloatArray) -> FloatArray:
    return np.asarray(errors.max(axis=1))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
