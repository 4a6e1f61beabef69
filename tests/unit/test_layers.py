"""One direction of imports: a module imports only from those before it in this list."""

import ast
from pathlib import Path

import synrisk

ORDER = [
    "advice", "errors", "settings", "chunks", "memory", "seeds", "executors", "progress", "storage",
    "rfiles", "io", "schema", "expressions", "transforms", "formula", "families", "priors", "plan",
    "design", "preparation", "release", "twins", "posterior", "spellings", "interchange",
    "inference", "bambi", "kernels", "units", "likelihood", "fitting", "model", "archive",
    "synthesis", "conditioning", "synthesizer", "guesses", "intruder", "elimination", "result",
    "estimators", "uncertainty", "risk", "risk_archive", "estimation", "refitting", "checks",
    "findings", "tables", "criteria", "verdict", "plots", "utility", "report", "attribute",
    "evaluating", "comparison", "datasets", "study", "outputs", "running", "starting", "cli",
    "__init__",
]  # fmt: skip
ROOT = Path(synrisk.__file__).parent


def layer(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("synrisk"):
            if node.module == "synrisk":
                yield from (alias.name for alias in node.names)
            else:
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                assert not alias.name.startswith("synrisk"), f"{path}: use from-imports"


def test_every_module_is_in_the_order():
    assert {layer(path) for path in ROOT.rglob("*.py")} == set(ORDER)


def test_imports_go_one_way():
    for path in ROOT.rglob("*.py"):
        own = layer(path)
        for name in imported(path):
            assert name == own or ORDER.index(name) < ORDER.index(own), f"{own} imports {name}"


def test_the_array_core_knows_no_labels():
    for name in ("likelihood", "result"):
        text = (ROOT / f"{name}.py").read_text(encoding="utf-8")
        assert "pandas" not in text
        assert "xarray" not in text
