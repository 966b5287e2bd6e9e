"""What packaging/make_wheels.py says of the wheels, without the compiler that makes them."""

import contextlib
import os
import re
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from helpers.paths import ROOT

pytestmark = pytest.mark.outside_c

PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker():
    spec = spec_from_file_location("make_wheels", ROOT / "packaging" / "make_wheels.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_oldest_systems_are_those_of_the_compiler(maker):
    """As glibc 2.28 and macOS 11.0 are in zig's targets. Of musl and Windows they have none."""
    assert 8 == len(maker.TARGETS)
    for tag, target in maker.TARGETS.items():
        system, machine = re.fullmatch(r"(manylinux|musllinux|macosx|win)_(.+)", tag).groups()
        major_minor = re.match(r"(\d+)_(\d+)_", machine)
        if system in ("manylinux", "macosx"):
            assert target.endswith("." + ".".join(major_minor.groups())), tag
        arm = machine.endswith(("aarch64", "arm64"))
        assert target.startswith("aarch64-" if arm else "x86_64-"), tag


def test_setuptools_takes_the_names_of_the_platforms(maker):
    assert [maker.platform_of(tag) for tag in maker.TARGETS] == [
        *("win-amd64", "win-arm64", "linux-x86_64", "linux-aarch64", "linux-x86_64"),
        *("linux-aarch64", "macosx-11.0-x86_64", "macosx-11.0-arm64"),
    ]


def test_cibuildwheel_and_the_release_make_wheels_for_the_same_systems(maker):
    """Those for Windows are zig's in the release, too: MSVC leaves out kernels."""
    images = re.findall(r'^(m\w+)-(\w+)-image = "(\w+)"', PYPROJECT, re.MULTILINE)
    (macos,) = re.findall(r'MACOSX_DEPLOYMENT_TARGET = "([\d.]+)"', PYPROJECT)
    assert 'skip = ["*_i686", "*-win*"]' in PYPROJECT
    machines = {"macos-15-intel": "x86_64", "macos-latest": "arm64"}
    made = {f"{image}_{machine}" for _, machine, image in images}
    made |= {f"macosx_{macos.replace('.', '_')}_{machine}" for machine in machines.values()}
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="ascii")
    (runners,) = re.findall(r"^ +os: \[(ubuntu.+)\]", release, re.MULTILINE)
    assert {"ubuntu-latest", "ubuntu-24.04-arm", *machines} == set(runners.split(", "))
    (windows,) = re.findall(r"build/wheels/\*-(win_)\*\.whl", release)
    tested = set(re.findall(r"os: windows[\w-]+, tag: (\w+)", release))
    assert tested == {tag for tag in maker.TARGETS if tag.startswith(windows)}
    assert set(maker.TARGETS) == made | tested


def has_setuptools():
    with contextlib.suppress(PackageNotFoundError):
        return int(version("setuptools").partition(".")[0]) >= 77
    return False


# Knows every flag, and makes empty files.
COMPILER = """\
#!/bin/sh
while [ $# -gt 0 ]; do
    [ "$1" != -o ] || : > "$2"
    shift
done
"""


@pytest.fixture
def sdist(tmp_path):
    """As much of one as setuptools needs for a wheel."""
    path = tmp_path / "tfwire.tar.gz"
    names = "setup.py", "pyproject.toml", "README.md", "LICENSE", "csrc", "src/tfwire/_version.py"
    with tarfile.open(path, "w:gz") as archive:
        for name in (*names, "src/tfwire/__init__.py", "src/tfwire/view"):
            archive.add(ROOT / name, f"tfwire/{name}")
    return path


@pytest.mark.skipif(not has_setuptools(), reason="needs the setuptools of pyproject.toml")
@pytest.mark.skipif(sys.platform == "win32", reason="the compiler is a shell's program")
def test_a_wheel_has_the_same_bytes_every_time(maker, sdist, tmp_path, monkeypatch):
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o700)
    monkeypatch.setattr(maker, "zig", lambda: str(compiler))
    monkeypatch.setattr(maker, "make_import_library", lambda path, machine: None)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    found = []
    for mask in 0o022, 0o077:
        (folder := tmp_path / str(mask)).mkdir()
        before = os.umask(mask)
        try:
            maker.make_wheel(sdist, tmp_path, folder, "win_arm64")
        finally:
            os.umask(before)
        (wheel,) = folder.iterdir()
        assert re.fullmatch(r"tfwire-.+-cp310-abi3-win_arm64\.whl", wheel.name)
        found.append(wheel.read_bytes())
    assert found[0] == found[1]
    names = zipfile.ZipFile(wheel).namelist()
    assert ["tfwire/_native.pyd"] == [name for name in names if "_native" in name]
