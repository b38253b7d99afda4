# `make demo` and `make test` are each enough on a bare checkout with Python >= 3.11 and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
JOBS ?= 2

.PHONY: demo test checks lint types unit coverage fuzz bench docs prebuilt wheel format clean

demo: $(VENV)/.installed-demo
	$(BIN)/tamiz demo

# The checks run beside the tests, which leave a core idle now and then.
test: $(VENV)/.installed-test
	$(MAKE) --no-print-directory -j 2 checks unit

checks: lint types docs

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

unit: $(VENV)/.installed-test
	# One thread a worker: two workers fill two cores.
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) -q

# The same tests with the share of lines that they run; counting them takes longer than many tests do.
coverage: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(JOBS) --cov --cov-report=term -q

# 10,000 fits, 1,000 model files, 500 tables of each format, all bad arguments; SEED=1 tries other cases.
fuzz: $(VENV)/.installed-test
	OMP_NUM_THREADS=1 TAMIZ_FUZZ=full TAMIZ_FUZZ_SEED=$(or $(SEED),0) $(BIN)/pytest -n $(JOBS) tests/fuzz -q --durations=20

# Into site/, warnings as errors. The variable silences an advertisement for the next version of mkdocs.
docs: $(VENV)/.installed-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/run.py

# Code for x86-64-v3 or arm64, for the versions of Python and numba in .venv, which the wheel then brings along.
MACHINE := $(shell uname -m)
prebuilt: $(VENV)/.installed-demo
	rm -rf build/prebuilt && mkdir -p src/tamiz/_prebuilt/$(MACHINE)
	NUMBA_CPU_NAME=$(if $(filter aarch64,$(MACHINE)),generic,x86-64-v3) NUMBA_CPU_FEATURES= \
	  NUMBA_CACHE_DIR=build/prebuilt $(BIN)/tamiz warm-up
	cp build/prebuilt/*/*.nb? src/tamiz/_prebuilt/$(MACHINE)

wheel: prebuilt
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site src/tamiz/_prebuilt

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The demonstration needs no torch: scikit-learn, numba and the command line are enough.
$(VENV)/.installed-demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[cli]"
	touch $@

# torch first and by its exact version: a range would fetch gigabytes of accelerator libraries.
$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) torch==2.13.0
	$(PIP) -e ".[test]"
	touch $@ $(VENV)/.installed-demo
