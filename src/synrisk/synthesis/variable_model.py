"""What synthesis asks of a model of one variable, whatever kind of model it is.

What risk asks of it (METHOD §4: the ratio of its predictive densities with and without the release)
is asked of an `Encoder` and an `Estimate`, in the risk room.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from synrisk.base.arrays import FloatArray
from synrisk.data.schema import Columns
from synrisk.models.plan import Regression


class VariableModel(ABC):
    """One synthesized variable given others.

    Attributes
    ----------
    regression
        What is synthesized: the response with its transformation and its kind of values, and the
        variables that it depends on.
    """

    regression: Regression

    @property
    def response(self) -> str:
        """The variable that it synthesizes."""
        return self.regression.response

    @abstractmethod
    def posterior_draw(self, rng: np.random.Generator) -> Any:
        """Return one draw of the parameters, which a whole synthetic dataset is made from."""

    def to_sample(self) -> VariableModel:
        """Return the model with no more than `sample` needs: it is sent to workers."""
        return self

    @abstractmethod
    def sample(
        self, columns: Columns, n_rows: int, draw: Any, rng: np.random.Generator, what: str
    ) -> FloatArray:
        """Return a value for each of some rows, on the model's scale.

        A row's value depends on its own predictors and on `rng`, never on other rows.

        Parameters
        ----------
        columns
            The predictors: synthetic values of variables that were synthesized before, and others.
        n_rows
            The number of rows.
        draw
            What `posterior_draw` returned.
        rng
            The random stream of these rows.
        what
            The rows, for messages.
        """
