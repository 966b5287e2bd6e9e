"""What type checkers say of programs that use tfwire, of its public names and of its stubs.

The programs in accepted/ and rejected/ are checked and never run. Of those in rejected/, a checker
must find fault with the lines that end in ``# error``, and with no others.
"""

import inspect
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.paths import PACKAGE, ROOT

HERE = Path(__file__).parent
PROGRAMS = sorted(HERE.glob("*/*.py"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "MYPYPATH": str(PACKAGE.parent)}
# Public names that a type cannot be said of: their bases are classes of packages that are not
# installed here.
UNKNOWN = {
    "tfwire.beam.ReadAllFromTFRecord",
    "tfwire.beam.ReadBatchesFromTFRecord",
    "tfwire.beam.ReadFromTFRecord",
    "tfwire.beam.WriteToTFRecord",
    "tfwire.grain.TFRecordIterDataset",
    "tfwire.grain.TFRecordIterDataset.__iter__",
    "tfwire.huggingface.TFRecord",
    "tfwire.huggingface.TFRecord.BUILDER_CONFIG_CLASS",
    "tfwire.polars.scan_tfrecord",
    "tfwire.ray.TFRecordDatasink",
    "tfwire.ray.TFRecordDatasource",
    "tfwire.ray.read_tfrecord",
    "tfwire.ray.write_tfrecord",
    "tfwire.spark.SparkSource",
    "tfwire.torch.StringTensor",
    "tfwire.torch.TFRecordIterableDataset",
    "tfwire.torch.TFRecordMapDataset",
    "tfwire.torch.ThreadLoader",
}

pytestmark = pytest.mark.slow


def run(module, *arguments):
    if find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module} is not installed; make lint installs it")
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)


def marked():
    """The lines at fault."""
    return {
        (path.relative_to(HERE).as_posix(), number)
        for path in PROGRAMS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.endswith("# error")
    }


def test_there_are_programs_of_both_kinds():
    names = {path.name for path in PROGRAMS}
    assert names == {path.name for path in HERE.glob("accepted/*.py")}
    assert names == {path.name for path in HERE.glob("rejected/*.py")}
    assert {name.split("/")[0] for name, _ in marked()} == {"rejected"}


def test_programs_name_everything_public():
    import tfwire

    text = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("accepted/*.py"))
    named = set(re.findall(r"\b(?:tfw|checksum|sharding|images|train)\.(\w+)", text))
    named |= set(re.findall(r"^from tfwire import (.*)$", text, re.MULTILINE))
    for module in (tfwire.checksum, tfwire.train):
        assert set(module.__all__) - named <= PARTS
    modules = {name for name in tfwire.__all__ if inspect.ismodule(getattr(tfwire, name))}
    assert set(tfwire.__all__) - named - modules <= {"TfwireWarning"}


# Messages inside of others.
PARTS = {"BytesList", "FeatureList", "FeatureLists", "FloatList"}


def test_mypy():
    result = run("mypy", "--strict", "--no-error-summary", "--explicit-package-bases", *PROGRAMS)
    found = re.findall(r"^tests/typing/(\S+?):(\d+): error: ", result.stdout, re.MULTILINE)
    assert marked() == {(name, int(number)) for name, number in found}, result.stdout
    assert result.stdout.count(": error: ") == len(found), result.stdout
    assert not result.stderr


def test_pyright():
    result = run(
        "pyright", "-p", HERE / "pyrightconfig.json", "--pythonpath", sys.executable, "--outputjson"
    )
    faults = json.loads(result.stdout)["generalDiagnostics"]
    found = {
        (
            Path(fault["file"]).relative_to(HERE).as_posix(),
            fault["range"]["start"]["line"] + 1,
        )
        for fault in faults
    }
    assert marked() == found, [fault for fault in faults if "/accepted/" in fault["file"]]


def test_every_public_name_has_a_type():
    result = run("pyright", "--verifytypes", "tfwire", "--ignoreexternal", "--outputjson")
    report = json.loads(result.stdout)["typeCompleteness"]
    assert report["packageRootDirectory"] == str(PACKAGE)
    unknown = {s["name"] for s in report["symbols"] if s["isExported"] and not s["isTypeKnown"]}
    assert UNKNOWN >= unknown


def test_stubs_agree_with_the_modules():
    result = run(
        "mypy.stubtest", "tfwire", "--concise", "--ignore-unused-allowlist",
        "--mypy-config-file", "pyproject.toml", "--allowlist", HERE / "stubtest.txt",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
