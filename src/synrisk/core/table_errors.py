"""The Monte-Carlo error of a model's table: which draws it is estimated by, and how (METHOD §5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.core.batches import Units
from synrisk.core.likelihood import KernelDraws, ModelBlock
from synrisk.models.families import Family

_PAIR = 2
_SMALLEST = 1e-300  # factor of a draw: one of zero has a log
_ENOUGH_UNITS = 48  # for a standard error to be known to a tenth, where draws weigh alike
_EVEN = 0.5  # effective share of the draws below which some are not enough
_EVEN_RECORD = 0.8  # the same of a record, against that of the draws by themselves
_UNITS_A_DIRECTION = 4  # of those that matched moments take away
_UNITS_A_PARAMETER = 6  # where products are too many for a direction each
_EXPLAINED = 0.35  # of the variance, by matched products: measured, 0.28 to 0.43 in four models
_SD_OF_EXPLAINED = 0.15  # between models and records
_MOST_EXPLAINED = 0.75
_LEAST_SPARE = 5  # units of draws, beyond what is estimated, for an error to be known


@dataclass(frozen=True, repr=False)
class ErrorSets:
    """Sets of draws for the Monte-Carlo error: adjacent ones make a unit.

    Attributes
    ----------
    family, unit_size
        Of the draws.
    beta, parameters, log_v
        As in `KernelDraws`, with sets of draws on the first axis, laid out by `Units`.
    factors
        What each draw's weight is multiplied by, ``(set, factor, draw)``; 0 at empty places.
    signs
        How the logs of the sums enter log L, ``(set, factor)``.
    denominator
        The set and factor of the predictive density without the release; None if not among them.
    khat
        The shape of the tail of v times each factor, ``(set, factor)``, or NaN: where the weights
        of guesses are even, theirs has that shape too.
    basis
        Orthonormal directions over the units that have no error, ``(direction, unit)``.
    normals
        Standard normals of the units, the sums of whose products have no error, ``(unit,
        parameter)``.
    prior_signs
        How the logs of the sums enter the log of what is predicted of a guess, ``(set, factor)``.
    predicts
        In which sets guesses have the exponent 1, whatever the record's is.
    uses_all
        Whether errors are estimated by all units.
    """

    family: Family
    unit_size: int
    beta: FloatArray
    parameters: FloatArray
    log_v: FloatArray
    factors: FloatArray
    signs: FloatArray
    denominator: tuple[int, int] | None
    khat: FloatArray
    basis: FloatArray | None = None
    normals: FloatArray | None = None
    prior_signs: FloatArray | None = None
    predicts: tuple[int, ...] = ()
    uses_all: bool = False

    @classmethod
    def of(
        cls,
        sets: Sequence[KernelDraws],
        log_factors: FloatArray,
        signs: Sequence[Sequence[float]],
        denominator: tuple[int, int] | None,
        units: Units,
        khat: FloatArray | None = None,
    ) -> ErrorSets:
        """Lay out sets of draws that share the logs of their factors, ``(factor, draw)``."""
        factors = units.laid_out(np.exp(log_factors)) * units.occupied(log_factors.shape[1])
        return cls(
            sets[0].family,
            units.size,
            np.stack([units.laid_out(draws.beta) for draws in sets]),
            np.stack([units.laid_out(draws.parameters) for draws in sets]),
            np.stack([units.laid_out(draws.log_v) for draws in sets]),
            np.stack([factors] * len(sets)),
            np.array(signs, dtype=np.float64),
            denominator,
            np.full(np.shape(signs), np.nan) if khat is None else khat,
            units.basis,
            units.normals,
        )

    def with_prediction(self, *, is_weighted: bool) -> ErrorSets:
        """Return these with the draws that tell what is predicted of a guess.

        Where records have the exponent 1 those are the denominator's; else one more set.
        """
        prior_signs = np.zeros(self.signs.shape)
        if self.denominator is None:
            return replace(self, prior_signs=prior_signs)
        one, factor = self.denominator
        if not is_weighted:
            prior_signs[one, factor] = 1.0
            return replace(self, prior_signs=prior_signs)
        signs = np.zeros((1, self.signs.shape[1]))
        signs[0, factor] = 1.0

        def extended(values: FloatArray) -> FloatArray:
            return np.concatenate([values, values[[one]]])

        return replace(
            self,
            beta=extended(self.beta),
            parameters=extended(self.parameters),
            log_v=extended(self.log_v),
            factors=extended(self.factors),
            khat=extended(self.khat),
            signs=np.concatenate([self.signs, np.zeros_like(signs)]),
            prior_signs=np.concatenate([prior_signs, signs]),
            predicts=(len(self.signs),),
        )

    @property
    def n_draws(self) -> int:
        """The number of draws in a set; the first factor is 1."""
        return int(np.count_nonzero(self.factors[0, 0]))

    @property
    def n_units(self) -> int:
        """The number of units; the last may be smaller."""
        return -(-int(self.factors.shape[2]) // self.unit_size)

    @property
    def n_used(self) -> int:
        """How many units errors are estimated by: of independent ones, no more than are enough.

        Where weights are uneven a few units have most of the error, and some of all would miss
        them: all are used.
        """
        if self.uses_all or self.unit_size > _PAIR or self._evenness < _EVEN:
            return self.n_units
        n_directions = 0 if self.basis is None else len(self.basis)
        enough = max(_ENOUGH_UNITS, _UNITS_A_DIRECTION * n_directions, self._n_in_form)
        return min(self.n_units, enough)

    @property
    def _n_in_form(self) -> int:
        """How many units the share that matched products explain is estimated by."""
        n_parameters = 0 if self.normals is None else self.normals.shape[1]
        return min(self.n_units, max(_ENOUGH_UNITS, _UNITS_A_PARAMETER * n_parameters))

    @cached_property
    def evenness(self) -> float:
        """The effective share of the draws with their factors, the smallest of all that count."""
        weights = np.exp(self.log_v)[:, None, :] * self.factors
        shares = weights.sum(axis=2) ** 2 / (weights * weights).sum(axis=2)
        return float(shares[self.signs != 0.0].min() / self.n_draws)

    @cached_property
    def _evenness(self) -> float:
        """The effective share of the draws, the smallest of all sets."""
        v = np.exp(self.log_v) * (self.factors[:, 0] > 0)
        return float((v.sum(axis=1) ** 2 / (v * v).sum(axis=1)).min() / self.n_draws)

    def used(self) -> tuple[FloatArray, ...]:
        """Return coefficients, parameters, log v and factors of the draws in used units."""
        n = self.n_used * self.unit_size
        arrays = (self.beta, self.parameters, self.log_v, self.factors)
        return tuple(np.ascontiguousarray(values[..., :n]) for values in arrays)

    @property
    def used_basis(self) -> FloatArray:
        """The directions without an error, over the units that are used."""
        if self.basis is None:
            return np.zeros((0, self.n_used))
        if self.n_used == self.n_units:
            return np.ascontiguousarray(self.basis)
        return np.ascontiguousarray(np.linalg.qr(self.basis[:, : self.n_used].T)[0].T)

    def credit(self) -> tuple[float, FloatArray]:
        """Return the share and the quadratic form that many matched products take from squares.

        With effects φ and independent normals z of the units, products are orthogonal, and the
        share of φ's variance that they explain is estimated without bias by the sum over u ≠ u' of

            φ_u φ_u' k(z_u, z_u') / (n (n − 1))    k = ((z·z')² − |z|² − |z'|² + p) / 2

        against that of φ². Its variance is about p (p + 1)/n², so with few units it is drawn
        towards what models were found to have.
        """
        if self.normals is None:
            return 0.0, np.zeros((0, 0))
        z = self.normals[: self._n_in_form]
        n, n_parameters = z.shape
        squares = (z * z).sum(axis=1)
        form = 0.5 * ((z @ z.T) ** 2 - squares[:, None] - squares + n_parameters)
        np.fill_diagonal(form, 0.0)
        form -= form.mean(axis=0)
        form -= form.mean(axis=1)[:, None]
        noise = n_parameters * (n_parameters + 1) / n**2
        own = _SD_OF_EXPLAINED**2 / (_SD_OF_EXPLAINED**2 + noise)
        return (1.0 - own) * _EXPLAINED, np.ascontiguousarray(own / (n - 1) * form)

    def at_truth(self) -> FloatArray:
        """Return each used unit's effect on the log likelihood of the truth, where w is 1.

        And on the log of what is predicted of it, ``(2, unit)``.
        """
        weights = self.factors * np.exp(self.log_v)[:, None, :]
        weights /= weights.sum(axis=2)[:, :, None]
        prior_signs = np.zeros(self.signs.shape) if self.prior_signs is None else self.prior_signs
        total = np.stack(
            [(weights * by[:, :, None]).sum(axis=(0, 1)) for by in (self.signs, prior_signs)]
        )
        by_unit = np.add.reduceat(total, np.arange(0, total.shape[1], self.unit_size), axis=1)
        return np.ascontiguousarray(by_unit[:, : self.n_used])


def empty_totals(parts: Sequence[ErrorSets], block: ModelBlock) -> FloatArray:
    """Return what the sums of the weights fill, ``(set, record, factor, cell)``, of all parts."""
    n_records, n_guesses = block.guesses.shape
    n_sets, n_factors = sum(len(sets.signs) for sets in parts), parts[0].signs.shape[1]
    return np.empty((n_sets, n_records, n_factors, block.places.shape[1] * n_guesses))


@dataclass(frozen=True, repr=False)
class TableErrors:
    """Monte-Carlo errors of one model's table.

    Attributes
    ----------
    variance
        Of each target, ``(record, target)``.
    variance_from_truth
        Of the log likelihood of each cell against the truth's, ``(record, cell)``.
    variance_with_prior
        The same with what is predicted of the cell; None where the prior does not come from draws.
    ess, khat
        The smallest effective number of draws at a record's guesses, and the shape of the weights'
        tail there (NaN where the number is large enough to do without).
    """

    variance: FloatArray
    variance_from_truth: FloatArray
    ess: FloatArray
    khat: FloatArray
    variance_with_prior: FloatArray | None = None


def table_errors(
    block: ModelBlock,
    sets: ErrorSets,
    within: FloatArray,
    by_prior: FloatArray | None,
    totals: FloatArray,
    shape: tuple[int, ...],
    least_even: float,
) -> TableErrors:
    """Return the Monte-Carlo errors that a model's draws leave.

    Parameters
    ----------
    block, sets
        The model.
    within
        The probability of each cell, and that part of it which lies within each target,
        ``(record, cell, 1 + target)``; or zeros and derivatives.
    by_prior
        The derivatives of targets in the log of what is predicted, in the same places; None where
        the prior does not come from draws.
    totals
        The sums of the weights, ``(set, record, factor, cell)``.
    shape
        The shape of the joint grid.
    least_even
        The effective number of draws from which their tail is not looked at.
    """
    from synrisk.core.kernels import Draws, Matched, error_kernel

    n_records, n_cells, n_targets = within.shape
    found = TableErrors(
        np.empty((n_records, n_targets - 1)),
        np.empty((n_records, n_cells)),
        np.empty(n_records),
        np.empty(n_records),
        None if by_prior is None else np.empty((n_records, n_cells)),
    )
    given, n_given = sets, len(totals)
    if by_prior is not None:
        sets = sets.with_prediction(is_weighted=block.is_weighted)
        n_more = len(sets.signs) - len(totals)  # their sums are as among the draws that are used
        totals = np.concatenate([totals, np.full((n_more, *totals.shape[1:]), np.nan)])
    basis = sets.used_basis
    *used, used_factors = sets.used()
    error_kernel(sets.family)(
        block.predicting().records(shape),
        Draws(sets.beta, sets.parameters, sets.log_v),
        np.log(np.maximum(sets.factors, _SMALLEST)),
        Draws(*used),
        used_factors,
        sets.signs,
        np.zeros(sets.signs.shape) if sets.prior_signs is None else sets.prior_signs,
        np.isin(np.arange(len(sets.signs)), sets.predicts),
        sets.unit_size,
        sets.at_truth(),
        Matched(basis, *sets.credit(), _MOST_EXPLAINED),
        within,
        np.zeros((0, 0, 0)) if by_prior is None else by_prior,
        totals,
        least_even,
        sets.khat,
        found.variance,
        found.variance_from_truth,
        np.zeros((0, 0)) if found.variance_with_prior is None else found.variance_with_prior,
        found.ess,
        found.khat,
    )
    found.variance[:] *= _unbiased(sets.n_units, sets.n_used, len(basis))
    found.variance_from_truth[:] *= _unbiased(sets.n_units, sets.n_used, 0)
    if found.variance_with_prior is not None:
        found.variance_with_prior[:] *= _unbiased(sets.n_units, sets.n_used, 0)
    # A few draws have most of the error of an outlier: some would miss them.
    uneven = np.flatnonzero(found.ess < _EVEN_RECORD * sets.evenness * sets.n_draws)
    if len(uneven) and sets.n_used < sets.n_units:
        again = table_errors(
            block.part(uneven),
            replace(given, uses_all=True),
            within[uneven],
            None if by_prior is None else by_prior[uneven],
            np.ascontiguousarray(totals[:n_given, uneven]),
            shape,
            least_even,
        )
        for name, values in vars(again).items():
            if values is not None:
                getattr(found, name)[uneven] = values
    return found


def _unbiased(n_units: int, n_used: int, n_directions: int) -> float:
    """Return what a sum of squares over the used units is multiplied by; NaN where they are few.

    An effect has the size of one unit among all.
    """
    spare = n_used - 1 - n_directions
    return n_units / spare if spare >= _LEAST_SPARE else np.nan
