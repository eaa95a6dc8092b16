# Every target sets up what it needs: a virtual environment in the tree, made with uv if it is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SITE_READY := $(VENV)/.ready-site

.PHONY: demo test coverage lint limits types bench bench-check docs site dist lowest lock clean

$(READY): pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --allow-existing --python $(PYTHON) $(VENV) && uv pip install --python $(BIN)/python -e '.[dev]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

demo: $(READY)
	mkdir -p out
	$(BIN)/hetrisk demo --report out/demo.html

# Two processes, and no threads beside them: on two cores they would wait for each other.
test: $(READY)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# The same tests with every line counted; the goal for core is 95 %.
coverage: $(READY)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q --cov --cov-report=
	$(BIN)/python -m coverage report --skip-covered --sort=cover | tail -n 60
	$(BIN)/python -m coverage report --include='*/hetrisk/core/*' --format=total

lint: $(READY) limits
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

limits:
	$(PYTHON) .ci/limits

lowest:
	.ci/lowest

lock:
	uv pip compile -q --universal --no-annotate --no-header --python-version 3.11 --extra dev \
	  --no-emit-package hetrisk pyproject.toml | \
	  sed '1i # The versions the project is developed with, for every platform; `make lock` writes it anew.' \
	  > requirements-dev.txt

types: $(READY)
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m pytest -q tests/test_docs.py

$(SITE_READY): $(READY)
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --python $(BIN)/python -e '.[docs]'; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'; \
	fi
	@touch $@

# Warnings, links that lead nowhere among them, are errors.
site: $(SITE_READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -n -W --keep-going -q docs out/site
	@echo "Open out/site/index.html"

dist: $(READY)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python .ci/check_dist.py dist

bench: $(READY)
	$(BIN)/python benchmarks/bench.py

bench-check: $(READY)
	$(BIN)/python benchmarks/bench.py --check benchmarks/baseline.json

clean:
	rm -rf $(VENV) .venv-lowest out dist docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis
