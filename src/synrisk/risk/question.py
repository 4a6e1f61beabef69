"""The question that a risk answers: which values an intruder considers, and what counts as learnt.

By default it is the one to sign a release by: every value in a range, mostly believing the models,
and the truth counts as learnt within a tolerance (METHOD §12). The paper's own is a few guesses
about the truth, all equally likely, and the truth alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from synrisk.base.arrays import IntArray
from synrisk.base.chunks import rows_at
from synrisk.base.errors import one_of
from synrisk.data.schema import Factor
from synrisk.risk.grid_size import rooms
from synrisk.risk.guesses import (
    EQUAL,
    Everybody,
    Grid,
    Guesses,
    Range,
    Target,
    Tolerance,
    for_target,
    lay_out,
    near,
    strategies,
    tolerances,
)
from synrisk.risk.guesses.gaps import refuse_others, with_gap
from synrisk.risk.intruder_prior import Prior
from synrisk.risk.intruder_prior import prior as resolve_prior
from synrisk.risk.residual_detail import residual_detail
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.synthesizer import Synthesizer

QuestionName: TypeAlias = Literal["release", "paper"]
QUESTIONS: tuple[QuestionName, ...] = ("release", "paper")
_USUAL_SHARES = 0.5, 0.95  # of the models in the prior: the rest holds nothing impossible
_PAPER = 11  # guesses
_A_PAIR = 2  # variables that hang together at least: so many guesses are enough


@dataclass(frozen=True, repr=False)
class Question:
    """What is asked about each record.

    Attributes
    ----------
    guesses
        The strategy, or the number of default guesses, by variable.
    tolerances
        How near to the truth a value counts as learnt, by variable.
    prior
        What the intruder believes before.
    is_wide
        Whether guesses are as many as there is room for in the cliques of the plan; else in the
        joint grid.
    """

    guesses: Mapping[str, Guesses | int]
    tolerances: Mapping[str, Tolerance]
    prior: Prior
    is_wide: bool = False

    @classmethod
    def of(
        cls, name: Any, synthesizer: Synthesizer, guesses: Any, prior: Any, tolerance: Any
    ) -> Question:
        """Return what somebody asked; None leaves it as the question of that name has it."""
        names = synthesizer.plan.synthesized
        paper = one_of("question", name, QUESTIONS) == "paper"
        default: Guesses | int = _PAPER if paper else Range()
        laid = strategies(default if guesses is None else guesses, names, default)
        # Among listed guesses the truth is one; of a range it is a part.
        found = {
            own: tolerances(
                tolerance, names, _near(synthesizer, own) if _is_range(laid[own]) else EQUAL
            )[own]
            for own in names
        }
        if prior is None:
            prior = "uniform" if paper else "mostly-model"
        return cls(laid, found, resolve_prior(prior))

    def targets(
        self, synthesizer: Synthesizer, positions: IntArray, n_datasets: int
    ) -> list[tuple[Guesses, Target]]:
        """Return for each variable the strategy, and the values that guesses are made for."""
        laid = []
        for k, name in enumerate(synthesizer.plan.synthesized):
            target = self._target(synthesizer, k, positions, n_datasets)
            if _gap_of(synthesizer, name) is not None:
                refuse_others(self.guesses[name], name)
            laid.append((for_target(self.guesses[name], target), target))
        return self._with_room(synthesizer, laid) if self.is_wide else laid

    def _with_room(
        self, synthesizer: Synthesizer, laid: Sequence[tuple[Guesses, Target]]
    ) -> list[tuple[Guesses, Target]]:
        """Return strategies and targets with how many guesses each variable has room for."""
        wanted = [own.width(replace(target, n_variables=_A_PAIR)) for own, target in laid]
        free = [isinstance(own, Range) and own.is_free(target) for own, target in laid]
        found = rooms(synthesizer.plan, wanted, free)
        return [
            (own, replace(target, n_variables=_A_PAIR, room=room))
            for (own, target), room in zip(laid, found, strict=True)
        ]

    def _target(
        self, synthesizer: Synthesizer, k: int, positions: IntArray, n_datasets: int
    ) -> Target:
        plan = synthesizer.plan
        name = plan.synthesized[k]
        everybody = everybody_of(synthesizer, name)
        truth = rows_at(synthesizer.columns[name], positions).astype(np.float64)
        if everybody.gap is not None:
            # Who has no value has guesses about the middle one; missing is a guess of its own.
            truth = np.where(truth == everybody.gap, everybody.middle, truth)
        target = Target(
            synthesizer.schema.variables[name],
            plan.regressions[k].of_values,
            truth,
            everybody,
            positions,
            np.zeros(len(positions)),
            len(plan.synthesized),
            _detail(synthesizer, synthesizer.models[k], n_datasets)
            if self.is_of_range(name)
            else 1.0,
        )
        return replace(target, reach=self.tolerances[name].of(target))

    def grids(
        self, synthesizer: Synthesizer, positions: IntArray, n_datasets: int
    ) -> tuple[Grid, ...]:
        """Return the guesses, for each variable."""
        return lay_out_all(synthesizer, positions, self.targets(synthesizer, positions, n_datasets))

    def is_of_range(self, name: str) -> bool:
        """Tell whether every value in a range of this variable is considered."""
        return _is_range(self.guesses.get(name, 0))

    def differences(self, synthesizer: Synthesizer) -> list[str]:
        """Return what is asked differently from the question to sign a release by, in words."""
        found = []
        listed = [
            name
            for name in synthesizer.plan.synthesized
            if not self.is_of_range(name)
            and not isinstance(synthesizer.schema.variables[name], Factor)
        ]
        if listed:
            found.append("guesses are a list or lie about the truth, not in a whole range")
        if not _USUAL_SHARES[0] <= self.prior.model_share <= _USUAL_SHARES[1]:
            found.append("before the release the intruder believes something else")
        for name in filter(self.is_of_range, synthesizer.plan.synthesized):
            own, usual = self.tolerances[name], _near(synthesizer, name)
            if own != usual and _is_narrower(own, usual):
                found.append(f"less than usual counts as near to {name}")
        return found

    @property
    def is_of_ranges(self) -> bool:
        """Whether every value in a range is considered, of every variable."""
        return all(map(self.is_of_range, self.tolerances))

    def span(
        self, name: str, synthesizer: Synthesizer, n_datasets: int
    ) -> tuple[float, float] | None:
        """Return the range of a continuous variable's guesses; None where they are listed."""
        strategy = self.guesses.get(name)
        if not isinstance(strategy, Range):
            return None
        k = synthesizer.plan.synthesized.index(name)
        target = self._target(synthesizer, k, np.zeros(1, dtype=np.int64), n_datasets)
        listed = target.is_whole or strategy.few_values(target) is not None
        return None if listed else strategy.span(target)

    def declared(self, name: str, synthesizer: Synthesizer) -> tuple[float, float] | None:
        """Return the range of guesses that somebody declared, or None."""
        strategy = self.guesses.get(name)
        if not isinstance(strategy, Range):
            return None
        return strategy.declared(synthesizer.schema.variables[name])

    def within(self, factor: float) -> Question:
        """Return the question with other tolerances, so many times the present ones."""
        return replace(
            self,
            tolerances={name: own.times(factor) for name, own in self.tolerances.items()},
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON has it, without the prior, and without guesses that are not ranges."""
        ranges = {name: asdict(own) for name, own in self.guesses.items() if isinstance(own, Range)}
        return {
            "guesses": ranges,
            "tolerances": {name: asdict(own) for name, own in self.tolerances.items()},
            "is_wide": self.is_wide,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], names: Sequence[str], prior: Prior) -> Question:
        """Return what `to_json` stored of variables that have these names."""
        ranges = {name: _range(own) for name, own in stored["guesses"].items() if name in names}
        reaches = {name: Tolerance(**stored["tolerances"][name]) for name in names}
        return cls(ranges, reaches, prior, stored.get("is_wide", False) is True)


def widths(synthesizer: Synthesizer, laid: Sequence[tuple[Guesses, Target]]) -> tuple[int, ...]:
    """Return the number of guesses for each variable, before any is laid out."""
    return tuple(
        strategy.width(target) + (_gap_of(synthesizer, target.name) is not None)
        for strategy, target in laid
    )


def lay_out_all(
    synthesizer: Synthesizer, positions: IntArray, laid: Sequence[tuple[Guesses, Target]]
) -> tuple[Grid, ...]:
    """Return the guesses for each variable; that it is missing is one where that is modelled."""
    found = []
    for strategy, target in laid:
        grid, gap = lay_out(strategy, target), _gap_of(synthesizer, target.name)
        if gap is not None:
            is_gap = rows_at(synthesizer.columns[target.name], positions) == gap
            grid = with_gap(grid, target.name, is_gap, gap)
        found.append(grid)
    return tuple(found)


def _range(stored: Mapping[str, Any]) -> Range:
    within = stored["within"]
    return Range(stored["n"], stored["margin"], None if within is None else (within[0], within[1]))


def _near(synthesizer: Synthesizer, name: str) -> Tolerance:
    (regression,) = [one for one in synthesizer.plan.regressions if one.response == name]
    is_whole = not regression.distribution.is_continuous
    return near(everybody_of(synthesizer, name), is_whole=is_whole)


def everybody_of(synthesizer: Synthesizer, name: str) -> Everybody:
    """Return what is to be known of everybody's values of a synthesized variable."""
    gap = _gap_of(synthesizer, name)
    (regression,) = [one for one in synthesizer.plan.regressions if one.response == name]
    is_whole = not regression.of_values.distribution.is_continuous

    def look() -> Everybody:
        return Everybody.of(synthesizer.columns[name], gap, is_whole=is_whole)

    return synthesizer.memory.recall(f"everybody's {name}", look)


def _gap_of(synthesizer: Synthesizer, name: str) -> float | None:
    """Return the number that stands for a missing value of a variable, where these are modelled."""
    variable = synthesizer.schema.variables[name]
    return None if isinstance(variable, Factor) else variable.gap


def _is_narrower(own: Tolerance, usual: Tolerance) -> bool:
    """Tell whether no part of a tolerance is as wide as the usual one's."""
    widths = [(own.share, usual.share), (own.width or 0.0, usual.width or 0.0)]
    widths.append((own.sds or 0.0, usual.sds or 0.0))
    return all(one <= other for one, other in widths) and own.width is None


def _is_range(strategy: Guesses | int) -> bool:
    return isinstance(strategy, Range)


def _detail(synthesizer: Synthesizer, model: Model, n_datasets: int) -> float:
    """Return over what width, on the model's scale, prior or likelihood of a value change.

    The prior over a residual standard deviation σ, without the record: an outlier makes it what it
    is with it. The information of a release of m datasets about a record's value is about
    m (h/2 + z²/n)/σ² of its leverage h and standardised residual z.
    """
    if model.regression.distribution.residual_sd(model.posterior.auxiliary) is None:
        return 1.0

    def found() -> tuple[float, float]:
        return residual_detail(model, synthesizer.refits.table(model, None))

    sd, information = synthesizer.memory.recall(f"detail of {model.response}", found)
    return sd / float(np.sqrt(1.0 + n_datasets * information))
