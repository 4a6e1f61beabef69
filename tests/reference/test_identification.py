"""Identification risk against the R package's numbers, and against a loop over pairs."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

FOLDER = Path(__file__).parent / "oracle_identification"
SCENARIOS = json.loads((FOLDER / "result.json").read_text(encoding="utf-8"))
FILES = [pd.read_csv(FOLDER / f"{name}.csv") for name in
         ("confidential", "synthetic1", "synthetic2", "synthetic3")]  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda own: own["name"])
def test_numbers_are_those_of_the_r_package(scenario):
    synthesized = np.atleast_1d(scenario["synthesized"]).tolist()
    kind = "absolute" if scenario["options"].get("percentage") is False else "relative"
    age, income = (sr.Radius(**{kind: r}) for r in scenario["options"]["r"])
    radius = {"Age": age, "Income": income} | ({"Tenure": 0} if "Tenure" in synthesized else {})

    risk = sr.identification_risk(
        FILES[0], FILES[1:], known=scenario["known"], synthesized=synthesized, radius=radius
    )

    records, summary = risk.records, risk.summary()
    c = records[["c_1", "c_2", "c_3"]].to_numpy()
    np.testing.assert_array_equal(c, scenario["c"])
    own = records[["T_1", "T_2", "T_3"]].to_numpy()
    np.testing.assert_array_equal(own[c > 0], np.array(scenario["T"], dtype=bool)[c > 0])
    assert not own[c == 0].any()
    for letter in "KF":
        found = records[[f"{letter}_{k}" for k in (1, 2, 3)]].to_numpy()
        np.testing.assert_array_equal(found, np.array(scenario[letter], dtype=bool))
    for name in ("expected_match_risk", "true_match_rate", "false_match_rate", "unique_matches"):
        np.testing.assert_allclose(summary[name].iloc[:3], scenario[name], rtol=0, atol=1e-10)
        assert summary.loc["mean", name] == pytest.approx(np.mean(scenario[name]), abs=1e-10)
        error = np.std(scenario[name], ddof=1) / np.sqrt(3)
        assert summary.loc["standard error", name] == pytest.approx(error, abs=1e-10)


def naive(confidential, synthetic, known, radius):
    """Count by looking at every pair; `radius` is by variable, absolute."""
    counts, own = [], []
    for i, target in confidential.iterrows():
        matches = [
            j
            for j, row in synthetic.iterrows()
            if all(target[k] == row[k] for k in known)
            and all(abs(target[k] - row[k]) < r if r else target[k] == row[k]
                    for k, r in radius.items())
        ]  # fmt: skip
        counts.append(len(matches))
        own.append(i in matches)
    return counts, own


@pytest.mark.parametrize("synthesized", ["x", "xy", "xyz"], ids="{}-coordinates".format)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_sorted_search_finds_what_a_loop_over_pairs_does(synthesized, seed):
    rng = np.random.default_rng(seed)
    n = 80
    frame = pd.DataFrame({"g": rng.choice(list("ab"), n), "l": rng.integers(0, 2, n)})
    other = frame.copy()
    for name in synthesized:  # whole numbers, so that many lie at the radius itself
        frame[name] = rng.integers(-5, 6, n).astype(float)
        other[name] = frame[name] + rng.integers(-3, 4, n)
    radius = dict(zip(synthesized, (2.0, 3.0, 1.5), strict=False))

    risk = sr.identification_risk(
        frame, other, known=["g", "l"], synthesized=list(synthesized),
        radius={name: sr.Radius(absolute=r) for name, r in radius.items()},
    )  # fmt: skip

    c, own = naive(frame, other, ["g", "l"], radius)
    assert risk.records["c_1"].tolist() == c
    assert risk.records["T_1"].tolist() == own
