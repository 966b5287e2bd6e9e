"""What an installation looks like from outside the source tree."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfwire
from paths import ROOT

PACKAGE = Path(tfwire.__file__).parent


def native_module():
    (path,) = PACKAGE.glob("_native*.so")
    return path


def test_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
    assert (PACKAGE / "_native.pyi").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF symbols with nm")
def test_native_module_exports_its_entry_point_only():
    output = subprocess.run(
        ["nm", "--dynamic", "--defined-only", str(native_module())],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    exported = {line.split()[-1] for line in output.splitlines()}
    assert {"PyInit__native", "_cffi_pypyinit__native"} >= exported
    assert "PyInit__native" in exported


def test_native_module_uses_the_stable_abi():
    import sysconfig

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("free-threaded CPython has no stable ABI yet")
    assert ".abi3." in native_module().name


def test_import_is_lazy():
    """import tfwire loads no numpy and no protobuf: the command line starts at once."""
    code = "import sys, tfwire; sys.exit(bool({'numpy', 'google.protobuf'} & set(sys.modules)))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


@pytest.mark.slow
def test_wheel_installs_and_works_outside_the_tree(tmp_path):
    """The wheel holds every module, no C source and no tests, and reads what it wrote."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        + ["--wheel-dir", str(tmp_path), str(ROOT)],
        check=True,
    )
    (wheel,) = tmp_path.glob("tfwire-*.whl")
    import zipfile

    files = zipfile.ZipFile(wheel).infolist()
    names = [file.filename for file in files]
    assert not [name for name in names if name.endswith((".c", ".h")) or "test" in name]
    modules = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*.py*")}
    assert {name for name in modules if not name.endswith(".pyc")} <= set(names)
    assert sum(file.file_size for file in files) < 3 * 2**20
    (native,) = [name for name in names if "_native" in name and not name.endswith(".pyi")]
    assert b".debug_info" not in zipfile.ZipFile(wheel).read(native)
    target = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, wheel],
        check=True,
    )
    code = (
        "import tfwire, tfwire.compat; assert 'site' in tfwire.__file__, tfwire.__file__\n"
        "tfwire.write_records('x', [b'a', b'b']); print(list(tfwire.read_records('x')))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(target), "PATH": "/usr/bin:/bin"},
    )
    assert "[b'a', b'b']\n" == result.stdout, result.stderr
