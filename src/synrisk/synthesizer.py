"""The synthesizer: a plan, the confidential data it was fitted on, and its posterior draws."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from synrisk.errors import DrawsError, FileError, OptionError, counted, got, listed
from synrisk.families import FAMILIES, Family
from synrisk.interchange import read_draws, split_rename
from synrisk.io import TableLike, read_table
from synrisk.model import Model
from synrisk.plan import Plan, Regression
from synrisk.posterior import Posterior, parameter_names
from synrisk.preparation import Confidential
from synrisk.schema import Columns, Factor, Missing, Schema, Types
from synrisk.storage import Contents, load, save


@dataclass(frozen=True, eq=False, repr=False)
class Synthesizer:
    """Sequential regressions with posterior draws given the confidential data.

    Make one with `from_draws`. Its attributes hold confidential values.

    Attributes
    ----------
    confidential
        The confidential data as the plan uses them.
    models
        A model for each regression.
    """

    confidential: Confidential
    models: tuple[Model, ...]

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
        confidential = Confidential.read(
            regressions, data, types=types, id_column=id, missing=missing
        )
        plan, schema = confidential.plan, confidential.schema
        designs = [confidential.design(regression) for regression in plan.regressions]
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
                    frozenset(confidential.data.columns),
                ),
                confidential.record_weights(regression),
            )
            for regression, design in zip(plan.regressions, designs, strict=True)
        )
        return cls(confidential, models)

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
        confidential = Confidential.encode(plan, schema, data, int(meta["n_dropped"]))
        models = []
        for k, regression in enumerate(plan.regressions):
            design = confidential.design(regression)
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
            weights = confidential.record_weights(regression)
            models.append(Model(regression, design, posterior, weights))
        return cls(confidential, tuple(models))

    @property
    def plan(self) -> Plan:
        """The regressions in synthesis order."""
        return self.confidential.plan

    @property
    def schema(self) -> Schema:
        """The variables of the plan."""
        return self.confidential.schema

    @property
    def data(self) -> pd.DataFrame:
        """The confidential records that are used, all columns, indexed by their labels."""
        return self.confidential.data

    @property
    def columns(self) -> Columns:
        """The plan's columns as arrays."""
        return self.confidential.columns

    @property
    def n_dropped(self) -> int:
        """How many records were left out because a value is missing."""
        return self.confidential.n_dropped

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
