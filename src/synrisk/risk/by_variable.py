"""The evaluation of wide plans: every variable by itself and all together, never the joint grid.

The posterior of a prior s·p + (1 − s)·u is a mixture of two products of tables, what the models
predict times the likelihood and the widths of guesses times the likelihood; each is summed out
variable by variable over a tree of cliques (`core.clique_tree`). What a probability's error needs,
its derivatives in the logs of a table's cells, are probabilities of cells with and without the
variable near the truth, and these come from the same trees. Only what needs every cell by itself
is left out: the truth's rank, and what the models hold most probable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray
from synrisk.core.clique_tree import CliqueTree, Distribution, clique_tree, extremes
from synrisk.core.ranks import first_best, marginal_ranks
from synrisk.core.summary import LIKELY, ErrorArrays, RiskArrays
from synrisk.risk.estimators.estimate import Estimate
from synrisk.risk.guesses import Grid
from synrisk.risk.mcse import N_KINDS, SummedErrors, TargetDerivatives, errors_of_models

_MOST_COUNTED = 2.0**62  # cells that an integer counts
_NEXT_TO_NOTHING = 1e-9  # of a probability: what it may change in all without being looked at


@dataclass(frozen=True, repr=False)
class Tables:
    """What an evaluation by variable is made of.

    Attributes
    ----------
    axes
        The axes of each model's table.
    likelihood
        Each model's log likelihood, ``(record, cell)``.
    predicted
        The logs of what each predicts, with what a guess stands for; None where the prior is not
        made of that.
    grids
        The guesses, by variable.
    share
        Of the models in the prior.
    truth_factor
        How much more likely the truth is than any other cell in what is not of the models.
    asked
        The variables that are asked for, by axis.
    """

    axes: tuple[tuple[int, ...], ...]
    likelihood: Sequence[FloatArray]
    predicted: Sequence[FloatArray] | None
    grids: Sequence[Grid]
    share: float
    truth_factor: float
    asked: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the joint grid."""
        return tuple(grid.n_guesses for grid in self.grids)

    @property
    def n_records(self) -> int:
        """The number of records."""
        return len(self.grids[0].truth)

    @property
    def tree(self) -> CliqueTree:
        """The cliques of the tables."""
        return clique_tree(self.axes, self.shape)

    def over_cells(self, values: Any, model: int) -> Any:
        """Return what belongs to the guesses of a model's own variable for its table's cells."""
        n_parents = self.likelihood[model].shape[1] // values.shape[1]
        return np.tile(values, (1, n_parents))

    def present(self, logs: FloatArray, model: int) -> FloatArray:
        """Return logs of a model's cells, −∞ where a record does not have the guess."""
        absent = self.over_cells(~self.grids[self.axes[model][-1]].present, model)
        return np.where(absent, -np.inf, logs)

    def at_truth(self, model: int) -> IntArray:
        """Return the true cell of a model's table."""
        return self.cell(model, np.stack([grid.truth for grid in self.grids], axis=1))

    def cell(self, model: int, guesses: IntArray) -> IntArray:
        """Return which cell of a model's table some guesses are, ``(record, variable)``."""
        own = self.axes[model]
        places = tuple(guesses[:, axis] for axis in own)
        sizes = tuple(self.shape[axis] for axis in own)
        return np.asarray(np.ravel_multi_index(places, sizes), dtype=np.int64)


@dataclass(frozen=True, repr=False)
class _Part:
    """A part of a mixture, with what is asked of it.

    Attributes
    ----------
    weight
        Its share, ``(record,)``.
    distribution
        Over the guesses; None where all of it is at the truth.
    """

    weight: FloatArray
    distribution: Distribution | None


@dataclass(frozen=True, repr=False)
class _Beliefs:
    """What is believed after the release, and before it as far as the models go."""

    tables: Tables
    after: tuple[_Part, ...]
    predicted: Distribution | None

    def marginal(self, axis: int) -> FloatArray:
        """Return a variable's probabilities after the release, ``(record, guess)``."""
        total = np.zeros((self.tables.n_records, self.tables.shape[axis]))
        for part in self.after:
            found = part.distribution
            own = self._at_truth(axis) if found is None else found.marginal(axis)
            total += part.weight[:, None] * own
        return total

    def prior_marginal(self, axis: int) -> FloatArray:
        """Return a variable's probabilities before the release, ``(record, guess)``."""
        tables = self.tables
        uniform, n_cells = uniform_marginal(tables.grids[axis]), _n_cells(tables)
        extra = (tables.truth_factor - 1.0) / n_cells
        uniform = (uniform + extra[:, None] * self._at_truth(axis)) / (1.0 + extra)[:, None]
        if self.predicted is None:
            return np.asarray(uniform)
        share = tables.share
        return np.asarray(share * self.predicted.marginal(axis) + (1.0 - share) * uniform)

    def _at_truth(self, axis: int) -> FloatArray:
        grid = self.tables.grids[axis]
        return np.asarray(np.arange(grid.n_guesses) == grid.truth[:, None], dtype=np.float64)


def uniform_marginal(grid: Grid) -> FloatArray:
    """Return the probabilities of guesses that are as likely as what they stand for is wide."""
    logs = np.zeros(grid.values.shape) if grid.log_widths is None else grid.log_widths
    logs = np.where(grid.present, logs, -np.inf)
    parts = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def _n_cells(tables: Tables) -> FloatArray:
    """Return how many cells the joint grid of each record has; as a float, for they are many."""
    counts = [grid.present.sum(axis=1).astype(np.float64) for grid in tables.grids]
    return np.asarray(np.prod(counts, axis=0))


def evaluate_by_variable(
    tables: Tables,
    blocks: Sequence[Any],
    estimates: Sequence[Estimate],
    totals: Sequence[FloatArray | None],
    *,
    with_errors: bool,
) -> RiskArrays:
    """Return what is reported of each record of a block, but for what needs the joint grid.

    Parameters
    ----------
    tables
        The models' tables.
    blocks, estimates, totals
        The models, and the sums of their draws' weights.
    with_errors
        Whether to estimate Monte-Carlo errors.
    """
    asked, grids = tables.asked, tables.grids
    beliefs = _beliefs(tables)
    near = [grid.near if axis in asked else None for axis, grid in enumerate(grids)]
    marginals = tuple(np.ascontiguousarray(beliefs.marginal(axis)) for axis in asked)
    before = [beliefs.prior_marginal(axis) for axis in asked]
    drawn = with_errors and any(estimate.is_drawn for estimate in estimates)
    over = [_Within.of(part.distribution, tables, near, each=drawn) for part in beliefs.after]
    weights = [part.weight for part in beliefs.after]
    probability = sum((w * own.all_near for w, own in zip(weights, over, strict=True)))
    prior, of_prediction = _prior_of_all(beliefs, near, each=drawn)
    near_after = _summed(marginals, [grids[axis].near for axis in asked])
    near_before = _summed(before, [grids[axis].near for axis in asked])
    log_range, ends = _log_odds_range(tables)
    unknown = np.full(tables.n_records, np.nan)
    result = RiskArrays(
        np.asarray(probability),
        prior,
        unknown,
        _counted(tables),
        marginals,
        near_before,
        np.stack([best_of(m, grids[axis]) for m, axis in zip(marginals, asked, strict=True)], 1),
        log_range,
        None,
        None,
        None if beliefs.predicted is None else unknown.copy(),
        _likely_ranges(beliefs, marginals, before),
    )
    if len(asked) == 1:
        result = _of_one(result, grids[asked[0]], before[0])
    if not with_errors:
        return result
    if not drawn:
        ranks = np.repeat(result.rank[:, None], 2, axis=1)
        errors = ErrorArrays.none(ranks, len(asked), from_models=beliefs.predicted is not None)
        return replace(result, errors=errors)
    targets = np.concatenate([result.probability[:, None], near_after], axis=1)
    derivatives = _derivatives(beliefs, over, weights, of_prediction, targets)
    n_kinds = 1 if beliefs.predicted is None else N_KINDS
    summed = errors_of_models(
        derivatives,
        n_kinds * (1 + len(asked)),
        tables.n_records,
        tables.shape,
        blocks,
        estimates,
        totals,
    )
    return replace(result, errors=_errors(summed, tables, ends, with_prior=n_kinds > 1))


def _beliefs(tables: Tables) -> _Beliefs:
    """Return the parts of the posterior, and what the models predict."""
    tree, n_models = tables.tree, len(tables.axes)
    log_weights, parts = [], []
    predicted = None
    if tables.predicted is not None:
        # What a density is not known of is impossible, as in the kernel of the joint grid.
        logs = [np.where(own > -np.inf, own, -np.inf) for own in tables.predicted]
        predicted = Distribution.of(tree, [tables.present(own, k) for k, own in enumerate(logs)])
        both = [tables.present(logs[k] + tables.likelihood[k], k) for k in range(n_models)]
        parts.append(Distribution.of(tree, both))
        log_weights.append(np.log(tables.share) + parts[-1].log_total - predicted.log_total)
    if predicted is None or tables.share < 1.0:
        widths = [_log_widths(tables.grids[own[-1]]) for own in tables.axes]
        logs = [
            tables.present(tables.likelihood[k] + tables.over_cells(widths[k], k), k)
            for k in range(n_models)
        ]
        parts.append(Distribution.of(tree, logs))
        log_weights.append(np.log1p(-tables.share) + parts[-1].log_total)
    top = np.max(log_weights, axis=0)
    shares = [np.exp(log_weight - top) for log_weight in log_weights]
    found: list[Distribution | None] = [*parts]
    if tables.truth_factor != 1.0:
        at_truth = np.sum(
            [
                np.take_along_axis(own, tables.at_truth(k)[:, None], axis=1)[:, 0]
                for k, own in enumerate(tables.likelihood)
            ],
            axis=0,
        )
        # Every cell has the weight 1 in the product, the truth so much more.
        n_logs = np.log(_n_cells(tables))
        shares.append((tables.truth_factor - 1.0) * np.exp(at_truth - n_logs - top))
        found.append(None)
    total = np.sum(shares, axis=0)
    after = [_Part(w / total, own) for w, own in zip(shares, found, strict=True)]
    return _Beliefs(tables, tuple(after), predicted)


def _log_widths(grid: Grid) -> FloatArray:
    """Return logs of the uniform prior of guesses."""
    with np.errstate(divide="ignore"):
        return np.log(uniform_marginal(grid))


def _prior_of_all(
    beliefs: _Beliefs, near: Sequence[BoolArray | None], *, each: bool
) -> tuple[FloatArray, _Within | None]:
    """Return the prior probability that all that is asked for is near the truth."""
    tables = beliefs.tables
    uniform = np.ones(tables.n_records)
    for axis, own in enumerate(near):
        if own is not None:
            marginal = uniform_marginal(tables.grids[axis])
            uniform = uniform * np.where(own, marginal, 0.0).sum(axis=1)
    extra = (tables.truth_factor - 1.0) / _n_cells(tables)
    uniform = (uniform + extra) / (1.0 + extra)
    if beliefs.predicted is None:
        return uniform, None
    found = _Within.of(beliefs.predicted, tables, near, each=each)
    return tables.share * found.all_near + (1.0 - tables.share) * uniform, found


@dataclass(frozen=True, repr=False)
class _Within:
    """The probability that variables are near the truth, and that with each table's cells.

    Attributes
    ----------
    all_near
        That all that is asked for is near, ``(record,)``.
    over
        For each table ``(record, cell, [all, all near, each near …])``; none where not asked for.
    """

    all_near: FloatArray
    over: list[FloatArray]

    @classmethod
    def of(
        cls,
        distribution: Distribution | None,
        tables: Tables,
        near: Sequence[BoolArray | None],
        *,
        each: bool,
    ) -> _Within:
        """Return them for a part of the posterior; None stands for the truth alone."""
        asked, n_targets = tables.asked, 2 + len(tables.asked)
        if distribution is None:
            over = [np.zeros((*table.shape, n_targets)) for table in tables.likelihood]
            for k, table in enumerate(over):
                table[np.arange(len(table)), tables.at_truth(k)] = 1.0
            return cls(np.ones(tables.n_records), over)
        all_near, of_all = distribution.within_all(near)
        if not each:
            return cls(all_near, [])
        over = [np.empty((*table.shape, n_targets)) for table in tables.likelihood]
        columns = [distribution.over_tables(), of_all]
        columns += [distribution.within_one(axis, tables.grids[axis].near) for axis in asked]
        for target, by_table in enumerate(columns):
            for table, own in zip(over, by_table, strict=True):
                table[:, :, target] = own
        return cls(all_near, over)


def _derivatives(
    beliefs: _Beliefs,
    over: Sequence[_Within],
    weights: Sequence[FloatArray],
    of_prediction: _Within | None,
    targets: FloatArray,
) -> Callable[[int], TargetDerivatives]:
    """Return what gives the derivatives of targets in the logs of a model's cells.

    They are those of `risk.mcse`: in the log likelihood of a cell, π(cell, near) − π(near) π(cell);
    in the log of what is predicted the same of that part of the posterior, less what normalises it.
    """
    share = beliefs.tables.share

    def of_model(model: int) -> TargetDerivatives:
        parts = [w[:, None, None] * own.over[model] for w, own in zip(weights, over, strict=True)]
        whole = np.sum(parts, axis=0)
        likelihood = whole[:, :, 1:] - targets[:, None, :] * whole[:, :, :1]
        if of_prediction is None:
            return _of_those_that_change(likelihood, None, targets)
        from_models = parts[0]
        after = from_models[:, :, 1:] - targets[:, None, :] * from_models[:, :, :1]
        predicted = of_prediction.over[model]
        model_near = predicted[:, :, 1:].sum(axis=1)
        before = share * (predicted[:, :, 1:] - model_near[:, None, :] * predicted[:, :, :1])
        prior = np.concatenate([after, before, after - before], axis=2)
        prior -= predicted[:, :, :1] * prior.sum(axis=1)[:, None, :]
        return _of_those_that_change(
            np.concatenate([likelihood, np.zeros_like(after), likelihood], axis=2),
            prior,
            np.tile(np.minimum(targets, share * model_near), (1, N_KINDS)),
        )

    return of_model


def _of_those_that_change(
    likelihood: FloatArray, prior: FloatArray | None, probability: FloatArray
) -> TargetDerivatives:
    """Return the derivatives of targets that change with a model by more than next to nothing.

    What hangs together with a model through several others hardly changes with it. Whether it is
    left out is decided record by record, and then it has no error, so that a block of other records
    changes nothing.
    """
    size = np.abs(likelihood).sum(axis=1)
    if prior is not None:
        size = size + np.abs(prior).sum(axis=1)
    changes = size > _NEXT_TO_NOTHING * probability
    chosen = np.flatnonzero(changes.any(axis=0))
    kept, zeros = changes[:, None, chosen], np.zeros((*likelihood.shape[:2], 1))

    def of_chosen(values: FloatArray) -> FloatArray:
        some = np.where(kept, values[:, :, chosen], 0.0)
        return np.ascontiguousarray(np.concatenate([zeros, some], axis=2))

    return TargetDerivatives(
        of_chosen(likelihood),
        None if prior is None else of_chosen(prior),
        chosen,
        changes[:, chosen],
    )


def _errors(
    summed: SummedErrors, tables: Tables, ends: IntArray, *, with_prior: bool
) -> ErrorArrays:
    n_records, n_targets = tables.n_records, 1 + len(tables.asked)
    unknown = np.isnan(summed.variance[:, 0])
    of_range = np.zeros(n_records)
    for end in range(2):
        variance = np.zeros(n_records)
        for model, own in zip(summed.models, summed.of_likelihood, strict=True):
            cell = tables.cell(model, ends[:, end])
            variance += np.take_along_axis(own, cell[:, None], axis=1)[:, 0]
        of_range += np.sqrt(variance)
    of_range[unknown | (len(tables.asked) < len(tables.grids))] = np.nan
    none, sds = np.full(n_records, np.nan), np.sqrt(summed.variance)
    errors = ErrorArrays(
        sds[:, :n_targets], none, none.copy(), of_range, summed.ess, summed.khat,
        summed.reliable & ~unknown,
    )  # fmt: skip
    if not with_prior:
        return errors
    return replace(
        errors,
        prior_mcse=sds[:, n_targets : 2 * n_targets],
        gain_mcse=sds[:, 2 * n_targets :],
        likely_range_mcse=none.copy(),
    )


def _log_odds_range(tables: Tables) -> tuple[FloatArray, IntArray]:
    """Return the range of the log likelihood over all cells, and the guesses at its ends.

    It is of all variables: of some of several it is not known.
    """
    if len(tables.asked) < len(tables.grids):
        nowhere = np.zeros((tables.n_records, 2, len(tables.grids)), dtype=np.int64)
        return np.full(tables.n_records, np.nan), nowhere
    ends, guesses = extremes(
        tables.tree, tables.likelihood, [~grid.present for grid in tables.grids]
    )
    return ends[:, 1] - ends[:, 0], guesses


def _counted(tables: Tables) -> IntArray:
    """Return the number of cells that are asked for; 0 where no integer counts them."""
    counts = [tables.grids[axis].present.sum(axis=1) for axis in tables.asked]
    many = np.prod([own.astype(np.float64) for own in counts], axis=0) > _MOST_COUNTED
    return np.asarray(np.where(many, 0, np.prod(counts, axis=0)), dtype=np.int64)


def _summed(marginals: Sequence[FloatArray], near: Sequence[BoolArray]) -> FloatArray:
    columns = [np.where(n, m, 0.0).sum(axis=1) for m, n in zip(marginals, near, strict=True)]
    return np.stack(columns, axis=1)


def best_of(marginal: FloatArray, grid: Grid) -> IntArray:
    """Return which guess is best by its probability, or its density where it stands for several."""
    return first_best(density_of(marginal, grid))


def density_of(marginal: FloatArray, grid: Grid) -> FloatArray:
    """Return probabilities over what guesses stand for."""
    return marginal if grid.log_widths is None else marginal * np.exp(-grid.log_widths)


def _likely_ranges(
    beliefs: _Beliefs, marginals: Sequence[FloatArray], before: Sequence[FloatArray]
) -> FloatArray:
    """Return by variable how far the release moved log odds among what the models hold likely."""
    tables = beliefs.tables
    found = np.full((tables.n_records, len(tables.asked)), np.nan)
    if beliefs.predicted is None:
        return found
    for k, axis in enumerate(tables.asked):
        model = beliefs.predicted.marginal(axis)
        likely = _likely(model, density_of(model, tables.grids[axis]))
        found[:, k] = _range_of_ratio(marginals[k], before[k], likely)
    return found


def _likely(p: FloatArray, density: FloatArray) -> BoolArray:
    """Tell which guesses have 99 % of the probability together, those of the largest density."""
    order = np.argsort(-density, axis=1, kind="stable")
    above = np.cumsum(np.take_along_axis(p, order, axis=1), axis=1)
    within = np.zeros(p.shape, dtype=bool)
    first = np.concatenate([np.zeros((len(p), 1)), above[:, :-1]], axis=1) < LIKELY * above[:, -1:]
    np.put_along_axis(within, order, first, axis=1)
    return within & (p > 0.0)


def _range_of_ratio(after: FloatArray, before: FloatArray, within: BoolArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.log(after) - np.log(before)
    return np.asarray(
        np.where(within, moved, -np.inf).max(axis=1) - np.where(within, moved, np.inf).min(axis=1)
    )


def _of_one(result: RiskArrays, grid: Grid, before: FloatArray) -> RiskArrays:
    """Return the result where one variable is asked for: its rank and range are those of all."""
    (marginal,) = result.marginals
    log_range = _range_of_ratio(marginal, before, grid.present & (before > 0.0))
    return replace(
        result,
        rank=marginal_ranks(density_of(marginal, grid), grid.truth, grid.present),
        log_odds_range=log_range,
    )
