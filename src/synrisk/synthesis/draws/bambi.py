"""Models of Bambi in: their formulas, families, data and draws.

Bambi itself is not imported: its objects are read. Where both packages encode a formula
differently (``scale`` divides by other standard deviations) that is an error, never a wrong number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import DataError, DrawsError, OptionError, counted, listed
from synrisk.data.schema import Factor, LevelsOfData, Variable, label_key
from synrisk.models.families import Family
from synrisk.models.plan import Regression
from synrisk.synthesis.draws.arviz import (
    chain_columns,
    is_inference,
    observed_values,
    posterior_group,
)

_LINKS = {
    "gaussian": "identity",
    "bernoulli": "logit",
    "categorical": "softmax",
    "poisson": "log",
    "negativebinomial": "log",
    "gamma": "log",
    "t": "identity",
    "beta": "logit",
}
_OF_GROUPS = "__factor_dim"  # Bambi's dimension of a grouping column's levels
_SAME = 1e-8  # of a column's size, between two ways to compute it


@dataclass(frozen=True, repr=False)
class FromBambi:
    """One model of Bambi.

    Attributes
    ----------
    regression
        The model.
    design
        Bambi's design matrix, a column a coefficient.
    draws
        A row a draw, a column a parameter.
    types
        Which level a binary response's probability is of, where that is text.
    response
        The values of the response that Bambi fitted, on the model's scale; codes for levels.
    levels
        The levels of a categorical response, which its codes are of.
    """

    regression: Regression
    design: pd.DataFrame
    draws: pd.DataFrame
    types: dict[str, Any]
    response: FloatArray
    levels: tuple[str, ...]


def read_bambi(models: Any, idatas: Any) -> tuple[FromBambi, ...]:
    """Read models and the inference data of their fits, one for each."""
    own = models if isinstance(models, list | tuple) else [models]
    fits = idatas if isinstance(idatas, list | tuple) else [idatas]
    if len(own) != len(fits):
        raise DrawsError(
            f"There are {counted(len(own), 'model')} of Bambi, but {counted(len(fits), 'fit')}; "
            "give the inference data of each model, in the same order."
        )
    for model in own:
        if type(model).__module__.split(".")[0] != "bambi":
            raise OptionError(
                f"from_bambi takes models of Bambi (bambi.Model); got {type(model).__name__}."
            )
    return tuple(_read(model, fit) for model, fit in zip(own, fits, strict=True))


def refuse_gaps(data: pd.DataFrame, read: Sequence[FromBambi]) -> None:
    """Raise where values are missing: the rows that Bambi left out would have to be known."""
    used = [
        name
        for one in read
        for name in (one.regression.response, *one.regression.parsed.predictors)
        if name in data.columns
    ]
    gaps = {name: int(data[name].isna().sum()) for name in dict.fromkeys(used)}
    found = [f"{name} ({n:,})" for name, n in gaps.items() if n]
    if found:
        raise DataError(
            f"The confidential data: missing values in {listed(found)}. Impute them or leave these "
            "rows out before fitting, and give all models of Bambi the same complete data."
        )


def data_of(models: Any) -> pd.DataFrame:
    """Return the data that all models were fitted to."""
    frames = [model.data for model in (models if isinstance(models, list | tuple) else [models])]
    if not all(frames[0].equals(frame) for frame in frames[1:]):
        raise OptionError(
            "The models of Bambi hold different data; pass the confidential data by data=."
        )
    return pd.DataFrame(frames[0])


def _read(model: Any, fit: Any) -> FromBambi:
    formula, family = model.formula.main, model.family.name
    what = f"Bambi's model {formula!r}"
    if family not in _LINKS:
        raise OptionError(f"{what} has the family {family!r}; known are {listed(_LINKS)}.")
    parent = model.family.likelihood.parent
    link = model.family.link[parent].name
    if link != _LINKS[family]:
        raise OptionError(
            f"{what} has the link {link!r}; of the family {family!r} only {_LINKS[family]!r} is "
            "known."
        )
    if model.formula.additionals:
        raise OptionError(f"{what} has more than one formula; only the first kind is known.")
    if not is_inference(fit):
        raise DrawsError(
            f"{what}: expected the inference data that fit() returned; got {type(fit).__name__}."
        )
    # o["yes"] ~ x says which level is meant; types= says it here.
    regression = Regression(re.sub(r"^\s*(\w+)\s*\[[^]]*\]\s*~", r"\1 ~", formula), family)
    response = model.response_component.term
    types = {}
    if family == "bernoulli" and response.success is not None and response.levels is not None:
        others = [level for level in response.levels if level != response.success]
        if all(isinstance(level, str) for level in response.levels):
            types[regression.response] = LevelsOfData([*others, response.success])
    design, draws = design_and_draws(model, fit, regression.distribution, what)
    values = np.asarray(response.data, dtype=np.float64)
    _check_observed(observed_values(fit), response.name, values, what)
    levels = tuple(map(label_key, response.levels)) if family == "categorical" else ()
    return FromBambi(regression, design, draws, types, values, levels)


def _check_observed(
    observed: Mapping[str, npt.NDArray[Any]], response: str, values: FloatArray, what: str
) -> None:
    """Raise where a fit is not that of its model, by what it says it observed."""
    if not observed:
        return
    if response not in observed:
        raise DrawsError(
            f"{what}: the fit given with it is of {listed(observed)}. Give the inference data of "
            "each model, in the same order."
        )
    if not _are_same(np.asarray(observed[response], dtype=np.float64), values):
        raise DrawsError(
            f"{what}: the fit given with it observed other values of {response!r}; was it made "
            "with other rows? Give what this model's fit() returned."
        )


def _are_same(one: FloatArray, other: FloatArray) -> bool:
    return one.shape == other.shape and bool(
        np.abs(one - other).max() <= _SAME * max(1.0, float(np.abs(one).max()))
    )


def check_response(read: FromBambi, values: FloatArray, variable: Variable, what: str) -> None:
    """Raise where the response that Bambi fitted is not that of the confidential data.

    `values` are those of the confidential data, codes of `variable` for levels.
    """
    theirs = read.response
    if read.levels and isinstance(variable, Factor):  # codes of levels in another order
        known = [label_key(level) for level in variable.levels]
        places = np.array([known.index(one) if one in known else -1 for one in read.levels])
        theirs = places[theirs.astype(np.int64)].astype(np.float64)
    own = read.regression.parsed.transform.apply(np.asarray(values, dtype=np.float64))
    if not _are_same(theirs, own):
        raise DrawsError(
            f"{what}: Bambi fitted it to other values of {read.regression.response!r} than the "
            "confidential data have. Give the rows that Bambi fitted it to, in the same order; of "
            "a binary response, types= lists the level second that the probability is of."
        )


def design_and_draws(
    model: Any, fit: Any, family: Family, what: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return Bambi's design, and the draws called as its columns are.

    Group-level terms have a column a level: ``x|region[North]``. For a level of the response its
    name follows, ``[…]``.
    """
    component = model.components[model.family.likelihood.parent].design
    parts = [part for part in (component.common, component.group) if part is not None]
    group = posterior_group(fit, what)
    terms = {name: term for part in parts for name, term in part.terms.items()}
    absent = [name for name in terms if name not in group.data_vars]
    if absent:
        raise DrawsError(f"{what}: the posterior lacks {listed(absent)}.")
    columns: dict[str, Any] = {}
    for name, term in terms.items():
        columns |= _draws_of_term(group, name, term.labels, what)
    for own in family.auxiliary:
        theirs = own.in_bambi or own.name
        if theirs in group.data_vars:
            columns[own.name] = group[theirs].transpose("chain", "draw").to_numpy().ravel()
    design = pd.concat([part.as_dataframe() for part in parts], axis=1)
    return design, pd.DataFrame(columns | chain_columns(group))


def _draws_of_term(group: Any, name: str, labels: Sequence[str], what: str) -> dict[str, Any]:
    """Return the draws of a term by column, for each level of the response if it has some."""
    variable = group[name]
    levels = [dim for dim in variable.dims if str(dim).endswith("_reduced_dim")]
    others = [dim for dim in variable.dims if dim not in ("chain", "draw", *levels)]
    # The columns of a group-level term run level by level of its group.
    others.sort(key=lambda dim: not str(dim).endswith(_OF_GROUPS))
    values = variable.transpose("chain", "draw", *others, *levels).to_numpy()
    of_level = [f"[{text}]" for dim in levels for text in group.coords[dim].to_numpy()] or [""]
    names = [f"{label}{level}" for label in labels for level in of_level]
    flat = values.reshape(values.shape[0] * values.shape[1], -1)
    if flat.shape[1] != len(names):
        raise DrawsError(f"{what}: the draws of {name!r} are not as many as its columns.")
    return {column: flat[:, k] for k, column in enumerate(names)}


def check_design(
    theirs: pd.DataFrame, matrix: FloatArray, sources: Sequence[str], what: str
) -> None:
    """Raise where a column of Bambi's design is not that of ours.

    `sources` are the names of the draws of each of our columns.
    """
    if len(theirs) != len(matrix):
        raise DrawsError(
            f"{what}: Bambi fitted it to {counted(len(theirs), 'row')}, but the data have "
            f"{len(matrix):,}. Leave rows with missing values out before fitting."
        )
    for own, source in zip(matrix.T, sources, strict=True):
        label = source if source in theirs.columns else source[: source.rindex("[")]
        column = theirs[label].to_numpy(dtype=np.float64)
        if np.abs(own - column).max() > _SAME * max(1.0, float(np.abs(column).max())):
            term = re.sub(r"\[[^]]*\]", "[*]", label)  # levels do not stand in messages
            raise DrawsError(
                f"{what}: Bambi encodes {term!r} differently, so its coefficients would be read "
                "wrongly. Compute the column beforehand (scale(x) as a column of its own), and "
                "fit the model to that."
            )
