"""The C library by itself: one compiler command, `make lib`, and the programs of examples/c."""

import os
import re
import shutil
import sys

import pytest

import tfwire as tfw
from helpers import c_abi
from helpers.command import output_of
from helpers.paths import CSRC, ROOT

CC = shutil.which(os.environ.get("CC", "cc"))
MACOS = sys.platform == "darwin"
LINK_NAME = "libtfwire.dylib" if MACOS else "libtfwire.so"
SEARCH_PATH = "DYLD_LIBRARY_PATH" if MACOS else "LD_LIBRARY_PATH"
PETS = "cat 4.5\ndog 31\ngoat 60\n"

pytestmark = [
    pytest.mark.skipif(
        CC is None or shutil.which("make") is None, reason="needs a C compiler and make"
    ),
    pytest.mark.unsanitized("builds the C library by itself"),
]


def make(*words):
    """One at a time: the processes that run the tests share build/lib."""
    import fcntl

    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "lib.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        output_of("make", "--silent", *words, cwd=ROOT)


@pytest.fixture(scope="module")
def library():
    make("lib")
    return ROOT / "build" / "lib"


def test_one_command_compiles_the_core():
    """Unless it did, and the sources are as they were."""
    core, sources = ROOT / "build" / "core.so", sorted(CSRC.glob("*/*.c"))
    newest = max(path.stat().st_mtime for path in CSRC.rglob("*.[ch]"))
    if not core.exists() or core.stat().st_mtime < newest:
        core.parent.mkdir(exist_ok=True)
        flags = "-std=c11", "-O0", "-pthread", f"-I{CSRC}", "-shared", "-fPIC"
        output_of(CC, *flags, *sources, "-o", core)


@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm")
@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF symbols with nm")
def test_the_shared_library_exports_the_public_functions_only(library):
    """The functions that the installed headers declare, nothing of the inside or for Python; each
    is of a version, by which a program that needs a newer library is told so when it starts."""
    symbols = output_of("nm", "-D", "--defined-only", library / "libtfwire.so")
    exported = {line.split()[-1] for line in symbols.splitlines()} - {"TFWIRE_0"}
    names = ("tfwire.h", "tfwire_pipeline.h", "tfwire_arrow.h")
    header = "".join((CSRC / name).read_text(encoding="ascii") for name in names)
    declared = set(re.findall(r"^TFW_API [^(]*?\b(tfw_\w+)\(", header, re.MULTILINE))
    recorded = (CSRC / "libtfwire.map").read_text(encoding="ascii")
    assert declared == set(re.findall(r"^    (tfw_\w+);", recorded, re.MULTILINE))
    assert exported == {f"{name}@@TFWIRE_0" for name in declared}


@pytest.mark.skipif(sys.maxsize < 2**32, reason="the record is that of 64-bit systems")
def test_structs_and_constants_are_those_recorded():
    """Programs are compiled with them. helpers/c_abi.py renews the record."""
    assert c_abi.RECORDED.read_text(encoding="ascii") == c_abi.layout()


def flags_of(target):
    """What the installed tfwire.pc says; by pkg-config where there is one."""
    file = target / "lib" / "pkgconfig" / "tfwire.pc"
    if shutil.which("pkg-config"):
        return output_of("pkg-config", "--cflags", "--libs", file).split()
    text = file.read_text(encoding="ascii")
    values = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    words = [
        word
        for line in re.findall(r"^(?:Cflags|Libs): (.*)$", text, re.MULTILINE)
        for word in line.split()
    ]
    while any("${" in word for word in words):
        words = [re.sub(r"\$\{(\w+)\}", lambda name: values[name[1]], word) for word in words]
    return words


def test_programs_are_built_with_the_installed_library(library, tmp_path):
    """And what they write, Python reads."""
    target = tmp_path / "usr"
    make("install", f"PREFIX={target}")
    flags = flags_of(target)
    assert {f"-I{target}/include", f"-L{target}/lib", "-ltfwire"} == set(flags)
    flags += ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    for linkage, variables in ("shared", {SEARCH_PATH: str(target / "lib")}), ("static", {}):
        (tmp_path / linkage).mkdir()
        if linkage == "static":
            (target / "lib" / LINK_NAME).unlink()
        for name in ("write_file", "print_columns"):
            source, program = ROOT / "examples" / "c" / f"{name}.c", tmp_path / linkage / name
            output_of(CC, source, *flags, "-o", program)
            printed = output_of(program, "pets.tfrecord", cwd=program.parent, **variables)
        assert printed == PETS
        records = tfw.read_records(tmp_path / linkage / "pets.tfrecord")
        rows = [tfw.decode_example(record) for record in records]
        assert [row["name"] for row in rows] == [[b"cat"], [b"dog"], [b"goat"]]
        assert [row["weight"].tolist() for row in rows] == [[4.5], [31.0], [60.0]]


def test_packages_are_staged_in_another_folder(library, tmp_path):
    """DESTDIR is where the files are put, and in no file."""
    make("install", "PREFIX=/opt/tfwire", f"DESTDIR={tmp_path}")
    lib = tmp_path / "opt" / "tfwire" / "lib"
    assert (lib / "libtfwire.a").exists()
    assert (lib / LINK_NAME).resolve().exists()
    assert (lib.parent / "include" / "tfwire.h").exists()
    text = (lib / "pkgconfig" / "tfwire.pc").read_text(encoding="ascii")
    assert text.startswith("prefix=/opt/tfwire\nincludedir=${prefix}/include\n")
    assert str(tmp_path) not in text


def test_the_headers_of_the_library_can_be_included_from_cpp(library, tmp_path):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    source = tmp_path / "empty.cpp"
    source.write_text("#include <tfwire.h>\n#include <tfwire_arrow.h>\nint main() { return 0; }\n")
    flags = ["-std=c++11", "-Wall", "-Wextra", "-Werror", f"-I{CSRC}"]
    output_of(compiler, *flags, "-c", source, "-o", tmp_path / "empty.o")
