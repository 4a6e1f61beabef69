# Every target makes its own virtual environment first; nothing has to be installed by hand.
PYTHON ?= python3
VENV ?= .venv
VENV_EXTRAS ?= .venv-extras
VENV_FLOORS ?= .venv-floors
ATTACK_MINUTES ?= 10
ATTACK_TIMES ?= 3
ATTACK_SEED ?=
ATTACK_MOST ?=
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet
WIDEST = from numpy._core import _multiarray_umath as m; \
  print(*(n for n in m.__cpu_dispatch__ if m.__cpu_features__[n] and ("512" in n or n == "X86_V4")))

.PHONY: demo applications figures architecture docs test test-avx2 test-extras test-floors coverage \
  browser lint format bench attack public-tables clean

demo: $(VENV)/.runtime
	$(BIN)/synrisk demo --folder build/demo

applications: $(VENV)/.runtime
	$(BIN)/python examples/applications.py

figures: $(VENV)/.runtime
	$(BIN)/python examples/figures.py

# The picture of the rooms, from what they import.
architecture: $(VENV)/.runtime
	$(BIN)/python docs/draw_architecture.py

# Warnings are errors; the first page is build/docs/index.html.
docs: $(VENV)/.dev
	$(BIN)/python -m sphinx -W --keep-going docs build/docs

test: lint browser
	$(BIN)/python -m pytest -n 2

# The references once more as on a CPU without AVX-512: in BLAS, in NumPy and in the compiled core.
# What the CPU lacks anyway is not named, since NumPy would warn of it.
test-avx2: $(VENV)/.dev
	OPENBLAS_CORETYPE=Haswell NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES= \
	  NUMBA_CACHE_DIR=$(CURDIR)/build/numba-avx2 \
	  NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c '$(WIDEST)')" \
	  $(BIN)/python -m pytest -n 2 tests/reference

# Bambi and nutpie need earlier versions of numba and matplotlib, so they have an environment of
# their own; the compiled core is tested there too.
test-extras: $(VENV_EXTRAS)/.extras
	$(VENV_EXTRAS)/bin/python -m pytest -n 2 --dist loadfile \
	  tests/extras tests/unit/core/test_kernels.py tests/contracts/test_families.py

# The lowest versions that pyproject.toml allows.
test-floors: $(VENV_FLOORS)/.floors
	$(VENV_FLOORS)/bin/python -m pytest -n 2

# Compiled kernels are left out; the page is build/coverage/index.html.
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --cov --cov-report term --cov-report html:build/coverage

# For the tests of the report, where CI may install it; elsewhere they use what there is, or skip.
browser:
	@if [ "$$CI" = true ] && ! command -v chromium && ! command -v chromium-browser \
	    && ! command -v google-chrome; then \
	  if [ "$$(id -u)" = 0 ]; then as=; else as="sudo -n"; fi; \
	  { $$as apt-get update -q && $$as apt-get install -qy --no-install-recommends chromium; } \
	    || echo "Chromium cannot be installed; tests that need it are skipped."; \
	fi

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.runtime
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/errors.py

# Damaged and hostile inputs for everything that reads, in so many minutes and then some.
attack: $(VENV)/.dev
	$(BIN)/python benchmarks/attack.py $(ATTACK_SEED:%=--seed %) --minutes $(ATTACK_MINUTES) \
	  $(ATTACK_MOST:%=--most %)
	$(BIN)/python benchmarks/attack.py $(ATTACK_SEED:%=--seed %) --only interruptions --times $(ATTACK_TIMES)

# What is said of tables that everybody has, in an environment with the packages that hold them.
public-tables: $(VENV)/.runtime
	$(PIP) install --constraint constraints.txt --editable '.[tables]'
	$(BIN)/python benchmarks/public_tables.py

clean:
	rm -rf $(VENV) $(VENV_EXTRAS) $(VENV_FLOORS) build dist

# The version is read from __init__.py when it is installed.
$(VENV)/.runtime: pyproject.toml constraints.txt src/synrisk/__init__.py
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) install --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

$(VENV_EXTRAS)/.extras: pyproject.toml constraints-extras.txt
	$(PYTHON) -m venv $(VENV_EXTRAS)
	$(VENV_EXTRAS)/bin/python -m pip --disable-pip-version-check --quiet install \
	  --constraint constraints-extras.txt --editable '.[bambi,nuts,r,test]'
	touch $@

$(VENV_FLOORS)/.floors: pyproject.toml constraints-floors.txt
	$(PYTHON) -m venv $(VENV_FLOORS)
	$(VENV_FLOORS)/bin/python -m pip --disable-pip-version-check --quiet install \
	  --constraint constraints-floors.txt --editable '.[test]'
	touch $@
