"""What type checkers refuse, tfwire refuses at run time too: the calls of rejected/."""

from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw

NAMES = """
import io
import numpy as np
import tfwire as tfw
from tfwire import arrow, checksum, images, sharding, train
label = {"label": tfw.FixedLenFeature([], tfw.int64)}
tags = {"tags": tfw.VarLenFeature(tfw.string)}
parser = tfw.Parser(label)
records = tfw.TFRecordDataset("a")
"""
# Feature objects are plain named tuples, checked with their key by what compiles them. Values of a
# RaggedTensor are not looked at. A comparison is no call.
LATER = (
    "tfw.FixedLenFeature([], 3)",
    'tfw.FixedLenFeature(["2"], tfw.int64)',
    "tfw.VarLenFeature(3)",
    'tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing="yes")',
    'tfw.SparseFeature("index", "value", tfw.int64, size="4")',
    "tfw.RaggedTensor(3, [0, 1])",
    'train.Feature().WhichOneof("kind") == "string_list"',
)
CALLS = [
    line.removesuffix("  # error")
    for path in sorted((Path(__file__).parent / "rejected").glob("*.py"))
    if path.name != "compat_programs.py"
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.endswith("# error") and not line.startswith(" ")
]


def test_there_are_calls():
    assert len(CALLS) > 100
    assert set(LATER) < set(CALLS)


@pytest.mark.parametrize("call", [call for call in CALLS if call not in LATER])
def test_a_wrong_call_is_refused(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tfw.write_records("a", [{"label": 1, "tags": ["x"]}])
    before = Path("a").read_bytes()
    scope = {"np": np}
    exec(NAMES, scope)
    with pytest.raises((TypeError, ValueError, AttributeError, KeyError)):
        exec(call, scope)
    assert before == Path("a").read_bytes()
