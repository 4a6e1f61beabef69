"""Objects of ArviZ in: the posterior group of InferenceData or DataTree as a table of draws.

PyMC, NumPyro, CmdStanPy and Bambi hand their draws over in these. Elements of vectors are called as
Stan calls them (``beta[1]``, counted from 1) where their dimension has no labels, and by their
labels where it has: ``u[q]``, ``u[q]:v[g]`` for an interaction in Bambi's way.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from synrisk.base.errors import DrawsError, listed

_VECTORS = ("beta", "b", "coef", "coefs", "coefficients", "theta")
_OF_ROWS = "__obs__"  # Bambi's dimension of what there is for every row of the data
_OF_LEVELS = "_reduced_dim"  # Bambi's dimension of a response's levels without the reference
_SAMPLE = ("chain", "draw")


def is_inference(source: Any) -> bool:
    """Tell whether `source` is an object of ArviZ, or a posterior group of one."""
    is_data = type(source).__name__ == "InferenceData"
    return is_data or isinstance(source, xr.Dataset | xr.DataTree)


def posterior_group(source: Any, what: str) -> xr.Dataset:
    """Return the posterior of an ArviZ object, with the dimensions chain and draw."""
    group: Any = source
    if not isinstance(source, xr.Dataset):
        is_tree = isinstance(source, xr.DataTree)
        groups = _groups(source)
        if "posterior" in groups:
            group = source["posterior"]
        elif not is_tree or groups:
            raise DrawsError(f"{what}: no group is called 'posterior'; there are {listed(groups)}.")
        group = group.to_dataset() if is_tree else group
    absent = [name for name in _SAMPLE if name not in group.sizes]
    if absent:
        raise DrawsError(f"{what}: the posterior has no dimension {listed(absent)}.")
    found: xr.Dataset = group
    return found


def observed_values(source: Any) -> dict[str, npt.NDArray[Any]]:
    """Return what the fit of an ArviZ object observed, by name; nothing where that is not told."""
    if isinstance(source, xr.Dataset) or "observed_data" not in _groups(source):
        return {}
    group = source["observed_data"].data_vars
    return {str(name): values.to_numpy() for name, values in group.items()}


def _groups(source: Any) -> list[str]:
    """Return the names of the groups of InferenceData or DataTree."""
    return list(source.children if isinstance(source, xr.DataTree) else source.groups())


def inference_table(source: Any, what: str, factors: Collection[str] = ()) -> pd.DataFrame:
    """Return the draws of an ArviZ object: a row a draw, a column a parameter, and the chain.

    Parameters
    ----------
    source
        InferenceData, DataTree, or the posterior group as a Dataset.
    what
        What the draws are, for messages.
    factors
        The variables with levels: in ``x:u`` the label of a coefficient is one of u's levels.
    """
    group = posterior_group(source, what)
    columns: dict[str, Any] = {}
    for name, variable in group.data_vars.items():
        if _OF_ROWS in variable.dims or not set(_SAMPLE) <= set(variable.dims):
            continue
        others = [str(dim) for dim in variable.dims if dim not in _SAMPLE]
        values = variable.transpose(*_SAMPLE, *others).to_numpy()
        by_draw = values.reshape(values.shape[0] * values.shape[1], -1)
        for k, element in enumerate(_elements(str(name), others, group, factors)):
            if element in columns:
                raise DrawsError(f"{what}: {str(name)!r} has elements of the same name.")
            columns[element] = by_draw[:, k]
    return pd.DataFrame(columns | chain_columns(group))


def chain_columns(group: xr.Dataset) -> dict[str, Any]:
    """Return the columns that tell each draw's chain and its place there."""
    n_chains, n_draws = (group.sizes[name] for name in _SAMPLE)
    return {
        ".chain": np.repeat(np.arange(1, n_chains + 1), n_draws),
        ".iteration": np.tile(np.arange(1, n_draws + 1), n_chains),
    }


def _elements(
    name: str, dims: Sequence[str], group: xr.Dataset, factors: Collection[str]
) -> Iterator[str]:
    """Yield the names of a variable's elements, the last dimension running fastest."""
    of_term = [dim for dim in dims if not dim.endswith(_OF_LEVELS)]
    is_vector = name in _VECTORS and name not in factors
    labels = [_labels(dim, name, group, is_vector) for dim in dims]
    for cell in itertools.product(*labels):
        own = [label for dim, label in zip(dims, cell, strict=True) if dim in of_term]
        levels = [label for dim, label in zip(dims, cell, strict=True) if dim not in of_term]
        yield _element(name, own, of_term, factors) + "".join(f"[{level}]" for level in levels)


def _element(
    name: str, labels: Sequence[str], dims: Sequence[str], factors: Collection[str]
) -> str:
    if not labels:
        return name
    label = ",".join(labels)
    if name in _VECTORS and not label.replace(",", "").isdecimal():
        return label  # beta["x"] is the coefficient of x
    if list(dims) == [f"{name}_dim"]:
        parts, levels = name.split(":"), label.split(", ")
        with_levels = [part in factors or part.startswith("C(") for part in parts]
        if sum(with_levels) == len(levels):
            left = iter(levels)
            return ":".join(
                f"{part}[{next(left)}]" if has else part
                for part, has in zip(parts, with_levels, strict=True)
            )
    return f"{name}[{label}]"


def _labels(dim: str, name: str, group: xr.Dataset, is_vector: bool) -> list[str]:
    """Return the labels of a dimension; numbers from 1, as Stan has them, where it has none.

    The labels 0, 1, 2, … of a vector of coefficients are none: NumPyro's plates have them.
    """
    size = group.sizes[dim]
    labels = group.coords[dim].to_numpy() if dim in group.coords else np.arange(size)
    unnamed = np.array_equal(labels, np.arange(size)) if labels.dtype.kind in "iu" else False
    if unnamed and (is_vector or dim.startswith(f"{name}_dim_") or dim not in group.coords):
        return [str(k) for k in range(1, size + 1)]
    return [str(label) for label in labels]
