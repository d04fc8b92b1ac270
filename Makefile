# `make test`, `demo`, `bench` and `zipapp` need python3 (3.10 or newer) with venv, and nothing else; all they install
# lies in .venv/.

PYTHON ?= python3
PYTEST_ARGS ?=
# A file of tests stays with one process, for its tests share what is slow to make.
PYTEST_PARALLEL ?= -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check

SHELL := /bin/sh
.SHELLFLAGS := -eu -c
.NOTPARALLEL:
.PHONY: help test lint types tests demo bench zipapp clean environment-demo environment-dev

help:
	@echo 'make test    the linter, the type checker and all tests  (PYTEST_ARGS="-k words" chooses)'
	@echo 'make demo    check, apply, verify and revert a patch set on a real distribution'
	@echo 'make zipapp  dist/patchkit.pyz: one file, run by any Python from 3.10 on'
	@echo 'make bench   measure patchkit beside git, patch and others: docs/measurements/speed.md'
	@echo 'make clean   remove what the others made'

# The tests come last, so that their count is the last line.
test: lint types tests

lint: environment-dev
	@$(VENV)/bin/python -m ruff check .
	@$(VENV)/bin/python -m ruff format --check .

types: environment-dev
	@$(VENV)/bin/python -m mypy --strict patchkit

tests: environment-dev
	@for need in git:git patch:patch diff:diffutils; do \
	    command -v "$${need%:*}" >/dev/null || \
	        echo "note: there is no $${need%:*} here; tests that compare with it are skipped (apt-get install $${need#*:})"; \
	done
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	    echo 'note: there is no Chromium here; tests of the HTML report in a browser are skipped (apt-get install chromium)'
	@$(VENV)/bin/python -m pytest $(PYTEST_PARALLEL) $(PYTEST_ARGS)

demo: environment-demo
	@$(VENV)/bin/python tests/demo.py

zipapp: environment-demo
	@$(VENV)/bin/python tools/build_zipapp.py dist/patchkit.pyz
	@echo dist/patchkit.pyz

bench: environment-demo
	@$(VENV)/bin/python tests/bench.py

clean:
	rm -rf $(VENV) .demo dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# An environment is kept while the place, the Python and pyproject.toml that it was made from are the same; the one for
# the tests does for the demo as well. A file that is written last says what it was made from.
environment-demo: requirement := .
environment-demo: fits := demo dev
environment-dev: requirement := .[dev]
environment-dev: fits := dev

environment-demo environment-dev:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo 'Python 3.10 or newer is needed: make PYTHON=python3.12 ...' >&2; exit 1; }; \
	from="$(CURDIR) $$($(PYTHON) -V) $$(cksum < pyproject.toml)"; \
	for kind in $(fits); do \
	    if [ "$$(cat $(VENV)/made-from-$$kind 2>/dev/null)" = "$$from" ]; then exit 0; fi; \
	done; \
	echo 'setting up $(VENV) ...'; \
	rm -rf $(VENV); \
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo 'python3-venv is needed: apt-get install python3-venv' >&2; exit 1; }; \
	$(PIP) install --quiet --editable '$(requirement)'; \
	echo "$$from" > $(VENV)/made-from-$(@:environment-%=%)
