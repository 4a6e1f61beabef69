"""Rows that are people's own, moved a little: how probable distances are with them and without."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi

from synrisk.audit.copies import copies
from synrisk.audit.near_copies import Distances, _ratio, named_copies, near_copies
from synrisk.audit.two_files import read_two_files

SIZES = np.geomspace(0.001, 0.1, 15)


def by_chance(n, n_dimensions, rng, density=50.0):
    """Return distances to the nearest of rows that lie evenly."""
    volume = rng.exponential(size=n) / density
    nearest = volume ** (1.0 / n_dimensions)
    rows = np.arange(n)
    return Distances(nearest, np.full(n, np.log(density)), rows, n_dimensions, n_dimensions)


def with_copies(distances, n_copied, size, rng):
    own = chi.rvs(distances.n_dimensions, scale=size, size=n_copied, random_state=rng)
    nearest = distances.nearest.copy()
    nearest[:n_copied] = np.minimum(nearest[:n_copied], own)
    return distances._replace(nearest=nearest)


@pytest.mark.parametrize(("n_dimensions", "filled"), [(1, 1), (2, 2), (5, 5), (2, 1.4)])
def test_the_ratio_is_that_of_the_nearer_of_two(n_dimensions, filled):
    d, density, size = np.array([0.01, 0.05, 0.2]), 50.0, 0.07
    # By chance no row is within d with the probability exp(-density · d^D).
    survives = np.exp(-density * d**filled)
    of_chance = density * filled * d ** (filled - 1) * survives
    copy = chi(n_dimensions, scale=size)
    with_copy = copy.pdf(d) * survives + of_chance * copy.sf(d)
    distances = Distances(d, np.full(3, np.log(density)), np.arange(3), n_dimensions, filled)
    np.testing.assert_allclose(_ratio(distances, size), with_copy / of_chance, rtol=1e-12)


def test_by_chance_there_is_hardly_any_evidence():
    rng = np.random.default_rng(1)
    found = [near_copies(by_chance(300, 2, rng), SIZES).log_evidence for _ in range(400)]
    # Markov: above log 1/p with a probability of p at most; 400 · 0.02 = 8, and 3 sd are 8.4 more.
    assert (np.array(found) > np.log(1 / 0.02)).sum() <= 16
    assert np.exp(found).mean() < 1.5


def test_copies_are_told_from_others_and_the_probability_comes_true():
    rng = np.random.default_rng(2)
    n_copied, n = 2_000, 20_000
    found = near_copies(with_copies(by_chance(n, 2, rng, density=5.0), n_copied, 0.01, rng), SIZES)
    assert found.log_evidence > 100
    truth = np.arange(n) < n_copied
    for part in np.array_split(np.argsort(found.probability)[-3_000:], 6):
        expected = found.probability[part].mean()
        # The size of the noise is the nearest of fifteen: a tenth of itself away at most.
        assert abs(truth[part].mean() - expected) < 4 * np.sqrt(0.25 / len(part)) + 0.02
    named = named_copies(found.probability, 0.05)
    assert named.sum() > 200
    assert (~truth[named]).mean() < 0.05 + 3 * np.sqrt(0.05 / named.sum())


def test_a_row_is_one_persons_at_most():
    distances = Distances(np.array([1e-4, 1e-4, 0.3]), np.zeros(3), np.array([7, 7, 2]), 2, 2)
    found = near_copies(distances, SIZES)
    assert found.probability[0] == found.probability[1] <= 0.5


def test_moved_people_are_found_where_each_row_could_be_by_chance():
    rng = np.random.default_rng(3)

    def people():
        return pd.DataFrame(rng.normal(size=(2_000, 3)), columns=list("abc"))

    real, fake = people(), people()
    moved = fake.copy()
    moved.iloc[:200] = real.iloc[:200].to_numpy() + 0.05 * rng.normal(size=(200, 3))
    found = copies(read_two_files(real, moved, None, None, None, None), 1)
    assert "moved" in [one.way for one in found.found]
    assert found.copied[:200].mean() > 5 * found.copied[200:].mean()
    honest = copies(read_two_files(real, fake, None, None, None, None), 1)
    assert not honest.is_too_close
    assert not honest.copied.any()
