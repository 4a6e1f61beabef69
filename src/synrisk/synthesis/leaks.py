"""The guard against leaks: a released column that gives a synthesized one away voids every risk.

A column C gives a variable V away where it determines V by more than chance: as a recoding, as a
function of fewer groups, or as a monotone transform, a few records excepted. The chance is that of
an arrangement at random: of the n!/Π n_v! ways to lay V's values beside C, how many would look like
that. A column whose values all differ determines everything, but so would any arrangement: the
chance is 1.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import gammaln

from synrisk.base.arrays import IntArray
from synrisk.base.cache import Memory
from synrisk.base.errors import DisclosureError
from synrisk.base.messages import either, toml_text
from synrisk.data.frames import with_columns
from synrisk.data.schema import Factor, Numeric, as_real_numbers, common_codes, equal_rows
from synrisk.synthesis.added_columns import added_relation, named_pairs
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.flexible_prediction import flexible_relations
from synrisk.synthesis.identifiers import is_row_counter, names_people
from synrisk.synthesis.relations import TOLERANCE, Beside, Hidden, Relation, exact_relations
from synrisk.synthesis.relations_between_records import relations_between_records
from synrisk.synthesis.relations_of_parts import relations_of_parts
from synrisk.synthesis.release import Released

_BY_CHANCE = np.log(1e-4)
_EXCEPTIONS = 0.02  # the share of records that may be out of line
_RESOLVED = 0.5  # a monotone column must tell at least this share of V's values apart
_LEAST_MONOTONE = 20  # distinct values; with fewer, a good predictor may be monotone by luck
_LEAST_TRANSFORMED = 4  # records for a transform to be recognised by its formula
_EXACT = 1e-9  # how far from 1 a transform's correlation may be
_SAME_ROWS = 0.99  # the share of equal values that shows rows to be in the same order
_HALF = 0.5  # the share of rows with their record's id, name or text
_MOST = 0.9  # of values that are those of records, in any order; resampled ones are fewer
ORDER, LABELS = "the order of the rows", "the labels of the rows"
_DIFFERENT_TOGETHER = 0.2  # of all such columns together
_DIFFERENT = 0.8  # the share of different values of a column that shows rows to be moved


def refuse_exact(confidential: Confidential, tolerance: float = TOLERANCE) -> None:
    """Raise if a column that would be released gives a synthesized variable away exactly."""
    for relation in _exact(confidential, confidential.released_as_is, tolerance):
        if relation.refused:
            raise _refusal(relation)


def refuse_relations(
    confidential: Confidential,
    memory: Memory,
    columns: Sequence[str],
    tolerance: float = TOLERANCE,
) -> tuple[Relation, ...]:
    """Raise if columns give a synthesized variable away together; return what comes near.

    Parameters
    ----------
    confidential
        The confidential data.
    memory
        Of what no release changes.
    columns
        Those that are released as they are.
    tolerance
        How near to an amount a guess gives it away, as a part of it.
    """
    found = memory.recall(
        f"relations of {columns!r}",
        lambda: _relations(confidential, columns, tolerance),
        given=tolerance,
    )
    for relation in found:
        if relation.refused:
            raise _refusal(relation)
    return found


def _relations(
    confidential: Confidential, columns: Sequence[str], tolerance: float
) -> tuple[Relation, ...]:
    used = _used(confidential)
    data = confidential.data[[name for name in columns if name != ORDER]]
    data = _with_order(data) if ORDER in columns else data
    return all_relations(_hidden(confidential, tolerance), data, used)


def _exact(confidential: Confidential, columns: Sequence[str], tolerance: float) -> list[Relation]:
    used = _used(confidential)
    data = _with_order(_plain(confidential.data[list(columns)]))
    return _quick_relations(_hidden(confidential, tolerance), data, used)


def all_relations(
    hidden: Sequence[Hidden], data: pd.DataFrame, used: Mapping[str, Sequence[str]]
) -> tuple[Relation, ...]:
    """Return how columns give synthesized variables away, alone or together.

    Parameters
    ----------
    hidden
        The variables.
    data
        The columns that are released as they are.
    used
        By variable, the columns that its model predicts it by.
    """
    data = _plain(data)
    exact = _quick_relations(hidden, data, used)
    if any(relation.refused for relation in exact):
        return tuple(exact)
    known = {relation.variable for relation in exact}
    flexible = flexible_relations(hidden, _beside_truth(data))
    return (*exact, *(one for one in flexible if one.refused or one.variable not in known))


def _quick_relations(
    hidden: Sequence[Hidden], data: pd.DataFrame, used: Mapping[str, Sequence[str]]
) -> list[Relation]:
    """Return the exact relations, recodings of one column first."""
    for variable in hidden:
        for name in data.columns:
            if not is_row_counter(data[name]) and determines(
                data[name], variable.values, ordered=not variable.is_factor
            ):
                words = "a recoding or a transform of"
                return [Relation(variable.name, (str(name),), (), words, True)]
            gaps = data[name].isna()
            if gaps.any() and determines(gaps.astype(int), variable.values, ordered=False):
                words = "told by what is missing in"
                return [Relation(variable.name, (str(name),), (), words, True)]
    columns = data.drop(columns=ORDER, errors="ignore")
    of_others = next(relations_between_records(hidden, columns), None)
    if of_others is not None:
        return [of_others]
    beside = _beside_truth(data)
    exact = exact_relations(hidden, beside, used)
    known = {relation.variable for relation in exact if relation.refused}
    parts = relations_of_parts([one for one in hidden if one.name not in known], beside, used)
    return [*exact, *parts]


def _beside_truth(data: pd.DataFrame) -> Beside:
    names = [str(name) for name in data.columns if not is_row_counter(data[name])]
    return Beside.of({name: data[name] for name in names})


def _with_order(data: pd.DataFrame) -> pd.DataFrame:
    """Return the columns, and the order of the rows, which tells what they were sorted by."""
    # By twos: a count of the rows is otherwise taken for nothing.
    return data.assign(**{ORDER: 2.0 * np.arange(len(data))}) if len(data.columns) else data


def _hidden(confidential: Confidential, tolerance: float) -> list[Hidden]:
    """Return what is synthesized: values, and whether there is one where gaps are modelled."""
    found = []
    for name in confidential.plan.synthesized:
        variable, values = confidential.schema.variables[name], confidential.columns[name]
        is_factor = isinstance(variable, Factor)
        found.append(Hidden.of(name, values, is_factor=is_factor, tolerance=tolerance))
        if isinstance(variable, Numeric) and variable.gap is not None:
            is_gap = (values == variable.gap).astype(np.int64)
            found.append(Hidden.of(_gaps_of(name), is_gap, is_factor=True, tolerance=tolerance))
    return found


def _gaps_of(name: str) -> str:
    return f"whether {name} is missing"


def _used(confidential: Confidential) -> dict[str, Sequence[str]]:
    """Return by what is synthesized the columns that its model predicts it by."""
    used = {r.response: r.parsed.predictors for r in confidential.plan.regressions}
    return {**used, **{_gaps_of(name): columns for name, columns in used.items()}}


def _refusal(relation: Relation) -> DisclosureError:
    if ORDER in relation.columns:
        return DisclosureError(
            f"The confidential data: {relation.variable!r} can be told from {ORDER}, which a "
            "release keeps beside what is released as it is. Shuffle the records first "
            f"({either('data.sample(frac=1)', 'in the file')})."
        )
    drop = ", ".join(map(toml_text, relation.columns))
    several = len(relation.columns) > 1
    gives = "they are these give" if several else "it is it gives"
    return DisclosureError(
        f"The confidential data: {relation}, so that released as {gives} the synthesized "
        f"{relation.variable!r} away. "
        f"Leave {'one or more of them' if several else 'it'} out of the data"
        f"{either('', f' ([data] drop = [{drop}])')}, or synthesize "
        f"{'them' if several else 'it'} too; released, {'they' if several else 'it'} would make "
        "every risk computed here void.",
        about=("data", "drop"),
    )


def columns_as_is(confidential: Confidential, release: Sequence[Released]) -> tuple[str, ...]:
    """Return the columns that a release in hand holds as they are, in whatever order of rows."""
    found: set[str] = set()
    for released in release:
        names = [n for n in confidential.released_as_is if n in released.frame.columns]
        in_place = _unchanged(confidential, released).intersection(names)
        found |= in_place or _moved(confidential, released, names)
    return tuple(name for name in confidential.released_as_is if name in found)


def _moved(confidential: Confidential, released: Released, names: Sequence[str]) -> set[str]:
    """Return the columns whose values are those of records, in rows of another order.

    Values of one column that tells people apart show it, or those of all together: few records
    share them, and others than these rows would not agree in them.
    """
    kept = [name for name in names if _overlap(confidential, released, name) >= _MOST]
    if any(_is_telling(confidential.data[name], _DIFFERENT) for name in kept):
        return {*kept}
    codes = [common_codes(confidential.data[name], released.frame[name]) for name in kept]
    if not codes:
        return set()
    own, theirs = (
        pd.Series(
            pd.DataFrame({k: pair[part] for k, pair in enumerate(codes)}).itertuples(
                index=False, name=None
            )
        )
        for part in (0, 1)
    )
    telling = _is_telling(own, _DIFFERENT_TOGETHER)
    return {*kept} if telling and _shared(*common_codes(own, theirs)) >= _MOST else set()


def _is_telling(column: pd.Series[Any], share: float) -> bool:
    return bool(column.nunique() >= share * len(column))


def _overlap(confidential: Confidential, released: Released, name: str) -> float:
    """Return the share of a released column's values that are those of different records."""
    return _shared(*common_codes(confidential.data[name], released.frame[name]))


def _shared(ours: IntArray, theirs: IntArray) -> float:
    """Return the share of rows' codes that are those of different records."""
    theirs = theirs[theirs >= 0]
    if not len(theirs):
        return 0.0
    ours = ours[ours >= 0]
    size = int(max(ours.max(initial=-1), theirs.max())) + 1
    shared = np.minimum(np.bincount(ours, minlength=size), np.bincount(theirs, minlength=size))
    return float(shared.sum() / len(theirs))


def _refuse_undeclared(confidential: Confidential, release: Sequence[Released]) -> None:
    """Raise if a release holds a column that may name people and was not declared."""
    for number, released in enumerate(release, 1):
        for name in confidential.held_back:
            if name not in released.frame.columns or is_row_counter(released.frame[name]):
                continue
            own, column = confidential.data[name], released.frame[name]
            in_place = len(own) == len(column) and bool(
                equal_rows(_plain(own.to_frame())[name], _plain(column.to_frame())[name]).mean()
                >= _HALF
            )
            if in_place or _is_elsewhere(confidential, released, name):
                raise DisclosureError(
                    f"Synthetic dataset {number}: the column {name!r} is as in the confidential "
                    "data, and may name people (an id, a name, free text, or values that nearly "
                    f"everybody alone has). Leave it out of the release{_how_to_drop(name)}, or "
                    f"declare that it may go out: {_how_to_release(name)}."
                )


def _is_elsewhere(confidential: Confidential, released: Released, name: str) -> bool:
    """Tell whether a column's values are those of records, in other rows.

    Names are names wherever they stand; numbers only if the rows were moved with them.
    """
    share = _overlap(confidential, released, name)
    if as_real_numbers(confidential.data[name])[1]:
        return share >= _HALF
    others = [str(c) for c in released.frame.columns if c not in (name, *confidential.held_back)]
    others = [other for other in others if other not in confidential.plan.synthesized]
    return share >= _MOST and _unchanged(confidential, released).isdisjoint(others)


def _how_to_release(column: str) -> str:
    return either(f"release=[{column!r}]", f"[data] release = [{toml_text(column)}]")


def refuse_leaks(
    confidential: Confidential, release: Sequence[Released], memory: Memory
) -> tuple[Relation, ...]:
    """Raise if released columns give a synthesized variable or people away; return what is near."""
    _refuse_recodings(confidential, release)
    _refuse_undeclared(confidential, release)
    as_is = columns_as_is(confidential, release)
    _refuse_added(confidential, release, as_is)
    in_place = not all(_unchanged(confidential, one).isdisjoint(as_is) for one in release)
    return refuse_relations(confidential, memory, (*as_is, ORDER) if in_place else as_is)


def _refuse_added(
    confidential: Confidential, release: Sequence[Released], as_is: Sequence[str]
) -> None:
    """Raise if what a release has of its own, columns or an order, gives values away."""
    hidden = _hidden(confidential, TOLERANCE)
    for number, released in enumerate(release, 1):
        frame = _plain(_with_labels(released.frame))
        own = [str(n) for n in frame.columns if n not in (*confidential.plan.synthesized, *as_is)]
        own = [name for name in own if not is_row_counter(frame[name])]
        kept = [name for name in as_is if name in frame.columns]
        known = (*confidential.data.columns, LABELS)
        _refuse_unreadable(frame[[name for name in own if name not in known]], number)
        data = _plain(confidential.data[kept])
        relation = added_relation(hidden, data, frame, own, kept) if own else None
        if relation is None and _unchanged(confidential, released).isdisjoint(kept):
            relation = _order_relation(hidden, data, frame[kept])
        if relation is not None:
            raise DisclosureError(f"Synthetic dataset {number}: {_about_added(relation)}")


def _about_added(relation: Relation) -> str:
    if ORDER in relation.columns:
        return (
            f"{relation.variable!r} of the confidential data can be told from {ORDER}, which are "
            "known again by what is released as it is. Shuffle them: with this order every risk "
            "computed here would be void."
        )
    return (
        f"in the confidential data {relation}, which the release holds. Leave such columns out of "
        "it; with them every risk computed here would be void."
    )


def _refuse_unreadable(own: pd.DataFrame, number: int) -> None:
    """Raise if a release has text of its own that differs from row to row: it may say anything."""
    for name in own.columns:
        if names_people(own[name]):
            raise DisclosureError(
                f"Synthetic dataset {number}: the confidential data have no column {name!r}, and "
                "it holds text or numbers of its own in nearly every row (a code, a hash, a name): "
                "what it tells about people cannot be judged. Leave it out."
            )


def _order_relation(
    hidden: Sequence[Hidden], data: pd.DataFrame, frame: pd.DataFrame
) -> Relation | None:
    """Return how rows that are known again by what is kept beside them tell by their new order."""
    for records, rows in named_pairs(data, frame, list(frame.columns)):
        order = np.argsort(rows)
        records, rows = records[order], rows[order]
        if (np.diff(records) > 0).mean() > _SAME_ROWS:
            continue  # that of the confidential data, which is looked at by itself
        beside = _with_order(frame.iloc[rows].reset_index(drop=True))
        for relation in all_relations([one.rows(records) for one in hidden], beside, {}):
            if relation.refused and ORDER in relation.columns:
                return relation
    return None


def _with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a release with the labels of its rows as a column, where they are no count."""
    if isinstance(frame.index, pd.RangeIndex | pd.MultiIndex):
        return frame
    return frame.assign(**{LABELS: frame.index.to_numpy()})


def _refuse_recodings(confidential: Confidential, release: Sequence[Released]) -> None:
    for number, released in enumerate(release, 1):
        candidates = [c for c in released.frame.columns if c not in confidential.plan.synthesized]
        if not candidates:
            continue
        dataset = _comparable(released)
        unchanged = _unchanged(confidential, released)
        for variable in confidential.plan.synthesized:
            for column in candidates:
                if _leaks(confidential, dataset, column, variable, unchanged):
                    raise DisclosureError(
                        f"Synthetic dataset {number}: the column {column!r} gives the synthesized "
                        f"{variable!r} away: in the confidential data it determines it (a "
                        "recoding, or a transform of the same values). Leave it out of the "
                        f"release{_how_to_drop(column)}; with it every risk computed here would be "
                        "void."
                    )


def _how_to_drop(column: str) -> str:
    return either("", f" ([data] drop = [{toml_text(column)}])")


def _comparable(dataset: Released) -> Released:
    """Return the dataset with columns that can be compared: lists as text, odd floats plain."""
    return Released(_plain(dataset.frame), dataset.columns, dataset.kept)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    changed: dict[str, Any] = {}
    for name in frame.columns:
        column = frame[name]
        if column.dtype in (np.float16, np.longdouble):
            changed[name] = column.astype(np.float64)
        elif column.dtype == object:
            nested = column.map(lambda value: not isinstance(value, Hashable))
            if nested.any():
                changed[name] = column.astype(str)
    return with_columns(frame, changed)


def _leaks(
    confidential: Confidential,
    dataset: Released,
    column: str,
    variable: str,
    unchanged: frozenset[str],
) -> bool:
    ordered = not isinstance(confidential.schema.variables[variable], Factor)
    released = dataset.frame[column]
    if is_row_counter(released):
        return False  # it says no more than the order of the rows
    # Another column that is unchanged shows that the rows stand as in the confidential data.
    beside = _beside(confidential, released, variable, same_rows=bool(unchanged - {column}))
    if not any(determines(values, truth, ordered=ordered) for values, truth in beside):
        return False
    # Derived from the synthetic values (Income as exp of the synthetic LogIncome) it is harmless.
    own = dataset.columns[variable]
    return column in unchanged or not determines(released[dataset.kept], own, ordered=ordered)


def _beside(
    confidential: Confidential, released: pd.Series[Any], variable: str, *, same_rows: bool
) -> Iterator[tuple[pd.Series[Any], npt.NDArray[Any]]]:
    """Yield values of a released column beside the confidential values of the variable."""
    name = str(released.name)
    truth, data = confidential.columns[variable], confidential.data
    data = _plain(data[[name]]) if name in data.columns else data[[]]
    if len(released) == len(data):
        yield released, truth
    if not released.index.equals(data.index) and released.index.is_unique:
        positions = data.index.get_indexer(released.index)  # rows moved or left out, labels kept
        if (positions >= 0).all():
            yield released, truth[positions]
        counted = pd.RangeIndex(len(data)).get_indexer(released.index)  # as `synthesize` labels
        if (counted >= 0).all() and len(released) < len(data):
            yield released, truth[counted]
    shuffled = name in data.columns and not same_rows
    if shuffled and released.isin(data[name]).mean() >= 1 - _EXCEPTIONS:
        yield data[name], truth  # these are its values, in whatever order


def _unchanged(confidential: Confidential, released: Released) -> frozenset[str]:
    """Return the columns that are not synthesized and hold the same in the same rows."""

    def compare() -> frozenset[str]:
        if len(released.frame) != confidential.n_records:
            return frozenset()
        names = [
            name
            for name in confidential.data.columns
            if name in released.frame.columns and name not in confidential.plan.synthesized
        ]
        own, theirs = _plain(confidential.data[names]), _plain(released.frame[names])
        return frozenset(name for name in names if _is_unchanged(own[name], theirs[name]))

    return released.memory.recall("unchanged columns", compare)


def _is_unchanged(own: pd.Series[Any], released: pd.Series[Any]) -> bool:
    """Tell whether a column is the same row by row, and would not be in another order.

    That the commonest value, or a gap where most are, meets itself says nothing.
    """
    equal, codes = equal_rows(own, released), pd.factorize(own)[0]
    commonest = int(np.argmax(np.bincount(codes + 1))) - 1  # a gap has the code -1
    telling = ~(equal & (codes == commonest))
    return bool(telling.any()) and bool(equal[telling].mean() >= _SAME_ROWS)


def determines(column: pd.Series[Any], values: npt.NDArray[Any], *, ordered: bool) -> bool:
    """Tell whether `column` determines `values` by more than chance.

    Parameters
    ----------
    column
        A released column beside the values.
    values
        The synthesized variable: numbers, or codes of a factor.
    ordered
        Whether an order of the values means something.
    """
    known = column.notna().to_numpy()
    if known.sum() < 2:
        return False
    column, values = column[known], values[known]
    numbers, n_text = as_real_numbers(column)
    if ordered and not n_text and _is_transform(numbers, values.astype(np.float64)):
        return True
    groups, sortable = (_codes(numbers), True) if not n_text else _groups(column)
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    n_groups, n_values = int(groups.max()) + 1, len(counts)
    if n_groups < 2 or n_values < 2:
        return False
    n = len(codes)
    log_arrangements = gammaln(n + 1) - gammaln(counts + 1).sum()
    chances = []
    n_off = n - _n_agreeing(groups, codes)
    if n_off <= _EXCEPTIONS * n:
        # That many records may be anywhere, the others follow a map of groups to values.
        log_maps = n_groups * np.log(n_values)
        if n_groups == n_values:
            log_maps = min(log_maps, gammaln(n_values + 1))
        chances.append(log_maps + 2 * n_off * np.log(n) - log_arrangements)
    if ordered and sortable and n_groups >= max(_RESOLVED * n_values, _LEAST_MONOTONE):
        n_off, log_inside = _out_of_order(groups, codes)
        if n_off <= _EXCEPTIONS * n:
            log_ways = np.log(2.0) + log_inside + 2 * n_off * np.log(n)
            chances.append(log_ways - log_arrangements)
    return any(chance < _BY_CHANCE for chance in chances)


def _is_transform(column: npt.NDArray[Any], values: npt.NDArray[Any]) -> bool:
    """Tell whether the column is linear in the values, their logarithm, exponential or root."""
    if len(np.unique(values)) < _LEAST_TRANSFORMED:
        return False
    with np.errstate(all="ignore"):
        forms = [values, np.log(values), np.exp(values), np.sqrt(values), values**2, 1 / values]
        for form in forms:
            if np.isfinite(form).all() and np.isfinite(column).all():
                correlation = np.corrcoef(column, form)[0, 1]
                if abs(correlation) > 1 - _EXACT:
                    return True
    return False


def _codes(values: npt.NDArray[Any]) -> IntArray:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def _groups(column: pd.Series[Any]) -> tuple[IntArray, bool]:
    try:
        return pd.factorize(column, sort=True)[0].astype(np.int64), True
    except TypeError:  # values of several types have no order
        return pd.factorize(column.astype(str))[0].astype(np.int64), False


def _n_agreeing(groups: IntArray, codes: IntArray) -> int:
    """Return how many records have the most frequent value of their group."""
    pairs, counts = np.unique(groups * (codes.max() + 1) + codes, return_counts=True)
    most = np.zeros(groups.max() + 1, dtype=np.int64)
    np.maximum.at(most, pairs // (codes.max() + 1), counts)
    return int(most.sum())


def _out_of_order(groups: IntArray, codes: IntArray) -> tuple[int, float]:
    """Return how many neighbours by group fall where most rise, and the log of orders in groups."""
    by_group = codes[np.lexsort((codes, groups))]
    falls, reverse = int((np.diff(by_group) < 0).sum()), codes[np.lexsort((-codes, groups))]
    rises = int((np.diff(reverse) > 0).sum())
    determined = _n_agreeing(groups, codes) == len(codes)
    inside = 0.0 if determined else float(gammaln(np.bincount(groups) + 1).sum())
    return min(falls, rises), inside
