"""Tries the files of a release as a user gets them: no checkout, a new environment, a new folder.

    python packaging/check_release.py dist [pytest arguments]

The wheel is installed and imported, the README's program runs, and so do tests of the sdist,
over the installed package; the C library of the sdist is installed, and a program is built with it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

# One file of each part, so that this takes a minute; `tests` runs them all.
QUICK = [
    "tests/examples/test_golden.py",
    "tests/records/reading/test_records.py",
    "tests/parsing/test_parse.py",
    "tests/examples/test_encode.py",
    "tests/records/files/test_compression.py",
    "tests/house/test_docs.py",
    "tests/house/test_packaging.py",
]
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MAKE"))
}


def run(*command: object, cwd: Path, **variables: str) -> str:
    words = [str(word) for word in command]
    print("$", *words, flush=True)
    done = subprocess.run(
        words, cwd=cwd, env={**ENVIRONMENT, **variables}, text=True, stdout=subprocess.PIPE
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n{words[0]} ended with status {done.returncode}")
    return done.stdout


def only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"expected one {pattern} in {folder}, found {len(found)}")
    return found[0].resolve()


def check_wheel(wheel: Path, work: Path) -> Path:
    """The interpreter of a new environment that has the wheel and what it needs."""
    venv.create(work / "venv", with_pip=True)
    python = work / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=work)
    place = run(python, "-c", "import tfwire; print(tfwire.__file__)", cwd=work).strip()
    if not Path(place).is_relative_to(work):
        sys.exit(f"expected tfwire in {work}, found {place}")
    print(run(python.with_name("tfwire"), "--version", cwd=work), end="")
    return python


def check_readme(source: Path, python: Path, work: Path) -> None:
    text = (source / "README.md").read_text(encoding="utf-8")
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    print(run(python, "-W", "error", "-c", program, cwd=work), end="")


def check_tests(source: Path, python: Path, arguments: list[str]) -> None:
    """Without `src` on the path: what is tested is what is installed."""
    run(python, "-m", "pip", "install", "--quiet", "pip>=25.1", cwd=source)
    run(python, "-m", "pip", "install", "--quiet", "--group", "test", cwd=source)
    pytest = [python, "-m", "pytest", "-q", "-m", "not slow", "-o", "pythonpath=tests"]
    output = run(*pytest, *(arguments or QUICK), cwd=source)
    print(output.splitlines()[-1])


def check_library(source: Path, work: Path) -> None:
    run("make", "--silent", "install", f"PREFIX={work}/usr", cwd=source)
    flags = ["-I", work / "usr" / "include", "-L", work / "usr" / "lib", "-ltfwire"]
    program = source / "examples" / "c" / "write_file.c"
    run("cc", "-std=c11", program, *flags, "-o", work / "write_file", cwd=work)
    run(work / "write_file", work / "c.tfrecord", cwd=work, LD_LIBRARY_PATH=f"{work}/usr/lib")


def main(dist: Path, *arguments: str) -> None:
    wheel, archive = only(dist, "*.whl"), only(dist, "*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        with tarfile.open(archive) as files:
            files.extractall(work, filter="data")
        source = only(work, "tfwire-*")
        python = check_wheel(wheel, work)
        check_readme(source, python, work)
        check_library(source, work)
        print(run(python.with_name("tfwire"), "verify", work / "c.tfrecord", cwd=work), end="")
        check_tests(source, python, list(arguments))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])
