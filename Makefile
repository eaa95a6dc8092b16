# Every target sets up what it needs: a virtual environment in the tree, made with uv if it is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types bench bench-check docs clean

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

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m pytest -q tests/test_docs.py

bench: $(READY)
	$(BIN)/hetrisk bench

bench-check: $(READY)
	$(BIN)/hetrisk bench --check benchmarks/baseline.json

clean:
	rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache .hypothesis
