"""Files of R in: what saveRDS and save wrote, as tables.

rdata reads the format and converts vectors, arrays and lists; here these become tables. Data frames
and matrices are taken as they are. Draws of posterior and coda whose chains stand apart become a
row a draw, with the columns ``.chain`` and ``.iteration``. Anything else is refused, with what to
save in its place.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.errors import FileError, counted, listed
from synrisk.data.r_parsing import BYTES_A_BYTE, is_ascii, parse, parsers
from synrisk.data.unpacking import Attempt, Meter, unpacked

# Whole fits by their class in R, and how to get at their draws there.
_FITS = {
    "brmsfit": "posterior::as_draws_df(fit)",
    "stanreg": "posterior::as_draws_df(as.array(fit))",
    "CmdStanMCMC": "fit$draws()",
    "stanfit": "posterior::as_draws_df(fit)",
    "runjags": "coda::as.mcmc.list(fit)",
    "rjags": "coda::as.mcmc(fit)",
    "jags": "rjags::coda.samples(fit, …)",
}
_NO_INTEGER64 = np.iinfo(np.int64).min  # bit64's missing value
_LOST = object()  # stands for a column of which a file in text holds too few digits
_NAME = re.compile(r"[A-Za-z.][\w.]{0,40}")
_NO_TABLE = "no data frame or matrix"
_INSTEAD = "In R, save a data frame, or draws such as posterior::as_draws_df(fit), with saveRDS."


def read_r(path: Path, what: str) -> pd.DataFrame:
    """Return the table in a file that R wrote.

    Parameters
    ----------
    path
        The file, of saveRDS or save, compressed in any of R's ways or not at all.
    what
        What the table is, for messages.
    """
    here = f"{what}: {path.name}"
    converter = _converter(what)
    meter = Meter(here)
    content = unpacked(path, here, meter, BYTES_A_BYTE)
    objects = _objects(content, converter, here, meter)
    if len(objects) > 1:
        raise FileError(
            f"{here} holds {len(objects)} objects ({listed(objects)}); save the one that is meant "
            "with saveRDS."
        )
    attempt = Attempt(here)
    with attempt, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their messages may hold values
        return _table(next(iter(objects.values())), here)
    raise attempt.refusal(f"holds no table that can be read. {_INSTEAD}")


def _converter(what: str) -> Any:
    """Return what rdata converts objects with; raise where it is not installed."""
    try:
        from rdata import conversion

        parsers()
    except ImportError:
        raise FileError(
            f"{what}: files of R need rdata; install it with pip install 'synrisk[r]'."
        ) from None
    return conversion.SimpleConverter


def _objects(content: bytes, converter: Any, here: str, meter: Meter) -> dict[str, _Thing]:
    """Return the objects in a file by name, that of saveRDS without one."""
    attempt = Attempt(here)
    with attempt, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are of what rdata leaves out
        parsed = parse(content, meter)
        convert = converter(
            _CLASSES | ({"integer64": lambda *_: _LOST} if is_ascii(content) else {}),
            default_encoding=parsed.extra.encoding or "UTF-8",
        ).convert
        objects, rest = {}, parsed.object
        while rest.info.type.name == "LIST":  # save writes a pairlist of all it was given
            objects[convert(rest.tag)] = _Thing(rest.value[0], convert)
            rest = rest.value[1]
        return objects or {"": _Thing(rest, convert)}
    raise attempt.refusal(_why_unreadable(content))


def _why_unreadable(content: bytes) -> str:
    """Say what is wrong with a file that cannot be parsed: a fit of Stan holds compiled code."""
    for name in _FITS:
        if len(name).to_bytes(4, "big") + name.encode() in content:
            return _of_fit(name)
    return f"is cut short, or holds what only R can read. {_INSTEAD}"


def _of_fit(name: str) -> str:
    return (
        f"holds a whole fit (of class {name}), not its draws. In R, save these: "
        f'saveRDS({_FITS[name]}, "draws.rds").'
    )


# -- objects ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Thing:
    """An object of R, as rdata parsed it, and what converts it."""

    parsed: Any
    convert: Callable[[Any], Any]

    @cached_property
    def value(self) -> Any:
        return self.convert(self.parsed)

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        own = self.parsed.attributes
        return {} if own is None else self.convert(own)

    @cached_property
    def classes(self) -> Sequence[str]:
        return _texts(self.attributes.get("class", ()))

    @cached_property
    def n_dimensions(self) -> int:
        return len(self.attributes.get("dim", ()))

    @property
    def is_table(self) -> bool:
        return self.n_dimensions in (2, 3) or any(name in self.classes for name in _TABLES)


def _texts(values: Iterable[Any]) -> list[str]:
    return ["" if value is None else str(value) for value in values]


# -- tables -------------------------------------------------------------------------------------
def _table(thing: _Thing, here: str) -> pd.DataFrame:
    """Return an object as a table; raise where it is none."""
    for name, tabulate in _TABLES.items():
        if name in thing.classes:
            return tabulate(thing, here)
    for name in _FITS:
        if name in thing.classes:
            raise FileError(f"{here} {_of_fit(name)}")
    if thing.n_dimensions == 2:
        return _matrix(thing, here)
    if thing.n_dimensions == 3:
        return _array(thing, here)
    if thing.parsed.info.type.name == "VEC":
        elements = [_Thing(element, thing.convert) for element in thing.parsed.value]
        if elements and all(element.is_table for element in elements):
            raise FileError(
                f"{here} holds a list of {counted(len(elements), 'table')}. Save each by itself in "
                "R: saveRDS(x[[1]], …)."
            )
    of_class = thing.classes[0] if thing.classes else ""  # of a damaged file it may be anything
    told = f"an object of class {of_class}" if _NAME.fullmatch(of_class) else _NO_TABLE
    raise FileError(f"{here} holds {told}. {_INSTEAD}")


def _frame(thing: _Thing, here: str) -> pd.DataFrame:
    names = _texts(thing.attributes.get("names", ()))
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise FileError(f"{here}: more than one column is called {listed(twice)}.")
    columns = {
        name: _column(values, f"{here}, column {name!r},")
        for name, values in zip(names, _elements(thing), strict=True)
    }
    return pd.DataFrame(columns, index=_row_names(thing.attributes.get("row.names")))


def _row_names(names: Any) -> Any:
    """Return the names that rows were given; None where R counts them, 1, 2, 3, …."""
    if names is None or np.ma.is_masked(names):  # R's short form: a missing value and n
        return None
    own = names.tolist()
    numbered = [str(name) for name in own] == [str(k) for k in range(1, len(own) + 1)]
    return None if numbered else pd.Index(own)


def _column(values: Any, where: str) -> Any:
    if values is _LOST:
        raise FileError(f"{where} lost digits: it is of class integer64. Save without ascii.")
    if isinstance(values, pd.Categorical | pd.DatetimeIndex):
        return values
    values = getattr(values, "values", values)  # of a vector whose elements have names
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "biufUO":
        raise FileError(f"{where} is no vector of numbers, texts or levels. Leave it out in R.")
    if values.size != len(values):  # scale(x) is a matrix of one column
        raise FileError(f"{where} is a matrix. Make columns of it in R, or leave it out.")
    values = values.ravel()
    if values.dtype.kind in "UO":
        logical = pd.api.types.infer_dtype(values, skipna=True) == "boolean"
        # Text by a Series: pd.array of pandas 2 makes "None" of a gap.
        return (
            pd.array(values, dtype="boolean") if logical else pd.Series(values, dtype="str").array
        )
    if values.dtype.kind == "b":
        gaps = np.ma.getmaskarray(values)
        data = np.asarray(values)
        return pd.arrays.BooleanArray(data, gaps) if gaps.any() else data
    return _numbers(values) if values.dtype.kind == "f" else _whole(values)


def _factor(codes: Any, attributes: Mapping[str, Any]) -> pd.Categorical:
    """Return a factor; a level that stands for missing values (addNA) becomes these."""
    levels = attributes["levels"]
    known = np.array([level is not None for level in levels], dtype=bool)
    places = np.append(np.where(known, np.cumsum(known) - 1, -1), -1)  # the last: no code at all
    at = np.nan_to_num(_numbers(codes)).astype(np.int64) - 1
    ordered = "ordered" in attributes["class"]
    return pd.Categorical.from_codes(places[at], pd.Index(levels[known], dtype="str"), ordered)


def _integer64(values: Any, _: Mapping[str, Any]) -> Any:
    """Return the whole numbers that bit64 keeps in the place of doubles."""
    return _whole(np.ma.masked_equal(np.asarray(values).view(np.int64), _NO_INTEGER64))


def _numbers(values: Any) -> npt.NDArray[np.float64]:
    """Return numbers as floats, with NaN for gaps.

    R's own missing number is a signalling NaN: arithmetic with it warns.
    """
    numbers = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    return np.where(np.isnan(numbers), np.nan, numbers)


def _whole(values: Any) -> Any:
    """Return integers as such; with gaps as floats, as a file of CSV gives them."""
    return _numbers(values) if np.ma.is_masked(values) else np.asarray(values, dtype=np.int64)


# -- draws --------------------------------------------------------------------------------------
def _matrix(thing: _Thing, here: str) -> pd.DataFrame:
    """Return a matrix of numbers; coda's is a chain, posterior's tell how many they hold."""
    table = _named_columns(thing.value, here)
    chains = thing.attributes.get("nchains")
    if "mcmc" in thing.classes:
        return _stacked([table])
    return table if chains is None else _stacked(_cut(table, chains, here))


def _array(thing: _Thing, here: str) -> pd.DataFrame:
    """Return an array of draws, chains and parameters."""
    draws = thing.value
    _refuse_without_draws(draws, here)
    if not str(getattr(draws, "dims", ("", ""))[1]).startswith("chain"):
        raise FileError(f"{here} holds an array whose second dimension is not called chain.")
    return _stacked([_named_columns(draws[:, k], here) for k in range(draws.shape[1])])


def _list_of_chains(thing: _Thing, here: str) -> pd.DataFrame:
    """Return draws by chain: coda's list of matrices, or posterior's of lists of parameters."""
    return _stacked(
        [
            pd.DataFrame({str(name): _draws(values, here) for name, values in chain.items()})
            if isinstance(chain, Mapping)
            else _named_columns(chain, here)
            for chain in _elements(thing)
        ]
    )


def _random_variables(thing: _Thing, here: str) -> pd.DataFrame:
    """Return posterior's rvars: for each parameter an array whose first dimension is the draw."""
    columns: dict[str, Any] = {}
    for name, variable in thing.value.items():
        draws = variable["draws"]
        _refuse_without_draws(draws, here)
        values = _draws(draws, here).reshape(len(draws), -1)
        columns |= {cell: values[:, k] for k, cell in enumerate(_cells(str(name), draws))}
    chains = next(iter(thing.value.values()))["nchains"]
    return _stacked(_cut(pd.DataFrame(columns), chains, here))


def _refuse_without_draws(draws: Any, here: str) -> None:
    """Raise if an array is empty: its other dimensions may be of any length."""
    if not draws.size:
        raise FileError(f"{here} holds no draws.")


def _cells(name: str, draws: Any) -> Iterator[str]:
    """Yield the names of a parameter's elements, the last dimension running fastest."""
    if np.prod(draws.shape[1:], dtype=np.int64) == 1:
        yield name
        return
    labels = [
        _labels(draws, place) or range(1, size + 1) for place, size in enumerate(draws.shape[1:], 1)
    ]
    yield from (f"{name}[{','.join(map(str, cell))}]" for cell in itertools.product(*labels))


def _elements(thing: _Thing) -> list[Any]:
    """Return the elements of a list, which rdata makes a dictionary where they have names."""
    return list(thing.value.values() if isinstance(thing.value, Mapping) else thing.value)


def _labels(array: Any, place: int) -> list[str]:
    """Return the names along one dimension of an array, of which rdata makes coordinates."""
    dims = getattr(array, "dims", ())
    return _texts(array[dims[place]].values) if dims and dims[place] in array.coords else []


def _named_columns(matrix: Any, here: str) -> pd.DataFrame:
    names = _labels(matrix, 1)
    if not names:
        raise FileError(f"{here} holds a matrix whose columns have no names. Give them in R.")
    return pd.DataFrame(_draws(matrix, here), columns=names)


def _draws(values: Any, here: str) -> npt.NDArray[np.float64]:
    """Return an array of numbers as floats."""
    if getattr(values, "dtype", np.dtype(object)).kind not in "biuf":
        raise FileError(f"{here} holds a matrix or list of draws that are no numbers. {_INSTEAD}")
    return _numbers(values)


def _cut(table: pd.DataFrame, chains: Any, here: str) -> list[pd.DataFrame]:
    """Return the chains of a table in which they follow one another."""
    n_chains = int(chains[0])
    length, rest = divmod(len(table), n_chains)
    if rest or not length:
        raise FileError(
            f"{here} holds {counted(len(table), 'draw')}, which are not {n_chains} chains of one "
            "length. Save the draws as they were made."
        )
    return [table.iloc[k * length : (k + 1) * length] for k in range(n_chains)]


def _stacked(chains: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return chains under one another, with columns that tell a draw's chain and place."""
    table = pd.concat(chains, ignore_index=True)
    lengths = [len(chain) for chain in chains]
    table[".chain"] = np.repeat(np.arange(1, len(chains) + 1), lengths)
    table[".iteration"] = np.concatenate([np.arange(1, n + 1) for n in lengths])
    return table


_TABLES: dict[str, Callable[[_Thing, str], pd.DataFrame]] = {
    "data.frame": _frame,
    "mcmc.list": _list_of_chains,
    "draws_list": _list_of_chains,
    "draws_rvars": _random_variables,
}
# What rdata makes of vectors by their class, and of posterior's random variables.
_CLASSES: dict[str | bytes, Callable[[Any, Mapping[str, Any]], Any]] = {
    "factor": _factor,
    "integer64": _integer64,
    "Date": lambda days, _: pd.to_datetime(_numbers(days), unit="D"),
    "POSIXct": lambda seconds, _: pd.to_datetime(_numbers(seconds), unit="s", utc=True),
    "rvar": lambda _, attributes: attributes,
}
