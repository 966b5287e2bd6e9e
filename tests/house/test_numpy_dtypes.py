"""Every array that goes to C, or is a result, has its dtype said.

numpy before 2 makes int32 of Python's integers on Windows, and C reads int64.
"""

from __future__ import annotations

import ast

import numpy as np
import pytest

import tfwire as tfw
from helpers.paths import PACKAGE
from helpers.processes import windows_numpy
from tfwire.arrow import open_reader

# ---- What the sources say -----------------------------------------------------------------------

# numpy's functions whose result has a default dtype, and the position of the argument `dtype`.
_MAKERS = {
    **dict.fromkeys(["array", "asarray", "zeros", "ones", "empty"], 1),
    **dict.fromkeys(["ascontiguousarray", "asfortranarray", "fromiter", "frombuffer", "tri"], 1),
    **dict.fromkeys(["full", "cumsum", "cumprod", "sum", "prod", "indices", "identity"], 2),
    "arange": 3,
    "eye": 3,
    "linspace": 5,
}
# Methods of arrays and of random generators.
_METHODS = {"sum": 1, "cumsum": 1, "prod": 1, "cumprod": 1, "integers": 3}
# Modules that convert without a dtype: what they convert has one, or it is looked at next.
_CONVERTING = {
    "a caller's values: the kind of dtype decides what becomes of them": {
        *("_base/arrays.py", "_base/strings.py", "_data/structure.py", "_examples/values.py"),
        *("_examples/encoder_inputs.py", "_examples/column_types.py", "_examples/tensor_protos.py"),
        *("_examples/decode_raw.py", "_examples/missing.py", "_examples/nested.py"),
        *("_parsing/native_session.py", "_records/index/record_sequence.py"),
        "_records/index/record_keys.py",
        *("compat/_constants.py", "compat/_tensor.py"),
    },
    "arrays already: their memory is put in order, or a scalar becomes an array": {
        *("_examples/dtypes.py", "compat/_math.py", "compat/_decoding.py"),
        *("compat/_images.py", "compat/_data/fingerprints.py"),
        *("compat/_data/caching.py", "torch/_tensors.py", "torch/_worker_batches.py"),
        *("view/_display.py", "cli/demo.py"),
    },
    "pixels of Pillow": {"images/_pillow.py", "cli/demo.py"},
}


def undeclared(text, of_torch=False):
    """The calls that leave a dtype to numpy, and uses of ``int`` as one. Of torch, methods may be
    those of tensors, whose sums of integers are int64 everywhere."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        if name not in (*_MAKERS, *_METHODS, "astype"):
            continue
        owner = ast.unparse(node.func.value)
        if owner in ("math", "torch"):
            continue
        of_numpy = owner == "np"
        place = _MAKERS.get(name) if of_numpy else None if of_torch else _METHODS.get(name)
        said = [*node.args, *(k.value for k in node.keywords if k.arg == "dtype")]
        by_word = any(k.arg == "dtype" for k in node.keywords)
        by_default = place is not None and len(node.args) <= place and not by_word
        may_be_int = of_numpy or name == "astype"
        if by_default or (may_be_int and any(ast.unparse(part) == "int" for part in said)):
            yield node


def test_dtypes_are_said():
    """But by the modules that convert, and only in conversions."""
    converting, expected = set(), set().union(*_CONVERTING.values())
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        calls = list(undeclared(path.read_text(encoding="utf-8"), name.startswith("torch/")))
        others = [node for node in calls if name not in expected or not is_conversion(node)]
        assert [] == [f"{name}:{node.lineno}: {ast.unparse(node)}" for node in others]
        converting |= {name} if calls else set()
    assert expected == converting


def is_conversion(node):
    return ast.unparse(node.func) in ("np.asarray", "np.ascontiguousarray", "np.array")


@pytest.mark.parametrize(
    "text",
    [
        *("np.arange(3)", "np.arange(0, 3)", "np.array([1])", "np.asarray(x)", "np.cumsum(x)"),
        *("np.zeros(3)", "np.full(3, 1)", "np.fromiter(x)", "x.sum()", "x.cumsum()", "np.sum(x)"),
        *("rng.integers(0, 5, 3)", "x.astype(int)", "np.empty(3, int)", "np.zeros(3, dtype=int)"),
    ],
)
def test_the_rule_finds_what_it_is_for(text):
    assert list(undeclared(text))
    said = {"x.astype(int)": "x.astype(np.int64)"}.get(text)
    said = said or text.replace("dtype=int", "dtype=t").replace(", int)", ", t)")
    said = said if said != text else text[:-1] + ", dtype=np.int64)"
    said = said.replace("(, ", "(")
    assert not list(undeclared(said))


# ---- What C gets, and what results are ----------------------------------------------------------

ROWS = [
    {
        **dict.fromkeys(["i", "at", "w"], n),
        "x": [0.5, 1.5],
        "u": [n, n + 1],
        "v": list(range(n % 4)),
        "q": [n] * (n % 3),
        "s": [b"a" * (n % 3)] * (n % 2),
    }
    for n in range(200)
]
FEATURES = {
    "i": tfw.FixedLenFeature([], tfw.int64),
    "x": tfw.FixedLenFeature([2], tfw.float32),
    "v": tfw.VarLenFeature(tfw.int64),
    "s": tfw.RaggedFeature(tfw.string),
    "u": tfw.RaggedFeature(tfw.int64, partitions=[tfw.RaggedFeature.UniformRowLength(1)]),
    "q": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True),
    "sparse": tfw.SparseFeature("at", "w", tfw.int64, 300),
}


def plain(value):
    """A result with the dtypes in it, to be compared."""
    if isinstance(value, (np.ndarray, np.generic)):
        return str(value.dtype), np.asarray(value).tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, tfw.RaggedTensor):
        return plain(value.values), plain(value.row_splits)
    if isinstance(value, tfw.BytesColumn):
        return plain(value.data), plain(value.offsets)
    return value


def everything(folder):
    """Results of most of what passes arrays to C."""
    path, packed = folder / "rows", folder / "rows.gz"
    tfw.write_records(path, ROWS)
    tfw.write_records(packed, ROWS, "GZIP")
    with tfw.TFRecordWriter(folder / "columns") as writer:
        writer.write_columns({"i": range(50), "s": [b"a", b"bc"] * 25, "v": [[1], [2, 3]] * 25})
    records = list(tfw.read_records(path))
    yield tfw.encode_columns({"i": [1, 2, 3], "v": [[1], [], [2, 3]], "s": ["a", "b", "c"]})
    yield tfw.encode_examples(ROWS[:9])
    for file in (path, packed, folder / "columns"):
        tfw.RecordIndex.build(file).save()
        with tfw.TFRecordFile(file) as found:
            yield found[3:40:2], found[-1::-7], found[[5, 1, 1]], found[7], list(found)[::50]
    index = tfw.RecordIndex.load(path)
    yield index.offsets, len(index)
    with tfw.TFRecordFiles([path, packed]) as found:
        yield found[150:250:9], found[[399, 0]]
    for dataset in (
        tfw.TFRecordDataset(path).shuffle(50, 1),
        tfw.TFRecordDataset(path, indexed=True).shuffle(1000, 1).shard_source(3, 1),
        tfw.TFRecordDataset([path, path], shuffle_files=True, seed=1).take(250),
    ):
        yield list(dataset.batch(64).parse_example(FEATURES))
        yield list(dataset.parse_example(FEATURES).take(3))
    numbers = tfw.Dataset.from_tensor_slices({"a": [1, 2, 3, 4], "b": [[1], [2], [3], [4]]})
    yield list(numbers.shuffle(3, 1).batch(2)), list(numbers.enumerate())
    yield list(tfw.Dataset.range(5).batch(2)), list(numbers.padded_batch(3, padding_values=7))
    for bytes_as in ("object", "column"):
        parser = tfw.Parser(FEATURES, bytes_as=bytes_as)
        yield parser.parse(records), parser.parse_single(records[3]), list(parser.parse_file(path))
    yield [tfw.decode_example(record) for record in records[:5]], tfw.infer_schema(path)
    for batch in open_reader([path, packed], FEATURES, with_positions=True, batch_size=32):
        yield batch.num_rows
    yield tfw.BytesColumn(b"catdog", [0, 3, 6]).take(np.array([1, 0])).to_list()
    yield tfw.serialize_tensor([[1, 2], [3, 4]])


def test_results_do_not_depend_on_the_default_integer(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    expected = [plain(result) for result in everything(tmp_path / "a")]
    checked = windows_numpy.install(monkeypatch.setattr)
    found = [plain(result) for result in everything(tmp_path / "b")]
    assert len(expected) == len(found)
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert one == other, number
    assert {"int64_t[]", "tfw_span[]"} <= checked.seen
