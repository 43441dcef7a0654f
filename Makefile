# The README's two commands are `make demo` and `make test`; each sets up all that it needs.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev

.PHONY: demo test format clean

demo: $(INSTALLED)
	$(BIN)/mlconsensus demo

test: $(INSTALLED_DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest --cov --cov-report=term

format: $(INSTALLED_DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage mlconsensus-demo*

# Made anew whenever the dependencies change; what tests and tools need comes on top of what users need.
$(INSTALLED): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@
