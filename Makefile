# A checkout needs Python 3.10 or later with venv, and a C++ compiler. Every target installs what it needs into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# the package with all development tools
INSTALLED := $(VENV)/.installed
# the package and matplotlib, enough for the demo; if the development tools are there, they include both
RUNNABLE := $(if $(wildcard $(INSTALLED)),$(INSTALLED),$(VENV)/.runnable)
# adelie needs numpy below 2, hence a separate environment
ADELIE := .venv-adelie/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-backends test-adelie lint format stubs bench tolerances reproduce grid compare compare-time measure-house clean clang tidy sanitize sanitize-native fuzz soundness docs check-docs

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 15

setup: $(INSTALLED)  ## install the package and all development tools in .venv; again if the build changes

BUILD := pyproject.toml CMakeLists.txt $(wildcard native/*)

$(BIN)/python:
	@echo 'Making a virtual environment in $(VENV)'
	@$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(BUILD) | $(BIN)/python
	@echo 'Installing the package, all development tools, torch, MPI and other solvers: some minutes'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# without --quiet, so that one sees each download and the compilation; Python compiles modules when it imports them
$(VENV)/.runnable: $(BUILD) | $(BIN)/python
	@echo 'Installing the package and matplotlib, and compiling the core: about half a minute'
	$(BIN)/python -m pip install --progress-bar off --no-compile --editable '.[plot]'
	@touch $@

demo: $(RUNNABLE)  ## solve two problems and draw their certificates, in out/; installs only what this needs
	$(BIN)/saddleback demo --out out

test: setup  ## run the fast tests, and some of them over each backend
	$(BIN)/python -m pytest -m "not slow" -n auto --maxprocesses 4 --dist loadfile
	for backend in numpy torch; do \
	    $(BIN)/python -m pytest -m "not slow" --backend $$backend tests/test_solve.py || exit 1; \
	done

test-all: setup test-backends  ## run every test, hypothesis with ten times as many examples
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest

# the loop, the methods and their layers, and answers that others have found
OVER_BACKENDS := $(patsubst %,tests/test_%.py, \
    solve methods every_method restarts working_set oracle scales linear_program robust_pca)

test-backends: setup  ## run the suite over numpy, native, torch on the CPU and two MPI processes
	for backend in numpy native torch; do \
	    $(BIN)/python -m pytest -rs --backend $$backend $(OVER_BACKENDS) || exit 1; \
	done
	$(BIN)/mpiexec -n 2 $(BIN)/python -m pytest -rs -p no:cacheprovider --backend mpi $(OVER_BACKENDS)

test-adelie: $(ADELIE)  ## run the tests of adelie's models in their own environment
	.venv-adelie/bin/python -m pytest tests/test_judge_adelie.py

lint: setup clang  ## check style, format, types, stubs and docstrings, and that Clang accepts the core
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@if [ -e $(BIN)/clang-format ]; then $(BIN)/clang-format --dry-run --Werror native/*; \
	else echo 'clang-format: not installed, not checked'; fi
	@mkdir -p build
	$(STUBGEN) -o build/_native.pyi && diff -u $(STUBS) build/_native.pyi || { echo 'run make stubs'; exit 1; }
	$(BIN)/mypy
	$(BIN)/python tools/docstrings.py

STUBS := src/saddleback/_native.pyi
STUBGEN = $(BIN)/python -m nanobind.stubgen -q -m saddleback._native

stubs: setup  ## write the types of the compiled core, which nanobind knows, for mypy
	$(STUBGEN) -o $(STUBS)

# the newest Clang that is installed
CLANG ?= $(shell for version in -22 -21 -20 -19 -18 -17 -16 ''; do command -v clang++$$version && break; done)
NATIVE_FLAGS = -std=c++20 -O1 -Wall -Wextra -fopenmp-simd -fvisibility=hidden -isystem $(shell $(BIN)/python -m nanobind --include_dir) \
    -isystem $(shell $(BIN)/python -c "import sysconfig; print(sysconfig.get_path('include'))")

clang: setup  ## check that Clang compiles the core without a warning, if it is installed
	$(if $(CLANG),$(CLANG) $(NATIVE_FLAGS) -Werror -fsyntax-only native/module.cpp,@echo 'clang: not installed, not checked')

format: setup  ## put the code in format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i native/*

tidy: setup  ## run clang-tidy on the core; it is installed in .venv if it is missing
	@[ -e $(BIN)/clang-tidy ] || $(BIN)/python -m pip install --quiet 'clang-tidy>=19'
	$(BIN)/clang-tidy --quiet --warnings-as-errors='*' native/module.cpp -- $(NATIVE_FLAGS)

# where several threads run at once: the pool, the passes and products, the factorisations, solves side by side, forks
THREADED := $(patsubst %,tests/test_%.py, threads blas native lazy descent pure_cd solve streamed finish interior \
    singular working_set path checkpoints interrupts cpus)

# what reaches the core directly: its matrices, products, factors and functions
NATIVE := $(patsubst %,tests/test_%.py, native rounded_products malformed_matrices sparse_factors sorted total_variation)

sanitize-native: setup  ## run the tests of the core alone with these sanitizers, about ten minutes
	.ci/sanitize address $(NATIVE)
	.ci/sanitize thread tests/test_native.py tests/test_threads.py

sanitize: setup  ## run the fast tests with Address-, UndefinedBehavior- and ThreadSanitizer, about an hour
	.ci/sanitize address
	.ci/sanitize thread $(THREADED)

SEED ?= 0
JOBS ?= 1
fuzz: setup  ## run random cases and keep the seeds of failures: SEED=0 CASES=2000 or MINUTES=60, JOBS=1
	PYTHONPATH=tests $(BIN)/python -m fuzz --keep --seed $(SEED) --jobs $(JOBS) \
	    $(if $(CASES),--cases $(CASES)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(KINDS),--kinds $(KINDS))

soundness: setup  ## a campaign against the certificates: CASES=300 SEED=0 KINDS=units,bounds,exact,complete BASE=commit
	PYTHONPATH=tests:tools $(BIN)/python tools/soundness.py --seed $(SEED) \
	    $(if $(CASES),--cases $(CASES)) $(if $(KINDS),--kinds $(KINDS)) $(if $(filter-out HEAD,$(BASE)),--base $(BASE))

bench: setup $(ADELIE)  ## race other libraries and time our passes, about 80 minutes; writes docs/benchmarks.md: DATA=folder of real data
	$(BIN)/saddleback bench --out docs $(if $(DATA),--data $(DATA))

$(ADELIE): $(BUILD)
	$(PYTHON) -m venv .venv-adelie
	.venv-adelie/bin/python -m pip install --quiet adelie hypothesis pytest --editable .
	@touch $@

tolerances: setup $(ADELIE)  ## judge default fits of other libraries, some minutes; writes the tables of docs/tolerances.md
	$(BIN)/python tools/tolerances.py

reproduce: setup  ## the paper's experiments in small, in out/reproduce
	$(BIN)/saddleback reproduce all --quick --out out/reproduce

grid: setup  ## solve 200 problems in all kinds of units, without options
	@mkdir -p out
	$(BIN)/python -m saddleback.bench.scaling_grid --out out/scaling_grid.jsonl

BASE ?= HEAD
compare: setup  ## solve 200 small problems at a commit and in this tree, and compare all bits: BASE=commit, ONLY=part of a name
	PYTHONPATH=tools $(BIN)/python -m compare $(BASE) $(if $(ONLY),--only '$(ONLY)')

compare-time: setup  ## time the core cases of the benchmark and many small solves at a commit and in this tree: BASE=commit
	PYTHONPATH=tools $(BIN)/python -m compare $(BASE) --time $(if $(ONLY),--only '$(ONLY)') $(if $(ROUNDS),--rounds $(ROUNDS))

measure-house: setup  ## count members of contracts, flat modules, long functions, lines: BASE=commit to have it beside the tree
	PYTHONPATH=tools $(BIN)/python -m house $(if $(filter-out HEAD,$(BASE)),$(BASE))

# the package with what the site needs; where the development tools are, this only adds Sphinx
DOCUMENTED := $(VENV)/.documented

$(DOCUMENTED): $(BUILD) | $(BIN)/python
	@echo 'Installing the package and Sphinx: about two minutes'
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

docs: $(DOCUMENTED)  ## build the site in build/site, with the gallery; a warning is an error
	MPLBACKEND=Agg $(BIN)/python -m sphinx -b html -W --keep-going -j auto docs build/site

check-docs: docs  ## visit every page of the site with Chromium, which has to be installed
	$(BIN)/python tools/site_check.py build/site

clean:  ## remove all that was built, .venv included
	rm -rf $(VENV) .venv-adelie build dist out docs/api/generated docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '_native*.so' -delete
