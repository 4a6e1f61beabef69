"""The families, one file each. To add one, write its file and list it in `FAMILIES`."""

from __future__ import annotations

from synrisk.base.errors import OptionError, got, listed, nearest
from synrisk.models.families.bernoulli import Bernoulli
from synrisk.models.families.beta import Beta
from synrisk.models.families.categorical import Categorical
from synrisk.models.families.family import Auxiliary, Compiled, Family
from synrisk.models.families.gamma import Gamma
from synrisk.models.families.gapped import Gapped
from synrisk.models.families.gaussian import Gaussian
from synrisk.models.families.hurdle_lognormal import HurdleLogNormal
from synrisk.models.families.hurdle_poisson import HurdlePoisson
from synrisk.models.families.lognormal import LogNormal
from synrisk.models.families.negative_binomial import NegativeBinomial
from synrisk.models.families.ordered_logit import OrderedLogit
from synrisk.models.families.poisson import Poisson
from synrisk.models.families.rounded_gaussian import RoundedGaussian
from synrisk.models.families.student_t import StudentT
from synrisk.models.families.zero_inflated_poisson import ZeroInflatedPoisson

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
)

__all__ = [
    "FAMILIES",
    "Auxiliary",
    "Bernoulli",
    "Beta",
    "Categorical",
    "Compiled",
    "Family",
    "Gamma",
    "Gapped",
    "Gaussian",
    "HurdleLogNormal",
    "HurdlePoisson",
    "LogNormal",
    "NegativeBinomial",
    "OrderedLogit",
    "Poisson",
    "RoundedGaussian",
    "StudentT",
    "ZeroInflatedPoisson",
    "family",
    "is_registered",
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
