"""What an installation does by itself: imports, and numba's cache after an upgrade."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import synrisk

SOURCES = Path(synrisk.__file__).parent


def python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_synrisk_imports_nothing_heavy():
    heavy = [
        "numba",
        "llvmlite",
        "scipy.io",
        "rich",
        "matplotlib",
        "dask",
        "polars",
        "typer",
        "pydantic",
    ]
    code = f"import synrisk, sys; print([m for m in {heavy} if m in sys.modules])"
    assert python(code) == "[]"


@pytest.mark.skipif(
    numba.version_info.full < (0, 62), reason="numba before 0.62 is not told where to cache"
)
def test_kernels_work_where_nothing_can_be_cached():
    code = (
        "from synrisk.models.families import family\n"
        "from synrisk.core.kernels import release_kernel\n"
        "from synrisk.core.kernels.digest import can_cache\n"
        "release_kernel(family('bernoulli'))\n"
        "print(can_cache())\n"
    )
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}  # only for code in a zip file
    assert python(code, **nowhere) == "False"


def test_the_cache_does_not_survive_a_change_in_a_family(tmp_path):
    """numba stamps a cached kernel with its own file alone: the family's file is another."""
    shutil.copytree(SOURCES, tmp_path / "synrisk", ignore=shutil.ignore_patterns("__pycache__"))
    cache = tmp_path / "cache"
    code = (
        "import numpy as np\n"
        "from synrisk.models.families import family\n"
        "from synrisk.core.kernels import reduce_kernel, release_kernel\n"
        "out = np.zeros(2)\n"
        "beta = np.array([0.0, 1.0]).reshape(1, 1, 2)\n"
        "release_kernel(family('poisson'))(\n"
        "    np.array([3.0]), np.ones((1, 1)), np.ones(1), beta, np.empty((0, 2)), out)\n"
        "kernels = release_kernel(family('poisson')), reduce_kernel(family('bernoulli'))\n"
        "hits = sum(n for one in kernels for n in one.stats.cache_hits.values())\n"
        "print(round(out[1] - out[0], 6), hits)\n"
    )
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(cache)}
    right = round(3.0 - (2.718281828459045 - 1.0), 6)
    assert python(code, **environment) == f"{right} 0"  # compiled
    assert python(code, **environment) == f"{right} 2"  # from the cache
    family = tmp_path / "synrisk" / "models" / "families" / "poisson.py"
    stamp = family.stat()
    text = family.read_text(encoding="utf-8")
    assert text.count("return y * eta[cell, 0, h]") == 1
    family.write_text(
        text.replace("return y * eta[cell, 0, h]", "return 2.0 * y * eta[cell, 0, h]"),
        encoding="utf-8",
    )
    os.utime(family, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert python(code, **environment) == f"{round(right + 3.0, 6)} 0"


@pytest.mark.parametrize(
    ("models", "estimators", "guesses"),
    [
        (
            {"Urban ~ LogIncome": "bernoulli", "Race ~ Urban + LogIncome": "categorical"},
            ["auto", "importance", "paper"],
            3,
        ),
        (
            {"KidsCount ~ LogIncome": "poisson", "LogExpenditure ~ KidsCount": "gaussian"},
            ["auto", "stacked", "importance", "paper"],
            500,  # the joint is so large that it is not built where no errors are asked for
        ),
    ],
    ids=["of levels", "of numbers"],
)
def test_kernels_give_the_same_bits_from_the_cache_as_when_compiled(
    tmp_path, models, estimators, guesses
):
    """Also where they are loaded in another order than they were compiled in."""
    code = (
        "import hashlib, warnings\n"
        "import synrisk as sr\n"
        "warnings.simplefilter('ignore')\n"
        "people = sr.load_households().head(300)\n"
        f"plan = [sr.Regression(*model) for model in {list(models.items())}]\n"
        "fitted = sr.fit(plan, people, n_draws=150, seed=1)\n"
        "release = fitted.synthesize(m=2, seed=2)\n"
        "asked = {'question': 'paper', 'guesses': 3}\n"
        "runs = [{}, *({**asked, 'estimator': one} for one in ESTIMATORS)]\n"
        f"runs += [{{**asked, 'diagnostics': False, 'guesses': {guesses}}}]\n"
        "for options in runs:\n"
        "    risk = sr.attribute_risk(fitted, release, records=people.index[:200], **options)\n"
        "    table = risk.records.to_csv()\n"
        "    print(options, hashlib.sha256(table.encode()).hexdigest())\n"
    )
    cache = tmp_path / "cache"

    def numbers(estimators):
        text = python(code.replace("ESTIMATORS", str(estimators)), NUMBA_CACHE_DIR=str(cache))
        return sorted(text.splitlines())

    def kept():
        return {file: file.stat().st_mtime_ns for file in cache.rglob("*.nbc")}

    compiled, files = numbers(estimators), kept()
    assert files
    assert numbers(estimators[::-1]) == compiled
    assert kept() == files  # nothing was compiled anew
