import numpy as np
import pandas as pd
import pytest
from helpers.cases import people

import synrisk as sr
from synrisk.synthesis.draws.draw_tables import BOOKKEEPING

RNG = np.random.default_rng(0)


def read(formula, family, names, *, types=None, rename=None, data=None, extra=()):
    frame = pd.DataFrame({name: RNG.uniform(0.5, 1.0, 4) for name in names})
    for name, values in dict(extra).items():
        frame[name] = values
    synthesizer = sr.Synthesizer.from_draws(
        sr.Regression(formula, family),
        people() if data is None else data,
        frame,
        types=types,
        rename=rename,
    )
    return frame, synthesizer


@pytest.mark.parametrize(
    ("formula", "family", "names"),
    [
        ("b ~ x + u", "gaussian", ["(Intercept)", "x", "uq", "us", "sigma"]),  # rstanarm
        ("b ~ x + u", "gaussian", ["b_Intercept", "b_x", "b_uq", "b_us", "sigma"]),  # brms
        ("b ~ x + u", "gaussian", ["Intercept", "x", "u[T.q]", "u[T.s]", "sigma"]),  # plain
        ("b ~ x + u", "gaussian", ["Intercept", "x", "u[q]", "u[s]", "b_sigma"]),  # Bambi
        ("b ~ x + u", "gaussian", ["X.Intercept.", "x", "uq", "us", "sigma"]),  # mangled
        ("b ~ x + z", "gaussian", ["alpha", "beta.1", "beta.2", "sigma"]),  # CmdStan
        ("b ~ x + z", "gaussian", ["Intercept", "beta[1]", "beta[2]", "sigma"]),
        ("b ~ x + z", "gaussian", ["b[1]", "b[2]", "b[3]", "sigma"]),
        ("b ~ I(x^2) + x:z", "gaussian", ["(Intercept)", "I(x^2)", "x:z", "sigma"]),
        ("b ~ I(x^2) + x:z", "gaussian", ["b_Intercept", "b_IxE2", "b_x:z", "sigma"]),
        ("b ~ I(x^2) + x:z", "gaussian", ["X.Intercept.", "I.x.2.", "x.z", "sigma"]),
        ("b ~ I(x^2) + x:z", "gaussian", ["Intercept", "I(x ** 2)", "z:x", "sigma"]),
        ("b ~ bs(x, df = 4)", "gaussian",
         ["(Intercept)", *(f"bs(x, df = 4){k}" for k in range(1, 5)), "sigma"]),
        ("b ~ bs(x, df = 4)", "gaussian",
         ["X.Intercept.", *(f"bs.x..df...4.{k}" for k in range(1, 5)), "sigma"]),
        ("b ~ poly(x, 2)", "gaussian", ["(Intercept)", "poly(x, 2)1", "poly(x, 2)2", "sigma"]),
        ("b ~ poly(x, 2)", "gaussian", ["b_Intercept", "b_polyx21", "b_polyx22", "sigma"]),
        ("b ~ as.factor(o)", "gaussian", ["(Intercept)", "as.factor(o)1", "sigma"]),
        ("b ~ as.factor(o)", "gaussian", ["b_Intercept", "b_as.factoro1", "sigma"]),
        ("b ~ as.factor(o)", "gaussian", ["X.Intercept.", "as.factor.o.1", "sigma"]),
        ("k ~ x", "poisson", ["(Intercept)", "x"]),
        ("o ~ 0 + x", "bernoulli", ["x"]),
    ],
)  # fmt: skip
def test_spellings(formula, family, names):
    frame, synthesizer = read(formula, family, names)
    model = synthesizer.models[0]
    found = np.column_stack([model.posterior.coefficients[:, :, 0], model.posterior.auxiliary])
    # `names` stand in the design's order in every case above, but for brms' and R's products.
    np.testing.assert_array_equal(found, frame.to_numpy())
    assert model.posterior.sources == tuple(names)


def test_the_order_of_columns_does_not_matter():
    names = ["sigma", "z", "(Intercept)", "x"]
    frame, synthesizer = read("b ~ x + z", "gaussian", names)
    draws = synthesizer.draws("b")
    assert list(draws.columns) == ["Intercept", "x", "z", "sigma", "weight"]
    np.testing.assert_array_equal(draws["z"], frame["z"])
    np.testing.assert_allclose(draws["weight"], 0.25)


@pytest.mark.parametrize("reference", ["low", "mid", "top"])
def test_the_reference_level_is_the_one_without_columns(reference):
    others = [level for level in ("low", "mid", "top") if level != reference]
    names = [f"b_mu{level}_{term}" for level in others for term in ("Intercept", "x")]
    frame, synthesizer = read("r ~ x", "categorical", names)
    beta = {reference: np.zeros((4, 2))}
    for level in others:
        beta[level] = frame[[f"b_mu{level}_Intercept", f"b_mu{level}_x"]].to_numpy()
    draws = synthesizer.draws("r")
    for level in ("mid", "top"):
        found = draws[[f"{level}:Intercept", f"{level}:x"]].to_numpy()
        np.testing.assert_allclose(found, beta[level] - beta["low"], atol=1e-15)


def test_brms_strips_symbols_from_levels_and_terms():
    data = people()
    data["r"] = data["r"].cat.rename_categories({"mid": "mid-low (a)", "top": "top+"})
    for spelt in (("midlowa", "top"), ("midMlowa", "topP")):  # as now, as older versions
        names = [f"b_mu{level}_{term}" for level in spelt for term in ("Intercept", "x")]
        _, synthesizer = read("r ~ x", "categorical", names, data=data)
        assert synthesizer.models[0].posterior.coefficients.shape == (4, 2, 2)


def test_centred_intercepts_of_brms_yield():
    names = ["b_Intercept", "b_x", "Intercept", "sigma", "lprior", "lp__"]
    frame, synthesizer = read("b ~ x", "gaussian", names)
    np.testing.assert_array_equal(synthesizer.draws("b")["Intercept"], frame["b_Intercept"])
    names = ["b_mumid_Intercept", "b_mutop_Intercept", "Intercept_mumid", "Intercept_mutop"]
    read("r ~ 1", "categorical", names)


def test_bookkeeping_is_dropped_but_for_the_chain():
    extra = {name: np.arange(4) for name in BOOKKEEPING}
    extra |= {"accept_stat__": 0.9, "chain": 1, "iteration": [1, 2, 3, 4], "X": [1, 2, 3, 4]}
    _, synthesizer = read("b ~ x", "gaussian", ["(Intercept)", "x", "sigma"], extra=extra)
    assert list(synthesizer.draws("b").columns) == ["Intercept", "x", "sigma", "weight", ".chain"]


def test_a_counter_that_does_not_count_is_left_over():
    with pytest.raises(sr.DrawsError, match=r"Left over: X\."):
        read("b ~ x", "gaussian", ["(Intercept)", "x", "sigma", "X"])


def test_draws_may_be_weighted():
    names = ["(Intercept)", "x", "sigma"]
    for extra in ({"weight": [1, 2, 3, 4]}, {".log_weight": np.log([1, 2, 3, 4]) + 700}):
        _, synthesizer = read("b ~ x", "gaussian", names, extra=extra)
        np.testing.assert_allclose(synthesizer.draws("b")["weight"], [0.1, 0.2, 0.3, 0.4])
    first = synthesizer.models[0].posterior.first(2).frame()
    np.testing.assert_allclose(first["weight"], [1 / 3, 2 / 3])


def test_a_predictor_called_weight_is_a_coefficient():
    data = people().rename(columns={"x": "weight"})
    frame, synthesizer = read(
        "b ~ weight", "gaussian", ["(Intercept)", "weight", "sigma"], data=data
    )
    draws = synthesizer.draws("b")
    np.testing.assert_array_equal(draws["weight"], frame["weight"])
    np.testing.assert_allclose(draws[".weight"], 0.25)


def test_draws_go_out_and_come_in_again():
    names = [
        f"b_mu{level}_{term}" for level in ("mid", "top") for term in ("Intercept", "x", "uq", "us")
    ]
    _, synthesizer = read("r ~ x + u", "categorical", names)
    again = sr.Synthesizer.from_draws(
        sr.Regression("r ~ x + u", "categorical"), people(), synthesizer.draws("r")
    )
    pd.testing.assert_frame_equal(again.draws("r"), synthesizer.draws("r"))


def test_rename():
    names = ["a0", "a1", "s"]
    rename = {"a0": "Intercept", "a1": "x", "s": "sigma"}
    for given in (rename, {"b": rename}):
        frame, synthesizer = read("b ~ x", "gaussian", names, rename=given)
        np.testing.assert_array_equal(synthesizer.draws("b")["x"], frame["a1"])
    with pytest.raises(sr.DrawsError, match="no table of draws has a column 'a9'"):
        read("b ~ x", "gaussian", names, rename={"a9": "x"})
    with pytest.raises(sr.OptionError, match="rename= is either"):
        read("b ~ x", "gaussian", names, rename={"y": rename})


@pytest.mark.parametrize(
    ("formula", "family", "names", "why"),
    [
        ("b ~ x", "gaussian", ["(Intercept)", "sigma"], r"Missing: x\. .*columns: \(Intercept\)"),
        ("b ~ x", "gaussian", ["(Intercept)", "x", "z", "sigma"], r"Left over: z\."),
        ("b ~ x", "gaussian", ["(Intercept)", "x"], "Missing: sigma"),
        ("b ~ u", "gaussian",
         ["(Intercept)", "up", "uq", "sigma"], r"Missing: u\[T.s\].*Left over: up"),
        ("b ~ x", "gaussian", ["(Intercept)", "b_Intercept", "x", "sigma"], "given twice"),
        ("b ~ x + z", "gaussian", ["alpha", "beta.1", "sigma"], "Missing: "),
        ("b ~ x + z", "gaussian",
         ["alpha", "beta.2", "beta.3", "sigma"], "Left over: beta.2, beta.3"),
        ("r ~ x", "categorical", ["b_mumid_Intercept", "b_mumid_x"], "Missing: top:Intercept"),
        ("r ~ 1", "categorical",
         ["b_mulow_Intercept", "b_mumid_Intercept", "b_mutop_Intercept"], "must be the reference"),
    ],
)  # fmt: skip
def test_both_sides_are_listed(formula, family, names, why):
    with pytest.raises(sr.DrawsError, match=why):
        read(formula, family, names)


@pytest.mark.parametrize("name", ["tau", "tau.y", "prec"])
def test_a_precision_is_not_sigma_by_another_name(name):
    with pytest.raises(sr.DrawsError, match=r"Missing: sigma") as raised:
        read("b ~ x", "gaussian", ["(Intercept)", "x", name])
    assert f"{name} is a precision" in str(raised.value)
    assert f"Monitor sigma <- 1/sqrt({name})" in str(raised.value)
    assert "rename" not in str(raised.value)


def test_ambiguous_names_are_refused_and_rename_settles_them():
    data = people()
    data["u"] = data["u"].cat.rename_categories({"q": "a b", "s": "a-b"})
    names = ["(Intercept)", "ua.b", "ua.b.1", "sigma"]
    with pytest.raises(sr.DrawsError, match=r"may be any of u\[T.a b\], u\[T.a-b\]"):
        read("b ~ u", "gaussian", names, data=data)
    rename = {"ua.b": "u[T.a-b]", "ua.b.1": "u[T.a b]"}
    frame, synthesizer = read("b ~ u", "gaussian", names, data=data, rename=rename)
    np.testing.assert_array_equal(synthesizer.draws("b")["u[T.a-b]"], frame["ua.b"])
    exact = ["(Intercept)", "u[T.a b]", "u[T.a-b]", "sigma"]
    read("b ~ u", "gaussian", exact, data=data)


def test_a_column_named_like_a_parameter_is_that_parameter():
    data = people().rename(columns={"x": "k1", "z": "b_k1"})
    frame, synthesizer = read(
        "b ~ k1 + b_k1", "gaussian", ["(Intercept)", "b_k1", "k1", "sigma"], data=data
    )
    np.testing.assert_array_equal(synthesizer.draws("b")["b_k1"], frame["b_k1"])
    np.testing.assert_array_equal(synthesizer.draws("b")["k1"], frame["k1"])


def test_a_centred_intercept_of_brms_is_not_taken_for_the_intercept():
    with pytest.raises(sr.DrawsError, match="Missing: Intercept"):
        read("b ~ x", "gaussian", ["Intercept", "b_x", "sigma"])


@pytest.mark.parametrize("name", ["weight", "prior_b", "deviance", "chain", "X"])
def test_what_may_be_a_coefficient_is_not_dropped(name):
    data = people().assign(**{name: 1.0})
    extra = {name: [2.0, 2.0, 3.0, 2.0]}
    with pytest.raises(sr.DrawsError, match=f"{name}"):
        read("b ~ x", "gaussian", ["(Intercept)", "x", "sigma"], data=data, extra=extra)


def test_levels_read_off_the_data_are_not_shown():
    data = people()
    data["name"] = [f"Person {i}" for i in range(40)]
    for formula in ("b ~ name", "b ~ C(x)"):
        with pytest.raises(sr.DrawsError, match=r"\[\*\] \(39 of them\)") as caught:
            read(formula, "gaussian", ["(Intercept)", "sigma"], data=data)
        assert "Person" not in str(caught.value)
        assert str(data["x"][3])[:6] not in str(caught.value)


def with_names(**columns):
    """People with a factor whose levels nobody listed."""
    return people().assign(g=[["Anna", "Bo", "Cleo"][i % 3] for i in range(40)], **columns)


@pytest.mark.parametrize(
    ("formula", "family", "names", "extra", "shown"),
    [
        # A column that is read, in every spelling.
        ("b ~ g", "gaussian", ["Intercept", "sigma", "g[T.Bo]"], {"g[T.Cleo]": np.nan},
         r"column g\[\*\] \(of a level that nobody declared\): 4 draws are not"),
        ("b ~ g", "gaussian", ["(Intercept)", "sigma", "gBo"], {"gCleo": np.nan}, r"g\[\*\]"),
        ("b ~ g", "gaussian", ["b_Intercept", "sigma", "b_gBo"], {"b_gCleo": np.nan}, r"g\[\*\]"),
        ("g ~ x", "categorical", ["b_muBo_Intercept", "b_muBo_x", "b_muCleo_Intercept"],
         {"b_muCleo_x": np.nan}, r"column \*:x \(of a level"),
        # One that is given twice.
        ("b ~ g", "gaussian", ["Intercept", "sigma", "gBo", "gCleo", "g[T.Bo]"], {},
         r"given twice, by g\[\*\]"),
        # Some that are left over: of the reference, and of other models.
        ("b ~ g", "gaussian", ["Intercept", "sigma", "gAnna", "gBo"], {},
         r"Left over: g\[\*\]\..*columns: Intercept, sigma, g\[\*\] \(2 of them\)"),
        ("b ~ x", "gaussian", ["Intercept", "x", "sigma", "gBo", "gCleo"], {},
         r"Left over: g\[\*\] \(2 of them\)\."),
        ("b ~ x", "gaussian", ["Intercept", "x", "sigma", "x:gBo", "as.factor(g)Cleo"], {},
         r"Left over: x:g\[\*\], g\[\*\]\."),
        ("b ~ x", "gaussian", ["Intercept", "x", "sigma", "b_muBo_x", "Bo:Intercept", "Bo:x"], {},
         r"Left over: mu\*, \*:Intercept, \*:x\."),
        ("g ~ x", "categorical", ["Bo:Intercept", "Bo:x", "Cleo:Intercept", "Cleo:zz"], {},
         r"Left over: g\[\*\]\."),
        # Names that are none of these are shown.
        ("b ~ x", "gaussian", ["Intercept", "x", "sigma", "z", "theta[2]", "mystery"], {},
         r"Left over: z, theta\[2\], mystery\..*columns: Intercept, x, sigma, z, theta"),
    ],
)  # fmt: skip
def test_columns_of_levels_that_nobody_declared_are_not_shown(formula, family, names, extra, shown):
    with pytest.raises(sr.DrawsError, match=shown) as caught:
        read(formula, family, names, data=with_names(), extra=extra)
    assert not any(level in str(caught.value) for level in ("Anna", "Bo", "Cleo"))


def test_levels_that_somebody_declared_are_shown():
    with pytest.raises(sr.DrawsError, match=r"column 'gBo': 4 draws are not"):
        read(
            "b ~ g", "gaussian", ["(Intercept)", "sigma", "gCleo"], extra={"gBo": np.nan},
            data=with_names(), types={"g": ["Anna", "Bo", "Cleo"]},
        )  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "names"),
    [
        ("poly(x, 2, raw = TRUE)", ["poly(x, 2, raw = TRUE)1", "poly(x, 2, raw = TRUE)2"]),
        ("bs(x, df = 4, degree = 2)", [f"bs(x, df = 4, degree = 2){k}" for k in range(1, 5)]),
        ("bs(x, df = 5, intercept = TRUE)",
         [f"bs(x, df = 5, intercept = TRUE){k}" for k in range(1, 6)]),
        ("bs(x, Boundary.knots = c(-5, 5))",
         [f"bs(x, Boundary.knots = c(-5, 5)){k}" for k in range(1, 4)]),
        ("bs(x, knots = c(0, 0.5))", [f"bs.x..knots...c.0..0.5..{k}" for k in range(1, 6)]),
        ("I(x/1e5)", ["I(x/1e+05)"]),
    ],
)  # fmt: skip
def test_r_spellings_of_functions(formula, names):
    frame, synthesizer = read(f"b ~ 0 + {formula}", "gaussian", [*names, "sigma"])
    found = synthesizer.models[0].posterior.coefficients[:, :, 0]
    np.testing.assert_array_equal(found, frame[names])


def test_alpha_is_an_intercept():
    frame, synthesizer = read("b ~ 1", "gaussian", ["alpha", "sigma"])
    np.testing.assert_array_equal(synthesizer.draws("b")["Intercept"], frame["alpha"])


def test_where_a_coefficient_was_read_from_with_another_reference():
    names = [f"b_mu{level}_Intercept" for level in ("low", "top")]
    _, synthesizer = read("r ~ 1", "categorical", names)
    read_from = synthesizer.describe()["read_from"].to_list()
    assert read_from == ["− b_mulow_Intercept", "b_mutop_Intercept − b_mulow_Intercept"]


def test_many_interactions_are_matched_quickly():
    data = people(200)
    for name in ("f1", "f2", "f3", "f4"):
        levels = np.random.default_rng(len(name)).choice(["a", "b", "c"], 200)
        data[name] = pd.Categorical(levels, categories=["a", "b", "c"])
    data["f2"] = data["f2"].to_numpy()[::-1]
    data["f3"] = np.roll(data["f3"].to_numpy(), 7)
    data["f4"] = np.roll(data["f4"].to_numpy(), 31)
    types = {name: ["a", "b", "c"] for name in ("f1", "f2", "f3", "f4")}
    with pytest.raises(sr.DrawsError, match="Missing"):
        read("b ~ f1*f2*f3*f4", "gaussian", ["(Intercept)", "sigma"], data=data, types=types)


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ({"x": [1, 2, np.nan, 4]}, "column 'x': 1 draw is not a finite number"),
        ({"x": ["a", "b", "c", "d"]}, "column 'x': 4 draws are not a finite number"),
        ({"x": 1.0, "sigma": [1, 0, 1, -1]}, "2 draws are not positive"),
        ({"x": 1.0, "weight": [1, 1, 1, -1]}, "negative"),
        ({"x": 1.0, "weight": 0.0}, "all zero"),
        ({"x": 1.0, "weight": 1.0, "log_weight": 0.0}, "more than one column of weights"),
    ],
)
def test_bad_draws(extra, why):
    with pytest.raises(sr.DrawsError, match=why):
        read("b ~ x", "gaussian", ["(Intercept)", "sigma"], extra=extra)


def test_files_as_r_and_cmdstan_write_them(tmp_path):
    frame = pd.DataFrame({"(Intercept)": [10.0, 9.5], "x": [1.0, 0.9], "sigma": [1.2, 1.1]})
    r = tmp_path / "r.csv"
    frame.to_csv(r, index_label="")  # write.csv with row names
    stan = tmp_path / "stan.csv"
    head = "# model = m\nlp__,accept_stat__,alpha,beta.1,sigma\n# Adaptation terminated\n"
    stan.write_text(head + "-3,0.9,10.0,1.0,1.2\n-4,0.8,9.5,0.9,1.1\n# 0.02 seconds\n")
    parquet = tmp_path / "draws.parquet"
    frame.to_parquet(parquet)
    tables = [
        sr.Synthesizer.from_draws(sr.Regression("b ~ x"), people(), path).draws("b")
        for path in (r, stan, str(parquet))
    ]
    for found in tables:
        np.testing.assert_array_equal(found[["Intercept", "x", "sigma"]], frame)


@pytest.mark.parametrize("written", ["log_lik.{}", "log_lik[{}]", "y_rep.{}.", "mu.1.{}"])
def test_what_stan_computes_for_each_record_is_dropped(written):
    names = ["alpha", "beta.1", "sigma", *(written.format(k + 1) for k in range(len(people())))]
    _, synthesizer = read("b ~ x", "gaussian", names)
    assert synthesizer.models[0].posterior.sources == ("alpha", "beta.1", "sigma")
    note = synthesizer.notes[-1]
    vector = written.partition("[")[0].partition(".")[0]
    assert note.startswith(f"Draws for b: {vector} was taken for what the model computes")
    with pytest.raises(sr.DrawsError, match="Left over"):
        read("b ~ x", "gaussian", names[:-1])


def test_what_was_left_out_is_told_of_a_saved_synthesizer_too(tmp_path):
    names = ["alpha", "beta.1", "sigma", *(f"mu.{k + 1}" for k in range(len(people())))]
    _, synthesizer = read("b ~ x", "gaussian", names)
    synthesizer.save(tmp_path / "models.nc")
    assert sr.Synthesizer.load(tmp_path / "models.nc").notes == synthesizer.notes


def levels_named_like_predictors():
    data = people()
    data["g"] = pd.Categorical(np.random.default_rng(0).choice(["r", "x", "z"], 40))
    return data


@pytest.mark.parametrize("order", ["term:level", "level:term"])
def test_a_table_joins_levels_and_terms_in_one_order(order):
    data = levels_named_like_predictors()
    names = {
        (level, term): f"{term}:{level}" if order == "term:level" else f"{level}:{term}"
        for level in ("x", "z")
        for term in ("Intercept", "x", "z")
    }
    frame, synthesizer = read("g ~ x + z", "categorical", list(names.values()), data=data)
    for (level, term), name in names.items():
        np.testing.assert_array_equal(synthesizer.draws("g")[f"{level}:{term}"], frame[name])


def test_an_order_that_nothing_shows_is_ambiguous():
    data = levels_named_like_predictors()
    names = ["x:x", "x:z", "z:x", "z:z"]
    with pytest.raises(sr.DrawsError, match="may be any of"):
        read("g ~ 0 + x + z", "categorical", names, data=data)


# -- chains -----------------------------------------------------------------------------------
def with_chains(**columns):
    _, synthesizer = read(
        "k ~ x", "poisson", ["Intercept"], extra={"x": [1.0, 2.0, 3.0, 4.0], **columns}
    )
    posterior = synthesizer.models[0].posterior
    chain = None if posterior.chain is None else list(posterior.chain)
    return list(posterior.coefficients[:, 1, 0]), chain


@pytest.mark.parametrize(
    ("columns", "slopes", "chain"),
    [
        ({}, [1, 2, 3, 4], None),
        ({".chain": [1, 1, 2, 2]}, [1, 2, 3, 4], [0, 0, 1, 1]),
        ({".chain": [1, 2, 1, 2]}, [1, 3, 2, 4], [0, 0, 1, 1]),
        ({"chain__": [1, 1, 2, 2], "iter__": [2, 1, 1, 2]}, [2, 1, 3, 4], [0, 0, 1, 1]),
        ({"CHAIN": [2, 2, 1, 1], "ITER": [10, 20, 20, 10]}, [1, 2, 4, 3], [0, 0, 1, 1]),
        ({".chain": [1, 1, 2, 2], ".iteration": [1, 2, 1, 2], ".draw": [4, 3, 2, 1]},
         [1, 2, 3, 4], [0, 0, 1, 1]),
        ({".chain": ["a", "b", "a", "b"]}, [1, 3, 2, 4], [0, 0, 1, 1]),
        ({".chain": [1, None, 1, 1]}, [1, 2, 3, 4], None),
        ({".iteration": [4, 3, 2, 1]}, [1, 2, 3, 4], None),
    ],
)  # fmt: skip
def test_chains_are_kept_and_put_in_order(columns, slopes, chain):
    assert with_chains(**columns) == (slopes, chain)


def test_the_first_draws_keep_their_chains():
    _, synthesizer = read("k ~ x", "poisson", ["Intercept", "x"], extra={".chain": [1, 1, 2, 2]})
    assert list(synthesizer.models[0].posterior.first(3).chain) == [0, 0, 1]


def test_a_column_of_the_data_tells_no_chain():
    data = people().assign(chain=1.0)
    with pytest.raises(sr.SynriskError, match="Left over: chain"):
        read("k ~ x", "poisson", ["Intercept", "x"], data=data, extra={"chain": [1, 1, 2, 2]})


def test_draws_that_are_handed_on_keep_their_chains():
    _, one = read("k ~ x", "poisson", ["Intercept", "x"], extra={"chain__": [3, 3, 5, 5]})
    assert list(one.draws("k")[".chain"]) == [1, 1, 2, 2]
    regression = sr.Regression("k ~ x", "poisson")
    again = sr.Synthesizer.from_draws(regression, people(), one.draws("k"))
    assert list(again.models[0].posterior.chain) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("formula", "family", "names", "advice"),
    [
        ("b ~ k", "gaussian", ["(Intercept)", "as.factor(k)2", "sigma"], "took k for a factor"),
        ("b ~ k", "gaussian", ["b_Intercept", "b_k2", "b_k3", "sigma"], "write as.factor(k)"),
        ("b ~ x", "gaussian", ["b_mu2_Intercept", "b_mu2_x"], "family='categorical' meant?"),
        ("k ~ x", "gaussian", ["Intercept", "x"], "family='poisson'"),
    ],
)
def test_advice_is_about_what_went_wrong_and_not_about_other_names(formula, family, names, advice):
    with pytest.raises(sr.DrawsError) as caught:
        read(formula, family, names)
    assert advice in str(caught.value)
    assert "rename" not in str(caught.value)


def test_a_table_of_probabilities_is_told_from_draws():
    p = pd.DataFrame(RNG.dirichlet(np.ones(3), 40), columns=["1", "2", "3"])
    with pytest.raises(sr.DrawsError, match=r"hold probabilities.* Give draws of the coefficients"):
        sr.Synthesizer.from_draws(sr.Regression("r ~ x", "categorical"), people(), p)


def test_advice_names_no_level_that_was_read_off_the_data():
    data = people().astype({"r": str})
    table = pd.DataFrame({"other:Intercept": [0.1, 0.2], "other:x": [0.1, 0.2]})
    with pytest.raises(sr.DrawsError) as caught:
        sr.Synthesizer.from_draws(sr.Regression("r ~ x", "categorical"), data, table)
    assert not any(level in str(caught.value) for level in set(data["r"]))
