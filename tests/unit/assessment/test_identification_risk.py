"""Identification risk: what a result says, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

PEOPLE = pd.DataFrame(
    {
        "Key": ["p1", "p2", "p3", "p4"],
        "Sex": ["f", "f", "m", "m"],
        "Age": [30, 30, 41, 41],
        "Job": ["baker", "smith", "smith", "baker"],
        "Income": [7310.0, 8420.0, 9530.0, 6640.0],
    },
    index=pd.Index([11, 12, 13, 14], name="person"),
)
RELEASE = PEOPLE.assign(Job=["baker", "baker", "smith", "smith"], Income=[7300.0, 7400, 9900, 9550])
ASKED = {"known": ["Sex", "Age"], "synthesized": ["Income"], "radius": 0.1}


def risk(people=PEOPLE, release=RELEASE, **given):
    return sr.identification_risk(people, release, **(ASKED | given))


def test_records_have_the_labels_and_the_numbers_of_the_definition():
    records = risk().records
    assert records.index.equals(PEOPLE.index)
    assert records["c_1"].tolist() == [2, 0, 2, 0]
    assert records["T_1"].tolist() == [True, False, True, False]
    assert records["match_risk"].tolist() == [0.5, 0.0, 0.5, 0.0]
    assert records["before"].tolist() == [0.5] * 4
    assert not records["K_1"].any()
    assert not records["F_1"].any()


def test_over_datasets_the_rates_are_averaged_with_a_standard_error():
    found = risk(release=[RELEASE, PEOPLE])
    summary = found.summary()
    assert summary.index.tolist() == ["1", "2", "mean", "standard error"]
    assert summary["expected_match_risk"].tolist() == pytest.approx([1.0, 4.0, 2.5, 1.5])
    assert summary["false_match_rate"].tolist()[1:2] == [0.0]
    assert np.isnan(summary.loc["1", "false_match_rate"])  # nobody has one match
    assert found.records["match_risk"].tolist() == [0.75, 0.5, 0.75, 0.5]
    assert risk().summary().loc["standard error"].isna().all()


def test_levels_match_where_they_are_equal_whatever_the_radius():
    found = risk(release=RELEASE.assign(Job=PEOPLE["Job"]), synthesized=["Job", "Income"])
    assert found.records["c_1"].tolist() == [1, 0, 1, 0]
    assert found.radius["Job"].is_equality


def test_rows_are_put_in_place_by_an_id():
    shuffled = RELEASE.sample(frac=1, random_state=3)
    found = risk(release=shuffled, id="Key")
    expected = risk().records
    expected.index = pd.Index(PEOPLE["Key"])
    pd.testing.assert_frame_equal(found.records, expected)
    assert "same Key" in found.notes[0]


def test_a_gap_matches_a_gap_and_is_told():
    people, release = PEOPLE.copy(), RELEASE.copy()
    people.loc[11, "Income"] = np.nan
    release.loc[12, "Income"] = np.nan
    found = risk(people, release)
    assert found.records["c_1"].tolist() == [1, 0, 2, 0]
    assert any("1 record with missing values" in note for note in found.notes)


def test_known_variables_may_be_none():
    found = risk(known=[], radius=sr.Radius(absolute=200))
    assert found.records["before"].tolist() == [0.25] * 4
    assert found.records["c_1"].tolist() == [2, 0, 1, 0]


def test_a_verdict_is_about_the_right_row():
    everybody = risk(release=PEOPLE)
    verdict = everybody.verdict(sr.Criteria(gain=0.1))
    assert verdict.outcome == "failed"
    assert "an intruder's probability of the right row by more than 10" in str(verdict)
    assert verdict.records.index.tolist() == PEOPLE.index.tolist()
    assert risk().verdict().outcome == "passed"
    assert risk().verdict(sr.Criteria(probability=0.4)).outcome == "failed"
    assert risk().verdict(sr.Criteria(probability=0.4, share=0.5)).outcome == "passed"


def test_what_is_saved_comes_back(tmp_path):
    found = risk(release=[RELEASE, PEOPLE], radius=sr.Radius(absolute=300))
    found.save(tmp_path / "risk.nc")
    again = sr.IdentificationRisk.load(tmp_path / "risk.nc")
    pd.testing.assert_frame_equal(again.records, found.records)
    pd.testing.assert_frame_equal(again.summary(), found.summary())
    assert (again.notes, again.radius, repr(again)) == (found.notes, found.radius, repr(found))


def test_a_repr_holds_no_value():
    assert repr(risk()) == (
        "<IdentificationRisk: 4 records; 1 dataset; Sex equal, Age equal, Income within 10 %>"
    )


SECRETS = ("7310", "8420", "9530", "6640", "baker", "smith", "p1")
DATES = PEOPLE.assign(Born=pd.to_datetime(["1990-01-01"] * 4))

MISTAKES = {
    "a column that the release lacks": (
        {"release": RELEASE.drop(columns="Income")}, sr.SyntheticDataError, "no column 'Income'"),
    "a column that the records lack": (
        {"people": PEOPLE.drop(columns="Age")}, sr.DataError, "no column 'Age'"),
    "a misspelt name": ({"synthesized": ["income"]}, sr.DataError, "Did you mean 'Income'"),
    "fewer rows": ({"release": RELEASE.iloc[:3]}, sr.SyntheticDataError, "id="),
    "rows in another order": (
        {"release": RELEASE.iloc[::-1]}, sr.SyntheticDataError, "Sort the files alike"),
    "no such id": ({"id": "Number"}, sr.DataError, "no column 'Number'"),
    "an id that repeats": ({"id": "Sex"}, sr.DataError, "'Sex' is missing or repeated in 2 rows"),
    "another person's id": (
        {"release": RELEASE.assign(Key=["p1", "p2", "p3", "q"]), "id": "Key"},
        sr.SyntheticDataError, "1 record of the confidential data and 1 row"),
    "an id that is no name": ({"id": 3}, sr.OptionError, "id= is the name of a column"),
    "a negative radius": ({"radius": -0.1}, sr.OptionError, "from 0"),
    "a radius of text": ({"radius": "10%"}, sr.OptionError, "radius= takes a share"),
    "a radius of levels": (
        {"synthesized": ["Job"], "radius": {"Job": 0.1}}, sr.OptionError, "levels"),
    "a radius for another column": (
        {"radius": {"Incomes": 0.1}}, sr.OptionError, "Did you mean 'Income'"),
    "a radius that is left out": ({"radius": {}}, sr.OptionError, "radius= lacks Income"),
    "both known and synthesized": (
        {"known": ["Age", "Income"]}, sr.OptionError, "Income: named in known= and"),
    "a name twice": ({"known": ["Age", "Age"]}, sr.OptionError, "'Age' twice"),
    "nothing synthesized": ({"synthesized": []}, sr.OptionError, "synthesized= is empty"),
    "a number for names": ({"known": 3}, sr.OptionError, "known= is the name"),
    "a list of no names": ({"known": [3]}, sr.OptionError, "known= is the name"),
    "text in numbers": (
        {"release": RELEASE.assign(Income=["7310", "x", "y", "z"])},
        sr.SyntheticDataError, "should hold numbers"),
    "no rows": ({"release": RELEASE.iloc[:0]}, sr.SyntheticDataError, "no rows"),
    "no records": ({"people": PEOPLE.iloc[:0]}, sr.DataError, "no rows"),
    "no datasets": ({"release": []}, sr.SyntheticDataError, "at least one"),
    "dates": (
        {"people": DATES, "release": DATES, "synthesized": ["Born"]}, sr.DataError, "holds dates"),
    "no table": ({"release": 7310}, sr.SyntheticDataError, "data frame"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_clear_message_without_a_value(mistake):
    given, error, words = MISTAKES[mistake]
    with pytest.raises(error) as caught:
        risk(**given)
    assert words in str(caught.value)
    chain = caught.value
    while chain is not None:
        assert not any(secret in str(chain) for secret in SECRETS)
        chain = chain.__cause__ or chain.__context__


@pytest.mark.parametrize(
    ("criteria", "words"),
    [
        (sr.Criteria(log_odds_range=1), "no log_odds_range"),
        (sr.Criteria(variables=sr.Criteria(gain=0.1)), "a limit beside variables="),
        ("gain", "verdict takes criteria"),
    ],
)
def test_limits_that_make_no_sense_are_refused(criteria, words):
    with pytest.raises(sr.OptionError, match=words):
        risk().verdict(criteria)


@pytest.mark.parametrize("given", [{}, {"relative": 0.1, "absolute": 1}, {"absolute": -1}])
def test_a_radius_is_one_number_from_0(given):
    with pytest.raises(sr.OptionError, match="Radius"):
        sr.Radius(**given)


def test_equal_values_match_however_narrow_the_radius():
    people = pd.DataFrame({"Age": [30, 30, 41, 41], "W": [0.0, 0.0, 0.0, 500.0]})
    found = sr.identification_risk(
        people, people.copy(), known=["Age"], synthesized=["W"], radius=0.1
    )
    assert found.records["T_1"].all()
    assert found.records["match_risk"].tolist() == [0.5, 0.5, 1.0, 1.0]


def test_who_is_found_by_known_columns_alone_is_a_warning():
    people = pd.DataFrame({"Age": np.arange(20, 60), "W": 100.0 * np.arange(40) + 50.0})
    found = sr.identification_risk(
        people, people.copy(), known=["Age"], synthesized=["W"], radius=0.1
    )
    verdict = found.verdict()
    assert verdict.headline == "Passed, with 1 warning"
    assert "by them 40 of 40 records are found for certain" in verdict.sentences()[0]
    assert "40" not in " ".join(verdict.sentences(sharing=True))
    assert "no check" not in verdict.meaning(sharing=True) + verdict.meaning()
