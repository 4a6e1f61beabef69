"""Utility: how much of what the confidential data say a release still says."""

from synrisk.utility.measure import PARAMETERS, Utility, utility
from synrisk.utility.propensity import MODELS, tree_maker

__all__ = ["MODELS", "PARAMETERS", "Utility", "tree_maker", "utility"]
