"""Draws that somebody else made: tables of rstanarm, brms, CmdStan and plain names.

Columns are matched to parameters by `parameter_names`. What is missing, left over or ambiguous is
an error that lists both sides: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from synrisk.base.arrays import FloatArray
from synrisk.base.errors import DrawsError, OptionError, counted, listed
from synrisk.base.messages import either, setting
from synrisk.data.schema import Factor, Variable, as_real_numbers
from synrisk.models.design import Design
from synrisk.models.families import Family
from synrisk.models.posterior import Posterior, parameter_names
from synrisk.synthesis.draws.parameter_names import RENAME, Parameter, Spellings

# Columns that samplers and packages add to their draws. They are dropped where neither a parameter
# nor a column of the confidential data has that name; counters only where they count (1, 2, 3, …
# for R's X, whole numbers for the others).
BOOKKEEPING = (
    "lp__", "accept_stat__", "stepsize__", "treedepth__", "n_leapfrog__", "divergent__",
    "energy__", "log_p__", "log_g__",  # Stan
    "lprior", "log-posterior", "log.posterior", "mean_PPD",  # brms, rstanarm
    "deviance",  # JAGS
    ".chain", ".iteration", ".draw", "Unnamed: 0", "rownames",  # posterior, write.csv
    "chain__", "iter__", "draw__",  # CmdStanPy
)  # fmt: skip
# brms' draws from the prior
BOOKKEEPING_PATTERN = r"prior_(Intercept.*|b|b_.*|sigma.*|shape|nu|phi|hu|zi)"
BOOKKEEPING_COUNTERS = ("chain", "iteration", "draw", "CHAIN", "ITER", "X")  # CHAIN, ITER: coda
# Of these, the ones that tell a draw's chain, and its place there: the first that a table has.
CHAIN_COLUMNS = (".chain", "chain__", "chain", "CHAIN")
ORDER_COLUMNS = (".iteration", "iter__", "iteration", "ITER", ".draw", "draw__", "draw")
# Vectors with an element for each record, that models compute beside their parameters. They are
# dropped where they have as many elements; an effect of each record has none of these names.
BOOKKEEPING_BY_RECORD = (
    "mu", "eta", "log_lik", "y_hat", "yhat", "y_rep", "yrep", "y_pred", "ypred",
)  # fmt: skip
WEIGHT_COLUMNS = ("weight", ".weight")
_PRECISION = r"(tau|prec|precision)([._\[].*)?"  # what JAGS and BUGS have in place of sigma
LOG_WEIGHT_COLUMNS = ("log_weight", ".log_weight")
_OTHERS = (*BOOKKEEPING, *BOOKKEEPING_COUNTERS, *WEIGHT_COLUMNS, *LOG_WEIGHT_COLUMNS)


def read_draws(
    table: pd.DataFrame,
    family: Family,
    response: Variable,
    design: Design,
    rename: Mapping[str, str],
    n_records: int,
    data_columns: frozenset[str] = frozenset(),
    given: str = "",
) -> Posterior:
    """Return the posterior that `table` holds for a regression of `response` by `design`.

    Parameters
    ----------
    table
        A row a draw.
    family, response, design
        The regression.
    rename
        ``{column: parameter}``.
    n_records
        The number of confidential records, by which what there is for each of them is known.
    data_columns
        The columns of the confidential data: a column of draws with such a name may be a
        coefficient of another model, and is never dropped as bookkeeping.
    given
        What the draws are given, for messages, if not the confidential data.
    """
    what = f"Draws for {response.name!r}{given}"
    if not len(table):
        raise DrawsError(f"{what}: the table has no rows.")
    table = table.rename(columns=dict(rename))
    if not table.columns.is_unique:
        raise DrawsError(f"{what}: rename= gives two columns the same name.")
    table = family.from_elsewhere(table)
    spellings = Spellings(family, response, design, data_columns, _OTHERS)
    matched, left_over = spellings.match([str(name) for name in table.columns], what)
    weights = _take_weights(table, left_over, data_columns, what)
    dropped = [
        name
        for name in left_over
        if _is_bookkeeping(name, table, data_columns) or spellings.is_of_prior(name)
    ]
    by_record = _by_record(left_over, n_records)
    left_over = [name for name in left_over if name not in dropped and name not in by_record]
    levels = _levels_with_columns(matched, family, response, what)
    wanted = spellings.wanted(levels)
    missing = [parameter for parameter in wanted if parameter not in matched]
    if missing or left_over:
        raise DrawsError(_both_sides(what, missing, left_over, table, spellings, family))
    used = {parameter: table[matched[parameter]] for parameter in wanted}
    values = _numbers(used, spellings, what)
    posterior = _assemble(values, matched, weights, family, response, design)
    vectors = tuple(dict.fromkeys(by_record.values()))
    return replace(_by_chain(posterior, table[dropped]), left_out=vectors)


def _by_chain(posterior: Posterior, told: pd.DataFrame) -> Posterior:
    """Return the draws chain by chain, each in its own order, where columns tell the chains."""
    names = [name for name in CHAIN_COLUMNS if name in told.columns]
    if not names or told[names[0]].isna().any():
        return posterior
    chain = pd.factorize(told[names[0]])[0].astype(np.int64)
    place = np.arange(len(chain), dtype=np.float64)
    counts = [name for name in ORDER_COLUMNS if name in told.columns]
    if counts:
        numbers, _ = as_real_numbers(told[counts[0]])
        place = numbers if np.isfinite(numbers).all() else place
    order = np.lexsort((place, chain))
    return Posterior(
        posterior.coefficients[order],
        posterior.auxiliary[order],
        posterior.log_weights[order],
        posterior.names,
        posterior.sources,
        chain[order],
    )


def _is_bookkeeping(name: str, table: pd.DataFrame, data_columns: frozenset[str]) -> bool:
    if name in data_columns and name != "Unnamed: 0":
        return False
    if name in BOOKKEEPING or re.fullmatch(BOOKKEEPING_PATTERN, name):
        return True
    if name not in BOOKKEEPING_COUNTERS:
        return False
    numbers, _ = as_real_numbers(table[name])
    if name == "X":
        return bool(np.array_equal(numbers, np.arange(1, len(numbers) + 1)))
    return bool(np.all(numbers >= 0) and np.all(numbers == np.floor(numbers)))


def _by_record(names: Sequence[str], n_records: int) -> dict[str, str]:
    """Return the columns of vectors that have an element for each record, or more, by vector."""
    vectors: dict[str, set[str]] = {}
    for name in names:
        seen = re.fullmatch(r"(\w+?)(?:\[.*\]|(?:\.\d+)+\.?)", name)
        if seen and seen[1] in BOOKKEEPING_BY_RECORD:
            vectors.setdefault(seen[1], set()).add(name)
    return {
        name: vector
        for vector, columns in vectors.items()
        if len(columns) >= n_records
        for name in columns
    }


def _levels_with_columns(
    matched: Mapping[Parameter, str], family: Family, response: Variable, what: str
) -> list[int]:
    """Return the codes whose coefficients are wanted: all but the reference, which has none."""
    if not family.predictor_levels(response) or not isinstance(response, Factor):
        return [0]
    present = sorted({p.code for p in matched if p.code >= 0})
    if len(present) == len(response.levels):
        raise DrawsError(
            f"{what}: every one of the {len(present)} levels has coefficients; one must be the "
            "reference, without columns."
        )
    if len(present) == len(response.levels) - 1:
        return present
    return list(range(1, len(response.levels)))  # several lack theirs: say so against the first


def _take_weights(
    table: pd.DataFrame, left_over: list[str], data_columns: frozenset[str], what: str
) -> FloatArray:
    """Return the draws' log weights, and take their column out of `left_over`."""
    found = [name for name in left_over if name in WEIGHT_COLUMNS + LOG_WEIGHT_COLUMNS]
    if not found:
        return np.full(len(table), -np.log(len(table)))
    if len(found) > 1:
        raise DrawsError(f"{what}: more than one column of weights: {listed(found)}.")
    left_over.remove(found[0])
    values = _column(table[found[0]], lambda: f"{what}, column {found[0]!r}")
    if found[0] in data_columns and abs(values.sum() - 1.0) > 1e-6:
        raise DrawsError(
            f"{what}: {found[0]!r} may weigh the draws or be a coefficient, as the confidential "
            "data have such a column. Call it '.weight' if it weighs the draws, else leave it out."
        )
    if found[0] in WEIGHT_COLUMNS:
        n_negative = int((values < 0).sum())
        if n_negative:
            raise DrawsError(f"{what}: {counted(n_negative, 'weight is', 'weights are')} negative.")
        with np.errstate(divide="ignore"):
            values = np.log(values)
    if not np.isfinite(values.max()):
        raise DrawsError(f"{what}: the weights are all zero.")
    return np.asarray(values - logsumexp(values))


def _column(values: pd.Series[Any], where: Callable[[], str]) -> FloatArray:
    numbers, _ = as_real_numbers(values)
    n_bad = int((~np.isfinite(numbers)).sum())
    if n_bad:
        raise DrawsError(
            f"{where()}: {counted(n_bad, 'draw is', 'draws are')} not a finite number."
        )
    return numbers


def _numbers(
    used: Mapping[Parameter, pd.Series[Any]], spellings: Spellings, what: str
) -> dict[Parameter, FloatArray]:
    def where(parameter: Parameter) -> str:
        return f"{what}, column {spellings.column(str(used[parameter].name))}"

    values = {p: _column(column, partial(where, p)) for p, column in used.items()}
    for parameter, column in values.items():
        if parameter.code == -1 and (column <= 0).any():
            raise DrawsError(
                f"{where(parameter)}: "
                f"{counted(int((column <= 0).sum()), 'draw is', 'draws are')} not positive."
            )
    return values


def _assemble(
    values: Mapping[Parameter, FloatArray],
    matched: Mapping[Parameter, str],
    log_weights: FloatArray,
    family: Family,
    response: Variable,
    design: Design,
) -> Posterior:
    n_draws, n_columns = len(log_weights), len(design.columns)
    codes = family.predictor_levels(response)
    by_level = np.zeros((n_draws, n_columns, len(codes) + 1 if codes else 1))
    auxiliary = np.zeros((n_draws, len(family.auxiliary)))
    for parameter, column in values.items():
        if parameter.code == -1:
            auxiliary[:, parameter.column] = column
        else:
            by_level[:, parameter.column, parameter.code] = column
    if codes:  # whatever the reference was, make it the first level
        by_level = by_level[:, :, 1:] - by_level[:, :, :1]
    sources = [
        _source(matched, code, column, referenced=bool(codes))
        for code in codes or (0,)
        for column in range(n_columns)
    ]
    sources += [matched[Parameter(-1, k)] for k in range(len(family.auxiliary))]
    names = parameter_names(design, family, response)
    return Posterior(by_level, auxiliary, log_weights, names, tuple(sources))


def _source(matched: Mapping[Parameter, str], code: int, column: int, *, referenced: bool) -> str:
    """Return where a coefficient was read from, against the first level if there are levels."""
    own = matched.get(Parameter(code, column), "")
    first = matched.get(Parameter(0, column), "") if referenced else ""
    return f"{own} − {first}".strip() if first else own


def _both_sides(
    what: str,
    missing: Sequence[Parameter],
    left_over: Sequence[str],
    table: pd.DataFrame,
    spellings: Spellings,
    family: Family,
) -> str:
    lines = [f"{what} do not fit the formula."]
    if missing:
        lines.append(f"Missing: {spellings.public(missing)}.")
    if left_over:
        lines.append(f"Left over: {spellings.columns(left_over)}.")
    lines.append(f"The formula's parameters: {spellings.public(spellings.parameters())}.")
    lines.append(f"The table's columns: {spellings.columns(table.columns, 30)}.")
    advice = _advice([spellings.name(one) for one in missing], left_over, table, family)
    if advice:
        return " ".join([*lines, advice])
    lines.append(f"Use {RENAME} for other names.")
    if "[" in spellings.public(missing):
        lines.append(
            "If a factor's reference level differs, put it first in "
            f"{either('types={variable: [levels]}', '[data] types.variable = [levels]')}."
        )
    return " ".join(lines)


def _advice(
    missing: Sequence[str], left_over: Sequence[str], table: pd.DataFrame, family: Family
) -> str | None:
    """Return what to do where the columns tell what went wrong; other names would hide it."""
    number = next((name for name in missing if _is_factor_there(name, left_over)), None)
    if number is not None:
        return (
            f"The fit took {number} for a factor, and here it is a number: write "
            f"as.factor({number}) in the formula if the fit had it so, or use "
            f"{setting('types', 'category', of=number)}."
        )
    if left_over and all(re.fullmatch(r"b_mu.+_.+", column) for column in left_over):
        meant = either("family='categorical'", 'family = "categorical"')
        return (
            f"The columns are those of a model with a predictor for each level: is {meant} meant?"
        )
    precision = next((name for name in left_over if re.fullmatch(_PRECISION, name)), None)
    if "sigma" in missing and precision is not None:
        return (
            f"{precision} is a precision in JAGS and BUGS, 1/sigma²: under the name of sigma it "
            "would be read as a standard deviation. Monitor sigma <- "
            f"1/sqrt({precision}), or give the draws a column sigma of that, and leave "
            f"{precision} out."
        )
    if list(missing) == ["sigma"] and not left_over:
        meant = either("family='poisson'", 'family = "poisson"')
        return (
            f"A {family.name} model has sigma, and these draws have none: is another family "
            f"meant, such as {meant} or bernoulli?"
        )
    if family.makes_factor and _are_probabilities(table[list(left_over)]):
        return (
            "The columns hold probabilities, which sum to one in every row. Give draws of the "
            "coefficients: of those the probabilities follow for every guess."
        )
    return None


def _is_factor_there(name: str, left_over: Sequence[str]) -> bool:
    """Tell whether columns that are left over are those of levels of the number `name`."""
    if ":" in name or "[" in name:  # of a level, whose name is not for messages
        return False
    of_level = rf"(b_)?((as\.)?factor\()?{re.escape(name)}\)?[^:*()]+"
    return any(re.fullmatch(of_level, column) for column in left_over)


def _are_probabilities(table: pd.DataFrame) -> bool:
    if table.shape[1] < 2:
        return False
    values = np.column_stack([as_real_numbers(table[name])[0] for name in table.columns])
    return bool((values >= 0).all() and np.allclose(values.sum(axis=1), 1.0, atol=1e-6))


def split_rename(
    rename: Mapping[str, Any] | None, responses: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the renaming of each response's table: one for all, or one by response."""
    if rename is not None and not isinstance(rename, Mapping):
        raise OptionError(f"rename= is {{column: parameter}}; got {type(rename).__name__}.")
    rename = dict(rename or {})
    nested = {key: value for key, value in rename.items() if isinstance(value, Mapping)}
    if not nested:
        return dict.fromkeys(responses, rename)
    if len(nested) < len(rename) or not set(nested) <= set(responses):
        raise OptionError(
            "rename= is either {column: parameter} for all tables, or "
            "{response: {column: parameter}}; responses are " + listed(responses) + "."
        )
    return {response: dict(nested.get(response, {})) for response in responses}
