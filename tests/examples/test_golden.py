"""Golden values: bytes that TensorFlow and its tutorials wrote, and what they mean."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib

import numpy as np
import pytest

import tfwire as tfw
from helpers.paths import GOLDEN

pytestmark = pytest.mark.short_strings

GOAT = {"feature0": False, "feature1": 4, "feature2": b"goat", "feature3": 0.9876}
GOAT_BYTES = (
    b"\nR\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00"
    b"\n\x11\n\x08feature1\x12\x05\x1a\x03\n\x01\x04"
    b"\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat"
    b"\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04[\xd3|?"
)
GOAT_SPEC = {
    "feature0": tfw.FixedLenFeature([], tfw.int64),
    "feature1": tfw.FixedLenFeature([], tfw.int64),
    "feature2": tfw.FixedLenFeature([], tfw.string),
    "feature3": tfw.FixedLenFeature([], tfw.float32),
}


def load(name):
    return json.loads((GOLDEN / name).read_text())


def tutorial_records(page=None):
    return [r for r in load("tutorial_records.json") if page in (None, r["page"])]


def plain(values):
    """decode_example's values as [kind, values] of the .json files; a kind of None is no kind."""
    if isinstance(values, np.ndarray) and values.dtype == np.float32:
        return ["float", values.view(np.uint32).tolist()]
    if isinstance(values, np.ndarray):
        return ["bytes" if values.dtype == object else values.dtype.name, values.tolist()]
    return ["bytes" if values else None, [value.hex() for value in values]]


# ---- The tutorials --------------------------------------------------------------------------


def test_float_feature_of_e_has_the_bytes_that_the_tutorials_print():
    assert b"\x12\x06\n\x04T\xf8-@" == tfw.float_feature(np.exp(1)).SerializeToString()


def test_observation_is_encoded_as_the_tutorials_print():
    assert 84 == len(GOAT_BYTES)
    assert GOAT_BYTES == tfw.encode_example(GOAT)


def test_observation_framed_is_the_file_that_tensorflow_writes(tmp_path):
    path = tmp_path / "goat.tfrecord"
    tfw.write_records(path, [GOAT_BYTES])
    written = path.read_bytes()
    assert bytes.fromhex("54000000000000005f514587") == written[:12]
    assert bytes.fromhex("b524e9be") == written[-4:]
    digest = "f5444e76c0670439274ff85c1969b5d0cda08b4e941e9ef1b4dca83bf3abb2c1"
    assert digest == hashlib.sha256(written).hexdigest()


def test_key_order_does_not_change_what_an_example_means():
    """The Korean page prints the same observation with the keys in the order 2, 1, 3, 0."""
    entries = [GOAT_BYTES[2:21], GOAT_BYTES[21:40], GOAT_BYTES[40:62], GOAT_BYTES[62:84]]
    shuffled = GOAT_BYTES[:2] + b"".join(entries[i] for i in (2, 1, 3, 0))
    assert 0x5CCA529F == tfw.checksum.masked_crc32c(shuffled)
    assert tfw.decode_example(GOAT_BYTES) == tfw.decode_example(shuffled)
    row = tfw.parse_single_example(shuffled, GOAT_SPEC)
    assert (0, 4, b"goat", np.float32(0.9876)) == tuple(row[f"feature{i}"] for i in range(4))


@pytest.mark.parametrize(
    ("masked", "order", "observation"),
    [
        (0xD473C461, (0, 1, 2, 3), (True, 4, b"goat", 1.6098582698561394)),
        (0x402ACEB0, (2, 1, 3, 0), (False, 3, b"horse", 1.0832757175695589)),
    ],
)
def test_observations_of_tf_serialize_example_have_their_checksums(masked, order, observation):
    row = {f"feature{i}": observation[i] for i in order}
    assert masked == tfw.checksum.masked_crc32c(tfw.encode_example(row, sort_keys=False))


@pytest.mark.parametrize(
    ("page", "size", "digest"),
    [
        ("ko", 1009, "e1de3dce9a4bbfed98594261670b744ed6cf87e94c08cc927d32878cd55e553c"),
        ("zh", 1001, "ba3e8b78a703b10998ac9d25fb772ea8ca94023586e29120b0424d3707bae8a1"),
    ],
)
def test_ten_printed_records_make_the_file_of_the_tutorial(tmp_path, page, size, digest):
    records = [bytes.fromhex(r["serialized"]) for r in tutorial_records(page)]
    path = tmp_path / "ten.tfrecord"
    assert 10 == tfw.write_records(path, records)
    assert (size, digest) == (path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    assert records == list(tfw.read_records(path))


def test_29_printed_records_parse_to_the_rows_that_the_tutorials_print():
    """Three runs of the tutorial, with more than a dozen key orders among them."""
    records = tutorial_records()
    assert 29 == len(records)
    serialized = [bytes.fromhex(r["serialized"]) for r in records]
    columns = tfw.parse_example(serialized, GOAT_SPEC)
    for i, (message, record) in enumerate(zip(serialized, records, strict=True)):
        expected = [*record["row"][:2], record["row"][2].encode(), np.float32(record["row"][3])]
        assert expected == [columns[f"feature{f}"][i] for f in range(4)]
        single = tfw.parse_single_example(message, GOAT_SPEC)
        assert expected == [single[f"feature{f}"] for f in range(4)]
        decoded = tfw.decode_example(message)
        assert expected == [decoded[f"feature{f}"][0] for f in range(4)]


@pytest.mark.parametrize(
    ("size", "animal"),
    [(99, b"cat"), (99, b"dog"), (100, b"goat"), (101, b"horse"), (103, b"chicken")],
)
def test_framed_size_of_an_observation(tmp_path, size, animal):
    path = tmp_path / "one.tfrecord"
    tfw.write_records(path, [tfw.encode_example({**GOAT, "feature2": animal})])
    assert size == path.stat().st_size


# ---- Tensors, checksums, integers -----------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "wire"), [(-1, b"\xff" * 9 + b"\x01"), (-(2**63), b"\x80" * 9 + b"\x01")]
)
def test_negative_integers_take_ten_bytes(value, wire):
    """The bytes of -1 are also those of an uint64's greatest value, which so reads as -1."""
    message = b"\n\x15\n\x13\n\x01a\x12\x0e\x1a\x0c\n\x0a" + wire
    assert message == tfw.encode_example({"a": value})
    assert [value] == tfw.decode_example(message)["a"].tolist()


# ---- Files that TensorFlow wrote ------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz", ".zlib"])
def test_examples_written_by_tensorflow_decode_to_what_was_meant(suffix):
    records = list(tfw.read_records(GOLDEN / f"examples.tfrecord{suffix}"))
    expected = load("examples.json")
    assert len(expected) == len(records)
    for features, record in zip(expected, records, strict=True):
        assert features == {key: plain(v) for key, v in tfw.decode_example(record).items()}


def test_sequence_examples_written_by_tensorflow_decode_to_what_was_meant():
    records = list(tfw.read_records(GOLDEN / "sequences.tfrecord"))
    for (context, lists), record in zip(load("sequences.json"), records, strict=True):
        found_context, found_lists = tfw.decode_sequence_example(record)
        assert context == {key: plain(values) for key, values in found_context.items()}
        found = {key: [plain(step) for step in steps] for key, steps in found_lists.items()}
        assert lists == found


def test_decoded_examples_encode_to_tensorflows_bytes():
    """Sorted keys and packed lists: what TensorFlow serializes deterministically."""
    for record in tfw.read_records(GOLDEN / "examples.tfrecord"):
        assert record == tfw.encode_example(tfw.decode_example(record))


def test_plain_file_is_written_with_tensorflows_bytes(tmp_path):
    records = list(tfw.read_records(GOLDEN / "examples.tfrecord"))
    tfw.write_records(tmp_path / "ours.tfrecord", records)
    assert (GOLDEN / "examples.tfrecord").read_bytes() == (tmp_path / "ours.tfrecord").read_bytes()


@pytest.mark.parametrize(
    ("name", "compression", "inflate"),
    [
        ("examples.tfrecord.gz", "GZIP", gzip.decompress),
        ("examples.tfrecord.zlib", "ZLIB", zlib.decompress),
    ],
)
def test_compressed_file_holds_tensorflows_bytes(tmp_path, name, compression, inflate):
    records = list(tfw.read_records(GOLDEN / name))
    tfw.write_records(tmp_path / name, records, compression)
    assert inflate((GOLDEN / name).read_bytes()) == inflate((tmp_path / name).read_bytes())


@pytest.mark.parametrize("suffix", ["", ".gz", ".zlib"])
def test_file_without_records(suffix):
    assert [] == list(tfw.read_records(GOLDEN / f"empty.tfrecord{suffix}"))


def test_record_without_bytes():
    assert [b""] == list(tfw.read_records(GOLDEN / "empty_record.tfrecord"))


def test_record_longer_than_every_buffer():
    expected = [b"a", bytes(700_000), b"z"]
    assert expected == list(tfw.read_records(GOLDEN / "long_record.tfrecord.gz"))
