"""What could an intruder learn about each person from this synthetic data?"""

from synrisk.attribute import AttributeRisk, attribute_risk
from synrisk.datasets import load_households
from synrisk.errors import (
    DataError,
    DisclosureError,
    DrawsError,
    FileError,
    FormulaError,
    GuessError,
    OptionError,
    PlanError,
    PriorError,
    SynriskError,
    SyntheticDataError,
)
from synrisk.guesses import Additive, AllLevels, Interval, Relative, Values
from synrisk.intruder import TruthFactor
from synrisk.plan import Regression
from synrisk.synthesizer import Synthesizer

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "AllLevels",
    "AttributeRisk",
    "DataError",
    "DisclosureError",
    "DrawsError",
    "FileError",
    "FormulaError",
    "GuessError",
    "Interval",
    "OptionError",
    "PlanError",
    "PriorError",
    "Regression",
    "Relative",
    "SynriskError",
    "Synthesizer",
    "SyntheticDataError",
    "TruthFactor",
    "Values",
    "attribute_risk",
    "load_households",
]
