"""What is read off models of Bambi besides their draws, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest

import synrisk as sr

pytestmark = pytest.mark.extras


@pytest.fixture(autouse=True)
def nothing_is_released(monkeypatch):
    """The columns of these few rows give one another away: no release could have them."""
    monkeypatch.setattr("synrisk.synthesis.synthesizer.refuse_exact", lambda *_: None)


def people(n=40):
    rng = np.random.default_rng(7)
    x = rng.normal(2.0, 1.0, n)
    return pd.DataFrame({"x": x, "b": 0.5 + 0.6 * x + rng.normal(0.0, 0.8, n)})


def test_what_bambi_encodes_differently_is_refused():
    """Bambi's scale divides by the standard deviation over n, formulaic's over n − 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model("b ~ scale(x)", people())
        other = bambi.Model("b ~ x", people(), family="laplace")
        probit = bambi.Model("o ~ x", people().assign(o=[0, 1] * 20), "bernoulli", link="probit")
        fit = model.fit(draws=4, tune=4, chains=1, cores=1, random_seed=3, progressbar=False)
    with pytest.raises(sr.SynriskError, match=r"encodes 'scale\(x\)' differently"):
        sr.Synthesizer.from_bambi(model, fit)
    with pytest.raises(sr.SynriskError, match="the family 'laplace'"):
        sr.Synthesizer.from_bambi(other, fit)
    with pytest.raises(sr.SynriskError, match="the link 'probit'"):
        sr.Synthesizer.from_bambi(probit, fit)


def test_levels_are_those_that_bambi_means():
    """Text with two levels: the probability is of the one that Bambi calls a success."""
    data = people().assign(o=["yes", "no", "yes", "yes"] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model("o ~ 1", data, family="bernoulli")
        fit = model.fit(draws=300, tune=300, chains=2, cores=1, random_seed=3, progressbar=False)
    synthesizer = sr.Synthesizer.from_bambi(model, fit)
    level = synthesizer.describe()["probability_of"].iloc[0]
    share = (data["o"] == level).mean()
    assert abs(synthesizer.describe()["mean"].iloc[0] - np.log(share / (1 - share))) < 0.3


def test_a_categorical_model():
    data = people().assign(r=["low", "mid", "top", "mid"] * 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model("r ~ x", data, family="categorical")
        fit = model.fit(draws=50, tune=50, chains=2, cores=1, random_seed=3, progressbar=False)
    synthesizer = sr.Synthesizer.from_bambi(model, fit)
    expected = fit["posterior"]["x"].sel(r_reduced_dim="top").to_numpy().ravel()
    np.testing.assert_array_equal(synthesizer.draws("r")["top:x"], expected)


@pytest.fixture(scope="module")
def several():
    """Models of Bambi by response, with the inference data of short fits."""
    data = people().assign(
        c=people()["x"] + 3.0,
        k=[0, 1, 2, 5] * 10,
        o=["yes", "no", "yes", "yes"] * 10,
        r=["low", "mid", "top", "mid"] * 10,
        t=[True, False, False, True] * 10,
        z=[0, 1, 1, 1] * 10,
    )
    families = {
        "b": "gaussian", "c": "gaussian", "k": "poisson", "o": "bernoulli", "r": "categorical",
        "t": "bernoulli", "z": "bernoulli",
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        models = {
            name: bambi.Model(f"{name} ~ 1", data, family=of) for name, of in families.items()
        }
        models["log"] = bambi.Model("log(c) ~ 1", data.assign(c=data["c"].abs() + 1.0))
        fits = {
            name: model.fit(draws=4, tune=4, chains=1, cores=1, random_seed=3, progressbar=False)
            for name, model in models.items()
        }
    return models, fits


@pytest.mark.parametrize("name", ["b", "c", "k", "o", "r", "t", "z", "log"])
def test_a_fit_goes_with_its_own_model(several, name):
    models, fits = several
    assert sr.Synthesizer.from_bambi(models[name], fits[name]).n_records == 40
    with pytest.raises(sr.DrawsError, match=r"the fit given with it is of"):
        sr.Synthesizer.from_bambi(models[name], fits["k" if name == "b" else "b"])


def test_fits_in_another_order_are_refused(several):
    models, fits = several
    with pytest.raises(sr.DrawsError, match=r"'b ~ 1': the fit given with it is of c"):
        sr.Synthesizer.from_bambi([models["b"], models["c"]], [fits["c"], fits["b"]])


@pytest.mark.parametrize("rows", [slice(None, None, -1), slice(20)])
def test_a_fit_to_other_rows_is_refused(several, rows):
    models, fits = several
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        other = bambi.Model("b ~ 1", people()[rows].reset_index(drop=True))
        fit = other.fit(draws=4, tune=4, chains=1, cores=1, random_seed=3, progressbar=False)
    with pytest.raises(sr.DrawsError, match=r"observed other values of 'b'") as raised:
        sr.Synthesizer.from_bambi(models["b"], fit)
    assert not any(f"{value:.2f}" in str(raised.value) for value in people()["b"])
    alone = fits["b"]["posterior"]  # says nothing of what was observed
    assert sr.Synthesizer.from_bambi(models["b"], alone).n_records == 40


@pytest.mark.parametrize("name", ["b", "k", "o", "r", "t", "z", "log"])
def test_data_that_the_model_was_not_fitted_to_are_refused(several, name):
    models, fits = several
    given = models[name].data
    sr.Synthesizer.from_bambi(models[name], fits[name], data=given.assign(more=1))
    shuffled = given.sample(frac=1.0, random_state=1).reset_index(drop=True)
    with pytest.raises(sr.DrawsError, match="fitted it to other values of"):
        sr.Synthesizer.from_bambi(models[name], fits[name], data=shuffled)


def test_levels_in_another_order_are_the_same_values(several):
    models, fits = several
    types = {"r": ["top", "low", "mid"]}
    synthesizer = sr.Synthesizer.from_bambi(models["r"], fits["r"], types=types)
    assert synthesizer.schema.variables["r"].levels == ("top", "low", "mid")
    success = models["o"].response_component.term.success
    wrong = [success, "yes" if success == "no" else "no"]
    with pytest.raises(sr.DrawsError, match="lists the level second"):
        sr.Synthesizer.from_bambi(models["o"], fits["o"], types={"o": wrong})


def test_gaps_are_to_be_left_out_before_fitting(tmp_path):
    data = people().assign(x=people()["x"].where(people().index > 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import bambi

        model = bambi.Model("b ~ x", data, dropna=True)
        fit = model.fit(draws=4, tune=4, chains=1, cores=1, random_seed=3, progressbar=False)
    data.to_csv(tmp_path / "people.csv", index=False)
    for given in (None, data, str(tmp_path / "people.csv")):
        with pytest.raises(sr.DataError, match=r"missing values in x \(3\)") as raised:
            sr.Synthesizer.from_bambi(model, fit, data=given)
        assert "before fitting" in str(raised.value)
        assert "missing=" not in str(raised.value)
    with pytest.raises(sr.OptionError, match="types= is a dict"):
        sr.Synthesizer.from_bambi(model, fit, types=5)
