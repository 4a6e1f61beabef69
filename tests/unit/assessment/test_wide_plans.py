"""Plans of many variables: what is evaluated, what is said to be left out, and what is refused."""

import json

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from helpers.secret import SECRET

import synrisk as sr

mpl.use("Agg")
pytestmark = pytest.mark.filterwarnings("ignore::synrisk.ReliabilityWarning")

N = 7


def chain(n_records=150, n=N):
    rng = np.random.default_rng(4)
    columns = {"x": rng.normal(size=n_records)}
    before = columns["x"]
    for k in range(n):
        before = 0.4 * before + rng.normal(size=n_records)
        columns[f"v{k}"] = before
    return pd.DataFrame(columns)


def plan(n=N):
    return [sr.Regression(f"v{k} ~ {f'v{k - 1}' if k else 'x'}") for k in range(n)]


@pytest.fixture(scope="module")
def made():
    synthesizer = sr.fit(plan(), chain(), n_draws=50, seed=1)
    return synthesizer, synthesizer.synthesize(seed=SECRET)


@pytest.fixture(scope="module")
def risk(made):
    return sr.attribute_risk(*made)


def test_every_variable_has_its_numbers_and_so_have_all_together(risk):
    records = risk.records
    assert not risk.is_joint
    assert "by variable" in repr(risk)
    for of in ("", *(f"_v{k}" for k in range(N))):
        assert records[f"before{of}"].between(0, 1).all()
        assert records[f"after{of}"].between(0, 1).all()
        assert records[f"gain_mcse{of}"].notna().all()
    assert (records["after"] <= records[[f"after_v{k}" for k in range(N)]].min(axis=1)).all()
    assert records["log_odds_range"].notna().all()
    for of in ("rank", "rank_low", "rank_high", "log_odds_range_99"):
        assert records[of].isna().all()
    for k in range(N):
        assert records[f"rank_v{k}"].ge(1).all()
        assert records[f"log_odds_range_99_v{k}"].between(0, np.inf).all()


def test_it_says_what_is_not_known(risk):
    (note,) = [note for note in risk.notes if "joint grid" in note]
    assert "too large" in note
    assert "rank" in note
    assert np.isnan(risk.summary().loc["joint", "share_best"])
    with pytest.raises(sr.OptionError, match="of a variable, of="):
        risk.plot.ranks()
    risk.plot.ranks(of="v3")
    with pytest.raises(sr.OptionError, match=r"joint grid of 7 variables has .* marginal"):
        risk.joint(0)
    with pytest.raises(sr.OptionError, match=r"joint grid of 7 variables"):
        risk.ranking(0)


def test_the_verdict_judges_every_variable(risk):
    verdict = risk.verdict(further=0)
    limits = [reason for reason in verdict.to_json()["reasons"] if reason["kind"] == "limit"]
    assert [one["of"] for one in limits] == ["joint", *(f"v{k}" for k in range(N))]
    tight = risk.verdict(sr.Criteria(variables={"v2": sr.Criteria(gain=0.0)}), further=0)
    assert tight.outcome == "failed"
    assert risk.verdict(sr.Criteria(log_odds_range=1e-9), further=0).outcome == "failed"


def test_guesses_are_as_many_as_cliques_allow_not_as_the_joint_does(risk):
    assert all(grid.n_guesses > 15 for grid in risk._evaluation.grids)
    assert not any(grid.is_coarse for grid in risk._evaluation.grids)


def test_it_is_saved_and_loaded(risk, tmp_path):
    risk.save(tmp_path / "risk.nc")
    loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
    pd.testing.assert_frame_equal(loaded.records, risk.records)
    assert not loaded.is_joint
    assert loaded.notes == risk.notes
    again = loaded._asked_otherwise(loaded._evaluation.question)
    np.testing.assert_array_equal(again["v4", "gain"].value, risk.measures["v4", "gain"].value)


@pytest.mark.parametrize("kind", ["inside", "sharing"])
def test_reports_are_written(risk, made, tmp_path, kind):
    path = risk.report(tmp_path / "page.html", kind=kind, synthetic=made[1])
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    if kind == "inside":
        assert any("joint grid" in note for note in facts["notes"])
        assert facts["summary"][0]["n_best"] == "–"
        largest = [max(row[f"gain_v{k}"] for k in range(N)) for row in facts["riskiest"]]
        assert largest == sorted(largest, reverse=True)


def test_releases_are_compared(made):
    synthesizer, release = made
    other = synthesizer.synthesize(seed=SECRET + 1)
    some = sr.attribute_risk(synthesizer, release, variables=["v1", "v3"], on_unreliable="flag")
    compared = sr.compare({"one": (some, release), "two": (synthesizer, other)})
    gains = some.records[["gain_v1", "gain_v3"]].max().max()
    assert compared.table.loc["one", "gain_max_of_one"] == gains
    assert compared.table["gain_max"].notna().all()
    assert compared.cautions[0] == "evaluated variables differ"


def test_asked_for_the_joint_is_evaluated_or_refused(made):
    synthesizer, release = made
    with pytest.raises(sr.GuessError, match=r"joint='auto'") as caught:
        sr.attribute_risk(synthesizer, release, joint="drop")
    assert "estimator=" not in str(caught.value)
    assert "7 for each variable with more would do" in str(caught.value)
    few = sr.attribute_risk(
        synthesizer, release, joint="drop", question="paper", guesses=3, records=[0, 1]
    )
    assert few.is_joint
    assert few.records["rank"].between(1, 3**N).all()


def test_advice_is_never_what_is_in_use(made):
    """Guesses, draws and estimator are named only where another choice of them would do."""
    with pytest.raises(sr.GuessError) as caught:
        sr.attribute_risk(*made, estimator="paper", question="paper", guesses=9)
    message = str(caught.value)
    assert "7 for each variable with more would do (guesses={'v0': 7})" in message
    assert "estimator='importance'" in message
    assert "joint=" not in message
    fits = sr.attribute_risk(
        *made, estimator="paper", question="paper", guesses=7, records=[0], n_draws=10,
        diagnostics=False,
    )  # fmt: skip
    assert fits.is_joint


def test_more_cells_than_an_integer_counts():
    n = 15  # 20 guesses each: 3e19
    synthesizer = sr.fit(plan(n), chain(120, n), n_draws=20, seed=1)
    release = synthesizer.synthesize(seed=SECRET)
    risk = sr.attribute_risk(
        synthesizer, release, question="paper", guesses=20, records=[3], diagnostics=False
    )
    assert np.isnan(risk.records["n_guesses"].iloc[0])
    assert risk.records["before"].iloc[0] == pytest.approx(20.0**-n)
    assert risk.records["before_v14"].iloc[0] == pytest.approx(0.05)


class TestSomeVariables:
    def test_they_alone_are_shown(self, made, risk):
        some = sr.attribute_risk(*made, variables=["v5", "v2"])
        assert some.not_evaluated == ("v0", "v1", "v3", "v4", "v6")
        assert list(some.summary().index) == ["joint", "v2", "v5"]
        assert any("summed out" in note for note in some.notes)
        for name in ("v2", "v5"):
            for column in (f"before_{name}", f"after_{name}", f"gain_mcse_{name}"):
                np.testing.assert_allclose(some.records[column], risk.records[column], rtol=1e-9)

    def test_the_verdict_is_open_where_others_are_limited(self, made):
        some = sr.attribute_risk(*made, variables="v2")
        verdict = some.verdict(further=0)
        assert verdict.outcome != "passed"
        assert any("not evaluated" in text for text in verdict.sentences(sharing=True))
        named = sr.Criteria(variables={"v2": sr.Criteria(gain=0.9)}, unchecked_release="accept")
        judged = some.verdict(named, further=0)
        assert judged.of_limits == "passed"
        assert all(mark != "undecided" or "not evaluated" not in text
                   for mark, text in judged.marked())  # fmt: skip
        assert "on the variables that were evaluated" in judged.meaning() or (
            judged.outcome != "passed"
        )
        of_other = sr.Criteria(variables={"v3": sr.Criteria(gain=0.9)})
        assert some.verdict(of_other, further=0).outcome != "passed"

    def test_they_are_told_in_reports(self, made, tmp_path):
        some = sr.attribute_risk(*made, variables=["v2"])
        path = some.report(tmp_path / "page.html")
        page = path.read_text(encoding="utf-8")
        assert "Synthesized too, and not evaluated: v0, v1, v3, v4, v5, v6" in page
        some.save(tmp_path / "risk.nc")
        loaded = sr.AttributeRisk.load(tmp_path / "risk.nc")
        assert loaded.not_evaluated == some.not_evaluated
        pd.testing.assert_frame_equal(loaded.records, some.records)

    @pytest.mark.parametrize(
        ("variables", "words"),
        [
            ([], "is empty"),
            (["v1", "v1"], "repeats"),
            (["v11"], "not synthesized.*Did you mean 'v1'"),
            (["x"], "not synthesized"),
            (3, "names of synthesized variables"),
            ([3], "not synthesized"),
        ],
        ids=str,
    )
    def test_what_is_not_there_is_refused(self, made, variables, words):
        with pytest.raises(sr.OptionError, match=words):
            sr.attribute_risk(*made, variables=variables)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"estimator": "paper", "question": "paper"}, "one table a model"),
            ({"joint": "keep"}, "joint='keep'"),
            ({"intruder_prior": np.zeros((2, 2))}, "joint grid needs all"),
        ],
        ids=["paper", "keep", "table"],
    )
    def test_what_needs_the_joint_is_refused(self, made, options, words):
        with pytest.raises(sr.OptionError, match=words):
            sr.attribute_risk(*made, variables=["v1"], **options)

    def test_all_of_them_are_no_choice(self, made, risk):
        same = sr.attribute_risk(*made, variables=[f"v{k}" for k in range(N)])
        pd.testing.assert_frame_equal(same.records, risk.records)


def test_a_clique_that_is_too_wide_is_named():
    """Six variables predict the seventh: however they are summed out, all seven stand together."""
    data = chain(150)
    regressions = [sr.Regression(f"v{k} ~ x") for k in range(N - 1)]
    effect = " + ".join(f"v{k}" for k in range(N - 1))
    synthesizer = sr.fit([*regressions, sr.Regression(f"v6 ~ {effect}")], data, n_draws=50, seed=1)
    release = synthesizer.synthesize(seed=SECRET)
    with pytest.raises(sr.GuessError, match="v0, v1, v2, v3, v4, v5, v6 hang together") as caught:
        sr.attribute_risk(synthesizer, release)
    message = str(caught.value)
    assert "10 × 10 × 10 × 10 × 10 × 10 × 10" in message
    assert "fewer synthesized predictors" in message
    n = int(message.split("at most ")[2].split(" guesses")[0])
    assert f"guesses={{'v0': {n}}}" in message
    fits = sr.attribute_risk(
        synthesizer, release, guesses=n, question="paper", records=[0], diagnostics=False
    )
    assert fits.records["after"].notna().all()
