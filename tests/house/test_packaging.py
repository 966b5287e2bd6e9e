"""What an installation looks like from outside the source tree."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import tfwire
from helpers.command import output_of, output_of_python
from helpers.paths import ROOT

pytestmark = pytest.mark.unsanitized("reads what is built without sanitizers")

PACKAGE = Path(tfwire.__file__).parent


def native_module():
    (path,) = PACKAGE.glob("_native*.so")
    return path


def test_package_is_typed():
    assert (PACKAGE / "py.typed").exists()
    assert (PACKAGE / "_native.pyi").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF symbols with nm")
def test_native_module_exports_its_entry_point_only():
    symbols = output_of("nm", "--dynamic", "--defined-only", native_module())
    exported = {line.split()[-1] for line in symbols.splitlines()}
    assert {"PyInit__native", "_cffi_pypyinit__native"} >= exported
    assert "PyInit__native" in exported


def test_native_module_uses_the_stable_abi():
    import sysconfig

    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("cffi knows no stable ABI of free-threaded CPython")
    assert ".abi3." in native_module().name


@pytest.mark.skipif(
    getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="needs CPython that runs without the GIL",
)
def test_native_module_leaves_the_gil_off():
    """cffi declares so for every module that it makes; Python would turn the GIL on and warn."""
    code = "import sys, tfwire._native; sys.exit(sys._is_gil_enabled())"
    output_of_python("-W", "error", "-c", code)


def test_import_is_lazy_and_local_files_do_without_what_others_need(tmp_path):
    """The command line starts at once without numpy and protobuf. Event loops and TLS are for URLs:
    they take as long to load as a third of numpy."""
    code = (
        "import sys, tfwire as tfw; print({'numpy', 'google.protobuf'} & set(sys.modules)); "
        "import numpy; before = set(sys.modules); "
        "spec = {'a': tfw.FixedLenFeature([], tfw.int64)}; "
        "tfw.write_records('a', [{'a': 1}]); records = list(tfw.read_records('a')); "
        "tfw.parse_example(records, spec); list(tfw.Parser(spec).parse_file('a')); "
        "tfw.RecordIndex.build('a').save(); tfw.TFRecordFile('a')[0]; tfw.verify_file('a'); "
        "list(tfw.TFRecordDataset('a').batch(2)); list(tfw.arrow.open_reader('a')); "
        "print({'asyncio', 'concurrent.futures', 'google.protobuf', 'logging', 'socket', 'ssl', "
        "'subprocess', 'urllib.request'} & (set(sys.modules) - before))"
    )
    assert "set()\nset()\n" == output_of_python("-c", code, cwd=tmp_path)


def test_the_package_works_without_its_stubs_and_without_sources(tmp_path):
    """As PyInstaller, zipapps and stripped wheels have it."""
    target = tmp_path / "tfwire"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("*.pyi", "__pycache__"))
    output_of_python("-m", "compileall", "-q", "-b", target)
    for path in target.rglob("*.py"):
        path.unlink()
    code = (
        "import tfwire as tfw; names = [getattr(tfw, name) for name in tfw.__all__]; "
        "example = tfw.encode_example({'a': 1}); "
        "tfw.train.Example.FromString(example); tfw.compat.train.Example(); "
        "print(len(names), tfw.decode_example(example), tfw.__file__)"
    )
    found = output_of_python("-c", code, cwd=tmp_path, PYTHONPATH="")
    assert found.startswith(f"{len(tfwire.__all__)} {{'a': array([1])}} {target}")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The sdist of the files that git knows, unpacked; elsewhere, what it was unpacked to."""
    if not (ROOT / ".git").exists():
        return ROOT
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("sdist")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(target)!r})"
    output_of_python("-c", code, cwd=source)
    (archive,) = target.glob("tfwire-*.tar.gz")
    output_of("tar", "xzf", archive, "-C", target)
    return target / archive.name.removesuffix(".tar.gz")


def tracked():
    names = output_of("git", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]
    return [name for name in names if (ROOT / name).exists()]


@pytest.mark.slow
def test_sdist_holds_all_that_its_tests_need(sdist):
    if sdist == ROOT:
        pytest.skip("compares the sdist with what git knows")
    found = {p.relative_to(sdist).as_posix() for p in sdist.rglob("*") if p.is_file()}
    made = {name for name in found if name.startswith("src/tfwire.egg-info/")}
    assert {*tracked(), "PKG-INFO", "setup.cfg"} == found - made


def test_actions_are_pinned_by_hash():
    """A tag can be moved to other code, which would then publish in our name."""
    workflows = [*(ROOT / ".github" / "workflows").glob("*.yml")]
    uses = [
        line.partition("uses: ")[2]
        for path in workflows
        for line in path.read_text(encoding="ascii").splitlines()
        if "uses: " in line
    ]
    assert len(uses) >= 10
    assert not [use for use in uses if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", use)]


WITHOUT = """
import sys, pytest

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"ml_dtypes", "sklearn", "scipy", "fsspec", "PIL", "xdist"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_the_tests_of_wheels_need_no_more_than_their_group():
    """cibuildwheel runs them also with musl, for which others than these have no wheels."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'wheel-test = ["pytest>=8", "hypothesis"]' in text
    command = re.search(r'^test-command = "python -m pytest (.+)"', text, re.MULTILINE)[1]
    files = re.findall(r"tests/[\w/]+\.py", command)
    assert len(files) >= 5
    options = ["-q", "--collect-only", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # The package that is tested, which need not be that of the checkout.
    options += ["-o", "pythonpath=tests"]
    output_of_python("-c", WITHOUT, *options, *files, cwd=ROOT)


def test_wheels_are_tested_with_files_of_the_sdist():
    """cibuildwheel takes test-sources from where it runs, whichever folder it builds."""
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="ascii")
    assert "package-dir" not in workflow.replace("not from package-dir", "")
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    sources = re.search(r"^test-sources = \[(.+)\]", text, re.MULTILINE)[1]
    assert all((ROOT / name).exists() for name in re.findall(r'"([^"]+)"', sources))


@pytest.mark.parametrize("address", ["", "https://example.org/owner/tfwire"])
def test_the_page_on_pypi_has_no_relative_links(address):
    """Without an address yet, it has the texts of its links, and no picture."""
    spec = spec_from_file_location("tfwire_setup", ROOT / "setup.py")
    setup = module_from_spec(spec)
    spec.loader.exec_module(setup)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = setup.page(readme, address)
    links = re.findall(r"\[[^]]*\]\(([^)]+)\)", page)
    assert all(link.startswith("https://") for link in links)
    assert (len(links) > 20) == bool(address)
    picture = f"({address}/raw/HEAD/docs/viewer-records.webp)"
    assert (picture in page) == bool(address)
    assert "The tutorial goes on" in re.sub(r"\[(.*?)\]\([^)]*\)", r"\1", page)


def has_setuptools():
    with contextlib.suppress(PackageNotFoundError):
        return int(version("setuptools").partition(".")[0]) >= 77
    return False


@pytest.mark.skipif(not has_setuptools(), reason="needs the setuptools of pyproject.toml")
@pytest.mark.parametrize("compiler", ["/nowhere/cc", "cc -nostdinc"])
def test_without_a_compiler_or_headers_a_build_says_what_it_needs(compiler, tmp_path):
    command = [sys.executable, "setup.py", "-q", "build_ext", f"--build-temp={tmp_path}"]
    environment = {**os.environ, "CC": compiler, "LDSHARED": compiler}
    words = [*command, f"--build-lib={tmp_path}", "--force"]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "no wheel for" in done.stderr
    assert "needs a C compiler, gcc or clang" in done.stderr
    assert "headers of Python" in done.stderr
    assert "Traceback" not in done.stderr


EXTRAS = {
    "arrow": ("pyarrow", "import tfwire.arrow as a; a.read_table([], {})"),
    "huggingface": ("datasets", "import tfwire.huggingface"),
    "polars": ("polars", "import tfwire.polars"),
    "beam": ("apache_beam", "import tfwire.beam"),
    "ray": ("ray", "import tfwire.ray"),
    "grain": ("grain", "import tfwire.grain"),
    "torch": ("torch", "import tfwire.torch"),
}


def test_public_modules_are_reached_after_a_plain_import():
    """As messages name them. A package that is missing is named; the module that needs it is
    missing, too, for hasattr."""
    code = f"""
import sys, tfwire as tfw
tfw.sharding.recover_shards, tfw.images.decode, tfw.arrow.open_reader, tfw.view.as_html
tfw.checksum.crc32c, tfw.compat.io
for missing, program in {list(EXTRAS.values())!r}:
    sys.modules[missing] = None
    try:
        exec(program)
    except ImportError as error:
        print(error)
print(hasattr(tfw, 'torch'))
try:
    tfw.torch
except AttributeError as error:
    print(error)
"""
    *lines, has_torch, error = output_of_python("-c", code).splitlines()
    for extra, line in zip(EXTRAS, lines, strict=True):
        assert line.endswith(f"pip install 'tfwire[{extra}]'")
    assert "False" == has_torch
    assert error.startswith("tfwire.torch: ")


@pytest.mark.slow
def test_wheel_of_the_sdist_works_outside_the_tree(sdist, tmp_path):
    """The wheel holds every module, no C source and no tests, and reads what it wrote."""
    pip = (sys.executable, "-m", "pip")
    output_of(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, sdist)
    (wheel,) = tmp_path.glob("tfwire-*.whl")
    files = zipfile.ZipFile(wheel).infolist()
    names = [file.filename for file in files]
    assert not [name for name in names if name.endswith((".c", ".h")) or "test" in name]
    modules = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*.py*")}
    assert {name for name in modules if not name.endswith(".pyc")} <= set(names)
    assert sum(file.file_size for file in files) < 7 * 2**19
    (native,) = [name for name in names if "_native" in name and not name.endswith(".pyi")]
    assert b".debug_info" not in zipfile.ZipFile(wheel).read(native)
    target = tmp_path / "site"
    output_of(*pip, "install", "--no-deps", "--target", target, wheel)
    code = (
        "import tfwire, tfwire.compat; assert 'site' in tfwire.__file__, tfwire.__file__\n"
        "tfwire.write_records('x', [b'a', b'b']); print(list(tfwire.read_records('x')))"
    )
    output = output_of_python("-c", code, cwd=tmp_path, PYTHONPATH=str(target))
    assert "[b'a', b'b']\n" == output
