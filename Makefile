# The commands that people type. nox runs Python in the environments of noxfile.py, CMake builds and tests
# the C core by the presets of CMakePresets.json; both are in .venv. CONTRIBUTING.md has more about them.
PYTHON ?= python3
VENV ?= .venv
PREFIX ?= /usr/local
T ?= 60
NOX = @$(VENV)/bin/nox
CMAKE = @$(VENV)/bin/cmake
RUN = $(VENV)/bin/python
export PYTHONPATH = $(CURDIR)/src
.PHONY: build dist docs

bench bench-check build coverage dist docs lint neighbours oracle test wheels: $(VENV)/.made
	$(NOX) --session $@
check-% engine-%: $(VENV)/.made  # what else $(VENV)/bin/nox --list names
	$(NOX) --session $@
check-ci: lint  # what .ci/run runs after make test, two at a time; then it runs slow
	$(NOX) --tags ci --parallel 2
check-nightly: build  # what takes longer than CI may
	$(NOX) --tags nightly --parallel 2
	NIGHT=1 $(VENV)/bin/nox --session check-sanitized check-threads --parallel 2
	$(MAKE) check-debian slow
	$(RUN) -m pytest -q -m 'hypothesis and not slow' --hypothesis-profile=night --numprocesses=auto --maxprocesses=4
slow: build  # the slow tests of Python, in TESTS if it is given
	$(RUN) -m pytest -q -m slow --numprocesses=auto --maxprocesses=4 --dist=worksteal $(TESTS)
check-all: check-ci check-nightly
check-debian: dist  # check-release on another Debian, with its Python and compiler; as root
	packaging/on_debian.sh $(or $(SUITE),trixie) python3 python3 packaging/check_release.py dist
engines: build  # Beam, Ray, Spark and Sail
	$(NOX) --tags engines
demo: build
	@$(RUN) -m tfwire demo
	@printf '\nNext, look into a file: %s\n' '$(VENV)/bin/tfwire head tfwire-demo/test.tfrecord'
lib: $(VENV)/.made  # the C library by itself, in build/lib
	$(CMAKE) --preset lib
	$(CMAKE) --build build/lib
install: lib
	$(CMAKE) --install build/lib --prefix $(PREFIX)
man: build
	$(RUN) packaging/make_man.py build/tfwire.1
bench-growth: build
	OPENBLAS_NUM_THREADS=1 $(RUN) benchmarks/growth.py  # numpy's own threads would count
bench-scale: build  # on idle cores
	OPENBLAS_NUM_THREADS=1 $(RUN) benchmarks/scale.py
bench-record:
	$(PYTHON) benchmarks/counts/counts.py --record
fuzz: $(VENV)/.made  # libFuzzer for T seconds or N executions of each of FUZZ_TARGETS
	$(CMAKE) --preset fuzz
	$(CMAKE) --build build/fuzz
	T=$(T) $(RUN) tests/fuzz/search.py
differential: build  # tfwire beside protobuf
	$(RUN) tests/fuzz/differential.py --seconds=$(T) --seed=$(or $(SEED),1) build/fuzz/log
campaign: build  # hostile input, 100,000 cases a test
	mkdir -p build/fuzz/log
	$(RUN) -m pytest -q -m 'not slow' --hypothesis-profile=campaign --hypothesis-show-statistics \
	    tests/api/test_hostile.py tests/cli/test_cli_hostile.py > build/fuzz/log/campaign.txt
fuzz-report:
	$(PYTHON) tests/fuzz/report.py build/fuzz/log docs/internals/reliability.md
gen:
	$(PYTHON) csrc/crc32c/gen_tables.py > csrc/crc32c/crc32c_tables.h
clean:
	rm -rf build dist .venv .venv-* src/tfwire/_native*.so src/*.egg-info .*_cache .hypothesis
$(VENV)/.made:
	@echo 'Making $(VENV) with nox and CMake'
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'nox>=2026.10' 'cmake>=3.29' ninja
	@touch $@
