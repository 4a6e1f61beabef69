"""What every object has that holds plots."""

from __future__ import annotations


class PlotList:
    """Plots by name, ``risk.plot.probability()``; printed, it lists them."""

    def __repr__(self) -> str:
        names = [name for name in vars(type(self)) if not name.startswith("_")]
        return f"<{type(self).__name__}: {', '.join(f'{name}()' for name in names)}>"
