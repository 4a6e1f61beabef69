"""What is written down in more than one of the project's files says the same in each."""

import re
import runpy
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import synrisk

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")


def pinned(name):
    """Return the versions of a constraints file by package."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    return {re.sub(r"[-_.]+", "-", package).lower(): exact for package, exact in found.items()}


def numbers(text):
    return [int(part) for part in re.findall(r"\d+", text)]


def test_the_version_is_that_of_the_package_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [synrisk.__version__]
    assert version("synrisk") == synrisk.__version__
    assert PROJECT["dynamic"] == ["version"]


def test_the_pages_have_the_version_of_the_package():
    assert runpy.run_path(str(ROOT / "docs" / "conf.py"))["release"] == synrisk.__version__


def test_every_python_that_is_claimed_is_tested():
    tested = re.search(r"python: \[(.*)\]", WORKFLOW)[1].replace('"', "").split(", ")
    claimed = [name.split(" :: ")[-1] for name in PROJECT["classifiers"] if ":: 3." in name]
    assert set(claimed) <= set(tested)
    assert PROJECT["requires-python"] == f">={tested[0]}"


def test_the_workflow_asks_for_targets_that_exist():
    targets = set(re.findall(r"run: make (\w\S*)|target: ([^\s,]+)", WORKFLOW))
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = {name for pair in targets for name in pair if name}
    assert named
    assert named <= set(rules)


@pytest.mark.parametrize("requirement", PROJECT["dependencies"])
def test_the_lowest_version_that_is_allowed_is_the_one_that_is_tested(requirement):
    package, floor = re.match(r"([\w-]+)>=([\d.]+)", requirement).groups()
    exact = numbers(pinned("constraints-floors.txt")[package])
    assert exact[: len(numbers(floor))] == numbers(floor)
