"""Columns that may name people: ids, names, free text, values that nearly everybody alone has.

A column that no model makes and no formula uses is released as it is, or not at all. These are not,
unless they were declared (``release=``).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from synrisk.data.schema import as_real_numbers

# The share of different values from which a column names most records; measurements of two digits
# among some hundred records have about as many.
_NEARLY_ALL = 0.8
# That of a column that is called like an id or a name: households, families and common names have
# several records, hospitals and schools many.
_OF_A_NAME = 0.1
_LEAST_VALUES = 3  # two different values are a level each, however few the records
_WORDS_OF_TEXT = 4  # on average; names of occupations and regions have fewer
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NAMES = frozenset(
    (
        "id",
        "ids",
        "uid",
        "uuid",
        "key",
        "case",
        "number",
        "nr",
        "no",
        "code",
        "name",
        "names",
        "surname",
        "firstname",
        "lastname",
        "forename",
        "fullname",
        "username",
        "email",
        "mail",
        "phone",
        "telephone",
        "mobile",
        "fax",
        "address",
        "street",
        "ssn",
        "nin",
        "passport",
        "iban",
        "account",
        "licence",
        "license",
        "plate",
        "birthdate",
        "dob",
        "birthday",
        "birth",
        "url",
        "ip",
    )
)


def identifies(column: pd.Series[Any]) -> bool:
    """Tell whether a column may name the people of a table, by its name and its values."""
    known = _hashable(column.dropna())
    n_known, n_different = len(known), int(known.nunique())
    if n_different < _LEAST_VALUES:
        return False
    if n_different >= _NEARLY_ALL * n_known:
        return True
    called = _called_like_an_id(str(column.name)) or _is_free_text(known)
    return called and n_different >= _OF_A_NAME * n_known


def is_row_counter(column: pd.Series[Any]) -> bool:
    """Tell whether a column counts the rows, which says no more than their order."""
    numbers, n_text = as_real_numbers(column)
    return not n_text and len(numbers) > 1 and bool((np.diff(numbers) == 1).all())


def names_people(column: pd.Series[Any]) -> bool:
    """Tell whether a column can only be there to name people: numbers alone are measurements.

    Text that nearly everybody alone has, a counter of rows, and whole numbers that all differ in a
    column that is called like an id.
    """
    kinds = pd.api.types
    if not kinds.is_numeric_dtype(column.dtype) or kinds.is_bool_dtype(column.dtype):
        if isinstance(column.dtype, pd.CategoricalDtype) or not identifies(column):
            return False
        known = column.dropna()
        are_numbers = 2 * as_real_numbers(known)[1] < len(known)  # of which some may be misspelt
        return not are_numbers or _called_like_an_id(str(column.name))
    numbers = as_real_numbers(column.dropna())[0]
    if len(numbers) < _LEAST_VALUES or not (numbers == np.rint(numbers)).all():
        return False
    n_different = len(np.unique(numbers))
    if n_different == len(numbers) and is_row_counter(column):
        return True
    return n_different >= _NEARLY_ALL * len(numbers) and _called_like_an_id(str(column.name))


def _hashable(known: pd.Series[Any]) -> pd.Series[Any]:
    if known.dtype != object:
        return known
    return known.map(lambda value: value if isinstance(value, str | int | float) else str(value))


def _called_like_an_id(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return any(word in _NAMES for word in (*words, "".join(words)))


def _is_free_text(known: pd.Series[Any]) -> bool:
    kinds = pd.api.types
    dtype = known.dtype
    if isinstance(dtype, pd.CategoricalDtype) or not (
        kinds.is_string_dtype(dtype) or kinds.is_object_dtype(dtype)
    ):
        return False
    return float(known.astype(str).str.count(r"\S+").mean()) >= _WORDS_OF_TEXT
