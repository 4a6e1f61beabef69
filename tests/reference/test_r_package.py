"""Every case that the R package printed, to 1e-10: joint table, marginals, ranks, differences."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import synrisk as sr
from synrisk.core.batches import Units
from synrisk.core.likelihood import KernelDraws
from synrisk.risk.estimators.importance import Importance, log_density_of_release
from synrisk.risk.estimators.paper import Paired
from synrisk.risk.evaluation import Evaluation
from synrisk.risk.guesses import Grid
from synrisk.risk.intruder_prior import Uniform

SMALL = Path(__file__).parent / "oracle_small"
CE = Path(__file__).parents[3] / "shared" / "oracle" / "ce"
CASES = sorted(path.name.removesuffix("_result.json") for path in SMALL.glob("*_result.json"))
TWICE = ("norm_percent", 1)  # the truth stands twice on this grid; the public interface refuses it


def as_list(value):
    return value if isinstance(value, list) else [value]


class Case:
    """One case: the synthesizer, the release and what the R package found."""

    def __init__(self, folder, name, confidential):
        self.name = name
        with (folder / f"{name}_result.json").open() as file:
            self.found = json.load(file)
        self.plan = [
            sr.Regression(formula, family=family)
            for formula, family in zip(
                as_list(self.found["formulas"]), as_list(self.found["families"]), strict=True
            )
        ]
        used = list(dict.fromkeys(c for r in self.plan for c in (r.response, *r.parsed.predictors)))
        people = pd.read_csv(confidential)[used]
        self.draws = [folder / f"{name}_draws{k + 1}.csv" for k in range(len(self.plan))]
        self.synthesizer = sr.Synthesizer.from_draws(self.plan, people, self.draws)
        self.release = [
            pd.read_csv(folder / f"{name}_synthetic{k + 1}.csv")[used]
            for k in range(self.found["m"])
        ]
        self.records = [r for r in self.found["records"] if (name, r["record"]) != TWICE]

    @property
    def names(self):
        return [regression.response for regression in self.plan]

    def guesses(self):
        """The R package's guesses, a row for each record that it evaluated."""
        return {
            name: sr.Values([record["guesses"][k] for record in self.records])
            for k, name in enumerate(self.names)
        }

    def risk(self):
        return sr.attribute_risk(
            self.synthesizer,
            self.release,
            guesses=self.guesses(),
            records=[record["record"] - 1 for record in self.records],
            n_draws=self.found["H"],
            estimator="paper",
            question="paper",
        )


def probabilities(record):
    return np.reshape(record["probabilities_column_major"], as_list(record["dim"]), order="F")


def compare(case):
    risk = case.risk()
    table = risk.records
    for record in case.records:
        label = record["record"] - 1
        joint = probabilities(record)
        row = table.loc[label]
        np.testing.assert_allclose(risk.joint(label).to_numpy(), joint, rtol=0, atol=1e-10)
        assert row["probability"] == pytest.approx(record["true_probability"], abs=1e-10)
        if "rank_of_truth" in record:
            assert row["rank"] == record["rank_of_truth"]
        else:  # the large cases have no rank: that of the R package's own table
            above = (joint > record["true_probability"] + 1e-12).sum()
            assert row["rank"] == above + 1
        for k, name in enumerate(case.names):
            marginal = as_list(record["true_marginals"])[k]
            assert row[f"probability_{name}"] == pytest.approx(marginal, abs=1e-10)
            difference = as_list(record["abs_diff"])[k]
            assert row[f"abs_diff_{name}"] == pytest.approx(difference, abs=1e-10)
    assert len(table) == len(case.records)


def test_all_small_cases_are_here():
    assert len(CASES) == 10


@pytest.mark.parametrize("name", CASES)
def test_small_cases_agree(name):
    compare(Case(SMALL, name, SMALL / "confidential.csv"))


def test_default_guesses_are_those_of_the_r_package():
    case = Case(SMALL, "norm_norm", SMALL / "confidential.csv")
    risk = sr.attribute_risk(case.synthesizer, case.release, estimator="paper", question="paper")
    for record in case.records:
        joint = risk.joint(record["record"] - 1)
        for k, name in enumerate(case.names):
            np.testing.assert_allclose(joint[name], record["guesses"][k], rtol=1e-14)
        np.testing.assert_allclose(joint, probabilities(record), rtol=0, atol=1e-10)


def test_the_record_whose_truth_stands_twice_agrees_in_the_array_core():
    case = Case(SMALL, *("norm_percent", SMALL / "confidential.csv"))
    record = next(r for r in case.found["records"] if r["record"] == TWICE[1])
    guesses = np.array(record["guesses"])
    truth = int(np.argmin(np.abs(guesses[0] - case.synthesizer.columns[case.names[0]][0])))
    grid = Grid(guesses, np.array([truth]), np.ones(guesses.shape, dtype=bool))
    model = case.synthesizer.models[0]
    draws = KernelDraws.of(model.regression.distribution, model.posterior)
    columns, _ = case.synthesizer.schema.encode(
        case.release[0], case.synthesizer.plan.columns, "release"
    )
    estimates = (Importance(draws, log_density_of_release(model, draws, [columns]), Units()),)
    evaluation = Evaluation(
        case.synthesizer,
        estimates,
        Paired.of(estimates),
        (grid,),
        Uniform(),
        np.array([0]),
    )
    np.testing.assert_allclose(
        np.exp(evaluation.log_joint(0)), probabilities(record), rtol=0, atol=1e-10
    )
    with pytest.raises(sr.GuessError, match="distinct"):
        sr.attribute_risk(
            case.synthesizer,
            case.release,
            guesses=sr.Values(guesses),
            records=[0],
            question="paper",
        )


@pytest.mark.parametrize("name", ["continuous", "count"])
def test_the_papers_own_sample_agrees(name):
    if not CE.exists():
        pytest.skip("the Consumer Expenditure sample is not beside this checkout; not compared")
    compare(Case(CE, name, CE / "confidential.csv"))
