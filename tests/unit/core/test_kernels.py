"""The compiled kernels against the plain NumPy reference, and their elementary functions."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import plain
from numba import njit
from scipy.special import logsumexp

from synrisk.core.kernels import N_LANES, exp_log, reduce_kernel
from synrisk.core.kernels.signatures import FAST
from synrisk.core.kernels.simd import load, store
from synrisk.core.likelihood import (
    KernelDraws,
    ModelBlock,
    Nodes,
    TermValues,
    add_log_density,
    cells_within,
    flatten_terms,
    log_joint_paired,
    log_predictive_by_nodes,
    log_table,
)
from synrisk.core.summary import TIE, summarise
from synrisk.data.schema import Factor, Numeric
from synrisk.models import families
from synrisk.models.posterior import Posterior

LEVELS = Factor("y", ("a", "b", "c"))
FAMILIES = [
    families.Binomial(5) if known.name == "binomial_trials" else known.given(LEVELS)
    for known in families.FAMILIES
]
RESPONSES = {
    "gaussian": (Numeric("y"), [-1.0, 0.3, 2.0]),
    "bernoulli": (Numeric("y"), [0.0, 1.0]),
    "categorical": (Factor("y", ("a", "b", "c")), [0.0, 1.0, 2.0]),
    "poisson": (Numeric("y"), [0.0, 2.0, 5.0]),
    "rounded_gaussian": (Numeric("y"), [-1.0, 0.0, 2.0]),
    **dict.fromkeys(
        ("gamma", "lognormal", "student_t", "beta", "truncated_gaussian"),
        (Numeric("y"), [-1.0, 0.3, 2.0]),
    ),
    "rounded_student_t": (Numeric("y"), [-1.0, 0.0, 2.0]),
    "rounded_beta": (Numeric("y"), [0.0, 0.3, 1.0]),
    "ordered_logit": (Factor("y", ("a", "b", "c"), True), [0.0, 1.0, 2.0]),
    "binomial_trials": (Numeric("y"), [0.0, 2.0, 5.0]),
    **dict.fromkeys(
        (
            *("negative_binomial", "hurdle_poisson", "zero_inflated_poisson", "hurdle_lognormal"),
            *("hurdle_gamma", "hurdle_negative_binomial", "zero_inflated_negative_binomial"),
            *("rounded_lognormal", "rounded_gamma"),
        ),
        (Numeric("y"), [0.0, 2.0, 5.0]),
    ),
}
every = pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)


def posterior(rng, family, n_columns, n_draws):
    variable, _ = RESPONSES[family.name]
    log_weights = np.log(rng.dirichlet(np.ones(n_draws)))
    return Posterior(
        rng.normal(scale=0.5, size=(n_draws, n_columns, family.n_predictors(variable))),
        rng.uniform(0.5, 1.5, size=(n_draws, len(family.auxiliary))),
        log_weights,
        (),
        (),
    )


def some_guesses(rng, family, n, size):
    values = RESPONSES[family.name][1]
    return np.stack([rng.permutation(values)[:size] for _ in range(n)])


def even_guesses(rng, family, n, size):
    """Evenly spaced, up or down; of a factor, all its levels."""
    if family.makes_factor or family.name == "bernoulli":
        return some_guesses(rng, family, n, size)
    if not family.is_continuous and family.least == 0.0:
        return np.tile(np.arange(float(size)), (n, 1))
    low, width = rng.normal(size=(n, 1)), rng.uniform(-3.0, 3.0, (n, 1))
    return low + width * np.linspace(0.0, 1.0, size)


def case(families, shape, parents, n=7, n_draws=13, seed=0, lay_out=some_guesses):
    """Blocks of a plan for the kernels and for the reference, with random terms and guesses."""
    rng = np.random.default_rng(seed)
    truth = np.stack([rng.integers(0, size, n) for size in shape], axis=1)
    compiled, reference, draws = [], [], []
    for own, family in enumerate(families):
        guesses = lay_out(rng, family, n, shape[own])
        terms = [TermValues((), np.ones((n, 1)))]
        terms += [
            TermValues((axis,), rng.normal(size=(n, shape[axis], 2))) for axis in parents[own]
        ]
        if len(parents[own]) > 1:
            size = tuple(shape[axis] for axis in parents[own])
            terms.append(TermValues(parents[own], rng.normal(size=(n, *size, 1))))
        n_columns = sum(term.values.shape[-1] for term in terms)
        of_model = posterior(rng, family, n_columns, n_draws)
        omega = rng.uniform(0.3, 1.2, n)
        flat, places = flatten_terms(terms, parents[own], shape)
        laid = KernelDraws.of(family, of_model)
        compiled.append((ModelBlock(own, parents[own], flat, places, guesses, truth, omega), laid))
        reference.append(
            plain.ModelBlock(
                family, of_model.coefficients, of_model.auxiliary, own, parents[own],
                tuple(plain.TermValues(t.axes, t.values) for t in terms), guesses, truth, omega,
            )
        )  # fmt: skip
        draws.append(of_model)
    return compiled, reference, draws


def one_record(block, i):
    rows = slice(i, i + 1)
    return replace(
        block,
        values=block.values[rows],
        guesses=block.guesses[rows],
        truth=block.truth[rows],
        record_weights=block.record_weights[rows],
    )


@every
@pytest.mark.parametrize("m", [1, 3])
def test_tables_equal_the_reference(family, m):
    size = len(RESPONSES[family.name][1])
    shape, parents = (3, 2, size), ((), (), (0, 1))
    families = [FAMILIES[0], FAMILIES[1], family]
    compiled, reference, draws = case(families, shape, parents)
    log_g = np.random.default_rng(1).normal(scale=3.0, size=(m, 13))
    log_g -= log_g.max(axis=1, keepdims=True)
    for one, other, of_model in zip(compiled, reference, draws, strict=True):
        expected = plain.log_table(other, log_g, of_model.log_weights)
        found = log_table(*one, log_g, shape)
        np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_paired_joint_equals_the_reference(seed):
    shape, parents = (3, 2, 3, 3), ((), (0,), (0, 1), (1,))
    order = [FAMILIES[k] for k in (0, 1, 2, 3)]
    compiled, reference, draws = case(order, shape, parents, seed=seed)
    log_g = np.random.default_rng(seed).normal(scale=3.0, size=(2, 13))
    log_g -= log_g.max(axis=1, keepdims=True)
    log_v = sum(of_model.log_weights for of_model in draws)
    expected = plain.log_joint_paired(reference, log_g, log_v)
    found = log_joint_paired(*zip(*compiled, strict=True), log_g, shape)
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [4, 5, 11, 12, 23, 60])
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("family", [FAMILIES[0], FAMILIES[3]], ids=lambda f: f.name)
def test_weights_by_multiplication_equal_the_reference(family, m, size):
    """Even guesses under a log density of degree two: in tables and in the paired joint."""
    shape, parents = (size, 3, size), ((), (0,), (1,))
    families = [family, FAMILIES[2], family]
    compiled, reference, draws = case(families, shape, parents, lay_out=even_guesses)
    log_g = np.random.default_rng(1).normal(scale=3.0, size=(m, 13))
    log_g -= log_g.max(axis=1, keepdims=True)
    for one, other, of_model in zip(compiled, reference, draws, strict=True):
        expected = plain.log_table(other, log_g, of_model.log_weights)
        found = log_table(*one, log_g, shape)
        np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=0, atol=1e-12)
    log_v = sum(of_model.log_weights for of_model in draws)
    expected = plain.log_joint_paired(reference, log_g, log_v)
    found = log_joint_paired(*zip(*compiled, strict=True), log_g, shape)
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=0, atol=1e-12)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("family", [FAMILIES[0], FAMILIES[3]], ids=lambda f: f.name)
def test_a_record_does_not_depend_on_those_beside_it(family, m):
    """Even, uneven and far guesses side by side, bit for bit; the reference holds for all."""
    shape, n = (5, 3, 7), 19
    families = [FAMILIES[0], FAMILIES[2], family]

    def mixed(rng, one, n, size):
        guesses = even_guesses(rng, one, n, size)
        if one is families[2]:
            guesses[::3, 1] += 1.0 if one.name == "poisson" else 0.01
            guesses[4] *= 1e3
        return guesses

    compiled, reference, draws = case(families, shape, ((), (), (0, 1)), n=n, lay_out=mixed)
    log_g = np.random.default_rng(1).normal(scale=3.0, size=(m, 13))
    log_g -= log_g.max(axis=1, keepdims=True)
    block, laid = compiled[2]
    found = log_table(block, laid, log_g, shape)
    for i in range(n):
        alone = one_record(block, i)
        np.testing.assert_array_equal(log_table(alone, laid, log_g, shape)[0], found[i])
    expected = plain.log_table(reference[2], log_g, draws[2].log_weights).reshape(found.shape)
    near = np.arange(n) != 4
    np.testing.assert_allclose(found[near], expected[near], rtol=0, atol=1e-12)
    # Squares of guesses of some thousands: logs of up to 1e7, each known to 1e-16 of that.
    np.testing.assert_allclose(found[4], expected[4], rtol=0, atol=1e-8)


def test_exponentials_in_lanes_keep_their_digits():
    @njit(fastmath=FAST)
    def exponentials(x, out):
        for first in range(0, len(x), N_LANES):
            store(out, first, math.exp(load(x, first)))

    x = np.concatenate([np.linspace(-699.0, 699.0, 8_000), [0.0, -0.0, 1e-300, -1.0] * 2])
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-15)


def test_logarithms_in_lanes_keep_their_digits():
    @njit(fastmath=FAST)
    def logarithms(x, out):
        for first in range(0, len(x), N_LANES):
            store(out, first, math.log(load(x, first)))

    near = 1.0 + np.linspace(-1e-3, 1e-3, 800)
    x = np.concatenate([np.exp(np.linspace(-699.0, 699.0, 8_000)), near])
    out = np.empty_like(x)
    logarithms(x, out)
    np.testing.assert_allclose(out, np.log(x), rtol=1e-15, atol=2e-16)


def of_nodes(block, nodes):
    """log Σ w F(guess)/F(truth) by each record's nodes, its row taken out by plain inverses."""

    def log_f(tau, y, x, mean, covariance):
        more = 1.0 + tau * x @ covariance @ x
        return -0.5 * np.log(more) - 0.5 * tau * (y - x @ mean) ** 2 / more

    table = np.empty(block.table_shape)
    for i, (values, guesses) in enumerate(zip(block.values, block.guesses, strict=True)):
        rows = (values[block.places].T - nodes.centre) / nodes.spread
        own, y = rows[0], guesses[block.truth[i, block.own]]
        logs = np.empty((len(nodes.sigma), len(rows), len(guesses)))
        for q, sigma in enumerate(nodes.sigma):
            tau = block.record_weights[i] / sigma**2
            precision = np.linalg.inv(nodes.covariance[q])
            without = np.linalg.inv(precision - tau * np.outer(own, own))
            mean = without @ (precision @ nodes.mean[q] - tau * y * own)
            at_truth = log_f(tau, y, own, mean, without)
            for p, row in enumerate(rows):
                at_guess = log_f(tau, guesses, row, mean, without)
                logs[q, p] = nodes.log_weight[q] + at_guess - at_truth
        table[i] = logsumexp(logs, axis=0).ravel()
    return table


@pytest.mark.parametrize("m", [0, 1, 2])
@pytest.mark.parametrize("size", [3, 4, 11, 23])
def test_sums_over_nodes_equal_the_formula_whatever_lies_beside_a_record(size, m):
    """Even guesses, uneven ones, and such that nodes differ by more than 2^1000."""
    rng = np.random.default_rng(5)
    n, shape = 19, (3, size)
    terms = [TermValues((), np.ones((n, 1))), TermValues((0,), rng.normal(size=(n, 3, 2)))]
    flat, places = flatten_terms(terms, (0,), shape)
    guesses = even_guesses(rng, FAMILIES[0], n, size)
    guesses[::3, 1] += 0.01
    guesses[4] *= 1e3
    truth = np.stack([np.zeros(n, dtype=np.int64), rng.integers(0, size, n)], axis=1)
    omega = rng.uniform(0.3, 1.2, n)
    omega[6:9] = 1e-3  # such a record hardly moves its fit
    block = ModelBlock(1, (0,), flat, places, guesses, truth, omega)
    sets = []
    for n_nodes in (6, 1, 9):
        roots = rng.normal(scale=0.05, size=(n_nodes, 3, 3))
        nodes = Nodes(
            np.log(rng.dirichlet(np.ones(n_nodes))),
            rng.uniform(0.7, 1.5, n_nodes),
            rng.normal(scale=0.2, size=(n_nodes, 3)),
            roots @ np.swapaxes(roots, 1, 2) + 1e-3 * np.eye(3),
            np.array([0.0, 0.3, -0.2]),
            np.array([1.0, 2.0, 0.7]),
        )
        sets.append(nodes)
    alone, *stacked = sets[: 1 + m]
    ratios, predicted = log_predictive_by_nodes(block, alone, stacked, shape)
    logs = [of_nodes(block, nodes) for nodes in sets]
    near = np.arange(n) != 4
    # Differences of logs of some millions, each known to a rounding: about five to a set and sign.
    largest = max(np.abs(one[4]).max() for one in logs)
    rounding = np.finfo(np.float64).eps * largest
    both = [(predicted, logs[0])]
    if m:
        both.append((ratios, sum(logs[1 : 1 + m]) - m * logs[0]))
    for found, expected in both:
        np.testing.assert_allclose(found[near], expected[near], rtol=0, atol=1e-11)
        np.testing.assert_allclose(found[4], expected[4], rtol=0, atol=20 * rounding)
    assert ratios.size == (predicted.size if m else 0)
    for i in range(n):
        again = log_predictive_by_nodes(one_record(block, i), alone, stacked, shape)
        for whole, own in zip((ratios, predicted), again, strict=True):
            np.testing.assert_array_equal(own[:1], whole[i : i + 1])
    without = log_predictive_by_nodes(block, alone, stacked, shape, predicted=False)
    np.testing.assert_array_equal(without[0], ratios)
    assert without[1].size == 0


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e3, 1e6])
def test_even_guesses_far_from_the_model_equal_the_reference(scale):
    """Products that would over- or underflow are not taken; errors stay relative to the logs."""
    rng = np.random.default_rng(3)
    of_model = posterior(rng, FAMILIES[0], 1, 9)
    flat, places = flatten_terms([TermValues((), np.ones((4, 1)))], (), (11,))
    guesses = scale * (rng.normal(size=(4, 1)) + np.linspace(-1.0, 1.0, 11))
    truth, omega = np.array([[0], [5], [10], [3]]), np.array([1.0, 0.2, 2.0, 1.0])
    laid = KernelDraws.of(FAMILIES[0], of_model)
    block = ModelBlock(0, (), flat, places, guesses, truth, omega)
    log_g = np.array([[0.0, -1.0, -5.0, -2.0, -3.0, -30.0, -2.0, -0.5, -900.0]])
    mean, sigma = of_model.coefficients[:, 0, 0], of_model.auxiliary[:, 0]
    log_f = -0.5 * ((guesses[:, :, None] - mean) / sigma) ** 2 - np.log(sigma)
    at_truth = np.take_along_axis(log_f, truth[:, :, None], axis=1)
    log_w = omega[:, None, None] * (log_f - at_truth) + of_model.log_weights
    expected = logsumexp(log_w + log_g[0], axis=2) - logsumexp(log_w, axis=2)
    size = np.abs(log_f).max()
    found = log_table(block, laid, log_g, (11,))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 + 1e-14 * size)


@pytest.mark.parametrize("far", [0.0, 30.0, 1e3, 1e5])
@pytest.mark.parametrize("m", [1, 2, 300])
def test_cells_whose_sums_underflow_are_taken_in_logs(far, m):
    """The far guess favours the last draw by e^far, the release the first by e^2000."""
    family = FAMILIES[0]
    draws = Posterior(
        np.array([0.0, 0.5, 1.0]).reshape(3, 1, 1), np.ones((3, 1)), np.log([0.2, 0.5, 0.3]), (), ()
    )
    flat, places = flatten_terms([TermValues((), np.ones((1, 1)))], (), (2,))
    guesses, truth, omega = np.array([[0.0, far]]), np.array([[0]]), np.ones(1)
    block, laid = (
        ModelBlock(0, (), flat, places, guesses, truth, omega),
        KernelDraws.of(family, draws),
    )
    log_g = np.tile([0.0, -900.0, -2000.0], (m, 1))
    log_w = -0.5 * (guesses[0][:, None] - draws.coefficients[:, 0, 0]) ** 2
    log_w = log_w - log_w[0] + draws.log_weights
    expected = m * (logsumexp(log_w + log_g[0], axis=1) - logsumexp(log_w, axis=1))
    found = log_table(block, laid, log_g, (2,))[0]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9 * max(far, 1))


def test_a_guess_far_beyond_keeps_log_g():
    """At 1e8 sd log w is −5e15 at both draws; added to it, log g would be rounded to a whole."""
    draws = Posterior(np.zeros((2, 1, 1)), np.ones((2, 1)), np.log([0.5, 0.5]), (), ())
    flat, places = flatten_terms([TermValues((), np.ones((1, 1)))], (), (2,))
    laid = KernelDraws.of(FAMILIES[0], draws)
    guesses, truth = np.array([[0.0, 1e8]]), np.array([[0]])
    block = ModelBlock(0, (), flat, places, guesses, truth, np.ones(1))
    found = log_table(block, laid, np.array([[-5.3, 0.0]]), (2,))[0]
    np.testing.assert_allclose(found, np.log((np.exp(-5.3) + 1) / 2), rtol=1e-12)


@every
def test_compiled_densities_equal_the_familys_but_for_terms_of_y(family):
    values = RESPONSES[family.name][1]
    rng = np.random.default_rng(0)
    of_model = posterior(rng, family, 3, 9)
    y, matrix = rng.choice(values, 11), rng.normal(size=(11, 3))
    found = np.zeros(9)
    omega = rng.uniform(0.2, 3.0, len(y))
    add_log_density(KernelDraws.of(family, of_model), y, matrix, omega, found)
    expected = (
        omega * plain.row_log_density(family, y, matrix, of_model.coefficients, of_model.auxiliary)
    ).sum(axis=1)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-11)


@njit
def exp2_all(numbers):
    exp_log.exp2_all(numbers)


@njit
def exp2_to_five_digits(numbers):
    exp_log.exp2_to_five_digits(numbers)


@njit
def exponential(x):
    return exp_log.exponential(x)


@njit
def logarithm(x):
    return exp_log.logarithm(x)


def test_powers_and_logarithms():
    x = np.concatenate([np.linspace(-1000, 1000, 100_001), [0.0, 1e-300, -1e-9]])
    found = x.copy()
    exp2_all(found)
    np.testing.assert_allclose(found, np.exp2(x), rtol=1e-15)
    found = x.copy()
    exp2_to_five_digits(found)
    np.testing.assert_allclose(found, np.exp2(x), rtol=4e-6)
    for every in (exp2_all, exp2_to_five_digits):
        extremes = np.array([-np.inf, -1e308, 1e308, np.inf])
        every(extremes)
        assert (extremes[:2] < 1e-300).all()
        assert (extremes[2:] > 1e300).all()
    for value in np.linspace(-600, 600, 2001):
        assert exponential(value) == pytest.approx(np.exp(value), rel=2e-13)
        assert logarithm(np.exp(value)) == pytest.approx(value, rel=1e-15, abs=2e-16)


def test_cells_within():
    shape = (2, 3, 4)
    cells = np.arange(24).reshape(shape)
    for some in ((), (0,), (1,), (0, 2), (0, 1, 2)):
        index = cells_within((0, 1, 2), some, shape).reshape(shape)
        for cell in np.ndindex(shape):
            part = tuple(cell[a] for a in some)
            size = tuple(shape[a] for a in some)
            expected = np.ravel_multi_index(part, size) if some else 0
            assert index[cell] == expected
    assert cells_within((0, 1, 2), (0, 1, 2), shape).tolist() == cells.ravel().tolist()


# The truth alone is near, and each guess stands for itself.
POINTED = {"missed": np.zeros((0, 0)), "widths": np.zeros((0, 0))}


@pytest.mark.parametrize("of_range", [False, True])
@pytest.mark.parametrize(
    "axes", [[(0, 1, 2)], [(0,), (0, 1), (0, 1, 2)], [(0,), (0, 1), (0, 2)], [(0,), (1,), (2,)]]
)
def test_summaries_equal_plain_numpy(axes, of_range):
    """Of listed guesses; and of such as stand for more or less, some of them near the truth."""
    rng = np.random.default_rng(0)
    n, shape = 9, (3, 2, 4)
    sizes = [[size if axis in some else 1 for axis, size in enumerate(shape)] for some in axes]
    tables = [rng.normal(scale=2.0, size=(n, np.prod(size))) for size in sizes]
    for table in tables:
        table[3] = 0.0  # all tied
    log_likelihood = np.zeros((n, *shape))
    for table, size in zip(tables, sizes, strict=True):
        log_likelihood += table.reshape(n, *size)
    log_likelihood = log_likelihood.reshape(n, -1)
    prior = rng.dirichlet(np.ones(24), size=n)
    prior[5, 7] = 0.0
    prior[5] /= prior[5].sum()
    truth = np.stack([rng.integers(0, s, n) for s in shape], axis=1)
    truth[5] = (0, 0, 0)
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    log_p = log_prior + log_likelihood
    log_p -= logsumexp(log_p, axis=1, keepdims=True)
    p = np.exp(log_p).reshape(n, *shape)
    rows, starts = np.arange(n)[:, None], np.cumsum([0, *shape[:-1]])
    near = np.zeros((n, sum(shape)), dtype=bool)
    near[rows, starts + truth] = True
    widths, given = np.zeros((n, sum(shape))), POINTED
    if of_range:
        near |= rng.random(near.shape) < 0.4
        widths = rng.normal(size=widths.shape)
        given = {"missed": 1.0 - near, "widths": widths}
    near, widths = (np.split(values, starts[1:], axis=1) for values in (near, widths))
    all_near = near[0][:, :, None, None] & near[1][:, None, :, None] & near[2][:, None, None, :]
    log_width = widths[0][:, :, None, None] + widths[1][:, None, :, None] + widths[2][:, None, None]
    found, extremes = summarise(
        tables, axes, log_prior, truth, shape, **given, keep=True, with_ends=True
    )
    ends = extremes.ends
    present = np.where(prior > 0, log_likelihood, np.nan)
    np.testing.assert_array_equal(ends[:, 0], np.nanargmin(present, axis=1))
    np.testing.assert_array_equal(ends[:, 1], np.nanargmax(present, axis=1))
    between = np.nanmax(present, axis=1) - np.nanmin(present, axis=1)
    np.testing.assert_allclose(found.log_odds_range, between, rtol=1e-14, atol=1e-14)
    index = (np.arange(n), *truth.T)
    inner = (1, 2, 3)
    np.testing.assert_allclose(found.probability, (p * all_near).sum(axis=inner), rtol=1e-13)
    before = (prior.reshape(p.shape) * all_near).sum(axis=inner)
    np.testing.assert_allclose(found.prior, before, rtol=1e-13)
    log_density = log_p - log_width.reshape(n, -1)
    with np.errstate(invalid="ignore"):
        difference = log_density - log_density.reshape(p.shape)[index][:, None]
    rank = (difference > TIE).sum(axis=1) + ((np.abs(difference) <= TIE).sum(axis=1) + 1) / 2
    np.testing.assert_array_equal(found.rank, rank)
    np.testing.assert_array_equal(extremes.ranks[:, 0], 1 + (difference > TIE).sum(axis=1))
    np.testing.assert_array_equal(extremes.ranks[:, 1], (difference >= -TIE).sum(axis=1))
    np.testing.assert_array_equal(found.n_guesses, [24 - (i == 5) for i in range(n)])
    for axis in range(3):
        others = tuple(1 + a for a in range(3) if a != axis)
        marginal = p.sum(axis=others)
        np.testing.assert_allclose(found.marginals[axis], marginal, rtol=1e-12)
        density = marginal * np.exp(-widths[axis])
        np.testing.assert_array_equal(found.best[:, axis], density.argmax(axis=1))
        of_truth = (prior.reshape(p.shape).sum(axis=others) * near[axis]).sum(axis=1)
        np.testing.assert_allclose(found.prior_marginals[:, axis], of_truth, rtol=1e-12)
    np.testing.assert_allclose(found.joint, log_p.reshape(p.shape), rtol=0, atol=1e-12)


@pytest.mark.parametrize("absent", [0, 7, 9, 18])
@pytest.mark.parametrize("likelihood", [-np.inf, np.inf, 5.0, -40.0])
def test_a_cell_that_a_record_does_not_have_counts_for_nothing(absent, likelihood):
    log_likelihood = np.random.default_rng(1).normal(size=(1, 19))
    log_likelihood[0, absent] = likelihood
    others = np.arange(19) != absent
    truth = np.array([[np.flatnonzero(others)[4]]])
    log_prior = np.where(others, -np.log(18.0), -np.inf)[None]
    found, extremes = summarise(
        [log_likelihood.copy()], [(0,)], log_prior, truth, (19,),
        **POINTED, keep=False, with_ends=True,
    )  # fmt: skip
    if likelihood == np.inf:  # times a prior of zero: not known
        assert np.isnan(found.probability).all()
        return
    kept = log_likelihood[0, others]
    p = np.exp(kept - logsumexp(kept))
    np.testing.assert_allclose(found.marginals[0][0, others], p, rtol=1e-13)
    assert found.marginals[0][0, absent] == 0.0
    assert found.log_odds_range[0] == np.ptp(kept)
    np.testing.assert_array_equal(log_likelihood[0, extremes.ends[0]], [kept.min(), kept.max()])


def test_one_cell_that_is_no_number_makes_its_record_none():
    log_likelihood = np.random.default_rng(0).normal(size=(3, 19))
    log_likelihood[1, 4] = np.nan
    truth, log_prior = np.zeros((3, 1), dtype=np.int64), np.full((1, 19), -np.log(19.0))
    found, _ = summarise(
        [log_likelihood], [(0,)], log_prior, truth, (19,), **POINTED, keep=False, with_ends=True
    )
    for values in (found.probability, found.log_odds_range):
        np.testing.assert_array_equal(np.isnan(values), [False, True, False])


@every
def test_kernels_are_made_once(family):
    assert reduce_kernel(family) is reduce_kernel(family)
