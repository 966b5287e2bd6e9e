"""Who may include or import whom, and what the sources may contain."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CSRC = ROOT / "csrc"
PACKAGE = ROOT / "src" / "tfwire"

RECORDS_TOWER = {
    "copy",
    "correct",
    "cpu",
    "emit",
    "frame",
    "index",
    "objects",
    "reader",
    "reader_damage",
    "reader_window",
    "resync",
    "tally",
} | {path.stem for path in CSRC.glob("crc32c*")}
EXAMPLES_TOWER = {path.stem for path in CSRC.glob("*.c")} - RECORDS_TOWER - {"error"}
SHARED_HEADERS = {"tfwire.h", "common.h", "cpu.h"}
KERNEL_TEMPLATES = {"crc32c_fold.h", "crc32c_words.h"}


def includes(path):
    return re.findall(r'^#include "([^"]+)"', path.read_text(encoding="ascii"), re.MULTILINE)


def imports(path):
    """The tfwire modules that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tfwire"):
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            found.update(a.name for a in node.names if a.name.startswith("tfwire"))
    return found


def test_c_sources_are_ascii():
    """And no line is longer than 100 columns."""
    for path in [*CSRC.glob("*.[ch]"), *(ROOT / "tests" / "c").glob("*.[ch]")]:
        for number, line in enumerate(path.read_text(encoding="ascii").splitlines(), 1):
            assert len(line) <= 100, f"{path.name}:{number}"


@pytest.mark.parametrize("path", sorted(CSRC.glob("*.c")), ids=lambda path: path.name)
def test_towers_do_not_include_each_other(path):
    headers = {Path(name).stem for name in includes(path) if name not in SHARED_HEADERS}
    if path.stem in RECORDS_TOWER:
        assert set() == headers & (EXAMPLES_TOWER | {"wire"})
    elif path.stem in EXAMPLES_TOWER:
        assert set() == headers & RECORDS_TOWER


def test_kernel_templates_are_for_kernels():
    for path in CSRC.glob("*.[ch]"):
        if KERNEL_TEMPLATES & set(includes(path)):
            assert re.search(r"_(x86|arm64)\.c$", path.name), path.name


@pytest.mark.parametrize("path", sorted(CSRC.glob("*.[ch]")), ids=lambda path: path.name)
def test_core_keeps_its_manners(path):
    """It never prints, aborts, reads the environment or knows of Python; memory only through the
    allocator of error.c; intrinsics only where the file name says so; no system calls but those
    that read files."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="ascii"), flags=re.DOTALL)
    assert not re.search(r"\b(printf|puts|abort|exit|getenv|assert|longjmp)\s*\(", text)
    assert "Python.h" not in text
    if path.name != "error.c":
        assert not re.search(r"\b(malloc|calloc|realloc|free)\s*\(", text)
    if not re.search(r"_(x86|arm64)\.[ch]$|^cpu\.c$", path.name):
        assert not re.search(r"immintrin|nmmintrin|arm_neon|arm_acle|\b_mm\d*_", text)
    if path.name not in ("index.c", "reader_window.c"):
        assert not re.search(r"\b(open|read|pread|mmap|fstat)\s*\(", text)


def test_only_core_imports_the_native_module():
    users = {
        path.name
        for path in PACKAGE.rglob("*.py")
        if any(name.startswith("tfwire._native") for name in imports(path))
    }
    assert {"_core.py"} == users


def test_packages_of_records_know_nothing_of_examples():
    """The towers, in Python: what records are made of imports nothing of Examples and of parsing,
    nor the other way round; Python values become records where a writer is handed them."""
    towers = {"_records": {"_examples", "_parsing"}, "_examples": {"_records", "_parsing"}}
    for tower, others in towers.items():
        for path in (PACKAGE / tower).glob("*.py"):
            found = {name.split(".")[1] for name in imports(path)}
            assert set() == found & others, path.name


def test_neighbours_are_not_imported_by_the_core():
    """Optional packages are imported inside functions only; protobuf in the modules made of it,
    which are imported only where messages are used; a neighbour in the module of its name."""
    made_of_protobuf = {"_examples/protobuf.py", "train.py", "json_format.py", "schema_files.py"}
    optional = {"tensorflow", "torch", "grain", "pyarrow", "fsspec", "PIL", "google", "jax", "isal"}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import):
                roots = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                roots = {(node.module or "").split(".")[0]}
            else:
                continue
            allowed = {"google"} if name in made_of_protobuf else {Path(name).stem}
            assert set() == roots & optional - allowed, name


def test_public_names_are_importable_and_typed():
    """__init__.py, its stub and the modules agree."""
    tfwire = import_module("tfwire")
    stub = (PACKAGE / "__init__.pyi").read_text(encoding="utf-8")
    stubbed = set(re.findall(r"\bas (\w+)", stub))
    assert set(tfwire.__all__) == stubbed
    for name in tfwire.__all__:
        assert getattr(tfwire, name).__doc__, name


def test_versions_agree():
    header = (CSRC / "tfwire.h").read_text(encoding="ascii")
    version = import_module("tfwire").__version__
    assert f'#define TFW_VERSION_STRING "{version}"' in header


def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        import_module("tfwire").nothing  # noqa: B018


def test_the_tests_that_reliability_names_exist():
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    goals = page[page.index("## Goals and their tests") :]
    found = set()
    for path in [*(ROOT / "tests").glob("*.py"), *(ROOT / "tests" / "c").glob("*.c")]:
        text = path.read_text(encoding="utf-8")
        pairs = re.findall(r"^def (test_\w+)|RUN\((\w+)\)", text, re.MULTILINE)
        found |= {path.name, *map("".join, pairs)}
    named = set(re.findall(r"`((?:test_)?\w+_\w+(?:\.\w+)?)`", goals)) - {"read_records"}
    assert len(named) > 50
    assert set() == named - found
