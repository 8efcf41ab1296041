# `make` lists the targets. Each one sets up what it needs, once: the virtual environment, the packages
# (at the versions of constraints.txt) and, for Spark, Java. Stamps inside the environment remember what
# was done; a change of pyproject.toml or constraints.txt does it again.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
NEEDS := pyproject.toml constraints.txt $(VENV)/.made

# Handed on to the demo, pytest or the benchmark: make test ARGS="tests/unit -k parse"
ARGS ?=

# Two processes for two cores: most of the time of Spark's tests is Java's and the workers'.
SPARKS := tests/spark tests/kafka
OTHERS := $(addprefix --ignore=,$(SPARKS))

.PHONY: help demo test test-all quick check bench scoreboard format constraints clean distclean java kafka postgres

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: java $(VENV)/.demo ## serve car ads and saved searches over HTTP, matched on Spark
	@export JAVA_HOME="$$(tools/java-home 2>/dev/null)"; \
	echo "==> demo: a service, its Spark on the Java in $$JAVA_HOME"; \
	$(BIN)/python -m tidings.service.demo $(ARGS)

test: java kafka postgres $(VENV)/.dev $(VENV)/spark-classes.jsa ## run all tests
	@export JAVA_HOME="$$(tools/java-home 2>/dev/null)" HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci}; \
	if [ -n "$(if $(strip $(ARGS)),some)" ]; then \
		echo "==> tests: pytest, Spark on the Java in $$JAVA_HOME"; \
		$(BIN)/python -m pytest $(ARGS); \
	else \
		echo "==> tests: those of Spark, on the Java in $$JAVA_HOME, and beside them all others (told when they are done)"; \
		$(BIN)/python -m pytest $(OTHERS) > $(VENV)/others.log 2>&1 & others=$$!; \
		trap 'kill $$others 2>/dev/null || true' EXIT; \
		first=0; $(BIN)/python -m pytest $(SPARKS) || first=$$?; \
		second=0; wait $$others || second=$$?; \
		echo "==> tests: all others"; cat $(VENV)/others.log; \
		exit $$((first + second)); \
	fi

quick: $(VENV)/.dev ## run the unit tests and laws of what changed since main, with few examples
	@chosen=$$(tools/changed-tests); \
	if [ -z "$$chosen" ]; then echo "==> quick: nothing changed that has unit tests or laws"; exit; fi; \
	echo "==> quick: $$(wc -l <<< "$$chosen") files of tests"; \
	HYPOTHESIS_PROFILE=quick $(BIN)/python -m pytest -q $(ARGS) $$chosen

test-all: java kafka postgres $(VENV)/.dev $(VENV)/spark-classes.jsa ## run all tests with exhaustive sweeps and many examples (hours)
	@export JAVA_HOME="$$(tools/java-home 2>/dev/null)" HYPOTHESIS_PROFILE=thorough; \
	echo "==> tests: all of them, the sweeps too"; $(BIN)/python -m pytest -m "" $(ARGS)

check: $(VENV)/.dev ## format, lint, types and layers; changes nothing
	@echo "==> ruff format"; $(BIN)/ruff format --check .
	@echo "==> ruff check"; $(BIN)/ruff check .
	@echo "==> mypy --strict"; $(BIN)/mypy --strict src
	@echo "==> import-linter"; $(BIN)/lint-imports

bench: $(VENV)/.bench ## run the benchmarks
	@echo "==> benchmark: parse"; $(BIN)/python -m benchmarks.parse $(ARGS)
	@echo "==> benchmark: match"; $(BIN)/python -m benchmarks.match $(ARGS)
	@echo "==> benchmark: living"; $(BIN)/python -m benchmarks.living $(ARGS)

scoreboard: $(VENV)/.bench ## measure every matcher and peer on every workload (hours); ARGS="--resume"
	@$(BIN)/python -m benchmarks.scoreboard $(ARGS)

format: $(VENV)/.dev ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

constraints: pyproject.toml ## take the newest versions into constraints.txt
	tools/make-constraints

clean: ## remove caches and output
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist out spark-warehouse
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## remove the virtual environment and the Kafka jars too
	rm -rf $(VENV) .kafka

# --- set-up ---------------------------------------------------------------------------------------

# Set for what builds packages as well (PySpark comes as source), so that build tools are pinned too; pip from
# 25.3 on reads the second name for that, older ones the first.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)

define install
	@echo "==> installing tidings[$(EXTRAS)] into $(VENV) (the first time takes a few minutes; PySpark is large)"
	@$(BIN)/python -m pip install --disable-pip-version-check -e '.[$(EXTRAS)]'
	@touch $@
endef

# Before the packages, so that who must install Java by hand hears of it at once.
java:
	@tools/java-home >/dev/null

# A machine that cannot fetch them skips the Kafka tests; the gate must not.
kafka:
	@tools/kafka-jars || if [ "$${CI:-}" = true ]; then exit 1; else echo "==> the Kafka tests will be skipped"; fi

# Likewise the store's tests on PostgreSQL.
postgres:
	@tools/postgres >/dev/null || if [ "$${CI:-}" = true ]; then exit 1; else echo "==> the tests of PostgreSQL will be skipped"; fi

$(VENV)/.made: tools/make-venv
	@tools/make-venv $(VENV)
	@touch $@

$(VENV)/.demo: EXTRAS := spark,service
$(VENV)/.dev: EXTRAS := spark,service,kafka,rdf,dev
$(VENV)/.bench: EXTRAS := bench
$(VENV)/.demo $(VENV)/.dev $(VENV)/.bench: $(NEEDS)
	$(install)

# Every Java that the tests start maps Spark's classes from it. They run without it too, but longer: a Java that
# cannot write one is no failure.
$(VENV)/spark-classes.jsa: $(VENV)/.dev
	@echo "==> tests: an archive of Spark's classes, once (a minute)"
	@export JAVA_HOME="$$(tools/java-home 2>/dev/null)"; $(BIN)/python -m tests.spark.class_archive && touch $@ || true
