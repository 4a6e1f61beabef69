"""Group-level terms in draws: by the names of brms, rstanarm and Bambi, evaluated by level."""

import math

import numpy as np
import pandas as pd
import pytest
from helpers.naive import NaiveModel, joint

import synrisk as sr

LEVELS = ["North", "South Hill", "West"]
TYPES = {"region": LEVELS}
N, H = 24, 40


def people(seed=3):
    rng = np.random.default_rng(seed)
    region = np.array([*LEVELS, *rng.choice(LEVELS, N - 3)])
    x = rng.normal(size=N).round(3)
    return pd.DataFrame({
        "x": x, "region": region, "y": (1.0 + x + rng.normal(size=N)).round(3),
        "code": np.array([7, 8, 9])[rng.integers(0, 3, N)],
        "k": rng.poisson(1.5, N),
    })  # fmt: skip


def in_brms(level, slope):
    return f"r_region[{level.replace(' ', '.')},{slope or 'Intercept'}]"


def in_rstanarm(level, slope):
    return f"b[{slope or '(Intercept)'} region:{level.replace(' ', '_')}]"


def in_bambi(level, slope):
    return f"{slope or '1'}|region[{level}]"


def in_mangled_brms(level, slope):
    return f"r_region.{level.replace(' ', '.')}.{slope or 'Intercept'}."


def in_mangled_rstanarm(level, slope):
    start = f"b.{slope}" if slope else "b..Intercept."
    return f"{start}.region.{level.replace(' ', '_')}."


WAYS = {
    "brms": (("b_Intercept", "b_x"), in_brms,
             ("sd_region__Intercept", "sd_region__x", "cor_region__Intercept__x", "lp__")),
    "rstanarm": (("(Intercept)", "x"), in_rstanarm,
                 ("Sigma[region:(Intercept),(Intercept)]", "Sigma[region:x,(Intercept)]",
                  "Sigma[region:x,x]", "b[(Intercept) region:_NEW_region]",
                  "b[x region:_NEW_region]")),
    "Bambi": (("Intercept", "x"), in_bambi,
              ("1|region_sigma", "x|region_sigma", "1|region_offset[North]")),
    "brms, mangled": (("b_Intercept", "b_x"), in_mangled_brms, ("sd_region__Intercept",)),
    "rstanarm, mangled": (("X.Intercept.", "x"), in_mangled_rstanarm,
                          ("Sigma.region..Intercept...Intercept..",
                           "b..Intercept..region._NEW_region.")),
}  # fmt: skip


def draws(way, seed=5):
    """Return a table in a package's names, with the coefficients by term and level."""
    rng = np.random.default_rng(seed)
    common, name, others = WAYS[way]
    table = {column: rng.normal(1.0, 0.2, H) for column in common}
    by_level = {}
    for slope in ("", "x"):
        for level in LEVELS:
            by_level[slope, level] = table[name(level, slope)] = rng.normal(0.0, 0.5, H)
    table["sigma"] = rng.uniform(0.8, 1.2, H)
    table |= {column: rng.uniform(0.5, 1.0, H) for column in others}
    shuffled = list(table)
    rng.shuffle(shuffled)
    return pd.DataFrame(table)[shuffled], by_level


@pytest.mark.parametrize("way", list(WAYS))
def test_names(way):
    table, by_level = draws(way)
    plan = sr.Regression("y ~ x + (x | region)")
    found = sr.Synthesizer.from_draws(plan, people(), table, types=TYPES).draws("y")
    np.testing.assert_array_equal(found["x"], table[WAYS[way][0][1]])
    for (slope, level), values in by_level.items():
        np.testing.assert_array_equal(found[in_bambi(level, slope)], values)
    assert found.shape[1] == 2 + 6 + 1 + 1


def test_groups_that_are_numbers():
    rng = np.random.default_rng(1)
    names = ["b_Intercept", *(f"r_code[{value},Intercept]" for value in (7, 8, 9)), "sigma"]
    table = pd.DataFrame({name: rng.uniform(0.5, 1.0, 4) for name in names})
    found = sr.Synthesizer.from_draws(sr.Regression("y ~ (1 | code)"), people(), table).draws("y")
    np.testing.assert_array_equal(found["1|code[8]"], table["r_code[8,Intercept]"])


def test_levels_of_the_response_have_coefficients_by_group_each():
    rng = np.random.default_rng(1)
    data = people().assign(r=np.tile(["low", "mid", "top"], N // 3))
    names = [f"b_mu{level}_Intercept" for level in ("mid", "top")]
    names += [
        f"r_region__mu{r}[{g.replace(' ', '.')},Intercept]" for r in ("mid", "top") for g in LEVELS
    ]
    names += ["sd_region__mumid_Intercept", "sd_region__mutop_Intercept"]
    table = pd.DataFrame({name: rng.uniform(0.5, 1.0, 4) for name in names})
    plan = sr.Regression("r ~ (1 | region)", "categorical")
    found = sr.Synthesizer.from_draws(plan, data, table, types=TYPES).draws("r")
    np.testing.assert_array_equal(
        found["top:1|region[South Hill]"], table["r_region__mutop[South.Hill,Intercept]"]
    )


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("kind", ["lacks", "has another"])
def test_levels_that_do_not_fit_are_refused_without_a_name(way, kind):
    """Nobody declared the levels, so they are not shown."""
    table, _ = draws(way)
    name = WAYS[way][1]
    if kind == "lacks":
        table = table.drop(columns=name("West", "x"))
    else:
        table[name("Atlantis", "")] = 1.0
    with pytest.raises(sr.DrawsError, match=r"do not fit the formula") as told:
        sr.Synthesizer.from_draws(sr.Regression("y ~ x + (x | region)"), people(), table)
    for secret in ("West", "North", "South", "Atlantis"):
        assert secret not in str(told.value)
    assert ("x|region[*]" if kind == "lacks" else "coefficients by region") in str(told.value)


def test_draws_without_groups_are_refused_for_a_formula_without_them():
    table, _ = draws("brms")
    with pytest.raises(sr.DrawsError, match="Left over") as told:
        sr.Synthesizer.from_draws(sr.Regression("y ~ x"), people(), table)
    assert "North" not in str(told.value)


class ByRegion(NaiveModel):
    """Looks the coefficients of a row's own level up."""

    def log_f(self, row, h):
        slope = self.beta[h, 1] + self.levels["x", row["region"]][h]
        eta = self.beta[h, 0] + self.levels["", row["region"]][h] + slope * row["x"]
        s = self.sigma[h]
        return -((row["y"] - eta) ** 2) / (2 * s * s) - math.log(s) - math.log(2 * math.pi) / 2


@pytest.mark.parametrize("estimator", ["importance", "paper"])
def test_a_guess_for_the_group_has_the_coefficients_of_its_level(estimator):
    """Against loops that look coefficients up by level: of records, guesses and synthetic rows."""
    rng = np.random.default_rng(8)
    data, (table, by_level) = people(), draws("brms")
    names = ["b_muSouthHill_Intercept", "b_muWest_Intercept"]
    of_region = pd.DataFrame({name: rng.normal(0.1, 0.3, H) for name in names})
    plan = [sr.Regression("region ~ 1", "categorical"), sr.Regression("y ~ x + (x | region)")]
    synthesizer = sr.Synthesizer.from_draws(plan, data, [of_region, table], types=TYPES)
    release = synthesizer.synthesize(m=2, seed=98765432109876543210)
    risk = sr.attribute_risk(
        synthesizer, release, question="paper", guesses={"y": sr.Additive(5, 1.0, 1.0)},
        estimator=estimator, diagnostics=False, records=[0, 7],
    )  # fmt: skip
    beta = np.zeros((H, 1, 2))
    beta[:, 0] = of_region.to_numpy()
    models = [
        NaiveModel("region", "categorical", lambda row: [1.0], beta, levels=tuple(LEVELS)),
        ByRegion("y", "gaussian", None, table[["b_Intercept", "b_x"]].to_numpy(),
                 table["sigma"].to_numpy(), levels=by_level),
    ]  # fmt: skip
    rows = data.to_dict("records")
    for record in (0, 7):
        found = risk.joint(record)
        guesses = [LEVELS, list(found.coords["y"].to_numpy())]
        expected = joint(
            models, rows, [one.to_dict("records") for one in release], record, guesses, estimator
        )
        np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-9)


def test_synthesis_draws_with_the_coefficients_of_the_synthetic_level():
    """With a spread of nearly nothing the values are the linear predictors."""
    data, (table, by_level) = people(), draws("brms")
    table = table.head(1).assign(sigma=1e-9)
    of_region = pd.DataFrame({"b_muSouthHill_Intercept": [0.2], "b_muWest_Intercept": [0.1]})
    plan = [sr.Regression("region ~ 1", "categorical"), sr.Regression("y ~ x + (x | region)")]
    synthesizer = sr.Synthesizer.from_draws(plan, data, [of_region, table], types=TYPES)
    (made,) = synthesizer.synthesize(seed=98765432109876543210)
    assert (made["region"] != data["region"]).any()
    slope = table["b_x"][0] + made["region"].map(lambda level: by_level["x", level][0])
    place = table["b_Intercept"][0] + made["region"].map(lambda level: by_level["", level][0])
    np.testing.assert_allclose(made["y"], place + slope * made["x"], atol=1e-7)


def test_a_release_with_a_level_that_no_record_has_is_refused():
    table, _ = draws("brms")
    data = people()
    plan = sr.Regression("y ~ x + (x | region)")
    synthesizer = sr.Synthesizer.from_draws(
        plan, data, table, types={"region": [*LEVELS, "Atlantis"]}
    )
    release = synthesizer.synthesize(seed=98765432109876543210)
    other = release[0].assign(region=["Atlantis", *data["region"][1:]])
    with pytest.raises(sr.SynriskError, match="no record of the confidential data has"):
        sr.attribute_risk(synthesizer, [other])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "engine='nuts'"),
        ({"engine": "laplace"}, "engine='nuts'"),
        ({"engine": "nuts", "prior": "paper"}, "default priors"),
    ],
)
def test_a_fit_says_what_fits_group_level_terms(options, why):
    with pytest.raises(sr.SynriskError, match=why):
        sr.fit(sr.Regression("y ~ x + (x | region)"), people(), **options)


@pytest.mark.parametrize(
    ("regression", "why"),
    [
        (sr.Regression("y ~ (1 | region)", weights="w"), "without weights"),
        (sr.Regression("k ~ (1 | region)", "hurdle_poisson"), "for the families"),
    ],
)
def test_what_bambi_does_not_fit_is_said(regression, why):
    with pytest.raises(sr.SynriskError, match=why):
        sr.fit(regression, people().assign(w=1.0), engine="nuts")


def test_without_bambi_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "bambi", None)
    with pytest.raises(sr.SynriskError, match=r"synrisk\[bambi\]"):
        sr.fit(sr.Regression("y ~ (1 | region)"), people(), engine="nuts")


def test_saved_and_loaded(tmp_path):
    table, _ = draws("rstanarm")
    made = sr.Synthesizer.from_draws(sr.Regression("y ~ x + (x | region)"), people(), table)
    made.save(tmp_path / "s.nc")
    again = sr.Synthesizer.load(tmp_path / "s.nc")
    pd.testing.assert_frame_equal(again.draws("y"), made.draws("y"))


def test_usefulness_says_that_intervals_are_not_compared():
    table, _ = draws("brms")
    made = sr.Synthesizer.from_draws(sr.Regression("y ~ x + (x | region)"), people(), table)
    found = sr.utility(made, made.synthesize(seed=98765432109876543210))
    assert any("group-level terms" in note for note in found.notes)
