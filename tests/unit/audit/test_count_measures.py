"""The measures that boards cite: labels, bins, naive references, mistakes."""

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.audit import count_measures as module
from synrisk.audit.count_measures import count_measures
from synrisk.audit.gower_distances import Mixed, nearest

RNG = np.random.default_rng(7)
N = 60


def table(rng, n):
    return pd.DataFrame(
        {"sex": rng.choice(["f", "m"], n), "age": rng.integers(20, 70, n).astype(float),
         "income": np.round(rng.lognormal(8, 1, n), 1)},
        index=pd.Index([f"p{k}" for k in range(n)]),
    )  # fmt: skip


PEOPLE, RELEASE = table(RNG, N), table(RNG, 50)
RELEASE.iloc[:5] = PEOPLE.iloc[10:15].to_numpy()
RELEASE = RELEASE.astype(PEOPLE.dtypes)


def measures(people=PEOPLE, release=RELEASE, **given):
    asked = {"keys": ["sex", "age"], "targets": ["income"], "seed": 1} | given
    return count_measures(people, release, **asked)


def test_records_are_told_by_label_and_the_table_has_all():
    found = measures()
    assert set(found["replicated uniques"].records) == {f"p{k}" for k in range(10, 15)}
    assert len(found.table()) == len(found)
    assert repr(found) == f"<BoardMeasures: {len(found)} measures>"
    assert repr(found["DiSCO"]) == "<BoardMeasure: DiSCO of sex, age → income>"
    assert found["DiSCO", "sex, age → income"] is found["DiSCO"]
    with pytest.raises(KeyError):
        found["DiSCO", "sex"]
    for one in found:
        assert one.n_records == len(one.records)
        assert one.source
        assert one.explanation.endswith(".")


def test_numbers_with_many_values_are_cut_at_stated_edges():
    found = measures(bins=4)
    quartiles = np.quantile(PEOPLE["age"], [0.25, 0.5, 0.75])
    assert found.bins["age"] == tuple(quartiles)
    stated = measures(bins={"age": [30, 50], "income": 4})
    assert stated.bins["age"] == (30.0, 50.0)
    by_hand = [frame.assign(age=np.digitize(frame["age"], [30, 50])) for frame in (PEOPLE, RELEASE)]
    assert stated["iS"].value == measures(*by_hand)["iS"].value
    assert measures(bins=None).bins == {}
    assert measures(bins=100).bins == {}  # fewer values than that


def test_univariate_singling_out_is_that_of_a_loop():
    tried, right = 0, 0
    for name in PEOPLE.columns:
        own, other = PEOPLE[name], RELEASE[name]
        queries = [(lambda c, v=v: c == v) for v in other.unique()]
        if name != "sex":
            low, high = other.min(), other.max()
            queries += [lambda c, v=low: c <= v, lambda c, v=high: c >= v]
        for query in queries:
            if query(other).sum() == 1:
                tried, right = tried + 1, right + (query(own).sum() == 1)
    assert measures()["singling out, univariate"].value == pytest.approx(right / tried)


def test_multivariate_singling_out_is_that_of_a_loop():
    middle, tried, hit = RELEASE["age"].median(), 0, set()
    n_right = 0
    for _, row in RELEASE.iterrows():
        fits = [
            (one["sex"] == row["sex"])
            & ((one["age"] >= row["age"]) if row["age"] > middle else (one["age"] <= row["age"]))
            for one in (PEOPLE, RELEASE)
        ]
        if fits[1].sum() == 1:
            tried += 1
            if fits[0].sum() == 1:
                n_right += 1
                hit |= set(PEOPLE.index[fits[0]])
    found = measures()["singling out, multivariate"]
    assert found.value == pytest.approx(n_right / tried)
    assert set(found.records) == hit


def test_nearest_rows_are_those_of_all_distances():
    rng = np.random.default_rng(2)
    one, other = (
        Mixed(rng.random((n, 2)), rng.integers(0, 3, (n, 2)).astype(np.int64)) for n in (9, 11)
    )
    everything = np.abs(one.numbers[:, None] - other.numbers).sum(axis=2) + (
        one.levels[:, None] != other.levels
    ).sum(axis=2)
    distances, positions = nearest(one, other, 3)
    np.testing.assert_allclose(distances, np.sort(everything, axis=1)[:, :3])
    np.testing.assert_array_equal(positions, np.argsort(everything, axis=1)[:, :3])
    own = np.arange(9)
    assert not (nearest(one, one, 2, own, rng)[1] == own[:, None]).any()


def test_a_copy_is_nearest_at_no_distance_and_linked():
    found = measures(release=PEOPLE)
    assert found["DCR"].value == 0.0
    assert found["DCR"].n_records == N
    assert found["DCR share"].value > 0.95
    # Copies of age and sex may be several, of an income only the own one.
    assert found["linkability"].value > 2 * found["linkability"].chance + 0.2


def test_of_many_records_a_random_part_is_tried(monkeypatch):
    monkeypatch.setattr(module, "_WORK", 0)
    monkeypatch.setattr(module, "_LEAST_TRIED", 20)
    assert "A random 20 of 60 records" in measures()["DCR"].explanation


def test_distances_may_be_left_out():
    names = [one.name for one in measures()]
    assert [one.name for one in measures(distances=False)] == [
        name for name in names if name not in ("linkability", "DCR", "DCR share", "NNDR")
    ]


def test_what_is_left_out_is_said():
    found = measures(keys=["age"], targets=[])
    assert found.notes == ("Linkability needs two sets of columns: keys and targets.",)
    people = PEOPLE.copy()
    people.iloc[0, 1] = np.nan
    assert "gaps" in measures(people).notes[0]


SECRETS = [str(value) for value in PEOPLE["income"]] + ["p10"]
MISTAKES = {
    "no keys": ({"keys": []}, sr.OptionError, "keys= is empty"),
    "a missing column": ({"keys": ["sex", "ages"]}, sr.DataError, "Did you mean 'age'"),
    "both": ({"keys": ["income"]}, sr.OptionError, "named in keys= and in targets="),
    "no rows": ({"release": RELEASE.iloc[:0]}, sr.SyntheticDataError, "no rows"),
    "two records": ({"people": PEOPLE.iloc[:2]}, sr.DataError, "at least 3 records"),
    "two datasets": ({"release": [RELEASE, RELEASE]}, sr.OptionError, "one dataset"),
    "one bin": ({"bins": 1}, sr.OptionError, "from 2"),
    "bins for another column": ({"bins": {"wage": 3}}, sr.OptionError, "neither a key"),
    "edges that fall": ({"bins": {"age": [3, 2]}}, sr.OptionError, "that rise"),
    "edges of text": ({"bins": {"age": ["a", "b"]}}, sr.OptionError, "that rise"),
    "no neighbours": ({"n_neighbours": 0}, sr.OptionError, "from 1"),
    "text in numbers": (
        {"release": RELEASE.assign(age="old")}, sr.SyntheticDataError, "should hold numbers"),
    "dates": (
        {"people": PEOPLE.assign(age=pd.Timestamp("2020-01-01"))}, sr.DataError, "holds dates"),
    "lists": (
        {"people": PEOPLE.assign(sex=[[1]] * N)}, sr.DataError, "nested values"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_clear_message_without_a_value(mistake):
    given, error, words = MISTAKES[mistake]
    with pytest.raises(error) as caught:
        measures(**given)
    assert words in str(caught.value)
    chain = caught.value
    while chain is not None:
        assert not any(secret in str(chain) for secret in SECRETS)
        chain = chain.__cause__ or chain.__context__
