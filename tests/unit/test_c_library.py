"""The C library by itself: one compiler command, `make lib`, and the programs of examples/c."""

import os
import re
import shutil
import subprocess

import pytest

import tfwire as tfw
from paths import ROOT

CC = shutil.which(os.environ.get("CC", "cc"))

pytestmark = pytest.mark.skipif(
    CC is None or shutil.which("make") is None, reason="needs a C compiler and make"
)


def run(*command, cwd=ROOT, **variables):
    result = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **variables}
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def library():
    run("make", "--silent", "lib")
    return ROOT / "build" / "lib"


def test_one_command_compiles_the_core(tmp_path):
    sources = sorted(map(str, (ROOT / "csrc").glob("*/*.c")))
    run(
        CC,
        "-std=c11",
        "-O0",
        f"-I{ROOT}/csrc",
        "-shared",
        "-fPIC",
        *sources,
        "-o",
        tmp_path / "core.so",
    )


@pytest.mark.parametrize("linkage", ["shared", "static"])
def test_the_example_programs_write_a_file_and_read_it(library, tmp_path, linkage):
    linked = [library / "libtfwire.a"] if linkage == "static" else [f"-L{library}", "-ltfwire"]
    for name in ("write_file", "print_columns"):
        source = ROOT / "examples" / "c" / f"{name}.c"
        warnings = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        run(CC, "-std=c11", *warnings, f"-I{ROOT}/csrc", source, *linked, "-o", tmp_path / name)
    variables = {"LD_LIBRARY_PATH": str(library)}
    run(tmp_path / "write_file", "pets.tfrecord", cwd=tmp_path, **variables)
    printed = run(tmp_path / "print_columns", "pets.tfrecord", cwd=tmp_path, **variables)
    assert printed == "cat 4.5\ndog 31\ngoat 60\n"


def test_the_file_that_c_writes_is_what_python_reads(library, tmp_path):
    source = ROOT / "examples" / "c" / "write_file.c"
    run(CC, f"-I{ROOT}/csrc", source, library / "libtfwire.a", "-o", tmp_path / "write_file")
    run(tmp_path / "write_file", "pets.tfrecord", cwd=tmp_path)
    rows = [tfw.decode_example(r) for r in tfw.read_records(tmp_path / "pets.tfrecord")]
    assert [row["name"] for row in rows] == [[b"cat"], [b"dog"], [b"goat"]]
    assert [row["weight"].tolist() for row in rows] == [[4.5], [31.0], [60.0]]


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm")
def test_the_shared_library_exports_the_public_functions_only(library):
    """The functions that the installed headers declare, nothing of the inside or for Python; each
    is of a version, by which a program that needs a newer library is told so when it starts."""
    symbols = run("nm", "-D", "--defined-only", library / "libtfwire.so")
    exported = {line.split()[-1] for line in symbols.splitlines()} - {"TFWIRE_0"}
    names = ("tfwire.h", "tfwire_arrow.h")
    header = "".join((ROOT / "csrc" / name).read_text(encoding="ascii") for name in names)
    declared = set(re.findall(r"^TFW_API [^(]*?\b(tfw_\w+)\(", header, re.MULTILINE))
    recorded = (ROOT / "csrc" / "libtfwire.map").read_text(encoding="ascii")
    assert declared == set(re.findall(r"^    (tfw_\w+);", recorded, re.MULTILINE))
    assert exported == {f"{name}@@TFWIRE_0" for name in declared}


@pytest.mark.parametrize("linkage", ["shared", "static"])
def test_programs_are_built_with_the_installed_library(library, tmp_path, linkage):
    """By what tfwire.pc says."""
    target = tmp_path / "usr"
    run("make", "--silent", "install", f"PREFIX={target}")
    words = (target / "lib" / "pkgconfig" / "tfwire.pc").read_text(encoding="ascii").split()
    flags = [word for word in words if word.startswith(("-I", "-L", "-l"))]
    if linkage == "static":
        (target / "lib" / "libtfwire.so").unlink()
    source = ROOT / "examples" / "c" / "write_file.c"
    run(CC, "-std=c11", source, *flags, "-o", tmp_path / "write_file")
    variables = {"LD_LIBRARY_PATH": str(target / "lib")} if linkage == "shared" else {}
    run(tmp_path / "write_file", "pets.tfrecord", cwd=tmp_path, **variables)
    assert 3 == len(list(tfw.read_records(tmp_path / "pets.tfrecord")))


def test_the_headers_of_the_library_can_be_included_from_cpp(library, tmp_path):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    source = tmp_path / "empty.cpp"
    source.write_text("#include <tfwire.h>\n#include <tfwire_arrow.h>\nint main() { return 0; }\n")
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/csrc"]
    run(compiler, *flags, "-c", source, "-o", tmp_path / "empty.o")
