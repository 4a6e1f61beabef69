"""The plots of a risk: ``risk.plot.probability()`` and the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from synrisk.base.errors import OptionError, got
from synrisk.core.measures import JOINT
from synrisk.data.frames import TableLike
from synrisk.plots.plot_list import PlotList
from synrisk.plots.view import Drawn, cut, grouped
from synrisk.synthesis.release import read_release

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

AxesArray: TypeAlias = npt.NDArray[Any]


class Plots(PlotList):
    """Plots of an attribute risk; each returns its matplotlib Axes.

    Without ``ax=`` a plot has a figure of its own, ``axes.figure``, which pyplot keeps only in a
    notebook or in interactive mode. Plots show confidential values: for figures that may be shared
    see `AttributeRisk.report`.
    """

    def __init__(
        self, drawn: Drawn, one: Callable[[Hashable], tuple[xr.DataArray, list[int]]]
    ) -> None:
        self._drawn = drawn
        self._one = one

    def probability(self, *, of: str = JOINT, ax: Axes | None = None) -> Axes:
        """Draw the density over records of the truth's probability, with a line at the prior.

        Parameters
        ----------
        of
            ``"joint"``, or a synthesized variable.
        ax
            Where to draw.
        """
        from synrisk.plots import probabilities, style

        chosen = self._drawn.check_of(of)
        (axes,) = style.panels(1, ax)
        probabilities.draw_probability(axes, self._drawn.sample, chosen, self._said(chosen))
        return axes

    def marginals(self, *, ax: Any = None) -> AxesArray:
        """Draw the density of each variable's probability of the truth, an Axes a variable.

        Parameters
        ----------
        ax
            An Axes for each synthesized variable.
        """
        from synrisk.plots import probabilities, style

        names = self._drawn.labels.names
        axes = style.panels(len(names), ax)
        for one, name in zip(axes, names, strict=True):
            probabilities.draw_probability(one, self._drawn.sample, name, self._said(name))
        return _array(axes)

    def ranks(self, *, of: str = JOINT, ax: Axes | None = None) -> Axes:
        """Draw the histogram of the truth's rank among the guesses; 1 is the most probable.

        Parameters
        ----------
        of
            ``"joint"``, or a synthesized variable.
        ax
            Where to draw.
        """
        from synrisk.plots import probabilities, style

        chosen = self._drawn.check_of(of)
        if np.isnan(self._drawn.spread(chosen, "rank").ends.smallest):
            raise OptionError(
                "The rank of the truth among all joint guesses is not known: they are too many to "
                "look at each one. Draw that of a variable, of=."
            )
        (axes,) = style.panels(1, ax)
        probabilities.draw_ranks(axes, self._drawn, chosen, self._said(chosen))
        return axes

    def differences(self, *, ax: Any = None) -> AxesArray:
        """Draw the best guess's distance from the truth, in its own units, an Axes a variable.

        Parameters
        ----------
        ax
            An Axes for each synthesized variable.
        """
        from synrisk.plots import style, variables

        names = self._drawn.labels.names
        axes = style.panels(len(names), ax)
        for axis, one in enumerate(axes):
            variables.draw_difference(one, self._drawn, axis)
        return _array(axes)

    def distributions(
        self, synthetic: TableLike | Sequence[TableLike], *, ax: Any = None
    ) -> AxesArray:
        """Draw the confidential against the synthetic distribution, an Axes a variable.

        Parameters
        ----------
        synthetic
            The release, as `attribute_risk` takes it.
        ax
            An Axes for each synthesized variable.
        """
        from synrisk.plots import style, variables

        release = read_release(self._drawn.evaluation.synthesizer.confidential, synthetic)
        names = self._drawn.labels.names
        n_levels = [len(getattr(one, "levels", ())) for one in self._drawn.labels.variables]
        axes = style.panels(len(names), ax, style.wide(max(n_levels)))
        for axis, one in enumerate(axes):
            datasets = [dataset.sample.columns[names[axis]] for dataset in release]
            variables.draw_distribution(one, self._drawn, axis, datasets)
        return _array(axes)

    def record(self, label: Hashable, *, ax: Any = None) -> Axes | AxesArray:
        """Draw one record's probabilities over its guesses, with the truth marked.

        Bars for one variable, a heat map for two, and for more a heat map of every pair of them,
        summed over the others: then an array of Axes.

        Parameters
        ----------
        label
            The record's label.
        ax
            Where to draw; for three variables or more a list, one for each pair.
        """
        from synrisk.plots import one_record, style

        joint, truth = self._one(label)
        n_variables = joint.ndim
        n_panels = 1 if n_variables <= 2 else n_variables * (n_variables - 1) // 2
        axes = style.panels(n_panels, ax, one_record.size(joint))
        one_record.draw_record(axes, joint, truth, label)
        return axes[0] if n_panels == 1 else _array(axes)

    def against(
        self,
        variable: str,
        *,
        of: str = JOINT,
        measure: str = "probability",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the risk of each record against a column of the confidential data.

        Points with a running median for numbers (shaded by their number where there are many),
        boxes for groups.

        Parameters
        ----------
        variable
            A column of the confidential data.
        of
            ``"joint"``, or a synthesized variable.
        measure
            ``"probability"``, ``"lift"``, or ``"log_odds_range"`` (of the joint).
        ax
            Where to draw.
        """
        from synrisk.plots import groups, style

        drawn = self._drawn.sample
        values, chosen = drawn.column(variable), drawn.check_of(of)
        risk = drawn.measure(measure, chosen)
        words = groups.Words(measure, self._said(chosen), drawn.counted)
        if drawn.is_scale(values):
            (axes,) = style.panels(1, ax)
            groups.draw_against(axes, values, risk, words)
            return axes
        parts = grouped(values)
        (axes,) = style.panels(1, ax, style.wide(len(parts)))
        groups.draw_boxes(axes, variable, parts, risk, words)
        return axes

    def by(
        self,
        variable: str,
        *,
        of: str = JOINT,
        measure: str = "probability",
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the risk by group: mean, median, middle half and middle nine tenths, and n.

        Parameters
        ----------
        variable
            A column of the confidential data; numbers are cut into ten groups of equal size.
        of
            ``"joint"``, or a synthesized variable.
        measure
            ``"probability"``, ``"lift"``, or ``"log_odds_range"`` (of the joint).
        ax
            Where to draw.
        """
        from synrisk.plots import groups, style

        drawn = self._drawn.sample
        values, chosen = drawn.column(variable), drawn.check_of(of)
        risk = drawn.measure(measure, chosen)
        parts = cut(values) if drawn.is_scale(values) else grouped(values)
        (axes,) = style.panels(1, ax, groups.size(len(parts)))
        words = groups.Words(measure, self._said(chosen), drawn.counted)
        groups.draw_by(axes, variable, parts, risk, words)
        return axes

    def error(self, *, of: str = JOINT, ax: Axes | None = None) -> Axes:
        """Draw the Monte-Carlo error against the probability, with unreliable records marked.

        Parameters
        ----------
        of
            ``"joint"``, or a synthesized variable.
        ax
            Where to draw.
        """
        from synrisk.plots import probabilities, style

        chosen = self._drawn.check_of(of)
        drawn = self._drawn.sample
        if drawn.reliable is None:
            raise OptionError(
                "The Monte-Carlo error was not estimated: use diagnostics=True, and an estimator "
                "other than 'paper'."
            )
        (axes,) = style.panels(1, ax)
        probabilities.draw_error(axes, drawn, chosen, drawn.reliable, self._said(chosen))
        return axes

    def exceedance(
        self,
        *,
        measure: str | None = None,
        of: str | Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw the share of records whose risk is over a threshold, against the threshold.

        Parameters
        ----------
        measure
            ``"probability"``, ``"lift"``, or ``"log_odds_range"`` (of the joint). None draws the
            probability of one curve, and the lift of several: their priors may differ a
            thousandfold.
        of
            ``"joint"``, a synthesized variable, or a list of these; None draws all that there are.
        ax
            Where to draw.
        """
        from synrisk.plots import probabilities, style

        chosen = self._curves(measure, of)
        if measure is None:
            measure = "probability" if len(chosen) == 1 else "lift"
        drawn = {name: self._drawn.measured(measure, name) for name in chosen}
        (axes,) = style.panels(1, ax)
        probabilities.draw_exceedance(axes, drawn, measure)
        return axes

    def _curves(self, measure: str | None, of: Any) -> list[str]:
        if of is None:
            only_joint = measure == "log_odds_range" or len(self._drawn.labels.names) == 1
            return [JOINT] if only_joint else [JOINT, *self._drawn.labels.names]
        if not isinstance(of, str | list | tuple) or not of:
            raise OptionError(f"of= is a name or a list of names; got {got(of)}.")
        names = [of] if isinstance(of, str) else of
        return list(dict.fromkeys(self._drawn.check_of(name) for name in names))

    def _said(self, of: str) -> str:
        """Return whose probability it is, for a label."""
        from synrisk.plots.style import text

        names = self._drawn.labels.names
        if of != JOINT or len(names) == 1:
            return text(names[0] if of == JOINT else of)
        if len(names) > 3:
            return f"all {len(names)} variables jointly"
        return f"{', '.join(text(name, 24) for name in names)} jointly"


def _array(axes: list[Any]) -> AxesArray:
    array = np.empty(len(axes), dtype=object)
    array[:] = axes
    return array
