"""Plausible mistakes of a new user with two files: each has one clear message, without values."""

import traceback
from functools import cache

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

N = 60


def real():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "CaseID": rng.permutation(N) + 810_000,
            "Income": rng.normal(52_000.0, 9_000.0, N),
            "Spending": rng.normal(31_000.0, 4_000.0, N),
            "Kids": rng.poisson(1.2, N),
            "Region": rng.choice(["Quovadis", "Ramsgate", "Zyxwville"], N),
        }
    )


def fake(**changes):
    rng = np.random.default_rng(1)
    data = real().assign(
        Income=rng.normal(52_000.0, 9_000.0, N),
        Spending=rng.normal(31_000.0, 4_000.0, N),
        Kids=rng.poisson(1.2, N),
        Region=rng.choice(["Quovadis", "Ramsgate", "Zyxwville"], N),
    )
    return data.drop(columns="CaseID").assign(**changes)


def audit(confidential=None, synthetic=None, **options):
    confidential = real() if confidential is None else confidential
    synthetic = fake() if synthetic is None else synthetic
    return sr.audit(confidential, synthetic, **{"seed": 1, **options})


@cache
def audited():
    return audit()


def written(folder, *names):
    for name in names:
        (real() if "real" in name else fake()).to_csv(folder / name, index=False)
    return [folder / name for name in names]


def dates():
    return pd.date_range("1987-06-05", periods=N)


MISTAKES = {
    "the same file twice": (
        lambda _: audit(synthetic=real()),
        "the release holds the confidential data's own names",
    ),
    "the same file twice, without its ids": (
        lambda _: audit(real().drop(columns="CaseID"), real().drop(columns="CaseID")),
        "is it the same file?",
    ),
    "the same file shuffled": (
        lambda _: audit(
            real().drop(columns="CaseID"),
            real().drop(columns="CaseID").sample(frac=1.0, random_state=1),
        ),
        "is it the same file?",
    ),
    "one path twice": (
        lambda folder: sr.audit(*(written(folder, "real.csv") * 2)),
        "real.csv is given as the confidential data and as the synthetic data",
    ),
    "files in each other's place": (
        lambda folder: sr.audit(*written(folder, "fake.csv", "real.csv")),
        "are they in each other's place?",
    ),
    "frames in each other's place": (
        lambda _: sr.audit(fake(), real()),
        "are the files in each other's place?",
    ),
    "a release of few rows": (lambda _: audit(synthetic=fake().iloc[:5]), "at least 20 are needed"),
    "one column twice": (
        lambda _: audit(synthetic=fake().set_axis(["Income", "Income", "Kids", "Region"], axis=1)),
        "more than one column is called Income",
    ),
    "a file without names of columns": (
        lambda _: audit(synthetic=fake().set_axis(range(4), axis=1)),
        "have no column in common",
    ),
    "the text of a file": (
        lambda _: audit(synthetic="Income,Kids\n1,2\n"),
        "The text of a table is not taken",
    ),
    "decimal commas": (
        lambda _: audit(
            synthetic=fake(Income=fake()["Income"].map("{:.2f}".format).str.replace(".", ","))
        ),
        "column 'Income' should hold numbers",
    ),
    "codes in the place of labels": (
        lambda _: audit(synthetic=fake(Region=np.tile([1, 2, 3], N // 3))),
        "are they coded or spelt otherwise?",
    ),
    "yes and no for true and false": (
        lambda _: audit(
            real().assign(Own=np.tile([True, False], N // 2)),
            fake(Own=np.tile(["yes", "no"], N // 2)),
        ),
        "are its levels coded otherwise?",
    ),
    "a blank in a name": (
        lambda _: audit(synthetic=fake().rename(columns={"Income": "Income "})),
        "Did you mean 'Income '?",
    ),
    "several confidential files": (
        lambda _: audit([real(), real()]),
        "The confidential data: expected a data frame",
    ),
    "few people held out": (
        lambda _: audit(holdout=fake(Income=fake()["Income"] + 3).iloc[:5]),
        "The held-out data: 5 rows; at least 20",
    ),
    "people held out in other units": (
        lambda _: audit(holdout=fake(Income=fake()["Income"] / 1000)),
        "The held-out data: no value of 'Income' lies in the range",
    ),
    "people held out with other levels": (
        lambda _: audit(holdout=fake(Region=np.tile(["1", "2", "3"], N // 3))),
        "The held-out data: column 'Region' has none of the levels",
    ),
    "membership without people held out": (
        lambda _: audited().membership(),
        "name their file in audit(…, holdout=…)",
    ),
    "measures of boards without keys": (
        lambda _: audited().board_measures(),
        "These measures are by keys",
    ),
    "no such file": (lambda folder: audit(folder / "reel.csv"), "there is no file"),
    "a file that is no table": (lambda folder: audit(folder / "real.docx"), "there is no file"),
    "an empty release": (lambda _: audit(synthetic=fake().iloc[:0]), "has no rows"),
    "no release": (lambda _: audit(synthetic=[]), "The release is empty"),
    "empty confidential data": (lambda _: audit(real().iloc[:0]), "has no rows"),
    "few records": (lambda _: audit(real().iloc[:12]), "at least 20 are needed"),
    "other columns": (
        lambda _: audit(synthetic=fake().set_axis(["w", "x", "y", "z"], axis=1)),
        "The two files have no column in common",
    ),
    "a column spelt otherwise": (
        lambda _: audit(synthetic=fake().rename(columns={"Income": "income"})),
        "The release has no column 'Income'. Did you mean 'income'?",
    ),
    "other levels": (
        lambda _: audit(synthetic=fake(Region=np.tile(["1", "2", "3"], N // 3))),
        "column 'Region' has none of the levels that it has in the confidential data",
    ),
    "levels in capitals": (
        lambda _: audit(synthetic=fake().assign(Region=fake()["Region"].str.upper())),
        "are they coded or spelt otherwise? Code them alike in all files.",
    ),
    "a folder": (lambda folder: audit(folder), "is a folder; name a file in it"),
    "a dataset twice": (
        lambda folder: audit(real(), written(folder, "fake.csv") * 2),
        "fake.csv is given twice as the synthetic data",
    ),
    "a currency": (
        lambda _: audit(synthetic=fake().assign(Income=fake()["Income"].map("€{:.2f}".format))),
        "a number has no currency sign, and no mark between thousands",
    ),
    "levels beyond those declared": (
        lambda _: audit(
            real().assign(Region=np.tile(["a", "b"], N // 2)),
            fake(Region=np.tile(["a", "b", "c"], N // 3)),
            types={"Region": ["a", "b"]},
        ),
        "not among its 2 known levels",
    ),
    "text in a column of numbers": (
        lambda _: audit(synthetic=fake(Income=["Jellybean"] * N)),
        "column 'Income' should hold numbers",
    ),
    "a stray word in the confidential data": (
        lambda _: audit(
            real().astype({"Income": object}).replace({"Income": {real()["Income"][3]: "Marzipan"}})
        ),
        "'Income' is text, but 59 of its 60 distinct values read as numbers",
    ),
    "other units": (
        lambda _: audit(synthetic=fake(Income=np.linspace(20.0, 70.0, N))),
        "Is it in the same units?",
    ),
    "infinite values": (
        lambda _: audit(synthetic=fake(Income=[np.inf, *fake()["Income"][1:]])),
        "1 infinite value",
    ),
    "a column without values": (
        lambda _: audit(synthetic=fake(Income=np.nan)),
        "column 'Income' is empty",
    ),
    "an empty column of the confidential data": (
        lambda _: audit(real().assign(Income=np.nan)),
        "column 'Income' is empty",
    ),
    "dates": (
        lambda _: audit(real().assign(Birth=dates()), fake(Birth=dates())),
        "column 'Birth' holds dates",
    ),
    "dates as text": (
        lambda _: audit(real().assign(Birth="1987-06-05"), fake(Birth="1987-06-05")),
        "column 'Birth' holds dates",
    ),
    "ids in the release": (
        lambda _: audit(synthetic=fake(CaseID=real()["CaseID"])),
        "Column 'CaseID' names people",
    ),
    "an id as a key": (
        lambda _: audit(synthetic=fake(CaseID=range(N)), keys=["CaseID"]),
        "CaseID seems to name people",
    ),
    "a key that is not there": (
        lambda _: audit(keys=["Incme"]),
        "keys: the confidential data have no column 'Incme'. Did you mean 'Income'?",
    ),
    "a sensitive column that is not released": (
        lambda _: audit(synthetic=fake().drop(columns="Income"), sensitive="Income"),
        "Synthetic dataset 1 has no column 'Income'",
    ),
    "a column in both roles": (
        lambda _: audit(keys=["Income"], sensitive=["Income"]),
        "Income: named in keys and in sensitive",
    ),
    "every column a key": (
        lambda _: audit(keys=["Income", "Spending", "Kids", "Region"]),
        "Nothing is left that could be learnt",
    ),
    "a key twice": (lambda _: audit(keys=["Income", "Income"]), "keys names Income twice"),
    "a frame as keys": (lambda _: audit(keys=real()), "keys is a list of names"),
    "no key": (lambda _: audit(keys=[]), "keys names no column"),
    "one value everywhere": (
        lambda _: audit(pd.DataFrame({"a": [1.0] * N}), pd.DataFrame({"a": [1.0] * N})),
        "every column has one value only",
    ),
    "a sensitive column of one value": (
        lambda _: audit(real().assign(Land="x"), fake(Land="x"), sensitive="Land"),
        "sensitive: Land is the same for everybody",
    ),
    "people held out who are in the file": (
        lambda _: audit(holdout=real()),
        "The held-out data are rows of the confidential data",
    ),
    "people held out of whom nearly all are left out": (
        lambda _: audit(
            holdout=pd.concat([real().iloc[:12], fake(Income=fake()["Income"] + 1).iloc[:15]]),
        ),
        "beside those that stand in the confidential data too",
    ),
    "the release as people held out": (
        lambda _: audit(holdout=fake()),
        "The held-out data are rows of the release",
    ),
    "held-out people without a column": (
        lambda _: audit(holdout=fake().drop(columns="Kids")),
        "The held-out data have no column 'Kids'",
    ),
    "a seed of text": (lambda _: audit(seed="one"), "seed must be a whole number"),
    "types by position": (lambda _: audit(types=["category"]), "types= is a dict by column"),
    "types of no column": (
        lambda _: audit(types={"Regoin": "category"}),
        "Did you mean 'Region'?",
    ),
    "a number for the release": (lambda _: audit(synthetic=7), "expected a data frame"),
    "limits of guesses": (
        lambda _: audited().verdict(sr.Criteria(log_odds_range=1)),
        "log_odds_range is not known of two files",
    ),
    "limits on a column that is not sensitive": (
        lambda _: audit(sensitive="Income").verdict(
            sr.Criteria(variables={"Kids": sr.Criteria(gain=0.1)})
        ),
        "'Kids', which is not sensitive",
    ),
    "numbers for criteria": (lambda _: audited().verdict(0.1), "verdict takes criteria"),
    "a report without a suffix": (
        lambda folder: audited().report(folder / "report"),
        "its name ends in .html",
    ),
    "an unknown kind of report": (
        lambda folder: audited().report(folder / "report.html", kind="public"),
        "kind must be one of sharing, inside",
    ),
    "a plot of no column": (lambda _: audited().plot.before_after(of="Incme"), "Did you mean"),
    "held-out people who were not given": (lambda _: audited().held_out, "Nobody was held out"),
}


def chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_one_clear_message_without_values(name, tmp_path, capsys):
    call, expected = MISTAKES[name]
    with pytest.raises(sr.SynriskError) as caught:
        call(tmp_path)
    message = str(caught.value)
    assert expected in message
    assert len(message) < 700
    assert message[-1] in ".?"
    printed = capsys.readouterr()
    shown = printed.out + printed.err
    for error in chain(caught.value):
        shown += "".join(traceback.format_exception_only(error)) + repr(error.args)
    for value in {*real().to_numpy().ravel(), *fake().to_numpy().ravel()}:
        if len(str(value)) > 3:
            assert str(value) not in shown
    for word in ("Jellybean", "Marzipan", "Quovadis", "Zyxw", "1987"):
        assert word not in shown


def test_there_are_more_than_thirty():
    assert len(MISTAKES) >= 30
