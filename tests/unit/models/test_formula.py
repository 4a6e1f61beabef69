import numpy as np
import pytest

from synrisk.base.errors import FormulaError
from synrisk.models.formula.expressions import variables, write
from synrisk.models.formula.parser import FUNCTIONS, parse


def terms(text):
    return [":".join(write(factor) for factor in term) for term in parse(text).terms]


@pytest.mark.parametrize(
    ("text", "expected", "intercept"),
    [
        ("y ~ 1", [], True),
        ("y ~ a + b", ["a", "b"], True),
        ("y ~ a*b", ["a", "b", "a:b"], True),
        ("y ~ a:b + a", ["a", "a:b"], True),
        ("y ~ a/b", ["a", "a:b"], True),
        ("y ~ (a + b + c)^2", ["a", "b", "c", "a:b", "a:c", "b:c"], True),
        ("y ~ (a + b)**2 - a:b", ["a", "b"], True),
        ("y ~ a*b*c - a:b:c", ["a", "b", "c", "a:b", "a:c", "b:c"], True),
        ("y ~ (a + b):c", ["a:c", "b:c"], True),
        ("y ~ 0 + a", ["a"], False),
        ("y ~ a - 1", ["a"], False),
        ("y ~ -1 + a", ["a"], False),
        ("y ~ a + 0 + 1", ["a"], True),
        ("y ~ a:b + b:a", ["a:b"], True),
        ("y ~ a:a", ["a"], True),
        ("bf(y ~ as.factor(a) + I(b^2))", ["C(a)", "I(b ** 2)"], True),
        ("brms::bf(y ~ factor(a))", ["C(a)"], True),
        ("y~log(a)+bs(b,4)+poly(c, 2)", ["log(a)", "bs(b, df=4)", "poly(c, degree=2)"], True),
        ("y ~ bs(b, knots = c(0, .5), Boundary.knots = c(-1, 2))",
         ["bs(b, knots=[0, 0.5], lower_bound=-1, upper_bound=2)"], True),
        ("y ~ bs(b, knots=[1], intercept=TRUE)",
         ["bs(b, knots=[1], include_intercept=True)"], True),
        ("y ~ `odd name` + total.income + .hidden", ["odd name", "total.income", ".hidden"], True),
        ("y ~ I(-a / 2 + b^-1) + scale(log(a))", ["I(-a / 2 + b ** -1)", "scale(log(a))"], True),
        ("y ~ größe", ["größe"], True),
    ],
)  # fmt: skip
def test_terms_are_expanded_as_r_does(text, expected, intercept):
    assert terms(text) == expected
    assert parse(text).intercept is intercept


def test_parents_are_found_in_parsed_terms():
    parsed = parse("y ~ log(a + b):C(k) + I(a*c)")
    assert variables(parsed.terms[1]) == ("a", "b", "k")
    assert parsed.predictors == ("a", "c", "b", "k")


def test_the_response_may_be_made_a_factor():
    assert parse("as.factor(Race) ~ x").response == "Race"
    assert parse("as.factor(Race) ~ x").response_is_factor


@pytest.mark.parametrize(
    "text",
    [
        "y ~ __import__('os').system('true')",
        "y ~ open('f')",
        "y ~ eval(a)",
        "y ~ a.b()",
        "y ~ np.log(a)",
        "y ~ I(a.mean())",
        "y ~ I(b - b.mean())",
        "y ~ I((lambda: 1)())",
        "y ~ [a for a in b]",
        "y ~ a[0]",
        "y ~ {a}",
        "y ~ 'a'",
        "y ~ I(a, b=__import__)",
        "y ~ log(a, base=open)",
        "y ~ lag(a)",
        "y ~ hashed(a)",
        "y ~ a; import os",
        "y ~ a @ b",
        "y ~ a := 1",
    ],
)
def test_code_is_refused(text):
    with pytest.raises(FormulaError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("y + x", "no '~'"),
        ("~ x", "response must be"),
        ("exp(y) ~ x", "inverse is known"),
        ("y^2 ~ x", "inverse is known"),
        ("I(1/y) ~ x", "inverse is known"),
        ("y*0 ~ x", "inverse is known"),
        ("y + z ~ x", "inverse is known"),
        ("scale(y) ~ x", "inverse is known"),
        ("log(y) x ~ x", "expected '~'"),
        ("~ x", "must be a column"),
        ("y ~ x^2", r"I\(x\^2\)"),
        ("y ~ 2*x", "belongs in I"),
        ("y ~ x/10", "belongs in I"),
        ("y ~ x + 3", "belongs in I"),
        ("y ~ x +", "found 'the end'"),
        ("y ~ (x", r"expected '\)'"),
        ("y ~ x)", "unexpected"),
        ("y ~ .", "not part of the language"),
        ("y ~ x | group", r"unexpected '\|'"),
        ("y ~ x * (1 | g)", "cannot be in parentheses"),
        ("y ~ x - (1 | g)", "added by itself"),
        ("y ~ ((1 | g) + x)", "added by itself"),
        ("y ~ ((1 | h) + x | g)", "added by itself"),
        ("y ~ (1 | g):x", "unexpected ':'"),
        ("y ~ (1 | g/h)", "of one column"),
        ("y ~ (1 | gr(g))", "of one column"),
        ("y ~ (0 | g)", "is empty"),
        ("y ~ (g | g)", "by its own levels"),
        ("y ~ (1 | g) + (x | g)", "given twice"),
        ("y ~ (1 |", "a column after"),
        ("y ~ (1 | 2)", "a column after"),
        ("y ~ I(x | g)", r"expected '\)'"),
        ("y ~ lgo(x)", "Did you mean 'log'"),
        ("y ~ log(bs(x))", "cannot stand inside"),
        ("y ~ C(a + b)", "takes a column"),
        ("y ~ C(a, Sum)", "expected '='"),
        ("y ~ bs(x, dg=3)", "options: df"),
        ("y ~ I(2)", "no column"),
        ("y ~ x ~ z", "unexpected"),
        ("bf(y ~ x, sigma ~ z)", "unexpected"),
        ("", "no '~'"),
    ],
)
def test_mistakes_are_named(text, why):
    with pytest.raises(FormulaError, match=why):
        parse(text)


@pytest.mark.parametrize(
    "text", ["y ~ " + "(" * 60 + "x" + ")" * 60, "y ~ I(" + "-" * 200 + "x)",
             "y ~ I(x" + "^2" * 300 + ")", "y ~ " + " + ".join(["x"] * 2000)]
)  # fmt: skip
def test_bombs_are_refused(text):
    with pytest.raises(FormulaError, match="not read"):
        parse(text)


def test_a_formula_must_be_text():
    with pytest.raises(FormulaError, match="ndarray"):
        parse(np.zeros(2))


@pytest.mark.parametrize(
    "text", ["I(-x/2+1)", "I((x+1)^2)", "I(x-(z-1))", "I((-x)^2)", "I(-x^2)", "I((x^2)^3)",
             "I(x^2^3)", "I(x/(2*z))", "I(-(x+1))", "I(2*-x)", "bs(x,df=5)", "log(x/(z+1))"]
)  # fmt: skip
def test_writing_and_parsing_are_inverse(text):
    node = parse(f"y ~ {text}").terms[0][0]
    assert parse(f"y ~ {write(node)}").terms[0][0] == node
    assert write(node, power="^", space="") == text


def test_the_message_lists_what_there_is():
    with pytest.raises(FormulaError) as caught:
        parse("y ~ frobnicate(x)")
    for name in FUNCTIONS:
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("text", "grouping", "intercept", "slopes"),
    [
        ("y ~ (1 | g)", "g", True, []),
        ("y ~ x + (x | g)", "g", True, ["x"]),
        ("y ~ (0 + x | `my g`) + z", "my g", False, ["x"]),
        ("y ~ (1 + x + z || g)", "g", True, ["x", "z"]),
        ("bf(y ~ (I(x^2) - 1 | g))", "g", False, ["I(x ** 2)"]),
    ],
)
def test_group_level_terms(text, grouping, intercept, slopes):
    (group,) = parse(text).groups
    assert (group.grouping, group.intercept) == (grouping, intercept)
    assert [write(factor) for (factor,) in group.terms] == slopes
    assert grouping in parse(text).predictors


def test_terms_outside_of_groups_stay_their_own():
    parsed = parse("y ~ x + (0 + z | g) + (1 | h)")
    assert parsed.intercept
    assert [write(factor) for (factor,) in parsed.terms] == ["x"]
    assert parsed.predictors == ("x", "z", "g", "h")
