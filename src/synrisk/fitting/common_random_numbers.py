"""Common random numbers: drawn once, and pushed through every posterior of a model.

The same standard normals and uniforms through the posterior given the confidential data and through
the one given the stacked data make draws that move together (METHOD §4). Adjacent antithetic pairs
(z, u), (−z, 1−u) remove the linear error, and the normals' second moments are matched.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import gammaincinv

from synrisk.base.arrays import FloatArray

_MOST_PRODUCTS = 21  # of six parameters
_SPARE_PAIRS = 10  # more pairs than parameters before second moments are matched


@dataclass(frozen=True, repr=False)
class CommonNumbers:
    """Standard normals ``z[draw, parameter]`` and uniforms ``u[draw]`` in antithetic pairs."""

    SHAPES: ClassVar = {
        "z": ("pair", "normal"),
        "u": ("pair",),
    }
    z: FloatArray
    u: FloatArray

    @classmethod
    def draw(cls, rng: np.random.Generator, n_draws: int, n_parameters: int) -> CommonNumbers:
        """Draw the numbers; of an odd number of draws the last lacks its partner."""
        n_pairs = (n_draws + 1) // 2
        z = rng.standard_normal((n_pairs, n_parameters))
        u = rng.random(n_pairs)
        if n_pairs >= n_parameters + _SPARE_PAIRS:
            root = np.linalg.cholesky(z.T @ z / n_pairs)
            z = np.linalg.solve(root, z.T).T
        both_z = np.stack([z, -z], axis=1).reshape(2 * n_pairs, n_parameters)
        both_u = np.stack([u, 1.0 - u], axis=1).reshape(2 * n_pairs)
        return cls(both_z[:n_draws], both_u[:n_draws])

    def chi_square(self, df: float) -> FloatArray:
        """Return χ² variates by the inverse CDF, so that they move with those of another df."""
        found = self._chi_squares.get(df)
        if found is None:
            found = self._chi_squares[df] = np.asarray(2.0 * gammaincinv(df / 2.0, self.u))
        return found

    @cached_property
    def _chi_squares(self) -> dict[float, FloatArray]:
        """Those that were asked for, by df: fits at guesses ask for the same thousands of times."""
        return {}

    @property
    def are_matched(self) -> bool:
        """Whether there are pairs enough for second moments to be matched."""
        n_parameters = int(self.z.shape[1])
        return (len(self.u) + 1) // 2 >= n_parameters + _SPARE_PAIRS

    @property
    def has_many_products(self) -> bool:
        """Whether there are too many products z_j z_k for a direction each."""
        n_parameters = int(self.z.shape[1])
        return n_parameters * (n_parameters + 1) // 2 > _MOST_PRODUCTS

    def matched_directions(self) -> FloatArray | None:
        """Return an orthonormal basis of the products z_j z_k over the pairs, ``(product, pair)``.

        Their sums over the pairs are matched, so what is linear in them has no Monte-Carlo error.
        None where they were not matched, or are too many for the pairs.
        """
        n_pairs, n_parameters = (len(self.u) + 1) // 2, self.z.shape[1]
        first, second = np.triu_indices(n_parameters)
        if not self.are_matched or self.has_many_products or n_pairs < 4 * len(first):
            return None
        products = self.z[::2][:, first] * self.z[::2][:, second] - (first == second)
        return np.ascontiguousarray(np.linalg.qr(products)[0].T)

    def matched_normals(self) -> FloatArray | None:
        """Return the normals of the pairs, ``(pair, parameter)``, where products are many.

        None where they were not matched, or have a direction each.
        """
        if not self.are_matched or not self.has_many_products:
            return None
        return np.ascontiguousarray(self.z[::2])
