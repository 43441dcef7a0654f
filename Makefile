# The README's two commands are `make demo` and `make test`; each sets up all that it needs.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
PEERS := benchmarks/.peers

LOWEST := .lowest

.PHONY: demo test test-lowest test-pythons mutants panels audit format pictures clean bench bench-peers fuzz

demo: $(INSTALLED)
	$(BIN)/mlconsensus demo

# With COVERAGE="--cov --cov-report=term", as before a change lands, it takes two fifths longer and wants 95 %.
test: $(INSTALLED_DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/check_names.py
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest --numprocesses=auto --dist=loadfile $(COVERAGE)

# The tests with the lowest version of every dependency that pyproject.toml declares, in an environment of its own.
test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest --numprocesses=auto --dist=loadfile

# The tests with every interpreter from 3.11 on that is there, newest dependencies: make test-pythons PYTHONS="python3.12 …"
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
test-pythons:
	for python in $(PYTHONS); do \
		$$python --version || continue; \
		$$python -m venv --clear .pythons/$$python && .pythons/$$python/bin/python -m pip install --quiet --editable '.[dev]' \
			&& .pythons/$$python/bin/python -m pytest --numprocesses=auto --dist=loadfile || exit 1; \
	done

# How much of the mathematics is held by tests: a sample of mutants, an hour or more. Goes on where it ended.
SAMPLE ?= 150
mutants: $(INSTALLED_DEV)
	nice -n 19 $(BIN)/python tools/mutants.py --sample $(SAMPLE)

# Ten thousand random panels through every method, half an hour.
panels: $(INSTALLED_DEV)
	$(BIN)/python fuzz/random_panels.py 10000

# Known holes in what is installed, for a scheduled job: asks the advisory database, so it needs a network.
audit: $(INSTALLED_DEV)
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --skip-editable

format: $(INSTALLED_DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Some sections only: make bench SECTIONS="small large"; going on with an interrupted run: make bench SECTIONS=--keep
bench: $(INSTALLED_DEV)
	$(BIN)/python benchmarks/run.py $(SECTIONS)

# What the suite compares with, each in an environment of its own; no dependency of the package.
bench-peers: $(PEERS)/crowdkit/.installed $(PEERS)/cleanlab/.installed $(PEERS)/snorkel/.installed

# Breaks files of every format for some time: make fuzz SECONDS=3600 SEED=7
fuzz: $(INSTALLED_DEV)
	$(BIN)/python fuzz/fuzz.py --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0)

# The docs' pictures of the report; needs Chromium.
pictures: $(INSTALLED_DEV)
	$(BIN)/python docs/images/make.py

clean:
	rm -rf $(VENV) $(LOWEST) .pythons .mutants.jsonl benchmarks/.data $(PEERS) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage mlconsensus-demo*

# Made again when the dependencies change: first those of users, then those of tests and tools.
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(LOWEST)/.installed: pyproject.toml tools/lowest.py
	$(PYTHON) -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python tools/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --constraint $(LOWEST)/constraints.txt --editable '.[dev]'
	touch $@

$(PEERS)/crowdkit/.installed: PACKAGE := crowd-kit==1.4.2
$(PEERS)/cleanlab/.installed: PACKAGE := cleanlab==2.9.0
$(PEERS)/snorkel/.installed: PACKAGE := snorkel==0.10.0
$(PEERS)/%/.installed:
	$(PYTHON) -m venv $(PEERS)/$*
	$(PEERS)/$*/bin/python -m pip install --quiet $(PACKAGE)
	touch $@
