# Two commands set everything up on a bare machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help setup demo test lint types imports unit browser doctest docs slow bench clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP)  ## make .venv with everything in the extra `all` and the developer tools

$(STAMP): pyproject.toml constraints.txt
	@echo 'Making $(VENV) with everything that hardmax needs: a few minutes, the first time only.'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(STAMP)

demo: setup  ## the tour: runs what exists so far and writes out/demo.html
	$(BIN)/hardmax demo --output out/demo.html

test: lint types imports unit browser doctest docs  ## everything a submission must pass

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

unit: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -q -m "not slow" --hypothesis-profile=repeatable --ignore=tests/browser

browser: setup  ## what a person does in the explorer; a browser may stumble where it is busy, so what failed is tried again
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/browser || OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --last-failed tests/browser

doctest: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --doctest-modules src/hardmax

docs: setup  ## build the documentation, warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

slow: setup  ## longer evidence: more random systems, larger sizes
	$(BIN)/python -m pytest -q -m slow

bench: setup  ## us against the rivals in one run, as ratios
	$(BIN)/python -m benchmarks

clean:  ## remove what was built, keep .venv
	rm -rf out docs/_build docs/auto_gallery build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
