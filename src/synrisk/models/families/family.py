"""What a family is: one conditional distribution of a response given its linear predictors.

A family says what it can do by class attributes (`exact`, `identity_link`, `is_continuous`, …), and
everything else asks for these: no code is written for a particular family.

Arrays broadcast. A linear predictor array has the predictors on its last axis, also where there is
only one: ``eta.shape == (..., n_predictors)``. Auxiliary parameters (a gaussian's sigma) likewise:
``auxiliary.shape == (..., len(family.auxiliary))``. `y` has neither axis. Factors come as codes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.data.schema import Factor, Variable
from synrisk.models.families import interval_probability

# See `Family.compiled`.
Compiled: TypeAlias = tuple[Callable[..., Any], Callable[..., Any]]


@dataclass(frozen=True)
class Auxiliary:
    """A positive parameter beside the coefficients, with an exponential prior by default.

    Attributes
    ----------
    name
        As users see it.
    in_response_units
        Whether it is measured as the response is: its default prior is scaled to the data.
    prior_mean
        Of the default prior, in standard deviations of the response or as it is; the search for
        the posterior mode begins there.
    in_inverse_squares
        Whether it says how narrow the response is: its default prior is scaled to one over the
        response's variance on the model's scale.
    aliases
        What rstanarm and others call it in tables of draws.
    in_bambi
        What Bambi calls it, where that is another name: one that may mean another thing elsewhere.
    """

    name: str
    in_response_units: bool = False
    prior_mean: float = 1.0
    in_inverse_squares: bool = False
    aliases: tuple[str, ...] = ()
    in_bambi: str = ""

    def default_mean(self, spread: float) -> float:
        """Return the default prior's mean, for a response of standard deviation `spread`."""
        if self.in_inverse_squares:
            return self.prior_mean / spread**2
        return self.prior_mean * spread if self.in_response_units else self.prior_mean


@dataclass(frozen=True)
class Family(ABC):
    """A conditional distribution; subclasses are registered in ``synrisk.models.families``."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    auxiliary: ClassVar[tuple[Auxiliary, ...]] = ()
    # Whether it is the normal linear model with one sigma, whose posterior and predictive density
    # are known exactly (fitting/normal_prior.py, fitting/conjugate.py).
    exact: ClassVar[bool] = False
    makes_factor: ClassVar[bool] = False  # the response is a factor whatever its column's type
    is_continuous: ClassVar[bool] = False
    identity_link: ClassVar[bool] = False  # eta is measured as the response is
    is_quadratic: ClassVar[bool] = False  # the log density is of degree two at most in y
    is_classification: ClassVar[bool] = False  # `events` part the records into classes
    is_ordered: ClassVar[bool] = True  # |guess − truth| means something
    least: ClassVar[float] = 0.0  # the smallest value of one that is not continuous
    # "root" or "log": the scale on which values of one that is not continuous spread evenly.
    spacing: ClassVar[str] = "root"
    wants: ClassVar[str]  # what a response must be, for messages
    # "log" or "logit": the density is that of this function of the response, whose scale is the
    # model's, as if the formula had it.
    transform: ClassVar[str] = ""
    # Words for linear predictors beside the first, which are not measured as the response is.
    further_predictors: ClassVar[tuple[str, ...]] = ()
    # The log density once more, for kernels of its own that numba compiles; without them those of
    # NumPy are taken, which are fast where much of the work is not for every guess. Two plain
    # functions whose difference it is,
    #   varying(y, eta, cell, h, parameters), for every guess y
    #   base(eta, cell, h, parameters), what does not depend on y, once a cell and draw
    # with eta[cell, predictor, draw] and parameters[parameter, draw] of `kernel_parameters`. Terms
    # of y alone (log y!) may be left out: they are the same at every draw and cancel.
    compiled: ClassVar[Compiled | None] = None
    # What the log density of a row at a draw takes, for each linear predictor: how long fits at
    # guesses take is foretold by it. Measured roughly; what is not stated is that of most families.
    nanoseconds: ClassVar[float] = 25.0

    @property
    def gap_code(self) -> float | None:
        """The number that stands for a missing response, NaN on the model's scale; or None."""
        return None

    @property
    def grid_step(self) -> float:
        """The distance between neighbouring values of one that is not continuous."""
        return 1.0

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Return the nearest values that one which is not continuous has; `least` aside."""
        step = self.grid_step
        per_unit = np.rint(1.0 / step)
        if abs(step * per_unit - 1.0) < 1e-12:  # tenths are divided by ten, which is exact
            return np.asarray(np.rint(values * per_unit) / per_unit)
        return np.asarray(np.rint(values / step) * step)

    @property
    def auxiliary_names(self) -> tuple[str, ...]:
        """The names of the auxiliary parameters."""
        return tuple(parameter.name for parameter in self.auxiliary)

    @property
    def is_location_scale(self) -> bool:
        """Whether a response in other units has the same distribution, its parameters in these."""
        return self.identity_link and any(own.in_response_units for own in self.auxiliary)

    def events(self, y: FloatArray) -> tuple[BoolArray, ...]:
        """Return sets of records that must not be absent where a predictor's level is present.

        Where a level has none of them, its coefficient has no finite maximum of likelihood
        (separation): no success, no failure, no count above 0.
        """
        return ()

    def log_base(self, y: FloatArray) -> FloatArray:
        """Return what `log_density` has beyond ``compiled``: terms of y alone."""
        return np.zeros(np.shape(y))

    def given(self, response: Variable) -> Family:
        """Return the family of this response: its parameters may depend on the levels."""
        return self

    def from_elsewhere(self, draws: pd.DataFrame) -> pd.DataFrame:
        """Return draws of other packages with this family's parameters in place of theirs."""
        return draws

    def on_link_scale(self, y: FloatArray) -> FloatArray | None:
        """Return what eta is the place of, for priors; None where the link fixes their scale."""
        return y if self.identity_link else None

    def n_predictors(self, response: Variable) -> int:
        """Return the number of linear predictors for a response."""
        return 1

    def predictor_levels(self, response: Variable) -> tuple[int, ...]:
        """Return, for a family with a predictor a level, the codes that have one; else empty."""
        return ()

    def fits(self, response: Variable) -> bool:
        """Tell whether a variable of this type can be the response at all."""
        return not isinstance(response, Factor)

    def all_values(self, response: Variable) -> FloatArray | None:
        """Return every value of the support where there are finitely many, else None."""
        return None

    def kernel_parameters(self, auxiliary: FloatArray) -> FloatArray:
        """Return what the kernels need of the auxiliary parameters, ``(parameter, draw)``."""
        return np.ascontiguousarray(auxiliary.T)

    def residual_sd(self, auxiliary: FloatArray) -> FloatArray | None:
        """Return about the standard deviation of a response given its predictors.

        On the model's scale; None where no auxiliary parameter says so.
        """
        for k, own in enumerate(self.auxiliary):
            if own.in_response_units:
                return np.asarray(auxiliary[..., k])
        return None

    def cdf(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray | None:
        """Return the probability of values up to `y`; None where it is not known."""
        return None

    def survival(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray | None:
        """Return the probability of values above `y`, small ones with all digits; None as above."""
        return None

    def quantile(self, u: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the smallest value up to which the probability is `u`, where a family has it."""
        raise NotImplementedError

    def log_interval(
        self, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> FloatArray:
        """Return the log probability of values between two ends, of a continuous family."""
        return interval_probability.log_interval(self, low, high, eta, auxiliary)

    def interval_derivatives(
        self, low: FloatArray, high: FloatArray, eta: FloatArray, auxiliary: FloatArray
    ) -> interval_probability.Derivatives:
        """Return its first and second derivatives, as `score` and `curvature` have them."""
        return interval_probability.interval_derivatives(self, low, high, eta, auxiliary)

    @abstractmethod
    def supports(self, y: FloatArray, response: Variable) -> BoolArray:
        """Tell for each value whether it is in the support."""

    @abstractmethod
    def log_density(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the log density or mass at `y`, constants included."""

    @abstractmethod
    def score(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the derivative of the log density in eta and in the logs of the auxiliary ones.

        The shape is ``(..., n_predictors + n_auxiliary)``.
        """

    @abstractmethod
    def curvature(self, y: FloatArray, eta: FloatArray, auxiliary: FloatArray) -> FloatArray:
        """Return the second derivatives, in the same order, on the last two axes."""

    @abstractmethod
    def draw(
        self, eta: FloatArray, auxiliary: FloatArray, rng: np.random.Generator
    ) -> npt.NDArray[Any]:
        """Draw one response for each entry of eta."""
