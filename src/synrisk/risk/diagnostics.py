"""What is shaky about a result, why, and what to do, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from synrisk.base.errors import listed
from synrisk.base.notes import Count, Note, for_anyone, for_inside
from synrisk.core.summary import RiskArrays
from synrisk.fitting.psis import are_reliable
from synrisk.risk.estimators.estimates import LEAST_RELEASE_ESS, Importance, Stacked
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.release_checks import ReleaseChecks

_LARGE_ERROR = 0.5  # of the distance between probability and prior, over the records


class ReliabilityWarning(UserWarning):
    """Some number of a result should not be relied on as it stands."""


@dataclass(frozen=True)
class Finding:
    """Something shaky.

    Attributes
    ----------
    what, why
        With who may read it.
    what_to_do
        Advice, for anyone: no number of the data is in it.
    by_choice
        Whether whoever asked for it knows, and is not warned.
    is_failed_check
        Whether it is of the checks of the release, which have a table of their own in a report.
    """

    what: Note
    why: Note
    what_to_do: str
    by_choice: bool = False
    is_failed_check: bool = False


def table_of(found: Sequence[Finding]) -> pd.DataFrame:
    """Return a row a finding: what, why, what to do."""
    rows = [(str(one.what), str(one.why), one.what_to_do) for one in found]
    return pd.DataFrame(rows, columns=["what", "why", "what_to_do"])


def findings(
    evaluation: Evaluation, result: RiskArrays, checks: ReleaseChecks | None
) -> list[Finding]:
    """Return what is shaky."""
    found: list[Finding] = []
    if evaluation.paired:
        found.append(
            Finding(
                for_anyone("The Monte-Carlo error is not known."),
                for_anyone(
                    "The paper's estimator pairs the draws of all models, and gives no error."
                ),
                "Use the estimator 'auto', or 'importance' for draws that were made elsewhere.",
                by_choice=True,
            )
        )
    elif result.errors is None:
        found.append(
            Finding(
                for_anyone("The Monte-Carlo error is not known."),
                for_anyone("The risk was evaluated with diagnostics=False."),
                "Evaluate it with diagnostics=True.",
                by_choice=True,
            )
        )
    names = evaluation.synthesizer.plan.synthesized
    for name, estimate in zip(names, evaluation.estimates, strict=True):
        if isinstance(estimate, Importance) and not evaluation.paired:
            found += _about_release_weights(name, estimate)
        elif isinstance(estimate, Stacked) and not estimate.reliable:
            found.append(
                Finding(
                    for_anyone(f"{name} cannot be relied on."),
                    for_anyone(
                        "A fit to confidential and synthetic data together is too far from normal."
                    ),
                    "Merge rare levels, leave predictors out, or narrow the priors.",
                )
            )
    if result.errors is not None:
        said = any("cannot be estimated" in str(one.what) for one in found)
        fitted = any(model.fit is not None for model in evaluation.synthesizer.models)
        found += _about_records(result, said=said, fitted=fitted)
    if checks is not None:
        found += [
            Finding(
                for_inside(failure),
                for_anyone("Only the models' sufficient statistics enter the risk."),
                "Evaluate the data that will be released, made by these models.",
                is_failed_check=True,
            )
            for failure in checks.failures
        ]
        found += _about_unchecked(checks)
    return found


def _about_unchecked(checks: ReleaseChecks) -> list[Finding]:
    """Say which models could not be compared with the release."""
    by_variable: dict[str, list[int]] = {}
    for variable, number in checks.unchecked:
        by_variable.setdefault(variable, []).append(number)
    return [
        Finding(
            for_anyone(
                f"Whether the release came from the model of {variable} could not be checked "
                f"(dataset {listed(map(str, numbers))})."
            ),
            for_anyone(
                "The synthetic rows do not carry a fit of this model (they are too few, or a "
                "predictor is constant among them), or draws that were made elsewhere are fewer "
                "than 20 for each parameter."
            ),
            "Evaluate whole datasets, with more draws; or, if you know that these models made "
            "them, say so in the criteria: unchecked_release='accept'.",
        )
        for variable, numbers in by_variable.items()
    ]


def _about_release_weights(name: str, estimate: Importance) -> list[Finding]:
    """Judge the draws weighted by the density of the release, once a dataset."""
    sizes, shapes = estimate.release_ess, estimate.release_khat
    worst, n_draws = int(np.argmin(sizes)), len(estimate.draws.log_v)
    carried = f"{n_draws:,} draws carry the weight of {sizes[worst]:.1f}"
    instead = (
        "Let synrisk fit the models (estimator 'auto' then does without these weights), give draws "
        "of fits to confidential and synthetic rows together (stacked=, in Python), or use many "
        "more draws."
    )
    if not estimate.has_known_error:
        what = for_anyone(f"The error of {name} cannot be estimated.")
        why = for_anyone(
            f"Weighted by the density of the release (dataset {worst + 1}), {carried}; below "
            f"{LEAST_RELEASE_ESS:.0f} the error is not seen."
        )
        return [Finding(what, why, instead)]
    heavy = ~are_reliable(shapes, sizes, n_draws)
    if heavy.any():
        one = int(np.argmax(np.where(heavy, shapes, -np.inf)))
        what = for_anyone(f"The error of {name} may be larger than it looks.")
        why = for_anyone(
            f"Weighted by the density of the release (dataset {one + 1}), the draws have weights "
            f"with a heavy tail (k̂ = {shapes[one]:.2f}); {carried}."
        )
        return [Finding(what, why, instead)]
    return []


def _about_records(result: RiskArrays, *, said: bool, fitted: bool) -> list[Finding]:
    errors = result.errors
    assert errors is not None  # noqa: S101 - the caller looked
    found: list[Finding] = []
    known = np.isfinite(errors.mcse[:, 0])
    if not said and not known.all():
        found.append(
            Finding(
                for_anyone(
                    "The error of ",
                    Count(int((~known).sum()), "record", of=len(known)),
                    " cannot be estimated.",
                ),
                for_anyone("There are too few draws, or weights beyond what numbers can hold."),
                "Use more draws (n_draws).",
            )
        )
    n_bad = int((known & ~errors.reliable & (errors.khat > 0)).sum())
    if n_bad:
        found.append(
            Finding(
                for_anyone(
                    Count(n_bad, "record is", "records are", of=len(known)), " not reliable."
                ),
                for_anyone(
                    "At some guess a few draws carry nearly all the weight (k̂ is high and the "
                    "effective number of draws is low): outliers, or guesses far from the model."
                ),
                "Use more draws, look at these records (the column reliable of the records), or "
                "narrow their guesses; "
                + (
                    "in Python, on_unreliable='fit' fits them at each guess."
                    if fitted
                    else "or let synrisk fit the models, which can then be fitted at each guess."
                ),
            )
        )
    moved = np.sqrt(np.mean((result.probability - result.prior)[known] ** 2)) if known.any() else 0
    error = np.sqrt(np.mean(errors.mcse[known, 0] ** 2)) if known.any() else 0.0
    if known.any() and error > _LARGE_ERROR * moved and error > 1e-12:
        found.append(
            Finding(
                for_anyone("The Monte-Carlo error hides what the release tells."),
                for_inside(
                    f"Probabilities differ from the prior by {moved:.2g} on average (root mean "
                    f"square), and their standard error is {error:.2g}.",
                    instead="The standard error of the probabilities is more than half of what "
                    "they differ from the prior by on average (root mean square).",
                ),
                "Use more draws (n_draws of the fit).",
            )
        )
    return found
