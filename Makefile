# Two commands do everything on a fresh machine: `make demo` and `make test`.
# All paths are relative, so that the folder may have any name, spaces included.
PYTHON ?= python3
PY := .venv/bin/python
CONSTRAINTS ?= constraints.txt
PINNED = $(if $(CONSTRAINTS),-c $(CONSTRAINTS))

.PHONY: demo test test-all test-browser docs lint check-package constraints picture tutorials layers clean

demo: .venv/.core
	@$(PY) -m gapview demo

test: .venv/.test lint
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -q -n 2 --dist worksteal

# Also what takes long and is much like what `make test` runs
test-all: .venv/.test lint
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -q -n 2 --dist worksteal -m "slow or not slow"

# In a real browser. Chromium comes from the packages of Debian: installed here if absent and allowed.
test-browser: .venv/.browser
	@command -v chromium > /dev/null && command -v chromedriver > /dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    echo "Installing Chromium (once)"; \
	    apt-get install -y -qq --no-install-recommends chromium chromium-driver > /dev/null || \
	    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium chromium-driver > /dev/null; }; \
	  else \
	    echo "The tests in a browser need chromium and chromedriver. On Debian: sudo apt-get install chromium chromium-driver" >&2; exit 1; \
	  fi; }
	@GAPVIEW_BROWSER=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -q tests/browser

# The site is one folder that works offline; every warning is an error.
docs: .venv/.docs
	@rm -rf build/docs
	@$(PY) -m sphinx -b html -q -W --keep-going -d build/doctrees docs build/docs
	@echo "The documentation is in build/docs/index.html"

lint: .venv/.test
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m mypy --strict
	@layers=$$(.venv/bin/lint-imports --no-logo --no-cache 2>&1) || { echo "$$layers"; exit 1; }

# The first is of a data set in GAPVIEW_DATA, which is downloaded if that is not set
picture: .venv/.test
	@$(PY) examples/overview_picture.py docs/images/overview.png
	@$(PY) examples/trust_picture.py docs/images/trust.png
	@$(PY) examples/method_drawings.py docs/images
	@cp results/trust/calibration.svg results/trust/outliers.svg docs/images/

# The figures of the gallery and of the tutorials, from the data sets in GAPVIEW_DATA
tutorials: .venv/.test
	@$(PY) tools/tutorials.py

# The layers of the package and their imports
layers: .venv/.test
	@$(PY) tools/draw_layers.py docs/images/layers.svg

# The wheel and the sdist, installed and tested with the oldest and the newest Python on the path
check-package:
	@$(PYTHON) tools/check_package.py $(if $(OUT),-o $(OUT))

constraints:
	@$(PYTHON) tools/constraints.py $(PYTHONS)

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "gapview needs Python 3.11 or newer; this is Python %d.%d. Try: make PYTHON=python3.11 ..." % sys.version_info[:2])'
	@echo "Making the environment in .venv (once)"
	@$(PYTHON) -m venv .venv

.venv/.core: pyproject.toml | .venv/bin/python
	@$(PY) -m pip install --quiet $(PINNED) --editable ".[report,tables]"
	@touch .venv/.core

.venv/.test: pyproject.toml lab/pyproject.toml | .venv/bin/python
	@$(PY) -m pip install --quiet $(PINNED) --editable ".[all,test,docs]" --editable ./lab
	@touch .venv/.core .venv/.test

.venv/.docs: pyproject.toml | .venv/bin/python
	@$(PY) -m pip install --quiet $(PINNED) --editable ".[report,tables,docs]"
	@touch .venv/.core .venv/.docs

.venv/.browser: .venv/.test
	@$(PY) -m pip install --quiet $(PINNED) --editable ".[browser]"
	@touch .venv/.browser

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build gapview-demo
