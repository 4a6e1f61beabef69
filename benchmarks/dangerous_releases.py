"""Releases that must never pass, and honest ones that should: what the whole verdict says of them.

``python benchmarks/dangerous_releases.py 3 60,300,5000,100000 1,5`` tries every kind of
tests/helpers/dangerous.py three times at each size, with one and with five datasets.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from helpers.dangerous import MAKERS, outcome


def main(n_each: int, sizes: list[int], datasets: list[int]) -> None:
    """Print a row a kind, size and number of datasets."""
    warnings.simplefilter("ignore")
    for n in sizes:
        for m in datasets:
            for kind in ("honest", *MAKERS):
                if kind != "honest" and n < MAKERS[kind][0]:
                    continue
                found = Counter(outcome(kind, n, m, seed) for seed in range(n_each))
                counts = ", ".join(f"{word} {count}" for word, count in found.items())
                print(f"{n:>7} {m:>2}  {kind:<55} {counts}", flush=True)


if __name__ == "__main__":
    words = [*sys.argv[1:], *("3", "60,300,5000", "1,5")[len(sys.argv) - 1 :]]
    main(int(words[0]), *([int(one) for one in word.split(",")] for word in words[1:3]))
