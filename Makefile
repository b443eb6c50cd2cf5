# Every way in. Each target sets up what it needs; only Python 3.11 or newer has to be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEMANTIC := tests/test_cases.py tests/semantics tests/crash
RECORD := $(CURDIR)/$(VENV)/cache
# The tests start hundreds of Python processes: each would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
# More processes than cores: much of a test is waiting, for the disk and for processes that start.
WORKERS ?= 3
# Tests sync small files thousands of times. Where memory has room for them, nobody waits for a disk; the
# folder goes with the run.
ROOM := $(shell grep ' /dev/shm ' /proc/mounts 2>/dev/null | grep -qv noexec \
  && [ "$$(df -Pk /dev/shm | awk 'NR == 2 { print $$4 }')" -gt 6000000 ] && echo /dev/shm)
ifdef ROOM
IN_MEMORY = export TMPDIR=$$(mktemp -d $(ROOM)/hw-XXXXXX); chmod 755 "$$TMPDIR"; \
  trap 'rm -rf "$$TMPDIR"' EXIT; trap 'exit 130' INT TERM;
endif
PYTEST := $(BIN)/pytest -q -m "not large" -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
  $(if $(ROOM),--basetemp=$$TMPDIR/t)
WITH_CLASSES = HEADWATER_CACHE=$(RECORD) HEADWATER_AOT_CACHE=$$(ls $(RECORD)/aot/*.aot >/dev/null 2>&1 && echo true || echo false)

.PHONY: help demo quick test test-hosted test-here test-spark test-all check format bench install clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/installed ## see Headwater at work
	@$(BIN)/headwater demo

quick: $(VENV)/ready ## the tests that need no Spark, server or process (under a minute)
	$(BIN)/pytest -q -m "not large" --quick -n 2

test: $(VENV)/classes ## run the tests (a quarter of an hour on two cores)
	@$(IN_MEMORY) $(WITH_CLASSES) $(PYTEST)

test-hosted: $(VENV)/classes ## the same with every query in a factory (TESTS=path for some)
	@$(IN_MEMORY) $(WITH_CLASSES) HEADWATER_FACTORIES=2 $(PYTEST) $(TESTS)

test-here: $(VENV)/classes ## the same with every query in the program's own process
	@$(IN_MEMORY) $(WITH_CLASSES) HEADWATER_FACTORIES=0 $(PYTEST) $(TESTS)

test-spark: $(VENV)/classes ## what queries say, when each of their parts is a Spark SQL job
	@$(IN_MEMORY) $(WITH_CLASSES) HEADWATER_SPARK_SQL_ONLY=true $(PYTEST) $(or $(TESTS),$(SEMANTIC))

test-all: $(VENV)/classes ## run the tests with the large numbers too
	$(WITH_CLASSES) $(BIN)/pytest -q --timeout 7200

check: $(VENV)/ready ## linters, types, layers and tidiness (under a minute)
	$(BIN)/ruff check headwater examples tests benchmarks
	$(BIN)/ruff format --check headwater examples tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/test_tidy.py

format: $(VENV)/ready ## put the code in shape
	$(BIN)/ruff check --fix headwater examples tests benchmarks
	$(BIN)/ruff format headwater examples tests benchmarks

bench: $(VENV)/bench ## run the benchmarks (BENCH=name for one, QUICK=1 for small sizes)
	$(BIN)/headwater bench $(BENCH) $(if $(QUICK),--quick)

install: $(VENV)/ready ## make .venv with everything in it

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Headwater needs Python 3.11 or newer; set PYTHON=…"; exit 1; }
	@echo "setting up $(VENV) (once; Spark and a Java come along, about 500 MB to load) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/ready: $(VENV)/installed
	@echo "adding what the tests need (once) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(VENV)/bench: $(VENV)/ready
	@echo "adding what the benchmarks draw with (once) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

$(VENV)/classes: $(VENV)/ready
	@echo "recording the classes of Spark, for the tests' Java processes (once) …"
	@HEADWATER_CACHE=$(RECORD) $(BIN)/python -m tests.harness.classes
	@touch $@

clean: ## remove what the targets made
	rm -rf $(VENV) build dist reports .pytest_cache .mypy_cache .ruff_cache .hypothesis
