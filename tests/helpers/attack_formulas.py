"""Formulas that nobody expects: valid ones of every kind, and valid ones with words changed.

What the parser refuses attacks the parser alone, so most are valid: terms, transforms, splines,
interactions and parentheses at random, over columns whose names are hard to read.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr
from helpers.attack_cases import Case
from helpers.mutations import any_of
from helpers.secret import SECRET

_WORDS = (
    "Income", "Spending", "Kids", "Owner", "Region", "CaseID", "1", "0", "-1", "2", "1e9", "+", "-",
    "*", ":", "/",
    "^", "**", "(", ")", "~", ",", " ", "log", "exp", "I", "bs", "poly", "scale", "center", "C",
    "sqrt", "as.factor",
    "factor", "offset", "lag", "bf", "np.", "__import__", "open", "'os'", "df=", "=", "[", "]", "{",
    "}", "`", '"', ".",
    "|", "%in%", "!", "&", "<", ">", "==", "if", "else", "lambda", "x", "\n", "\x00", "é", "🎲",
    "\ud800", "#", ";", "@",
    "Q", "degree=3", "100000", "nan", "inf", "True", "None", "ifelse", "round", "abs", "pmax",
    "cut", "ns", "s", "te",
)  # fmt: skip
# Names that a formula holds as they are, and names that it holds in backquotes.
_PLAIN = ("é", "𝐱", "x.y", "_x", "ſ", "변수", "T", "TRUE", "I", "np", "C", "bs", "Intercept", "c")
_QUOTED = (
    "x y", "x~y", "1", "a[T.b]", "log(x)", "x:y", "{x}", "<b>", "=1+1", "\u202egnirts", "a" * 300,
    "__import__('os')", "\x1b[2J", "(Intercept)", "sigma", "-1", "x\ny", "🎲", "I(x)", "$x$",
    "Spending ",
)  # fmt: skip
_FURTHER = ("Age", "Hours", "Rent", "Miles", "Years")  # columns that have nothing to do with others
_RESPONSES = {
    "gaussian": (
        "Income", "Income", "log(Income)", "sqrt(Income)", "log1p(Income)", "log2(Income)",
        "log10(Income / 1e3)", "I(Income / 1000)", "Income * 1e-300", "(Income - 2e4) * 1e6",
        "-Income", "log(log(Income))", "1e5 - Income", "Income + 1e300", "`Income`", "((Income))",
    ),
    "poisson": ("Kids", "(Kids)", "`Kids`"),
    "bernoulli": ("Owner",),
    "categorical": ("C(Region)", "Kids", "C(Kids)", "as.factor(Owner)", "Owner"),
}  # fmt: skip
_FACTORS = ("Region", "C(Region)", "factor(Region)", "C(Group)", "as.factor(Group)")
_NUMBERS = (
    "1", "2", "0.5", "1000", "31000", "1e3", "1e-3", "1e5", "3", "0", "1e30", "1e-30", "1e200",
    "1e308",
)  # fmt: skip


def _number(rng: np.random.Generator) -> str:
    return any_of(_NUMBERS[:9] if rng.random() < 0.9 else _NUMBERS, rng)


def _arithmetic(numeric: tuple[str, ...], rng: np.random.Generator, depth: int = 0) -> str:
    """Return an expression of numbers and columns."""
    kind = int(rng.integers(8)) if depth < 4 else 0
    if kind <= 1:
        return any_of(numeric, rng)
    inner = _arithmetic(numeric, rng, depth + 1)
    if kind == 2:
        return f"{inner} {any_of(('+', '-', '*', '/'), rng)} {_number(rng)}"
    if kind == 3:
        return f"{_number(rng)} {any_of(('+', '-', '*'), rng)} ({inner})"
    if kind == 4:
        return f"({inner}) {any_of(('^', '**'), rng)} {any_of(('2', '3', '0.5', '-1', '0'), rng)}"
    if kind == 5:
        return (
            f"({inner} {any_of(('+', '-', '*', '/'), rng)} {_arithmetic(numeric, rng, depth + 1)})"
        )
    if kind == 6:
        return f"{any_of(('log', 'log1p', 'sqrt', 'abs', 'log2', 'log10'), rng)}({inner})"
    return f"{any_of(('-', '', '+'), rng)}({inner})"


def _factor(numeric: tuple[str, ...], rng: np.random.Generator) -> str:
    """Return one factor of a term."""
    column, kind = any_of(numeric, rng), int(rng.integers(12))
    if kind <= 3:
        return column
    if kind == 4:
        return any_of(_FACTORS, rng)
    if kind == 5:
        return f"{any_of(('scale', 'center'), rng)}({column})"
    if kind == 6:
        more = any_of(("", ", raw=TRUE", ", raw=False"), rng)
        return f"poly({column}, {any_of(('1', '2', '2', '3', '3', '5', '20'), rng)}{more})"
    if kind == 7:
        inside = any_of(
            (
                "df=4", "df=5", "df=6", "knots=c(30000)", "knots=[28000, 31000]", "5", "df=30",
                "df=5, intercept=TRUE", "df=6, Boundary.knots=c(0, 1e5)", "df=3, degree=2",
                "degree=1", "df=200", "knots=c(-1e9, 1e9)",
                "lower_bound=0, upper_bound=90000, df=4",
            ),
            rng,
        )  # fmt: skip
        return f"bs({column}, {inside})"
    if kind == 8:
        return f"{any_of(('log', 'log1p', 'sqrt', 'abs', 'exp', 'expm1'), rng)}({column})"
    return f"I({_arithmetic(numeric, rng)})"


def _terms(numeric: tuple[str, ...], rng: np.random.Generator, depth: int = 0) -> str:
    """Return a sum of terms."""
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        kind = int(rng.integers(9)) if depth < 3 else 0
        left = _factor(numeric, rng)
        if kind <= 3:
            parts.append(left)
        elif kind <= 5:
            parts.append(f"{left}{any_of((':', '*', '/', ' : '), rng)}{_factor(numeric, rng)}")
        elif kind == 6:
            parts.append(
                f"({_terms(numeric, rng, depth + 1)})^{any_of(('2', '2', '2', '3', '9'), rng)}"
            )
        elif kind == 7:
            around = int(any_of((1, 1, 1, 2, 10, 34), rng))
            parts.append("(" * around + _terms(numeric, rng, depth + 1) + ")" * around)
        else:
            parts.append(any_of(("1", "1", "0"), rng) if depth == 0 and parts else left)
    joined = parts[0]
    for part in parts[1:]:
        joined += any_of((" + ", " + ", "+", " - ", "\n + "), rng) + part
    return joined + (
        any_of((" - 1", " + 0", " - Region", " + 1"), rng) if rng.random() < 0.15 else ""
    )


def valid(rng: np.random.Generator) -> tuple[str, str, dict[str, str]]:
    """Return a formula, its family, and what columns are renamed for it."""
    family = any_of(("gaussian", "gaussian", "poisson", "bernoulli", "categorical"), rng)
    response = any_of(_RESPONSES[family], rng)
    renamed = {}
    written = {name: name for name in ("Spending", "Income", *_FURTHER)}
    if rng.random() < 0.3:
        name = any_of(("Spending", *_FURTHER), rng)
        quoted = rng.random() < 0.6
        other = any_of(_QUOTED if quoted else _PLAIN, rng)
        renamed = {name: other}
        written[name] = f"`{other}`" if quoted else other
    own = re.sub(r"\W", "", response)
    numeric = tuple(v for name, v in written.items() if name not in own)
    return f"{response} ~ {_terms(numeric, rng)}", family, renamed


def _changed(formula: str, rng: np.random.Generator) -> str:
    """Return a formula with one to three of its words changed, put in or repeated."""
    words = re.findall(r"\w+|\W", formula)
    for _ in range(int(rng.integers(1, 4))):
        at, kind = int(rng.integers(len(words))), int(rng.integers(4))
        if kind == 0:
            words[at] = any_of(_WORDS, rng)
        elif kind == 1:
            words.insert(at, any_of(_WORDS, rng))
        elif kind == 2:
            words[at] *= int(any_of((0, 2, 50, 2_000), rng))
        else:
            words[at:at] = words[int(rng.integers(len(words))) :][:8]
    return "".join(words)


def make(case: Case) -> tuple[str, str, pd.DataFrame, dict[str, Any]]:
    """Return a formula, a family, records and options of a fit."""
    rng = case.rng
    formula, family, renamed = valid(rng)
    if rng.random() < 0.2:
        formula = _changed(formula, rng)
    elif rng.random() < 0.06:
        words = [any_of(_WORDS, rng) for _ in range(int(rng.integers(1, 12)))]
        formula = any_of(("Income ~ ", "", "Kids ~ Income + "), rng) + "".join(words)
    if rng.random() < 0.05:
        family = any_of(("gaussian", "poisson", "bernoulli", "categorical", "binom", "x", ""), rng)
    data = case.good["data"].assign(Group=lambda frame: np.arange(len(frame)) % 3)
    columns = np.random.default_rng(2).gamma(4.0, 2.0, (len(_FURTHER), len(data)))
    data = data.assign(**dict(zip(_FURTHER, columns, strict=True))).rename(columns=renamed)
    if rng.random() < 0.1:
        data = data.iloc[: int(rng.integers(1, 12))]
    options = {"engine": "laplace"} if rng.random() < 0.1 else {}
    return formula, family, data, options


def give(case: Case, made: tuple[str, str, pd.DataFrame, dict[str, Any]]) -> None:
    """Fit the formula, and often all that comes after it."""
    formula, family, data, options = made
    regression = sr.Regression(formula, family)
    repr(regression)
    fitted = sr.fit(regression, data, n_draws=10, id="CaseID", seed=SECRET, **options)
    fitted.describe()
    if case.rng.random() < 0.4:
        release = fitted.synthesize(1, seed=SECRET)
        if case.rng.random() < 0.5:
            risk = sr.attribute_risk(
                fitted, release, question="paper", guesses=3, diagnostics=False
            )
            case.said += [repr(risk), *risk.notes]
            risk.summary()
    if case.rng.random() < 0.1:
        fitted.save(case.folder / "fitted.nc")
        sr.Synthesizer.load(case.folder / "fitted.nc").describe()
