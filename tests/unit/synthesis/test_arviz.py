"""Objects of ArviZ, made by hand: posterior groups of PyMC, NumPyro, CmdStanPy and Bambi."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from helpers.cases import people

import synrisk as sr

N_CHAINS, N_DRAWS = 2, 3


def group(**variables):
    """A posterior group: by name the labels of further dimensions, ``{dim: labels or number}``."""
    rng = np.random.default_rng(0)
    arrays, coords = {}, {"chain": [0, 1], "draw": [0, 1, 2]}
    for name, dims in variables.items():
        sizes = [labels if isinstance(labels, int) else len(labels) for labels in dims.values()]
        values = rng.uniform(0.5, 1.0, (N_CHAINS, N_DRAWS, *sizes))
        arrays[name] = (("chain", "draw", *dims), values)
        coords |= {dim: labels for dim, labels in dims.items() if not isinstance(labels, int)}
    return xr.Dataset(arrays, coords)


def read(formula, family, posterior, **options):
    regression = sr.Regression(formula, family)
    return sr.Synthesizer.from_draws(regression, people(), posterior, **options).models[0].posterior


def test_a_run_of_cmdstan_or_numpyro():
    posterior = group(alpha={}, beta={"beta_dim_0": [0, 1]}, sigma={})
    found = read("b ~ x + z", "gaussian", posterior)
    assert found.sources == ("alpha", "beta[1]", "beta[2]", "sigma")
    np.testing.assert_array_equal(found.chain, [0, 0, 0, 1, 1, 1])
    expected = posterior["beta"].to_numpy().reshape(6, 2)
    np.testing.assert_array_equal(found.coefficients[:, 1:, 0], expected)
    np.testing.assert_array_equal(found.auxiliary[:, 0], posterior["sigma"].to_numpy().ravel())


def test_a_plate_of_numpyro_is_a_vector():
    """Its dimension has the labels 0, 1, … under the plate's own name."""
    posterior = group(alpha={}, beta={"coefficients": [0, 1]}, sigma={})
    found = read("b ~ x + z", "gaussian", posterior)
    assert found.sources == ("alpha", "beta[1]", "beta[2]", "sigma")
    np.testing.assert_array_equal(
        found.coefficients[:, 2, 0], posterior["beta"].sel(coefficients=1).to_numpy().ravel()
    )


@pytest.mark.parametrize("dims", [{"mu_dim_0": 1}, {"record": 1}, {"part": 2, "record": 1}])
def test_what_there_is_for_each_record_is_no_parameter(dims):
    sizes = {dim: times * len(people()) for dim, times in dims.items()}
    posterior = group(alpha={}, beta={"beta_dim_0": 2}, sigma={}, mu=sizes)
    assert read("b ~ x + z", "gaussian", posterior).sources[0] == "alpha"


@pytest.mark.parametrize(("name", "n_lacking"), [("mu", 1), ("effect", 0)])
def test_other_vectors_are_left_over(name, n_lacking):
    """One that is too short, and an effect of each record: another model than the formula's."""
    sizes = {f"{name}_dim_0": len(people()) - n_lacking}
    posterior = group(alpha={}, beta={"beta_dim_0": 2}, sigma={}, **{name: sizes})
    with pytest.raises(sr.SynriskError, match=rf"Left over: {name}\[1\]"):
        read("b ~ x + z", "gaussian", posterior)


def test_a_run_of_pymc_with_labels():
    posterior = group(Intercept={}, beta={"predictor": ["z", "x"]}, sigma={})
    found = read("b ~ x + z", "gaussian", posterior)
    assert found.sources == ("Intercept", "x", "z", "sigma")
    np.testing.assert_array_equal(
        found.coefficients[:, 1, 0], posterior["beta"].sel(predictor="x").to_numpy().ravel()
    )


def test_a_run_of_bambi_with_factors_and_interactions():
    posterior = group(
        Intercept={}, x={}, u={"u_dim": ["q", "s"]}, sigma={}, mu={"__obs__": 40},
        **{"x:u": {"x:u_dim": ["q", "s"]}},
    )  # fmt: skip
    found = read("b ~ x * u", "gaussian", posterior)
    assert set(found.sources) == {"Intercept", "x", "u[q]", "u[s]", "x:u[q]", "x:u[s]", "sigma"}
    at = found.sources.index("x:u[s]")
    expected = posterior["x:u"].sel({"x:u_dim": "s"}).to_numpy().ravel()
    np.testing.assert_array_equal(found.coefficients[:, at, 0], expected)


def test_interactions_of_two_factors():
    posterior = group(
        Intercept={}, u={"u_dim": ["q", "s"]}, r={"r_dim": ["mid", "top"]}, sigma={},
        **{"u:r": {"u:r_dim": ["q, mid", "q, top", "s, mid", "s, top"]}},
    )  # fmt: skip
    found = read("b ~ u * r", "gaussian", posterior)
    at = found.sources.index("u[s]:r[mid]")
    expected = posterior["u:r"].sel({"u:r_dim": "s, mid"}).to_numpy().ravel()
    np.testing.assert_array_equal(found.coefficients[:, at, 0], expected)


def test_levels_of_the_response():
    levels = {"r_reduced_dim": ["mid", "top"]}
    posterior = group(Intercept=levels, u={"u_dim": ["q", "s"], **levels})
    found = read("r ~ u", "categorical", posterior)
    expected = posterior["u"].sel(u_dim="s", r_reduced_dim="mid").to_numpy().ravel()
    np.testing.assert_array_equal(found.coefficients[:, 2, 0], expected)


def test_trees_and_tables_are_the_same():
    posterior = group(Intercept={}, x={})
    tree = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": group(lp={})})
    table = pd.DataFrame({name: posterior[name].to_numpy().ravel() for name in ("Intercept", "x")})
    expected = read("k ~ x", "poisson", table).coefficients
    for source in (tree, tree["posterior"], posterior, [posterior], {"k": tree}):
        np.testing.assert_array_equal(read("k ~ x", "poisson", source).coefficients, expected)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (xr.DataTree.from_dict({"prior": group(x={})}), "no group is called 'posterior'"),
        (group(x={}).rename(chain="run"), "no dimension chain"),
        (group(Intercept={}), "Missing: x"),
        (group(Intercept={}, x={}, y_rep={"y_rep_dim_0": 2}), "Left over: .*y_rep"),
    ],
)
def test_what_is_refused(source, message):
    with pytest.raises(sr.SynriskError, match=message):
        read("k ~ x", "poisson", source)


def test_from_bambi_takes_models_of_bambi():
    with pytest.raises(sr.SynriskError, match=r"bambi\.Model"):
        sr.Synthesizer.from_bambi(people(), group(x={}))
    with pytest.raises(sr.SynriskError, match="1 model of Bambi, but 2 fits"):
        sr.Synthesizer.from_bambi([people()], [group(x={})] * 2)
