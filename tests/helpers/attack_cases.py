"""What every attack has: records whose values are found again, one input, and what it may not do.

An attack makes one input from a random generator and gives it to synrisk as a user would. What
may come of it is a result or a SynriskError. The data hold values that are found again wherever
they turn up (`Marks`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import synrisk as sr
from helpers.secret import SECRET
from helpers.studies import synrisk
from synrisk.report import svg

PLAN = [sr.Regression("Income ~ Spending"), sr.Regression("Kids ~ Income", "poisson")]
INTERNAL = 70  # the command line's exit code for an error of synrisk's own


def people(n: int = 60) -> pd.DataFrame:
    """Return records whose ids, regions and amounts are found in no honest message."""
    rng = np.random.default_rng(1)
    spending = rng.normal(31_000.0, 4_000.0, n).round(4)
    return pd.DataFrame(
        {
            "CaseID": [f"PID{700_000 + i}" for i in rng.permutation(n)],
            "Spending": spending,
            "Income": (20_000 + spending + rng.normal(0.0, 5_000.0, n)).round(4),
            "Kids": np.minimum(rng.poisson(1.2, n), 4),
            "Owner": rng.integers(0, 2, n),
            "Region": rng.choice(["Quovadis", "Ramsgate", "Zyxwville"], n),
        }
    )


class Marks:
    """The values of a table that may stand nowhere: text as it is, numbers by seven digits."""

    def __init__(self, frame: pd.DataFrame) -> None:
        words = {str(v) for name in ("CaseID", "Region") for v in frame[name]}
        for name in ("Spending", "Income"):
            words |= {f"{value:.7g}" for value in frame[name]}
        self._pattern = re.compile("|".join(map(re.escape, sorted(words))))

    def found(self, text: str, declared: str = "") -> str:
        """Return the first of them in a text that was not declared, or an empty text."""
        found = self._pattern.findall(re.sub(r"(?<=\d)[,_\u2009\u202f](?=\d{3})", "", text))
        return next((word for word in found if word not in declared), "")


@dataclass
class Case:
    """One input: what it is made by, where its files go, and what synrisk says of it.

    Attributes
    ----------
    rng
        Of this input alone.
    folder
        Empty.
    good
        What the attack has prepared, shared by all its inputs.
    said
        Filled by whatever others may see: messages on terminals, pages for sharing.
    problems
        Filled by what is wrong beside exceptions.
    declared
        What the input itself says, such as the levels that a study declares: it may be shown.
    released
        Levels that the release holds: its pictures show them on the page for sharing.
    """

    rng: np.random.Generator
    folder: Path
    good: Any
    said: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    declared: str = ""
    released: tuple[str, ...] = ()
    is_refused: bool = False  # by the command line
    is_judged: bool = False  # likewise

    def write(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    def run(self, *arguments: Any) -> int:
        """Run the command line; its words are kept."""
        done = synrisk(*arguments)
        self.said.append(done.output)
        self.is_refused = done.exit_code == 2
        self.is_judged = done.exit_code in (0, 1, 3)
        if done.exit_code == INTERNAL:
            self.problems.append(f"an error of synrisk's own: {done.output.strip()[-300:]}")
        elif done.exit_code not in (0, 1, 2, 3):
            self.problems.append(f"exit code {done.exit_code}")
        if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", done.output):
            self.problems.append("a control character reaches the terminal")
        return int(done.exit_code)

    def share(self, page: Path) -> None:
        """Take a page for sharing and the JSON beside it, and look for code in the page."""
        html = page.read_text(encoding="utf-8")
        for text in (html, page.with_suffix(".json").read_text(encoding="utf-8")):
            self.said.append(re.sub("|".join(map(re.escape, self.released)) or "$^", "", text))
        self.problems += code_in(html)


@dataclass(frozen=True)
class Attack:
    """Inputs for one reader.

    Attributes
    ----------
    prepare
        Makes what inputs are made of, once, in a folder of its own.
    make
        Makes an input. Where it cannot, such as a name that pandas does not write, it raises; such
        an input is counted as not made.
    give
        Gives the input to synrisk, which answers with a result or a SynriskError: any other
        exception is a problem, wherever it comes from.
    share
        Of the time, in comparison: the longer an input takes, the more there should be.
    """

    prepare: Callable[[Path], Any]
    make: Callable[[Case], Any]
    give: Callable[[Case, Any], None]
    share: float = 1.0


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        loads = {"src", "srcset", "action", "data", "xlink:href"} & names
        goes = [v or "" for name, v in attrs if name == "href" and not (v or "").startswith("#")]
        if tag in ("script", "iframe", "object", "embed", "img", "base", "form", "link", "meta"):
            if tag == "meta" and names <= {"charset", "name", "content", "http-equiv"}:
                return
            self.problems.append(f"<{tag}> in a page")
        if loads or any(name.startswith("on") for name in names):
            self.problems.append(f"<{tag} {' '.join(sorted(names))}> in a page")
        self.problems += [f"a link to {where[:40]} in a page" for where in goes]


def code_in(html: str) -> list[str]:
    parser = _Page()
    parser.feed(html)
    if str(7331 * 7919) in html:  # which no count or share is by chance
        parser.problems.append("a template in a name was evaluated")
    return parser.problems


@contextmanager
def few_pictures(rng: np.random.Generator, share: float = 0.15) -> Iterator[None]:
    """Draw some pictures of a page only, by chance: nearly all of its seconds are theirs."""
    draw = svg.draw
    chance = np.random.default_rng(rng.integers(2**63))
    svg.draw = lambda picture, k: draw(picture, k) if chance.random() < share else "<svg></svg>"
    try:
        yield
    finally:
        svg.draw = draw


def fitted(folder: Path) -> dict[str, Any]:
    """Return the records and a small fit of them, with a release and its risk."""
    data = people()
    made = sr.fit(PLAN, data, n_draws=40, id="CaseID", seed=SECRET)
    release = made.synthesize(1, seed=SECRET + 1)
    risk = sr.attribute_risk(made, release, question="paper", guesses=5)
    return {"data": data, "fitted": made, "release": release, "risk": risk, "folder": folder}


def said_by(error: BaseException) -> Iterable[str]:
    """Yield all that an exception says, with those that it is chained to."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield from (str(one), repr(one.args), *getattr(one, "__notes__", ()))
        if isinstance(one, sr.SynriskError):
            yield one.in_study()
        waiting += [one.__cause__, one.__context__]
