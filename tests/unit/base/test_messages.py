"""Settings in messages: as Python has them at a prompt, as the study file has them in a study."""

import copy

import pytest

import synrisk as sr
from synrisk.base.messages import either, in_python, in_study, place_of, setting


@pytest.mark.parametrize(
    ("marked", "python", "study"),
    [
        (setting("missing", "drop"), "missing='drop'", '[data] missing = "drop"'),
        (setting("n_draws"), "n_draws=", "risk.n_draws"),
        (setting("intruder_prior", "model"), "intruder_prior='model'", '[risk] prior = "model"'),
        (
            setting("types", "category", of="Zip code"),
            "types={'Zip code': 'category'}",
            '[data] types."Zip code" = "category"',
        ),
        (setting("types", of="Zip"), "types['Zip']", "data.types.Zip"),
        (setting("guesses", 5, of="x"), "guesses={'x': 5}", "[risk] guesses.x = 5"),
        (
            setting("rename", of="b_x", shown="parameter"),
            "rename={'b_x': parameter}",
            "[[model]] rename.b_x = parameter",
        ),
        (either("None leaves", "inf leaves"), "None leaves", "inf leaves"),
        (
            setting("types", 1, of="\x02a\x1fb\x03"),
            r"types={'\x02a\x1fb\x03': 1}",
            r'[data] types."\u0002a\u001fb\u0003" = 1',
        ),
    ],
)
def test_both_spellings(marked, python, study):
    text = f"Use {marked}, or {marked}."
    assert in_python(text) == f"Use {python}, or {python}."
    assert in_study(text) == f"Use {study}, or {study}."


def test_errors_show_python_and_keep_the_study_spelling():
    error = sr.DataError(f"Use {setting('missing', 'drop')}.", about=place_of("types", "x"))
    for one in (error, copy.copy(error)):
        assert str(one) == "Use missing='drop'."
        assert one.in_study() == 'Use [data] missing = "drop".'
        assert one.about == ("data", "types", "x")


def test_a_name_of_the_data_that_looks_marked_is_shown():
    assert str(sr.DataError("There is no column \x02x\x03.")) == r"There is no column \x02x\x03."
