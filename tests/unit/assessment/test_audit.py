"""The audit of two files: from files to a verdict, a report, a saved file."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import synrisk as sr
from synrisk.data import netcdf
from synrisk.study.cli import app

N = 300


def people(seed, n=N):
    rng = np.random.default_rng(seed)
    income = np.exp(10 + 0.7 * rng.normal(size=n))
    return pd.DataFrame(
        {
            "income": income,
            "rent": 40 * np.sqrt(income) * np.exp(0.3 * rng.normal(size=n)),
            "region": rng.choice(["Quovadis", "Ramsgate", "Zyxwville"], n),
        },
        index=pd.Index([f"P{k}" for k in rng.permutation(n) + 70_000], name="case"),
    )


def with_copies(fake, real, n):
    made = fake.copy()
    made.iloc[:n] = real.iloc[:n].to_numpy()
    return made.astype({"income": float, "rent": float}).reset_index(drop=True)


REAL, FAKE, OTHERS = people(1), people(2).reset_index(drop=True), people(3)
COPIED = with_copies(FAKE, REAL, 40)


@pytest.fixture(scope="module")
def honest():
    return sr.audit(REAL, FAKE, seed=1)


@pytest.fixture(scope="module")
def copied():
    return sr.audit(REAL, [FAKE, COPIED], holdout=OTHERS, seed=1)


def test_who_was_in_the_file_is_told_from_people_who_were_not(honest, copied):
    first, second = (copied.membership(dataset) for dataset in (1, 2))
    assert first.auc_interval[0] < 0.5 < first.auc_interval[1]  # this one is honest
    assert second.epsilon > first.epsilon == 0.0
    assert (second.n_members, second.n_others) == (N, N)
    for call in (honest.membership, lambda: copied.membership(3), lambda: copied.membership(True)):
        with pytest.raises(sr.OptionError):
            call()


def test_an_honest_release_passes_and_says_what_is_not_known(honest):
    verdict = honest.verdict()
    assert verdict.outcome == "passed"
    assert "may still disclose" in verdict.sentences()[-1]
    assert "may still disclose" in honest.notes[-1]
    assert honest.records["gain"].max() < 0.1


def test_copied_people_fail_it_and_are_named(copied):
    verdict = copied.verdict(rows="people")
    assert verdict.outcome == "failed"
    records = copied.records
    assert (records.index == REAL.index).all()
    assert (records["gain"].iloc[:40] > 0.2).mean() > 0.9
    assert records["gain"].iloc[40:].max() < 0.1
    assert records["too_close"].iloc[:40].all()
    assert set(verdict.records.index) <= set(REAL.index[:40])


def test_records_hold_after_less_before_of_the_column_of_which_most_is_learnt(copied):
    records = copied.records
    gains = records[["gain_income", "gain_rent", "gain_region"]]
    np.testing.assert_allclose(records["gain"], gains.max(axis=1))
    np.testing.assert_allclose(records["gain"], records["after"] - records["before"], atol=1e-12)
    probabilities = records.filter(regex="^(before|after|alone)")
    assert ((probabilities >= 0) & (probabilities <= 1)).all().all()
    assert (records.filter(like="gain_error") >= 0).all().all()


def test_people_held_out_are_the_control(copied):
    row = copied.summary().loc["joint"]
    assert row["low"] > 0.02
    assert abs(row["gain_held_out"]) < 0.01
    assert len(copied.held_out) == N


def test_held_out_people_who_stand_in_the_file_are_told_and_left_out(tmp_path):
    shared = OTHERS.copy()
    shared.iloc[: N // 5] = REAL.iloc[: N // 5].to_numpy()
    shared = shared.astype({"income": float, "rent": float})
    found = sr.audit(REAL, COPIED, holdout=shared, seed=1)
    assert found.held_out_copies == N // 5
    assert len(found.held_out) == N - N // 5
    alone = sr.audit(REAL, COPIED, holdout=shared.iloc[N // 5 :], seed=1)
    assert alone.held_out_copies == 0
    pd.testing.assert_frame_equal(found.held_out, alone.held_out)
    told = f"{N // 5} rows stand in the confidential data too"
    assert [told in note for note in found.notes].count(True) == 1
    assert not any(told in note for note in alone.notes)
    found.save(tmp_path / "audit.nc")
    loaded = sr.Audit.load(tmp_path / "audit.nc")
    assert loaded.held_out_copies == N // 5
    assert loaded.notes == found.notes


def test_held_out_people_of_few_columns_agree_with_others_by_chance():
    columns = ["region"]
    tables = [one[columns].assign(kids=rng_kids(seed)) for seed, one in enumerate((REAL, FAKE))]
    found = sr.audit(*tables, holdout=OTHERS[columns].assign(kids=rng_kids(2)), seed=1)
    assert found.held_out_copies == 0
    assert len(found.held_out) == N


def test_many_rows_of_few_columns_agree_with_anybody():
    def few_columns(seed, n):
        rng = np.random.default_rng(seed)
        return pd.DataFrame(
            {"age": rng.integers(20, 80, n), "region": rng.choice(list("abcdef"), n)}
        )

    made = few_columns(3, 4_000)
    found = sr.audit(few_columns(1, 200), made, holdout=few_columns(2, 200), seed=1)
    assert len(found.held_out) == 200


def rng_kids(seed):
    return np.random.default_rng(seed).poisson(1.0, N)


def test_the_same_seed_gives_the_same_numbers(honest):
    assert sr.audit(REAL, FAKE, seed=1).records.equals(honest.records)
    assert not sr.audit(REAL, FAKE, seed=2).records.equals(honest.records)


def test_the_order_of_columns_and_the_index_of_a_release_do_not_matter(honest):
    turned = FAKE[["region", "rent", "income"]].set_index(np.arange(N) + 9)
    assert sr.audit(REAL, turned, seed=1).records.equals(honest.records)


def test_it_is_saved_and_loaded_whole(copied, tmp_path):
    copied.save(tmp_path / "audit.nc")
    assert (tmp_path / "audit.nc").stat().st_mode & 0o077 == 0
    loaded = sr.Audit.load(tmp_path / "audit.nc")
    assert loaded.records.equals(copied.records)
    assert loaded.summary().equals(copied.summary())
    assert str(loaded.verdict()) == str(copied.verdict())
    assert loaded.notes == copied.notes
    with pytest.raises(sr.FileError):
        sr.AttributeRisk.load(tmp_path / "audit.nc")


@pytest.mark.parametrize("changed", ["sensitive", "keys", "kept", "levels", "held_out_copies"])
def test_a_file_of_other_columns_or_levels_is_refused(copied, tmp_path, changed):
    """Somebody changed it and signed it anew."""
    path = tmp_path / "audit.nc"
    copied.save(path)
    contents = netcdf.load(path, "an audit")
    meta, arrays = json.loads(json.dumps(contents.meta)), dict(contents.arrays)
    if changed == "levels":
        of_people = meta["audit"]["people"]["values"]
        arrays[of_people] = arrays[of_people] + 2.0
    elif changed == "held_out_copies":
        meta["audit"][changed] = -1
    else:
        names = meta["audit"][changed] or ["income"]
        meta["audit"][changed] = ["other", *names[1:]]
    netcdf.save(path, netcdf.Contents(contents.kind, meta, arrays, contents.table))
    with pytest.raises(sr.FileError, match="not among its own"):
        sr.Audit.load(path)


def test_a_report_for_sharing_holds_no_value_of_anybody(copied, tmp_path):
    copied.report(tmp_path / "a.html")
    facts = json.loads((tmp_path / "a.json").read_text())
    shown = (tmp_path / "a.html").read_text() + (tmp_path / "a.json").read_text()
    assert facts["verdict"]["outcome"] == "failed"
    assert facts["gains"] == {}
    assert "Nothing is told of a release that does not pass." in shown
    for label in REAL.index:
        assert label not in shown
    for gain in copied.records["gain"].nlargest(5):
        assert f"{gain:.4g}" not in shown
    reasons = facts["verdict"]["reasons"]
    assert all(
        set(one) <= {"kind", "outcome", "of", "limits", "share", "sentence"} for one in reasons
    )
    assert "riskiest" not in facts
    assert [one["what"] for one in facts["hashes"]] == [
        "synthetic dataset 1",
        "synthetic dataset 2",
    ]


def test_a_report_for_inside_has_everything_and_one_reader(copied, tmp_path):
    copied.report(tmp_path / "b.html", kind="inside", rows="people")
    assert (tmp_path / "b.html").stat().st_mode & 0o077 == 0
    page = (tmp_path / "b.html").read_text()
    assert str(copied.records["gain"].idxmax()) in page
    assert "People held out" in page
    assert "<script" not in page


def test_keys_lead_to_the_measures_that_boards_cite(tmp_path):
    found = sr.audit(REAL, FAKE, keys=["region"], sensitive="income", seed=1)
    measures = found.board_measures()
    assert measures["DiSCO"].chance >= 0
    found.report(tmp_path / "c.html", kind="inside")
    assert "DiSCO" in (tmp_path / "c.html").read_text()
    assert list(found.records.filter(like="gain_").columns) == [
        "gain_error",
        "gain_income",
        "gain_error_income",
    ]


def test_missing_values_and_new_levels_are_values_like_others():
    real, fake = people(4), people(5)
    real.iloc[::7, 0] = np.nan
    fake.iloc[::6, 0] = np.nan
    real.iloc[::9, 2] = None
    fake.iloc[3, 2] = "Elsewhere"
    found = sr.audit(real, fake, seed=1)
    assert found.verdict().outcome == "passed"
    assert np.isfinite(found.records.to_numpy(dtype=float)).all()


def test_a_column_that_follows_from_kept_ones_is_not_called_a_copy():
    rng = np.random.default_rng(6)
    x, z = rng.normal(size=600), rng.normal(size=600)
    real, fake = (
        pd.DataFrame({"x": x, "z": z, "y": np.sin(3 * x) + z + 0.05 * rng.normal(size=600)})
        for _ in range(2)
    )
    found = sr.audit(real, fake, seed=1)
    assert found.verdict().outcome in ("passed", "cannot be judged")


def test_plots_are_drawn(copied):
    for axes in (
        copied.plot.before_after(),
        copied.plot.before_after(of="income"),
        copied.plot.exceedance(),
        copied.plot.exceedance(of="rent", measure="lift"),
        copied.plot.closeness(),
    ):
        assert axes.get_xlabel()
        axes.figure.canvas.draw()
    assert "closeness()" in repr(copied.plot)


def test_the_command_writes_a_folder_and_exits_by_the_verdict(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    REAL.to_csv("real.csv", index=False)
    FAKE.to_csv("fake.csv", index=False)
    COPIED.to_csv("copied.csv", index=False)
    run = CliRunner().invoke
    done = run(app, ["audit", "real.csv", "fake.csv", "--folder", "out", "--seed", "1"])
    assert done.exit_code == 0, done.output
    assert "Passed. It keeps the limits as far as two files tell" in done.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "audit.nc", "manifest.json", "records.csv", "report-inside.html", "report-inside.json",
        "report.html", "report.json", "summary.json",
    ]  # fmt: skip
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["verdict"]["outcome"] == (
        "passed"
    )
    again = run(app, ["audit", "real.csv", "copied.csv", "--sensitive", "income", "-q"])
    assert again.exit_code == 1
    assert run(app, ["audit", "real.csv", "fake.csv", "--keys", "incme"]).exit_code == 2
    assert run(app, ["audit", "real.csv"]).exit_code == 2


def numbers_from_whole_ones(seed, n=N):
    """Nothing is written with few digits here, and much repeats by itself."""
    rng = np.random.default_rng(seed)
    height, weight = rng.normal(170, 9, n).round(), rng.normal(72, 12, n).round()
    return pd.DataFrame(
        {
            "bmi": weight / (height / 100) ** 2,
            "a week": rng.normal(40_000, 12_000, n).round(-2) / 52,
            "years": rng.integers(6_000, 30_000, n) / 365.25,
        }
    )


@pytest.mark.parametrize("seed", range(4))
def test_numbers_that_repeat_by_themselves_are_no_copies(seed):
    real, fake = numbers_from_whole_ones(seed), numbers_from_whole_ones(seed + 50)
    assert sr.audit(real, fake, seed=1).verdict().outcome == "passed"
    fake.iloc[:30] = real.iloc[:30]
    assert sr.audit(real, fake, seed=1).verdict().outcome == "failed"


def test_a_few_exact_repeats_where_nothing_repeats_are_undecided():
    fake = FAKE.copy()
    fake.loc[7, "rent"] = REAL["rent"].iloc[11]
    verdict = sr.audit(REAL, fake, seed=1).verdict()
    assert verdict.outcome == "cannot be judged"
    assert "it keeps the limits, but a check is undecided" in verdict.meaning()


def test_copies_are_looked_for_in_all_columns_whatever_is_sought():
    found = sr.audit(REAL, COPIED, keys=["region"], sensitive=["rent"], seed=1)
    assert found.verdict().outcome == "failed"
    real, copied = (one.assign(day="2026-01-31") for one in (REAL, COPIED))
    found = sr.audit(real, copied, keys=["region"], sensitive=["rent"], seed=1)
    assert "Cannot be compared, and not looked at: day." in found.notes


def test_what_is_released_as_it_is_or_was_added_is_a_warning():
    kept = REAL.reset_index(drop=True).assign(rent=FAKE["rent"])
    verdict = sr.audit(REAL, kept, seed=1).verdict()
    assert verdict.headline == "Passed, with 1 warning"
    assert "in the columns that are not released as they are" in " ".join(verdict.sentences())
    verdict = sr.audit(REAL, [FAKE, FAKE.assign(extra=1)], seed=1).verdict()
    mark, sentence = verdict.marked(sharing=True)[0]
    assert mark == "warning"
    assert sentence.startswith("In the release alone, and not looked at: extra.")


@pytest.mark.parametrize(
    "truth",
    [REAL["region"], REAL["region"].astype("category").cat.codes, REAL["income"]],
    ids=["levels", "codes", "amounts"],
)
def test_an_added_column_that_tells_another_is_refused(truth):
    with pytest.raises(sr.DisclosureError, match=r"tells '(region|income)' of every person"):
        sr.audit(REAL, FAKE.assign(note=truth.to_numpy()))


def test_one_name_of_a_person_is_too_many():
    real, fake = REAL.assign(tax=REAL.index), FAKE.assign(tax=[f"X{k * 7919}" for k in range(N)])
    assert sr.audit(real, fake, seed=1).verdict().outcome == "passed"
    fake.loc[5, "tax"] = real["tax"].iloc[7]
    with pytest.raises(sr.DisclosureError, match="names people"):
        sr.audit(real, fake, seed=1)


def test_a_column_that_alone_is_sought_is_named():
    verdict = sr.audit(REAL, FAKE, sensitive="rent", seed=1).verdict()
    assert "probability of the true rent" in verdict.sentences()[0]


def test_audits_stand_side_by_side(honest, copied):
    limit = sr.Criteria(gain=0.1)
    found = sr.compare({"A": honest, "B": copied}, criteria=limit)
    assert list(found.table["verdict"]) == ["passed", "failed"]
    assert list(found.table["judged"]) == ["yes", "no"]
    assert "numbers that are repeated" in found.table.loc["B", "why"]
    gain = copied.records["gain"]
    row = found.table.loc["B"]
    assert (row["gain_max"], row["gain_q95"]) == (gain.max(), gain.quantile(0.95))
    assert row["too_close"] == copied.records["too_close"].sum()
    made = sr.utility(REAL, FAKE, propensity="interactions")
    assert found.table.loc["A", "pmse_ratio"] == made.propensity["ratio"].iloc[0]
    axes = found.plot.map()
    axes.figure.canvas.draw()
    assert "the most that the release adds" in axes.get_xlabel()
    with pytest.raises(sr.OptionError, match="no synthesizer"):
        found.plot.curve()
    with pytest.raises(sr.OptionError, match="risk must be one of"):
        found.plot.map(risk="log_odds_range_q95")


def test_audits_that_ask_otherwise_are_said_to_be_no_comparison(honest):
    other = sr.audit(REAL, FAKE, keys=["rent"], seed=1)
    found = sr.compare({"A": honest, "B": other})
    assert found.cautions == ("sensitive columns differ", "known columns differ")
    assert "'B': income, region" in " ".join(found.notes)


def test_gaps_and_levels_of_the_release_alone_are_compared_too():
    real, fake = people(4), people(5)
    real.iloc[::7, 0] = np.nan
    fake.iloc[3, 2] = "Elsewhere"
    found = sr.compare({"A": sr.audit(real, fake, seed=1), "B": sr.audit(real, people(6), seed=1)})
    assert np.isfinite(found.table["pmse_ratio"].astype(float)).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda own: {"A": own, "B": (1, FAKE)}, "compare audits with audits"),
        (lambda own: {"A": (own, FAKE)}, "as the audit alone"),
        (lambda own: {"A": own, 2: own}, "by name"),
        (lambda own: {"A": own, "B": sr.audit(OTHERS, FAKE, seed=1)}, "same confidential records"),
    ],
)
def test_what_cannot_be_compared_with_an_audit(honest, make, words):
    with pytest.raises(sr.OptionError, match=words):
        sr.compare(make(honest))
    with pytest.raises(sr.OptionError, match="not for audits"):
        sr.compare({"A": honest}, risk={"tolerance": 0.1})


def test_saved_audits_are_compared_by_a_command(honest, copied, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one").mkdir()
    honest.save("one/audit.nc")
    copied.save("two.nc")
    run = CliRunner().invoke
    done = run(app, ["compare", "one", "two.nc"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[1].startswith("one")
    assert lines[1].rstrip().endswith("passed")
    assert lines[2].rstrip().endswith("failed")
    assert "Too close: In dataset 2" in done.output
    for names, words in (
        (["one"], "two audits or more"),
        (["one", "one"], "named twice"),
        (["one", "."], "holds no audit.nc"),
    ):
        wrong = run(app, ["compare", *names])
        assert wrong.exit_code == 2
        assert words in wrong.stderr


@pytest.mark.parametrize("order", ["in place", "shuffled"])
def test_a_sensitive_column_that_is_released_as_it_is_fails(order):
    rent = REAL["rent"].to_numpy()
    rent = rent if order == "in place" else np.random.default_rng(1).permutation(rent)
    release = FAKE.assign(rent=rent)
    verdict = sr.audit(REAL, release, seed=1, sensitive=["rent"]).verdict()
    assert verdict.outcome == "failed"
    told = [one for one in verdict.sentences() if "Called sensitive, and released as they" in one]
    assert len(told) == 1
    assert "rent" in told[0]


def test_who_is_alone_with_values_that_are_released_as_they_are_is_counted():
    release = FAKE.assign(rent=REAL["rent"].to_numpy())
    verdict = sr.audit(REAL, release, seed=1).verdict()
    n_alone = int((REAL["rent"].value_counts() == 1).sum())
    assert n_alone > 0
    told = " ".join(verdict.sentences())
    assert f"{n_alone:,} of {len(REAL):,} records are alone with their values there" in told
    assert "alone with their values" not in " ".join(verdict.sentences(sharing=True))


def test_values_that_were_left_blank_are_not_judged():
    """Gaps for the ill alone: whoever knows the keys reads the illness off them."""
    rng = np.random.default_rng(3)
    people = pd.DataFrame({"x": rng.normal(size=200), "ill": rng.choice(["no", "yes"], 200)})
    made = people.assign(ill=rng.choice(["no", "yes"], 200))
    blank = made.assign(ill=made["ill"].where(people["ill"] == "no", None))
    verdict = sr.audit(people, blank, keys=["x"], sensitive=["ill"], seed=1).verdict()
    assert verdict.outcome == "cannot be judged"
    assert "Missing in the release more often than in the confidential file: ill" in str(verdict)
    # As many gaps as the data have, of others, are nothing to speak of.
    people["ill"] = people["ill"].where(rng.random(200) < 0.8, None)
    made["ill"] = made["ill"].where(rng.random(200) < 0.8, None)
    honest = sr.audit(people, made, keys=["x"], sensitive=["ill"], seed=1).verdict()
    assert "Missing in the release" not in str(honest)


def test_a_saved_audit_without_a_dataset_is_refused(honest, tmp_path):
    path = tmp_path / "audit.nc"
    honest.save(path)
    contents = netcdf.load(path, "an audit")
    meta = json.loads(json.dumps(contents.meta))
    meta["audit"]["release"] = []
    netcdf.save(path, netcdf.Contents(contents.kind, meta, contents.arrays, contents.table))
    with pytest.raises(sr.FileError, match="no synthetic dataset"):
        sr.Audit.load(path)
