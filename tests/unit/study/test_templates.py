"""Study files with a suggested plan: every kind of table begins with a study that is read."""

import re
import tomllib

import numpy as np
import pandas as pd
import pytest
from helpers.studies import synrisk, table

import synrisk as sr
from synrisk.models.formula.parser import parse
from synrisk.study.templates import suggested_text

RNG = np.random.default_rng(0)
N = 80
COLUMNS = {
    "money": np.exp(RNG.normal(10, 2, N)),
    "height": RNG.normal(170, 9, N),
    "kids": RNG.poisson(1.2, N),
    "owner": RNG.integers(0, 2, N),
    "flag": RNG.random(N) < 0.5,
    "region": RNG.choice(["north", "south"], N),
    "name": [f"person {i}" for i in range(N)],
    "person_id": np.arange(N) + 100,
    "fixed": np.ones(N),
    "when": pd.date_range("2020-01-01", periods=N),
    "odd name": RNG.normal(size=N),
    "lists": [[1, 2]] * N,
}


def text_of(frame, data="people.csv"):
    return suggested_text("study.toml", data, sr.suggest_plan(frame))


def suggested(*names, **others):
    frame = pd.DataFrame({**{name: COLUMNS[name] for name in names}, **others})
    return tomllib.loads(text_of(frame))


def models(study):
    return [(one["formula"], one["family"]) for one in study["model"]]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("height",), [("height ~ 1", "gaussian")]),
        (("money",), [("money ~ 1", "lognormal")]),
        (("kids",), [("kids ~ 1", "poisson")]),
        (("owner",), [("owner ~ 1", "bernoulli")]),
        (("flag",), [("flag ~ 1", "bernoulli")]),
        (("region", "fixed"), [("region ~ 1", "bernoulli")]),
        (("height", "when", "lists"), [("height ~ 1", "gaussian")]),
        (("odd name",), [("`odd name` ~ 1", "gaussian")]),
    ],
)
def test_models_suit_the_columns(names, expected):
    assert models(suggested(*names)) == expected


def test_a_column_with_an_infinite_value_is_a_number_all_the_same():
    height = np.where(np.arange(N) == 3, np.inf, COLUMNS["height"])
    study = suggested("money", "kids", height=height)
    assert "height ~ " in " ".join(formula for formula, _ in models(study))


def test_ids_texts_and_twins_are_left_out():
    study = suggested("person_id", "name", "money", "height", log_money=np.log(COLUMNS["money"]))
    assert study["data"]["id"] == "person_id"
    assert study["data"]["drop"] == ["name", "log_money"]
    study = suggested("height", minus=-COLUMNS["height"])
    assert study["data"]["drop"] == ["minus"]


def test_names_and_paths_with_quotes_are_toml():
    frame = pd.DataFrame({"height": COLUMNS["height"], 'a "b" \\c': COLUMNS["name"]})
    study = tomllib.loads(text_of(frame, 'my "people" \\x.csv'))
    assert study["data"]["file"] == 'my "people" \\x.csv'
    assert study["data"]["drop"] == ['a "b" \\c']


@pytest.mark.parametrize(
    "name",
    ["annual income", "my var (x)", "$cost$", "💶", 'a "b" \\c', "two\nlines", "1st", "class"],
)
def test_names_that_are_no_identifiers_are_modelled(name):
    frame = pd.DataFrame({name: COLUMNS["money"]})
    text = text_of(frame)
    (formula,) = (one["formula"] for one in tomllib.loads(text)["model"])
    assert parse(formula).response == name
    # The commented choices are TOML too.
    found = re.search(r"^# (tolerance\..*)$", text, re.MULTILINE)
    assert list(tomllib.loads(found[1])["tolerance"]) == [name]


def test_names_that_no_formula_can_write_are_named():
    frame = pd.DataFrame({"height": COLUMNS["height"], "a`b\n": COLUMNS["money"]})
    text = text_of(frame)
    assert models(tomllib.loads(text)) == [("height ~ 1", "gaussian")]
    assert r"# a`b\n, left out: a formula cannot write its name; rename it." in text


def test_a_table_without_anything_to_model_is_refused():
    with pytest.raises(sr.DataError, match="No column looks as if it could be modelled"):
        suggested("name", "fixed")


def test_comments_and_keys_hold_no_character_that_acts_on_a_terminal():
    odd = "\x1b[2J\x9b\u202e"
    frame = pd.DataFrame({f"height{odd}": COLUMNS["height"], f"rest{odd}": COLUMNS["name"]})
    text = text_of(frame)
    assert not set(odd[:1] + odd[4:]) & set(text)
    assert f"height{odd}" in tomllib.loads(text)["model"][0]["formula"]


def test_a_template_is_made_where_cells_hold_lists(tmp_path):
    """pandas compares a list with infinity, and fails."""
    data = table(30).assign(Extra=[[0.0] * (1 + k % 3) for k in range(30)])
    data.to_parquet(tmp_path / "people.parquet")
    told = synrisk("init", tmp_path / "made", "--data", tmp_path / "people.parquet")
    assert told.exit_code in (0, 2), told.output
