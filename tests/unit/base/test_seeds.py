import numpy as np

from synrisk.base.chunks import ROWS, chunks
from synrisk.base.seeds import stream


def test_streams_depend_on_every_part_of_their_key():
    keys = [
        (1, "a", {}), (2, "a", {}), (1, "b", {}), (1, "a", {"dataset": 1}),
        (1, "a", {"variable": "v"}), (1, "a", {"chunk": 1}),
    ]  # fmt: skip
    firsts = [stream(seed, stage, **rest).random() for seed, stage, rest in keys]
    assert len(set(firsts)) == len(keys)
    assert stream(1, "a").random() == firsts[0]


def test_a_stream_is_the_same_on_every_machine():
    first = stream(7, "synthesis", dataset=2, variable="Größe", chunk=3).integers(0, 2**32, 2)
    np.testing.assert_array_equal(first, [2029162858, 1811022222])


def test_chunks_cover_all_rows_once():
    for n in (1, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS):
        rows = np.concatenate([np.arange(c.start, c.stop) for c in chunks(n)])
        np.testing.assert_array_equal(rows, np.arange(n))
    assert chunks(0) == []
