# Everything a checkout needs: a Python of 3.10 or later with venv, and a C++ compiler.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lint format bench grid clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 12

setup: $(INSTALLED)  ## make .venv and install the package in it; done once, and again when the build changes

$(INSTALLED): pyproject.toml CMakeLists.txt $(wildcard native/*)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: setup  ## solve two problems and draw their certificates, in out/
	$(BIN)/saddleback demo --out out

test: setup  ## run the fast tests
	$(BIN)/python -m pytest -m "not slow"

test-all: setup  ## run every test
	$(BIN)/python -m pytest

lint: setup  ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup  ## put the code in format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## measure what a pass costs
	$(BIN)/python benchmarks/pass_cost.py

grid: setup  ## solve 200 problems in all kinds of units, without options
	@mkdir -p out
	$(BIN)/python benchmarks/scaling_grid.py --out out/scaling_grid.jsonl

clean:  ## remove all that was built, .venv included
	rm -rf $(VENV) build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '_native*.so' -delete
