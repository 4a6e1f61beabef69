"""The families, one file each. To add one, write its file and list it in `FAMILIES`."""

from __future__ import annotations

from synrisk.base.errors import OptionError, got, listed, nearest
from synrisk.models.families.bernoulli import Bernoulli
from synrisk.models.families.beta import Beta
from synrisk.models.families.binomial import Binomial
from synrisk.models.families.categorical import Categorical
from synrisk.models.families.family import Auxiliary, Compiled, Family
from synrisk.models.families.gamma import Gamma
from synrisk.models.families.gapped import Gapped
from synrisk.models.families.gaussian import Gaussian
from synrisk.models.families.hurdle_amounts import HurdleGamma, HurdleLogNormal
from synrisk.models.families.hurdle_counts import HurdleNegativeBinomial, HurdlePoisson
from synrisk.models.families.lognormal import LogNormal
from synrisk.models.families.negative_binomial import NegativeBinomial
from synrisk.models.families.on_grid import OnGrid
from synrisk.models.families.ordered_logit import OrderedLogit
from synrisk.models.families.poisson import Poisson
from synrisk.models.families.rounded import (
    Rounded,
    RoundedBeta,
    RoundedGamma,
    RoundedLogNormal,
    RoundedStudentT,
)
from synrisk.models.families.rounded_gaussian import RoundedGaussian
from synrisk.models.families.student_t import StudentT
from synrisk.models.families.truncated_gaussian import TruncatedGaussian
from synrisk.models.families.zero_inflated_counts import (
    ZeroInflatedNegativeBinomial,
    ZeroInflatedPoisson,
)

FAMILIES: tuple[Family, ...] = (
    Gaussian(),
    Bernoulli(),
    Categorical(),
    Poisson(),
    RoundedGaussian(),
    NegativeBinomial(),
    Gamma(),
    LogNormal(),
    StudentT(),
    Beta(),
    OrderedLogit(),
    HurdlePoisson(),
    ZeroInflatedPoisson(),
    HurdleLogNormal(),
    HurdleGamma(),
    HurdleNegativeBinomial(),
    ZeroInflatedNegativeBinomial(),
    Binomial(),
    TruncatedGaussian(),
    RoundedStudentT(),
    RoundedLogNormal(),
    RoundedGamma(),
    RoundedBeta(),
)

__all__ = [
    "FAMILIES",
    "Auxiliary",
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Compiled",
    "Family",
    "Gamma",
    "Gapped",
    "Gaussian",
    "HurdleGamma",
    "HurdleLogNormal",
    "HurdleNegativeBinomial",
    "HurdlePoisson",
    "LogNormal",
    "NegativeBinomial",
    "OnGrid",
    "OrderedLogit",
    "Poisson",
    "Rounded",
    "RoundedBeta",
    "RoundedGamma",
    "RoundedGaussian",
    "RoundedLogNormal",
    "RoundedStudentT",
    "StudentT",
    "TruncatedGaussian",
    "ZeroInflatedNegativeBinomial",
    "ZeroInflatedPoisson",
    "family",
    "is_registered",
    "rounded",
]


def family(spec: str | Family) -> Family:
    """Return the family of a name, an R package's name, or an instance.

    Examples
    --------
    >>> family("pois")
    Poisson()
    """
    if isinstance(spec, Family):
        return spec
    names = {name: known for known in FAMILIES for name in (known.name, *known.aliases)}
    if not isinstance(spec, str) or spec not in names:
        known_names = listed((known.name for known in FAMILIES), len(FAMILIES))
        raise OptionError(
            f"family must be one of {known_names}, or an instance; "
            f"got {got(spec)}.{nearest(spec, names)}"
        )
    return names[spec]


def is_registered(known: Family) -> bool:
    """Tell whether a family is found again by its name, its options aside."""
    return any(type(one) is type(known) for one in FAMILIES)


def rounded(spec: str | Family, step: float = 1.0) -> Rounded:
    """Return a continuous family whose response is rounded to multiples of `step`.

    Examples
    --------
    >>> rounded("gamma", 100)
    RoundedGamma(step=100.0)
    """
    known = family(spec)
    of = {type(one.of): type(one) for one in FAMILIES if isinstance(one, Rounded)}
    if type(known) not in of:
        names = listed(sorted(one.name for one in of))
        raise OptionError(f"rounded: the family must be one of {names}; got {known.name!r}.")
    return of[type(known)](step)
