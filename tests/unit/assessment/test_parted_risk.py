"""The risk of records that are evaluated a part at a time: what one evaluation of all gives."""

import json
import os
import shutil
import signal
import time
import warnings

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.assessment import evaluate_parts, parted_result

ROWS = 100  # as few as show something
N = 3 * ROWS + 30
PLAN = [
    sr.Regression("Income ~ 1"),
    sr.Regression("Kids ~ Income", family="poisson"),
    sr.Regression("Urban ~ Income + Kids", family="bernoulli"),
]
ASKED = {
    "release": {"guesses": {"Income": sr.Range(8)}},
    "paper": {"question": "paper", "guesses": 4},
}
FEW = {"n_draws": 40, "on_unreliable": "flag"}


def made(n=N, seed=0):
    rng = np.random.default_rng(seed)
    income = rng.normal(10.0, 1.0, n)
    kids = rng.poisson(np.exp(0.1 * income - 0.5))
    urban = rng.random(n) < 1.0 / (1.0 + np.exp(2.0 - 0.2 * income))
    people = pd.DataFrame({"Income": income, "Kids": kids, "Urban": urban.astype(int)})
    people["Region"] = rng.choice(["north", "south"], n)
    return people


@pytest.fixture(scope="module")
def synthesizer():
    return sr.fit(PLAN, made(), n_draws=40, seed=1)


@pytest.fixture(scope="module")
def release(synthesizer):
    return synthesizer.synthesize(seed=2)


@pytest.fixture(scope="module", params=ASKED)
def asked(request):
    return ASKED[request.param] | FEW


@pytest.fixture(scope="module")
def whole(synthesizer, release, asked):
    return quietly(synthesizer, release, **asked)


def quietly(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sr.ReliabilityWarning)
        return sr.attribute_risk(*args, **options)


def of_chunks(monkeypatch, n):
    monkeypatch.setattr(evaluate_parts, "rows_of_part", lambda _: n * ROWS)


@pytest.mark.parametrize("n_chunks", [1, 2, 7])
def test_parts_of_any_size_give_the_same(
    synthesizer, release, asked, whole, n_chunks, tmp_path, monkeypatch
):
    of_chunks(monkeypatch, n_chunks)
    risk = quietly(synthesizer, release, out=tmp_path / "risk", **asked)
    assert isinstance(risk, sr.PartedRisk)
    assert set(risk.states) == {"new"}
    assert len(risk.states) == -(-N // (n_chunks * ROWS))
    pd.testing.assert_frame_equal(risk.records, whole.records, check_exact=True)
    assert risk.notes == whole.notes
    pd.testing.assert_frame_equal(risk.summary(), whole.summary(), check_exact=True)
    by_region = risk.summary(by="Region")
    pd.testing.assert_frame_equal(by_region, whole.summary(by="Region"), check_exact=True)
    pd.testing.assert_frame_equal(risk.diagnostics(), whole.diagnostics())
    for record in (0, 150, N - 1):
        np.testing.assert_array_equal(risk.joint(record), whole.joint(record))
        own, expected = risk.ranking(record), whole.ranking(record)
        pd.testing.assert_frame_equal(own, expected, check_exact=True)


def test_a_verdict_says_the_same(synthesizer, release, asked, whole, tmp_path, monkeypatch):
    of_chunks(monkeypatch, 2)
    risk = quietly(synthesizer, release, out=tmp_path / "risk", **asked)
    for criteria, further in (
        (None, 1),
        (sr.Criteria(probability=0.2, lift=2), 0),
        (sr.Criteria(gain=0.01, log_odds_range=1, share=0.01), 0),
    ):
        own, expected = (one.verdict(criteria, further=further) for one in (risk, whole))
        assert own.outcome == expected.outcome
        assert own.sentences() == expected.sentences()
        assert own.to_json() == expected.to_json()
        pd.testing.assert_frame_equal(own.records, expected.records)


def test_the_same_again_evaluates_nothing(synthesizer, release, tmp_path, monkeypatch):
    of_chunks(monkeypatch, 1)
    folder = tmp_path / "risk"
    asked = ASKED["paper"] | FEW | {"diagnostics": False}
    first = quietly(synthesizer, release, out=folder, **asked)
    expected = first.records
    times = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = sr.attribute_risk(synthesizer, release, out=folder, **asked)
    assert set(again.states) == {"kept"}
    assert times == {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*")}
    pd.testing.assert_frame_equal(again.records, expected, check_exact=True)

    # What is damaged, or has lost what stands beside it, is made anew; another question all.
    part = folder / "part-000001.parquet"
    part.write_bytes(part.read_bytes()[:-10])
    (folder / "part-000002.json").unlink()
    with pytest.warns(sr.PartsWarning, match=r"2 \(not whole\) of 4"):
        mended = sr.attribute_risk(synthesizer, release, out=folder, **asked)
    assert mended.states == ("kept", "not whole", "not whole", "kept")
    pd.testing.assert_frame_equal(mended.records, expected, check_exact=True)
    with pytest.warns(sr.PartsWarning, match=r"4 \(other settings\) of 4"):
        other = quietly(synthesizer, release, out=folder, **(asked | {"guesses": 5}))
    alone = quietly(synthesizer, release, **(asked | {"guesses": 5}))
    pd.testing.assert_frame_equal(other.records, alone.records, check_exact=True)
    of_chunks(monkeypatch, 2)
    with pytest.warns(sr.PartsWarning, match="other records"):
        quietly(synthesizer, release, out=folder, **(asked | {"guesses": 5}))
    assert len(list(folder.glob("part-*.parquet"))) == 2


def test_files_are_their_owners_alone_and_other_folders_are_left(
    synthesizer, release, tmp_path, monkeypatch
):
    of_chunks(monkeypatch, 4)
    asked = ASKED["paper"] | FEW | {"diagnostics": False}
    folder = tmp_path / "risk"
    risk = quietly(synthesizer, release, out=folder, **asked)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    assert json.loads((folder / "parts.json").read_text())["n_parts"] == 1
    assert risk.table.count_rows() == N
    assert {"record", "gain", "is_best_Kids"} <= set(risk.table.schema.names)
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(sr.FileError, match="other files than parts"):
        quietly(synthesizer, release, out=folder, **asked)
    shutil.rmtree(folder)
    folder.write_text("a file")
    with pytest.raises(sr.FileError, match="cannot be written"):
        quietly(synthesizer, release, out=folder, **asked)


@pytest.mark.parametrize("kind", ["inside", "sharing"])
def test_a_report_says_what_that_of_the_table_in_memory_says(
    kind, synthesizer, release, asked, whole, tmp_path, monkeypatch
):
    of_chunks(monkeypatch, 1)
    parted = quietly(synthesizer, release, out=tmp_path / "risk", **asked)
    said = []
    for name, risk in (("parts", parted), ("whole", whole)):
        path = tmp_path / f"{name}.html"
        risk.report(path, kind=kind, synthetic=release, criteria=sr.Criteria(lift=100))
        said.append(
            (path.read_text(encoding="utf-8"), json.loads(path.with_suffix(".json").read_text()))
        )
    (page, facts), (expected_page, expected) = said
    assert facts == expected
    assert page == expected_page


def test_sensitivity_is_that_of_the_table_in_memory(synthesizer, release, tmp_path, monkeypatch):
    of_chunks(monkeypatch, 2)
    asked = ASKED["release"] | FEW
    parted = quietly(synthesizer, release, out=tmp_path / "risk", **asked)
    expected = quietly(synthesizer, release, **asked).sensitivity()
    pd.testing.assert_frame_equal(parted.sensitivity(), expected, check_exact=True)


def drawn_by(plot, release):
    """What every plot shows: lines, bars and words."""
    for axes in (
        plot.probability(),
        *plot.marginals(),
        plot.ranks(),
        plot.ranks(of="Kids"),
        *plot.differences(),
        *plot.distributions(release),
        plot.record(3)[0],
        plot.against("Income"),
        plot.against("Region", of="Kids", measure="lift"),
        plot.by("Income", of="Urban"),
        plot.error(),
        plot.exceedance(),
        plot.exceedance(measure="log_odds_range"),
    ):
        lines = [np.asarray(line.get_xydata()) for line in axes.lines]
        bars = [(bar.get_x(), bar.get_height()) for bar in axes.patches if hasattr(bar, "get_x")]
        words = [axes.get_title(loc="left"), axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
        legend = axes.get_legend()
        words += [] if legend is None else [text.get_text() for text in legend.get_texts()]
        yield lines, bars, words


def test_plots_are_those_of_the_table_in_memory(synthesizer, release, tmp_path, monkeypatch):
    of_chunks(monkeypatch, 1)
    asked = ASKED["paper"] | FEW
    parted = quietly(synthesizer, release, out=tmp_path / "risk", **asked)
    whole = quietly(synthesizer, release, **asked)
    pairs = zip(drawn_by(parted.plot, release), drawn_by(whole.plot, release), strict=True)
    for (lines, bars, words), (own_lines, own_bars, own_words) in pairs:
        assert words == own_words
        assert bars == own_bars
        for line, own in zip(lines, own_lines, strict=True):
            np.testing.assert_array_equal(line, own)


def test_plots_of_many_records_say_that_they_show_a_sample(
    synthesizer, release, tmp_path, monkeypatch
):
    of_chunks(monkeypatch, 1)
    monkeypatch.setattr(parted_result, "sampling_step", lambda _: 7)
    parted = quietly(synthesizer, release, out=tmp_path / "risk", **ASKED["paper"] | FEW)
    records = parted.records
    n_drawn = -(-N // 7)
    sampled = f"n = {n_drawn} records, a sample of {N} evenly spread"
    titles = {
        name: " ".join(axes.get_title(loc=loc) for loc in ("left", "center", "right"))
        for name, axes in (
            ("probability", parted.plot.probability()),
            ("against", parted.plot.against("Income")),
            ("by", parted.plot.by("Income")),
            ("error", parted.plot.error()),
            ("ranks", parted.plot.ranks()),
            ("exceedance", parted.plot.exceedance(of="joint")),
        )
    }
    for name in ("probability", "against", "by", "error"):
        assert sampled in titles[name], name
    for name in ("ranks", "exceedance"):  # these are of all
        assert f"n = {N} records" in titles[name]
    points = parted.plot.against("Income").collections[0].get_offsets()
    expected = np.stack([made()["Income"][::7], records["probability"][::7]], axis=1)
    np.testing.assert_array_equal(points, expected)
    thresholds, _ = parted.plot.exceedance(of="joint").lines[0].get_data()
    assert thresholds.max() == records["probability"].max()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"records": [1]}, "records"),
        ({"joint": "keep"}, "joint"),
        ({"on_unreliable": "fit"}, "flag"),
        ({"guesses": {"Income": sr.Values([[1.0, 2.0]] * N)}}, "Income"),
        ({"intruder_prior": np.log(np.full((4, 4, 2), 1 / 32))}, "table"),
    ],
)
def test_what_needs_all_records_at_once_is_refused(synthesizer, release, tmp_path, options, why):
    with pytest.raises(sr.OptionError, match=f"out= .*{why}"):
        sr.attribute_risk(synthesizer, release, out=tmp_path / "risk", **options)
    assert not list(tmp_path.iterdir())


def test_a_result_in_parts_says_what_it_cannot_do(synthesizer, release, tmp_path):
    asked = ASKED["paper"] | FEW | {"diagnostics": False}
    risk = quietly(synthesizer, release, out=tmp_path / "risk", **asked)
    for ask in (
        lambda: risk.marginal("Kids"),
        lambda: risk.considered("Kids"),
        lambda: risk.save(tmp_path / "risk.nc"),
        lambda: risk.to_dataset(),
    ):
        with pytest.raises(sr.OptionError, match="all records at once"):
            ask()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked process")
def test_a_killed_run_is_gone_on_with(synthesizer, release, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluate_parts, "rows_of_part", lambda _: 20)
    asked = ASKED["paper"] | FEW | {"diagnostics": False, "executor": "serial"}
    expected = quietly(synthesizer, release, **asked).records
    rng = np.random.default_rng(3)
    for n_seen in (0, 1, 4, 9):
        folder = tmp_path / f"risk-{n_seen}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
            child = os.fork()
        if not child:
            try:
                quietly(synthesizer, release, out=folder, **asked)
            finally:
                os._exit(0)
        while len(list(folder.glob("part-*.json"))) < n_seen:
            time.sleep(0.0005)
        time.sleep(0.01 * rng.random())
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        whole = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*.parquet")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sr.PartsWarning)  # of a part without its note
            again = quietly(synthesizer, release, out=folder, **asked)
        kept = [k for k, state in enumerate(again.states) if state == "kept"]
        assert len(kept) >= n_seen
        for k in kept:
            name = f"part-{k:06d}.parquet"
            assert (folder / name).stat().st_mtime_ns == whole[name]
        pd.testing.assert_frame_equal(again.records, expected, check_exact=True)
        assert not list(folder.glob(".*"))  # nothing that was begun is left


def test_a_result_does_not_show_the_numbers_of_a_later_run(synthesizer, release, tmp_path):
    """Both lie in one folder: the earlier result is gone, and says so."""
    out = tmp_path / "risk"
    earlier = quietly(synthesizer, release, out=out, question="paper", guesses=4, **FEW)
    with pytest.warns(sr.PartsWarning if hasattr(sr, "PartsWarning") else UserWarning):
        later = sr.attribute_risk(
            synthesizer, release, out=out, question="paper", guesses=5, progress=False, **FEW
        )
    assert later.summary() is not None
    for ask in (earlier.summary, lambda: earlier.records, lambda: earlier.table, earlier.verdict):
        with pytest.raises(sr.FileError, match="has changed since it was first read"):
            ask()
