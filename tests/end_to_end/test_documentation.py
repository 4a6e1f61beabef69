"""Every page: its Python runs, its links lead somewhere, and Sphinx builds it."""

import os
import re
import subprocess
import sys
from itertools import count
from pathlib import Path

import matplotlib as mpl
import pytest
from helpers.secret import SECRET

import synrisk as sr

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\S*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
# What is not run says so by its language; another spelling of Python would not be run in silence.
LANGUAGES = {"python", "text", "r", "sh", "toml", "stan", "{toctree}", "{eval-rst}"}


def name(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """Return the languages, texts and lines of a page's blocks."""
    text = page.read_text(encoding="utf-8")
    return [
        (found["language"], found["text"], text[: found.start("text")].count("\n"))
        for found in FENCE.finditer(text)
    ]


RUN = [page for page in PAGES if any(language == "python" for language, _, _ in blocks(page))]


@pytest.mark.filterwarnings("error")  # a reader would be surprised by any
@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    """In one namespace, in a folder of its own; tracebacks name the page's own lines."""
    monkeypatch.chdir(tmp_path)
    # Pages leave the seed out, as readers should; here each secret is known.
    known = count(SECRET)
    monkeypatch.setattr("synrisk.base.seeds.secrets.randbits", lambda _: next(known))
    namespace = {"__name__": "__page__"}
    with mpl.rc_context({"backend": "agg"}):
        for language, text, line in blocks(page):
            if language == "python":
                exec(compile("\n" * line + text, str(page), "exec"), namespace)  # noqa: S102


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_say_what_they_are(page):
    text = page.read_text(encoding="utf-8")
    assert text.count("\n```") == 2 * len(blocks(page))
    assert {language for language, _, _ in blocks(page)} <= LANGUAGES


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_to_files_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)#]+)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_readme_is_read_in_a_few_minutes():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 800


def test_the_reference_has_every_public_name():
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\.\. auto(?:class|function|exception):: (\w+)$", text, re.MULTILINE)
    assert sorted(documented) == sorted(sr.__all__)


@pytest.mark.parametrize("name", ["Plots", "of_comparison.ComparisonPlots"])
def test_the_reference_has_the_plots(name):
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert f".. autoclass:: synrisk.plots.{name}\n   :members:\n" in text


def test_the_pages_build_without_a_warning_and_need_no_network(tmp_path):
    pytest.importorskip("sphinx", reason="the extra 'docs' is not installed")
    built = tmp_path / "built"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), str(built)],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    reference = (built / "reference" / "api.html").read_text(encoding="utf-8")
    for public in sr.__all__:
        assert f'id="synrisk.{public}"' in reference
    for page in built.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|img|link)[^>]*(?:src|href)=\"(\w+:)?//", page.read_text(encoding="utf-8")
        )
        assert not loaded, page.name
