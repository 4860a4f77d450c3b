# Every target does its own set-up: Python 3.11 or later, git, make and a package index are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint requirements.lock

.PHONY: demo test test-diarization chaos lint bench bench-load stack stack-down lock clean

# The command alone: what a user installs.
$(VENV)/.installed: pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	@touch $@

# With the tools that tests, lint and bench need.
$(VENV)/.installed-dev: $(VENV)/.installed
	$(INSTALL) --editable '.[dev]'
	@touch $@

# With what the distributed line needs on one machine: Airflow, and the Java that runs Kafka.
$(VENV)/.installed-stack: $(VENV)/.installed-dev
	$(INSTALL) --editable '.[dev,stack]'
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/python -m demo.show

test: $(VENV)/.installed-stack
	$(BIN)/python -m pytest

# 6 GB of torch: not part of `make test`.
test-diarization: $(VENV)/.installed-dev
	$(INSTALL) --editable '.[dev,diarization]'
	$(BIN)/python -m pytest -m diarization

# Kills, stops and restarts of a whole line; ARGS='--kills 200 --minutes 30 --seed 7', by default 60 in ten minutes.
chaos: $(VENV)/.installed-stack
	@$(BIN)/python -m tests.chaos $(ARGS)

lint: $(VENV)/.installed-stack
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-dev
	$(BIN)/python -m bench.line $(ARGS)

# The line over Kafka and PostgreSQL without the engine: four minutes.
bench-load: $(VENV)/.installed-stack
	$(BIN)/python -m bench.load $(ARGS)

# PostgreSQL, Kafka, Airflow and the consumers on 127.0.0.1, without Docker; PARTS names some of them.
stack: $(VENV)/.installed-stack
	@$(BIN)/python -m deploy.local up $(PARTS)

stack-down: $(VENV)/.installed-stack
	@$(BIN)/python -m deploy.local down $(PARTS)

lock: $(VENV)/.installed-dev
	$(INSTALL) uv
	$(BIN)/uv pip compile --quiet --universal --all-extras --python-version 3.11 --no-emit-index-url \
		--no-annotate --no-header --upgrade pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV)
