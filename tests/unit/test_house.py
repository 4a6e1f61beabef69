"""The house: rooms that import one way, and names that tell them apart."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import synrisk

ROOMS = (
    "base", "data", "models", "core", "fitting", "synthesis", "risk", "audit", "verdict", "plots",
    "utility", "report", "assessment", "study",
)  # fmt: skip
ROOT = Path(synrisk.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT)


def room(path):
    return path.relative_to(ROOT).parts[0]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("synrisk"):
            assert node.module != "synrisk", f"{path}: name the room"
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("synrisk"), f"{path}: use from-imports"


def test_nothing_but_rooms_stands_on_the_ground_floor():
    assert [path.name for path in ROOT.glob("*.py")] == ["__init__.py"]
    assert {room(path) for path in MODULES} == set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_from_those_before_it(path):
    before = ROOMS[: ROOMS.index(room(path)) + 1]
    assert set(imported(path)) <= set(before)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_says_in_a_sentence_what_it_owns(name):
    text = ast.get_docstring(ast.parse((ROOT / name / "__init__.py").read_text(encoding="utf-8")))
    assert text is not None
    assert text.splitlines()[0].endswith(".")


def test_no_module_is_called_like_another():
    names = Counter(path.stem for path in MODULES if path.stem != "__init__")
    assert [name for name, n in names.items() if n > 1] == []


def test_unit_tests_stand_in_the_rooms_that_they_test():
    folders = {path.name for path in Path(__file__).parent.iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(ROOMS)


def test_the_core_knows_no_labels():
    for path in (ROOT / "core").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "pandas" not in text, path
        assert "xarray" not in text, path
