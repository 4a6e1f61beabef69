"""Plausible mistakes in a study file: each has one message with file, line and key."""

import re

import pandas as pd
import pytest
from helpers.studies import STUDY, study_in, synrisk, table

MISTAKES = {
    "an audit of a key that there is not": (
        ("[criteria]", '[audit]\nkeys = ["Owner", "Regoin"]\n\n[criteria]'),
        r"audit\.keys\[2\]: .*no column 'Regoin'\. Did you mean 'Region'",
    ),
    "an audit with a misspelt setting": (
        ("[criteria]", '[audit]\nsensitiv = ["Income"]\n\n[criteria]'),
        r"audit\.sensitiv: there is no such setting\. Did you mean 'sensitive'",
    ),
    "an audit by people who are not there": (
        ("[criteria]", '[audit]\nholdout = "others.csv"\n\n[criteria]'),
        r"audit\.holdout: there is no file others\.csv beside the study",
    ),
    "an audit with a limit that it does not know": (
        ("[criteria]", "[audit]\ncriteria = { log_odds_range = 1 }\n\n[criteria]"),
        r"audit\.criteria\.log_odds_range: there is no such setting",
    ),
    "an audit that seeks what is known": (
        ("[criteria]", '[audit]\nkeys = ["Kids"]\nsensitive = ["Kids"]\n\n[criteria]'),
        r"audit: Kids: named in keys and in sensitive",
    ),
    "identification by what is synthesized": (
        ("[criteria]", '[identification]\nknown = ["Kids"]\nradius = 0.1\n\n[criteria]'),
        r"identification\.known\[1\]: is synthesized; known is what goes out as it is",
    ),
    "identification without a radius": (
        ("[criteria]", '[identification]\nknown = ["Region"]\n\n[criteria]'),
        r"identification: lacks radius, such as radius = 0\.1",
    ),
    "identification with a radius below 0": (
        ("[criteria]", "[identification]\nradius = { Income = -1 }\n\n[criteria]"),
        r"identification\.radius\.Income: Radius: it must be a number from 0",
    ),
    "identification with a radius of nothing": (
        ("[criteria]", "[identification]\nradius.Incme = 0.1\n\n[criteria]"),
        r"identification\.radius\.Incme: is not a known or synthesized .*Did you mean 'Income'",
    ),
    "identification by another word": (
        ("[criteria]", '[identification]\nradius = 0.1\nby = "model"\n\n[criteria]'),
        r"identification\.by: must be one of models, matches; .*Did you mean 'models'",
    ),
    "identification of what is not synthesized": (
        ("[criteria]", '[identification]\nsynthesized = ["Owner"]\nradius = 0.1\n\n[criteria]'),
        r"identification\.synthesized\[1\]: is not a synthesized variable",
    ),
    "a propensity model that there is not": (
        ("[criteria]", '[utility]\npropensity = ["mian"]\n\n[criteria]'),
        r"line \d+, utility\.propensity\[1\]: must be one of main.*Did you mean 'main'",
    ),
    "a level in per cent": (
        ("[criteria]", "[utility]\nlevel = 95\n\n[criteria]"),
        r"utility\.level: must be a number between 0 and 1",
    ),
    "an analysis of a column that there is not": (
        ("[criteria]", '[[utility.regression]]\nformula = "Incame ~ Kids"\n\n[criteria]'),
        r"utility\.regression\[1\]\.formula: .*no column 'Incame'\. Did you mean 'Income'",
    ),
    "an analysis without a formula": (
        ("[criteria]", '[[utility.regression]]\nfamily = "poisson"\n\n[criteria]'),
        r"utility\.regression\[1\]: lacks its formula",
    ),
    "misspelt key": (
        ("seed = ", "sead = "),
        r"line 2, sead: there is no such setting\. Did you mean 'seed'\?",
    ),
    "misspelt table": (("[synthesis]", "[synthesys]"), "line 17, synthesys: there is no such"),
    "[model] for [[model]]": (
        ('[[model]]\nformula = "Income ~ Spending"\nfamily = "gaussian"\n\n[[model]]', "[model]"),
        r"line 9, model: must be tables that begin with \[\[model\]\]",
    ),
    "text without quotes": (('"people.csv"', "people.csv"), "line 6: not TOML"),
    "a number in quotes": (("m = 2", 'm = "2"'), r"line 18, synthesis\.m: must be a whole number"),
    "a key twice": (("m = 2", "m = 2\nm = 3"), r"line 19, synthesis\.m: .*line 18\."),
    "no data file": (
        ("people.csv", "poeple.csv"),
        r"line 6, data\.file: there is no file poeple\.csv beside the study",
    ),
    "misspelt id": (
        ('"CaseID"', '"CaseId"'),
        r"line 7, data\.id: .*no column 'CaseId'\. Did you mean 'CaseID'\?",
    ),
    "an id that repeats": (
        ('"CaseID"', '"Owner"'),
        r"line 7, data\.id: repeats 118 labels; every record needs its own",
    ),
    "a file for a folder": (
        ('"out"', '"people.csv"'),
        r"line 3, output: .*people\.csv is a file; the results need a folder",
    ),
    "the study's own folder for the results": (
        ('"out"', '"."'),
        r"line 3, output: is the folder of the study itself.*output = \"results\"",
    ),
    "a folder above the study's for the results": (
        ('"out"', '"../"'),
        r"line 3, output: holds the study.*output = \"results\"",
    ),
    "misspelt predictor": (
        ("~ Spending", "~ Spendings"),
        r"line 10, model\[1\]\.formula: .*no column 'Spendings'\. Did you mean 'Spending'\?",
    ),
    "misspelt family": (
        ("poisson", "poison"),
        r"line 15, model\[2\]\.family: .*Did you mean 'poisson'",
    ),
    "no counts": (
        ('"Kids ~ Income"', '"Weight ~ 1"'),
        r"line 14, model\[2\]\.formula: .*'Weight' is modelled as poisson and must be whole",
    ),
    "order of the models": (
        ("~ Spending", "~ Kids"),
        r"line 10, model\[1\]\.formula: .*uses Kids before it is synthesized",
    ),
    "synthesized twice": (
        ('"Kids ~ Income"', '"Income ~ 1"'),
        r"line 14, model\[2\]\.formula: 'Income' is synthesized twice",
    ),
    "code in a formula": (
        ("~ Spending", "~ __import__('os').system('touch pwned')"),
        r"line 10, model\[1\]\.formula: ",
    ),
    "code in a function": (
        ("~ Spending", "~ open('people.csv')"),
        r"line 10, model\[1\]\.formula: .*open",
    ),
    "no formula": (('formula = "Kids ~ Income"\n', ""), r"line 13, model\[2\]: lacks its formula"),
    "guesses of another variable": (
        ("guesses.Income", "guesses.Incom"),
        r"line 21, risk\.guesses\.Incom: is not a synthesized variable\. Did you mean 'Income'",
    ),
    "guesses of a strange kind": (
        ("relative = 5", "relativ = 5"),
        r'line 21, risk\.guesses\.Income: must be "range", a number',
    ),
    "one guess": (("relative = 5", "relative = 1"), r"line 21, risk\.guesses\.Income\.relative: "),
    "misspelt estimator": (
        ("[risk]", '[risk]\nestimator = "exakt"'),
        r"line 21, risk\.estimator: must be one of .*Did you mean 'exact'",
    ),
    "limit in percent": (
        ("lift = 50", "probability = 20"),
        r"line 24, criteria\.probability: must be a number from 0 to 1; got 20",
    ),
    "limit on another variable": (
        ("lift = 50", "variables.Kid = { lift = 2 }"),
        r"line 24, criteria\.variables\.Kid: is not a synthesized variable\. Did you mean 'Kids'",
    ),
    "policy that is not there": (
        ("lift = 50", 'policy = "cell-of-6"'),
        r"line 24, criteria\.policy: .*Did you mean 'cell-of-.* Yours: file = \"policies\.toml\"",
    ),
    "policy and limits": (
        ("lift = 50", 'policy = "cell-of-5"\nlift = 50'),
        r"line 25, criteria\.lift: a policy has its own limits",
    ),
    "misspelt policy": (
        ("lift = 50", 'polcy = "cell-of-5"'),
        r"line 24, criteria\.polcy: there is no such setting\. Did you mean 'policy'",
    ),
    "draws for one model only": (
        ('"poisson"', '"poisson"\ndraws = "people.csv"'),
        r"line 9, model\[1\]: has no draws, but other models have",
    ),
    "prior of a strange kind": (
        ('"poisson"', '"poisson"\nprior = { mean = 0 }'),
        r"line 16, model\[2\]\.prior: must be \{ mean = 0, sd = 2 \}",
    ),
    "prior of a strange parameter": (
        ('"poisson"', '"poisson"\nprior = { Incomes = { mean = 0, sd = 1 } }'),
        r"line 14, model\[2\]\.formula: .*Incomes",
    ),
    "m and files": (
        ("m = 2", 'm = 2\nfiles = ["people.csv"]'),
        r"line 18, synthesis\.m: the synthetic data are given by files",
    ),
    "synthetic file without a column": (
        ("m = 2", 'files = ["short.csv"]'),
        r"line 18, synthesis\.files: Synthetic dataset 1: there is no column 'Kids'",
    ),
    "file and sample": (
        ('id = "CaseID"', 'sample = "households"'),
        r"line 5, data: name the confidential data by file",
    ),
    "types of a strange kind": (
        ('id = "CaseID"', 'types.Region = "nominal"'),
        r"line 7, data\.types\.Region: .*must be 'category', 'numeric'",
    ),
    "a column that gives another away": (
        ('id = "CaseID"\n', 'release = ["LogIncome"]\ntypes.Region = "category"\n'),
        r"data: .*of 'LogIncome', .*gives the synthesized 'Income' away.*drop = ",
    ),
    "levels that a column does not hold": (
        ('id = "CaseID"', 'id = "CaseID"\ntypes.Region = ["X", "Y"]'),
        r"line 8, data\.types\.Region: .*holds 120 values .* \[data\] types\.Region = \[…\]\.$",
    ),
    "missing values": (
        ("~ Spending", "~ Gaps"),
        r'line 10, model\[1\]\.formula: .*Gaps \(1\)\..* use \[data\] missing = "drop" to leave',
    ),
    "stray text": (
        ("~ Spending", "~ Stray"),
        r"line 10, model\[1\]\.formula: .*those in row 4 of the data.*correct the data there",
    ),
    "stray text in numbers": (
        ('id = "CaseID"', 'id = "CaseID"\ntypes.Stray = "numeric"'),
        r"line 8, data\.types\.Stray: .*1 value is not \(row 4 of the data.*leave those rows out",
    ),
    "values beyond the bounds": (
        ("below = 0.2, above = 0.2", "within = [0, 51]"),
        r"line 21, risk\.guesses\.Income\.within: .*\d records have their confidential",
    ),
    "all levels of a number": (
        ("{ relative = 5, below = 0.2, above = 0.2 }", '"all levels"'),
        r"line 21, risk\.guesses\.Income: All levels cannot .*use \{ relative = 11 \}",
    ),
    "an estimator for other models": (
        ("[risk]", '[risk]\nestimator = "exact"'),
        r'line 21, risk\.estimator: \[risk\] estimator = "exact" is for gaussian',
    ),
    "an engine for other models": (
        ("[synthesis]", '[fit]\nengine = "exact"\n[synthesis]'),
        r'line 18, fit\.engine: .*\[fit\] engine = "auto" takes it',
    ),
    "a table of another kind": (
        ('"people.csv"', '"study.toml"'),
        r"line 6, data\.file: .*neither CSV .* Save it as one of these\.$",
    ),
    "no model": (
        (STUDY[STUDY.index("[[model]]") : STUDY.index("[synthesis]")], ""),
        "no \\[\\[mod",
    ),
    "a step of a family that has none": (
        ('family = "gaussian"', 'family = "gaussian"\nstep = 5'),
        r"model\[1\]\.step: is for family = \"rounded_gaussian\"",
    ),
    "a step below 0": (
        ('family = "gaussian"', 'family = "rounded_gaussian"\nstep = -5'),
        r"model\[1\]\.step: .*must be a number above 0",
    ),
    "values that are no multiples of a step": (
        ('family = "gaussian"', 'family = "rounded_gaussian"\nstep = 7'),
        r"must be multiples of 7; \d+ values are not",
    ),
    "a report of a strange kind": (
        ("[criteria]", '[report]\nkind = "public"\n[criteria]'),
        r"line 24, report\.kind: must be one of sharing, inside, both; got 'public'",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(tmp_path, mistake):
    (old, new), message = MISTAKES[mistake]
    assert old in STUDY
    data = table()
    if mistake == "a column that gives another away":
        data = data.assign(LogIncome=data["Income"] ** 3)
    if mistake in ("missing values", "stray text", "stray text in numbers"):
        data["Gaps"] = data["Spending"].where(data.index != 3)
        data["Stray"] = data["Spending"].astype(str).where(data.index != 3, "much")
    path = study_in(tmp_path, STUDY.replace(old, new), data)
    table()[["Income", "Spending"]].to_csv(tmp_path / "short.csv", index=False)
    done = synrisk("run", path)
    assert done.exit_code == 2, done.output
    assert re.search(message, done.stderr), done.stderr
    assert done.stderr.startswith("synrisk: study.toml")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    for value in (*data["Region"].unique(), *data["CaseID"].astype(str), "much"):
        assert value not in done.stderr
    python = r"\w=['{\[]|\w=[.;,)]|AllLevels|Criteria\.|synrisk\.fit|pass the frame"
    assert not re.search(python, done.stderr)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "people.csv",
        "short.csv",
        "study.toml",
    ]


def test_draws_that_do_not_fit_are_named(tmp_path):
    path = study_in(tmp_path)
    assert synrisk("run", path, "-q").exit_code == 0
    out = tmp_path / "out"
    pd.read_csv(out / "draws2_Kids.csv").drop(columns="Income").to_csv(
        tmp_path / "short.csv", index=False
    )
    text = STUDY.replace('"gaussian"', '"gaussian"\ndraws = "out/draws1_Income.csv"').replace(
        '"poisson"', '"poisson"\ndraws = "short.csv"'
    )
    path.write_text(text.replace('"out"', '"again"'), encoding="utf-8")
    done = synrisk("run", path)
    assert done.exit_code == 2
    assert re.search(r"line 17, model\[2\]\.draws: .*Missing: Income", done.stderr)
