"""Each dataset compared with what each model predicts, and all of them together."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc, chdtr

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import EngineError, SynriskError
from synrisk.base.seeds import stream
from synrisk.base.workers import Executor
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.refits import Departure
from synrisk.synthesis.release import Released
from synrisk.synthesis.rounding import is_coarse, stored_step
from synrisk.synthesis.synthesizer import Synthesizer

_LEVEL = 0.003  # of all comparisons of an honest release, both tails of each
_TAIL_BEFORE = 1e-3  # of each, in files of earlier versions
_N_SIMULATED = 10_000  # datasets
_LEAST_SIMULATED = 200  # fewer tell nothing about a tail
_MOST_SIMULATED_ROWS = 20_000_000
_CONTRADICTED = 0.02  # the probability of as many simulated in a tail
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Distance:
    """How far a dataset is from what a model predicts given the confidential data.

    Attributes
    ----------
    d2, df
        D² and its degrees of freedom.
    p_smaller
        The probability of a smaller D² if the release came from the model; NaN where draws made
        elsewhere are too few, or the synthetic rows fewer than parameters.
    tail
        It warns below this probability and above one minus it. Smaller the more models and
        datasets are compared, so that all comparisons of an honest release have one level.
    """

    variable: str
    dataset: int
    d2: float
    df: float
    p_smaller: float
    tail: float = _TAIL_BEFORE

    @property
    def is_known(self) -> bool:
        """Whether they could be compared."""
        return not math.isnan(self.p_smaller)

    @property
    def is_too_far(self) -> bool:
        """Whether they differ by more than chance."""
        return self.p_smaller > 1.0 - self.tail

    @property
    def is_too_near(self) -> bool:
        """Whether they differ by less than chance."""
        return self.p_smaller < self.tail

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words."""
        if self.is_too_far:
            return (
                f"Dataset {self.dataset} does not look as if it came from the model of "
                f"{self.variable}: the fits differ by D² = {self.d2:.1f} with {self.df:.0f} "
                "degrees of freedom. The risk assumes that it did."
            )
        if self.is_too_near:
            return (
                f"Dataset {self.dataset} follows the confidential data of {self.variable} more "
                f"closely than its model would (D² = {self.d2:.3f} with {self.df:.0f} degrees of "
                "freedom): was it copied or adjusted? The limits do not see that."
            )
        return None


@dataclass(frozen=True)
class Total:
    """The sum of D² over models and datasets: small where all of them are a little too near.

    Attributes
    ----------
    d2, df, p_smaller, tail
        As of `Distance`; large sums do not warn.
    """

    d2: float
    df: float
    p_smaller: float
    tail: float

    @property
    def is_too_near(self) -> bool:
        """Whether the datasets together are nearer than chance."""
        return self.p_smaller < self.tail

    @property
    def failure(self) -> str | None:
        """What is wrong, in plain words."""
        if not self.is_too_near:
            return None
        return (
            "The datasets together follow the confidential data more closely than their models "
            f"would (D² adds up to {self.d2:.1f} with {self.df:.0f} degrees of freedom): were they "
            "copied or adjusted? The limits do not see that."
        )


def compare_fits(
    synthesizer: Synthesizer, release: Sequence[Released], executor: Executor
) -> tuple[tuple[Distance, ...], Total | None]:
    """Compare each dataset with what each model predicts."""
    places = [
        (model, number, dataset)
        for model in synthesizer.models
        for number, dataset in enumerate(release, 1)
    ]
    found = [_departure(synthesizer, model, dataset, executor) for model, _, dataset in places]
    n_known = sum(departure is not None for departure in found)
    tail = _LEVEL / (2 * n_known + (n_known > 1)) if n_known else _LEVEL
    rows, chances = [], []
    for (model, number, dataset), departure in zip(places, found, strict=True):
        name, df = model.regression.response, float(len(model.posterior.names))
        if departure is None:
            rows.append(Distance(name, number, math.nan, df, math.nan, tail))
            continue
        n_rows = len(dataset.columns[name])
        chance = _Chance(departure, n_rows, name, number)
        p = chance.p_smaller(tail)
        rows.append(Distance(name, number, departure.d2, departure.df, p, tail))
        chances.append(chance)
    return tuple(rows), _total(chances, tail) if n_known > 1 else None


def _departure(
    synthesizer: Synthesizer, model: Model, dataset: Released, executor: Executor
) -> Departure | None:
    """Return D² of a dataset; None where rows are too few, too odd or too coarse for it."""
    regression = model.regression
    n_rows = len(dataset.columns[regression.response])
    if n_rows < len(model.posterior.names):
        return None
    # Rounded on the scale of the response, and so coarsely that no rounded value is the model's.
    step = stored_step(regression, synthesizer.confidential.sample.data[regression.response].dtype)
    values = dataset.sample.columns[regression.response]
    if step and is_coarse(regression, model.posterior, values, step, n_rows):
        return None
    try:
        departure = synthesizer.refits.departure(model, dataset, executor)
    except EngineError:  # nothing is known of the dataset then
        raise
    except (SynriskError, ValueError):  # rates beyond NumPy's, no eigenvalues
        return None
    is_known = departure is not None and departure.df > 0 and math.isfinite(departure.d2)
    return departure if is_known else None


@dataclass(frozen=True, repr=False)
class _Chance:
    """The distribution of D² of a model and a dataset if the model drew it.

    χ²; where that warns and rows are few or discrete, so that it need not hold, also by datasets
    that the model draws.
    """

    departure: Departure
    n_rows: int
    variable: str
    dataset: int

    @property
    def n_simulated(self) -> int:
        most = _MOST_SIMULATED_ROWS // self.n_rows
        return min(_N_SIMULATED, most) if most >= _LEAST_SIMULATED else 0

    def simulated(self, n: int) -> FloatArray:
        """Return D² of so many datasets; none where they cannot be drawn."""
        if not n:
            return np.empty(0)
        rng = stream(0, "release check", dataset=self.dataset, variable=self.variable)
        if self.departure.simulated is None:
            return rng.chisquare(self.departure.df, n)
        with contextlib.suppress(ValueError), np.errstate(all="ignore"):  # rates beyond NumPy's
            return self.departure.simulated(n, rng)
        return np.empty(0)

    def p_smaller(self, tail: float) -> float:
        d2, df = self.departure.d2, self.departure.df
        p = float(chdtr(df, d2))
        if tail <= p <= 1.0 - tail or self.departure.simulated is None:
            return p
        return _simulated_p(p, d2, lambda: self.simulated(self.n_simulated))


def _total(chances: Sequence[_Chance], tail: float) -> Total:
    d2 = sum(chance.departure.d2 for chance in chances)
    df = sum(chance.departure.df for chance in chances)
    p = float(chdtr(df, d2))
    if p < tail and any(chance.departure.simulated is not None for chance in chances):
        n = min(chance.n_simulated for chance in chances)
        p = _simulated_p(p, d2, lambda: _sum([chance.simulated(n) for chance in chances]))
    return Total(d2, df, p, tail)


def _sum(parts: Sequence[FloatArray]) -> FloatArray:
    n = min(map(len, parts))
    return np.asarray(sum(part[:n] for part in parts))


def _simulated_p(p: float, d2: float, simulate: Callable[[], FloatArray]) -> float:
    """Return p, or what simulated D² say of the same tail where that speaks against p."""
    simulated = simulate()
    if not len(simulated):
        return p
    near = _ROUNDING * (1.0 + d2)
    if p > 0.5:
        return min(p, 1.0 - _upper_tail(simulated, d2 - near))
    hits = int((simulated <= d2 + near).sum())
    if not hits or bdtrc(hits - 1, len(simulated), p) > _CONTRADICTED:
        return p
    return hits / len(simulated)


def _upper_tail(simulated: FloatArray, d2: float) -> float:
    """Return the probability of a larger D²: beyond the last twentieth by an exponential tail.

    χ² has about such a one; that of rare counts falls off more slowly.
    """
    ordered = np.sort(simulated)
    last = ordered[-(len(ordered) // 20) :]
    if d2 <= last[0]:
        return float((simulated >= d2).mean())
    excess = max(float((last - last[0]).mean()), 1e-300)
    return len(last) / len(ordered) * math.exp(-(d2 - float(last[0])) / excess)
