"""What is shaky about a result, why, and what to do, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from synrisk.base.arrays import BoolArray, FloatArray
from synrisk.base.errors import counted, listed
from synrisk.core.summary import RiskArrays
from synrisk.fitting.psis import LEAST_JUDGED
from synrisk.risk.doubts import Doubt
from synrisk.risk.estimators.estimate import Finding
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.risk.tables import near_truth
from synrisk.synthesis.relations import Relation

_LARGE_ERROR = 0.5  # of the distance between probability and prior, over the records


class ReliabilityWarning(UserWarning):
    """Some number of a result should not be relied on as it stands."""


def table_of(found: Sequence[Finding]) -> pd.DataFrame:
    """Return a row a finding: what, why, what to do."""
    rows = [(str(one.what), str(one.why), one.what_to_do) for one in found]
    return pd.DataFrame(rows, columns=["what", "why", "what_to_do"])


def findings(
    evaluation: Evaluation,
    result: RiskArrays,
    checks: ReleaseChecks | None,
    doubts: Sequence[Doubt] = (),
) -> list[Finding]:
    """Return what is shaky."""
    errors = None if result.errors is None else ErrorsInShort.of(evaluation, result)
    return findings_of(evaluation, errors, checks, [doubt.finding() for doubt in doubts])


@dataclass(frozen=True)
class ErrorsInShort:
    """What is to be known of the errors of some records: it adds up over parts of them.

    Attributes
    ----------
    n_known, n_unknown
        Of how many the error is known or not.
    n_bad
        How many are not reliable though it is.
    n_unjudged
        How many are not, though no tail of their weights was looked at.
    n_targets
        How many numbers of a record are looked at.
    gains, variances
        Sums over known records of the squares of what the release adds, and of its errors.
    """

    n_known: int
    n_unknown: int
    n_bad: int
    n_unjudged: int
    n_targets: int
    gains: float
    variances: float

    @classmethod
    def of(cls, evaluation: Evaluation, result: RiskArrays) -> ErrorsInShort:
        """Return that of evaluated records, whose errors were estimated."""
        errors, grids = result.errors, evaluation.asked_grids
        assert errors is not None  # noqa: S101 - the caller looked
        gains, sds = (result.probability - result.prior)[:, None], errors.mcse[:, :1]
        # Of many variables together hardly anything is known: there single ones tell.
        if not result.is_joint:
            after = [near_truth(result, grids, axis) for axis in range(len(grids))]
            gains, sds = np.stack(after, axis=1) - result.prior_marginals, errors.mcse[:, 1:]
        return cls.of_numbers(errors.mcse[:, 0], errors.reliable, errors.khat, gains, sds)

    @classmethod
    def of_table(cls, table: pd.DataFrame, names: Sequence[str] = ()) -> ErrorsInShort:
        """Return that of a table of records; `names` where single variables tell."""
        columns = [f"_{name}" for name in names] or [""]
        gains, sds = (
            np.stack([table[f"{kind}{own}"].to_numpy() for own in columns], axis=1)
            for kind in ("gain", "mcse")
        )
        mcse, reliable, khat = (table[name].to_numpy() for name in ("mcse", "reliable", "khat"))
        return cls.of_numbers(mcse, reliable, khat, gains, sds)

    @classmethod
    def of_numbers(
        cls,
        mcse: FloatArray,
        reliable: BoolArray,
        khat: FloatArray,
        gains: FloatArray,
        sds: FloatArray,
    ) -> ErrorsInShort:
        """Return that of records; `gains` with their errors `sds` are ``(record, target)``."""
        known = np.isfinite(mcse)
        return cls(
            int(known.sum()),
            int((~known).sum()),
            int((known & ~reliable & (khat > 0)).sum()),
            int((known & ~reliable & np.isnan(khat)).sum()),
            gains.shape[1],
            float((gains[known] ** 2).sum()),
            float((sds[known] ** 2).sum()),
        )

    def and_of(self, other: ErrorsInShort) -> ErrorsInShort:
        """Return that of the records of both."""
        return ErrorsInShort(
            self.n_known + other.n_known,
            self.n_unknown + other.n_unknown,
            self.n_bad + other.n_bad,
            self.n_unjudged + other.n_unjudged,
            self.n_targets,
            self.gains + other.gains,
            self.variances + other.variances,
        )

    def mean(self, total: float) -> float:
        """Return the root mean square of what sums up to a total of squares."""
        return float(np.sqrt(total / (self.n_known * self.n_targets))) if self.n_known else 0.0


def findings_of(
    evaluation: Evaluation,
    errors: ErrorsInShort | None,
    checks: ReleaseChecks | None,
    doubts: Sequence[Finding],
) -> list[Finding]:
    """Return what is shaky, given the errors of all records in short."""
    found: list[Finding] = []
    if evaluation.paired is not None:
        found.append(
            Finding(
                "The Monte-Carlo error is not known.",
                "The paper's estimator pairs the draws of all models, and gives no error.",
                "Use the estimator 'auto', or 'importance' for draws that were made elsewhere.",
                by_choice=True,
            )
        )
    elif errors is None:
        found.append(
            Finding(
                "The Monte-Carlo error is not known.",
                "The risk was evaluated with diagnostics=False.",
                "Evaluate it with diagnostics=True.",
                by_choice=True,
            )
        )
    names = evaluation.synthesizer.plan.synthesized
    for name, estimate in zip(names, evaluation.estimates, strict=True):
        if evaluation.paired is None:
            found += estimate.findings(name)
    if errors is not None:
        said = any(finding.error_is_unknown for finding in found)
        fitted = any(model.fit is not None for model in evaluation.synthesizer.models)
        found += _about_records(
            errors, said=said, can_be_fitted=fitted, are_fitted=bool(evaluation.fitted)
        )
        if errors.n_unjudged and _has_few_draws(evaluation):
            found.append(_about_few_draws(errors.n_unjudged))
    found += doubts
    if checks is not None:
        of_seeds = [trial.failure for trial in checks.seed_trials if trial.failure is not None]
        found += [
            Finding(
                failure,
                "Only the models' sufficient statistics enter the risk.",
                "Evaluate the data that will be released, made by these models.",
                is_failed_check=True,
            )
            for failure in checks.failures
            if failure not in of_seeds
        ]
        found += [
            Finding(
                failure,
                "The risk takes the random numbers of the synthesis for unknown.",
                "Synthesize anew without a seed: a secret one is drawn.",
                is_failed_check=True,
            )
            for failure in of_seeds
        ]
        found += _about_unchecked(checks)
        found += [_about_relation(relation) for relation in checks.relations]
    return found


def _about_relation(relation: Relation) -> Finding:
    """Say that columns which are released as they are tell much of a variable."""
    return Finding(
        f"Columns that are released as they are tell much of {relation.variable}.",
        f"For many records {relation}. The risk takes for known what its models use.",
        "Leave such a column out, synthesize it too, or see that a model of the variable uses it.",
    )


def _about_unchecked(checks: ReleaseChecks) -> list[Finding]:
    """Say which models could not be compared with the release."""
    by_variable: dict[str, list[int]] = {}
    for variable, number in checks.unchecked:
        by_variable.setdefault(variable, []).append(number)
    return [
        Finding(
            (
                f"Whether the release came from the model of {variable} could not be checked "
                f"(dataset {listed(map(str, numbers))})."
            ),
            (
                "The synthetic rows do not carry a fit of this model (they are too few, or a "
                "predictor is constant among them), or draws that were made elsewhere are fewer "
                "than 20 for each parameter."
            ),
            "Evaluate whole datasets, with more draws; or, if you know that these models made "
            "them, say so in the criteria: unchecked_release='accept'.",
        )
        for variable, numbers in by_variable.items()
    ]


def _has_few_draws(evaluation: Evaluation) -> bool:
    """Tell whether some draws are too few for the tail of their weights to be looked at."""
    sets = (one for estimate in evaluation.estimates for one in estimate.error_sets)
    return any(one.n_draws < LEAST_JUDGED for one in sets)


def _about_few_draws(n_records: int) -> Finding:
    return Finding(
        f"{counted(n_records, 'record is', 'records are')} not reliable.",
        (
            "At some guess less than half of the draws carry the weight, and of fewer than "
            f"{LEAST_JUDGED} its tail cannot be judged: outliers, or guesses far from the model."
        ),
        f"Use {LEAST_JUDGED} draws or more (n_draws).",
    )


def _about_records(
    errors: ErrorsInShort, *, said: bool, can_be_fitted: bool, are_fitted: bool
) -> list[Finding]:
    found: list[Finding] = []
    if not can_be_fitted:
        at_guesses = "or let synrisk fit the models, which can then be fitted at each guess."
    elif are_fitted:
        at_guesses = "those most at risk were fitted at each guess already."
    else:
        at_guesses = "on_unreliable='fit' fits those most at risk at each guess."
    if not said and errors.n_unknown:
        found.append(
            Finding(
                (f"The error of {counted(errors.n_unknown, 'record')} cannot be estimated."),
                "There are too few draws, or weights beyond what numbers can hold.",
                "Use more draws (n_draws).",
            )
        )
    if errors.n_bad:
        found.append(
            Finding(
                (f"{counted(errors.n_bad, 'record is', 'records are')} not reliable."),
                (
                    "At some guess a few draws carry nearly all the weight (k̂ is high and the "
                    "effective number of draws is low): outliers, or guesses far from the model."
                ),
                "Use more draws, look at these records (the column reliable of the records), or "
                f"narrow their guesses; {at_guesses}",
            )
        )
    moved, error = errors.mean(errors.gains), errors.mean(errors.variances)
    if errors.n_known and error > _LARGE_ERROR * moved and error > 1e-12:
        found.append(
            Finding(
                "The Monte-Carlo error hides what the release tells.",
                (
                    f"Probabilities differ from the prior by {moved:.2g} on average (root mean "
                    f"square), and their standard error is {error:.2g}."
                ),
                "Use more draws (n_draws of the fit).",
            )
        )
    return found
