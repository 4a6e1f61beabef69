"""The audit of a release by two files: check, read, compare, learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from synrisk.assessment.audit_result import Audit
from synrisk.audit.compared_files import Files
from synrisk.audit.copies import copies
from synrisk.audit.learnt_values import Lesson, learn
from synrisk.audit.two_files import read_two_files
from synrisk.base.errors import within_memory
from synrisk.base.progress import bar
from synrisk.base.seeds import checked_seed
from synrisk.base.workers import workers
from synrisk.data.frames import TableLike
from synrisk.data.schema import Types
from synrisk.report.audit_page import Digest, digest_of
from synrisk.synthesis.release import as_datasets


@within_memory
def audit(
    confidential: TableLike,
    synthetic: TableLike | Sequence[TableLike],
    *,
    holdout: TableLike | None = None,
    keys: str | Sequence[str] | None = None,
    sensitive: str | Sequence[str] | None = None,
    types: Types | None = None,
    seed: int | None = None,
    progress: bool | None = None,
) -> Audit:
    """Say what a release teaches about each person, by the two files alone.

    No model is needed, and nothing is assumed of how the release was made. For each person and
    sensitive column: the probability of the true value to somebody who knows other columns of the
    person and all other people, before the release and after it; and whether rows are closer to
    people than chance brings them.

    Parameters
    ----------
    confidential
        The file that the release was made of: a frame, or the path of a CSV, Parquet or RDS file.
    synthetic
        The release: one table, or a list of them.
    holdout
        People of the same kind who are in neither file, for comparison.
    keys
        The columns that an intruder knows of a person; by default all but the one that is sought.
    sensitive
        The columns that are sought; by default all that are neither keys nor in the release as
        they are in the confidential file. Where both are named, no other column is looked at.
    types
        What columns hold, as in `fit`: ``{"Race": ["1", "2"], "Zip": "category"}``.
    seed
        Of the trees, and of ties; by default secret.
    progress
        Whether to show a bar, if standard error is a terminal.

    Examples
    --------
    >>> import synrisk as sr
    >>> people = sr.load_households()
    >>> plan = [sr.Regression("LogIncome ~ LogExpenditure + KidsCount + Urban")]
    >>> release = sr.fit(plan, people, seed=1).synthesize(seed=2)
    >>> found = sr.audit(people, release, sensitive="LogIncome", seed=3)
    >>> found.verdict().outcome
    'passed'
    """
    number = checked_seed(seed)
    files = read_two_files(confidential, synthetic, holdout, keys, sensitive, types)
    with (
        bar(progress, "Auditing", 1 + len(files.sensitive)) as advance,
        workers(None).open() as team,
    ):
        close = copies(files, number)
        advance(1)

        def learn_one(name: str) -> Lesson:
            lesson = _learn(files, name, number)
            advance(1)
            return lesson

        found = team.map(learn_one, files.sensitive)
        lessons = dict(zip(files.sensitive, found, strict=True))
    return Audit(close, files, lessons, tuple(_digests(confidential, synthetic)))


def _learn(files: Files, name: str, seed: int) -> Lesson:
    """Return what is learnt about one column."""
    others = None
    if files.others is not None:
        others = files.who(files.others, name), files.intervals(files.others, name)
    return learn(
        files.who(files.people, name),
        files.who(files.rows, name),
        files.intervals(files.people, name),
        seed,
        name,
        others,
    )


def _digests(confidential: Any, synthetic: Any) -> Iterator[Digest]:
    """Yield what the files are known again by."""
    yield digest_of("confidential data", confidential)
    for position, one in enumerate(as_datasets(synthetic), 1):
        yield digest_of(f"synthetic dataset {position}", one)
