"""Files of R in: what saveRDS and save wrote, as tables.

rdata reads the format; here its objects become tables. Data frames and matrices are taken as they
are. Draws of posterior and coda whose chains stand apart become a row a draw, with the columns
``.chain`` and ``.iteration``. Anything else is refused, with what to save in its place.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import lzma
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.errors import FileError, counted, listed

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
_COMPRESSED: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"\x1f\x8b", gzip.decompress),
    (b"BZh", bz2.decompress),
    (b"\xfd7zXZ\x00", lzma.decompress),
)
_IN_ASCII = (b"A\n", b"RDA")
_UTF8, _LATIN1 = 1 << 3, 1 << 2  # how R marks the encoding of a text
_NO_INTEGER64 = np.iinfo(np.int64).min  # bit64's missing value
_PARTS_DISAGREE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
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
    content = _decompressed(path)
    objects = _objects(content, what)
    if objects is None:
        raise FileError(f"{here} {_why_unreadable(content)}")
    if len(objects) > 1:
        raise FileError(
            f"{here} holds {len(objects)} objects ({listed(objects)}); save the one that is meant "
            "with saveRDS."
        )
    with contextlib.suppress(*_PARTS_DISAGREE):  # not chained: its message may hold values
        return _table(next(iter(objects.values())), here)
    raise FileError(f"{here} holds no table that can be read. {_INSTEAD}")


def _decompressed(path: Path) -> bytes:
    """Return the content of a file; nothing where it is damaged."""
    with contextlib.suppress(OSError, EOFError, ValueError, lzma.LZMAError):
        content = path.read_bytes()
        for mark, decompress in _COMPRESSED:
            if content.startswith(mark):
                return decompress(content)
        return content
    return b""


def _objects(content: bytes, what: str) -> dict[str, _Thing] | None:
    """Return the objects in a file by name, that of saveRDS without one; None if unreadable."""
    try:
        from rdata import parser
    except ImportError:
        raise FileError(
            f"{what}: files of R need rdata; install it with pip install 'synrisk[r]'."
        ) from None
    own = {b"compact_intseq": _compact_integers, b"deferred_string": _deferred_text}
    # Warnings are of suffixes; an exception is not chained, as its message may hold values.
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = parser.parse_data(
            content,
            extension=".rds",
            altrep_constructor_dict={**parser.DEFAULT_ALTREP_MAP, **own},
        )
        file = _File(parsed.extra.encoding or "UTF-8", content.startswith(_IN_ASCII))
        if parsed.object.info.type.name == "LIST":  # save writes a pairlist of all it was given
            return dict(_pairs(parsed.object, file))
        return {"": _Thing(parsed.object, file)}
    return None


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
class _File:
    """How a file was written.

    Attributes
    ----------
    encoding
        Of texts that do not tell theirs.
    in_ascii
        Whether numbers stand in it as text, with 16 digits.
    """

    encoding: str
    in_ascii: bool


@dataclass(frozen=True)
class _Thing:
    """An object of R: what rdata made of it, and the file that it was in."""

    parsed: Any
    file: _File

    @property
    def kind(self) -> str:
        """R's type of the object, as rdata abbreviates it: REAL, INT, LGL, STR, VEC (a list)."""
        return str(self.parsed.info.type.name)

    @property
    def values(self) -> Any:
        return self.parsed.value

    @cached_property
    def attributes(self) -> Mapping[str, _Thing]:
        own = self.parsed.attributes
        return {} if own is None else dict(_pairs(own, self.file))

    @cached_property
    def classes(self) -> Sequence[str]:
        return self._texts_of("class")

    @cached_property
    def names(self) -> Sequence[str]:
        return self._texts_of("names")

    @cached_property
    def dim(self) -> tuple[int, ...]:
        dim = self.attributes.get("dim")
        return () if dim is None else tuple(int(size) for size in dim.values)

    @cached_property
    def dimnames(self) -> Sequence[_Thing]:
        return self.attributes["dimnames"].elements if "dimnames" in self.attributes else ()

    @property
    def elements(self) -> list[_Thing]:
        """The elements of a list."""
        return [_Thing(one, self.file) for one in self.values]

    def texts(self) -> list[str | None]:
        """The elements of a character vector."""
        return [_text(one, self.file.encoding) for one in self.values]

    def _texts_of(self, attribute: str) -> Sequence[str]:
        thing = self.attributes.get(attribute)
        return () if thing is None else [text or "" for text in thing.texts()]


def _pairs(pairlist: Any, file: _File) -> Iterator[tuple[str, _Thing]]:
    """Yield the names and values of a pairlist."""
    while pairlist.info.type.name == "LIST":
        tag = pairlist.tag
        while tag.referenced_object is not None:
            tag = tag.referenced_object
        yield _text(tag.value, file.encoding) or "", _Thing(pairlist.value[0], file)
        pairlist = pairlist.value[1]


def _text(parsed: Any, encoding: str) -> str | None:
    if parsed.value is None:
        return None
    marks = parsed.info.gp
    known = "utf-8" if marks & _UTF8 else "latin-1" if marks & _LATIN1 else encoding
    return str(parsed.value.decode(known))


def _compact_integers(state: Any) -> tuple[Any, Any]:
    """Return the integers of ``a:b``, which may go down."""
    from rdata import parser

    n, start, step = (int(value) for value in state.value)
    values = start + step * np.arange(n, dtype=np.int64)
    return parser.RObjectInfo(parser.RObjectType.INT, False, False, False, 0, 0), values


def _deferred_text(state: Any) -> tuple[Any, Any]:
    """Return the texts of ``as.character`` of numbers, which R writes before it makes them."""
    from rdata import parser

    numbers, penalty = state.value[0].value, int(state.value[1].value[0])
    texts = [_as_character(number, penalty) for number in numbers]
    of_text = parser.RObjectInfo(parser.RObjectType.CHAR, False, False, False, _UTF8, 0)
    whole = parser.RObjectInfo(parser.RObjectType.STR, False, False, False, 0, 0)
    return whole, [
        parser.RObject(of_text, None if text is None else text.encode(), None) for text in texts
    ]


def _as_character(number: Any, penalty: int) -> str | None:
    """Return a number as R writes it: 15 digits, in the shorter of two ways."""
    if np.ma.is_masked(number) or np.isnan(number):
        return None
    if isinstance(number, np.integer):
        return str(number)
    if np.isinf(number):
        return "Inf" if number > 0 else "-Inf"
    rounded = float(f"{number:.15g}")
    fixed = str(np.format_float_positional(rounded, trim="-"))
    scientific = str(np.format_float_scientific(rounded, trim="-", exp_digits=2))
    return fixed if len(fixed) <= len(scientific) + penalty else scientific


# -- tables -------------------------------------------------------------------------------------
def _table(thing: _Thing, here: str) -> pd.DataFrame:
    """Return an object as a table; raise where it is none."""
    for name, tabulate in _TABLES.items():
        if name in thing.classes:
            return tabulate(thing, here)
    for name in _FITS:
        if name in thing.classes:
            raise FileError(f"{here} {_of_fit(name)}")
    if len(thing.dim) == 2:
        return _matrix(thing, here)
    if len(thing.dim) == 3:
        return _array(thing, here)
    if thing.kind == "VEC" and thing.elements and all(map(_is_table, thing.elements)):
        raise FileError(
            f"{here} holds a list of {counted(len(thing.elements), 'table')}. Save each by itself "
            "in R: saveRDS(x[[1]], …)."
        )
    kind = f"an object of class {thing.classes[0]}" if thing.classes else "no data frame or matrix"
    raise FileError(f"{here} holds {kind}. {_INSTEAD}")


def _is_table(thing: _Thing) -> bool:
    return len(thing.dim) in (2, 3) or any(name in thing.classes for name in _TABLES)


def _frame(thing: _Thing, here: str) -> pd.DataFrame:
    columns = {
        name: _column(one, f"{here}, column {name!r},")
        for name, one in zip(thing.names, thing.elements, strict=True)
    }
    twice = [name for name, n in Counter(thing.names).items() if n > 1]
    if twice:
        raise FileError(f"{here}: more than one column is called {listed(twice)}.")
    return pd.DataFrame(columns, index=_row_names(thing.attributes.get("row.names")))


def _row_names(names: _Thing | None) -> Any:
    """Return the names that rows were given; None where R counts them, 1, 2, 3, …."""
    if names is None:
        return None
    if np.ma.is_masked(names.values):  # R's short form of 1, 2, 3, …: a missing value and n
        return None
    own = names.texts() if names.kind == "STR" else names.values.tolist()
    numbered = [str(name) for name in own] == [str(k) for k in range(1, len(own) + 1)]
    return None if numbered else pd.Index(own)


def _column(thing: _Thing, where: str) -> Any:
    if thing.kind not in ("LGL", "INT", "REAL", "STR"):
        raise FileError(f"{where} is no vector of numbers, texts or levels. Leave it out in R.")
    if np.prod(thing.dim[1:], dtype=np.int64) != 1:  # scale(x) is a matrix of one column
        raise FileError(f"{where} is a matrix. Make columns of it in R, or leave it out.")
    if "factor" in thing.classes:
        return _factor(thing)
    if "integer64" in thing.classes:  # of bit64: whole numbers in the place of doubles
        if thing.file.in_ascii:
            raise FileError(f"{where} lost digits: it is of class integer64. Save without ascii.")
        return _whole(np.ma.masked_equal(thing.values.view(np.int64), _NO_INTEGER64))
    if "Date" in thing.classes:
        return pd.to_datetime(_numbers(thing.values), unit="D")
    if "POSIXct" in thing.classes:
        return pd.to_datetime(_numbers(thing.values), unit="s", utc=True)
    if thing.kind == "STR":
        return pd.Series(thing.texts(), dtype="str").array  # pd.array: "None" for a gap in pandas 2
    if thing.kind == "LGL":
        known = ~np.ma.getmaskarray(thing.values)
        data = np.asarray(thing.values)
        return data if known.all() else pd.arrays.BooleanArray(data, ~known)
    return _numbers(thing.values) if thing.kind == "REAL" else _whole(thing.values)


def _factor(thing: _Thing) -> pd.Categorical:
    """Return a factor; a level that stands for missing values (addNA) becomes these."""
    levels = thing.attributes["levels"].texts()
    known = np.array([level is not None for level in levels], dtype=bool)
    places = np.append(np.where(known, np.cumsum(known) - 1, -1), -1)  # the last: no code at all
    codes = places[np.ma.filled(thing.values, 0) - 1]
    names = pd.Index([level for level in levels if level is not None], dtype="str")
    return pd.Categorical.from_codes(codes, names, ordered="ordered" in thing.classes)


def _numbers(values: Any) -> npt.NDArray[np.float64]:
    """Return numbers as floats, with NaN for gaps.

    R's own missing number is a signalling NaN: arithmetic with it warns.
    """
    numbers: npt.NDArray[np.float64] = np.ma.filled(np.ma.asarray(values, dtype=np.float64), np.nan)
    return np.where(np.isnan(numbers), np.nan, numbers)


def _whole(values: Any) -> Any:
    """Return integers as such; with gaps as floats, as a file of CSV gives them."""
    return _numbers(values) if np.ma.is_masked(values) else np.asarray(values, dtype=np.int64)


# -- draws --------------------------------------------------------------------------------------
def _matrix(thing: _Thing, here: str) -> pd.DataFrame:
    """Return a matrix of numbers; coda's is a chain, posterior's tell how many they hold."""
    values = _array_of(thing, here)
    table = pd.DataFrame(values, columns=_names_of(thing, 1, here))
    chains = thing.attributes.get("nchains")
    if "mcmc" in thing.classes:
        return _stacked([table])
    return table if chains is None else _stacked(_cut(table, chains, here))


def _array(thing: _Thing, here: str) -> pd.DataFrame:
    """Return an array of draws, chains and parameters."""
    dims = thing.attributes["dimnames"].names if thing.dimnames else ()
    if len(dims) != 3 or not dims[1].startswith("chain"):
        raise FileError(f"{here} holds an array whose second dimension is not called chain.")
    values, names = _array_of(thing, here), _names_of(thing, 2, here)
    return _stacked([pd.DataFrame(values[:, k], columns=names) for k in range(thing.dim[1])])


def _list_of_chains(thing: _Thing, here: str) -> pd.DataFrame:
    """Return draws by chain: coda's list of matrices, or posterior's of lists of parameters."""
    return _stacked(
        [
            _matrix(chain, here).drop(columns=[".chain", ".iteration"])
            if chain.dim
            else pd.DataFrame(
                {
                    name: _array_of(one, here)
                    for name, one in zip(chain.names, chain.elements, strict=True)
                }
            )
            for chain in thing.elements
        ]
    )


def _random_variables(thing: _Thing, here: str) -> pd.DataFrame:
    """Return posterior's rvars: for each parameter an array whose first dimension is the draw."""
    columns: dict[str, Any] = {}
    for name, variable in zip(thing.names, thing.elements, strict=True):
        draws = variable.attributes["draws"]
        values = _array_of(draws, here).reshape(draws.dim[0], -1)
        columns |= {element: values[:, k] for k, element in enumerate(_elements(name, draws))}
    chains = thing.elements[0].attributes["nchains"]
    return _stacked(_cut(pd.DataFrame(columns), chains, here))


def _elements(name: str, draws: _Thing) -> Iterator[str]:
    """Yield the names of a parameter's elements, the last dimension running fastest."""
    if np.prod(draws.dim[1:], dtype=np.int64) == 1:
        yield name
        return
    labels: list[Sequence[Any]] = [range(1, size + 1) for size in draws.dim[1:]]
    for place, own in enumerate(draws.dimnames[1:]):
        if own.kind == "STR":
            labels[place] = own.texts()
    yield from (f"{name}[{','.join(map(str, cell))}]" for cell in itertools.product(*labels))


def _array_of(thing: _Thing, here: str) -> npt.NDArray[np.float64]:
    """Return an array of numbers as floats."""
    if thing.kind not in ("LGL", "INT", "REAL"):
        raise FileError(f"{here} holds a matrix or list of draws that are no numbers. {_INSTEAD}")
    values = _numbers(thing.values)
    return values.reshape(thing.dim, order="F") if thing.dim else values


def _names_of(thing: _Thing, place: int, here: str) -> list[str | None]:
    """Return the names along one dimension of an array."""
    if len(thing.dimnames) <= place or thing.dimnames[place].kind != "STR":
        raise FileError(f"{here} holds a matrix whose columns have no names. Give them in R.")
    return thing.dimnames[place].texts()


def _cut(table: pd.DataFrame, chains: _Thing, here: str) -> list[pd.DataFrame]:
    """Return the chains of a table in which they follow one another."""
    n_chains = int(chains.values[0])
    length, rest = divmod(len(table), n_chains)
    if rest:
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
