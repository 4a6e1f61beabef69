"""Plots: where lines and bars stand, what degenerate input does, and a few whole pictures."""

import re
import sys
import warnings
from dataclasses import replace
from functools import cache
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from helpers.cases import one_gaussian, people, two_gaussians
from matplotlib import pyplot
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

import synrisk as sr
from synrisk.plots.density import density
from synrisk.plots.style import number_labels, text
from synrisk.plots.view import grouped

IMAGES = Path(__file__).parent / "images"
TOLERANCE = 8.0  # root mean square of grey values; another curve is at 20 and more
ODD = ("a$b_c^2\\d$", "_x😀年", "A very long name of a variable, exported from a questionnaire")


@cache
def pair():
    """Two gaussian variables of forty records."""
    synthesizer, release = two_gaussians()
    return sr.attribute_risk(synthesizer, release, question="paper"), release


@cache
def several():
    """Four variables of all kinds, with odd names, and columns with gaps beside them."""
    data = people(120, seed=3)
    data = data.rename(columns={"b": ODD[0], "k": ODD[1], "r": ODD[2]})
    data["gaps"] = np.where(np.arange(120) % 5 == 0, np.nan, data["z"])
    data["mixed"] = np.array([1, "a", 2.5, None], dtype=object)[np.arange(120) % 4]
    plan = [
        sr.Regression(f"`{ODD[0]}` ~ x"),
        sr.Regression(f"`{ODD[1]}` ~ `{ODD[0]}`", family="poisson"),
        sr.Regression(f"`{ODD[2]}` ~ 1", family="categorical"),
        sr.Regression(f"o ~ `{ODD[0]}`", family="bernoulli"),
    ]
    synthesizer = sr.fit(plan, data, n_draws=100, seed=1)
    release = synthesizer.synthesize(m=2, seed=1)
    return sr.attribute_risk(synthesizer, release, guesses=5, question="paper"), release


def every_plot(risk, release, label, number, group):
    plot = risk.plot
    yield plot.probability()
    yield plot.marginals()
    yield plot.ranks()
    yield plot.ranks(of=risk.summary().index[-1])
    yield plot.differences()
    yield plot.distributions(release)
    yield plot.record(label)
    yield plot.against(number)
    yield plot.against(group, measure="lift")
    yield plot.by(number, measure="log_odds_range")
    yield plot.by(group)
    yield plot.error()
    yield plot.exceedance()
    yield plot.exceedance(measure="log_odds_range")


def drawn(axes):
    """Draw the figure, so that what matplotlib does late is done, and return its Axes."""
    axes = np.ravel(axes)
    axes[0].figure.savefig(BytesIO(), format="png", dpi=40)
    return axes


def vertical(ax):
    """The positions of lines across the whole height."""
    return [line.get_xdata()[0] for line in ax.lines if list(line.get_ydata()) == [0, 1]]


def words(ax):
    shown = [ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()]
    legend = ax.get_legend()
    return "\n".join(shown + [t.get_text() for t in (legend.get_texts() if legend else ())])


def test_the_line_stands_at_the_prior():
    risk, _ = pair()
    assert vertical(risk.plot.probability()) == [pytest.approx(1 / 121, rel=1e-12)]
    for ax in risk.plot.marginals():
        assert vertical(ax) == [pytest.approx(1 / 11, rel=1e-12)]
    assert "1/121" in words(risk.plot.probability())
    assert "n = 40 records" in words(risk.plot.probability())


def test_priors_that_differ_are_said_to():
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, intruder_prior="model", question="paper")
    ax = risk.plot.probability()
    assert vertical(ax) == [pytest.approx(risk.records["prior"].mean())]
    (span,) = ax.patches
    assert span.get_x() == pytest.approx(risk.records["prior"].min())
    assert span.get_x() + span.get_width() == pytest.approx(risk.records["prior"].max())
    assert "mean prior" in words(ax)


def test_a_density_has_area_one_within_its_bounds():
    rng = np.random.default_rng(0)
    for values in (rng.beta(0.6, 4.0, 5126), rng.beta(0.6, 4.0, 3), np.repeat([0.0, 1.0], [95, 5])):
        grid, height = density(values, 0.0, 1.0)
        assert grid.min() >= 0.0
        assert grid.max() <= 1.0
        assert height.min() >= 0.0
        assert np.sum(height) * (grid[1] - grid[0]) == pytest.approx(1.0)


def test_a_density_does_not_fall_at_a_bound_that_values_touch():
    values = np.random.default_rng(0).uniform(0.0, 1.0, 20_000)
    _, height = density(values, 0.0, 1.0)
    assert height[0] == pytest.approx(1.0, abs=0.15)
    assert height[-1] == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("of", ["joint", "b"])
def test_bars_of_ranks_sum_to_the_records(of):
    risk, _ = pair()
    ax = risk.plot.ranks(of=of)
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(heights) == 40
    n_guesses = 121 if of == "joint" else 11
    assert vertical(ax) == [(n_guesses + 1) / 2]
    assert f"{n_guesses} guesses" in words(ax)


def test_ranks_of_a_variable_are_those_of_its_marginal():
    risk, _ = several()
    for name in risk.summary().index[1:]:
        marginal = risk.marginal(name)
        n_first = int(risk.summary().loc[name, "share_best"] * 120 + 0.5)
        assert f"{n_first:,} truths ranked first" in words(risk.plot.ranks(of=name))
        heights = [bar.get_height() for bar in risk.plot.ranks(of=name).patches]
        assert len(heights) == marginal.sizes["guess"]
        assert heights[0] == n_first


def test_records_with_differing_numbers_of_guesses():
    synthesizer, release = one_gaussian()
    guesses = np.linspace(5.0, 15.0, 9) + np.zeros((40, 1))
    guesses[::2, 5:] = np.nan
    risk = sr.attribute_risk(synthesizer, release, guesses=sr.Values(guesses), question="paper")
    ax = risk.plot.ranks()
    assert "5 to 9 guesses" in words(ax)
    assert vertical(ax) == [pytest.approx((3.0 + 5.0) / 2)]
    assert len(risk.plot.record(0).patches) == 5
    assert len(risk.plot.record(1).patches) == 9


def test_differences_are_those_of_the_records():
    risk, _ = several()
    axes = risk.plot.differences()
    for name, ax in zip(risk.summary().index[1:], axes, strict=True):
        off = risk.records[f"abs_diff_{name}"]
        if ax.patches:
            assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(1.0)
            assert ax.patches[0].get_height() == pytest.approx((off == off.min()).mean())
        else:
            assert f"mean {off.mean():.3g}" in words(ax)


def test_shares_of_the_distributions_sum_to_one():
    risk, release = several()
    ax = risk.plot.distributions(release)[2]
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(
        list(people(120, seed=3)["r"].value_counts(normalize=True, sort=False))
    )
    for line, dataset in zip(ax.lines, release, strict=True):
        shares = dataset[ODD[2]].value_counts(normalize=True, sort=False)
        np.testing.assert_allclose(line.get_ydata(), shares)


def test_distributions_take_files_and_refuse_what_does_not_fit(tmp_path):
    risk, release = pair()
    release.to_csv(tmp_path / "one.csv", index=False)
    assert len(risk.plot.distributions([tmp_path / "one.csv", release])) == 2
    with pytest.raises(sr.SyntheticDataError, match="no column 'c'"):
        risk.plot.distributions(release[["b"]])


def test_a_records_heat_map_holds_its_table_and_marks_the_truth():
    synthesizer, release = two_gaussians()
    aside = {"b": sr.Additive(9, 1.0, 3.0), "c": sr.Additive(7, 2.0, 1.0)}
    risk = sr.attribute_risk(synthesizer, release, guesses=aside, question="paper")
    ax = risk.plot.record(17)
    np.testing.assert_allclose(ax.images[0].get_array(), risk.joint(17).to_numpy())
    ranking = risk.ranking(17)
    truth = ranking[ranking["is_truth"]].iloc[0]
    row = list(risk.joint(17)["b"].to_numpy()).index(truth["b"])
    column = list(risk.joint(17)["c"].to_numpy()).index(truth["c"])
    assert {patch.get_xy() for patch in ax.patches} == {(column - 0.5, row - 0.5)}
    assert f"{risk.records.loc[17, 'probability']:.3g}" in words(ax)


def test_a_record_of_four_variables_has_a_heat_map_for_each_pair():
    risk, _ = several()
    axes = risk.plot.record(7)
    assert len(axes) == 6
    joint = risk.joint(7)
    np.testing.assert_allclose(
        axes[5].images[0].get_array(), joint.sum(list(ODD[:2])).transpose(ODD[2], "o")
    )
    for ax in axes:
        assert float(np.sum(ax.images[0].get_array())) == pytest.approx(1.0)


def test_a_record_of_one_variable_has_bars():
    synthesizer, release = one_gaussian()
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    ax = risk.plot.record(3)
    assert sum(bar.get_height() for bar in ax.patches) == pytest.approx(1.0)
    assert ax.patches[-1].get_height() == pytest.approx(risk.records.loc[3, "probability"])


@pytest.mark.parametrize("measure", ["probability", "lift", "log_odds_range"])
def test_exceedance_is_the_share_over_the_threshold(measure):
    risk, _ = pair()
    values = risk.records[measure].to_numpy()
    ax = risk.plot.exceedance(measure=measure, of="joint")
    x, y = ax.lines[0].get_data()
    for threshold in np.quantile(values, [0.1, 0.5, 0.9]):
        over = float((values > threshold).mean())
        assert y[x > threshold].max() == pytest.approx(over)


def test_exceedance_draws_the_joint_and_each_variable():
    risk, _ = pair()
    # Together by their lift: the joint's probabilities are far smaller than a variable's.
    together = words(risk.plot.exceedance())
    assert "threshold of the lift" in together
    assert together.endswith("joint\nb\nc\n1: the release told nothing")
    assert words(risk.plot.exceedance(measure="probability", of=["c", "b"])).endswith("c\nb")
    assert "threshold of the probability" in words(risk.plot.exceedance(of="b"))


def labels(axis):
    axis.axes.figure.canvas.draw()
    return [tick.get_text() for tick in axis.get_ticklabels() if tick.get_text()]


def test_numbers_are_written_in_full():
    data = people(200)[["x", "b"]].assign(b=lambda d: 40_000 + 2_000 * d["b"])
    synthesizer = sr.fit(sr.Regression("b ~ x"), data, seed=1, n_draws=200)
    release = synthesizer.synthesize(seed=1)
    risk = sr.attribute_risk(synthesizer, release, question="paper")
    assert all(re.fullmatch(r"\d\d,\d{3}", shown) for shown in labels(risk.plot.record(3).xaxis))
    (ax,) = np.ravel(risk.plot.distributions(release))
    assert all("," in shown for shown in labels(ax.xaxis))
    assert ax.xaxis.get_offset_text().get_text() == ax.yaxis.get_offset_text().get_text() == ""
    # Densities per unit of income are small: each label says so by itself.
    assert all(float(shown.replace("−", "-")) < 1e-3 for shown in labels(ax.yaxis))


def test_few_distinct_probabilities_are_bars():
    data = people(300)
    synthesizer = sr.fit(sr.Regression("o ~ 1", family="bernoulli"), data, seed=1, n_draws=200)
    risk = sr.attribute_risk(synthesizer, synthesizer.synthesize(seed=1), question="paper")
    ax = risk.plot.probability()
    assert ax.get_ylabel() == "share of records"
    heights = [segment[1, 1] for segment in ax.collections[0].get_segments()]
    assert len(heights) == 2
    assert sum(heights) == pytest.approx(1.0)


def test_means_by_group_are_those_of_the_summary():
    risk, _ = pair()
    ax = risk.plot.by("u")
    means = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"]
    summary = risk.summary(by="u")["mean"].xs("joint", level="of")
    np.testing.assert_allclose(means, summary)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    sizes = people(40)["u"].value_counts(sort=False)
    assert labels == [f"{level} (n = {n})" for level, n in sizes.items()]


def test_numbers_are_cut_into_groups_and_few_values_are_groups():
    risk, _ = pair()
    assert len(risk.plot.by("x").get_yticks()) == 10
    assert len(risk.plot.by("k").get_yticks()) == people(40)["k"].nunique()


def test_gaps_are_counted():
    risk, _ = several()
    assert "(24 without a value left out)" in words(risk.plot.against("gaps"))
    assert "(missing) (n = 24)" in [t.get_text() for t in risk.plot.by("gaps").get_yticklabels()]


def test_points_are_those_of_the_records():
    risk, _ = pair()
    points = risk.plot.against("x", of="b").collections[0].get_offsets()
    expected = np.column_stack([people(40)["x"], risk.records["probability_b"]])
    np.testing.assert_allclose(points, expected)


def test_many_groups_are_pooled_and_ordered():
    values = pd.Series([f"g{k % 50:02d}" for k in range(55)])
    groups = grouped(values)
    assert len(groups) == 40
    assert groups[-1][0] == "(11 other levels)"
    assert sum(rows.sum() for _, rows in groups) == 55
    assert [label for label, _ in grouped(pd.Series([10, 9, 2]))] == ["2", "9", "10"]


def test_unreliable_records_are_marked():
    risk, _ = several()
    reliable = np.arange(len(risk.records)) >= 3
    errors = replace(risk._result.errors, reliable=reliable)
    marked = replace(risk, _result=replace(risk._result, errors=errors))
    ax = marked.plot.error()
    assert [len(points.get_offsets()) for points in ax.collections] == [117, 3]
    np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 1], risk.records["mcse"].iloc[:3])
    assert "not reliable (3)" in words(ax)


def test_everything_can_be_drawn_with_odd_names_and_all_kinds():
    risk, release = several()
    for axes in every_plot(risk, release, 7, "gaps", "mixed"):
        drawn(axes)


@pytest.mark.parametrize(
    "options", [{"n_draws": 1}, {"records": [5]}, {"records": [5, 9]}], ids=str
)
def test_degenerate_results_can_be_drawn(options):
    """All probabilities equal; one record; two."""
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, **options, question="paper")
    for axes in every_plot(risk, release, 5, "x", "u"):
        drawn(axes)


def test_a_constant_is_a_spike_at_its_value():
    synthesizer, release = two_gaussians()
    ax = sr.attribute_risk(synthesizer, release, n_draws=1, question="paper").plot.probability()
    assert [t.get_text().strip() for t in ax.texts] == ["all the same"]
    assert ax.lines[1].get_xdata() == pytest.approx([1 / 121, 1 / 121])


def test_names_stand_as_text():
    assert text("a$b$") == r"a\$b\$"
    assert text("x" * 50) == "x" * 20 + "…" + "x" * 11
    assert text("年") == "[U+5E74]"  # which the font lacks
    assert not is_math_text(text("$a_b^c$ \\d{"))


def test_labels_of_guesses_differ_where_guesses_do():
    assert number_labels(np.array([1.0, 1.00001])) == ["1", "1.00001"]
    assert number_labels(np.array([3, 40])) == ["3", "40"]
    assert number_labels(np.array(["a", "b"], dtype=object)) == ["a", "b"]


def test_a_name_that_begins_with_an_underscore_is_in_the_legend():
    risk, _ = several()
    legend = risk.plot.exceedance().get_legend()
    assert text(ODD[1]) in [t.get_text() for t in legend.get_texts()]


def test_given_axes_are_drawn_on_and_returned():
    risk, release = pair()
    figure = Figure()
    axes = figure.subplots(2, 1)
    assert risk.plot.probability(ax=axes[0]) is axes[0]
    assert list(risk.plot.marginals(ax=axes)) == list(axes)
    assert list(risk.plot.distributions(release, ax=list(axes))) == list(axes)


def test_pyplot_and_settings_are_left_alone():
    risk, release = pair()
    settings, backend = dict(mpl.rcParams), mpl.get_backend()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(25):
            risk.plot.probability()
    for axes in every_plot(risk, release, 5, "x", "u"):
        drawn(axes)
    assert pyplot.get_fignums() == []
    assert dict(mpl.rcParams) == settings
    assert mpl.get_backend() == backend


def test_interactive_figures_are_known_to_pyplot():
    risk, _ = pair()
    with mpl.rc_context({"interactive": True}):
        ax = risk.plot.probability()
    assert pyplot.get_fignums() == [ax.figure.number]
    pyplot.close(ax.figure)


def test_a_notebooks_figures_are_known_to_pyplot(monkeypatch):
    risk, _ = pair()
    pyplot.close(pyplot.figure())  # the first figure of a process asks the shell for more
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    ax = risk.plot.probability()
    assert pyplot.get_fignums() == [ax.figure.number]
    pyplot.close(ax.figure)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda plot: plot.probability(of="jont"), "Did you mean 'joint'"),
        (lambda plot: plot.ranks(of=3), "of= must be one of joint, b, c; got an int"),
        (lambda plot: plot.error(of="x"), "of= must be one of joint, b, c; got 'x'"),
        (lambda plot: plot.against("X"), "'X' is not a column.*Did you mean 'x'"),
        (lambda plot: plot.by(["x"]), "a list is not a column"),
        (lambda plot: plot.by("u", measure="lft"), "Did you mean 'lift'"),
        (lambda plot: plot.exceedance(measure="log_odds_range", of="b"), "of='joint'"),
        (lambda plot: plot.exceedance(of=[]), "a name or a list of names"),
        (lambda plot: plot.record(4711), "not among the evaluated records"),
        (lambda plot: plot.marginals(ax=Figure().add_subplot()), "2 matplotlib Axes in a list"),
        (lambda plot: plot.probability(ax="here"), "1 matplotlib Axes"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(sr.OptionError, match=message):
        call(pair()[0].plot)


def test_an_error_that_was_not_estimated_is_not_drawn():
    synthesizer, release = two_gaussians()
    risk = sr.attribute_risk(synthesizer, release, diagnostics=False, question="paper")
    with pytest.raises(sr.OptionError, match="diagnostics=True"):
        risk.plot.error()


def test_the_accessor_lists_its_plots():
    assert "exceedance()" in repr(pair()[0].plot)


@cache
def households():
    """A gaussian variable and a factor, without Monte Carlo or nearly so."""
    data = sr.load_households().iloc[:600]
    plan = [sr.Regression("LogExpenditure ~ 1"), sr.Regression("LogIncome ~ LogExpenditure")]
    synthesizer = sr.fit(plan, data, n_draws=50, seed=1)
    release = synthesizer.synthesize(m=2, seed=2)
    return sr.attribute_risk(synthesizer, release, question="paper"), release


PICTURES = {
    "probability": lambda risk, _: risk.plot.probability(),
    "record": lambda risk, _: risk.plot.record(17),
    "distributions": lambda risk, release: risk.plot.distributions(release),
    "by": lambda risk, _: risk.plot.by("Race"),
}


def picture(draw, path):
    with mpl.style.context("default"):
        figure = np.ravel(draw(*households()))[0].figure
        figure.savefig(path, dpi=45, metadata={"Software": None})
    return str(path)


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.skipif(
    mpl.__version_info__ < (3, 11), reason="matplotlib before 3.11 draws text otherwise"
)
def test_pictures_are_as_they_were(name, tmp_path):
    """To accept a change: look at it, and copy it over the one in tests/unit/plots/images."""
    made = picture(PICTURES[name], tmp_path / f"{name}.png")
    assert compare_images(str(IMAGES / f"{name}.png"), made, TOLERANCE) is None


def test_a_change_of_a_picture_is_noticed(tmp_path):
    made = picture(lambda risk, _: risk.plot.probability(of="LogIncome"), tmp_path / "other.png")
    assert compare_images(str(IMAGES / "probability.png"), made, TOLERANCE) is not None
