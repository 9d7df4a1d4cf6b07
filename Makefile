# Every target does its own set-up, without root, from python3 alone. Another Python: make PYTHON=python3.12 test
PYTHON ?= python3
# each Python has an environment of its own, so that going to and fro costs nothing
VENV ?= .venv$(if $(filter-out python3,$(PYTHON)),-$(notdir $(PYTHON)))
BIN = $(VENV)/bin
# which libraries: locked (tools/setup/requirements*.txt, with hashes), or the newest or oldest that pyproject.toml allows
VERSIONS ?= locked
SETUP = "$(PYTHON)" tools/setup/bootstrap.py --venv "$(VENV)" --versions "$(VERSIONS)"
# what to test, and more options for pytest: make test TESTS=tests/readers ARGS=-x
TESTS ?= tests
ARGS ?=
# how many processes share the tests: most of the whole suite is waiting for batch systems; a few tests need no sharing
WORKERS ?= $(if $(filter tests,$(TESTS)),6,0)
# after how long a test is called stuck: it says where it is, and goes on. A process that dies ends all: pytest-xdist, which
# would start another, waits for ever when the last test of a file died
STUCK_S ?= 900

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-newest test-oldest test-pythons soak check bench diagnosis pictures docs lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r target text; do printf 'make %-12s %s\n' "$$target" "$$text"; done

setup: ## make the environment with nsw in it
	@$(SETUP)

demo: ## answer a recipe's question from recorded reports, with no GPU and no cluster
	@$(SETUP)
	@"$(BIN)/nsw" run recipes/alexnet_scaling.yaml --site demo

test: ## run every test
	@$(SETUP) --dev
	@tests/tools/get-nsys >/dev/null || echo "Tests that need nsys will be skipped."
	@"$(BIN)/python" -m pytest -n $(WORKERS) --dist loadfile --max-worker-restart 0 -o faulthandler_timeout=$(STUCK_S) \
	  $(ARGS) $(TESTS)

test-newest: ## run every test with the newest libraries that pyproject.toml allows
	@$(MAKE) test VENV="$(VENV)-newest" VERSIONS=newest

test-oldest: ## run every test with the oldest libraries that pyproject.toml allows (they may need Python 3.11)
	@$(MAKE) test VENV="$(VENV)-oldest" VERSIONS=oldest

test-pythons: ## test readers, tables, analysis and campaigns with the other Pythons of this machine (make test: this one)
	@"$(PYTHON)" tests/tools/pythons.py

soak: ## kill nsw, sbatch and Slurm hundreds of times, and break every connection (an hour; NSW_SOAK_SEED, NSW_SOAK_KILLS; docs/crash-proof.md)
	@$(SETUP) --dev
	@"$(BIN)/python" -m pytest $(ARGS) -m soak $(TESTS)

check: ## lint, formatting and types
	@$(SETUP) --dev
	@"$(BIN)/ruff" check .
	@"$(BIN)/ruff" format --check .
	@"$(BIN)/mypy"

bench: ## run the benchmarks
	@$(SETUP) --dev
	@set -e; for bench in bench/*.py; do [ -e "$$bench" ] || { echo "There are no benchmarks yet."; break; }; \
	  echo "== $$bench"; "$(BIN)/python" "$$bench"; done

diagnosis: ## score what nsw says first of recorded programs with known illnesses (bench/diagnosis; a minute)
	@$(SETUP) --dev
	@"$(BIN)/python" bench/diagnosis/score.py $(ARGS)

pictures: ## draw README's picture, the page of the demo (needs Chromium)
	@$(SETUP)
	@"$(BIN)/python" tools/pictures.py

docs: ## build the documentation as a site in build/site, with a gallery; broken links fail
	@$(SETUP) --dev
	@"$(BIN)/python" tools/gallery.py build/gallery
	@PYTHONPATH=tools/setup "$(PYTHON)" tools/docs_site.py

lock: ## lock the newest versions of all libraries with their hashes, for make and CI
	@"$(PYTHON)" tools/setup/lock.py

clean: ## remove the environments, caches and builds; campaigns stay
	rm -rf .venv .venv-* .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find nsw tests tools recipes bench -name __pycache__ -type d -prune -exec rm -rf {} +
