"""What the intruder believes before seeing the release: a log prior over each record's guesses."""

from __future__ import annotations

import contextlib
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.base.errors import FileError, PriorError, counted, got
from synrisk.risk.guesses import Grid
from synrisk.risk.guesses.spaced import is_real

_SUMS_TO_ONE = 1e-6  # how far a table's probabilities may be from summing to one


class Prior:
    """A prior over the joint grid; arrays are ``(record, guess₁, …, guess_K)``."""

    # Where all guesses but the truth are equally likely, how much more likely the truth is.
    truth_factor: ClassVar[float | None] = None
    # Whether it is made of the models' predictive densities, whose Monte-Carlo error it shares.
    needs_models: ClassVar[bool] = False

    # The share of what the models predict in it; the rest is uniform.
    model_share: float = 0.0

    def log_prior(self, grids: Sequence[Grid]) -> FloatArray:
        """Return normalised log probabilities of the guesses of a block of records.

        The first axis may have length 1 where all records share them. A prior that needs the models
        is worked out with them, in the kernel.
        """
        raise NotImplementedError

    def part(self, rows: slice) -> Prior:
        """Return what the intruder believes of some of the evaluated records."""
        return self

    def check(self, grids: Sequence[Grid], positions: IntArray, n_records: int) -> Prior:
        """Return this prior fitted to the grids, or raise; `positions` are the records."""
        return self


@dataclass(frozen=True)
class Uniform(Prior):
    """Every guess is equally likely."""

    truth_factor: ClassVar[float | None] = 1.0

    def log_prior(self, grids: Sequence[Grid]) -> FloatArray:
        """Return the log of what each cell stands for, over all."""
        if all(grid.is_complete and grid.log_widths is None for grid in grids):
            shape = tuple(grid.n_guesses for grid in grids)
            return np.full((1, *shape), -np.log(np.prod(shape, dtype=np.float64)))
        log_widths = np.zeros((1,) * (len(grids) + 1))
        for axis, grid in enumerate(grids):
            if grid.log_widths is not None:
                log_widths = log_widths + _along(grid.log_widths, axis, len(grids))
        return normalised(log_widths, joint_present(grids))


@dataclass(frozen=True)
class TruthFactor(Prior):
    """The truth is `factor` times as likely as any other guess.

    Parameters
    ----------
    factor
        A positive number; 1 is the uniform prior.
    """

    factor: float

    @property
    def truth_factor(self) -> float:  # type: ignore[override]
        """How much more likely the truth is."""
        return float(self.factor)

    def __post_init__(self) -> None:
        if not is_real(self.factor) or self.factor <= 0:
            raise PriorError("TruthFactor takes a positive number.")

    def log_prior(self, grids: Sequence[Grid]) -> FloatArray:
        """Return the log of `factor` at the truth and 0 elsewhere, normalised."""
        if any(grid.log_widths is not None for grid in grids):
            raise PriorError(
                "TruthFactor weighs the truth against other guesses, and a range has no single "
                "ones: use it with guesses that are listed, such as Relative or Values."
            )
        present = joint_present(grids)
        log_odds = np.zeros(present.shape)
        log_odds[joint_truth(grids)] = np.log(self.factor)
        return normalised(log_odds, present)


@dataclass(frozen=True)
class MostlyModel(Prior):
    """An intruder who knows everybody else, believes the models, and holds nothing impossible.

    A share of p(guess | the rest) by the models' predictive densities (METHOD §6), and else uniform
    over the range of the guesses.

    Parameters
    ----------
    share
        Of the models, above 0; 1 leaves nothing else.
    """

    needs_models: ClassVar[bool] = True
    share: float = 0.9

    def __post_init__(self) -> None:
        if not is_real(self.share) or not 0.0 < self.share <= 1.0:
            raise PriorError("MostlyModel takes a share above 0 and up to 1, such as 0.9.")

    @property
    def model_share(self) -> float:  # type: ignore[override]
        """The share of what the models predict."""
        return float(self.share)


@dataclass(frozen=True, eq=False, repr=False)
class Table(Prior):
    """Log probabilities: one table over the joint grid for all records, or one a record."""

    log_probabilities: Any

    def check(self, grids: Sequence[Grid], positions: IntArray, n_records: int) -> Prior:
        """Return the table with a row for each evaluated record, or raise."""
        table = _as_numbers(self.log_probabilities)
        shape = tuple(grid.n_guesses for grid in grids)
        n_rows = len(positions)
        if table.shape == shape:
            table = np.broadcast_to(table, (n_rows, *shape))
        elif table.shape == (n_records, *shape):
            table = table[positions]
        elif table.shape != (n_rows, *shape):
            raise PriorError(
                f"intruder_prior has shape {table.shape}; the guesses need {shape} for one table, "
                f"{(n_records, *shape)} for one a record of the confidential data, or "
                f"{(n_rows, *shape)} for one an evaluated record."
            )
        checked = Table(table)
        axes = tuple(range(1, table.ndim))
        present = joint_present(grids)
        with np.errstate(over="ignore"):
            total = np.where(present, np.exp(table), 0.0).sum(axis=axes)
        n_off = int((~(np.abs(total - 1.0) <= _SUMS_TO_ONE)).sum())
        if np.isnan(table).any() or (table == np.inf).any() or n_off:
            raise PriorError(
                "intruder_prior must hold natural logarithms of probabilities that sum to one over "
                f"a record's guesses; for {counted(n_off, 'record')} they do not. "
                "Pass numpy.log of the probabilities."
            )
        n_excluded = int((table[joint_truth(grids)] == -np.inf).sum())
        if n_excluded:
            raise PriorError(
                "intruder_prior gives the truth probability 0 for "
                f"{counted(n_excluded, 'record')}; no release could reveal it then."
            )
        return checked

    def log_prior(self, grids: Sequence[Grid]) -> FloatArray:
        """Return the rows of the table."""
        return normalised(self.log_probabilities, joint_present(grids))

    def part(self, rows: slice) -> Prior:
        """Return some rows of the table."""
        return Table(self.log_probabilities[rows])


def prior_to_json(prior_: Prior) -> dict[str, Any]:
    """Return a prior as JSON has it; a table's numbers are stored apart."""
    if isinstance(prior_, TruthFactor):
        return {"kind": "truth factor", "factor": float(prior_.factor)}
    if isinstance(prior_, Table):
        return {"kind": "table"}
    if isinstance(prior_, Uniform):
        return {"kind": "uniform"}
    if isinstance(prior_, MostlyModel):
        return {"kind": "model", "share": float(prior_.share)}
    raise FileError(f"A prior of type {type(prior_).__name__} cannot be saved.")


def prior_from_json(stored: Mapping[str, Any], table: Any) -> Prior:
    """Return the prior that `prior_to_json` stored."""
    if stored["kind"] == "truth factor":
        return TruthFactor(stored["factor"])
    if stored["kind"] == "model":
        return MostlyModel(stored.get("share", 1.0))
    if stored["kind"] == "table":
        return Table(table)
    if stored["kind"] != "uniform":
        raise FileError("The file has a prior that this version of synrisk does not know.")
    return Uniform()


def prior(spec: Any) -> Prior:
    """Return the prior that somebody asked for."""
    if isinstance(spec, Prior):
        return spec
    if isinstance(spec, str):
        if spec in _NAMED:
            return _NAMED[spec]
        raise PriorError(
            "intruder_prior must be 'mostly-model', 'model', 'uniform', MostlyModel(share), "
            f"TruthFactor(k), or an array of log probabilities; got {got(spec)}."
        )
    if isinstance(spec, numbers.Real):
        raise PriorError(
            "intruder_prior is a number; if the truth is to be so many times as likely as any "
            "other guess, say TruthFactor(k)."
        )
    return Table(spec)


_NAMED: dict[str, Prior] = {
    "mostly-model": MostlyModel(),
    "model": MostlyModel(1.0),
    "uniform": Uniform(),
}


def joint_present(grids: Sequence[Grid]) -> BoolArray:
    """Return which cells of the joint grid each record has."""
    n_records = len(grids[0].present)
    joint = np.ones((n_records,) + (1,) * len(grids), dtype=bool)
    for axis, grid in enumerate(grids):
        joint = joint & _along(grid.present, axis, len(grids))
    return joint


def joint_truth(grids: Sequence[Grid]) -> tuple[IntArray, ...]:
    """Return the index of each record's true cell."""
    truths = [grid.truth for grid in grids]
    return (np.arange(len(truths[0])), *truths)


def _along(values: Any, axis: int, n_axes: int) -> Any:
    shape = [1] * n_axes
    shape[axis] = values.shape[1]
    return values.reshape(len(values), *shape)


def _as_numbers(table: Any) -> FloatArray:
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        if not np.iscomplexobj(table):
            return np.asarray(table, dtype=np.float64)
    raise PriorError(
        f"intruder_prior must be an array of real numbers; got {type(table).__name__}."
    )


def normalised(log_odds: FloatArray, present: BoolArray) -> FloatArray:
    """Return log probabilities over the guesses that a record has."""
    masked = np.where(present, log_odds, -np.inf)
    axes = tuple(range(1, masked.ndim))
    return np.asarray(masked - logsumexp(masked, axis=axes, keepdims=True))
