"""Whose row is whose given several datasets, by confidential files that could have been.

The datasets were drawn from one confidential y, each by parameters of its own given y, so that

    p(y, Ỹ_1 … Ỹ_m) = p(y) Π_l p(Ỹ_l | y)            p(Ỹ_l | y) = ∫ f(Ỹ_l | θ) p(θ | y) dθ

and the datasets tell about each other's parameters only through y, which the intruder does not
know: it is summed over. Given all others' values y_-j, with t in row j,

    p(y_-j, t) Π_l p(Ỹ_l | y_-j, t) = D^(1-m) Π_l N_l
    D = ∫ p(θ) f(y_-j | θ) f(t | x_j, θ) dθ
    N_l = ∫ p(θ) f(y_-j | θ) f(t | x_j, θ) f(Ỹ_l | θ) dθ

Files y are drawn by parameters that fit all datasets, and weighted with this over the density
q(y_-j) that they are drawn with. All integrals are sums over one set of draws of θ, from a
posterior given all datasets that is wide enough for every file: it takes their rows together for
half a dataset. Models of a sequence have factors each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from synrisk.audit.row_search import LEAST_EFFECTIVE, OwnRows, Places, RowSearch, error_of_sum
from synrisk.base.arrays import FloatArray, IntArray
from synrisk.base.errors import OptionError
from synrisk.base.seeds import stream
from synrisk.base.workers import Executor
from synrisk.fitting import ArrayTable, Fit, Table
from synrisk.fitting.frozen import common_numbers
from synrisk.models.posterior import Posterior
from synrisk.synthesis.fitted_model import Model
from synrisk.synthesis.release import Released
from synrisk.synthesis.synthesizer import Synthesizer

_N_BLOCKS = 40  # of files, the units of their error
_IN_A_BLOCK = (15, 90)  # at first, and where these do not tell
_N_DRAWS = 1000  # of each model's parameters
_N_UNITS = 50  # of draws of parameters, likewise
_BREADTH = 0.5  # datasets that the draws of parameters are given
_MOST_WORK = 6e10  # multiplications: half a minute
_GOOD_ENOUGH = 0.005  # error of a probability
_DENSITY = 40.0  # multiplications that a density takes as long as


def tables_of(
    synthesizer: Synthesizer, model: Model, release: Sequence[Released], weight: float
) -> list[Table]:
    """Return the rows of all datasets, each of the same weight, as a fit takes them.

    Parameters
    ----------
    synthesizer, model, release
        The model, and the datasets.
    weight
        Of each row.
    """
    tables: list[Table] = []
    for dataset in release:
        matrix = synthesizer.refits.design(model, dataset)
        omega = np.full(len(matrix), weight)
        tables.append(ArrayTable(matrix, dataset.columns[model.response], omega))
    return tables


def fit_of(model: Model) -> Fit:
    """Return how a model was fitted; draws that were made elsewhere are refused before."""
    if model.fit is None:
        raise OptionError(f"The draws of {model.response!r} were made elsewhere.")
    return model.fit


def is_little_work(search: RowSearch, n_datasets: int, in_a_block: int = _IN_A_BLOCK[0]) -> bool:
    """Tell whether files that could have been can be gone through in seconds."""
    products = 4.0 * (n_datasets + 1) * search.n_pairs
    densities = _DENSITY * (2.0 * len(search.pattern_of) + len(search.row_of))
    n_models, n_files = len(search.models), _N_BLOCKS * in_a_block
    return n_models * n_files * _N_DRAWS * (products + densities) <= _MOST_WORK


def by_possible_files(
    search: RowSearch, release: Sequence[Released], executor: Executor
) -> OwnRows:
    """Return the probability of each record's own row given all datasets together.

    Parameters
    ----------
    search
        Which rows may be whose.
    release
        The datasets, two or more, their rows in one order.
    executor
        Maps over chunks of rows.
    """
    few, many = _IN_A_BLOCK
    found = _by_files(search, release, few, executor)
    told = found[2].all() and found[1].max() <= _GOOD_ENOUGH
    if told or not is_little_work(search, len(release), many):
        return found
    return _by_files(search, release, many, executor)


def _by_files(
    search: RowSearch, release: Sequence[Released], in_a_block: int, executor: Executor
) -> OwnRows:
    files = _Files.of(search, release, in_a_block, executor)
    n = len(search.kind_of)
    probability, error, reliable = np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
    by_kind = np.argsort(search.kind_of, kind="stable")
    starts = np.searchsorted(search.kind_of[by_kind], np.arange(len(search.record_of) + 1))
    for low, high in _cells(search):
        records = by_kind[starts[low] : starts[high]]
        at = Places.of(search, np.arange(low, high), records)
        own = files.own_rows(at, search.record_of[low:high])
        probability[records], error[records], reliable[records] = own
    return probability, error, reliable


def _cells(search: RowSearch) -> Iterator[tuple[int, int]]:
    """Yield the ranges of kinds with the same known values."""
    cells = search.candidates.of_records[search.record_of]
    ends = np.flatnonzero(np.diff(cells)) + 1
    yield from zip([0, *ends.tolist()], [*ends.tolist(), len(cells)], strict=True)


@dataclass(frozen=True, repr=False)
class _Pool:
    """One model: draws of its parameters, and its values in files that could have been.

    Attributes
    ----------
    model, fit, is_reliable
        The draws, wider than given all datasets.
    log_base
        The log of what a draw stands for of the prior.
    log_datasets
        log f(Ỹ_l | θ), ``(dataset, draw)``.
    log_proposal
        The log probability of a draw to be what a file is drawn by.
    y
        Of files, ``(file, row)``, on the model's scale.
    design
        Of files, ``(1 or file, row, column)``.
    log_whole
        log f(y | θ), ``(file, draw)``.
    """

    model: Model
    fit: Posterior
    is_reliable: bool
    log_base: FloatArray
    log_datasets: FloatArray
    log_proposal: FloatArray
    y: FloatArray
    design: FloatArray
    log_whole: FloatArray

    def log_row(self, search: RowSearch, row: int) -> FloatArray:
        """Return the log density of a row's values in the files, ``(file, draw)``."""
        eta = np.einsum("fc,hcp->fhp", self.design[:, row], self.fit.coefficients)
        return search.log_density(self.model, self.y[:, row, None], eta, self.fit.auxiliary[None])


@dataclass(frozen=True, repr=False)
class _Files:
    """Confidential files that could have been, and the draws that all sums go over."""

    search: RowSearch
    pools: tuple[_Pool, ...]
    n_datasets: int

    @classmethod
    def of(
        cls,
        search: RowSearch,
        release: Sequence[Released],
        in_a_block: int,
        executor: Executor,
    ) -> _Files:
        values: dict[str, Any] = {}
        pools = []
        for model in search.models:
            pool = _pool(search, model, release, values, in_a_block, executor)
            values[model.response] = search.own_scale(model, pool.y)
            pools.append(pool)
        return cls(search, tuple(pools), len(release))

    def own_rows(self, at: Places, records: IntArray) -> OwnRows:
        """Return the probabilities of the own rows of one cell's records."""
        n, n_pairs = len(at.own_kind), len(at.of_kind)
        if at.is_settled.all():
            return at.even, np.zeros(n), np.ones(n, dtype=bool)
        log_share = np.full(n_pairs, -np.inf)
        by_block = np.zeros((n_pairs, _N_BLOCKS))
        by_unit = np.zeros((n_pairs, len(self.pools), _N_UNITS))
        effective = np.zeros(n_pairs)
        by_pattern = np.argsort(at.patterns, kind="stable")
        patterns, starts = np.unique(at.patterns[by_pattern], return_index=True)
        for pattern, pairs in zip(patterns, np.split(by_pattern, starts[1:]), strict=True):
            row, kinds = int(self.search.row_of[pattern]), at.of_kind[pairs]
            one = _Row.of(self, row, records[kinds])
            log_share[pairs], by_block[pairs], by_unit[pairs], effective[pairs] = one.shares()
        n_rows = self.search.n_rows[at.patterns]
        with np.errstate(all="ignore"):
            unit = np.exp(log_share - at.largest(log_share)[at.of_kind])
            total = at.sums(unit * n_rows)[at.own_kind]
            p = unit[at.place] / total
            squares = np.zeros(n)
            for part in (by_block, *(by_unit[:, k] for k in range(len(self.pools)))):
                moved = part * unit[:, None]
                whole = at.sums(moved * n_rows[:, None])[at.own_kind]
                apart = (moved[at.place] - p[:, None] * whole) / total[:, None]
                squares += error_of_sum(apart, 1) ** 2
            # Of the own row, and of all rows of the kind as they count.
            share = unit * n_rows
            of_all = at.sums(np.where(share > 0, share * effective, 0.0))[at.own_kind] / total
        good = all(pool.is_reliable for pool in self.pools) & np.isfinite(p)
        good &= np.minimum(effective[at.place], of_all) >= LEAST_EFFECTIVE
        return (
            np.where(at.is_settled, at.even, p),
            np.where(at.is_settled, 0.0, np.where(good, np.sqrt(squares), np.nan)),
            at.is_settled | good,
        )


@dataclass(frozen=True, repr=False)
class _Row:
    """One row that may be some records' own, with these records' values in it.

    Attributes
    ----------
    files
        The files.
    log_density
        Of each model: the records' values at the row, ``(1 or block, record, draw)``.
    log_drawn
        Of values that are not known and were drawn, ``(1 or block, record)``.
    row
        Which.
    """

    files: _Files
    log_density: tuple[FloatArray, ...]
    log_drawn: FloatArray
    row: int

    @classmethod
    def of(cls, files: _Files, row: int, records: IntArray) -> _Row:
        search, n = files.search, len(records)
        rows = np.full(n, row)
        values: dict[str, Any] = {}
        found, log_drawn = [], np.zeros((1, n))
        for pool in files.pools:
            model, fit, name = pool.model, pool.fit, pool.model.response
            rng = stream(0, "possible files: a record", variable=name)
            matrix = search.design(model, values, rows)  # (record, 1 or block, column)
            if name in search.radius:
                y = search.known(model, records, _evenly(rng))
            else:
                own = rng.choice(fit.n_draws, _N_BLOCKS, p=np.exp(pool.log_proposal))
                wide = np.broadcast_to(matrix, (n, _N_BLOCKS, matrix.shape[-1]))
                eta = np.einsum("rbc,bcp->rbp", wide, fit.coefficients[own])
                given = np.broadcast_to(fit.auxiliary[own], (n, *fit.auxiliary[own].shape))
                y = model.regression.distribution.draw(eta, given, rng).astype(np.float64)
                log_drawn = log_drawn + search.log_density(model, y, eta, given).T
            values[name] = search.own_scale(model, y)
            eta = np.einsum("rbc,hcp->rbhp", matrix, fit.coefficients)
            log_f = search.log_density(model, y[..., None], eta, fit.auxiliary[None, None])
            found.append(np.swapaxes(log_f, 0, 1))
        return cls(files, tuple(found), log_drawn, row)

    def shares(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return of each record: its log share, by block of files and unit of draws, its ESS.

        What blocks and units have of a share, ``(record, block)`` and ``(record, model, unit)``,
        adds up to one; the last is how many files and draws it rests on.
        """
        m, n = self.files.n_datasets, self.log_density[0].shape[1]
        by_model = [
            _Sums.of(pool, self.files.search, self.row, log_f)
            for pool, log_f in zip(self.files.pools, self.log_density, strict=True)
        ]
        drawn = np.broadcast_to(self.log_drawn, (_N_BLOCKS, n))
        in_a_block = len(self.files.pools[0].y) // _N_BLOCKS
        log_weight = -np.repeat(drawn, in_a_block, axis=0)
        with np.errstate(all="ignore"):
            for own in by_model:
                logs = np.log(own.sums)  # (none or dataset, file, record)
                log_weight += (1 - m) * logs[0] + logs[1:].sum(axis=0) - own.log_proposed[:, None]
                log_weight += np.broadcast_to(own.log_unit, (_N_BLOCKS, n)).repeat(in_a_block, 0)
        log_weight = np.where(np.isnan(log_weight), -np.inf, log_weight)
        log_share = logsumexp(log_weight, axis=0)
        is_there = np.isfinite(log_share)
        weight = np.exp(log_weight - np.where(is_there, log_share, 0.0))
        by_block = weight.reshape(_N_BLOCKS, in_a_block, n).sum(axis=1).T
        by_unit = np.stack([own.by_unit(weight, m) for own in by_model], axis=1)
        with np.errstate(all="ignore"):
            effective = 1.0 / (weight**2).sum(axis=0)
            for own in by_model:
                effective = np.minimum(effective, own.effective @ weight)
        return log_share, by_block, by_unit, np.where(is_there, effective, np.inf)


@dataclass(frozen=True, repr=False)
class _Sums:
    """One model's sums over its draws, with records' values in one row of every file.

    Attributes
    ----------
    files
        p(θ) f(y_-j | θ) by file and draw, in units of its own of each file.
    datasets
        1 and f(Ỹ_l | θ), each in units of its own, ``(none or dataset, draw)``.
    density
        f(t | x_j, θ), ``(1 or block, record, draw)``, in units of `log_unit`.
    log_unit
        The log of its unit, ``(1 or block, record)``.
    sums
        D and N_l, ``(none or dataset, file, record)``.
    log_proposed
        log q(y_-j), in the unit of `files`.
    effective
        The effective number of draws of a file's sums, the least of them.
    """

    files: FloatArray
    datasets: FloatArray
    density: FloatArray
    log_unit: FloatArray
    sums: FloatArray
    log_proposed: FloatArray
    effective: FloatArray

    @classmethod
    def of(cls, pool: _Pool, search: RowSearch, row: int, log_density: FloatArray) -> _Sums:
        logs = pool.log_whole - pool.log_row(search, row) + pool.log_base
        files = np.exp(logs - logs.max(axis=1, keepdims=True))
        of_all = pool.log_datasets.sum(axis=0)
        proposed = files @ np.exp(of_all - of_all.max())
        own = np.exp(pool.log_datasets - pool.log_datasets.max(axis=1, keepdims=True))
        datasets = np.concatenate([np.ones((1, own.shape[1])), own])
        log_unit = log_density.max(axis=2)
        log_unit = np.where(np.isfinite(log_unit), log_unit, 0.0)
        density = np.exp(log_density - log_unit[..., None])
        parts = []
        for block, f in zip(np.split(files, len(density)), density, strict=True):
            columns = (datasets[:, None] * f).reshape(-1, f.shape[1])
            parts.append((block @ columns.T).reshape(len(block), len(datasets), -1))
        sums = np.swapaxes(np.concatenate(parts), 0, 1)
        with np.errstate(all="ignore"):
            squares, each = files**2 @ (datasets**2).T, files @ datasets.T
            effective = (each**2 / squares).min(axis=1)
            log_proposed = np.log(proposed)
        return cls(files, datasets, density, log_unit, sums, log_proposed, effective)

    def by_unit(self, weight: FloatArray, n_datasets: int) -> FloatArray:
        """Return what each unit of draws has of the records' shares, ``(record, unit)``.

        The derivative of the log share in the logs of what the unit's draws stand for.
        """
        power = np.r_[1.0 - n_datasets, np.ones(n_datasets)]
        with np.errstate(all="ignore"):
            given = np.where(weight > 0, power[:, None, None] * weight / self.sums, 0.0)
        n_blocks, n_draws = len(self.density), self.files.shape[1]
        moved = np.zeros((weight.shape[1], n_draws))
        blocks = zip(np.split(self.files, n_blocks), np.split(given, n_blocks, axis=1), strict=True)
        for f, (files, own) in zip(self.density, blocks, strict=True):
            for of_dataset, part in zip(self.datasets, own, strict=True):
                moved += f * of_dataset * (part.T @ files)
        starts = np.arange(0, n_draws, n_draws // _N_UNITS)
        return np.add.reduceat(moved, starts, axis=1)


def _pool(
    search: RowSearch,
    model: Model,
    release: Sequence[Released],
    values: Mapping[str, FloatArray],
    in_a_block: int,
    executor: Executor,
) -> _Pool:
    """Return a model's draws, and its values in the files, given those of earlier variables."""
    fit, is_reliable = _wide_fit(search.synthesizer, model, release, executor)
    name = model.response
    log_datasets = np.stack([_log_likelihood(search, model, fit, one) for one in release])
    weight = _BREADTH / len(release)
    log_base = fit.log_weights - weight * log_datasets.sum(axis=0)
    log_proposal = log_base + log_datasets.sum(axis=0)
    log_proposal -= logsumexp(log_proposal)
    rng = stream(0, "possible files", variable=name)
    n_files = _N_BLOCKS * in_a_block
    own = rng.choice(fit.n_draws, n_files, p=np.exp(log_proposal))
    n_rows = len(search.pattern_of)
    by_row = {key: held.T for key, held in values.items()}
    matrix = np.swapaxes(search.design(model, by_row, np.arange(n_rows)), 0, 1)
    wide = np.broadcast_to(matrix, (n_files, *matrix.shape[1:]))
    eta = np.einsum("fic,fcp->fip", wide, fit.coefficients[own])
    given = np.broadcast_to(fit.auxiliary[own][:, None], (n_files, n_rows, fit.auxiliary.shape[1]))
    y = model.regression.distribution.draw(eta, given, rng).astype(np.float64)
    pool = _Pool(
        model, fit, is_reliable, log_base, log_datasets, log_proposal, y, matrix, np.empty(0)
    )
    whole = np.zeros((n_files, fit.n_draws))
    for row in range(n_rows):
        whole += pool.log_row(search, row)
    return replace(pool, log_whole=whole)


def _wide_fit(
    synthesizer: Synthesizer, model: Model, release: Sequence[Released], executor: Executor
) -> tuple[Posterior, bool]:
    """Return a model's draws given all datasets together, as if they were half of one."""
    fit = fit_of(model)
    numbers = common_numbers(
        0, "possible files", model.regression, _N_DRAWS, fit.numbers.z.shape[1]
    )
    rows = fit.frozen.rows(tables_of(synthesizer, model, release, _BREADTH / len(release)))
    fitted = fit.frozen.fitted(rows, numbers, numbers, executor, adapted=fit.adapted)
    return fit.frozen.posterior(fitted, model.posterior.names), fitted.reliable


def _log_likelihood(
    search: RowSearch, model: Model, fit: Posterior, dataset: Released
) -> FloatArray:
    """Return log f(Ỹ | θ) by draw."""
    matrix = search.synthesizer.refits.design(model, dataset)
    y = model.regression.on_model_scale(dataset.columns[model.response].astype(np.float64))
    eta = np.einsum("ic,hcp->ihp", matrix, fit.coefficients)
    found = search.log_density(model, y[:, None], eta, fit.auxiliary[None])
    return np.asarray(found.sum(axis=0))


def _evenly(rng: np.random.Generator) -> FloatArray:
    """Return evenly spread numbers from 0 to 1 by block, in random order."""
    return (rng.permutation(_N_BLOCKS) + 0.5)[None] / _N_BLOCKS
