"""Many streams at once are those that synthesis draws from."""

import numpy as np
import pytest

from synrisk.base.seeds import stream
from synrisk.core.streams import OtherDrawsError, Streams
from synrisk.models.families import FAMILIES

SEEDS = np.array([0, 1, 9, 10, 99, 100, 12345, 20260131, 4294967295, 10**17, *range(200, 2000)])
N_ROWS = 8


@pytest.mark.parametrize("variable", ["x", "Income", "Größe der Wohnung", "a" * 80])
def test_keys_are_those_of_single_streams(variable):
    keys = Streams.of(SEEDS, "synthesis", 3, variable).keys
    for seed, key in zip(SEEDS, keys, strict=True):
        single = stream(int(seed), "synthesis", dataset=3, variable=variable)
        assert (single.bit_generator.state["state"]["key"] == key).all()


def test_a_name_that_is_too_long_for_one_block_is_left_to_the_slow_way():
    with pytest.raises(OtherDrawsError):
        Streams.of(SEEDS, "synthesis", 0, "a" * 120)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("level", [-3.0, 0.5, 2.2, 2.4, 6.0])  # Poisson rates on both sides of 10
def test_a_family_draws_the_same_from_many_streams_row_by_row(family, level):
    """As from a generator, all rows at once; 1,800 seeds × 8 rows see a ziggurat's edges (1 %)."""
    rng = np.random.default_rng(1)
    n_predictors = 3 if family.makes_factor else 1
    eta = level + 0.3 * rng.normal(size=(N_ROWS, n_predictors))
    auxiliary = np.full((N_ROWS, len(family.auxiliary)), 1.7)
    streams = Streams.of(SEEDS, "synthesis", 0, "y")
    by_row, once_more = (
        [
            drawn_from.draw(
                family,
                np.repeat(eta[[row]], len(SEEDS), axis=0),
                np.repeat(auxiliary[[row]], len(SEEDS), axis=0),
            )
            for row in range(N_ROWS)
        ]
        for drawn_from in (streams, streams.again())
    )
    np.testing.assert_array_equal(once_more, by_row)
    for k, seed in enumerate(SEEDS):
        single = family.draw(eta, auxiliary, stream(int(seed), "synthesis", variable="y"))
        # The ziggurat's tables are worked out anew, to their last digits.
        np.testing.assert_allclose([row[k] for row in by_row], single, rtol=0, atol=1e-12)


def test_a_family_that_draws_in_another_way_is_told_apart():
    class TwoNumbers:
        def draw(self, eta, auxiliary, rng):
            return rng.random(len(eta)) + rng.random(len(eta))

    class Gamma:
        def draw(self, eta, auxiliary, rng):
            return rng.gamma(eta[..., 0])

    for family in (TwoNumbers(), Gamma()):
        with pytest.raises(OtherDrawsError):
            Streams.of(SEEDS, "synthesis", 0, "y").draw(family, np.ones((len(SEEDS), 1)), None)
