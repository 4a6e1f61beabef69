"""The synthesizer: a plan, the confidential data it was fitted on, and its posterior draws."""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.design import Design
from synrisk.errors import DataError, DrawsError, FileError, OptionError, counted, got, listed
from synrisk.families import FAMILIES, Family
from synrisk.interchange import read_draws, split_rename
from synrisk.io import TableLike, read_table
from synrisk.plan import Plan, Regression
from synrisk.posterior import Posterior, parameter_names
from synrisk.schema import (
    Columns,
    Factor,
    FloatArray,
    Missing,
    Schema,
    Types,
    require_columns,
    text_columns,
)
from synrisk.storage import Contents, load, save

_WHAT = "The confidential data"


@dataclass(frozen=True, repr=False)
class Model:
    """One regression with its frozen design and its draws."""

    regression: Regression
    design: Design
    posterior: Posterior
    record_weights: FloatArray | None


@dataclass(frozen=True, eq=False, repr=False)
class Synthesizer:
    """Sequential regressions with posterior draws given the confidential data.

    Make one with `from_draws`. Its attributes hold confidential values.

    Attributes
    ----------
    plan
        The regressions in synthesis order.
    schema
        The variables of the plan.
    models
        A model for each regression.
    data
        The confidential records that are used, all columns, indexed by their labels.
    columns
        The plan's columns as arrays.
    n_dropped
        How many records were left out because a value is missing.
    """

    plan: Plan
    schema: Schema
    models: tuple[Model, ...]
    data: pd.DataFrame
    columns: Columns
    n_dropped: int

    @classmethod
    def from_draws(
        cls,
        regressions: Regression | Sequence[Regression],
        data: TableLike,
        draws: TableLike | Sequence[TableLike] | Mapping[str, TableLike],
        *,
        rename: Mapping[str, Any] | None = None,
        types: Types | None = None,
        id: str | None = None,  # noqa: A002 - the public name
        missing: Missing = "error",
    ) -> Synthesizer:
        """Take draws that somebody else made, given the confidential data.

        Parameters
        ----------
        regressions
            The models, in the order in which their responses were synthesized.
        data
            The confidential data: a frame, or the path of a CSV or Parquet file.
        draws
            A table of draws for each regression, in the same order or by response: a row a draw, a
            column a parameter, in the names of rstanarm, brms, CmdStan or formulaic. Columns of
            bookkeeping (``synrisk.interchange.BOOKKEEPING``) are dropped. A column ``weight`` (or
            ``.log_weight``) weighs the draws.
        rename
            ``{column: parameter}`` for other names; by response where tables differ.
        types
            ``{"Race": ["1", "2"], "Zip": "category", "Age": "numeric"}``: what a file cannot say.
        id
            The column that names the records; without it the frame's index does.
        missing
            ``"error"``; ``"drop"`` leaves incomplete records out; ``"level"`` makes a level of
            missing values of factors.
        """
        plan = Plan.of(regressions)
        if id is not None and not isinstance(id, str):
            raise OptionError(f"id= is the name of a column; got {type(id).__name__}.")
        text = text_columns(types)
        frame = read_table(data, _WHAT, text=text if id is None else {id: [], **text})
        if not len(frame):
            raise DataError(f"{_WHAT} have no rows.")
        require_columns(frame, (*plan.columns, *plan.weight_columns), _WHAT)
        frame = _labelled(frame, id, plan)
        schema = Schema.settle(
            frame,
            (*plan.columns, *(w for w in plan.weight_columns if w not in plan.columns)),
            types=types,
            factors=plan.factors,
            missing=missing,
        )
        columns, kept = schema.encode(frame, schema.variables, _WHAT)
        _check_responses(plan, schema, columns)
        weights = {name: _record_weights(name, columns[name]) for name in plan.weight_columns}
        n_rows = int(kept.sum())
        designs = [Design.freeze(r.parsed, schema, columns, n_rows) for r in plan.regressions]
        tables = _tables(draws, plan)
        renames = split_rename(rename, plan.synthesized)
        _check_renames(renames, tables)
        models = tuple(
            Model(
                regression,
                design,
                read_draws(
                    tables[regression.response],
                    regression.distribution,
                    schema.variables[regression.response],
                    design,
                    renames[regression.response],
                    frozenset(frame.columns),
                ),
                weights.get(regression.weights or ""),
            )
            for regression, design in zip(plan.regressions, designs, strict=True)
        )
        return cls(plan, schema, models, frame[kept], columns, len(frame) - n_rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save plan, confidential data and draws to a NetCDF file that its owner alone can read."""
        meta, arrays = self.to_contents()
        save(path, Contents("a synthesizer", meta, arrays, self.data))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Synthesizer:
        """Load what `save` wrote."""
        contents = load(path, "a synthesizer")
        return cls.from_contents(contents.meta, contents.arrays, contents.table)

    def to_contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return settings and arrays from which, with `data`, the synthesizer can be made again."""
        meta: dict[str, Any] = {
            "models": [
                {
                    "formula": model.regression.formula,
                    "family": _registered(model.regression.distribution),
                    "weights": model.regression.weights,
                    "names": list(model.posterior.names),
                    "sources": list(model.posterior.sources),
                }
                for model in self.models
            ],
            "schema": self.schema.to_json(),
            "n_dropped": self.n_dropped,
        }
        arrays = {}
        for k, model in enumerate(self.models):
            arrays[f"coefficients_{k}"] = model.posterior.coefficients
            arrays[f"auxiliary_{k}"] = model.posterior.auxiliary
            arrays[f"log_weights_{k}"] = model.posterior.log_weights
        return meta, arrays

    @classmethod
    def from_contents(
        cls, meta: Mapping[str, Any], arrays: Mapping[str, Any], data: pd.DataFrame
    ) -> Synthesizer:
        """Make the synthesizer of `to_contents` again; the design is frozen anew on the data."""
        stored = meta["models"]
        plan = Plan.of(
            [Regression(m["formula"], m["family"], weights=m["weights"]) for m in stored]
        )
        schema = Schema.from_json(meta["schema"])
        columns, kept = schema.encode(data, schema.variables, _WHAT)
        models = []
        for k, regression in enumerate(plan.regressions):
            design = Design.freeze(regression.parsed, schema, columns, int(kept.sum()))
            response = schema.variables[regression.response]
            names = parameter_names(design, regression.distribution, response)
            if list(names) != stored[k]["names"]:
                raise FileError(
                    "The file was written by a version of synrisk that encodes formulas "
                    "differently; fit or read the draws again."
                )
            posterior = Posterior(
                arrays[f"coefficients_{k}"],
                arrays[f"auxiliary_{k}"],
                arrays[f"log_weights_{k}"],
                names,
                tuple(stored[k]["sources"]),
            )
            name = regression.weights
            weights = None if name is None else _record_weights(name, columns[name])
            models.append(Model(regression, design, posterior, weights))
        return cls(plan, schema, tuple(models), data[kept], columns, int(meta["n_dropped"]))

    @property
    def n_records(self) -> int:
        """The number of confidential records used."""
        return len(self.data)

    def __repr__(self) -> str:
        formulas = "; ".join(f"{m.regression.formula} ({_family(m)})" for m in self.models)
        draws = listed(f"{m.posterior.n_draws:,}" for m in self.models)
        return f"<Synthesizer: {formulas}; {self.n_records:,} records; draws: {draws}>"

    def draws(self, variable: str) -> pd.DataFrame:
        """Return the draws of one regression: a row a draw, a column a parameter, and ``weight``.

        Coefficients are named by their term ("Intercept", "LogExpenditure", "Race[T.2]"); for a
        categorical response by level and term ("2:LogIncome").
        """
        return self._model(variable).posterior.frame()

    def describe(self) -> pd.DataFrame:
        """Return a row a parameter: where it was read from, its posterior mean and sd."""
        rows = []
        for model in self.models:
            posterior = model.posterior
            frame = posterior.frame()
            weight = np.exp(posterior.log_weights)
            for name, source in zip(posterior.names, posterior.sources, strict=True):
                values = frame[name].to_numpy()
                mean = float(np.sum(weight * values))
                sd = float(np.sqrt(np.sum(weight * (values - mean) ** 2)))
                rows.append(
                    {
                        "variable": model.regression.response,
                        "parameter": name,
                        "family": _family(model),
                        "probability_of": self._modelled_level(model),
                        "read_from": source,
                        "mean": mean,
                        "sd": sd,
                    }
                )
        return pd.DataFrame(rows).set_index(["variable", "parameter"])

    def _modelled_level(self, model: Model) -> Any:
        """Return the level whose probability a bernoulli model of a factor gives, else None."""
        variable = self.schema.variables[model.regression.response]
        binary = isinstance(variable, Factor) and not model.regression.distribution.makes_factor
        return variable.levels[1] if binary and isinstance(variable, Factor) else None

    def _model(self, variable: str) -> Model:
        for model in self.models:
            if isinstance(variable, str) and model.regression.response == variable:
                return model
        raise OptionError(
            f"{got(variable)} is not synthesized; the synthesized variables are "
            f"{listed(self.plan.synthesized)}."
        )


def _registered(family: Family) -> str:
    if family not in FAMILIES:
        raise FileError(
            f"The family {family.name!r} is not one of synrisk's, so it cannot be saved."
        )
    return family.name


def _family(model: Model) -> str:
    return model.regression.distribution.name


def _labelled(frame: pd.DataFrame, id_column: str | None, plan: Plan) -> pd.DataFrame:
    """Return the frame indexed by the records' labels, each of which must occur once."""
    source = "the index"
    if id_column is not None:
        require_columns(frame, [id_column], "id=")
        if id_column in plan.columns:
            raise OptionError(f"id={id_column!r} is used in a formula; it cannot name the records.")
        frame = frame.set_index(_whole_ids(frame[id_column]), drop=False)
        source = f"the column {id_column!r}"
    if isinstance(frame.index, pd.MultiIndex):
        raise DataError(f"{_WHAT} have an index of several levels; name the records with id=.")
    n_missing = int(np.sum(frame.index.isna()))
    if n_missing:
        raise DataError(f"{_WHAT}: {source} lacks {counted(n_missing, 'label')}.")
    n_nested = sum(not isinstance(label, Hashable) for label in frame.index)
    if n_nested:
        raise DataError(f"{_WHAT}: {source} holds {counted(n_nested, 'list')}, not labels.")
    n_repeated = int(frame.index.duplicated().sum())
    if n_repeated:
        raise DataError(
            f"{_WHAT}: {source} repeats {counted(n_repeated, 'label')}; every record needs its "
            "own. Name them by another column (id=), or reset the index."
        )
    return frame


def _whole_ids(ids: pd.Series[Any]) -> pd.Index[Any]:
    """Return ids as an index; text that only holds whole numbers without leading zeros as such."""
    whole = r"0|[1-9]\d{0,17}"
    is_text = pd.api.types.is_string_dtype(ids.dtype) and bool(ids.notna().all())
    if is_text and ids.map(lambda label: bool(re.fullmatch(whole, str(label)))).all():
        ids = ids.astype(np.int64)
    index: pd.Index[Any] = pd.Index(ids, name=ids.name)
    return index


def _check_responses(plan: Plan, schema: Schema, columns: Columns) -> None:
    for regression in plan.regressions:
        family, name = regression.distribution, regression.response
        variable = schema.variables[name]
        wanted = f"{_WHAT}: {name!r} is modelled as {family.name} and must be {family.wants}"
        undeclared = isinstance(variable, Factor) and not variable.declared
        binary = family.fits(variable) and not family.makes_factor
        if isinstance(variable, Factor) and undeclared and binary and not _is_logical(variable):
            raise DataError(
                f"{_WHAT}: {name!r} is text with two levels; say which one the model's "
                f"probability is of by listing it second: types={{{name!r}: [other, that]}}."
            )
        if not family.fits(variable):
            n_levels = len(getattr(variable, "levels", ()))
            raise DataError(f"{wanted}; it is a factor with {counted(n_levels, 'level')}.")
        n_outside = int((~family.supports(columns[name].astype(np.float64), variable)).sum())
        if n_outside:
            raise DataError(f"{wanted}; {counted(n_outside, 'value is', 'values are')} not.")


def _is_logical(variable: Factor) -> bool:
    return all(isinstance(level, bool | np.bool_) for level in variable.levels)


def _record_weights(name: str, weights: Any) -> FloatArray:
    if weights.dtype.kind != "f":
        raise DataError(f"{_WHAT}: the weights column {name!r} must hold numbers.")
    n_negative = int((weights < 0).sum())
    if n_negative or not (weights > 0).any():
        raise DataError(
            f"{_WHAT}: the weights in {name!r} must not be negative, and not all zero; "
            f"{counted(n_negative, 'value is', 'values are')} negative."
        )
    return np.asarray(weights, dtype=np.float64)


def _tables(draws: Any, plan: Plan) -> dict[str, pd.DataFrame]:
    names = plan.synthesized
    if isinstance(draws, Mapping) and set(draws) & set(names):
        by_response = dict(draws)
    elif isinstance(draws, list | tuple):
        if len(draws) != len(names):
            raise DrawsError(
                f"The plan has {counted(len(names), 'regression')}, but draws= holds "
                f"{counted(len(draws), 'table')}; give one for each, in synthesis order."
            )
        by_response = dict(zip(names, draws, strict=True))
    elif len(names) == 1:
        by_response = {names[0]: draws}
    else:
        raise DrawsError(
            f"The plan has {len(names)} regressions; give draws= as a list of "
            f"{len(names)} tables in synthesis order, or as a mapping by response."
        )
    if set(by_response) != set(names):
        raise DrawsError(
            f"draws= must have a table for each of {listed(names)}; it has {listed(by_response)}."
        )
    return {
        name: read_table(table, f"Draws for {name!r}", comment="#")
        for name, table in by_response.items()
    }


def _check_renames(
    renames: Mapping[str, Mapping[str, str]], tables: Mapping[str, pd.DataFrame]
) -> None:
    for column in {column for rename in renames.values() for column in rename}:
        holders = [name for name, table in tables.items() if column in table.columns]
        if not any(column in renames[name] for name in holders):
            raise DrawsError(f"rename=: no table of draws has a column {column!r}.")
