"""Checks the wheels of all platforms, also of those that are not at hand.

    python packaging/check_wheels.py FOLDER

What the native module needs of its system, exports and holds; that the rest is alike in all. The
stable ABI and the metadata are for abi3audit and twine.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import lief
from make_wheels import TARGETS

# The libraries that every system has, from the version on that the tag names.
LIBRARIES = {
    "manylinux": r"lib(c|m|pthread)\.so\.\d|ld-linux-.+",
    "musllinux": r"libc\.musl-\w+\.so\.1",
    "macosx": r"/usr/lib/libSystem\.B\.dylib",
    "win": r"(?i)(python3|kernel32|ntdll|api-ms-win-crt-[\w-]+)\.dll",
}
KERNELS = {"x86": (b"sse42", b"avx2", b"avx512"), "arm": (b"armv8",)}
NAME = "@rpath/_native.abi3.so"  # of the module itself, on macOS
EXPORTS = {"PyInit__native", "_cffi_pypyinit__native"}
OF_LINKER = {"_mh_dylib_header", "__dso_handle"}  # of zig's for macOS, which does not hide them


def expect(holds: object, *what: object) -> None:
    if not holds:
        sys.exit(": ".join(map(str, what)))


def machine_of(tag: str) -> str:
    return "arm" if tag.endswith(("arm64", "aarch64")) else "x86"


def contents(wheel: Path) -> tuple[bytes, dict[str, int]]:
    """The native module, and the checksums of the files that are the same for all platforms."""
    tag = wheel.stem.split("-")[-1]
    native = f"tfwire/_native{'.pyd' if tag.startswith('win') else '.abi3.so'}"
    with zipfile.ZipFile(wheel) as files:
        others = {
            item.filename: item.CRC
            for item in files.infolist()
            if item.filename != native and not item.filename.endswith(("/WHEEL", "/RECORD"))
        }
        about = files.read(next(name for name in files.namelist() if name.endswith("/WHEEL")))
        expect(f"Tag: cp310-abi3-{tag}\n".encode() in about, tag, about)
        return files.read(native), others


def oldest_linux(wheel: Path, tag: str) -> tuple[int, ...]:
    """The version of glibc or musl that a wheel needs, of the tag that auditwheel finds. It reads
    no libraries of this machine, which has another libc."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", "--ldpaths=", wheel]
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = json.loads(shown)["overall_tag"]
    (system, *oldest, machine), wanted = parts_of(found), parts_of(tag)
    expect((system, machine) == (wanted[0], wanted[-1]), tag, found)
    return tuple(map(int, oldest))


def parts_of(tag: str) -> list[str]:
    """Of "manylinux_2_28_x86_64": the system, two numbers and the machine."""
    return tag.split("_", 3)


def check(wheel: Path) -> dict[str, int]:
    tag = wheel.stem.split("-")[-1]
    system, machine = tag.split("_")[0], machine_of(tag)
    code, others = contents(wheel)
    binary: Any = lief.parse(code)
    header = binary.header
    kinds = (getattr(header, name, None) for name in ("machine_type", "cpu_type", "machine"))
    kind = " ".join(map(str, kinds)).upper()
    expect((machine == "arm") == ("AARCH64" in kind or "ARM64" in kind), tag, kind)
    libraries = sorted({str(getattr(item, "name", item)) for item in binary.libraries} - {NAME})
    wrong = [item for item in libraries if not re.fullmatch(LIBRARIES[system], item)]
    expect(not wrong, tag, "needs", wrong)
    names = {str(item.name) for item in binary.exported_functions}
    exports = {name.removeprefix("_" * (system == "macosx")) for name in names}
    expect("PyInit__native" in exports and exports - OF_LINKER <= EXPORTS, tag, "exports", exports)
    missing = [kernel for kernel in KERNELS[machine] if kernel + b"\0" not in code]
    expect(not missing, tag, "without the kernels", missing)
    oldest = tuple(binary.build_version.minos[:2]) if system == "macosx" else ()
    if "linux" in tag:
        oldest = oldest_linux(wheel, tag)
    expect(oldest <= tuple(map(int, re.findall(r"\d+", tag)[:2])), tag, "needs", oldest)
    if tag == "macosx_11_0_arm64":
        expect(binary.has_code_signature, tag, "macOS loads nothing unsigned on ARM64")
    needs = [*libraries, *([".".join(map(str, oldest))] if oldest else [])]
    print(f"{tag}: {len(code):,} bytes of {wheel.stat().st_size:,}; {', '.join(needs)}")
    return others


def main(folder: str) -> None:
    wheels = sorted(Path(folder).glob("*.whl"))
    found = {wheel.stem.split("-")[-1] for wheel in wheels}
    expect(found == set(TARGETS), "not one wheel for each platform", found)
    first, *others = map(check, wheels)
    for wheel, other in zip(wheels[1:], others, strict=True):
        expect(other == first, wheel.name, "other files", dict(first.items() ^ other.items()))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
