"""Regressions with group-level terms, fitted by Bambi: its priors, its sampler, its draws.

The models that are fitted here have coefficients with known priors; the spread of group-level ones
is itself a parameter. Bambi is imported when such a model is fitted.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from synrisk.base.arrays import IntArray
from synrisk.base.errors import DataError, FitError, FormulaError, OptionError, listed
from synrisk.base.messages import either, place_of, setting
from synrisk.base.seeds import stream
from synrisk.data.schema import Factor, label_key
from synrisk.models.design import Design
from synrisk.models.formula import expressions
from synrisk.models.formula.expressions import Term
from synrisk.models.plan import Regression
from synrisk.models.posterior import Posterior
from synrisk.models.priors import PriorSpec
from synrisk.synthesis.confidential import Confidential
from synrisk.synthesis.draws import bambi
from synrisk.synthesis.draws.draw_tables import read_draws

# What Bambi calls the family, and the link where its default is another.
_FAMILIES: dict[str, tuple[str, str | None]] = {
    "gaussian": ("gaussian", None),
    "lognormal": ("gaussian", None),
    "student_t": ("t", None),
    "gamma": ("gamma", "log"),
    "beta": ("beta", None),
    "bernoulli": ("bernoulli", None),
    "categorical": ("categorical", None),
    "poisson": ("poisson", None),
    "negative_binomial": ("negativebinomial", None),
}
_CHAINS, _TUNING = 4, 1000
_LEAST_DRAWS = 500  # of a chain: the spread of a few groups mixes slowly
_TARGET = 0.95  # of accepted proposals: small groups bend the posterior
_LARGEST_RHAT, _MOST_DIVERGENT = 1.05, 0.01
_FROM_DRAWS = either("Synthesizer.from_draws", '[[model]] draws = "draws.csv"')


def refuse_unfit(regression: Regression, prior: PriorSpec, engine: str) -> None:
    """Raise where a regression with group-level terms cannot be fitted as was asked."""
    title = f"{regression.title} has group-level terms, which"
    if engine != "nuts":
        raise OptionError(
            f"{title} are fitted by Bambi alone: {setting('engine', 'nuts')} (it needs the extra "
            f"'bambi'). Or give draws of brms, rstanarm or Bambi: {_FROM_DRAWS}.",
            about=place_of("engine"),
        )
    if prior != "default":
        raise OptionError(
            f"{title} are fitted under Bambi's own default priors; for others give draws: "
            f"{_FROM_DRAWS}."
        )
    if regression.weights is not None:
        raise OptionError(
            f"{title} are fitted without weights; for weights give draws: {_FROM_DRAWS}."
        )
    if regression.distribution.name not in _FAMILIES:
        raise OptionError(
            f"{title} are fitted by Bambi, for the families {listed(_FAMILIES)}; got "
            f"{regression.distribution.name}. For others give draws: {_FROM_DRAWS}."
        )


def fit_by_bambi(
    confidential: Confidential, regression: Regression, design: Design, n_draws: int, seed: int
) -> Posterior:
    """Fit a regression with group-level terms, and return its draws by chain.

    Parameters
    ----------
    confidential, regression, design
        The model.
    n_draws
        Of all four chains together.
    seed
        A whole number from 0.
    """
    package = _bambi()
    name, link = _FAMILIES[regression.distribution.name]
    what = f"Formula {regression.formula!r}"
    own = int(stream(seed, "group-level fit", variable=regression.response).integers(2**31))
    per_chain = max(-(-n_draws // _CHAINS), _LEAST_DRAWS)
    model, fit = None, None
    with warnings.catch_warnings(), _silent("pymc"):
        warnings.simplefilter("ignore")  # of the sampler: what it warns of is judged below
        with contextlib.suppress(Exception):  # not chained: its message may hold values
            model = package.Model(
                _formula(regression), _frame(confidential, regression), family=name, link=link
            )
            fit = model.fit(
                draws=per_chain, tune=_TUNING, chains=_CHAINS, cores=1, random_seed=own,
                target_accept=_TARGET, progressbar=False,
            )  # fmt: skip
    if model is None or fit is None:
        raise FormulaError(
            f"{what}: Bambi could not fit it. Fit it there by hand to see why, and give the draws: "
            f"{either('Synthesizer.from_bambi', _FROM_DRAWS)}."
        )
    _judge(fit, what)
    theirs, table = bambi.design_and_draws(model, fit, regression.distribution, what)
    table = table[_spread(per_chain, n_draws)[table[".iteration"] - 1, table[".chain"] - 1]]
    posterior = read_draws(
        table.reset_index(drop=True),
        regression.distribution,
        confidential.schema.variables[regression.response],
        design,
        {},
        confidential.n_records,
        frozenset(confidential.data.columns),
    )
    matrix = design.matrix(
        confidential.columns, confidential.n_records, "The confidential data", DataError
    )
    sources = [one.removeprefix("− ").split(" − ")[0] for one in posterior.sources]
    bambi.check_design(theirs, matrix, sources[: matrix.shape[1]], what)
    return posterior


@contextlib.contextmanager
def _silent(logger: str) -> Iterator[None]:
    """Keep what a package logs of its progress from being printed."""
    own = logging.getLogger(logger)
    before = own.level
    own.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        own.setLevel(before)


def _spread(per_chain: int, n_draws: int) -> Any:
    """Return which draws are kept, ``(draw, chain)``: `n_draws`, evenly spread over the chains."""
    kept = np.zeros((per_chain, _CHAINS), dtype=bool)
    for chain in range(_CHAINS):
        n = n_draws // _CHAINS + (chain < n_draws % _CHAINS)
        places: IntArray = np.arange(n) * per_chain // max(n, 1)
        kept[places, chain] = True
    return kept


def _judge(fit: Any, what: str) -> None:
    """Raise where the chains do not agree, or diverged."""
    from arviz_stats.base import array_stats

    divergent = float(fit["sample_stats"]["diverging"].to_numpy().mean())
    largest = 0.0
    for values in fit["posterior"].data_vars.values():
        by_chain = values.transpose("chain", "draw", ...).to_numpy()
        flat = by_chain.reshape(*by_chain.shape[:2], -1)
        largest = max([largest, *(float(array_stats.rhat(one)) for one in np.moveaxis(flat, 2, 0))])
    if not (largest <= _LARGEST_RHAT and divergent <= _MOST_DIVERGENT):
        raise FitError(
            f"{what}: the chains cannot be relied on (R̂ up to {largest:.2f}, {divergent:.1%} of "
            "the draws diverged). Ask for more draws, leave terms out, or merge small groups."
        )


def _formula(regression: Regression) -> str:
    """Write the formula as Bambi reads it; the response is on the model's scale already."""
    parsed = regression.parsed
    terms = ["1" if parsed.intercept else "0", *map(_written, parsed.terms)]
    for group in parsed.groups:
        inside = ["1" if group.intercept else "0", *map(_written, group.terms)]
        terms.append(f"({' + '.join(inside)} | {_quoted(group.grouping)})")
    return f"{_quoted(parsed.response)} ~ {' + '.join(terms)}"


def _written(term: Term) -> str:
    return ":".join(expressions.write(factor, column=_quoted) for factor in term)


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _frame(confidential: Confidential, regression: Regression) -> pd.DataFrame:
    """Return what Bambi sees: numbers, and categories in the order of their levels."""
    groupings = {group.grouping for group in regression.parsed.groups}
    response, family = regression.response, regression.distribution
    columns: dict[str, Any] = {}
    for name in (response, *regression.parsed.predictors):
        variable, values = confidential.schema.variables[name], confidential.columns[name]
        if name == response and not family.makes_factor:
            on_scale = regression.on_model_scale(values)
            columns[name] = on_scale if family.is_continuous else on_scale.astype(np.int64)
        elif isinstance(variable, Factor):
            labels = np.array([str(level) for level in variable.levels], dtype=object)
            found = pd.Categorical(labels[values], categories=list(labels))
            columns[name] = found.remove_unused_categories() if name in groupings else found
        elif name in groupings:
            columns[name] = pd.Categorical([label_key(value) for value in values])
        else:
            columns[name] = values
    return pd.DataFrame(columns)


def _bambi() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import bambi as package
    except ImportError:
        raise OptionError(
            "Group-level terms are fitted by Bambi; install it with pip install 'synrisk[bambi]'."
        ) from None
    return package
