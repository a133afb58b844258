# make demo and make test are all one needs to know; both make the environment first.

PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$candidate && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.current
# More arguments for pytest: make test ARGS="-k log -x"
ARGS ?=
# What the producers of the demo wait for: all, or 1 to see what that loses.
ACKS ?= all
# How long the long tests run, in minutes.
MINUTES ?= 60

export PATH := $(CURDIR)/$(BIN):$(PATH)
# Bytecode goes beside the tree, not into it; a machine that forbids it would pay for every start of a node.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/bytecode
unexport PYTHONDONTWRITEBYTECODE
# make setup puts a Java into the environment: the one it finds, or one by pip.
MACHINE_JAVA_HOME := $(JAVA_HOME)
export JAVA_HOME := $(CURDIR)/$(VENV)
# Spark's workers run under the python3 of the PATH unless they are told.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format docs bench soak interop dist dist-check lock clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## build .venv from the lock; does nothing when it is current

$(STAMP): requirements/dev.txt requirements/java.txt pyproject.toml tools/set_up.py
	@test -n "$(PYTHON)" || { echo "make setup: Tidelog needs Python 3.11 or newer; name one with make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) tools/set_up.py $(VENV) --java-home "$(MACHINE_JAVA_HOME)"
	@touch $@

demo: setup ## three nodes, producers, a lake, a leader that dies: was anything lost? (ACKS=1: something is)
	@$(BIN)/python -m examples.demo --acks $(ACKS) $(ARGS)

test: setup ## the tests
	@$(BIN)/python tools/run_tests.py $(ARGS)

lint: setup ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup ## let ruff write the code the one way
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: setup ## make the pages that are made from the code
	@$(BIN)/python tools/generate_settings_page.py
	@$(BIN)/python tools/generate_replication_page.py
	@$(BIN)/python tools/generate_protocol_page.py

bench: setup ## measure, side by side with Apache Kafka
	@$(BIN)/python tools/fetch_kafka.py
	@$(BIN)/python -m benchmarks $(ARGS)

soak: setup ## the long tests: MINUTES=60
	@$(BIN)/python tools/fetch_kafka.py
	@TIDELOG_SOAK_MINUTES=$(MINUTES) $(BIN)/python -m pytest tests/soak $(ARGS)

interop: setup ## the tests with Apache Kafka's own programs
	@$(BIN)/python tools/fetch_kafka.py
	@$(BIN)/python -m pytest tests/interop $(ARGS)

dist: setup ## build the wheel
	@rm -rf dist
	@$(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null
	@ls dist/*.whl

dist-check: dist ## install the wheel alone into an empty environment and run a node from it
	@$(BIN)/python tools/check_wheel.py dist/*.whl

lock: ## pin the newest versions that fit pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra spark --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --upgrade --quiet --output-file requirements/dev.txt
	uv pip compile requirements/java.in --universal --python-version 3.11 \
		--generate-hashes --no-header --no-emit-index-url --upgrade --quiet --output-file requirements/java.txt

clean: ## remove everything make has made
	rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info spark-warehouse
	find src tests tools examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
