"""How large the grids of guesses are: whether the joint is evaluated, and what cannot be held."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from synrisk.base.chunks import ROWS
from synrisk.base.errors import GuessError, counted, listed
from synrisk.base.memory_limit import gibibytes, memory_limit, refuse_beyond
from synrisk.base.messages import either, setting
from synrisk.core.clique_tree import CliqueTree, clique_tree, cliques_of
from synrisk.models.plan import Plan
from synrisk.synthesis.synthesizer import Synthesizer

MOST_CELLS = 2_000_000  # of one record's joint grid, or of one of its cliques
MOST_ELEMENTS = 1 << 25  # of one record's arrays over cells and draws: a quarter gigabyte each
WIDE = 5  # variables from which guesses are as many as cliques allow, not as the joint grid does
_SMALL_JOINT = 100_000  # cells of a wide plan's joint grid that are looked at one by one
_MOST_OF_CLIQUE = 20_000  # cells, of guesses that may be fewer
_LEAST = 10  # guesses of a variable, however many hang together
_COPIES = 6  # of the guesses of all records: values, what they stand for, posteriors
_MOST_CHUNKS = 64  # of a part
_MOST_BYTES = 1 << 28  # of the guesses of a part, with what is made of them
_PARTS = 3  # distributions that are looked at where the joint grid is not


def axes_of_tables(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Return the axes of each model's table: its synthesized predictors', then its own."""
    return tuple((*plan.parents(k), k) for k in range(len(plan.synthesized)))


def rooms(plan: Plan, widths: Sequence[int], is_free: Sequence[bool]) -> list[int]:
    """Return how many guesses each variable may have, so that no clique has too many cells.

    Parameters
    ----------
    plan
        The models: which variables hang together.
    widths
        How many guesses each variable would have with room for all.
    is_free
        Whose number may be smaller.
    """
    found = list(widths)
    for clique in cliques_of(axes_of_tables(plan), len(widths)):
        fixed = math.prod(widths[axis] for axis in clique if not is_free[axis])
        free = [axis for axis in clique if is_free[axis]]

        def cells(most: int, fixed: int = fixed, free: Sequence[int] = free) -> int:
            return fixed * math.prod(min(widths[axis], most) for axis in free)

        most = _largest(lambda n: cells(n) <= _MOST_OF_CLIQUE, max(widths))
        for axis in free:
            found[axis] = min(found[axis], max(most, _LEAST))
    return found


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """Return the largest number that fits, up to `most`; 0 where none does."""
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def is_evaluated_jointly(
    synthesizer: Synthesizer, shape: tuple[int, ...], n_draws: Sequence[int]
) -> bool:
    """Tell whether the joint grid is looked at cell by cell where nobody says."""
    elements = n_elements(synthesizer, shape, n_draws, paired=False, is_joint=True)
    most = _SMALL_JOINT if len(shape) >= WIDE else MOST_CELLS
    is_small = math.prod(shape) <= most and elements <= MOST_ELEMENTS
    return is_small or len(shape) == 1  # there is nothing to sum out


def n_elements(
    synthesizer: Synthesizer,
    shape: tuple[int, ...],
    n_draws: Sequence[int],
    *,
    paired: bool,
    is_joint: bool,
) -> int:
    """Return how many numbers the largest array of one record holds."""
    sizes = [math.prod(shape)] if is_joint else []
    tables = axes_of_tables(synthesizer.plan)
    for k, model in enumerate(synthesizer.models):
        n_predictors = int(model.posterior.coefficients.shape[2])
        parents = math.prod(shape[axis] for axis in synthesizer.plan.parents(k))
        sizes += [parents * n_draws[k] * n_predictors, shape[k] * n_draws[k]]
        if not is_joint:  # every cell with every variable near the truth
            cells = math.prod(shape[axis] for axis in tables[k])
            sizes.append(_PARTS * cells * (2 + len(shape)))
    if paired:
        sizes.append(math.prod(shape[:-1]) * n_draws[0])
    return max(sizes)


def rows_of_part(n_guesses: int) -> int:
    """Return how many records make a part where each has so many guesses, of all variables."""
    n_chunks = _MOST_BYTES // (_COPIES * 8 * ROWS * n_guesses)
    return ROWS * min(max(n_chunks, 1), _MOST_CHUNKS)


def check_size(
    synthesizer: Synthesizer,
    n_records: int,
    shape: tuple[int, ...],
    n_draws: Sequence[int],
    *,
    paired: bool,
    is_joint: bool,
    may_be_split: bool,
) -> None:
    """Raise if one record's grid, or the guesses of all, cannot be held in memory.

    Parameters
    ----------
    synthesizer, n_records, shape, n_draws
        The models, and how much of everything there is.
    paired
        Whether it is the paper's estimator.
    is_joint
        Whether the joint grid is evaluated.
    may_be_split
        Whether it need not be, if nobody had asked for it.
    """
    elements = n_elements(synthesizer, shape, n_draws, paired=paired, is_joint=is_joint)
    if is_joint and (math.prod(shape) > MOST_CELLS or elements > MOST_ELEMENTS):
        _refuse_joint(synthesizer, shape, n_draws, paired=paired, may_be_split=may_be_split)
    if not is_joint:
        tree = clique_tree(axes_of_tables(synthesizer.plan), shape)
        cells = tree.n_cells(tree.widest.axes)
        if cells > MOST_CELLS or elements > MOST_ELEMENTS:
            _refuse_clique(tree, synthesizer.plan.synthesized, elements)
    n_bytes = _COPIES * 8 * n_records * sum(shape)
    if n_bytes > memory_limit():
        most = int(memory_limit() / (_COPIES * 8 * n_records))
        raise GuessError(
            f"{sum(shape):,} guesses for each of {n_records:,} records take about "
            f"{gibibytes(n_bytes)}, and this process may have {gibibytes(memory_limit())}; "
            f"{most:,} of all variables together are possible. Use fewer ({setting('guesses', 11)})"
            f"{_or_in_parts(n_records, sum(shape))}.",
            about=("risk", "guesses"),
        )


def check_joint(n_records: int, shape: tuple[int, ...]) -> None:
    """Raise if the joint posteriors of all records cannot be kept in memory."""
    refuse_beyond(
        8 * n_records * math.prod(shape),
        f"To keep the joint posteriors of {counted(n_records, 'record')}",
        f"Use {setting('joint', 'drop')}{either('; joint(label) works one out', '')}.",
    )


def _or_in_parts(n_records: int, n_guesses: int) -> str:
    """Return how records are evaluated that memory does not hold, where more than one part is."""
    n_parts = -(-n_records // rows_of_part(n_guesses))
    if n_parts < 2:
        return ""
    return either(
        f", or name a folder, out='…': they are evaluated in {n_parts:,} parts",
        f", or name a folder of Parquet files in [data] file: they are evaluated in {n_parts:,} "
        "parts",
    )


def _refuse_joint(
    synthesizer: Synthesizer,
    shape: tuple[int, ...],
    n_draws: Sequence[int],
    *,
    paired: bool,
    may_be_split: bool,
) -> None:
    def elements(most: int, draws: Sequence[int] = n_draws) -> int:
        smaller = tuple(min(n, most) for n in shape)
        return n_elements(synthesizer, smaller, draws, paired=paired, is_joint=True)

    def fits(most: int) -> bool:
        cells = math.prod(min(n, most) for n in shape)
        return cells <= MOST_CELLS and elements(most) <= MOST_ELEMENTS

    advice, largest, n_cells = [], max(shape), math.prod(shape)
    fewer = _largest(fits, largest - 1)
    if fewer > 1:
        widest = synthesizer.plan.synthesized[shape.index(largest)]
        which = setting("guesses", fewer, of=widest)
        advice.append(f"fewer guesses: {fewer} for each variable with more would do ({which})")
    if n_cells <= MOST_CELLS and elements(largest, [1] * len(shape)) <= MOST_ELEMENTS:
        advice.append(f"fewer draws ({setting('n_draws')})")
    if may_be_split:
        advice.append(
            f"{setting('joint', 'auto')}: every variable, and all together, are evaluated without "
            "the joint grid"
        )
    elif paired:
        advice.append(f"{setting('estimator', 'importance')}, which needs no joint grid")
    sizes = " × ".join(str(n) for n in shape)
    use = ", or ".join(advice or ["shorter formulas"])
    raise GuessError(
        f"The grid has {n_cells:,} cells a record ({sizes}), which with the draws makes "
        f"{elements(largest):,} numbers at once; at most {MOST_CELLS:,} cells and "
        f"{MOST_ELEMENTS:,} numbers are possible. Use {use}.",
        about=("risk", "guesses"),
    )


def _refuse_clique(tree: CliqueTree, names: Sequence[str], elements: int) -> None:
    axes = sorted(tree.widest.axes)
    sizes = " × ".join(str(tree.shape[axis]) for axis in axes)
    widest = max(axes, key=lambda axis: tree.shape[axis])

    def cells(most: int) -> int:
        return math.prod(min(tree.shape[axis], most) for axis in axes)

    excess = max(1.0, elements / MOST_ELEMENTS)
    fits = _largest(lambda n: cells(n) * excess <= MOST_CELLS, tree.shape[widest])
    fewer = "merge levels of these, or use"
    if fits > 1:
        example = setting("guesses", fits, of=names[widest])
        fewer = f"use at most {fits} guesses for each of these ({example}), or"
    raise GuessError(
        f"{listed(names[axis] for axis in axes)} hang together in the plan's formulas, and their "
        f"guesses make {tree.n_cells(axes):,} cells a record ({sizes}), which makes {elements:,} "
        f"numbers at once; at most {MOST_CELLS:,} cells and {MOST_ELEMENTS:,} numbers are "
        f"possible. {fewer[0].upper()}{fewer[1:]} shorter formulas: fewer synthesized predictors "
        "in each model.",
        about=("risk", "guesses"),
    )
