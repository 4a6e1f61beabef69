import pytest

import synrisk as sr
from synrisk.models.families import Gaussian
from synrisk.models.plan import Plan


def test_a_plan_knows_its_columns_and_parents():
    plan = Plan.of(
        [
            sr.Regression("a ~ x"),
            sr.Regression("b ~ z", weights="w"),
            sr.Regression("c ~ log(a):x + b", "poisson"),
            sr.Regression("as.factor(d) ~ c", "multinom"),
        ]
    )
    assert plan.synthesized == ("a", "b", "c", "d")
    assert plan.columns == ("a", "x", "b", "z", "c", "d")
    assert plan.weight_columns == ("w",)
    assert plan.factors == ("d",)
    assert [plan.parents(k) for k in range(4)] == [(), (), (0, 1), (2,)]


def test_a_regression_takes_a_name_or_an_instance():
    assert sr.Regression("a ~ x", "norm") == sr.Regression("a ~ x", Gaussian())
    assert repr(sr.Regression("a ~ x")) == (
        "Regression(formula='a ~ x', family=Gaussian(), prior=None, weights=None)"
    )


@pytest.mark.parametrize(
    ("regressions", "why"),
    [
        ([], "empty"),
        (["a ~ x"], "Element 1 of the plan must be a Regression"),
        ([sr.Regression("a ~ x"), sr.Regression("a ~ z")], "'a' is synthesized twice"),
        ([sr.Regression("a ~ b"), sr.Regression("b ~ x")], "uses b before it is synthesized"),
        ([sr.Regression("a ~ x"), sr.Regression("b ~ x", weights="a")], "itself synthesized"),
    ],
)
def test_bad_plans(regressions, why):
    with pytest.raises(sr.PlanError, match=why):
        Plan.of(regressions)


def test_bad_regressions():
    with pytest.raises(sr.PlanError, match="own predictor"):
        sr.Regression("a ~ I(a^2)")
    with pytest.raises(sr.PlanError, match="neither an intercept nor a predictor"):
        sr.Regression("a ~ 0")
    with pytest.raises(sr.PlanError, match="made a factor"):
        sr.Regression("C(a) ~ x", "poisson")
    with pytest.raises(sr.OptionError, match="Did you mean 'gaussian'"):
        sr.Regression("a ~ x", "gausian")
    with pytest.raises(sr.OptionError, match="family must be one of"):
        sr.Regression("a ~ x", 3)
