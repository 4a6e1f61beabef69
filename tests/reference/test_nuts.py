"""Posteriors against long NUTS runs: see nuts/PROVENANCE.md."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

FOLDER = Path(__file__).parent / "nuts"
CASES = json.loads((FOLDER / "figures.json").read_text(encoding="utf-8"))["cases"]
FAMILIES = json.loads((FOLDER / "families.json").read_text(encoding="utf-8"))["cases"]
# 63 and 66 parameters with a mean and an sd each: with independent errors one of them is beyond 4.5
# standard errors in one of 570 choices of the seed.
SIGMAS = 4.5


def data_of(case):
    if case["data"].endswith(".csv"):
        return pd.read_csv(FOLDER / case["data"])
    return sr.load_households()


def moments(draws, name):
    """The weighted mean and sd of a parameter, and the standard errors of both."""
    weight, values = draws["weight"].to_numpy(), draws[name].to_numpy()
    mean = np.sum(weight * values)
    apart = values - mean
    sd = np.sqrt(np.sum(weight * apart**2))
    of_mean = np.sqrt(np.sum(weight**2 * apart**2))
    of_sd = np.sqrt(np.sum(weight**2 * (apart**2 - sd**2) ** 2)) / (2 * sd)
    return mean, sd, of_mean, of_sd


@pytest.mark.parametrize("name", CASES)
def test_means_and_sds_agree_with_nuts(name):
    case = CASES[name]
    model = sr.Regression(case["formula"], case["family"], weights=case["weights"])
    fitted = sr.fit(model, data_of(case), n_draws=8000, prior=case["prior"], seed=11)
    assert_agree(fitted.draws(model.response), case["parameters"])


def assert_agree(draws, parameters):
    assert list(draws.columns) == [*(p["name"] for p in parameters), "weight"]
    for parameter in parameters:
        mean, sd, of_mean, of_sd = moments(draws, parameter["name"])
        assert abs(mean - parameter["mean"]) < SIGMAS * np.hypot(of_mean, parameter["mcse_mean"])
        assert abs(sd - parameter["sd"]) < SIGMAS * np.hypot(of_sd, parameter["mcse_sd"])


@pytest.mark.parametrize("name", FAMILIES)
def test_further_families_agree_with_nuts(name):
    case = FAMILIES[name]
    assert case["divergences"] == 0
    assert max(parameter["rhat"] for parameter in case["parameters"]) < 1.01
    is_range = case["types"] and not isinstance(case["types"][0], str)
    types = {"y": tuple(case["types"]) if is_range else case["types"]} if case["types"] else None
    data = pd.DataFrame({"x": case["x"], "y": case["y"]})
    fitted = sr.fit(sr.Regression("y ~ x", name), data, n_draws=8000, seed=11, types=types)
    assert fitted.models[0].family == name
    assert_agree(fitted.draws("y"), case["parameters"])


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name]["family"] == "gaussian"])
def test_gaussian_posteriors_agree_with_quadrature(name):
    """Given sigma the coefficients are normal: one dimension is left, integrated on a grid."""
    case = CASES[name]
    data = data_of(case)
    model = sr.Regression(case["formula"], weights=case["weights"])
    fitted = sr.fit(model, data, n_draws=8000, prior=case["prior"], seed=5)
    draws = fitted.draws(model.response)
    described = fitted.describe().loc[model.response]
    prior = [text for text in described["prior"] if text.startswith("Normal")]
    centre, width = np.array(
        [[float(v) for v in text.removeprefix("Normal(").removesuffix(")").split(",")]
         for text in prior]
    ).T  # fmt: skip
    x = design(case, data)
    y = data[model.response].to_numpy()
    omega = np.ones(len(y)) if case["weights"] is None else data[case["weights"]].to_numpy()
    centred = x - x.mean(axis=0) if case["formula"].split("~")[1].strip()[0] != "0" else x
    if centred is not x:
        centred[:, 0] = 1.0
    rate = float(described["prior"].iloc[-1].removeprefix("Exponential(").removesuffix(")"))
    logs = np.log(y.std()) + np.linspace(-2.5, 1.5, 4001)
    log_p, means, variances = [], [], []
    for log_sigma in logs:
        sigma2 = np.exp(2 * log_sigma)
        precision = (centred.T * omega) @ centred / sigma2 + np.diag(width**-2.0)
        right = (centred.T * omega) @ y / sigma2 + centre / width**2
        mean = np.linalg.solve(precision, right)
        log_p.append(
            -omega.sum() * log_sigma
            - 0.5 * np.sum(omega * (y - centred @ mean) ** 2) / sigma2
            - 0.5 * np.sum(((mean - centre) / width) ** 2)
            - 0.5 * np.linalg.slogdet(precision)[1]
            - rate * np.exp(log_sigma)
            + log_sigma
        )
        means.append(mean)
        variances.append(np.diag(np.linalg.inv(precision)))
    p = np.exp(np.array(log_p) - max(log_p))
    p /= p.sum()
    expected = p @ np.array(means)
    spread = np.sqrt(p @ (np.array(variances) + (np.array(means) - expected) ** 2))
    names = [column["name"] for column in case["parameters"][: x.shape[1]]]
    for k, column in enumerate(names):
        if column == "Intercept":
            continue  # the quadrature's is at the means
        mean, sd, of_mean, of_sd = moments(draws, column)
        assert abs(mean - expected[k]) < SIGMAS * of_mean
        assert abs(sd - spread[k]) < SIGMAS * of_sd
    mean, _, of_mean, _ = moments(draws, "sigma")
    assert abs(mean - p @ np.exp(logs)) < SIGMAS * of_mean


def design(case, data):
    """The design by hand."""
    columns = []
    for parameter in case["parameters"][:-1]:
        name = parameter["name"]
        if name == "Intercept":
            columns.append(np.ones(len(data)))
        elif "[" in name:
            variable, level = name.removesuffix("]").split("[")
            columns.append((data[variable] == level.removeprefix("T.")).to_numpy(dtype=float))
        else:
            columns.append(np.prod([data[part].to_numpy() for part in name.split(":")], axis=0))
    return np.column_stack(columns)
