"""The synthesizer: a plan, the confidential data it was fitted on, and its posterior draws."""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args, overload

import numpy as np
import pandas as pd

from synrisk.base.cache import Memory
from synrisk.base.digests import digest
from synrisk.base.errors import (
    DataError,
    DrawsError,
    FileError,
    OptionError,
    PriorError,
    counted,
    got,
    listed,
    nearest,
    one_of,
    within_memory,
)
from synrisk.base.messages import place_of, setting
from synrisk.base.progress import under_way, with_progress
from synrisk.base.seeds import MOST_TRIED, checked_seed
from synrisk.base.workers import Executor, workers
from synrisk.data.archive import intact
from synrisk.data.frames import TableLike, read_table
from synrisk.data.netcdf import Contents, load, save
from synrisk.data.output_files import as_path
from synrisk.data.parquet_parts import cut, new_folder, write_parts
from synrisk.data.part_files import PartFolder
from synrisk.data.partitions import is_partitioned
from synrisk.data.schema import (
    Columns,
    Factor,
    Missing,
    Schema,
    Types,
    columns_where_there,
    text_columns,
)
from synrisk.fitting import Refit, fit_regression, refuse_too_large
from synrisk.models.design import Design, least_columns
from synrisk.models.families import Rounded
from synrisk.models.plan import Plan, Regression
from synrisk.models.posterior import Posterior, parameter_names
from synrisk.models.priors import Conjugate, PriorSpec, check_prior
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.dataset_parts import write_dataset
from synrisk.synthesis.datasets import (
    HeldBackWarning,
    refuse_many_datasets,
    synthesize,
    synthesize_parts,
)
from synrisk.synthesis.draws import bambi
from synrisk.synthesis.draws.arviz import inference_table, is_inference
from synrisk.synthesis.draws.draw_tables import read_draws, split_rename
from synrisk.synthesis.fitted_model import Model, describe_models, saturation_notes
from synrisk.synthesis.group_level_fits import fit_by_bambi, refuse_unfit
from synrisk.synthesis.leaks import ORDER, refuse_exact, refuse_relations
from synrisk.synthesis.predictive_checks import (
    PredictiveCheck,
    check_predictions,
    misfit_notes,
)
from synrisk.synthesis.refits import Refits, rows_of_records
from synrisk.synthesis.release import read_release
from synrisk.synthesis.rounding import is_coarse, rounded, stored_step
from synrisk.synthesis.stored_records import read_stored
from synrisk.synthesis.synthesizer_file import (
    models_from_contents,
    models_to_contents,
    regressions_from_contents,
)

EngineName: TypeAlias = Literal["auto", "exact", "laplace", "nuts"]
_MOST_DRAWS = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Synthesizer:
    """Sequential regressions with posterior draws given the confidential data.

    Make one with `synrisk.fit` or `from_draws`. Its attributes hold confidential values.

    Attributes
    ----------
    confidential
        The confidential data as the plan uses them.
    models
        A model for each regression.
    memory
        Of what no release changes.
    """

    confidential: Confidential
    models: tuple[Model, ...]
    memory: Memory = field(default_factory=Memory, init=False)

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
        release: Sequence[str] | None = None,
    ) -> Synthesizer:
        """Take draws that somebody else made, given the confidential data.

        Parameters
        ----------
        regressions
            The models, in the order in which their responses were synthesized.
        data
            The confidential data: a frame, or the path of a CSV, Parquet or RDS file.
        draws
            A table of draws for each regression, in the same order or by response: a row a draw, a
            column a parameter, in the names of rstanarm, brms, CmdStan or formulaic; a frame, a
            file (CSV, Parquet, RDS or RData), or an object of ArviZ (InferenceData, DataTree, or
            its posterior group). Columns of bookkeeping (``BOOKKEEPING`` in `draw_tables`) are
            dropped, and those that hold a value for each record (``mu``, ``log_lik``). A column
            ``weight`` (or ``.log_weight``) weighs the draws. Where a column tells the chains
            (``.chain``), draws are put in the order of chain and iteration: of draws of one joint
            posterior, for ``estimator="paper"``, all tables have such columns or none has.
        rename
            ``{column: parameter}`` for other names; by response where tables differ.
        types
            ``{"Race": ["1", "2"], "Zip": "category", "Age": "numeric"}``: what a file cannot say.
        id
            The column that names the records; without it the frame's index does.
        missing
            ``"error"``; ``"drop"`` leaves incomplete records out; ``"level"`` makes a level of
            missing values of factors.
        release
            As in `synrisk.fit`.
        """
        confidential = _read(
            regressions, data, types=types, id_column=id, missing=missing, release=release
        )
        _refuse_gaps_in_draws(confidential.plan)
        _check_binary_levels(confidential)
        plan, schema = confidential.plan, confidential.schema
        designs = [confidential.design(regression) for regression in plan.regressions]
        tables = _tables(draws, plan, schema)
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
                    confidential.n_records,
                    frozenset(confidential.data.columns),
                ),
                confidential.record_weights(regression),
                rename=renames[regression.response],
            )
            for regression, design in zip(plan.regressions, designs, strict=True)
        )
        refuse_exact(confidential.sample)
        return cls(confidential, models)

    @classmethod
    def from_bambi(
        cls,
        models: Any,
        idatas: Any,
        *,
        data: TableLike | None = None,
        types: Types | None = None,
        id: str | None = None,  # noqa: A002 - the public name
        release: Sequence[str] | None = None,
    ) -> Synthesizer:
        """Take models that Bambi fitted, with their formulas, families, data and draws.

        Parameters
        ----------
        models
            Models of Bambi, in the order in which their responses were synthesized.
        idatas
            The inference data that ``fit`` returned for each.
        data
            The confidential data, if not the models' own: the same rows, with more columns.
        types, id, release
            As in `from_draws`.
        """
        read = bambi.read_bambi(models, idatas)
        known = {name: levels for one in read for name, levels in one.types.items()}
        text = text_columns(types)
        if isinstance(id, str):
            text = {id: [], **text}
        frame = bambi.data_of(models) if data is None else data
        frame = read_table(frame, "The confidential data", text=text)
        bambi.refuse_gaps(frame, read)
        synthesizer = cls.from_draws(
            [one.regression for one in read],
            frame,
            [one.draws for one in read],
            types={**known, **(types or {})} or None,
            id=id,
            release=release,
        )
        for one, model in zip(read, synthesizer.models, strict=True):
            n_records = synthesizer.n_records
            matrix = model.design.matrix(
                synthesizer.columns, n_records, "The confidential data", DataError
            )
            what = f"Formula {one.regression.formula!r}"
            # "top − low", or "− low" where the other one is Bambi's reference.
            sources = [s.removeprefix("− ").split(" − ")[0] for s in model.posterior.sources]
            bambi.check_design(one.design, matrix, sources[: matrix.shape[1]], what)
            response = one.regression.response
            values = synthesizer.columns[response].astype(np.float64)
            bambi.check_response(one, values, synthesizer.schema.variables[response], what)
        return synthesizer

    def read_stacked(self, stacked: Any, n_datasets: int) -> tuple[tuple[Posterior, ...], ...]:
        """Read draws that somebody else made given confidential and synthetic rows stacked.

        Parameters
        ----------
        stacked
            An entry a dataset, each as ``draws`` of `from_draws`, in the same names.
        n_datasets
            The number of synthetic datasets.

        Returns
        -------
        tuple
            By dataset, the posterior of each model.
        """
        fitted = [m.regression.response for m in self.models if m.fit is not None]
        if fitted:
            raise OptionError(
                f"stacked= is for draws that were made elsewhere; the models of {listed(fitted)} "
                "were made by synrisk.fit, and are fitted to the stacks by synrisk."
            )
        if not isinstance(stacked, list | tuple) or len(stacked) != n_datasets:
            found = f"; it has {len(stacked)}" if isinstance(stacked, list | tuple) else ""
            raise DrawsError(
                f"stacked= is a list with an entry for each of the "
                f"{counted(n_datasets, 'synthetic dataset')}, each holding a table for each "
                f"regression{found}."
            )
        return tuple(
            self._read_stack(entry, number) for number, entry in enumerate(stacked, start=1)
        )

    def _read_stack(self, entry: Any, number: int) -> tuple[Posterior, ...]:
        given = f" given the stack of dataset {number}"
        where = f"stacked= of dataset {number}"
        tables = _tables(entry, self.plan, self.schema, where, given)
        posteriors = []
        for model in self.models:
            response = model.regression.response
            table = tables[response]
            posterior = read_draws(
                table,
                model.regression.distribution,
                self.schema.variables[response],
                model.design,
                {old: new for old, new in model.rename.items() if old in table.columns},
                self.n_records,
                frozenset(self.data.columns),
                given,
            )
            if np.array_equal(posterior.coefficients, model.posterior.coefficients):
                raise DrawsError(
                    f"Draws for {response!r}{given} are those given the confidential data alone; "
                    "fit the model to confidential and synthetic rows together, with the same "
                    "priors."
                )
            posteriors.append(posterior)
        return tuple(posteriors)

    @overload
    def synthesize(
        self,
        m: int = 1,
        seed: int | None = None,
        *,
        executor: Any = None,
        out: None = None,
        progress: bool | None = None,
    ) -> list[pd.DataFrame]: ...

    @overload
    def synthesize(
        self,
        m: int = 1,
        seed: int | None = None,
        *,
        executor: Any = None,
        out: str | os.PathLike[str],
        progress: bool | None = None,
    ) -> list[Path]: ...

    @with_progress
    def synthesize(
        self,
        m: int = 1,
        seed: int | None = None,
        *,
        executor: Any = None,
        out: str | os.PathLike[str] | None = None,
        progress: bool | None = None,  # noqa: ARG002 - of what shows it
    ) -> list[pd.DataFrame] | list[Path]:
        """Draw synthetic datasets, each from its own draw of the parameters.

        Variables are drawn in the plan's order, with the synthetic values of those before. Other
        columns are released as they are (`released_as_is`), or held back with a warning where they
        may name people and were not declared (``release=`` of `synrisk.fit`); the rows' labels are
        theirs alone, from 0. Types and levels stay; whole-number columns stay whole. Two calls with
        the same seed give the same data whatever the executor.

        Parameters
        ----------
        m
            The number of datasets.
        seed
            None draws a secret one of 128 bits, and no two calls are alike. A whole number gives
            the same data again: for teaching, since one that you choose can be guessed.
            `attribute_risk` tries those that people choose, and those given here that have fewer
            than 19 digits.
        executor
            As in `attribute_risk`.
        out
            A new folder to write the datasets to, in folders dataset-1 and so on of Parquet files
            part-00000.parquet and so on. Of data that were read in parts they are always written,
            and hold the columns of the formulas alone.
        progress
            As in `attribute_risk`.

        Returns
        -------
        list
            A frame each, or with `out` the path of a folder each.
        """
        if not _is_count(m):
            raise OptionError(f"m must be a whole number from 1; got {got(m)}.")
        if out is None and self.confidential.is_stored:
            raise OptionError(
                "The confidential data were read in parts, and so are synthetic data written: name "
                "a new folder, out='…'."
            )
        if not self.confidential.is_stored:
            refuse_many_datasets(self.confidential, int(m))
        team, start = workers(executor), checked_seed(seed)
        self._begin_synthesis(start)
        datasets: list[pd.DataFrame] | list[Path]
        with team.open() as opened:
            if out is None:
                datasets = synthesize(self.confidential, self.models, int(m), start, opened)
            else:
                datasets = self._write(new_folder(as_path(out)), int(m), start, opened)
        # Of the column that names the records everybody knows.
        held_back = [name for name in self.confidential.held_back if name != self.data.index.name]
        if held_back:
            warnings.warn(_about_held_back(held_back), HeldBackWarning, stacklevel=3)
        return datasets

    def _write(self, folder: Path, m: int, seed: int, executor: Executor) -> list[Path]:
        """Write datasets in parts, each whole before the next begins; return their folders."""
        confidential, models, found = self.confidential, self.models, []
        in_memory: list[pd.DataFrame] = []
        if not confidential.is_stored:
            in_memory = synthesize(confidential, models, m, seed, executor)
        for number in range(m):
            parts = (
                synthesize_parts(confidential, models, number, seed, executor)
                if confidential.is_stored
                else cut(in_memory[number])
            )
            found.append(new_folder(folder / f"dataset-{number + 1}"))
            write_parts(found[-1], parts)
        return found

    def go_on_synthesizing(
        self, folders: Sequence[PartFolder], seed: int, *, executor: Any = None
    ) -> list[str]:
        """Write datasets of stored records, the parts that an earlier run has not left whole.

        Parameters
        ----------
        folders
            For each dataset, as `PartFolder`; they and their notes are taken for this run.
        seed
            As in `synthesize`.
        executor
            As in `attribute_risk`.

        Returns
        -------
        list
            How each part of each dataset is: "kept", "new", or why it was made anew.
        """
        self._begin_synthesis(seed)
        with workers(executor).open() as opened:
            return [
                state
                for number, folder in enumerate(folders)
                for state in write_dataset(self, number, seed, folder, opened)
            ]

    def _begin_synthesis(self, seed: int) -> None:
        """Raise where a released column tells synthesized ones; note a seed that can be tried."""
        kept = (*self.released_as_is, ORDER) if self.released_as_is else ()
        refuse_relations(self.confidential.sample, self.memory, kept)
        if 0 <= seed < MOST_TRIED:
            self.memory.recall("chosen seeds", set[int]).add(seed)

    @cached_property
    def digest(self) -> str:
        """A digest of models and records, by which what was made from them is known again."""
        models = [
            (one.regression.formula, one.regression, one.posterior, one.record_weights, one.fit)
            for one in self.models
        ]
        return digest(models, self.schema.to_json(), self.columns)

    @property
    def chosen_seeds(self) -> tuple[int, ...]:
        """The seeds that `synthesize` was given, where all of their size can be tried."""
        return tuple(sorted(self.memory.recall("chosen seeds", set[int])))

    @property
    def released_as_is(self) -> tuple[str, ...]:
        """The columns that `synthesize` releases as they are in the confidential data."""
        return self.confidential.released_as_is

    def refit(self, synthetic: TableLike, *, executor: Any = None) -> dict[str, Refit]:
        """Fit every regression again to confidential and synthetic rows stacked.

        Everything but the rows is that of the confidential fit: levels, knots, centring, scales,
        priors and the random numbers, so that draws of both fits move together. Synthetic rows
        have weight one.

        Parameters
        ----------
        synthetic
            One synthetic dataset.
        executor
            As in `attribute_risk`.

        Returns
        -------
        dict
            By synthesized variable: the posterior, its effective number of draws and k̂.
        """
        released, *others = read_release(self.confidential, synthetic)
        if others:
            raise OptionError(
                f"refit takes one synthetic dataset at a time; got {1 + len(others)}."
            )
        team = workers(executor)
        with team.open() as opened:
            return {
                model.regression.response: self.refits.refit(model, released, opened)
                for model in self.models
            }

    @property
    def refits(self) -> Refits:
        """The models' posteriors given other rows."""
        return Refits(self.confidential, self.memory)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user of these models should know."""
        fitted = [note for model in self.models if model.fit for note in model.fit.notes]
        saturated = [n for model in self.models for n in saturation_notes(model, self.n_records)]
        left_out = [
            (
                f"Draws for {model.regression.response}: {listed(model.posterior.left_out)} was "
                "taken for what the model computes for each record, and left out."
            )
            for model in self.models
            if model.posterior.left_out
        ]
        rounded = [
            (
                f"{model.response} is modelled as rounded to {model.regression.wants}: a release "
                "of it is scored by probabilities of rounded values."
            )
            for model in self.models
            if isinstance(model.regression.distribution, Rounded)
        ]
        misfits = misfit_notes(self._predictive_checks)
        return (*fitted, *saturated, *misfits, *rounded, *left_out)

    @property
    def _predictive_checks(self) -> tuple[PredictiveCheck, ...]:
        def check() -> tuple[PredictiveCheck, ...]:
            variables, columns = self.schema.variables, self.confidential.sample.columns
            by_model = (
                check_predictions(
                    model.of_values,
                    variables[model.response],
                    columns_where_there(columns, variables[model.response]),
                )
                for model in self.models
            )
            return tuple(one for found in by_model for one in found)

        return self.memory.recall("predictive checks", check)

    def predictive_checks(self) -> pd.DataFrame:
        """Return whether each model gives such values as the confidential data have.

        A row for each statistic of each number that is modelled: zeros, variance or skewness, the
        ends, impossible values; of the confidential data, its mean and standard deviation over 100
        datasets that the model draws for the same records, whether that is a misfit, and what would
        mend it. For inside use: the ends are of single people.
        """
        return pd.DataFrame([asdict(one) for one in self._predictive_checks])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save plan, confidential data and draws to a NetCDF file that its owner alone can read."""
        if self.confidential.is_stored:
            raise OptionError(
                "A synthesizer of data that were read in parts cannot be saved: a file holds the "
                "data. Fit it again with the same seed, which gives the same draws."
            )
        meta, arrays = self.to_contents()
        save(path, Contents("a synthesizer", meta, arrays, self.data))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Synthesizer:
        """Load what `save` wrote."""
        contents = load(path, "a synthesizer")

        def made() -> Synthesizer:
            synthesizer = cls.from_contents(contents.meta, contents.arrays, contents.table)
            synthesizer.describe()  # whatever a file lacks for that is found now
            return synthesizer

        return intact(made)

    def to_contents(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return settings and arrays from which, with `data`, the synthesizer can be made again."""
        settings, arrays = models_to_contents(self.models)
        meta = {
            "models": settings,
            "schema": self.schema.to_json(),
            "n_dropped": self.n_dropped,
            "release": list(self.confidential.release),
        }
        return meta, arrays

    @classmethod
    def from_contents(
        cls, meta: Mapping[str, Any], arrays: Mapping[str, Any], data: pd.DataFrame
    ) -> Synthesizer:
        """Make the synthesizer of `to_contents` again."""
        if not data.index.is_unique:
            raise FileError("The file holds records that have one label.")
        schema = Schema.from_json(meta["schema"])
        stored = Plan.of(regressions_from_contents(meta["models"]))
        plan = Plan.of([r.given(schema.variables[r.response]) for r in stored.regressions])
        release = tuple(map(str, meta["release"]))
        confidential = Confidential.encode(plan, schema, data, int(meta["n_dropped"]), release)
        return cls(confidential, models_from_contents(meta["models"], arrays, confidential))

    @property
    def sample(self) -> Synthesizer:
        """The models with the records that are in memory: all, unless they are stored."""
        confidential = self.confidential.sample
        if confidential is self.confidential:
            return self
        models = (
            replace(model, record_weights=confidential.record_weights(model.regression))
            for model in self.models
        )
        return Synthesizer(confidential, tuple(models))

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
        formulas = "; ".join(f"{m.regression.formula} ({m.family})" for m in self.models)
        draws = listed(f"{m.posterior.n_draws:,}" for m in self.models)
        as_is = listed(self.released_as_is) if self.released_as_is else "nothing"
        return (
            f"<Synthesizer: {formulas}; {self.n_records:,} records; draws: {draws}; released as "
            f"is: {as_is}>"
        )

    def draws(self, variable: str) -> pd.DataFrame:
        """Return the draws of one regression: a row a draw, a column a parameter, and ``weight``.

        Where the draws' chains are known, a column ``.chain`` tells them.
        Coefficients are named by their term ("Intercept", "LogExpenditure", "Race[T.2]"); for a
        categorical response by level and term ("2:LogIncome").
        """
        return self._model(variable).posterior.frame()

    def describe(self) -> pd.DataFrame:
        """Return a row a parameter: its posterior mean and sd, and where they come from.

        For draws made elsewhere ``read_from`` is their column. For a fit there are the ``prior``,
        the ``mode``, ``vif`` (the variance inflation factor: 1 without collinearity, above 10 a
        lot), ``separated`` (the column settles an outcome, so the coefficient's size is the
        prior's), and of the model ``engine``, ``ess`` (effective number of draws) and ``khat`` (the
        tail of the importance weights; above 0.7 they would not be relied on).
        """
        return describe_models(self.models, self.schema)

    def _model(self, variable: str) -> Model:
        for model in self.models:
            if isinstance(variable, str) and model.regression.response == variable:
                return model
        raise OptionError(
            f"{got(variable)} is not synthesized; the synthesized variables are "
            f"{listed(self.plan.synthesized)}."
        )


@with_progress
@within_memory
def fit(
    regressions: Regression | Sequence[Regression],
    data: TableLike,
    *,
    n_draws: int = 1000,
    prior: PriorSpec = "default",
    engine: EngineName = "auto",
    seed: int | None = None,
    missing: Missing = "error",
    types: Types | None = None,
    id: str | None = None,  # noqa: A002 - the public name
    release: Sequence[str] | None = None,
    executor: Any = None,
    progress: bool | None = None,  # noqa: ARG001 - of what shows it
) -> Synthesizer:
    """Fit sequential Bayesian regressions to the confidential data.

    Parameters
    ----------
    regressions
        The models, in the order in which their responses are to be synthesized.
    data
        The confidential data: a frame, or the path of a CSV, Parquet or RDS file. What is too large
        for memory is read in parts: a folder of Parquet files, a dataset of pyarrow, or a frame of
        Dask. The columns of the formulas are then kept in a temporary folder (in the folder that
        the environment variable ``TMPDIR`` names), which only its owner can enter.
    n_draws
        The number of posterior draws of each model.
    prior
        ``"default"``: weakly informative and scaled to the data as rstanarm's are. ``"paper"``:
        Normal(0, 2) on coefficients, without scaling, the intercept and sigma as by default.
        ``"conjugate"`` or `Conjugate`: for gaussian models, drawn from exactly. `Normal` for all
        coefficients, or a dict of priors by parameter, each for every model that has it. A
        regression's own prior goes first.
    engine
        ``"auto"``: ``"exact"`` for gaussian models (sigma from its own posterior, coefficients
        given it), else ``"laplace"``: the posterior mode, t proposals about it and importance
        weights, which are kept with the draws. ``"nuts"``: four chains of nutpie's sampler on the
        same log posterior (the extra ``nuts``); slower, for posteriors that ``"laplace"`` refuses.
        Models with group-level terms, ``(x | region)``, need ``"nuts"``, and are fitted by Bambi
        under its own default priors (the extra ``bambi``).
    seed
        A whole number; None draws a secret one of 128 bits.
    missing
        ``"error"``; ``"drop"`` leaves incomplete records out; ``"level"`` makes a level of
        missing values of factors. Or by column, ``{"Income": "model", "Region": "level"}``:
        ``"model"`` is for numbers. Of a synthesized one it is modelled by logistic regression on
        the same predictors which are missing, so that a release has gaps where the data have. In
        formulas a missing predictor counts as 0, with a column ``missing(Income)`` beside it.
    types
        ``{"Race": ["1", "2"], "Zip": "category", "Age": "numeric"}``: what a file cannot say.
    id
        The column that names the records; without it the frame's index does.
    release
        Columns to be released as they are though they may name people: ids, names, free text,
        and whatever is different for nearly everybody and in no formula. ``"index"`` stands for the
        records' labels. Other columns that are not synthesized need not be listed.
    executor
        None or ``"threads"`` uses a thread for each core, ``"serial"`` one; a number is a number
        of threads. ``"processes"`` uses a process for each core, `Processes` (n) so many; a
        ``distributed.Client`` or the address of a scheduler (``"tcp://127.0.0.1:8786"``) a cluster
        of Dask. Or an object with a ``map`` method. Results are the same to the last bit.
    progress
        True shows a bar with the time left for every pass over the records, if standard error is a
        terminal.
    """
    if not _is_count(n_draws) or n_draws > _MOST_DRAWS:
        raise OptionError(
            f"n_draws must be a whole number from 1 to {_MOST_DRAWS:,}; got {got(n_draws)}."
        )
    one_of("engine", engine, get_args(EngineName))
    team, start, common = workers(executor), checked_seed(seed), check_prior(prior)
    confidential = _read(
        regressions, data, types=types, id_column=id, missing=missing, release=release
    )
    refuse_exact(confidential.sample)
    for regression in confidential.plan.regressions:
        if not regression.parsed.groups:
            _refuse_many_levels(confidential, regression)
    designs = [confidential.design(regression) for regression in confidential.plan.regressions]
    chosen = _priors_by_model(confidential, designs, common)
    for regression, of_model in zip(confidential.plan.regressions, chosen, strict=True):
        if regression.parsed.groups:
            refuse_unfit(regression, of_model, engine)
    models = []
    n_models = len(confidential.plan.regressions)
    with team.open() as opened, under_way("Fitting models", n_models) as advance:
        for regression, design, of_model in zip(
            confidential.plan.regressions, designs, chosen, strict=True
        ):
            settings = _Settings(of_model, engine, int(n_draws), start, opened)
            model = settings.fit(confidential, regression, design)
            instead = _of_rounded_values(confidential, model, settings)
            models.append(model if instead is None else settings.fit(confidential, instead, design))
            advance(1)
    plan = Plan.of([model.regression for model in models])
    return Synthesizer(replace(confidential, plan=plan), tuple(models))


def _refuse_many_levels(confidential: Confidential, regression: Regression) -> None:
    """Raise if a design would be too large for a fit, before it fills the memory."""
    variable = confidential.schema.variables[regression.response]
    refuse_too_large(
        regression.title,
        confidential.n_records,
        least_columns(regression.parsed, confidential.schema, confidential.columns),
        regression.distribution.n_predictors(variable),
    )


def _read(regressions: Any, data: Any, **options: Any) -> Confidential:
    """Read the confidential data into memory, or a table that is in parts into a store."""
    read = read_stored if is_partitioned(data) else Confidential.read
    return read(regressions, data, **options)


def _about_held_back(names: Sequence[str]) -> str:
    return (
        f"Not released: {listed(map(repr, names))}. Such columns may name people (ids, names, free "
        "text, values that nearly everybody alone has). Leave them out of the data, or declare "
        "that they may go out: release=[…], in a study file [data] release."
    )


@dataclass(frozen=True, repr=False)
class _Settings:
    """How one model is fitted."""

    prior: PriorSpec
    engine: EngineName
    n_draws: int
    seed: int
    executor: Executor

    def fit(self, confidential: Confidential, regression: Regression, design: Design) -> Model:
        if regression.parsed.groups:
            drawn = fit_by_bambi(confidential, regression, design, self.n_draws, self.seed)
            return Model(regression, design, drawn, None)
        posterior, how = fit_regression(
            regression,
            design,
            confidential.schema.variables[regression.response],
            rows_of_records(confidential, design, regression),
            prior=self.prior,
            engine=self.engine,
            n_draws=self.n_draws,
            seed=self.seed,
            executor=self.executor,
        )
        weights = confidential.record_weights(regression)
        return Model(regression, design, posterior, weights, how)


def _of_rounded_values(
    confidential: Confidential, model: Model, settings: _Settings
) -> Regression | None:
    """Return the regression that knows that its response is rounded, where that matters."""
    regression, prior = model.regression, settings.prior
    if model.fit is None:
        return None  # Bambi's families are not of rounded values, which `attribute_risk` says
    if settings.engine == "exact" or prior == "conjugate" or isinstance(prior, Conjugate):
        return None  # asked for by name; `attribute_risk` says that its numbers are not known
    values = confidential.sample.columns[regression.response]
    step = stored_step(regression, confidential.sample.data[regression.response].dtype)
    coarse = is_coarse(regression, model.posterior, values, step, confidential.n_records)
    return rounded(regression) if coarse else None


def _priors_by_model(
    confidential: Confidential, designs: Sequence[Design], common: PriorSpec
) -> list[PriorSpec]:
    """Return each model's own prior or, of the common one, what concerns it."""
    regressions = confidential.plan.regressions
    if not isinstance(common, Mapping):
        return [common if r.prior is None else r.prior for r in regressions]
    chosen: list[PriorSpec] = []
    used: set[str] = set()
    public: dict[str, None] = {}
    for regression, design in zip(regressions, designs, strict=True):
        if regression.prior is not None:
            chosen.append(regression.prior)
            continue
        family = regression.distribution
        variable = confidential.schema.variables[regression.response]
        known = {*parameter_names(design, family, variable), *map(str, design.columns)}
        chosen.append({name: prior for name, prior in common.items() if name in known})
        used |= known
        public |= dict.fromkeys([*(c.public for c in design.columns), *family.auxiliary_names])
    unknown = [name for name in common if name not in used]
    if unknown:
        raise PriorError(
            f"prior= names {unknown[0]!r}, which is no parameter of these models."
            f"{nearest(unknown[0], public)} They have {listed(public)}."
        )
    return chosen


def _is_count(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, numbers.Integral) and int(value) >= 1


def _refuse_gaps_in_draws(plan: Plan) -> None:
    """Raise where missing values are to be modelled of draws that somebody else made."""
    gapped = [r.response for r in plan.regressions if r.distribution.gap_code is not None]
    if gapped:
        raise OptionError(
            f"missing= of {gapped[0]!r} is 'model', which is for models that synrisk fits: draws "
            "made elsewhere do not tell which values are missing.",
            about=place_of("missing"),
        )


def _check_binary_levels(confidential: Confidential) -> None:
    """Raise where draws do not say which of two levels their probability is of."""
    for regression in confidential.plan.regressions:
        variable = confidential.schema.variables[regression.response]
        if not isinstance(variable, Factor) or regression.distribution.makes_factor:
            continue
        logical = all(isinstance(level, bool | np.bool_) for level in variable.levels)
        if not variable.declared and not logical:
            name = regression.response
            raise DataError(
                f"The confidential data: {name!r} is text with two levels; say which one the "
                "model's probability is of by listing it second: "
                f"{setting('types', of=name, shown='[other, that]')}.",
                about=place_of("types", name),
            )


def _tables(
    draws: Any, plan: Plan, schema: Schema, where: str = "draws=", given: str = ""
) -> dict[str, pd.DataFrame]:
    names = plan.synthesized
    by_name = isinstance(draws, Mapping) and not is_inference(draws)
    if by_name and set(draws) & set(names):
        by_response = dict(draws)
    elif isinstance(draws, list | tuple):
        if len(draws) != len(names):
            raise DrawsError(
                f"The plan has {counted(len(names), 'regression')}, but {where} holds "
                f"{counted(len(draws), 'table')}; give one for each, in synthesis order."
            )
        by_response = dict(zip(names, draws, strict=True))
    elif len(names) == 1:
        by_response = {names[0]: draws}
    else:
        raise DrawsError(
            f"The plan has {len(names)} regressions; give {where} as a list of "
            f"{len(names)} tables in synthesis order, or as a mapping by response."
        )
    if set(by_response) != set(names):
        raise DrawsError(
            f"{where} must have a table for each of {listed(names)}; it has {listed(by_response)}."
        )
    factors = {name for name, variable in schema.variables.items() if isinstance(variable, Factor)}
    return {
        name: _table(table, f"Draws for {name!r}{given}", factors)
        for name, table in by_response.items()
    }


def _table(draws: Any, what: str, factors: Collection[str]) -> pd.DataFrame:
    if is_inference(draws):
        return inference_table(draws, what, factors)
    return read_table(draws, what, comment="#")


def _check_renames(
    renames: Mapping[str, Mapping[str, str]], tables: Mapping[str, pd.DataFrame]
) -> None:
    for column in {column for rename in renames.values() for column in rename}:
        holders = [name for name, table in tables.items() if column in table.columns]
        if not any(column in renames[name] for name in holders):
            raise DrawsError(f"rename: no table of draws has a column {column!r}.")
