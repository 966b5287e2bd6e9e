"""Every deliberate difference from TensorFlow: a row of docs/differences.md and a test each.

The rows of "Parsing messages" are proved by the case table (test_table.py); of each other row
the test here, or in test_data_differences.py, has the name, and shows what TensorFlow does before
it shows what tfwire does.
"""

from __future__ import annotations

import contextlib
import gzip
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from compared import LIBRARIES
from google.protobuf.message import DecodeError
from tensorflow.core.framework import tensor_pb2

import tfwire as tfw
from cases import wire
from cases.differences import PATTERNS
from helpers.view.pictures import others, pngs
from tfwire import compat, images

DOCUMENT = Path(__file__).parents[2] / "docs" / "differences.md"

InvalidArgument = tf.errors.InvalidArgumentError

EXAMPLE = wire.example({b"a": wire.feature(wire.INT64, [1, 2, 3])})


def documented():
    return re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT.read_text(), re.MULTILINE)


def test_every_difference_has_a_row_and_every_row_a_test():
    modules = sorted(Path(__file__).parent.glob("test_*differences.py"))
    text = "".join(module.read_text(encoding="utf-8") for module in modules)
    tests = {name.replace("_", "-") for name in re.findall(r"^def test_(\w+)", text, re.MULTILINE)}
    tests.discard("every-difference-has-a-row-and-every-row-a-test")
    rows = documented()
    assert len(set(rows)) == len(rows)
    assert {*PATTERNS, "process-dies"} | tests == set(rows)


# ---- Parsing messages: who looks into what ------------------------------------------------------


@pytest.mark.parametrize("damage", ["cut", "overrun", "odd group", "wire type"])
def test_not_asked_for(damage):
    """The same as in TensorFlow, whose parsers and messages differ from each other."""
    value = wire.feature(wire.INT64, [300, 2])
    broken = {
        "cut": value[:-1],
        "overrun": value[:1] + b"\x7f" + value[2:],
        "odd group": value + b"\x0b\x14",
        "wire type": value + b"\x0f",
    }[damage]
    message = wire.example({b"a": wire.feature(wire.INT64, [1]), b"b": broken})
    sequence = message + wire.feature_lists({b"l": [broken]})
    for io, int64 in ((tf.io, tf.int64), (tfw, tfw.int64)):
        features = {"a": io.FixedLenFeature([], int64)}
        found = [
            io.parse_single_example(message, features),
            io.parse_example([message], features),
            io.parse_single_sequence_example(sequence, features)[0],
            io.parse_sequence_example([sequence], features)[0],
        ]
        assert [[1]] * 4 == [np.ravel(values["a"]).tolist() for values in found]
    for cls, decode, data in (
        (tf.train.Example, tfw.decode_example, message),
        (tf.train.SequenceExample, tfw.decode_sequence_example, sequence),
    ):
        with pytest.raises(DecodeError):
            cls.FromString(data)
        with pytest.raises(tfw.ParseError, match="malformed"):
            decode(data)


# ---- Specs and errors -----------------------------------------------------------------------


def test_error_text():
    secret = b"secret" + b"\xff"
    with pytest.raises((InvalidArgument, UnicodeDecodeError)) as theirs:
        tf.io.parse_example([secret], {"a": tf.io.VarLenFeature(tf.int64)})
    assert isinstance(theirs.value, UnicodeDecodeError) or "secret" in str(theirs.value)
    with pytest.raises(tfw.ParseError) as ours:
        tfw.parse_example([secret], {"a": tfw.VarLenFeature(tfw.int64)})
    assert "secret" not in str(ours.value)
    assert "malformed" == ours.value.reason


def test_missing_index():
    batch = [EXAMPLE, EXAMPLE, b""]
    with pytest.raises(InvalidArgument) as theirs:
        tf.io.parse_example(batch, {"a": tf.io.FixedLenFeature([3], tf.int64)})
    assert "Index" not in str(theirs.value)
    with pytest.raises(tfw.ParseError) as ours:
        tfw.parse_example(batch, {"a": tfw.FixedLenFeature([3], tfw.int64)})
    assert (2, "a", "missing") == (ours.value.record_index, ours.value.feature, ours.value.reason)


def test_both_counts():
    with pytest.raises(InvalidArgument) as theirs:
        tf.io.parse_single_example(EXAMPLE, {"a": tf.io.FixedLenFeature([2], tf.int64)})
    assert "2" not in str(theirs.value).split("[Op:")[0].split("}}")[-1]
    with pytest.raises(tfw.ParseError) as ours:
        tfw.parse_single_example(EXAMPLE, {"a": tfw.FixedLenFeature([2], tfw.int64)})
    assert (2, 3) == (ours.value.expected, ours.value.found)


def ragged_message(partition):
    return wire.example(
        {b"v": wire.feature(wire.INT64, [1, 2]), b"p": wire.feature(wire.INT64, partition)}
    )


def ragged_spec(io, cls, **fields):
    partition = getattr(io.RaggedFeature, cls)("p")
    return {"r": io.RaggedFeature(io.int64, value_key="v", partitions=[partition], **fields)}


class TensorFlowIo:
    int64, int32, RaggedFeature = tf.int64, tf.int32, tf.io.RaggedFeature


def test_row_splits_range():
    message = ragged_message([0, 5])
    broken = tf.io.parse_single_example(message, ragged_spec(TensorFlowIo, "RowSplits"))["r"]
    assert [0, 5] == broken.row_splits.numpy().tolist()
    assert 2 == len(broken.values)
    with pytest.raises(tfw.ParseError, match="r") as ours:
        tfw.parse_single_example(message, ragged_spec(tfw, "RowSplits"))
    assert "r" == ours.value.feature


def test_row_ids():
    message = wire.example(
        {b"v": wire.feature(wire.INT64, [1]), b"p": wire.feature(wire.INT64, [2**24 + 2])}
    )
    rows = tf.io.parse_single_example(message, ragged_spec(TensorFlowIo, "ValueRowIds"))["r"]
    assert 2**24 + 3 == rows.nrows().numpy()
    with pytest.raises(tfw.ParseError, match="row ids are too large") as ours:
        tfw.parse_single_example(message, ragged_spec(tfw, "ValueRowIds"))
    assert "r" == ours.value.feature


def test_default_cast():
    default = np.array([1.5])
    features = {"a": tf.io.FixedLenFeature([1], tf.int64, default)}
    assert [1] == tf.io.parse_single_example(b"", features)["a"].numpy().tolist()
    with pytest.raises(TypeError, match="cannot convert"):
        tfw.parse_single_example(b"", {"a": tfw.FixedLenFeature([1], tfw.int64, default)})


def test_row_lengths_wrap():
    message = ragged_message([2**32 + 2])
    spec = ragged_spec(TensorFlowIo, "RowLengths", row_splits_dtype=tf.int32)
    wrapped = tf.io.parse_single_example(message, spec)["r"]
    assert [0, 2] == wrapped.row_splits.numpy().tolist()
    with pytest.raises(tfw.ParseError, match="r") as ours:
        tfw.parse_single_example(message, ragged_spec(tfw, "RowLengths"))
    assert "r" == ours.value.feature


def test_tensor_shape():
    """TensorFlow's part runs in a process of its own, which is ended before it is done."""
    shape = wire.field(2, wire.tag(1, 0) + wire.varint(2**62))
    tensor = wire.tag(1, 0) + wire.varint(1) + wire.field(2, shape) + wire.field(4, bytes(4))
    code = f"import tensorflow as tf; tf.io.parse_tensor({tensor!r}, tf.float32)"
    with pytest.raises((subprocess.TimeoutExpired, subprocess.CalledProcessError)):
        subprocess.run([sys.executable, "-c", code], check=True, timeout=20, capture_output=True)
    with pytest.raises(ValueError, match="shape"):
        tfw.parse_tensor(tensor, tfw.float32)


@pytest.mark.parametrize(
    ("size", "fields", "theirs"),
    [
        (2, {"int64_val": [1, 2, 3]}, [1, 2]),
        (2, {"float_val": [1.5, 2.5]}, [0, 0]),
        (0, {"tensor_content": bytes(8)}, []),
    ],
)
def test_tensor_values(size, fields, theirs):
    proto = tensor_pb2.TensorProto(dtype=tf.int64.as_datatype_enum, **fields)
    proto.tensor_shape.dim.add(size=size)
    serialized = proto.SerializeToString()
    assert theirs == tf.io.parse_tensor(serialized, tf.int64).numpy().tolist()
    with pytest.raises(tfw.ParseError, match=re.escape(f"shape [{size}] and type int64")):
        tfw.parse_tensor(serialized, tfw.int64)


def test_tensor_fill():
    proto = tensor_pb2.TensorProto(dtype=tf.int8.as_datatype_enum, int_val=[7])
    proto.tensor_shape.dim.add(size=2**27)
    serialized = proto.SerializeToString()
    assert 2**27 == tf.io.parse_tensor(serialized, tf.int8).shape[0]
    with pytest.raises(tfw.ParseError, match="more than max_fill"):
        tfw.parse_tensor(serialized, "int8")


@pytest.mark.parametrize("text", ["{'features': {}}", '{"features": {},}', "{features: {}}"])
def test_json_syntax(text):
    assert b"\n\0" == tf.io.decode_json_example(text).numpy()
    with pytest.raises(tfw.ParseError, match="no Example"):
        tfw.decode_json_example(text)


def test_json_lists():
    for kind, values, found in [
        ("int64List", "[1, null]", [1, 0]),
        ("floatList", "[null]", [0.0]),
        ("bytesList", "[null]", [b""]),
        ("int64List", "[[1, 2], [3]]", [1, 2, 3]),
        ("floatList", "[[]]", []),
    ]:
        assert found == values_of_json(kind, values)


def test_json_numbers():
    for kind, number, found in [
        ("int64List", "0x10", 16),
        ("floatList", "-0x1.8", -1.5),
        ("floatList", " 1", 1),
        ("floatList", "INF", np.inf),
    ]:
        assert [found] == values_of_json(kind, f'["{number}"]')


def values_of_json(kind, values):
    """What TensorFlow reads; tfwire refuses it."""
    text = f'{{"features": {{"feature": {{"a": {{"{kind}": {{"value": {values}}}}}}}}}}}'
    with pytest.raises(tfw.ParseError, match=r"value \d"):
        tfw.decode_json_example(text)
    example = tf.train.Example.FromString(tf.io.decode_json_example(text).numpy())
    feature = example.features.feature["a"]
    return list(getattr(feature, feature.WhichOneof("kind")).value)


def test_json_packing():
    text = '{"features": {"feature": {"a": {"int64List": {"value": [1, 2]}}}}}'
    theirs = tf.io.decode_json_example(text).numpy()
    ours = tfw.decode_json_example(text)
    assert (b"\x1a\x04\x08\x01\x08\x02", b"\x1a\x04\n\x02\x01\x02") == (theirs[-6:], ours[-6:])
    assert tf.train.Example.FromString(theirs) == tf.train.Example.FromString(ours)


def test_key_order():
    message = wire.example({k: wire.feature(wire.INT64, [1]) for k in (b"a", b"b", b"c")})

    def spec(io):
        return {
            "c": io.FixedLenFeature([], io.int64),
            "a": io.FixedLenFeature([], io.int64),
            "b": io.VarLenFeature(io.int64),
        }

    class Io:
        int64 = tf.int64
        FixedLenFeature, VarLenFeature = tf.io.FixedLenFeature, tf.io.VarLenFeature

    assert ["b", "a", "c"] == list(tf.io.parse_single_example(message, spec(Io)))
    assert ["c", "a", "b"] == list(tfw.parse_single_example(message, spec(tfw)))


# ---- Code with one import changed ---------------------------------------------------------------


def test_py_function_list():
    assert 1 == tf.py_function(lambda: [1, 2], [], tf.int32).numpy()
    assert [1, 2] == compat.py_function(lambda: [1, 2], [], compat.int32).numpy().tolist()


def test_py_function_error():
    with pytest.raises(tf.errors.UnknownError, match="ZeroDivisionError"):
        tf.py_function(lambda: 1 / 0, [], tf.int32)
    with pytest.raises(ZeroDivisionError):
        compat.py_function(lambda: 1 / 0, [], compat.int32)


def test_sparse_rows():
    def rows(lib):
        values = lib.SparseTensor([[1, 0], [0, 0]], ["one", "zero"], [2, 1])
        return lib.RaggedTensor.from_sparse(values).to_list()

    assert [[b"one"], [b"zero"]] == rows(tf)
    assert [[b"zero"], [b"one"]] == rows(compat)


def test_complex_as_real():
    value = np.array([1.5 + 2j])
    with pytest.warns(np.exceptions.ComplexWarning):
        theirs = tf.constant(value, tf.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = compat.constant(value, compat.float32), compat.cast(value, compat.float32)
    assert all(theirs.numpy() == each.numpy() for each in ours)


def test_numpy_function():
    assert b"a" == tf.numpy_function(lambda x: x, [b"a\0"], tf.string).numpy()
    assert tf.float64 == tf.numpy_function(lambda: np.float64(1), [], tf.float32).dtype
    assert b"a\0" == compat.numpy_function(lambda x: x, [b"a\0"], compat.string).numpy()
    with pytest.raises(compat.errors.InvalidArgumentError):
        compat.numpy_function(lambda: np.float64(1), [], compat.float32)


def test_file_errors(tmp_path):
    for library, classes in (
        (tf, [tf.errors.NotFoundError]),
        (compat, [compat.errors.NotFoundError, compat.errors.OpError, FileNotFoundError]),
    ):
        for cls in classes:
            with pytest.raises(cls) as caught:
                library.io.read_file(str(tmp_path / "none"))
        assert isinstance(caught.value, FileNotFoundError) == (library is compat)


def test_cut_text(tmp_path):
    (tmp_path / "text").write_bytes(gzip.compress(b"one\ntwo\n")[:-8])
    read = [library.data.TextLineDataset(str(tmp_path / "text"), "GZIP") for library in LIBRARIES]
    assert [b"one", b"two"] == list(read[0].as_numpy_iterator())
    with pytest.raises(compat.errors.DataLossError):
        list(read[1])


def test_copy_onto_itself(tmp_path):
    path = tmp_path / "file"
    for library in reversed(LIBRARIES):
        path.write_bytes(b"content")
        with contextlib.suppress(compat.errors.InvalidArgumentError):
            library.io.gfile.copy(str(path), str(path), overwrite=True)
            assert library is tf
        assert (b"" if library is tf else b"content") == path.read_bytes()


def test_endless_files():
    for library in LIBRARIES:
        assert b"\0" * 5 == library.io.gfile.GFile("/dev/zero", "rb").read(5)
    assert b"" == tf.io.gfile.GFile("/dev/zero", "rb").read()
    for read in (lambda file: file.read(), lambda file: file.readline(), list):
        with pytest.raises(ValueError, match="an input that ends"):
            read(compat.io.gfile.GFile("/dev/zero", "rb"))


def test_cache_folder(tmp_path):
    path = str(tmp_path / "new" / "cached")
    with pytest.raises(tf.errors.NotFoundError):
        list(tf.data.Dataset.range(2).cache(path))
    assert 2 == len(list(compat.data.Dataset.range(2).cache(path)))


def test_padding_error():
    def padded(library):
        dataset = library.data.Dataset.range(1, 3).map(lambda x: library.fill([x], x))
        return list(dataset.padded_batch(2, [1]))

    with pytest.raises(tf.errors.DataLossError):
        padded(tf)
    with pytest.raises(compat.errors.InvalidArgumentError):
        padded(compat)


def test_accepted_dtypes():
    for dtype in (int, str):
        with pytest.raises(TypeError):
            tf.as_dtype(dtype)
    assert (compat.int64, compat.string) == (compat.as_dtype(int), compat.as_dtype(str))


# ---- Images -------------------------------------------------------------------------------------


def test_png_alpha():
    content = pngs()["grey_4"]
    assert {15} == {*tf.io.decode_png(content, 4).numpy()[..., 3].flat}
    assert {255} == {*images.decode(content, 4)[..., 3].flat}


def test_png_grey():
    content = pngs()["rgb_16"]
    theirs, ours = tf.io.decode_png(content, 1).numpy(), images.decode(content, 1)
    assert 1 == np.abs(theirs.astype(int) - ours).max()


def test_jpeg_rounding():
    content = others()["jpeg_rgb"]
    theirs, ours = tf.io.decode_jpeg(content).numpy(), images.decode(content)
    assert 1 <= np.abs(theirs.astype(int) - ours).max() <= 5


def test_bmp_alpha():
    content = others()["bmp_alpha"]
    assert 4 == tf.io.decode_image(content).shape[2]
    assert 3 == images.decode(content).shape[2]


@pytest.mark.parametrize(("name", "channels"), [("gif", 1), ("bmp_rgb", 1), ("jpeg_rgb", 4)])
def test_image_channels(name, channels):
    with pytest.raises(InvalidArgument):
        tf.io.decode_image(others()[name], channels)
    assert channels == images.decode(others()[name], channels).shape[2]


def test_image_options():
    assert np.uint16 == tf.io.decode_png(pngs()["grey_16"], dtype=tf.uint16).numpy().dtype
    with pytest.raises(ValueError, match="decoded to uint8"):
        compat.io.decode_png(pngs()["grey_16"], dtype=compat.uint16)
    cut = others()["jpeg_rgb"][:-2]
    assert (40, 60, 3) == tf.io.decode_jpeg(cut, try_recover_truncated=True).shape
    with pytest.raises(ValueError, match="not available"):
        compat.io.decode_jpeg(cut, try_recover_truncated=True)


# ---- Datasets -------------------------------------------------------------------------------


def test_padding_limit():
    """TensorFlow is shown a batch of 32 MiB, not of the 2 GiB that tfwire refuses."""

    def elements(longest):
        return lambda: [np.zeros(longest), *[np.zeros(0)] * 1023]

    spec = tf.TensorSpec([None], tf.float64)
    theirs = tf.data.Dataset.from_generator(elements(1 << 12), output_signature=spec)
    assert (1024, 1 << 12) == next(iter(theirs.padded_batch(1024))).shape
    ours = tfw.Dataset.from_generator(elements(1 << 12))
    assert (1024, 1 << 12) == next(iter(ours.padded_batch(1024))).shape
    ours = tfw.Dataset.from_generator(elements(1 << 18))
    with pytest.raises(ValueError, match="max_padding"):
        next(iter(ours.padded_batch(1024)))


def test_parse_padding_limit():
    """TensorFlow is shown a batch of 5 MB, not of the 1.4 GB that tfwire refuses."""
    spec = {"a": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}

    def messages(longest):
        lengths = [longest, *[1] * 300]
        return [tfw.encode_example({"a": np.zeros(length, np.int64)}) for length in lengths]

    assert (301, 2000) == tf.io.parse_example(messages(2000), spec)["a"].shape
    assert (301, 2000) == tfw.parse_example(messages(2000), spec)["a"].shape
    with pytest.raises(ValueError, match="bytes of padding"):
        tfw.parse_example(messages(600_000), spec)


def test_dense_padding_limit():
    """TensorFlow is shown an array of 16 MB, not of the 1.6 GB that tfwire refuses."""

    def sparse(kind, columns):
        return kind(np.array([[0, 0]]), np.array([7]), np.array([1000, columns]))

    small = tf.sparse.to_dense(sparse(tf.SparseTensor, 2000)).numpy()
    assert (small == sparse(tfw.SparseTensor, 2000).to_dense()).all()
    assert (small == compat.sparse.to_dense(sparse(tfw.SparseTensor, 2000)).numpy()).all()
    with pytest.raises(ValueError, match="max_padding"):
        sparse(tfw.SparseTensor, 200_000).to_dense()
