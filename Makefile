# make demo and make test are all most people need. Both create .venv first.
PYTHON ?= python3
BIN := .venv/bin

# Keep compiled Python files even where the environment says not to: otherwise each worker and each process that a test
# starts compiles the modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo ladder test test-slow tests lint coverage boundscheck torture bench bench-quick wheel clean

demo: .venv/installed
	$(BIN)/dragoman demo

# Train and measure every kind of model on the synthetic corpus. Takes about 40 minutes; can be stopped and resumed.
ladder: .venv/installed
	$(BIN)/dragoman ladder

# Two processes with one thread each: more threads than cores would wait for each other.
test: .venv/dev
	$(MAKE) -j 2 lint tests

tests: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not slow"

# Tests that start Spark, which needs Java 17, or many processes.
test-slow: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m slow

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The tests with every array access of the compiled kernels checked.
boundscheck: .venv/dev
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=build/boundscheck $(BIN)/pytest

# Campaigns that try to break everything: crashes, power failures, damaged files and models, hostile clients.
MINUTES ?= 480
torture: .venv/dev
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m torture --minutes $(MINUTES)

# Coverage of src by the tests.
coverage: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile --cov=dragoman --cov-report=term:skip-covered

# Speed of n-grams, alignment, the service, language models and translators. DATA: Multi30k, tokenised.
bench-quick: .venv/dev
	$(BIN)/python benchmarks/quick.py --data $(DATA)

bench: .venv/dev
	$(BIN)/pip install -q -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/ngram.py

# Build a wheel and try it in an empty environment.
wheel: .venv/dev
	rm -rf dist build
	$(BIN)/pip wheel -q --no-deps -w dist .
	$(PYTHON) -m venv build/wheel-venv
	build/wheel-venv/bin/pip install -q -c constraints.txt dist/*.whl
	cd build && wheel-venv/bin/dragoman demo
	@echo "dist/ holds a wheel that installs and runs"

clean:
	rm -rf .venv build dist

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install -q -c constraints.txt -e '.[all]'
	touch $@

.venv/dev: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@ .venv/installed
