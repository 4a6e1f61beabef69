"""Plots of a risk, drawn by matplotlib, which is imported when the first one is asked for."""

from synrisk.plots.of_risk import Plots

__all__ = ["Plots"]
