"""The plan: regressions in the order in which their responses are synthesized."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import PlanError, listed
from synrisk.data.schema import Numeric, Variable
from synrisk.models.families import Family, Gapped
from synrisk.models.families import family as resolve_family
from synrisk.models.formula import parser as formulas
from synrisk.models.formula.transforms import Transform
from synrisk.models.priors import PriorSpec, check_prior

RESERVED = ("joint", "probability", "prior", "rank", "is_truth", "mcse")
_RESERVED_START = "mcse_"  # gain_mcse_V is the error of V, not what is learnt of mcse_V


@dataclass(frozen=True)
class Regression:
    """One synthesis model.

    Parameters
    ----------
    formula
        ``"response ~ predictors"`` in R's or formulaic's spelling. The response of a gaussian
        model may be transformed (``log(Income) ~ Age`` synthesizes Income).
    family
        ``"gaussian"``, ``"lognormal"``, ``"student_t"``, ``"gamma"``, ``"beta"``, ``"bernoulli"``,
        ``"categorical"``, ``"ordered_logit"``, ``"poisson"``, ``"negative_binomial"``,
        ``"binomial_trials"``, both counts with a part for zeros (``"hurdle_poisson"``,
        ``"zero_inflated_poisson"``, …), ``"hurdle_lognormal"``, ``"hurdle_gamma"``,
        ``"truncated_gaussian"``, continuous ones rounded (``"rounded_gaussian"``, …; or the R
        package's ``norm``, ``binom``, ``multinom``, ``pois``), or an instance.
    prior
        This model's prior where it differs from that of `fit`.
    weights
        The column with each record's weight: the exponent on its density in the fit and in the
        importance weights (a survey weight, or one that lowers a record's influence).

    Examples
    --------
    >>> Regression("LogIncome ~ LogExpenditure", family="gaussian").response
    'LogIncome'
    """

    formula: str
    family: str | Family = "gaussian"
    prior: PriorSpec | None = field(default=None, kw_only=True)
    weights: str | None = field(default=None, kw_only=True)
    # Settled once, since everything asks for them.
    distribution: Family = field(init=False, repr=False, compare=False)
    parsed: formulas.Formula = field(init=False, repr=False, compare=False)
    response: str = field(init=False, repr=False, compare=False)
    transform: Transform = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        distribution = resolve_family(self.family)
        object.__setattr__(self, "family", distribution)
        object.__setattr__(self, "distribution", distribution)
        if self.prior is not None:
            object.__setattr__(self, "prior", check_prior(self.prior))
        if self.weights is not None and not isinstance(self.weights, str):
            raise PlanError(f"weights= is the name of a column; got {type(self.weights).__name__}.")
        parsed = formulas.parse(self.formula)
        object.__setattr__(self, "parsed", parsed)
        object.__setattr__(self, "response", parsed.response)
        object.__setattr__(self, "transform", self._transform(parsed))
        if parsed.response in parsed.predictors:
            raise PlanError(f"{self.formula!r}: {parsed.response!r} is its own predictor.")
        if parsed.response in RESERVED or parsed.response.startswith(_RESERVED_START):
            raise PlanError(
                f"A synthesized variable cannot be called {parsed.response!r}, which names a "
                "column of the results; rename it."
            )
        clash = [name for name in parsed.predictors if name in self.distribution.auxiliary_names]
        if clash:
            raise PlanError(
                f"{self.formula!r}: a predictor cannot be called {clash[0]!r}, which names a "
                f"parameter of a {self.distribution.name} model; rename it."
            )
        if parsed.transform.steps and not self.distribution.is_continuous:
            raise PlanError(
                f"{self.formula!r}: the response is transformed, which a {self.distribution.name} "
                f"model does not take; it takes {self.distribution.wants}."
            )
        if not parsed.intercept and not parsed.terms and not parsed.groups:
            raise PlanError(f"{self.formula!r} has neither an intercept nor a predictor.")
        if parsed.response_is_factor and not self.distribution.makes_factor:
            raise PlanError(
                f"{self.formula!r}: the response is made a factor, which a "
                f"{self.distribution.name} model does not take; it takes {self.distribution.wants}."
            )

    def _transform(self, parsed: formulas.Formula) -> Transform:
        """Return the formula's transform of the response, or the family's."""
        step = self.distribution.transform
        if not step:
            return parsed.transform
        if parsed.transform.steps:
            raise PlanError(
                f"{self.formula!r}: a {self.distribution.name} model is of the response itself; "
                f"write {parsed.response} ~ …, or take another family."
            )
        return Transform((step,), f"{step}({parsed.response})")

    @property
    def title(self) -> str:
        """What messages call the model."""
        return f"Formula {self.formula!r}"

    @property
    def wants(self) -> str:
        """What a response must be, for messages."""
        if not self.parsed.transform.steps:
            return self.distribution.wants
        return f"numbers whose {self.transform.text} is finite"

    def given(self, variable: Variable) -> Regression:
        """Return the regression of a response whose levels, and whose gaps, are known."""
        known = self.distribution.given(variable)
        if isinstance(variable, Numeric) and variable.gap is not None and known.gap_code is None:
            known = Gapped(known, variable.gap)
        return self if known is self.distribution else replace(self, family=known)

    def on_model_scale(self, values: npt.NDArray[Any]) -> FloatArray:
        """Return values of the response as the model's density takes them, NaN where missing."""
        own = np.asarray(values, dtype=np.float64)
        gap = self.distribution.gap_code
        return self.transform.apply(own if gap is None else np.where(own == gap, np.nan, own))

    @property
    def of_values(self) -> Regression:
        """The regression of the values that are there, where some are missing."""
        family = self.distribution
        return replace(self, family=family.inner) if isinstance(family, Gapped) else self

    def supports(self, values: npt.NDArray[Any], variable: Variable) -> BoolArray:
        """Tell for each value of the response whether the model can give it."""
        return self.distribution.supports(self.on_model_scale(values), variable)


@dataclass(frozen=True)
class Plan:
    """Regressions in synthesis order, checked to form a sequence."""

    regressions: tuple[Regression, ...]

    @classmethod
    def of(cls, regressions: Regression | Iterable[Regression]) -> Plan:
        """Make a plan of one regression or of several in synthesis order."""
        if not isinstance(regressions, Regression | Iterable) or isinstance(regressions, str):
            raise PlanError(
                "The plan is a Regression or a list of them in synthesis order; got "
                f"{type(regressions).__name__}."
            )
        listed_ = (regressions,) if isinstance(regressions, Regression) else tuple(regressions)
        if not listed_:
            raise PlanError("The plan is empty; give at least one Regression.")
        for position, regression in enumerate(listed_, 1):
            if not isinstance(regression, Regression):
                raise PlanError(
                    f"Element {position} of the plan must be a Regression, such as "
                    "Regression('y ~ x', family='gaussian'); "
                    f"got {type(regression).__name__}."
                )
        return cls(listed_)

    def __post_init__(self) -> None:
        names = self.synthesized
        for position, regression in enumerate(self.regressions):
            if regression.response in names[:position]:
                raise PlanError(f"{regression.response!r} is synthesized twice.")
            later = [name for name in regression.parsed.predictors if name in names[position:]]
            if later:
                raise PlanError(
                    f"{regression.formula!r} uses {listed(later)} before it is synthesized. "
                    "Put that variable's regression earlier, or leave it out of this formula."
                )
            if regression.weights in names:
                raise PlanError(
                    f"{regression.formula!r}: the weights column {regression.weights!r} is itself "
                    "synthesized."
                )

    @cached_property
    def synthesized(self) -> tuple[str, ...]:
        """The synthesized variables, in synthesis order."""
        return tuple(regression.response for regression in self.regressions)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Every column that a formula mentions: what a synthetic dataset must have."""
        names = [name for r in self.regressions for name in (r.response, *r.parsed.predictors)]
        return tuple(dict.fromkeys(names))

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """The columns that hold record weights."""
        return tuple(dict.fromkeys(r.weights for r in self.regressions if r.weights is not None))

    @property
    def factors(self) -> tuple[str, ...]:
        """The responses that their family makes factors."""
        return tuple(r.response for r in self.regressions if r.distribution.makes_factor)

    def parents(self, position: int) -> tuple[int, ...]:
        """Return the positions of the synthesized variables that model `position` predicts with."""
        return self._parents[position]

    @cached_property
    def _parents(self) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(k for k in range(position) if self.synthesized[k] in regression.parsed.predictors)
            for position, regression in enumerate(self.regressions)
        )
