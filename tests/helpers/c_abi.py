"""The layout of the C library's public structs and the values of its constants, as text.

``PYTHONPATH=src:tests python -m helpers.c_abi`` renews csrc/libtfwire.abi.
"""

from __future__ import annotations

import re

from helpers.paths import CSRC

RECORDED = CSRC / "libtfwire.abi"
TITLE = """\
# What programs are compiled with, on 64-bit systems: the public structs with their sizes and the
# offsets of their members, and the constants. What is here changes only with a new soname.
"""


def layout() -> str:
    """As the compiler of the module has it, which the library is compiled like."""
    from tfwire._native import ffi, lib

    headers = [CSRC / name for name in ("tfwire.h", "tfwire_pipeline.h", "tfwire_arrow.h")]
    text = "".join(path.read_text("ascii") for path in headers)
    public = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)))
    lines = []
    for name in sorted(public.intersection(ffi.list_types()[0])):
        kind = ffi.typeof(name)
        if kind.kind == "struct" and re.search(rf"^}} {name};", text, re.MULTILINE):
            size = ffi.sizeof(kind)  # before its fields, which cffi 2.1 has only then
            lines.append(f"{name} {size}\n")
            lines += [f"    {member} {field.offset}\n" for member, field in kind.fields]
    for name in sorted(public.intersection(dir(lib))):
        if isinstance(value := getattr(lib, name), int):
            lines.append(f"{name} {value}\n")
    return TITLE + "".join(lines)


if __name__ == "__main__":
    RECORDED.write_text(layout(), encoding="ascii")
