"""Values that stand in the row of the person whose they are, in a release that has rows anew.

Row i of a release of fresh rows has nothing to do with person i. Where both files are in one order
(sorted, by household) values still agree in place, but then they do also a row or some rows away.
So what counts is by how much oftener values agree at offset 0 than at others: of agreements at
all of these offsets a share of one over their number is at 0 by chance.

Levels may also have been coded anew, each as another: then it is how closely both columns go
together that counts, in place and elsewhere.

Where other columns are released as they are, in place, a value may follow from these. Then only a
number of many values counts that is the same for most people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import bdtrc, chdtrc, gammaln, xlogy

from synrisk.audit.compared_files import Files, Numbers, bits
from synrisk.base.arrays import FloatArray, IntArray

_REACH = 30  # offsets on either side
_FALSE_ALARMS = 1e-4  # of honest releases
_DOUBT = 0.05  # where all agree, and so many would by chance
_TIMES = 2.0  # as much as at the offset of most
_BESIDE = 1.5  # times as often as at the offset of most
_SOME = 3
_MOST = 0.5  # of people
_KEPT = 0.9
_BY_CHANCE = 0.05  # of people, at other offsets


@dataclass(frozen=True)
class InPlace:
    """The columns whose confidential values stand in their people's rows.

    Attributes
    ----------
    surely
        So often that chance is ruled out.
    perhaps
        In every row, where chance does that now and then.
    """

    surely: tuple[str, ...]
    perhaps: tuple[str, ...]


def in_place(files: Files) -> InPlace:
    """Return which sensitive columns stand in place in a dataset; not those that are kept."""
    names = [name for name in files.names if name not in files.kept]
    surely: set[str] = set()
    perhaps: set[str] = set()
    for dataset in files.release:
        found = {name: _agreement(files, dataset, name) for name in names}
        beside = {name for name in files.kept if _is_in_row(files, dataset, name)}
        beside |= {name for name, one in found.items() if one.is_kept}
        for name in files.sensitive:
            one = found.get(name)
            if one is None:
                continue
            if beside - {name}:
                if one.is_copied:
                    surely.add(name)
            elif one.p < _FALSE_ALARMS / (len(names) * len(files.release)):
                surely.add(name)
            elif one.share == 1.0 and one.p_if_whole < _DOUBT:
                perhaps.add(name)
    return InPlace(
        tuple(name for name in files.sensitive if name in surely),
        tuple(name for name in files.sensitive if name in perhaps - surely),
    )


@dataclass(frozen=True)
class _Agreement:
    """How a column agrees in place.

    Attributes
    ----------
    p, p_if_whole
        The probability of as much by chance, and of such values in every row.
    share, elsewhere
        Of rows that have their person's value, and on average of those some rows away.
    is_few
        Whether the column has few values.
    """

    p: float
    p_if_whole: float
    share: float
    elsewhere: float
    is_few: bool

    @property
    def is_kept(self) -> bool:
        """Whether it may be released as it is, in place."""
        return self.share > _KEPT and self.p < _DOUBT

    @property
    def is_copied(self) -> bool:
        """Whether most people have their own number, which nobody guesses."""
        return not self.is_few and self.share > _MOST and self.elsewhere < _BY_CHANCE


def _agreement(files: Files, dataset: Numbers, name: str) -> _Agreement:
    n = min(len(files.people), len(dataset))  # 20 or more: see `refusals`
    own, theirs = files.filled(files.people, name)[:n], files.filled(dataset, name)[:n]
    near = files.intervals(files.people, name)
    low, high = near.low[:n], near.high[:n]
    codes, other = (np.unique(one, return_inverse=True)[1] for one in (own, theirs))
    is_few = files.few_values(name)
    reach = min(_REACH, n // 4)
    offsets = [0, *(d for step in range(1, reach + 1) for d in (-step, step))]
    exact, roughly = np.zeros(len(offsets)), np.zeros(len(offsets))
    of_level = np.zeros((len(offsets), int(codes.max()) + 1)) if is_few else None
    together = np.zeros(len(offsets))
    for row, offset in enumerate(offsets):
        at = _shifted(n, offset)
        same = own == theirs[at]
        exact[row] = same.sum()
        roughly[row] = ((theirs[at] >= low) & (theirs[at] <= high)).sum()
        if of_level is not None:
            of_level[row] = np.bincount(codes[same], minlength=of_level.shape[1])
            together[row] = _dependence(codes, other[at])
    columns = [exact, roughly] if of_level is None else [exact, *of_level.T]
    p = min(len(columns) * _chance(one) for one in columns)
    if is_few and together[0] > _TIMES * together[1:].max():
        freedom = int(codes.max()) * int(other.max())
        p = min(p, float(chdtrc(freedom, together[0])))
    counts = np.bincount(codes)
    whole = float(np.exp(gammaln(counts + 1).sum() - gammaln(n + 1)))
    return _Agreement(min(p, 1.0), whole, exact[0] / n, exact[1:].mean() / n, is_few)


def _dependence(own: IntArray, other: IntArray) -> float:
    """Return the likelihood ratio statistic of two columns of levels, chi squared by chance."""
    n, n_levels = len(own), int(other.max()) + 1
    both = np.bincount(own * n_levels + other)
    log_sums = [xlogy(count, count / n).sum() for count in (both, np.bincount(own))]
    counts = np.bincount(other)
    return float(2.0 * (log_sums[0] - log_sums[1] - xlogy(counts, counts / n).sum()))


def _shifted(n: int, offset: int) -> IntArray:
    """Return the row that is compared with each person; beyond the end the first ones follow."""
    return (np.arange(n) + offset) % n


def _chance(hits: FloatArray) -> float:
    """Return the probability of as many agreements in place; 1 unless they are many more."""
    if hits[0] <= _BESIDE * hits[1:].max() + (_SOME if hits[1:].max() else 0):
        return 1.0
    return float(bdtrc(hits[0] - 1, int(hits.sum()), 1.0 / len(hits)))


def _is_in_row(files: Files, dataset: Numbers, name: str) -> bool:
    own, theirs = (bits(files.column(one, name)) for one in (files.people, dataset))
    return len(own) == len(theirs) and bool(np.mean(own == theirs) > _KEPT)
