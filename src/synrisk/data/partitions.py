"""Tables that are read a part at a time: folders of Parquet, datasets of pyarrow, frames of Dask.

Only the columns that are asked for are read. How a table is cut into parts does not matter: its
rows are taken in their order.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.errors import DataError, SynriskError, listed, nearest
from synrisk.base.progress import under_way
from synrisk.data.column_names import refuse_duplicate_names, refuse_numbers_as_names
from synrisk.data.output_files import sha256
from synrisk.data.parquet_folders import (
    ROWS_READ,
    ParquetFolder,
    attempted,
    check_texts_of,
    holds_numbers,
    parquet_files,
    refuse_long_texts,
    to_frame,
)
from synrisk.data.unpacking import Attempt, Meter

_MOST_LEVELS = 10_000  # values of a column that are kept to tell its levels
_MOST_SAMPLED = 100_000
_FEW_NUMBERS = 1_000  # different numbers that are kept, beside the smallest and the largest


@dataclass(frozen=True, repr=False)
class Partitions:
    """A table that is read a part at a time.

    Attributes
    ----------
    what
        What it is, for messages.
    names
        Its columns.
    parts
        Given names of columns, yields frames of these, one part after the other.
    n_rows
        How many rows there are, where that is known before they are read.
    """

    what: str
    names: tuple[str, ...]
    parts: Callable[[Sequence[str]], Iterable[pd.DataFrame]]
    n_rows: int | None = None

    def require(self, names: Iterable[str], error: type[SynriskError] = DataError) -> None:
        """Raise if one of `names` is not among the columns."""
        for name in names:
            if name not in self.names:
                raise error(
                    f"{self.what}: there is no column {name!r}.{nearest(name, self.names)} "
                    f"It has: {listed(self.names)}."
                )

    def read(self, names: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield frames of some columns, each with what to call it in messages."""
        first = 1
        shown = nullcontext(_unseen) if self.n_rows is None else under_way(self.what, self.n_rows)
        with shown as advance:
            for frame in self.parts(tuple(names)):
                if len(frame):
                    last = first + len(frame) - 1
                    yield f"{self.what}, rows {first:,} to {last:,}", frame
                    first = last + 1
                    advance(len(frame))


def _unseen(_: int) -> None:
    """Show nothing."""


def is_partitioned(source: Any) -> bool:
    """Tell whether a table is to be read a part at a time."""
    if isinstance(source, str | os.PathLike):
        return os.path.isdir(source)  # noqa: PTH112 - which is False for names that are too long
    return _of(source, "pyarrow.dataset", "Dataset") or _is_dask(source)


def _of(source: Any, module: str, name: str) -> bool:
    """Tell whether something is of a class of a library that nobody has to have imported."""
    known = getattr(sys.modules.get(module), name, None)
    return known is not None and isinstance(source, known)


def _is_dask(source: Any) -> bool:
    kind = type(source)
    return kind.__module__.startswith("dask") and kind.__name__ == "DataFrame"


def partitions(source: Any, what: str) -> Partitions:
    """Return a table that `is_partitioned` as its parts."""
    if isinstance(source, str | os.PathLike):
        return _of_folder(Path(source), what)
    return _of_dask(source, what) if _is_dask(source) else _of_dataset(source, what)


def _of_folder(folder: Path, what: str) -> Partitions:
    found = ParquetFolder(folder, what)
    return Partitions(what, tuple(found.names), found.parts, found.n_rows)


def folder_digest(folder: Path) -> str:
    """Return the digest of the digests of a folder's files, a line each, in their order."""
    digests = "".join(f"{sha256(file)}\n" for file in parquet_files(folder))
    return hashlib.sha256(digests.encode()).hexdigest()


def _of_dataset(dataset: Any, what: str) -> Partitions:
    names = [str(name) for name in dataset.schema.names]
    refuse_duplicate_names(names, what)
    kinds = zip(names, dataset.schema.types, strict=True)
    refuse_numbers_as_names([name for name, kind in kinds if holds_numbers(kind)], what)

    def parts(wanted: Sequence[str]) -> Iterator[pd.DataFrame]:
        check_texts_of(dataset, wanted, what)
        # Read ahead, a few files would be in memory.
        batches = dataset.to_batches(
            columns=list(wanted), batch_size=ROWS_READ, batch_readahead=1, fragment_readahead=1
        )
        for batch in batches:
            Meter(f"{what}:").add(batch.nbytes)
            refuse_long_texts(batch, what)
            yield to_frame(batch)

    n_rows: int | None = None
    with Attempt(f"{what}:"):
        n_rows = dataset.count_rows()
    return Partitions(
        what, tuple(names), lambda wanted: attempted(parts(wanted), f"{what}:"), n_rows
    )


def _of_dask(frame: Any, what: str) -> Partitions:
    names = [str(name) for name in frame.columns]
    refuse_duplicate_names(names, what)
    kinds = zip(names, frame.dtypes, strict=True)
    is_number = pd.api.types.is_numeric_dtype
    refuse_numbers_as_names([name for name, kind in kinds if is_number(kind)], what)

    def parts(wanted: Sequence[str]) -> Iterator[pd.DataFrame]:
        attempt = Attempt(f"{what}:")
        for k in range(frame.npartitions):
            computed = None
            with attempt:
                computed = frame[list(wanted)].partitions[k].compute()
            if not isinstance(computed, pd.DataFrame):
                raise attempt.refusal(f"its partition {k + 1:,} cannot be computed.", DataError)
            yield computed.reset_index(drop=True)

    return Partitions(what, tuple(names), parts)


def sampling_step(n_rows: int) -> int:
    """Return of how many rows one is kept in memory as it is."""
    return max(1, -(-n_rows // _MOST_SAMPLED))


def evenly_spread(frame: pd.DataFrame, n_before: int, step: int) -> pd.DataFrame:
    """Return one row of `step` of a part, which `n_before` rows come before.

    They are copied: a view would keep the part in memory.
    """
    return frame.iloc[-n_before % step :: step].copy()


@dataclass(repr=False)
class Digest:
    """What a large table holds, as a small one: the schema that the small one settles is the same.

    A row for each different value of a column that has few; of numbers that have many, some of them
    with the smallest and the largest; and a gap, if there is one.
    """

    what: str
    n_rows: int = 0
    values: dict[str, pd.Series[Any]] = field(default_factory=dict)
    gaps: set[str] = field(default_factory=set)
    _categories: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, frame: pd.DataFrame) -> None:
        """Take some rows more."""
        self.n_rows += len(frame)
        for name in frame.columns:
            column = frame[name]
            if column.isna().any():
                self.gaps.add(name)
            different = self._different(name, column.dropna())
            before = self.values.get(name)
            if before is not None:
                different = pd.concat([before, different], ignore_index=True)
                different = self._different(name, different)
            self.values[name] = different

    def _different(self, name: str, known: pd.Series[Any]) -> pd.Series[Any]:
        kinds = pd.api.types
        if isinstance(known.dtype, pd.CategoricalDtype):
            levels = known.dtype.categories.tolist()
            if self._categories.setdefault(name, levels) != levels:
                raise DataError(
                    f"{self.what}: the parts have different categories in {name!r}; store the "
                    f"column as text, or with the same categories everywhere."
                )
        attempt = Attempt(f"{self.what}: column {name!r}")
        different = None
        with attempt:
            different = known.drop_duplicates(ignore_index=True)
        if different is None:
            raise attempt.refusal("holds lists or other nested values.", DataError)
        is_number = kinds.is_numeric_dtype(different.dtype) and not kinds.is_bool_dtype(
            different.dtype
        )
        if is_number and len(different) > _FEW_NUMBERS:
            ends = pd.Series([different.min(), different.max()], dtype=different.dtype)
            some = different.iloc[:_FEW_NUMBERS]
            different = pd.concat([some, ends], ignore_index=True).drop_duplicates()
        if len(different) > _MOST_LEVELS:
            raise DataError(
                f"{self.what}: {name!r} is text with more than {_MOST_LEVELS:,} different values; "
                "no model takes so many levels. Leave it out, or store numbers as such."
            )
        return different

    def frame(self) -> pd.DataFrame:
        """Return the small table."""
        columns = {}
        n_rows = max((len(values) + 1 for values in self.values.values()), default=0)
        for name, values in self.values.items():
            n_more = n_rows - len(values)
            if name in self.gaps or not len(values):
                columns[name] = values.reindex(range(n_rows))
            else:
                again = values.iloc[np.zeros(n_more, dtype=np.int64)]
                columns[name] = pd.concat([values, again], ignore_index=True)
        return pd.DataFrame(columns)
