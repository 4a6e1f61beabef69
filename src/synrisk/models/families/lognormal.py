"""Positive amounts whose logarithm is normal: a gaussian model of log(y), by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synrisk.models.families.gaussian import Gaussian


@dataclass(frozen=True)
class LogNormal(Gaussian):
    """log(y) ~ Normal(eta, sigma), as in the gaussian model of ``log(y) ~ …``."""

    name: ClassVar[str] = "lognormal"
    aliases: ClassVar[tuple[str, ...]] = ("lnorm", "log_normal")
    transform: ClassVar[str] = "log"
    wants: ClassVar[str] = "numbers above 0"
