"""What could an intruder learn about each person from this synthetic data?"""

from synrisk.assessment.attribute_result import AttributeRisk
from synrisk.assessment.attribute_risk import attribute_risk
from synrisk.assessment.audit_result import Audit
from synrisk.assessment.comparison import compare
from synrisk.assessment.comparison_result import Comparison
from synrisk.assessment.identification_risk import IdentificationRisk, identification_risk
from synrisk.assessment.membership_risk import MembershipRisk, membership_risk
from synrisk.assessment.parted_result import PartedRisk
from synrisk.assessment.two_file_audit import audit
from synrisk.audit.radius import Radius
from synrisk.base.errors import (
    DataError,
    DisclosureError,
    DrawsError,
    EngineError,
    FileError,
    FitError,
    FormulaError,
    GuessError,
    OptionError,
    PlanError,
    PriorError,
    ResourceError,
    SettingsError,
    SynriskError,
    SyntheticDataError,
    UnreliableError,
)
from synrisk.base.workers import Processes
from synrisk.data.csv_dialects import FileWarning
from synrisk.data.households import load_households
from synrisk.data.part_files import PartsWarning
from synrisk.models.families import (
    Binomial,
    HurdleGamma,
    HurdleLogNormal,
    RoundedBeta,
    RoundedGamma,
    RoundedGaussian,
    RoundedLogNormal,
    RoundedStudentT,
    TruncatedGaussian,
    rounded,
)
from synrisk.models.plan import Regression
from synrisk.models.priors import Conjugate, Exponential, Normal
from synrisk.risk.diagnostics import ReliabilityWarning
from synrisk.risk.guesses import (
    Additive,
    AllLevels,
    Interval,
    Range,
    Relative,
    Tolerance,
    Values,
)
from synrisk.risk.intruder_prior import MostlyModel, TruthFactor
from synrisk.synthesis.datasets import SynthesisWarning
from synrisk.synthesis.suggested_plan import SuggestedPlan, suggest_plan
from synrisk.synthesis.synthesizer import Synthesizer, fit
from synrisk.utility import Utility, utility
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.verdict import Verdict

__version__ = "0.1.0"

__all__ = [
    "Additive",
    "AllLevels",
    "AttributeRisk",
    "Audit",
    "Binomial",
    "Comparison",
    "Conjugate",
    "Criteria",
    "DataError",
    "DisclosureError",
    "DrawsError",
    "EngineError",
    "Exponential",
    "FileError",
    "FileWarning",
    "FitError",
    "FormulaError",
    "GuessError",
    "HurdleGamma",
    "HurdleLogNormal",
    "IdentificationRisk",
    "Interval",
    "MembershipRisk",
    "MostlyModel",
    "Normal",
    "OptionError",
    "PartedRisk",
    "PartsWarning",
    "PlanError",
    "PriorError",
    "Processes",
    "Radius",
    "Range",
    "Regression",
    "Relative",
    "ReliabilityWarning",
    "ResourceError",
    "RoundedBeta",
    "RoundedGamma",
    "RoundedGaussian",
    "RoundedLogNormal",
    "RoundedStudentT",
    "SettingsError",
    "SuggestedPlan",
    "SynriskError",
    "SynthesisWarning",
    "Synthesizer",
    "SyntheticDataError",
    "Tolerance",
    "TruncatedGaussian",
    "TruthFactor",
    "UnreliableError",
    "Utility",
    "Values",
    "Verdict",
    "attribute_risk",
    "audit",
    "compare",
    "fit",
    "identification_risk",
    "load_households",
    "membership_risk",
    "rounded",
    "suggest_plan",
    "utility",
]
