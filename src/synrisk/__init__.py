"""What could an intruder learn about each person from this synthetic data?"""

from synrisk.attribute import AttributeRisk
from synrisk.comparison import Comparison, compare
from synrisk.criteria import Criteria
from synrisk.datasets import load_households
from synrisk.errors import (
    DataError,
    DisclosureError,
    DrawsError,
    FileError,
    FitError,
    FormulaError,
    GuessError,
    OptionError,
    PlanError,
    PriorError,
    SettingsError,
    SynriskError,
    SyntheticDataError,
    UnreliableError,
)
from synrisk.evaluating import attribute_risk
from synrisk.findings import ReliabilityWarning
from synrisk.guesses import Additive, AllLevels, Interval, Relative, Values
from synrisk.intruder import TruthFactor
from synrisk.plan import Regression
from synrisk.priors import Conjugate, Exponential, Normal
from synrisk.synthesis import SynthesisWarning
from synrisk.synthesizer import Synthesizer, fit
from synrisk.utility import Utility, utility
from synrisk.verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "AllLevels",
    "AttributeRisk",
    "Comparison",
    "Conjugate",
    "Criteria",
    "DataError",
    "DisclosureError",
    "DrawsError",
    "Exponential",
    "FileError",
    "FitError",
    "FormulaError",
    "GuessError",
    "Interval",
    "Normal",
    "OptionError",
    "PlanError",
    "PriorError",
    "Regression",
    "Relative",
    "ReliabilityWarning",
    "SettingsError",
    "SynriskError",
    "SynthesisWarning",
    "Synthesizer",
    "SyntheticDataError",
    "TruthFactor",
    "UnreliableError",
    "Utility",
    "Values",
    "Verdict",
    "attribute_risk",
    "compare",
    "fit",
    "load_households",
    "utility",
]
