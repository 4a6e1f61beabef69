"""The report as a reader sees it, in headless Chromium at both widths and in both schemes."""

import pytest
from helpers.browser import Browser, chromium
from helpers.cases import people

import synrisk as sr

SECTIONS = ["verdict", "evaluated", "numbers", "figures", "intruder", "guesses", "diagnostics",
            "models", "provenance", "notes"]  # fmt: skip
INSIDE = ("diagnostics", "notes")
CONTRAST = """
(() => {
  const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const back = getComputedStyle(document.body).backgroundColor;
  return [...document.querySelectorAll("p, li, td, th, h1, h2, figcaption, strong, svg text")]
    .map(one => {
      const style = getComputedStyle(one);
      const ink = one.closest("svg") ? style.fill : style.color;
      const [a, b] = [light(ink), light(back)];
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }).reduce((least, one) => Math.min(least, one), 99);
})()
"""
OVERLAPS = """
[...document.querySelectorAll("svg")].filter(svg => {
  const boxes = [...svg.querySelectorAll("text")].map(one => one.getBoundingClientRect());
  return boxes.some((a, i) => boxes.some((b, j) => j > i
    && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2));
}).map(svg => svg.getAttribute("aria-label").split(".")[0])
"""
OUTSIDE = """
[...document.querySelectorAll("svg")].filter(svg => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll("text")].map(one => one.getBoundingClientRect()).some(
    box => box.left < frame.left - 2 || box.right > frame.right + 2
      || box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
}).map(svg => svg.getAttribute("aria-label").split(".")[0])
"""


@pytest.fixture(scope="module")
def browser():
    path = chromium()
    if path is None:
        pytest.skip("There is no Chromium: the report was NOT looked at in a browser.")
    with Browser(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A report of each kind, with long and odd names."""
    long = "A_very_long_name_of_a_variable_that_somebody_exported_from_a_questionnaire"
    data = people(300, seed=8).rename(columns={"b": long})
    levels = [f"level {k} with a long <label>" for k in range(20)]
    data["r"] = [levels[k % 17 if k % 3 else k % 20] for k in range(300)]
    plan = [
        sr.Regression(f"{long} ~ x"),
        sr.Regression("k ~ z", family="poisson"),
        sr.Regression("r ~ 1", family="categorical"),
    ]
    synthesizer = sr.fit(plan, data, n_draws=100, seed=1)
    release = synthesizer.synthesize(m=3, seed=2)
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    folder = tmp_path_factory.mktemp("reports")
    criteria = sr.Criteria(probability=0.2, lift=2)
    return {
        kind: risk.report(folder / f"{kind}.html", kind=kind, criteria=criteria, synthetic=release)
        for kind in ("sharing", "inside")
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("kind", ["sharing", "inside"])
def test_the_report_can_be_read(browser, reports, kind, width, scheme):
    path = reports[kind]
    events = browser.open(path, width, scheme)
    asked = [e["params"]["request"]["url"] for e in events if _is(e, "Network.requestWillBeSent")]
    assert asked == [path.resolve().as_uri()]
    wrong = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
    assert not [e for e in events if any(_is(e, name) for name in wrong)]
    shown = browser.evaluate("[...document.querySelectorAll('section')].map(s => s.id)")
    wanted = [name for name in SECTIONS if kind == "inside" or name not in INSIDE]
    assert [name for name in shown if name in SECTIONS] == wanted
    assert ("riskiest" in shown) == (kind == "inside")
    heights = browser.evaluate("[...document.querySelectorAll('section')].map(s => s.offsetHeight)")
    assert min(heights) > 40
    assert browser.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert browser.evaluate(CONTRAST) >= 4.5
    assert browser.evaluate(OVERLAPS) == []
    assert browser.evaluate(OUTSIDE) == []


def test_figures_take_the_pages_ink(browser, reports):
    inks = []
    for scheme in ("light", "dark"):
        browser.open(reports["sharing"], 1400, scheme)
        inks.append(browser.evaluate("getComputedStyle(document.querySelector('svg text')).fill"))
    assert inks[0] != inks[1]


def test_the_report_prints_on_white(browser, reports):
    browser.open(reports["sharing"], 1400, "dark", media="print")
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    assert browser.evaluate(CONTRAST) >= 4.5


def _is(event, method):
    return event.get("method") == method
