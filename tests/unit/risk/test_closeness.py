"""Closeness: uniform for honest releases, and small for copies of many kinds."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import synrisk as sr
from synrisk.data.archive import pack, unpack
from synrisk.risk.closeness import _LEVEL, Closeness, all_together, comparisons
from synrisk.risk.coincident_totals import coincidence
from synrisk.risk.nearest_rows import Space
from synrisk.risk.neighbours import _APART
from synrisk.risk.own_records import nearness_to_own
from synrisk.risk.release_checks import ReleaseChecks
from synrisk.risk.shape_likeness import likeness
from synrisk.risk.value_steps import is_heaped, is_rounded, spread_out
from synrisk.synthesis.release import read_release

PLAN = [sr.Regression("a ~ 1"), sr.Regression("b ~ a")]


def two_columns(n, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": 0.5 * a + rng.normal(size=n)})


def fitted(n, seed=0, plan=PLAN, make=two_columns):
    data = make(n, seed)
    return sr.fit(plan, data, seed=seed, n_draws=200), data


def closeness(synthesizer, release):
    tasks = comparisons(synthesizer, read_release(synthesizer.confidential, release))
    return all_together(task() for task in tasks)


def ways(synthesizer, release):
    """In which ways a release is too close."""
    return {one.compared for one in closeness(synthesizer, release) if one.is_too_close}


def shuffled(dataset, seed=1):
    return dataset.sample(frac=1, random_state=seed).reset_index(drop=True)


def most_outlying(data, n):
    z = (data - data.mean()) / data.std()
    return np.argsort(-(z**2).sum(axis=1).to_numpy())[:n]


def with_copies(dataset, data, which, noise=0.0, seed=3):
    rng = np.random.default_rng(seed)
    made, values = dataset.copy(), data.to_numpy()[which]
    made.iloc[which] = values + noise * data.std().to_numpy() * rng.normal(size=values.shape)
    return made


# -- honest releases -------------------------------------------------------------------------------
@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_nearness_of_honest_releases_is_uniform(n_columns):
    names = [f"v{k}" for k in range(n_columns)]
    plan = [sr.Regression(f"{name} ~ 1") for name in names]
    rng = np.random.default_rng(n_columns)
    data = pd.DataFrame(rng.standard_t(5, size=(2000, n_columns)), columns=names)
    synthesizer = sr.fit(plan, data, seed=1, n_draws=100)
    space = Space.of(synthesizer)
    p = []
    for number, dataset in enumerate(
        read_release(synthesizer.confidential, synthesizer.synthesize(10, seed=2))
    ):
        (near,) = space.nearness(synthesizer, dataset, number)
        p.append(near.p)
    # Rows' density bends: the share of small ones is right to a tenth, whose sd is 0.0007 and less.
    for threshold in (0.001, 0.01, 0.1):
        sd = np.sqrt(threshold / 20_000)
        assert np.mean(np.concatenate(p) < threshold) < 1.1 * threshold + 4 * sd


def test_nearness_to_ones_own_record_is_uniform():
    rng = np.random.default_rng(1)
    x = rng.normal(size=500)
    data = pd.DataFrame({"x": x, "y": x + rng.normal(size=500), "k": rng.poisson(np.exp(x))})
    data["g"] = np.where(rng.random(500) < 0.4, "u", "v")
    data["r"] = np.rint(x + rng.normal(size=500)).astype(int)
    plan = [
        sr.Regression("y ~ x"),
        sr.Regression("k ~ y", "poisson"),
        sr.Regression("g ~ x", "bernoulli"),
        sr.Regression("r ~ x"),
    ]
    synthesizer = sr.fit(plan, data, seed=1)
    release = read_release(synthesizer.confidential, synthesizer.synthesize(10, seed=2))
    found = [nearness_to_own(synthesizer, dataset, k) for k, dataset in enumerate(release)]
    for of_variable in zip(*found, strict=True):
        p = np.concatenate([near.p for near in of_variable])
        # A dataset has one draw of the parameters; 5,000 numbers, so 1e-4 forgives that.
        assert stats.kstest(p, "uniform").pvalue > 1e-4


def test_the_likeness_of_honest_releases_is_standard_normal_though_the_data_are_not():
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"a": rng.exponential(size=400)})
    data["b"] = data["a"] ** 2 + rng.exponential(size=400)
    synthesizer = sr.fit(PLAN, data, seed=1)
    z = [
        likeness(synthesizer, one)
        for one in read_release(synthesizer.confidential, synthesizer.synthesize(200, seed=2))
    ]
    assert abs(np.mean(z)) < 4 / np.sqrt(200)
    assert abs(np.std(z) - 1) < 4 / np.sqrt(400)


def amounts(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    amount = np.exp(7 + x + rng.standard_t(4, size=n))
    return pd.DataFrame({"x": x, "whole": np.ceil(amount).astype(int), "k": rng.poisson(2, n)})


def with_zeros(n, seed):
    data = two_columns(n, seed)
    return data.assign(b=np.where(data["b"] < -0.5, 0.0, data["b"] + 3))


def repeated_people(n, seed):
    return pd.concat([two_columns(n // 2, seed)] * 2, ignore_index=True)


HONEST = {
    "normal": (PLAN, two_columns, lambda one: one),
    "two digits": (PLAN, two_columns, lambda one: one.round(2)),
    "one digit": (PLAN, two_columns, lambda one: one.round(1)),
    "single precision": (PLAN, two_columns, lambda one: one.astype(np.float32)),
    "cut": (PLAN, two_columns, lambda one: one.clip(-1.5, 2.0)),
    "zeros": (PLAN, with_zeros, lambda one: one.assign(b=one["b"].clip(0.0))),
    "repeated people": (PLAN, repeated_people, lambda one: one),
    "log of whole numbers": (
        [sr.Regression("log(whole) ~ x"), sr.Regression("k ~ x", "poisson")],
        amounts,
        lambda one: one,
    ),
    "counts": ([sr.Regression("k ~ x", "poisson")], amounts, lambda one: one),
}  # fmt: skip


@pytest.mark.parametrize("kind", HONEST)
@pytest.mark.parametrize(("n", "m"), [(60, 1), (60, 20), (400, 5)])
def test_honest_releases_are_not_too_close(kind, n, m):
    """Each of 8 × 27 at most with the probability 0.0005: two have it together 6e-3 at most."""
    plan, make, after = HONEST[kind]
    for seed in range(8):
        synthesizer, _ = fitted(n, seed, plan, make)
        release = [after(one) for one in synthesizer.synthesize(m, seed=seed)]
        assert ways(synthesizer, release) == set()


def test_fewer_and_more_rows_than_records_are_not_too_close():
    synthesizer, _ = fitted(300)
    many = synthesizer.synthesize(4, seed=1)
    for release in (many[0].head(1), many[0].head(3), many[0].head(40), pd.concat(many)):
        assert ways(synthesizer, [release]) == set()


# -- copies ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("n", [60, 300, 5000])
@pytest.mark.parametrize("n_copied", [5, 10, 20, 40])
@pytest.mark.parametrize("noise", [0.0, 0.001])
def test_a_few_copied_outliers_are_found_and_pointed_at(n, n_copied, noise):
    synthesizer, data = fitted(n)
    which = most_outlying(data, min(n_copied, n // 4))
    made = shuffled(with_copies(synthesizer.synthesize(1, seed=1)[0], data, which, noise))
    found = [one for one in closeness(synthesizer, [made]) if one.is_too_close]
    assert {"nearest"} | ({"values"} if noise == 0.0 else set()) <= {one.compared for one in found}
    pointed = {record for one in found for record in one.records}
    assert len(pointed & set(which.tolist())) >= 0.75 * len(which)
    assert len(pointed - set(which.tolist())) <= 0.25 * len(which) + 2


def test_one_number_repeated_to_the_last_digit_is_found():
    synthesizer, data = fitted(1000)
    made = synthesizer.synthesize(1, seed=1)[0]
    made.loc[7, "b"] = data.loc[3, "b"]
    (found,) = [one for one in closeness(synthesizer, [made]) if one.is_too_close]
    assert (found.compared, found.found, found.records) == ("values", 1, (3,))
    assert found.failure.startswith(
        "In dataset 1, 1 of 1,000 confidential records looked at are repeated"
    )


@pytest.mark.parametrize("n", [60, 300, 5000])
def test_a_tenth_of_the_rows_copied_with_noise_is_found(n):
    synthesizer, data = fitted(n)
    which = np.random.default_rng(1).choice(n, n // 10, replace=False)
    made = with_copies(synthesizer.synthesize(1, seed=1)[0], data, which, 0.001)
    assert "nearest" in ways(synthesizer, [shuffled(made)])
    noisy = with_copies(synthesizer.synthesize(1, seed=1)[0], data, which, 0.01)
    assert "own record" in ways(synthesizer, [noisy])


@pytest.mark.parametrize("n", [60, 300, 5000])
def test_everybody_shifted_and_stretched_is_found_also_in_another_order(n):
    synthesizer, data = fitted(n)
    moved = data.mean() + 1.02 * (data - data.mean()) + 0.03 * data.std()
    for made in (moved, shuffled(moved)):
        assert "moved" in ways(synthesizer, [made])


@pytest.mark.parametrize("n", [150, 5000])
@pytest.mark.parametrize("correlation", [0.95, 0.894])
def test_everybody_with_noise_and_the_same_moments_is_found_in_place(n, correlation):
    """0.894: half a standard deviation of noise, and the variance restored."""
    synthesizer, data = fitted(n)
    noise = data.std().to_numpy() * np.random.default_rng(1).normal(size=data.shape)
    made = data.mean() + correlation * (data - data.mean())
    made += np.sqrt(1 - correlation**2) * noise
    assert "own record" in ways(synthesizer, [made])


def test_shuffled_and_blurred_records_are_found_where_they_are_not_normal():
    rng = np.random.default_rng(1)
    data = pd.DataFrame({"a": rng.exponential(size=1000)})
    data["b"] = data["a"] + rng.exponential(size=1000)
    synthesizer = sr.fit(PLAN, data, seed=1)
    noise = 0.5 * data.std().to_numpy() * rng.normal(size=data.shape)
    made = data.mean() + (data - data.mean() + noise) / np.sqrt(1.25)
    assert ways(synthesizer, [shuffled(made)]) == {"shape"}


def test_copies_in_one_of_many_datasets_and_a_few_in_each_are_found():
    synthesizer, data = fitted(300)
    release = synthesizer.synthesize(20, seed=1)
    which = most_outlying(data, 10)
    one = [*release[:-1], shuffled(with_copies(release[-1], data, which, 0.001))]
    found = [row for row in closeness(synthesizer, one) if row.is_too_close]
    assert {row.dataset for row in found} >= {20}
    each = [shuffled(with_copies(of, data, which[:2], 0.003, k)) for k, of in enumerate(release)]
    found = [row for row in closeness(synthesizer, each) if row.is_too_close]
    assert 0 in {row.dataset for row in found}


def test_one_column_is_enough():
    synthesizer, data = fitted(300, plan=[sr.Regression("a ~ 1")])
    made = synthesizer.synthesize(1, seed=1)[0][["a"]]
    which = most_outlying(data[["a"]], 10)
    copied = shuffled(with_copies(made, data[["a"]], which, 1e-4))
    assert "nearest" in ways(synthesizer, [copied])


def test_copies_that_were_rounded_are_found():
    synthesizer, data = fitted(2000, make=lambda n, seed: two_columns(n, seed).round(3))
    which = most_outlying(data, 40)
    made = synthesizer.synthesize(1, seed=1)[0].round(3)
    assert ways(synthesizer, [made]) == set()
    assert "nearest" in ways(synthesizer, [shuffled(with_copies(made, data, which))])


def test_copies_are_found_within_cells():
    rng = np.random.default_rng(1)
    data = two_columns(2000).assign(
        g=rng.choice(list("pqrs"), 2000), h=rng.choice(list("uvwxyz"), 2000)
    )
    synthesizer = sr.fit([sr.Regression("a ~ g"), sr.Regression("b ~ a + h")], data, seed=1)
    made = synthesizer.synthesize(1, seed=1)[0]
    assert ways(synthesizer, [made]) == set()
    which = rng.choice(2000, 200, replace=False)
    names = ["a", "b"]
    noise = 0.02 * data[names].std().to_numpy() * rng.normal(size=(200, 2))
    made.loc[which, names] = data.loc[which, names] + noise
    assert ways(synthesizer, [shuffled(made)]) == {"within cells"}


def test_cells_are_apart():
    rng = np.random.default_rng(1)
    data = two_columns(400).assign(g=np.repeat(["p", "q"], 200))
    synthesizer = sr.fit([sr.Regression("a ~ g"), sr.Regression("b ~ a")], data, seed=1)
    space = Space.of(synthesizer, in_cells=True)
    other = data.assign(g=np.repeat(["q", "p"], 200))  # everybody in the wrong cell
    (near,) = space.nearness(synthesizer, read_release(synthesizer.confidential, [other])[0], 1)
    assert (near.p < 1e-3).sum() <= 4  # of 400
    groups = np.repeat([1, 0], 200)
    assert (groups[near.row] == np.repeat([0, 1], 200)[near.position]).all()
    assert 1e3 * np.abs(rng.normal(size=400)).max() < _APART


# -- rounding --------------------------------------------------------------------------------------
def test_what_was_rounded_is_known():
    rng = np.random.default_rng(1)
    values = np.exp(rng.normal(8, 2, 500))
    assert not is_rounded(values)
    assert not is_rounded(np.log(values))
    for rounded in (np.rint(values), np.log(np.ceil(values)), values.round(2)):
        assert is_rounded(rounded)
    assert is_rounded(values.astype(np.float32).astype(np.float64))


def test_rounded_values_are_spread_over_their_steps():
    rng = np.random.default_rng(1)
    values = np.exp(rng.normal(8, 2, 2000))
    step = 10.0 ** (np.floor(np.log10(values)) - 2)
    rounded = np.rint(values / step) * step
    own, rows = spread_out(rounded, rounded, np.random.default_rng(2))
    for part in (own, rows):
        away = (part - rounded) / step
        assert np.abs(away).max() <= 5.01  # a number may be rounded up into the next decade
        assert stats.kstest(away[np.abs(away) <= 0.5], stats.uniform(-0.5, 1).cdf).pvalue > 1e-3
    same = spread_out(values, values, np.random.default_rng(2))
    assert np.array_equal(same[0], values)
    assert np.array_equal(same[1], values)


def test_bounds_and_zeros_are_heaps_but_a_row_twice_is_none():
    values = np.random.default_rng(1).normal(size=300)
    assert is_heaped(values.clip(-1.5, 2.0)).sum() == (values < -1.5).sum() + (values > 2.0).sum()
    assert is_heaped(np.where(values < 0, 0.3, values)).sum() == (values < 0).sum()
    assert is_heaped(values.clip(-1.5, 2.0).round(1)).any()
    assert not is_heaped(values.round(1)).any()
    twice = np.sort(values)
    twice[100] = twice[101]
    assert not is_heaped(twice).any()


# -- the result ------------------------------------------------------------------------------------
def test_the_level_is_shared_by_all_comparisons():
    synthesizer, _ = fitted(100)
    found = closeness(synthesizer, synthesizer.synthesize(3, seed=1))
    assert {one.tail for one in found} == {_LEVEL / len(found)}
    assert {(one.compared, one.dataset) for one in found} == {
        *((of, k) for of in ("nearest", "moved", "own record", "shape") for k in range(4)),
        *((of, k) for of in ("values", "totals", "traces") for k in (1, 2, 3)),
    }


def test_records_are_named_in_a_table_of_their_own_and_in_no_sentence():
    data = two_columns(200)
    data.index = [f"person {k}" for k in range(200)]
    synthesizer = sr.fit(PLAN, data, seed=1)
    with pytest.warns(sr.ReliabilityWarning):
        check = sr.attribute_risk(
            synthesizer, data, records=["person 3"], question="paper"
        ).release_check
    assert {"compared", "dataset", "record"} == set(check.close_records.columns)
    assert set(check.close_records["record"]) <= set(data.index)
    assert len(check.close_records) > 100
    assert "records" not in check.closeness.columns
    assert not any("person" in failure for failure in check.failures)
    assert check.status() == "failed"


def test_closeness_is_saved_and_what_was_before_it_is_read():
    synthesizer, data = fitted(60)
    found = ReleaseChecks((), close=closeness(synthesizer, [data]))
    stored = json.loads(json.dumps(pack(found, {}, "check"), allow_nan=False))
    assert unpack(ReleaseChecks, stored, {}) == found
    old = {"is": "Copies", "dataset": 2, "n_rows": 300, "exact": 0, "near": 200,
           "exact_own": 0.0, "near_own": 1.5}  # fmt: skip
    few = old | {"dataset": 1, "near": 2}
    packed = {"is": "ReleaseChecks", "distances": [], "copied_rows": [few, old]}
    read = ReleaseChecks.from_file(packed, {})
    assert [one.is_too_close for one in read.close] == [False, True]
    assert read.failures[0].startswith("In dataset 2, 200 of 300 ")
    assert isinstance(read.close[0], Closeness)


# -- groups ----------------------------------------------------------------------------------------
def in_groups(n, seed):
    """Two columns beside what tells a record among about ten."""
    rng = np.random.default_rng([n, seed])
    x = rng.integers(0, n // 20, n)
    return two_columns(n, seed).assign(x=x, sex=rng.choice(["f", "m"], n))


def test_nearness_within_groups_of_honest_rows_is_uniform():
    plan = [sr.Regression("a ~ x"), sr.Regression("b ~ a")]
    found = []
    for seed in range(5):
        synthesizer, _ = fitted(400, seed, plan, in_groups)
        release = [shuffled(one, seed) for one in synthesizer.synthesize(4, seed=seed)]
        for number, dataset in enumerate(read_release(synthesizer.confidential, release)):
            parts = nearness_to_own(synthesizer, dataset, number)
            assert len(parts) == 6  # by place and by group: a, b and both
            found.append(parts[3:])
    for part in range(3):
        p = np.concatenate([near[part].p for near in found])
        # Several records have the same rows, so that numbers go together: 8,000 count for fewer.
        for threshold in (0.001, 0.01, 0.1):
            assert np.mean(p < threshold) < threshold + 6 * np.sqrt(threshold / len(p))


@pytest.mark.parametrize(("n", "noise"), [(300, 0.01), (2000, 0.01), (2000, 0.05)])
def test_a_tenth_copied_is_found_in_another_order_by_what_is_kept_beside_it(n, noise):
    synthesizer, data = fitted(n, 1, [sr.Regression("a ~ x"), sr.Regression("b ~ a")], in_groups)
    which = np.random.default_rng(1).choice(n, n // 10, replace=False)
    made = synthesizer.synthesize(1, seed=1)[0]
    columns = ["a", "b"]
    made[columns] = with_copies(made[columns], data[columns], which, noise)
    found = [one for one in closeness(synthesizer, [shuffled(made)]) if one.is_too_close]
    assert "own record" in {one.compared for one in found}
    (own,) = [one for one in found if one.compared == "own record"]
    assert len(set(own.records) & set(which.tolist())) >= 0.5 * len(own.records)


# -- what is done to releases ----------------------------------------------------------------------
CALIBRATED = {
    "total": lambda one, own: one * own.sum() / one.sum(),
    "mean": lambda one, own: one - one.mean() + own.mean(),
    "moments": lambda one, own: own.mean() + (one - one.mean()) * own.std() / one.std(),
}


@pytest.mark.parametrize("kind", CALIBRATED)
@pytest.mark.parametrize("n", [60, 3000])
def test_a_release_that_was_calibrated_is_found(kind, n):
    synthesizer, data = fitted(n, make=lambda n, seed: two_columns(n, seed) + 10)
    made = synthesizer.synthesize(1, seed=1)[0]
    made["b"] = CALIBRATED[kind](made["b"], data["b"])
    assert "totals" in ways(synthesizer, [made])


def test_totals_within_groups_are_compared_too():
    synthesizer, data = fitted(500, 1, [sr.Regression("a ~ x"), sr.Regression("b ~ a")], in_groups)
    made = synthesizer.synthesize(1, seed=1)[0]
    missing = data.groupby("sex")["a"].mean() - made.groupby("sex")["a"].mean()
    made["a"] += made["sex"].map(missing)
    assert "totals" in ways(synthesizer, [shuffled(made)])


@pytest.mark.parametrize(("n", "n_copied", "times"), [(60, 20, 3), (300, 60, 5), (2000, 100, 20)])
def test_people_who_are_repeated_are_copies_however_often(n, n_copied, times):
    synthesizer, data = fitted(n)
    made = data.iloc[:n_copied].loc[lambda one: one.index.repeat(times)]
    assert "values" in ways(synthesizer, [shuffled(made)])


def test_a_bound_that_is_a_persons_value_is_found_and_a_declared_one_is_not():
    data = two_columns(1000).assign(b=lambda one: one["b"] + 10)
    fourth = data["b"].nlargest(4).iloc[-1]
    for types, found in ((None, {"values"}), ({"b": (0.0, fourth)}, set())):
        kept = data[data["b"] <= fourth].reset_index(drop=True)
        synthesizer = sr.fit(PLAN, kept, seed=1, n_draws=100, types=types)
        made = synthesizer.synthesize(1, seed=1)[0]
        made["b"] = made["b"].clip(upper=data["b"].nlargest(50).iloc[-1])
        made.loc[made["b"].nlargest(2).index, "b"] = fourth
        assert ways(synthesizer, [made]) >= found
        hits = [one.records for one in closeness(synthesizer, [made]) if one.compared == "values"]
        top = int(kept["b"].idxmax())
        assert (top in hits[0]) == bool(found)


def three_levels(n, seed):
    """A and B go together, which models of each alone leave out."""
    rng = np.random.default_rng([n, seed])
    a = rng.choice(list("xyz"), n)
    b = np.where(rng.random(n) < 0.4, a, rng.choice(list("xyz"), n))
    return pd.DataFrame({"A": a, "B": b, "C": rng.poisson(2, n)})


LEVELS = [
    sr.Regression("A ~ 1", "categorical"),
    sr.Regression("B ~ 1", "categorical"),
    sr.Regression("C ~ 1", "poisson"),
]


@pytest.mark.parametrize("n", [400, 3000])
def test_resampled_records_of_levels_and_counts_are_found(n):
    synthesizer, data = fitted(n, 1, LEVELS, three_levels)
    bootstrap = data.sample(frac=1, replace=True, random_state=1, ignore_index=True)
    assert "tables" in ways(synthesizer, [bootstrap])
    honest = synthesizer.synthesize(20, seed=3)
    p = [one.p for one in closeness(synthesizer, honest) if one.compared == "tables"]
    assert min(p) > 1e-3  # of 20, one in 50 tries
    assert stats.kstest(p, "uniform").pvalue > 1e-3


# -- levels and counts -----------------------------------------------------------------------------
DISCRETE = [sr.Regression("race ~ x", "categorical"), sr.Regression("kids ~ x", "poisson")]


def of_regions(n, seed):
    rng = np.random.default_rng([n, seed])
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "x": x,
            "region": rng.choice(list("abcdefgh"), n),
            "race": rng.choice(["a", "b", "c"], n, p=[0.6, 0.25, 0.15]),
            "kids": rng.poisson(np.exp(0.2 + 0.3 * x)),
        }
    )


@pytest.mark.parametrize("name", ["race", "kids"])
@pytest.mark.parametrize("n", [150, 1000])
def test_levels_and_counts_that_only_changed_places_within_a_region_are_found(name, n):
    """Whoever knows everybody else in a region counts, and has the last one."""
    plan = [one for one in DISCRETE if one.response == name]
    synthesizer, data = fitted(n, 1, plan, of_regions)
    made = synthesizer.synthesize(1, seed=1)[0]
    rng = np.random.default_rng(2)
    made[name] = data.groupby("region")[name].transform(lambda one: rng.permutation(one.to_numpy()))
    assert "totals" in ways(synthesizer, [made])


def test_equal_numbers_of_levels_are_no_rarer_than_is_said():
    """Of 600 honest datasets; a share of 0.05 would have a standard deviation of 0.009."""
    p = []
    for seed, n in enumerate((60, 150, 400)):
        synthesizer, _ = fitted(n, seed, DISCRETE, of_regions)
        release = read_release(synthesizer.confidential, synthesizer.synthesize(200, seed=seed))
        p += [found[1] for one in release if (found := coincidence(synthesizer, one)) is not None]
    assert np.mean(np.array(p) < 0.05) < 0.05 + 3 * 0.009
    assert min(p) > _LEVEL / 10


def test_people_who_were_left_out_for_a_gap_must_not_be_in_the_release():
    data = two_columns(300).assign(x=np.random.default_rng(1).normal(size=300))
    data.loc[:59, "x"] = np.nan
    plan = [sr.Regression("a ~ x")]
    synthesizer = sr.fit(plan, data[["x", "a"]], seed=1, n_draws=100, missing="drop")
    made = synthesizer.synthesize(1, seed=1)[0]
    assert not ways(synthesizer, [made])
    added = data[["x", "a"]].iloc[:60].assign(x=made["x"].to_numpy()[:60])
    assert "values" in ways(synthesizer, [pd.concat([made, added], ignore_index=True)])
