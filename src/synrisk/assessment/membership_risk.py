"""Membership risk: what a release tells of who was in the data, by the models that made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.audit.membership import ModelMembership, membership_by_models
from synrisk.base.errors import OptionError, counted, got, within_memory
from synrisk.base.workers import workers
from synrisk.core.measures import JOINT, RecordMeasures
from synrisk.data.frames import TableLike
from synrisk.risk.release_checks import ReleaseChecks, check_release
from synrisk.synthesis.leaks import refuse_leaks
from synrisk.synthesis.release import read_release
from synrisk.synthesis.synthesizer import Synthesizer
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.of_membership import judge_membership
from synrisk.verdict.reasons import CALLED
from synrisk.verdict.verdict import Verdict

_DEFAULT = Criteria(gain=0.1)


@dataclass(frozen=True, eq=False, repr=False)
class MembershipRisk:
    """How surely an intruder tells from a release that a person was in the data.

    Made by `membership_risk`. The intruder knows the models and all other records, and held it for
    as likely as not that the person was in the data. It is of this release: another one of the same
    fit would give other numbers.

    Attributes
    ----------
    n_datasets
        The number of synthetic datasets.
    notes
        What the numbers assume.
    release_check
        What was found about the release: all numbers assume that it came from the models.
    """

    n_datasets: int
    notes: tuple[str, ...]
    release_check: ReleaseChecks
    _not_made: tuple[str, ...]
    _found: ModelMembership
    _labels: pd.Index[Any]

    def __repr__(self) -> str:
        return (
            f"<MembershipRisk: {counted(len(self._labels), 'record')}; "
            f"{counted(self.n_datasets, 'dataset')}; advantage {self.advantage:.3f}; "
            f"ε at least {self.epsilon():.3f}>"
        )

    @property
    def records(self) -> pd.DataFrame:
        """A row a record, in the confidential data's order.

        ``log_ratio`` is the logarithm of how much more probable the release is with the record in
        the data than without it, and ``log_ratio_mcse`` its Monte-Carlo error, 0 where it is exact.
        ``before`` and ``after`` are the probability that the record was in the data, without the
        release and with it, ``gain`` the difference and ``gain_mcse`` its error; ``reliable`` tells
        whether both can be relied on.
        """
        gain = self.measures[JOINT, "gain"]
        return pd.DataFrame(
            {
                "log_ratio": self._found.log_ratio,
                "log_ratio_mcse": self._found.error,
                "before": gain.before,
                "after": gain.after,
                "gain": gain.value,
                "gain_mcse": gain.error,
                "reliable": gain.reliable,
            },
            index=self._labels,
        )

    @property
    def measures(self) -> RecordMeasures:
        """The probability of membership by record, before the release and with it."""
        return self._found.measures

    @property
    def advantage(self) -> float:
        """How much oftener the best test of membership is right than wrong, over all records.

        It estimates the total variation between releases with a record and without it, on average
        over records: 0 where the release tells nothing, 1 where it tells everything.
        """
        return self._found.advantage[0]

    def epsilon(self, confidence: float = 0.95) -> float:
        """Return a lower bound on ε of pure differential privacy, one record added or removed.

        No mechanism with a smaller ε gives this release from these records, but for what Monte
        Carlo leaves open: where ratios were drawn the bound is too high with a probability of at
        most one less `confidence`; where they are exact, never. Records that cannot be relied on
        are left out. It bounds no (ε, δ), and a small bound is no proof that ε is small.

        Parameters
        ----------
        confidence
            That the bound holds, between 0 and 1.
        """
        if not isinstance(confidence, float) or not 0.0 < confidence < 1.0:
            raise OptionError("confidence must be a number between 0 and 1, such as 0.95.")
        return self._found.epsilon(confidence)

    def summary(self) -> pd.Series[float]:
        """Return the numbers of all records together.

        ``before`` and ``after`` are means over records; ``gain`` the mean of what the release adds,
        with ``gain_q95`` and ``gain_max``. ``advantage`` with its Monte-Carlo error, at most, and
        ``epsilon``, a lower bound with a confidence of 95 %. ``unreliable`` is the number of
        records that cannot be relied on.
        """
        gain = self.measures[JOINT, "gain"]
        advantage, error = self._found.advantage
        return pd.Series(
            {
                "before": gain.before.mean(),
                "after": gain.after.mean(),
                "gain": gain.value.mean(),
                "gain_q95": np.quantile(gain.value, 0.95),
                "gain_max": gain.value.max(),
                "advantage": advantage,
                "advantage_mcse": error,
                "epsilon": self.epsilon(),
                "unreliable": float((~gain.reliable).sum()),
            },
            name="membership",
        )

    def verdict(self, criteria: Criteria | None = None, *, rows: str = CALLED) -> Verdict:
        """Return whether the release keeps the criteria.

        Where columns are released that the models do not make, their rows may tell who was in the
        data: that fails, whatever the synthesized values tell.

        Parameters
        ----------
        criteria
            Limits on ``gain`` (what the release adds to the probability that the person was in the
            data, ½ before), ``probability`` or ``lift``. By default the gain is at most 0.1.
        rows
            What the verdict calls records: "people", "households".
        """
        criteria = _DEFAULT if criteria is None else criteria
        return judge_membership(
            criteria, self.measures, self._labels, self.release_check, self._not_made, rows
        )


@within_memory
def membership_risk(
    synthesizer: Synthesizer,
    synthetic: TableLike | Sequence[TableLike],
    *,
    executor: Any = None,
) -> MembershipRisk:
    """Return how surely an intruder tells from a release who was in the data.

    For each record the ratio of the release's probability with the record in the data and without
    it: a sum of logs over models and datasets, exact for gaussian models and by draws for others.

    Parameters
    ----------
    synthesizer
        The models, made by `fit`, and the confidential data.
    synthetic
        The release: a synthetic dataset, or a list of them.
    executor
        As in `attribute_risk`.

    Examples
    --------
    >>> import synrisk as sr
    >>> people = sr.load_households()[["LogIncome"]]
    >>> synthesizer = sr.fit(sr.Regression("LogIncome ~ 1"), people, seed=2**80)
    >>> risk = sr.membership_risk(synthesizer, synthesizer.synthesize(seed=2**81))
    >>> print(risk.advantage < 0.05, risk.verdict().outcome)
    True passed
    """
    if not isinstance(synthesizer, Synthesizer):
        raise OptionError(
            f"membership_risk takes what synrisk.fit returns, and a release; got "
            f"{got(synthesizer)}. For two files without models: audit(…, holdout=…).membership()."
        )
    if synthesizer.confidential.is_stored:
        raise OptionError(
            "The confidential data were read in parts, and membership is evaluated in memory: fit "
            "to a table in memory, or to a sample of it."
        )
    release = read_release(synthesizer.confidential, synthetic)
    near = refuse_leaks(synthesizer.confidential, release, synthesizer.memory)
    with workers(executor).shared() as team, team.open() as opened:
        found = membership_by_models(synthesizer, release, opened)
        checks = check_release(synthesizer, release, opened, near)
    # Whatever order or number of rows they have: no model says where these columns come from.
    columns = dict.fromkeys(str(name) for one in release for name in one.frame.columns)
    not_made = tuple(name for name in columns if name not in synthesizer.plan.synthesized)
    return MembershipRisk(
        len(release), _notes(found), checks, not_made, found, synthesizer.data.index
    )


def _notes(found: ModelMembership) -> tuple[str, ...]:
    notes = [
        (
            "The intruder knows the models, their priors, all other records and how many there "
            "are, and held it for as likely as not that the person was in the data."
        ),
        "It is of this release: another one of the same fit tells more or less of a person.",
    ]
    if found.error.any():
        notes.append(
            "Ratios of models other than gaussian ones are by posterior draws; more draws "
            "(n_draws= of fit) make their errors smaller."
        )
    n_open = int((~found.is_reliable).sum())
    if n_open:
        notes.append(
            f"Of {counted(n_open, 'record')} nothing can be said: a few draws carry their number, "
            "or they alone have a level that was read off the data. They are left out of ε."
        )
    return tuple(notes)
