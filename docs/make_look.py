"""Makes the page that shows a record file in a browser: look.html and the core in one file.

    python docs/make_look.py OUT.html

It needs clang, wasm-ld and the C library of WASI: Debian's clang, lld, wasi-libc and
libclang-rt-dev-wasm32.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOOK = ROOT / "docs" / "look"
FOLDERS = ("base", "wire", "crc32c", "records")  # of csrc, which this page uses
FLAGS = ["--target=wasm32-wasi", "-mexec-model=reactor", "-std=c11", "-O2", "-Wall", "-Wextra"]
FLAGS += ["-Werror", "-DTFW_API=", "-fvisibility=hidden", "-Wl,--strip-all"]


def compiled() -> bytes:
    """The core as WebAssembly."""
    sources = [path for name in FOLDERS for path in sorted((ROOT / "csrc" / name).glob("*.c"))]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "look.wasm"
        command = ["clang", *FLAGS, f"-I{ROOT / 'csrc'}", LOOK / "look.c", *sources, "-o", out]
        subprocess.run(command, check=True)
        return out.read_bytes()


def main(out: Path) -> None:
    parts = {
        "page.css": (ROOT / "src" / "tfwire" / "view" / "page.css").read_text(encoding="utf-8"),
        "look.js": (LOOK / "look.js").read_text(encoding="utf-8"),
        "look.wasm": base64.b64encode(compiled()).decode("ascii"),
    }
    page = (LOOK / "look.html").read_text(encoding="utf-8")
    for name, text in parts.items():
        page = page.replace(f"{{{name}}}", text, 1)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    print(f"{out}: {len(page):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
