"""Successes among a known number of trials, with a logit link."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, expit, gammaln

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import OptionError
from synrisk.data.schema import Numeric, Variable
from synrisk.models.families.derivatives import softplus
from synrisk.models.families.family import Family

_MOST_TRIALS = 10_000


@dataclass(frozen=True)
class Binomial(Family):
    """y ~ Binomial(trials, 1/(1 + exp(−eta))), the number of trials the same for everybody.

    Parameters
    ----------
    trials
        How many there are: the days of a week, the questions of a test. Without it the upper bound
        that ``types=`` declares.
    """

    trials: int = 0

    name: ClassVar[str] = "binomial_trials"
    aliases: ClassVar[tuple[str, ...]] = ("trials",)

    def __post_init__(self) -> None:
        real = isinstance(self.trials, numbers.Real) and not isinstance(self.trials, bool)
        if not real or self.trials not in range(_MOST_TRIALS + 1):
            raise OptionError(
                f"binomial_trials: trials must be a whole number from 1 to {_MOST_TRIALS:,}."
            )
        object.__setattr__(self, "trials", int(self.trials))

    @property
    def wants(self) -> str:  # type: ignore[override]
        """What a response must be, for messages."""
        if not self.trials:
            return (
                "whole numbers up to a number of trials that is told: Binomial(trials), or "
                "types={…: (0, trials)}"
            )
        return f"whole numbers from 0 to {self.trials}, the number of trials"

    def given(self, response: Variable) -> Binomial:
        """Return the family with the number of trials that was declared, where it has none."""
        if self.trials or not isinstance(response, Numeric) or response.bounds is None:
            return self
        return replace(self, trials=response.bounds[1])  # type: ignore[arg-type]

    def fits(self, response: Variable) -> bool:
        """Numbers, where the number of trials is known."""
        return super().fits(response) and self.trials > 0

    def all_values(self, response: Variable) -> FloatArray:
        """0, 1, …, up to the number of trials."""
        return np.arange(self.trials + 1.0)

    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """The same."""
        return np.asarray((y >= 0) & (y <= self.trials) & (y == np.floor(y)))

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Records with a success, and with a failure."""
        return np.asarray(y > 0), np.asarray(y < self.trials)

    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """y·eta − trials·log(1 + exp(eta)), and the log of the binomial coefficient."""
        x, n = eta[..., 0], float(self.trials)
        ways = gammaln(n + 1.0) - gammaln(y + 1.0) - gammaln(n - y + 1.0)
        return ways - y * softplus(-x) - (n - y) * softplus(x)

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Of counts up to y."""
        within = np.clip(np.floor(y), 0.0, self.trials)
        return np.where(y < 0, 0.0, bdtr(within, self.trials, expit(eta[..., 0])))

    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Y minus its mean."""
        return y[..., None] - self.trials * expit(eta)

    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Minus the variance."""
        shape = np.broadcast_shapes(y.shape, eta.shape[:-1])
        second = -self.trials * expit(eta) * expit(-eta)
        return np.broadcast_to(second[..., None], (*shape, 1, 1))

    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw a count, by one uniform number."""
        from scipy.stats import binom  # which takes long to import

        u = rng.random(eta.shape[:-1])
        return np.asarray(np.maximum(binom.ppf(u, self.trials, expit(eta[..., 0])), 0.0))
