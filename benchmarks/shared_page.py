"""How much the page for sharing tells: values of one record that give the same page.

``python benchmarks/shared_page.py 40 200,1000,5000 1,2,3 1,5,20`` tries 40 values over the range of
an ordinary record and of the most outlying one, for each number of records, of variables and of
datasets: how many give the same page, and how probable these were together to somebody who knows
everybody else, before. See tests/helpers/shared_page.py.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from helpers.shared_page import believed, left


def main(n_guesses: int, sizes: list[int], variables: list[int], datasets: list[int]) -> None:
    """Print a row a setting."""
    warnings.simplefilter("ignore")
    for n, k, m in product(sizes, variables, datasets):
        for who, record in (("ordinary", 0), ("outlying", -1)):
            same = left(n, k, m, record, n_guesses, seed=0)
            shown = "".join("#" if one else "." for one in same)
            mass = believed(n, record, n_guesses, seed=0)[same].sum()
            counts = f"{sum(same):>3} of {n_guesses}, {100 * mass:>5.1f} %"
            print(f"{n:>6} {k} {m:>3} {who}  {counts}  {shown}", flush=True)


if __name__ == "__main__":
    words = [*sys.argv[1:], *("40", "200,1000,5000", "1,2,3", "1,5,20")[len(sys.argv) - 1 :]]
    main(int(words[0]), *([int(one) for one in word.split(",")] for word in words[1:4]))
