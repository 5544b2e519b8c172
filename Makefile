# What a person or a CI job types. Everything sets up what it needs: see `make help`.
SHELL := /bin/sh
.DEFAULT_GOAL := help
VENV := .venv/bin
# One controller per worker, but a small machine still gains from two, and a large one loads the engine enough with four.
WORKERS := $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 2 ] && n=2; [ $$n -gt 4 ] && n=4; echo $$n)
PYTEST := $(VENV)/python -m pytest -q -rs -n $(WORKERS)
TESTS := tests

.PHONY: help setup setup-dev run test agents test-fast lint format bench faults tamper fuzz contracts docs images prove-empty-engine clean crash

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-20s %s\n", $$1, $$2 }' Makefile

setup:  ## Make .venv and see that a Docker Engine answers, installing it on Debian and Ubuntu if root
	@scripts/setup-venv
	@scripts/setup-engine

setup-dev:
	@scripts/setup-venv dev
	@scripts/setup-engine

images: setup  ## Build boxeval's images: keeper, base, grader
	@$(VENV)/boxeval images build

run: images  ## Run the quickstart suite and print its report
	@$(VENV)/boxeval run suites/quickstart.yaml

test: setup-dev  ## Lint, build the images and run every test (TESTS=path for some)
	@$(MAKE) --no-print-directory lint-only
	@$(VENV)/boxeval images build --agent codex --agent claude --agent opencode --agent mini-swe-agent
	@$(PYTEST) $(TESTS)

agents: setup-dev  ## Build the images of all agents, run their tests and suites/agents.yaml (aider and Gemini are only tried here)
	@$(VENV)/boxeval images build --agent all
	@$(PYTEST) tests/engine/test_agents_repair.py
	@$(VENV)/boxeval run suites/agents.yaml

test-fast:  ## Run the tests that need no engine and are quick
	@scripts/setup-venv dev
	@$(PYTEST) -m "not engine and not slow" $(TESTS)

lint:  ## Check style, types and layers
	@scripts/setup-venv dev
	@$(MAKE) --no-print-directory lint-only

.PHONY: lint-only
lint-only:
	@$(VENV)/ruff check
	@$(VENV)/ruff format --check
	@$(VENV)/mypy
	@$(VENV)/lint-imports

format:  ## Format the sources and mend what can be mended
	@scripts/setup-venv dev
	@$(VENV)/ruff check --fix
	@$(VENV)/ruff format

bench: setup images  ## Measure a trial against bare containers, write build/bench.json
	@$(VENV)/python scripts/bench.py
	@$(VENV)/python scripts/bench.py --scale
	@$(VENV)/python scripts/bench_gateway.py
	@$(VENV)/python scripts/bench_graders.py

faults: setup images  ## Every engine fault at every request of a run (half an hour)
	@PYTHONPATH=tests $(VENV)/python scripts/engine_faults.py

tamper:  ## Tamper with a sealed run in 135,000 ways (some minutes)
	@scripts/setup-venv dev
	@PYTHONPATH=tests $(VENV)/python scripts/tamper.py

MINUTES ?= 10
fuzz:  ## Fuzz every reader of hostile bytes, each for its share of MINUTES
	@scripts/setup-venv dev
	@$(VENV)/python -m pip install -q atheris 2>/dev/null || echo "atheris does not install here: fuzzing by chance"
	@PYTHONPATH=tests $(VENV)/python scripts/fuzz.py --minutes $(MINUTES)

contracts:  ## Say which promises of tests/contract.toml are claimed by tests
	@scripts/setup-venv dev
	@$(VENV)/python scripts/contracts.py

docs:  ## Write the generated pages anew
	@scripts/setup-venv dev
	@for script in scripts/*_docs.py; do $(VENV)/python "$$script" || exit; done

prove-empty-engine: setup  ## Build the images on a second, empty engine without a registry (root; a minute)
	@scripts/prove-empty-engine

crash: images  ## Kill the controller at every named point, TRIES=100 times each (an hour; SEED=1)
	@scripts/setup-venv dev
	@$(VENV)/python tests/crash/crash.py --tries $(or $(TRIES),100) --seed $(or $(SEED),1) --workers $(WORKERS)

clean:  ## Remove what tools and builds left in this directory, but not .venv
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	@find src tests scripts images -name __pycache__ -type d -prune -exec rm -rf {} +
