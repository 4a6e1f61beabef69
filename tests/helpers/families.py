"""Two families with auxiliary parameters and kernels, each as a user would write one."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from synrisk.models.families import Auxiliary, Family


def _matrix(entries):
    """A symmetric matrix on the last two axes, of the rows of its lower triangle."""
    arrays = np.broadcast_arrays(*(entry for row in entries for entry in row))
    n = len(entries)
    out = np.empty((*arrays[0].shape, n, n))
    for i, j, values in zip(*np.tril_indices(n), arrays, strict=True):
        out[..., i, j] = out[..., j, i] = values
    return out


def _t_base(eta, cell, h, parameters):
    return parameters[2, h]


def _t_varying(y, eta, cell, h, parameters):
    z = (y - eta[cell, 0, h]) * parameters[0, h]  # over sigma √nu
    return -parameters[1, h] * math.log1p(z * z)


@dataclass(frozen=True)
class HeavyTailed(Family):
    """y ~ eta + sigma · t(nu)."""

    name = "heavy_tailed"
    auxiliary = (Auxiliary("sigma", in_response_units=True), Auxiliary("nu", prior_mean=10.0))
    is_continuous = True
    identity_link = True
    wants = "finite numbers"
    compiled = (_t_varying, _t_base)

    def kernel_parameters(self, auxiliary):
        sigma, nu = auxiliary.T
        base = gammaln(nu / 2) - gammaln((nu + 1) / 2) + 0.5 * np.log(nu * np.pi) + np.log(sigma)
        return np.stack([1.0 / (sigma * np.sqrt(nu)), (nu + 1.0) / 2.0, base])

    def supports(self, y, response):
        return np.isfinite(y)

    def log_density(self, y, eta, auxiliary):
        sigma, nu = auxiliary[..., 0], auxiliary[..., 1]
        z = (y - eta[..., 0]) / sigma
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
        return constant - np.log(sigma) - 0.5 * (nu + 1) * np.log1p(z * z / nu)

    def score(self, y, eta, auxiliary):
        sigma, nu = auxiliary[..., 0], auxiliary[..., 1]
        z = (y - eta[..., 0]) / sigma
        d = nu + z * z
        of_nu = nu * self._in_nu(z, nu, d)
        parts = ((nu + 1) * z / (sigma * d), (nu + 1) * z * z / d - 1.0, of_nu)
        return np.stack(np.broadcast_arrays(*parts), axis=-1)

    def _in_nu(self, z, nu, d):
        gammas = 0.5 * (digamma((nu + 1) / 2) - digamma(nu / 2)) - 0.5 / nu
        return gammas - 0.5 * np.log1p(z * z / nu) + 0.5 * (nu + 1) * z * z / (nu * d)

    def curvature(self, y, eta, auxiliary):
        sigma, nu = auxiliary[..., 0], auxiliary[..., 1]
        z = (y - eta[..., 0]) / sigma
        d = nu + z * z
        second = 0.25 * (polygamma(1, (nu + 1) / 2) - polygamma(1, nu / 2)) + 0.5 / nu**2
        second = second + 0.5 * z * z / (nu * d)
        second = second + 0.5 * z * z * (nu * d - (nu + 1) * (2 * nu + z * z)) / (nu * d) ** 2
        return _matrix(
            [
                [-(nu + 1) * (nu - z * z) / (sigma * d) ** 2],
                [-2 * nu * (nu + 1) * z / (sigma * d**2), -2 * nu * (nu + 1) * (z / d) ** 2],
                [
                    nu * z * (z * z - 1) / (sigma * d**2),
                    nu * z * z * (z * z - 1) / d**2,
                    nu * self._in_nu(z, nu, d) + nu**2 * second,
                ],
            ]
        )

    def draw(self, eta, auxiliary, rng):
        return eta[..., 0] + auxiliary[..., 0] * rng.standard_t(auxiliary[..., 1])


def _nb_base(eta, cell, h, parameters):
    return parameters[1, h]


def _nb_varying(y, eta, cell, h, parameters):
    shape, x = parameters[0, h], eta[cell, 0, h]
    return math.lgamma(y + shape) + y * x - (y + shape) * math.log(shape + math.exp(min(x, 700.0)))


@dataclass(frozen=True)
class Overdispersed(Family):
    """y ~ a count with mean exp(eta) and variance mean + mean²/shape."""

    name = "overdispersed"
    auxiliary = (Auxiliary("shape"),)
    wants = "whole numbers from 0"
    compiled = (_nb_varying, _nb_base)

    def kernel_parameters(self, auxiliary):
        shape = auxiliary[:, 0]
        return np.stack([shape, gammaln(shape) - shape * np.log(shape)])

    def supports(self, y, response):
        return np.asarray(np.isfinite(y) & (y >= 0) & (y == np.floor(y)))

    def events(self, y):
        return (np.asarray(y > 0),)

    def log_base(self, y):
        return np.asarray(-gammaln(y + 1.0))

    def log_density(self, y, eta, auxiliary):
        x, shape = eta[..., 0], auxiliary[..., 0]
        log_total = np.logaddexp(x, np.log(shape))
        own = gammaln(y + shape) - gammaln(shape) - gammaln(y + 1.0)
        return own + shape * (np.log(shape) - log_total) + y * (x - log_total)

    def score(self, y, eta, auxiliary):
        mean, shape = np.exp(eta[..., 0]), auxiliary[..., 0]
        parts = (shape * (y - mean) / (shape + mean), shape * self._in_shape(y, mean, shape))
        return np.stack(np.broadcast_arrays(*parts), axis=-1)

    def _in_shape(self, y, mean, shape):
        logs = np.log(shape) + 1.0 - np.log(shape + mean)
        return digamma(y + shape) - digamma(shape) + logs - (shape + y) / (shape + mean)

    def curvature(self, y, eta, auxiliary):
        mean, shape = np.exp(eta[..., 0]), auxiliary[..., 0]
        total = shape + mean
        second = polygamma(1, y + shape) - polygamma(1, shape) + 1.0 / shape - 1.0 / total
        second = second - (mean - y) / total**2
        return _matrix(
            [
                [-(y + shape) * mean * shape / total**2],
                [
                    shape * (y - mean) * mean / total**2,
                    shape * self._in_shape(y, mean, shape) + shape**2 * second,
                ],
            ]
        )

    def draw(self, eta, auxiliary, rng):
        mean, shape = np.exp(eta[..., 0]), auxiliary[..., 0]
        return rng.poisson(rng.gamma(shape, mean / shape))
