"""Columns that give some people away, groups of them, or everybody by the order of the rows."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

PLAN = sr.Regression("log(Income) ~ Age + Sex")


def people(n=600, seed=1):
    rng = np.random.default_rng([n, seed])
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {
            "Age": age,
            "Sex": rng.choice(["f", "m"], n),
            "Region": rng.choice(list("abcde"), n),
            "Income": np.exp(10 + 0.01 * age + 0.5 * rng.normal(size=n)),
        }
    )


def public_sector(data):
    return np.random.default_rng(2).random(len(data)) < 0.2


GIVEN_AWAY = {
    "mean of groups": lambda d: d.groupby("Region")["Income"].transform("mean"),
    "rounded mean of groups": lambda d: d.groupby("Region")["Income"].transform("mean").round(2),
    "median of groups": lambda d: d.groupby("Region")["Income"].transform("median"),
    "sum of groups": lambda d: d.groupby("Region")["Income"].transform("sum").round(),
    "largest of groups": lambda d: d.groupby("Region")["Income"].transform("max"),
    "mean of small groups": lambda d: d.groupby(["Region", "Age"])["Income"].transform("mean"),
    "a levy of some": lambda d: (0.02 * d["Income"]).where(public_sector(d), 0.0).round(2),
    "known of some": lambda d: d["Income"].where(public_sector(d)),
    "a text of some": lambda d: d["Income"].map("{:.0f} EUR".format).where(public_sector(d), "-"),
}


@pytest.mark.parametrize("kind", GIVEN_AWAY)
def test_what_gives_some_or_groups_away_is_refused_by_name(kind):
    data = people()
    data["Told"] = GIVEN_AWAY[kind](data)
    with pytest.raises(sr.DisclosureError, match="'Told'") as caught:
        sr.fit(PLAN, data, release=["Told"])
    assert not any(character.isdigit() for character in str(caught.value))


def test_what_has_nothing_to_do_with_the_variable_is_not_refused():
    """Amounts of some, means of another variable by group, texts with numbers: 40 tables."""
    for seed in range(40):
        data = people(300, seed)
        rng = np.random.default_rng(seed)
        data["Rent"] = np.where(rng.random(300) < 0.3, np.round(rng.lognormal(6, 1, 300)), 0.0)
        data["MeanAge"] = data.groupby("Region")["Age"].transform("mean")
        data["Note"] = [f"visit {k}" for k in rng.integers(0, 60, 300)]
        data["Wealth"] = np.round(data["Income"] * rng.lognormal(0, 1, 300)).where(
            rng.random(300) < 0.5
        )
        sr.fit(PLAN, data, n_draws=20)


def test_a_level_that_tells_is_among_the_findings():
    rng = np.random.default_rng(1)
    data = people(1000).drop(columns="Income")
    data["Ill"] = np.where(rng.random(1000) < 0.1, "yes", "no")
    data["Drug"] = np.where(
        (data["Ill"] == "yes") & (rng.random(1000) < 0.5), "a", rng.choice(list("bcd"), 1000)
    )
    synthesizer = sr.fit(sr.Regression("Ill ~ Age", "bernoulli"), data, n_draws=200)
    with pytest.warns(sr.ReliabilityWarning):
        risk = sr.attribute_risk(synthesizer, synthesizer.synthesize())
    assert risk.diagnostics()["why"].str.contains("'Drug'").any()


def test_records_that_are_sorted_by_a_synthesized_variable_are_refused():
    data = people().sort_values("Income", ignore_index=True)
    with pytest.raises(sr.DisclosureError, match=r"the order of the rows.*Shuffle the records"):
        sr.fit(PLAN, data)
    by_region = people().sort_values(["Region", "Income"], ignore_index=True)
    with pytest.raises(sr.DisclosureError, match="the order of the rows"):
        sr.fit(PLAN, by_region).synthesize()
    sr.fit(PLAN, people().sort_values("Age", ignore_index=True)).synthesize()
    # Rows that hold nothing else stand for nobody.
    alone = data[["Income"]]
    sr.fit(sr.Regression("log(Income) ~ 1"), alone).synthesize()


ADDED = {
    "in place": lambda r: r,
    "shuffled": lambda r: r.sample(frac=1, random_state=1).reset_index(drop=True),
    "a row short": lambda r: r.iloc[1:].reset_index(drop=True),
    "as labels": lambda r: r.set_index("Score"),
}


@pytest.mark.parametrize("kind", ADDED)
def test_a_column_of_true_values_that_the_release_adds_is_refused(kind):
    data = people()
    synthesizer = sr.fit(PLAN, data)
    release = synthesizer.synthesize()[0]
    made = ADDED[kind](release.assign(Score=3.0 - 2.0 * data["Income"]))
    with pytest.raises(sr.DisclosureError, match=r"'Score'|the labels of the rows"):
        sr.attribute_risk(synthesizer, made)
    harmless = ADDED[kind](release.assign(Score=np.random.default_rng(1).lognormal(10, 1, 600)))
    sr.attribute_risk(synthesizer, harmless, diagnostics=False)


def test_columns_of_lists_do_not_stop_the_checks():
    data = people(100)
    data["Tags"] = [[int(age > 50)] for age in data["Age"]]
    synthesizer = sr.fit(PLAN, data)
    assert sr.attribute_risk(synthesizer, synthesizer.synthesize()).release_check.failures == ()


def test_columns_that_were_kept_are_named_in_whatever_order_the_rows_are():
    data = people()
    synthesizer = sr.fit(PLAN, data)
    release = synthesizer.synthesize()[0]
    for made in (release, release.sample(frac=1, random_state=1, ignore_index=True)):
        assert sr.attribute_risk(synthesizer, made).release_check.as_is == ("Age", "Sex", "Region")
    others = people(seed=2)[["Age", "Sex", "Region"]]
    drawn = sr.attribute_risk(synthesizer, release.assign(**others)).release_check
    assert drawn.as_is == ()
