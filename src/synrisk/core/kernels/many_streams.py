"""Kernels that begin many random streams at once, to try the seeds that people choose.

They repeat what ``base.seeds.stream`` and NumPy's Generator do, a draw from each of many streams:
BLAKE2b of a short text for the key, Philox4x64-10 for the words, and NumPy's ways to a uniform,
normal or Poisson number. A test holds each against the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types

from synrisk.base.arrays import FloatArray
from synrisk.core.kernels.compiling import as_kernel, within_kernels
from synrisk.core.kernels.digest import sources_digest
from synrisk.core.kernels.signatures import F1, I1

BLOCK = 128  # bytes of text that are hashed at once
_LANES = 8
_U1, _U2 = (types.Array(types.uint64, n, "C") for n in (1, 2))
_BYTES = types.Array(types.uint8, 1, "C")

_START = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    dtype=np.uint64,
)  # fmt: skip
_ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ]
)  # fmt: skip
_MIXED = np.array(
    [
        [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
        [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
    ]
)  # fmt: skip


def _ziggurat() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the 256 layers' widths, shares that need no second look, and densities."""
    area = _TAIL * math.exp(-0.5 * _TAIL**2) + math.sqrt(math.pi / 2) * math.erfc(
        _TAIL / math.sqrt(2)
    )
    x = np.empty(257)
    x[256], x[255] = area / math.exp(-0.5 * _TAIL**2), _TAIL
    for k in range(254, 0, -1):
        x[k] = math.sqrt(-2.0 * math.log(area / x[k + 1] + math.exp(-0.5 * x[k + 1] ** 2)))
    x[0] = 0.0
    width = np.concatenate([x[256:], x[1:256]])
    inner = np.concatenate([[_TAIL], x[:255]])
    return width, inner, np.exp(-0.5 * np.concatenate([[0.0], x[1:256]]) ** 2)


_TAIL = 3.6541528853610088
_WIDTH, _INNER, _DENSITY = _ziggurat()


@cache
def keys_kernel() -> Callable[..., None]:
    """Return the kernel that writes the key of each seed's stream: seeds, rest of the text."""
    kernel: Callable[..., None] = _make_keys(sources_digest())
    return kernel


@cache
def draw_kernel(kind: int) -> Callable[..., None]:
    """Return the kernel that draws a uniform, a normal or a Poisson number of each stream."""
    make = (_make_uniforms, _make_normals, _make_poissons)[kind]
    kernel: Callable[..., None] = make(sources_digest())
    return kernel


@njit(inline="always")
def _rotated(x: Any, by: Any) -> Any:
    return (x >> np.uint64(by)) | (x << np.uint64(64 - by))


def _make_keys(digest: str) -> Any:
    @as_kernel(types.void(I1, _BYTES, _U2))
    def write(seeds: Any, rest: Any, keys: Any) -> None:
        digest  # noqa: B018 - held by the closure
        message = np.empty((16, _LANES), dtype=np.uint64)
        v = np.empty((16, _LANES), dtype=np.uint64)
        length = np.empty(_LANES, dtype=np.uint64)
        for start in range(0, len(seeds), _LANES):
            for lane in range(_LANES):
                left = seeds[min(start + lane, len(seeds) - 1)]
                n_digits, power = 1, 10
                while left >= power and n_digits < 18:
                    n_digits += 1
                    power *= 10
                length[lane] = n_digits + len(rest)
                message[:, lane] = 0
                for k in range(n_digits + len(rest) - 1, -1, -1):
                    letter = np.uint64(48 + left % 10 if k < n_digits else rest[k - n_digits])
                    left = left // 10 if k < n_digits else left
                    message[k // 8, lane] |= letter << np.uint64(8 * (k % 8))
            first = _START[0] ^ np.uint64(0x01010010)  # a digest of 16 bytes
            for lane in range(_LANES):
                for k in range(8):
                    v[k, lane] = v[8 + k, lane] = _START[k]
                v[0, lane] = first
                v[12, lane] ^= length[lane]
                v[14, lane] = ~v[14, lane]
            for turn in range(12):
                for mix in range(8):
                    a, b, c, d = _MIXED[mix]
                    x = _ORDER[turn % 10, 2 * mix]
                    y = _ORDER[turn % 10, 2 * mix + 1]
                    for lane in range(_LANES):
                        va = v[a, lane] + v[b, lane] + message[x, lane]
                        vd = _rotated(v[d, lane] ^ va, 32)
                        vc = v[c, lane] + vd
                        vb = _rotated(v[b, lane] ^ vc, 24)
                        va = va + vb + message[y, lane]
                        vd = _rotated(vd ^ va, 16)
                        vc = vc + vd
                        v[a, lane], v[c, lane], v[d, lane] = va, vc, vd
                        v[b, lane] = _rotated(vb ^ vc, 63)
            for lane in range(min(_LANES, len(seeds) - start)):
                keys[start + lane, 0] = first ^ v[0, lane] ^ v[8, lane]
                keys[start + lane, 1] = _START[1] ^ v[1, lane] ^ v[9, lane]

    return write


@njit(inline="always")
def _high(x: Any, y: Any) -> Any:
    """Return the high word of a product."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    cross = x1 * y0 + ((x0 * y0) >> half)
    return x1 * y1 + (cross >> half) + ((x0 * y1 + (cross & low)) >> half)


@within_kernels()
def _word(keys: Any, used: Any, i: Any) -> Any:
    """Return the next word of stream i."""
    one, three = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
    key0, key1 = keys[i, 0], keys[i, 1]
    c0, c1, c2, c3 = np.uint64(used[i] // 4 + 1), np.uint64(0), np.uint64(0), np.uint64(0)
    for _ in range(10):
        c0, c1, c2, c3 = (
            _high(three, c2) ^ c1 ^ key0,
            three * c2,
            _high(one, c0) ^ c3 ^ key1,
            one * c0,
        )
        key0 += np.uint64(0x9E3779B97F4A7C15)
        key1 += np.uint64(0xBB67AE8584CAA73B)
    place = used[i] % 4
    used[i] += 1
    return c0 if place == 0 else c1 if place == 1 else c2 if place == 2 else c3


@within_kernels()
def _unit(keys: Any, used: Any, i: Any) -> Any:
    return np.float64(_word(keys, used, i) >> np.uint64(11)) / 9007199254740992.0


@within_kernels()
def _standard_normal(keys: Any, used: Any, i: Any) -> Any:
    while True:
        word = _word(keys, used, i)
        layer = np.int64(word & np.uint64(0xFF))
        word >>= np.uint64(8)
        rest = (word >> np.uint64(1)) & np.uint64(0x000FFFFFFFFFFFFF)
        x = np.float64(rest) * (_WIDTH[layer] / 4503599627370496.0)
        size = x
        if word & np.uint64(1):
            x = -x
        if size < _INNER[layer]:
            return x
        if layer == 0:
            while True:
                beyond = -math.log1p(-_unit(keys, used, i)) / _TAIL
                other = -math.log1p(-_unit(keys, used, i))
                if 2.0 * other > beyond * beyond:
                    below = (rest >> np.uint64(8)) & np.uint64(1)
                    return -(_TAIL + beyond) if below else _TAIL + beyond
        else:
            span = _DENSITY[layer - 1] - _DENSITY[layer]
            if span * _unit(keys, used, i) + _DENSITY[layer] < math.exp(-0.5 * x * x):
                return x


@within_kernels()
def _few(keys: Any, used: Any, i: Any, rate: Any) -> Any:
    """Return a Poisson number of a small rate, by a product of uniforms."""
    least, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= _unit(keys, used, i)
        if product <= least:
            return count
        count += 1


@within_kernels()
def _many(keys: Any, used: Any, i: Any, rate: Any) -> Any:
    """Return a Poisson number of a large rate (Hörmann's transformed rejection)."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    ratio = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u = _unit(keys, used, i) - 0.5
        v = _unit(keys, used, i)
        side = 0.5 - abs(u)
        k = math.floor((2.0 * a / side + b) * u + rate + 0.43)
        if side >= 0.07 and v <= ratio:
            return k
        if k < 0 or (side < 0.013 and v > side):
            continue
        tried = math.log(v) + math.log(inverse) - math.log(a / (side * side) + b)
        if tried <= -rate + k * math.log(rate) - math.lgamma(k + 1.0):
            return k


def _make_uniforms(digest: str) -> Any:
    @as_kernel(types.void(_U2, I1, F1))
    def uniforms(keys: Any, used: Any, out: Any) -> None:
        digest  # noqa: B018
        for i in range(len(keys)):
            out[i] = _unit(keys, used, i)

    return uniforms


def _make_normals(digest: str) -> Any:
    @as_kernel(types.void(_U2, I1, F1))
    def normals(keys: Any, used: Any, out: Any) -> None:
        digest  # noqa: B018
        for i in range(len(keys)):
            out[i] = _standard_normal(keys, used, i)

    return normals


def _make_poissons(digest: str) -> Any:
    @as_kernel(types.void(_U2, I1, F1, F1))
    def poissons(keys: Any, used: Any, rates: Any, out: Any) -> None:
        digest  # noqa: B018
        for i in range(len(keys)):
            rate = rates[i]
            if rate == 0.0:
                out[i] = 0.0
            elif rate < 10.0:
                out[i] = _few(keys, used, i, rate)
            else:
                out[i] = _many(keys, used, i, rate)

    return poissons
