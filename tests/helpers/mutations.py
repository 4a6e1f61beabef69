"""Files that were damaged: bytes changed, lost or repeated, at random."""

from collections.abc import Callable, Iterator

import numpy as np


def mutations(content: bytes, rng: np.random.Generator, n: int) -> Iterator[bytes]:
    """Yield `n` damaged copies of `content`, each by one to three accidents."""
    for _ in range(n):
        damaged = content
        for _ in range(int(rng.integers(1, 4))):
            accident = ACCIDENTS[int(rng.integers(len(ACCIDENTS)))]
            damaged = accident(damaged, rng) if damaged else damaged
        yield damaged


def _slice(content: bytes, rng: np.random.Generator) -> tuple[int, int]:
    """Return the ends of a piece, more often a short one."""
    start = int(rng.integers(len(content)))
    length = int(2 ** rng.uniform(0, np.log2(len(content) + 1)))
    return start, min(start + length, len(content))


def change_bits(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def change_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
    return bytes(changed)


def write_number(content: bytes, rng: np.random.Generator) -> bytes:
    """Put a number that is large, or negative, where four or eight bytes may hold a length."""
    number = [2**31 - 1, 2**24, -1, -(2**31), 10**9][int(rng.integers(5))]
    width = int(rng.choice([4, 8]))
    start = int(rng.integers(len(content)))
    order = "big" if rng.random() < 0.5 else "little"
    return content[:start] + number.to_bytes(width, order, signed=True) + content[start + width :]


def cut_short(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content)))]


def leave_out(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _slice(content, rng)
    return content[:start] + content[stop:]


def repeat(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _slice(content, rng)
    return content[:stop] + content[start:]


def clear(content: bytes, rng: np.random.Generator) -> bytes:
    start, stop = _slice(content, rng)
    return content[:start] + bytes(stop - start) + content[stop:]


ACCIDENTS: tuple[Callable[[bytes, np.random.Generator], bytes], ...] = (
    change_bits, change_bytes, write_number, cut_short, leave_out, repeat, clear,
)  # fmt: skip
