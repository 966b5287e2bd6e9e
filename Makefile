# make demo, make test: all that a newcomer needs. Everything is made in .venv on first use.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
CC ?= cc

READY = $(VENV)/.ready
NATIVE = build/.native

.PHONY: build test demo clean

build: $(NATIVE)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	    'setuptools>=77' wheel 'cffi>=1.17'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation \
	    --editable '.[test,demo]'
	touch $@

# In place, so that the sources, the tests and the editable install see the same module.
$(NATIVE): $(READY) setup.py $(wildcard csrc/*)
	$(BIN)/python setup.py --quiet build_ext --inplace
	mkdir -p build && touch $@

test: $(NATIVE)
	$(BIN)/python -m pytest -q -m 'not slow'

demo: $(NATIVE)
	$(BIN)/python -m tfwire demo

clean:
	rm -rf build .venv src/tfwire/_native*.so src/*.egg-info .pytest_cache .hypothesis
