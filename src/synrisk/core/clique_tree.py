"""Products of tables that are too large to be built: marginals over a tree of cliques.

Variables are summed out one after the other. What hangs together with a variable when its turn
comes is its clique; the cliques make a tree, and all that is built is over one of them. A product
of tables becomes a product of conditional probabilities, each variable's given the rest of its
clique: sums of logs once, and numbers between 0 and 1 from there on, so that nothing underflows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from synrisk.base.arrays import BoolArray, FloatArray, IntArray

Axes = tuple[int, ...]


@dataclass(frozen=True)
class Clique:
    """What hangs together with a variable when it is summed out.

    Attributes
    ----------
    separator, own
        The others, in order, and the variable: the axes of the clique's arrays.
    parent
        The clique, later in the order, that holds the others; None for the last.
    children
        The cliques whose parent it is.
    tables
        The tables that are multiplied here.
    """

    separator: Axes
    own: int
    parent: int | None
    children: tuple[int, ...]
    tables: tuple[int, ...]

    @property
    def axes(self) -> Axes:
        """The axes of arrays over the clique."""
        return (*self.separator, self.own)


@dataclass(frozen=True)
class CliqueTree:
    """The cliques in the order in which variables are summed out.

    Attributes
    ----------
    cliques
        One a variable; parents come after their children.
    tables
        The axes of each table.
    shape
        The number of guesses on each axis.
    """

    cliques: tuple[Clique, ...]
    tables: tuple[Axes, ...]
    shape: tuple[int, ...]

    @property
    def home(self) -> dict[int, int]:
        """The clique in which each variable is summed out."""
        return {clique.own: k for k, clique in enumerate(self.cliques)}

    def n_cells(self, axes: Sequence[int]) -> int:
        """Return the number of cells over some axes."""
        return math.prod(self.shape[axis] for axis in axes)

    @property
    def widest(self) -> Clique:
        """The clique with most cells."""
        return max(self.cliques, key=lambda clique: self.n_cells(clique.axes))

    @property
    def size(self) -> int:
        """The number of cells of all cliques."""
        return sum(self.n_cells(clique.axes) for clique in self.cliques)


def cliques_of(tables: Sequence[Axes], n_axes: int) -> list[Axes]:
    """Return the cliques of a plan whatever the number of guesses."""
    order = _order(tables, (1,) * n_axes, by_cells=False)
    return [tuple(sorted((*later, own))) for own, later in _eliminated(tables, n_axes, order)]


@lru_cache(maxsize=32)
def clique_tree(tables: tuple[Axes, ...], shape: tuple[int, ...]) -> CliqueTree:
    """Return a tree of small cliques: of two ways to choose an order the cheaper one."""
    trees = [
        _tree(tables, shape, _order(tables, shape, by_cells=by_cells)) for by_cells in (False, True)
    ]
    return min(trees, key=lambda tree: tree.size)


def _neighbours(tables: Sequence[Axes], n_axes: int) -> list[set[int]]:
    found: list[set[int]] = [set() for _ in range(n_axes)]
    for axes in tables:
        for axis in axes:
            found[axis] |= set(axes) - {axis}
    return found


def _sum_out(neighbours: list[set[int]], own: int) -> set[int]:
    """Take a variable out of a graph, whose neighbours then hang together; return these."""
    later = neighbours[own]
    for axis in later:
        neighbours[axis] |= later
        neighbours[axis] -= {axis, own}
    return later


def _order(tables: Sequence[Axes], shape: tuple[int, ...], *, by_cells: bool) -> list[int]:
    """Return in which order to sum out: the fewest new pairs first, or the fewest cells."""
    neighbours, left, order = _neighbours(tables, len(shape)), set(range(len(shape))), []

    def cost(axis: int) -> tuple[float, float, int]:
        around = sorted(neighbours[axis])
        fill = sum(
            other not in neighbours[one]
            for k, one in enumerate(around)
            for other in around[k + 1 :]
        )
        cells = math.prod((shape[other] for other in around), start=float(shape[axis]))
        # Of equals the last: a plan's later variables are predicted, and predict nothing.
        return (cells, fill, -axis) if by_cells else (fill, cells, -axis)

    while left:
        own = min(left, key=cost)
        _sum_out(neighbours, own)
        order.append(own)
        left.remove(own)
    return order


def _eliminated(
    tables: Sequence[Axes], n_axes: int, order: Sequence[int]
) -> list[tuple[int, Axes]]:
    """Return each variable, in order, with what hangs together with it then."""
    neighbours = _neighbours(tables, n_axes)
    return [(own, tuple(sorted(_sum_out(neighbours, own)))) for own in order]


def _tree(tables: tuple[Axes, ...], shape: tuple[int, ...], order: Sequence[int]) -> CliqueTree:
    place = {own: k for k, own in enumerate(order)}
    held: list[list[int]] = [[] for _ in order]
    for number, axes in enumerate(tables):
        held[min(place[axis] for axis in axes)].append(number)
    eliminated = _eliminated(tables, len(shape), order)
    parents: list[int | None] = []
    for k, (_, later) in enumerate(eliminated):
        # A part of the plan that hangs together with nothing else is a child of the last.
        parents.append(min((place[axis] for axis in later), default=len(order) - 1))
        if k == len(order) - 1:
            parents[k] = None
    return CliqueTree(
        tuple(
            Clique(
                later,
                own,
                parents[k],
                tuple(c for c, parent in enumerate(parents) if parent == k),
                tuple(held[k]),
            )
            for k, (own, later) in enumerate(eliminated)
        ),
        tables,
        shape,
    )


def _spread(values: FloatArray, axes: Axes, to: Axes) -> FloatArray:
    """Return an array over some axes so that it broadcasts over more, ``(record, …)``."""
    order = sorted(range(len(axes)), key=lambda k: to.index(axes[k]))
    moved = values.transpose(0, *(1 + k for k in order))
    sizes = dict(zip((axes[k] for k in order), moved.shape[1:], strict=True))
    return moved.reshape(len(values), *(sizes.get(axis, 1) for axis in to))


def _gather(values: FloatArray, axes: Axes, to: Axes) -> FloatArray:
    """Sum an array over the axes that are not in `to`; a record's sum whatever the others are."""
    rest = [axis for axis in axes if axis not in to]
    moved = values.transpose(0, *(1 + axes.index(axis) for axis in (*to, *rest)))
    if not rest:
        return np.ascontiguousarray(moved)
    kept = moved.shape[: 1 + len(to)]
    return np.asarray(np.ascontiguousarray(moved).reshape(*kept, -1).sum(axis=-1))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return a ratio of probabilities; 0 where there is nothing."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0.0)


@dataclass(frozen=True, repr=False)
class Distribution:
    """A normalised product of tables.

    Attributes
    ----------
    tree
        Its cliques.
    conditionals
        The probability of each clique's own variable given the others of it.
    beliefs
        The probability of each clique's cells; both ``(record, guesses of the others …, own)``.
    log_total
        The log of what the product sums to, ``(record,)``.
    """

    tree: CliqueTree
    conditionals: tuple[FloatArray, ...]
    beliefs: tuple[FloatArray, ...]
    log_total: FloatArray

    @classmethod
    def of(cls, tree: CliqueTree, tables: Sequence[FloatArray]) -> Distribution:
        """Return the distribution that is proportional to a product of tables, given as logs.

        Each is ``(record, cell)`` over its axes; −∞ where a guess is impossible.
        """
        conditionals: list[FloatArray] = []
        messages: list[FloatArray] = []
        for log_product in _products(tree, tables, messages):
            top = log_product.max(axis=-1, keepdims=True)
            top = np.where(top == -np.inf, 0.0, top)
            parts = np.exp(log_product - top)
            total = parts.sum(axis=-1, keepdims=True)
            conditionals.append(_ratio(parts, np.broadcast_to(total, parts.shape)))
            with np.errstate(divide="ignore"):
                messages.append((top + np.log(total))[..., 0])
        return cls(tree, tuple(conditionals), _beliefs(tree, conditionals), messages[-1])

    def marginal(self, axis: int) -> FloatArray:
        """Return the probabilities of a variable's guesses, ``(record, guess)``."""
        clique = self.tree.cliques[self.tree.home[axis]]
        return _gather(self.beliefs[self.tree.home[axis]], clique.axes, (axis,))

    def within_all(self, near: Sequence[BoolArray | None]) -> tuple[FloatArray, list[FloatArray]]:
        """Return the probability that variables are all in their sets, and that with tables' cells.

        Parameters
        ----------
        near
            For each variable which guesses are in its set, ``(record, guess)``; None for all.

        Returns
        -------
        probability, within
            ``(record,)``, and for each table the probability of each of its cells and that all
            are in their sets, ``(record, cell)``.
        """
        tree, parts = self.tree, []
        up: list[FloatArray] = []
        for clique, conditional in zip(tree.cliques, self.conditionals, strict=True):
            own = near[clique.own]
            part = conditional
            if own is not None:
                part = conditional * _spread(own.astype(np.float64), (clique.own,), clique.axes)
            for child in clique.children:
                part = part * _spread(up[child], tree.cliques[child].separator, clique.axes)
            parts.append(part)
            up.append(part.sum(axis=-1))
        probability = up[-1]
        conditionals = [
            _ratio(part, np.broadcast_to(total[..., None], part.shape))
            for part, total in zip(parts, up, strict=True)
        ]
        beliefs = _beliefs(tree, conditionals)
        given = [self._over_table(beliefs, number) for number in range(len(tree.tables))]
        return probability, [probability[:, None] * own for own in given]

    def over_tables(self) -> list[FloatArray]:
        """Return for each table the probability of each of its cells, ``(record, cell)``."""
        return [self._over_table(self.beliefs, number) for number in range(len(self.tree.tables))]

    def within_one(self, axis: int, near: BoolArray) -> list[FloatArray]:
        """Return for each table the probability of a cell and that one variable is in its set."""
        tree = self.tree
        given = self._given_cliques(axis, near.astype(np.float64))
        both = [own * part for own, part in zip(self.beliefs, given, strict=True)]
        return [self._over_table(both, number) for number in range(len(tree.tables))]

    def _given_cliques(self, axis: int, near: FloatArray) -> list[FloatArray]:
        """Return the probability that a variable is in a set given each clique's cells."""
        tree, at = self.tree, self.tree.home[axis]
        given: dict[int, FloatArray] = {}
        above: int | None = at
        known: FloatArray = near
        over: Axes = (axis,)
        while above is not None:  # up to the last clique
            clique = tree.cliques[above]
            given[above] = _spread(known, over, clique.axes)
            known, over = self.conditionals[above] * given[above], clique.separator
            known, above = known.sum(axis=-1), clique.parent
        for k in reversed(range(len(tree.cliques))):  # and down to all others
            clique = tree.cliques[k]
            if k in given:
                continue
            if axis in clique.axes:
                given[k] = _spread(near, (axis,), clique.axes)
                continue
            assert clique.parent is not None  # noqa: S101 - the last is on every way up
            parent = tree.cliques[clique.parent].axes
            whole = self.beliefs[clique.parent]
            both = _gather(whole * given[clique.parent], parent, clique.separator)
            total = _gather(whole, parent, clique.separator)
            given[k] = _spread(_ratio(both, total), clique.separator, clique.axes)
        return [given[k] for k in range(len(tree.cliques))]

    def _over_table(self, over_cliques: Sequence[FloatArray], number: int) -> FloatArray:
        axes = self.tree.tables[number]
        (k,) = [k for k, clique in enumerate(self.tree.cliques) if number in clique.tables]
        found = _gather(over_cliques[k], self.tree.cliques[k].axes, axes)
        return found.reshape(len(found), -1)


def _products(
    tree: CliqueTree, tables: Sequence[FloatArray], messages: Sequence[FloatArray]
) -> Iterator[FloatArray]:
    """Yield the sum of logs over each clique in turn; its message is there before the next."""
    n_records = len(tables[0])
    for clique in tree.cliques:
        total = np.zeros((n_records, *(tree.shape[axis] for axis in clique.axes)))
        for number in clique.tables:
            own = tree.tables[number]
            sizes = tuple(tree.shape[axis] for axis in own)
            total += _spread(tables[number].reshape(n_records, *sizes), own, clique.axes)
        for child in clique.children:
            total += _spread(messages[child], tree.cliques[child].separator, clique.axes)
        yield total


def _beliefs(tree: CliqueTree, conditionals: Sequence[FloatArray]) -> tuple[FloatArray, ...]:
    """Return the probability of each clique's cells, from the last clique on."""
    found: dict[int, FloatArray] = {}
    for k in reversed(range(len(tree.cliques))):
        clique = tree.cliques[k]
        if clique.parent is None:
            found[k] = conditionals[k]
            continue
        parent = tree.cliques[clique.parent].axes
        others = _gather(found[clique.parent], parent, clique.separator)
        found[k] = others[..., None] * conditionals[k]
    return tuple(found[k] for k in range(len(tree.cliques)))


def extremes(
    tree: CliqueTree, tables: Sequence[FloatArray], absent: Sequence[BoolArray]
) -> tuple[FloatArray, IntArray]:
    """Return the smallest and the largest sum of logs over all cells, and where they are.

    Parameters
    ----------
    tree, tables
        The logs of tables, ``(record, cell)``.
    absent
        Guesses that a record does not have, by variable, ``(record, guess)``.

    Returns
    -------
    ends, guesses
        ``(record, 2)``, and each variable's guess there, ``(record, 2, variable)``.
    """
    n_records = len(tables[0])
    ends = np.empty((n_records, 2))
    guesses = np.empty((n_records, 2, len(tree.shape)), dtype=np.int64)
    rows = np.arange(n_records)
    for end, sign in enumerate((-1.0, 1.0)):
        messages: list[FloatArray] = []
        chosen: list[IntArray] = []
        for total in _products(tree, [sign * table for table in tables], messages):
            clique = tree.cliques[len(messages)]
            none = _spread(absent[clique.own].astype(np.float64), (clique.own,), clique.axes)
            total = np.where(none > 0.0, -np.inf, total)
            chosen.append(total.argmax(axis=-1))
            messages.append(total.max(axis=-1))
        ends[:, end] = sign * messages[-1]
        for k in reversed(range(len(tree.cliques))):
            clique = tree.cliques[k]
            at = tuple(guesses[:, end, axis] for axis in clique.separator)
            guesses[:, end, clique.own] = chosen[k][(rows, *at)]
    return ends, guesses
