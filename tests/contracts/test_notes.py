"""Who may read a note is said where it is made, and what a shared page tells of it is listed here.

Sentences for anyone may hold names, settings and numbers that are public. A number that one record
changes belongs into a `Count`, or into a note for inside.
"""

import ast
from collections import defaultdict
from pathlib import Path

import synrisk
from synrisk.base import notes

ROOT = Path(synrisk.__file__).parent
# What stands in the sentences of a module that a shared page may tell, counts apart.
TOLD = {
    "all_levels": {"target.name", "self.n", "n", "target.multiples"},
    "attribute_result": {"listed(around)"},
    "attribute_risk": {
        "name", "draws[k].n_draws", "found",  # numbers of draws
        "listed(foreign)", "number", "one + 1", "other + 1",
    },
    "doubts": {"SHARED_WHY[0].upper()", "SHARED_WHY[1:]"},
    "diagnostics": {"variable", "listed(map(str, numbers))", "relation", "relation.variable"},
    "whole_range": {"target.name"},
    "fitted_model": {"factor", "response"},
    "identifiability": {"response"},
    "importance": {
        "variable", "worst + 1", "one + 1",
        "carried", "shapes[one]", "LEAST_RELEASE_ESS",  # about the weights of draws
    },
    "relative": {"target.name"},
    "spaced": {"target.name", "target.multiples"},  # of a step that the model has
    "stacked": {"variable"},
    "synthesizer": {
        "model.response", "model.regression.wants",  # a step
        "model.regression.response", "listed(model.posterior.left_out)",
    },
}  # fmt: skip


def makers():
    """Every call that makes a note, with its module."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in ("Note", "for_anyone", "for_inside"):
                yield path, name, node


def values_in(text):
    """What is put into a text."""
    if isinstance(text, ast.Constant):
        return set()
    if isinstance(text, ast.JoinedStr):
        return {ast.unparse(v.value) for v in text.values if isinstance(v, ast.FormattedValue)}
    return {ast.unparse(text)}


def is_count(part):
    return isinstance(part, ast.Call) and getattr(part.func, "id", "") == "Count"


def test_notes_are_made_by_saying_for_whom():
    found = {path.stem for path, name, _ in makers() if name == "Note"}
    assert found == {Path(notes.__file__).stem}


def test_nothing_but_what_is_listed_stands_in_the_words_of_a_shared_page():
    told = defaultdict(set)
    for path, name, call in makers():
        shared = [k.value for k in call.keywords if k.arg == "instead"]
        if name == "for_anyone":
            shared += [part for part in call.args if not is_count(part)]
        for text in shared:
            told[path.stem] |= values_in(text)
    told.pop(Path(notes.__file__).stem, None)
    assert {module: values for module, values in told.items() if values} == TOLD
