"""Variables that nobody asked for: what limits on them are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from synrisk.base.errors import listed
from synrisk.verdict.criteria import Criteria
from synrisk.verdict.reasons import PASSED, UNJUDGED, Reason


@dataclass(frozen=True)
class LeftOutReason(Reason):
    """That some synthesized variables were not evaluated.

    Attributes
    ----------
    variables
        Those.
    """

    kind = "variables"
    caveat = "on the variables that were evaluated"
    variables: tuple[str, ...]

    @property
    def mark(self) -> str:
        """What it says of the release, in a word."""
        return "note" if self.outcome == PASSED else super().mark

    def sentence(self, *, sharing: bool = False) -> str:  # noqa: ARG002 - both read the same
        """Return it in words."""
        which = listed(self.variables)
        verb = "was" if len(self.variables) == 1 else "were"
        text = f"{which} {verb} synthesized and {verb} not evaluated (variables=)"
        if self.outcome == PASSED:
            return f"{text}; there is no limit on what is told of {which} or of all together."
        return (
            f"{text}, so whether limits on {which}, or on all variables together, are kept cannot "
            "be said. Evaluate all, or give limits on the others alone (variables by name)."
        )

    def _for_anyone(self) -> dict[str, Any]:
        return {"not_evaluated": list(self.variables)}


def reason_left_out(criteria: Criteria, names: Sequence[str]) -> LeftOutReason:
    """Return what follows from variables that were not evaluated."""
    limited = bool(criteria.limits) or any(criteria.for_variable(name) for name in names)
    return LeftOutReason(UNJUDGED if limited else PASSED, tuple(names))
