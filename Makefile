# Every target works on a fresh machine with Python 3.11 or newer and nothing else: it makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-lowest lint format bench docs clean

demo: $(VENV)/.core
	$(BIN)/calirank demo

test: $(VENV)/.dev
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest

test-lowest: ## the tests with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python tools/lowest_versions.py pyproject.toml > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --constraint .venv-lowest/constraints.txt --editable '.[parquet,zstd]' pytest hypothesis pandas polars
	.venv-lowest/bin/python -m pytest -p no:cacheprovider

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench
	for bench in benchmarks/bench_*.py; do $(BIN)/python $$bench || exit 1; done

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-lowest site calirank-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "calirank needs Python 3.11 or newer; name one: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# allRank asks for versions of torch that are no longer to be had; it runs with newer ones.
$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	$(BIN)/python -m pip install --quiet --no-deps allRank
	touch $@

$(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@
