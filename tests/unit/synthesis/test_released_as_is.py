"""What goes out as it is: declared, held back, or refused."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.synthesis.datasets import HeldBackWarning

N = 150
PLAN = sr.Regression("log(Income) ~ Age")


def people():
    rng = np.random.default_rng(0)
    income = np.exp(rng.normal(10, 0.8, N))
    return pd.DataFrame(
        {
            "Name": [f"person {k}" for k in rng.permutation(N)],
            "Age": rng.integers(18, 90, N),
            "Income": income,
            "Rent": np.exp(rng.normal(7, 0.4, N)),
            "Sex": rng.choice(["f", "m"], N),
        },
        index=pd.Index(rng.permutation(N) + 7000, name="Case"),
    )


def test_what_may_name_people_is_held_back_with_a_warning_that_names_columns_only():
    synthesizer = sr.fit(PLAN, people(), n_draws=50, seed=1)
    with pytest.warns(HeldBackWarning, match=r"'Name', 'Rent'.*release=") as caught:
        made = synthesizer.synthesize(seed=1)[0]
    assert "person" not in str(caught[0].message)
    assert made.columns.tolist() == ["Age", "Income", "Sex"]
    assert made.index.equals(pd.RangeIndex(N))
    assert synthesizer.released_as_is == ("Age", "Sex")
    assert "released as is: Age, Sex" in repr(synthesizer)


def test_what_is_declared_goes_out_and_is_saved(tmp_path):
    data = people()
    sr.fit(PLAN, data, n_draws=50, seed=1, release=["Name", "Rent", "index"]).save(
        tmp_path / "synthesizer.nc"
    )
    made = sr.Synthesizer.load(tmp_path / "synthesizer.nc").synthesize(seed=1)[0]
    assert made["Name"].tolist() == data["Name"].tolist()
    assert made.index.equals(data.index)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        (["name"], "Did you mean 'Name'"),
        ("Name", "list of names"),
        (["Income"], "is synthesized"),
        ([3], "no column an int"),
    ],
)
def test_a_wrong_declaration_is_refused(release, words):
    with pytest.raises(sr.OptionError, match=words):
        sr.fit(PLAN, people(), n_draws=50, release=release)


@pytest.mark.parametrize("share", [1.0, 0.6])
@pytest.mark.parametrize("column", ["Name", "Rent"])
def test_an_undeclared_column_in_a_release_is_refused_by_name(column, share):
    data = people()
    synthesizer = sr.fit(PLAN, data, n_draws=50, seed=1)
    made = synthesizer.synthesize(seed=1)[0]
    values = data[column].to_numpy(copy=True)
    values[int(share * N) :] = values[0]
    with pytest.raises(sr.DisclosureError, match=f"'{column}' is as in the confidential") as raised:
        sr.attribute_risk(synthesizer, made.assign(**{column: values}), question="paper")
    assert "person" not in str(raised.value)
    declared = sr.fit(PLAN, data, n_draws=50, seed=1, release=[column])
    sr.attribute_risk(declared, made.assign(**{column: values}), question="paper")


def test_shuffled_rows_with_their_names_are_refused():
    data = people()
    synthesizer = sr.fit(PLAN, data, n_draws=50, seed=1)
    made = synthesizer.synthesize(seed=1)[0].assign(Rent=data["Rent"].to_numpy())
    with pytest.raises(sr.DisclosureError, match="'Rent'"):
        sr.attribute_risk(synthesizer, made.sample(frac=0.8, random_state=1), question="paper")


@pytest.mark.parametrize(
    ("column", "made_of"),
    [
        ("Total", lambda d: d["Income"] + d["Age"] * 100),
        ("Band", lambda d: pd.qcut(d["Income"], 4, labels=list("abcd")).astype(str)),
        ("Rounded", lambda d: d["Income"].round(-4)),
    ],
)
def test_a_relation_is_refused_before_anything_is_fitted(column, made_of):
    data = people().assign(**{column: made_of})
    with pytest.raises(sr.DisclosureError, match=f"'{column}'.*'Income' away") as raised:
        sr.fit(PLAN, data, release=[column])
    assert not any(char.isdigit() for char in str(raised.value))


def test_a_column_that_a_release_has_of_its_own_is_refused_by_its_relation():
    data = people()
    synthesizer = sr.fit(PLAN, data, n_draws=50, seed=1)
    made = synthesizer.synthesize(seed=1)[0]
    total = data["Income"].to_numpy() + 50 * data["Age"].to_numpy()
    noisy = total * (1 + 0.005 * np.random.default_rng(1).normal(size=N))
    with pytest.raises(sr.DisclosureError, match="'Total'"):
        sr.attribute_risk(synthesizer, made.assign(Total=noisy), question="paper")
    harmless = made.assign(Logarithm=np.log(made["Income"]))
    sr.attribute_risk(synthesizer, harmless, question="paper")


def test_what_comes_near_is_a_finding_and_both_reports_list_what_is_as_it_is(tmp_path):
    rng = np.random.default_rng(5)
    data = people()[["Age", "Income", "Sex"]]
    guess = data["Income"] * np.exp(0.13 * rng.normal(size=N))
    plan = sr.Regression("log(Income) ~ Guess")
    synthesizer = sr.fit(plan, data.assign(Guess=guess), n_draws=50, seed=1)
    risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=1), question="paper")
    assert "tell much of Income" in " ".join(risk.diagnostics()["what"])
    for kind in ("sharing", "inside"):
        path = tmp_path / f"{kind}.html"
        risk.report(path, kind=kind)
        assert "Released as they are: Age, Sex, Guess." in path.read_text(encoding="utf-8")
