"""Utility: how much of what the confidential data say a release still says."""

from synrisk.utility.measure import PARAMETERS, Utility, utility
from synrisk.utility.propensity import MODELS

__all__ = ["MODELS", "PARAMETERS", "Utility", "utility"]
