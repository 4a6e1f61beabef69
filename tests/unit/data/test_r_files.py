"""Files that R wrote (see tests/data/r/make.R): what is read of them is what R had."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.data.frames import read_table

FOLDER = Path(__file__).parents[2] / "data" / "r"
VALUES = pd.read_csv(FOLDER / "values.csv", dtype=str).set_index(["fit", "column"])
OF_REGION = {"Region[T.Süd]": "RegionSüd", "Region[T.West-1]": "RegionWest-1"}
# By fit: the model, and the column of R that each of its parameters is.
FITS = {
    "linear": (
        sr.Regression("Income ~ Spend + Region"),
        {"Intercept": "(Intercept)", "Spend": "Spend", **OF_REGION, "sigma": "sigma"},
    ),
    "counts": (
        sr.Regression("Kids ~ Spend + Region", "poisson"),
        {"Intercept": "(Intercept)", "Spend": "Spend", **OF_REGION},
    ),
    "binary": (
        sr.Regression("Owner ~ Income", "bernoulli"),
        {"Intercept": "(Intercept)", "Income": "Income"},
    ),
    "brms_linear": (
        sr.Regression("Income ~ Spend + as.factor(Zone) + Region"),
        {
            "Intercept": "b_Intercept", "Spend": "b_Spend",
            "C(Zone)[T.2]": "b_as.factorZone2", "C(Zone)[T.3]": "b_as.factorZone3",
            "Region[T.Süd]": "b_RegionSüd", "Region[T.West-1]": "b_RegionWestM1", "sigma": "sigma",
        },
    ),
    "brms_counts": (
        sr.Regression("Kids ~ Spend * Region", "poisson"),
        {
            "Intercept": "b_Intercept", "Spend": "b_Spend",
            "Region[T.Süd]": "b_RegionSüd", "Region[T.West-1]": "b_RegionWestM1",
            "Spend:Region[T.Süd]": "b_Spend:RegionSüd",
            "Spend:Region[T.West-1]": "b_Spend:RegionWestM1",
        },
    ),
    "brms_classes": (
        sr.Regression("Class ~ Income", "categorical"),
        {
            "low:Intercept": "b_mulow_Intercept", "low:Income": "b_mulow_Income",
            "mid_2:Intercept": "b_mumid2_Intercept", "mid_2:Income": "b_mumid2_Income",
        },
    ),
    "jags": (
        sr.Regression("Income ~ Spend"),
        {"Intercept": "beta[1]", "Spend": "beta[2]", "sigma": "sigma"},
    ),
}  # fmt: skip
WITH_CHAINS = {
    "linear": [
        "linear_draws_df.csv", "linear_draws_df.rds", "linear_xz.rds", "linear_bzip2.rds",
        "linear_uncompressed.rds", "linear_ascii.rds", "linear_version_2.rds", "linear.RData",
        "linear_array.rds", "linear_draws_array.rds", "linear_draws_matrix.rds",
        "linear_draws_list.rds", "linear_draws_rvars.rds",
    ],
    "counts": ["counts.rds"],
    "binary": ["binary.rds"],
    "brms_linear": ["brms_linear.csv", "brms_linear.rds"],
    "brms_counts": ["brms_counts.csv"],
    "brms_classes": ["brms_classes.rds"],
    "jags": ["jags.csv", "jags_mcmc_list.rds", "jags_rvars.rds"],
}  # fmt: skip
WITHOUT_CHAINS = {
    "linear": [
        "linear.csv", "linear_no_row_names.csv", "linear_data_frame.rds", "linear_matrix.rds",
    ],
    "brms_linear": ["brms_linear_data_frame.rds"],
}  # fmt: skip


def pairs(by_fit):
    return [(fit, file) for fit, files in by_fit.items() for file in files]


def read(fit, file, people="people.rds"):
    model, _ = FITS[fit]
    return sr.Synthesizer.from_draws(model, FOLDER / people, FOLDER / file)


def assert_values_are_those_of_r(synthesizer, fit):
    model, columns = FITS[fit]
    draws = synthesizer.draws(model.response)
    assert [name for name in draws if name not in ("weight", ".chain")] == list(columns)
    for parameter, column in columns.items():
        expected, found = VALUES.loc[(fit, column)], draws[parameter].to_numpy()
        assert len(found) == int(expected["n_draws"])
        # A CSV has 15 digits; sums of a few hundred draws are added in another order.
        np.testing.assert_allclose(found[0], float(expected["first"]), rtol=1e-14)
        np.testing.assert_allclose(found[-1], float(expected["last"]), rtol=1e-14)
        np.testing.assert_allclose(found.mean(), float(expected["mean"]), rtol=1e-11)
        np.testing.assert_allclose(found.std(ddof=1), float(expected["sd"]), rtol=1e-11)


@pytest.mark.parametrize(("fit", "file"), pairs(WITH_CHAINS))
def test_draws_and_their_chains(fit, file):
    synthesizer = read(fit, file)
    assert_values_are_those_of_r(synthesizer, fit)
    chain = synthesizer.models[0].posterior.chain
    n_chains = int(VALUES.loc[fit]["n_chains"].iloc[0])
    assert list(np.bincount(chain)) == [len(chain) // n_chains] * n_chains
    draws = synthesizer.draws(FITS[fit][0].response)
    for parameter, column in FITS[fit][1].items():
        found = draws[parameter].to_numpy()[chain == n_chains - 1][0]
        expected = float(VALUES.loc[(fit, column)]["first_of_last_chain"])
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize(("fit", "file"), pairs(WITHOUT_CHAINS))
def test_draws_whose_chains_nobody_told(fit, file):
    synthesizer = read(fit, file)
    assert_values_are_those_of_r(synthesizer, fit)
    assert synthesizer.models[0].posterior.chain is None


def test_a_single_chain_of_coda():
    posterior = read("jags", "jags_mcmc.rds").models[0].posterior
    assert list(np.bincount(posterior.chain)) == [int(VALUES.loc["jags"]["n_draws"].iloc[0]) // 2]
    first = float(VALUES.loc[("jags", "beta[2]")]["first"])
    np.testing.assert_allclose(posterior.coefficients[0, 1, 0], first, rtol=1e-14)


@pytest.mark.parametrize(("file", "told"), [("linear.csv", False), ("linear_array.rds", True)])
def test_the_notes_say_whether_chains_are_known(file, told):
    synthesizer = read("linear", file)
    release = pd.read_csv(FOLDER / "people.csv")
    risk = sr.attribute_risk(synthesizer, release, records=[0, 1], question="paper")
    assert any("of one chain" in note for note in risk.notes) is not told


def test_the_same_values_of_every_file_of_one_fit():
    """To the last bit, but for text: ascii = TRUE has 16 digits."""
    files = [name for name in WITH_CHAINS["linear"] if "ascii" not in name and "csv" not in name]
    first, *others = (read("linear", file) for file in files)
    for other in others:
        np.testing.assert_array_equal(
            other.models[0].posterior.coefficients, first.models[0].posterior.coefficients
        )


# -- data ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("file", ["people.rds", "people_tibble.rds"])
def test_people_are_those_of_the_csv(file):
    plan = [FITS["linear"][0], FITS["brms_classes"][0]]
    draws = [FOLDER / "linear.csv", FOLDER / "brms_classes.rds"]
    synthesizer = sr.Synthesizer.from_draws(plan, FOLDER / file, draws)
    expected = pd.read_csv(FOLDER / "people.csv")
    pd.testing.assert_frame_equal(
        synthesizer.data.astype({"Region": "str", "Owner": "str", "Class": "str"}), expected
    )
    assert list(synthesizer.data["Region"].cat.categories) == ["North East", "Süd", "West-1"]


def test_a_release_may_be_a_file_of_r():
    synthesizer = read("linear", "linear_array.rds")
    by_file = sr.attribute_risk(
        synthesizer, FOLDER / "people_tibble.rds", records=[0], question="paper"
    )
    by_frame = sr.attribute_risk(
        synthesizer, pd.read_csv(FOLDER / "people.csv"), records=[0], question="paper"
    )
    pd.testing.assert_frame_equal(by_file.records, by_frame.records)


@pytest.mark.parametrize("file", ["kinds.rds", "kinds_no_integer64_ascii.rds"])
def test_columns_of_every_kind(file):
    table = read_table(FOLDER / file, "T")
    nan = np.nan
    factor = pd.Categorical(["b", "a", None, "b"], ["b", "a", "unused"])
    ordered = pd.Categorical(["low", "high", "mid", None], ["low", "mid", "high"], ordered=True)
    expected = pd.DataFrame(
        {
            "factor": factor,
            "ordered": ordered,
            "date": pd.to_datetime(["1999-12-31", None, "2024-02-29", "1969-07-20"]),
            "time": pd.to_datetime(
                ["2024-02-29 12:30:00", None, "1970-01-01", "2000-01-01 00:00:01"],
                utc=True,
                format="ISO8601",
            ),
            "integer": [3.0, nan, -1.0, 2147483647.0],
            "double": [0.1, nan, 1e300, -0.0],
            "logical": pd.array([True, None, False, True], dtype="boolean"),
            "up": [1, 2, 3, 4],
            "down": [4, 3, 2, 1],
            "text": ["Zürich", None, "", "NA"],
            "digits": ["7", "8", "9", "10"],
            "shown": ["0.3", "1e+05", None, "-1234.5"],
            "with_na": pd.Categorical(["b", None, "c", "b"], ["b", "c"]),
            "scaled": np.array([-2.0, -1.0, 0.0, 3.0]) / np.sqrt(14 / 3),
            "integer64": [7.0, nan, -1.0, 2.0**32],
            "latin1": ["Malmö"] * 4,
            "labelled": [1.0, 2.0, nan, 9.0],
        }
    )
    times = {"date": "datetime64[s]", "time": "datetime64[s, UTC]"}
    pd.testing.assert_frame_equal(table.astype(times), expected[list(table)].astype(times))
    assert set(expected) - set(table) <= ({"integer64"} if "ascii" in file else set())


def test_arithmetic_with_gaps_does_not_warn():
    """R's missing number signals; a quiet one is read."""
    numbers = read_table(FOLDER / "kinds.rds", "T")["double"].to_numpy()
    with np.errstate(invalid="raise"):
        assert np.isnan(np.diff(numbers)).tolist() == [True, True, False]


def test_rows_keep_the_names_that_r_gave_them():
    assert list(read_table(FOLDER / "kinds_rows.rds", "T").index) == [4, 2]
    assert list(read_table(FOLDER / "kinds_row_names.rds", "T").index) == ["Anna", "Bo"]
    for file in ("kinds.rds", "kinds_row_numbers.rds"):
        table = read_table(FOLDER / file, "T")
        assert list(table.index) == list(range(len(table)))


# -- what is refused ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("two.RData", r"2 objects \(people, draws\); save the one"),
        ("list.rds", "no data frame or matrix"),
        ("tables.rds", r"a list of 2 tables. Save each by itself in R: saveRDS\(x\[\[1\]\]"),
        ("vector.rds", "no data frame or matrix"),
        ("list_column.rds", "column 'nested', is no vector"),
        ("matrix_column.rds", "column 'nested', is a matrix"),
        ("kinds_ascii.rds", "column 'integer64', lost digits"),
        ("matrix_no_names.rds", "columns have no names"),
        ("three_chains.rds", "4 draws, which are not 3 chains"),
        ("same_names.rds", "more than one column is called x"),
        ("array_no_names.rds", "not called chain"),
        ("whole_stanreg.rds", r"class stanreg.*as_draws_df\(as\.array\(fit\)\)"),
        ("whole_brmsfit.rds", r"class brmsfit.*as_draws_df\(fit\)"),
    ],
)
def test_what_is_no_table_is_refused(file, why):
    with pytest.raises(sr.SynriskError, match=why) as raised:
        read("linear", file)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


@pytest.mark.parametrize("file", ["linear_xz.rds", "linear_uncompressed.rds", "linear.RData"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_part_of_a_file_is_refused(tmp_path, file, share):
    whole = (FOLDER / file).read_bytes()
    part = tmp_path / file
    part.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(sr.SynriskError, match=r"cut short|cannot be unpacked") as raised:
        sr.Synthesizer.from_draws(FITS["linear"][0], FOLDER / "people.csv", part)
    assert raised.value.__context__ is None


def test_the_suffix_does_not_tell_what_save_wrote(tmp_path):
    (tmp_path / "draws.rds").write_bytes((FOLDER / "linear.RData").read_bytes())
    synthesizer = sr.Synthesizer.from_draws(
        FITS["linear"][0], FOLDER / "people.csv", tmp_path / "draws.rds"
    )
    assert_values_are_those_of_r(synthesizer, "linear")


def test_without_rdata_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(sr.SynriskError, match=r"synrisk\[r\]"):
        read("linear", "linear_array.rds", people="people.csv")


# -- R's own names, once more through read.csv ---------------------------------------------------
@pytest.mark.parametrize(
    ("header", "chain"),
    [
        ('"","(Intercept)","Spend","sigma"', None),  # write.csv with row names
        ('"Unnamed: 0","(Intercept)","Spend","sigma"', None),
        ('"X","X.Intercept.","Spend","sigma"', None),  # read.csv and write.csv once more
        ('".chain","Intercept","Spend","sigma"', [0, 0, 0, 1]),
        ('"CHAIN","beta.1.","beta.2.","sigma"', [0, 0, 0, 1]),
    ],
)
def test_names_as_they_come_back_from_r(tmp_path, header, chain):
    counts = [1, 2, 3, 4] if chain is None else [1, 1, 1, 2]
    lines = [f'"{k}",0.5,{slope}.0,1.0' for slope, k in enumerate(counts, 1)]
    (tmp_path / "fit.csv").write_text("\n".join([header, *lines]), encoding="utf-8")
    synthesizer = sr.Synthesizer.from_draws(
        FITS["jags"][0], FOLDER / "people.csv", tmp_path / "fit.csv"
    )
    posterior = synthesizer.models[0].posterior
    assert list(posterior.coefficients[:, 1, 0]) == [1, 2, 3, 4]
    assert (None if posterior.chain is None else list(posterior.chain)) == chain
