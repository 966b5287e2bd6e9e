"""Makes the wheels of all platforms on this machine, by the C compiler of zig, from the sdist.

    python packaging/make_wheels.py SDIST FOLDER [TAG...]

setuptools makes each as it makes that of this machine; it only calls another compiler. Python's
headers are those of this Python, with a pyconfig.h for every target, which the limited API allows;
Windows links with an import library of the names that the stable ABI has. The same bytes come out
every time: SOURCE_DATE_EPOCH is the time of the sdist unless it is set.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

# The tags of the wheels, and the targets of zig with the oldest system that each is for.
TARGETS = {
    "win_amd64": "x86_64-windows-gnu",  # the longest first
    "win_arm64": "aarch64-windows-gnu",
    "manylinux_2_28_x86_64": "x86_64-linux-gnu.2.28",
    "manylinux_2_28_aarch64": "aarch64-linux-gnu.2.28",
    "musllinux_1_2_x86_64": "x86_64-linux-musl",
    "musllinux_1_2_aarch64": "aarch64-linux-musl",
    "macosx_11_0_x86_64": "x86_64-macos.11.0",
    "macosx_11_0_arm64": "aarch64-macos.11.0",
}

# All that the headers of the limited API ask of a system of 64 bits.
PYCONFIG = """\
#define SIZEOF_VOID_P __SIZEOF_POINTER__
#define SIZEOF_SIZE_T __SIZEOF_SIZE_T__
#define SIZEOF_LONG __SIZEOF_LONG__
#define SIZEOF_LONG_LONG __SIZEOF_LONG_LONG__
#define SIZEOF_WCHAR_T __SIZEOF_WCHAR_T__
#define HAVE_LONG_LONG 1
#define _GNU_SOURCE 1 /* alloca, in what cffi generates */
#ifdef _WIN32
#define MS_WINDOWS 1
#define MS_WIN64 1
#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL 1
#endif
"""


def zig() -> str:
    import ziglang

    return str(Path(ziglang.__file__).with_name("zig"))


def make_headers(folder: Path) -> None:
    shutil.copytree(sysconfig.get_path("include"), folder)
    (folder / "pyconfig.h").write_text(PYCONFIG, encoding="ascii")


def make_import_library(path: Path, machine: str) -> None:
    """python3.lib: a name that the stable ABI of CPython 3.10 lacks is an error of the linker."""
    from abi3info import DATAS, FUNCTIONS

    def known(symbols: Any) -> list[str]:
        oldest = (3, 10)
        added = {s.name: (item.added.major, item.added.minor) for s, item in symbols.items()}
        return [name for name, version in added.items() if version <= oldest]

    names = [*known(FUNCTIONS), *(f"{name} DATA" for name in known(DATAS))]
    definition = path.with_suffix(".def")
    text = "\n".join(["LIBRARY python3.dll", "EXPORTS", *sorted(names)])
    definition.write_text(text + "\n", encoding="ascii")
    words = ["-m", machine, "-d", definition, "-l", path]
    subprocess.run([zig(), "dlltool", *words], check=True)


def make_libc(tools: Path, tag: str) -> Path:
    """An empty library with the name that musl's has on Alpine, which auditwheel asks for: zig's is
    named libc.so. musl's loader takes itself for both."""
    machine = tag.split("_", 3)[-1]
    path, source = tools / f"libc-{machine}.so", tools / f"libc-{machine}.c"
    source.touch()
    name = f"-Wl,-soname,libc.musl-{machine}.so.1"
    words = ["cc", "-target", TARGETS[tag], "-shared", "-s", "-nostdlib", name, source, "-o", path]
    subprocess.run([zig(), *words], check=True)
    return path


def platform_of(tag: str) -> str:
    """As sysconfig.get_platform() has it on the system that a wheel is for."""
    if tag.startswith("win_"):
        return tag.replace("_", "-")
    machine = tag.split("_", 3)[-1]
    return f"macosx-11.0-{machine}" if tag.startswith("macosx") else f"linux-{machine}"


def environment(tag: str, tools: Path) -> dict[str, str]:
    """What makes setuptools on this machine compile for another."""
    compiler = f"{zig()} cc -target {TARGETS[tag]} -I{tools / 'include'}"
    linker = f"{compiler} -shared -s"
    if tag.startswith("musllinux"):
        linker += f" -nostdlib -rtlib=compiler-rt -Wl,--no-as-needed {make_libc(tools, tag)}"
    if tag.startswith("macosx"):
        linker += " -undefined dynamic_lookup -Wl,-install_name,@rpath/_native.abi3.so"
    if tag.startswith("win"):
        library = tools / f"python3-{tag}.lib"
        make_import_library(library, "i386:x86-64" if tag == "win_amd64" else "arm64")
        # The module's own import library, which nobody needs, would lie in the wheel.
        linker += f" {library} -Wl,--out-implib,{tools / f'unused-{tag}.lib'}"
    # What Python itself was compiled with is for this machine.
    nothing = dict.fromkeys(("CPPFLAGS", "LDFLAGS", "ARCHFLAGS"), "")
    flags = {"CC": compiler, "LDSHARED": linker, "CFLAGS": "-DNDEBUG", **nothing}
    return {**os.environ, **flags, "_PYTHON_HOST_PLATFORM": platform_of(tag)}


BUILD = """
import os, sys
os.umask(0o022)  # the wheel has the permissions of files
from setuptools import build_meta
build_meta.build_wheel(sys.argv[1], {"--build-option": [f"--plat-name={sys.argv[2]}"]})
"""


def make_wheel(sdist: Path, tools: Path, folder: Path, tag: str) -> None:
    with tempfile.TemporaryDirectory() as work:
        with tarfile.open(sdist) as files:
            files.extractall(work, filter="data")
            made = int(max(member.mtime for member in files))
        (source,) = Path(work).iterdir()
        done = subprocess.run(
            [sys.executable, "-c", BUILD, folder, tag],
            cwd=source,
            env={"SOURCE_DATE_EPOCH": str(made), **environment(tag, tools)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    if done.returncode != 0:
        raise RuntimeError(f"{done.stdout[-5000:]}\n{tag}: no wheel")
    print(f"{tag}: made by {TARGETS[tag]}", flush=True)


def main(sdist: str, folder: str, *tags: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tools:
        make_headers(Path(tools) / "include")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            make = partial(make_wheel, Path(sdist).resolve(), Path(tools), Path(folder).resolve())
            list(pool.map(make, tags or TARGETS))  # which raises what one of them raised


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
