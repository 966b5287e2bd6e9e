"""What Python reads of hostile input: tensors, raw memory, JSON and compressed streams.

Each test runs as often as the profile says; ``make campaign`` runs each 100,000 times."""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib

import numpy as np
import pytest
from google.protobuf import json_format
from hypothesis import given, strategies as st

import tfwire as tfw
from cases.wire import field, varint
from helpers.reading import Bytes, inflatable, read_outcome
from helpers.reference import file_of, read
from tfwire import train

NUMBERS = ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32"]
NUMBERS += ["float64", "complex64"]

# ---- Mutations ----------------------------------------------------------------------------------

PLACES = st.integers(0, 2**16)
EDGES = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)
MUTATIONS = st.lists(
    st.tuples(st.sampled_from(["cut", "drop", "flip", "set", "insert", "double"]), PLACES, EDGES),
    max_size=4,
)


def mutated(data: bytes, mutations: list[tuple[str, int, int]]) -> bytes:
    out = bytearray(data)
    for what, place, value in mutations:
        at = place % (len(out) + 1)
        if what == "cut":
            del out[at:]
        elif what == "drop":
            del out[at : at + 1 + value % 8]
        elif what == "insert":
            out.insert(at, value)
        elif what == "double":
            out[at:at] = out[at : at + 1 + value]
        elif at < len(out):
            out[at] = value if what == "set" else out[at] ^ 1 << value % 8
    return bytes(out)


# ---- Tensors ------------------------------------------------------------------------------------


SIZES = st.sampled_from([0, 1, 2, 3, 2**31, 2**32, 2**62, 2**63, 2**64 - 1]) | st.integers(0, 70)


@st.composite
def tensors(draw: st.DrawFn) -> tuple[bytes, str]:
    """A tensor as it is written, or one of any shape with values that need not be enough; damaged
    or not. With it the type that it may have."""
    name = draw(st.sampled_from([*NUMBERS, "string"]))
    if draw(st.booleans()):
        shape = draw(st.lists(st.integers(0, 3), max_size=3))
        array = np.zeros(shape, object if name == "string" else name)
        array[...] = b"ab" if name == "string" else 1
        data = tfw.serialize_tensor(array)
    else:
        empty = tfw.serialize_tensor(np.zeros(0, object if name == "string" else name))
        sizes = b"".join(
            field(2, b"\x08" + varint(size)) for size in draw(st.lists(SIZES, max_size=5))
        )
        values = st.tuples(st.integers(4, 17), st.binary(max_size=24))
        lists = b"".join(field(*pair) for pair in draw(st.lists(values, max_size=3)))
        data = empty[:2] + field(2, sizes) + lists
    return mutated(data, draw(MUTATIONS)), name


@given(tensors(), st.sampled_from([None, *NUMBERS]))
def test_a_tensor_is_an_error_or_what_it_says_in_bounded_memory(tensor, other_type):
    data, name = tensor
    name = other_type or name
    with contextlib.suppress(tfw.ParseError):
        found = tfw.parse_tensor(data, name, max_fill=1 << 16)
        array = np.asarray(found, object if name == "string" else None)
        assert array.nbytes <= max(1 << 16, 8 * len(data))
        again = np.asarray(tfw.parse_tensor(tfw.serialize_tensor(array), name), array.dtype)
        assert array.shape == again.shape
        if name == "string":
            assert array.ravel().tolist() == again.ravel().tolist()
        else:
            assert array.tobytes() == again.tobytes()


@given(
    st.lists(st.binary(max_size=20), max_size=4),
    st.sampled_from(NUMBERS),
    st.booleans(),
    st.none() | st.integers(-2, 24),
)
def test_raw_bytes_are_the_memory_that_numpy_sees(strings, name, little_endian, fixed_length):
    dtype = np.dtype(name)
    length = len(strings[0]) if strings and fixed_length is None else fixed_length or 0
    bad = fixed_length is not None and (fixed_length <= 0 or fixed_length % dtype.itemsize)
    if fixed_length is None:
        bad = length % dtype.itemsize or any(len(string) != length for string in strings)
    if bad:
        with pytest.raises(ValueError, match=r"bytes|multiple"):
            tfw.decode_raw(strings, name, little_endian, fixed_length)
        return
    found = tfw.decode_raw(strings, name, little_endian, fixed_length)
    padded = b"".join(string[:length].ljust(length, b"\0") for string in strings)
    if name == "bool":
        expected = np.frombuffer(padded, np.uint8) != 0
    else:
        expected = np.frombuffer(padded, dtype.newbyteorder("<" if little_endian else ">"))
    assert expected.astype(dtype).tobytes() == found.tobytes()
    assert (len(strings), length // dtype.itemsize) == found.shape or not strings


# ---- JSON ---------------------------------------------------------------------------------------

KINDS = ["int64List", "floatList", "bytesList", "int64_list", "value", "feature", "features", "x"]
LEAVES = (
    st.sampled_from([None, True, "", "YQ==", "YQ", "-_8", "1", "-0", "1.0", "1e3", "NaN", "1e400"])
    | st.sampled_from([2**63, -(2**63), 2**64, 1.5, 3.4028235e38, 3.4028236e38, 1e400])
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
)
LISTS = st.builds(lambda kind, values: {kind: {"value": values}}, st.sampled_from(KINDS[:4]),
                  st.lists(LEAVES, max_size=3) | LEAVES)  # fmt: skip
TREES = st.recursive(
    LEAVES | LISTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KINDS) | st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
EXAMPLES = st.builds(
    lambda features: {"features": {"feature": features}},
    st.dictionaries(st.text(max_size=3), LISTS | TREES, max_size=3),
)


@given(EXAMPLES | TREES, MUTATIONS)
def test_json_is_an_error_or_the_example_that_protobuf_reads(tree, mutations):
    text = mutated(json.dumps(tree).encode(), mutations)
    try:
        serialized = tfw.decode_json_example(text)
    except tfw.ParseError:
        return
    assert serialized == tfw.decode_json_example(tfw.example_to_json(serialized))
    with contextlib.suppress(json_format.ParseError, UnicodeDecodeError):
        expected = json_format.Parse(text, train.Example())
        assert expected.SerializeToString(deterministic=True) == serialized


# ---- Compressed streams -------------------------------------------------------------------------


def deflated(data: bytes, wbits: int, level: int, flush: int) -> bytes:
    """A stream, flushed in the middle in one of the ways that there are."""
    deflater = zlib.compressobj(level, zlib.DEFLATED, wbits)
    half = len(data) // 2
    begin = deflater.compress(data[:half]) + deflater.flush(flush)
    return begin + deflater.compress(data[half:]) + deflater.flush()


FLUSHES = st.sampled_from([zlib.Z_NO_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH])
RECORDS = st.lists(st.binary(max_size=12) | st.integers(0, 60).map(bytes), max_size=5)
LEVELS = st.sampled_from([0, 1, 9])


@given(RECORDS, st.sampled_from([("GZIP", 31), ("ZLIB", 15)]), LEVELS, FLUSHES, MUTATIONS)
def test_of_a_damaged_stream_all_whole_records_come_and_then_the_error(
    records, kind, level, flush, mutations
):
    name, wbits = kind
    data = mutated(deflated(file_of(records), wbits, level, flush), mutations)
    outcome = read_outcome(Bytes(data, 1 + len(data) // 3), name)
    if data == b"":
        assert ([], None) == (outcome.records, outcome.damage)
        return
    content, error = inflatable(data, name)
    expected = read(content)
    whole = expected.damage is None or expected.damage.reason == "truncated"
    assert expected.records == outcome.records
    if error is not None and whole:
        assert "compressed stream" == outcome.damage.reason
    elif expected.damage is not None:
        assert expected.damage == outcome.damage


@given(st.lists(RECORDS, min_size=1, max_size=3), LEVELS, FLUSHES, MUTATIONS)
def test_skipping_in_a_damaged_member_costs_no_record_of_another(members, level, flush, mutations):
    """What lies in other members comes once, and nothing comes that was not written. In the damaged
    member a wrong distance may copy a record, which verifies then."""
    numbered = [
        [b"%d.%d:" % (i, k) + record for k, record in enumerate(records)]
        for i, records in enumerate(members)
    ]
    streams = [deflated(file_of(records), 31, level, flush) for records in numbered]
    at = sum(mutations[0][1:]) % len(streams) if mutations else 0
    damage = [mutation for mutation in mutations if mutation[0] != "double"]
    streams[at] = mutated(streams[at], damage)
    outcome = read_outcome(Bytes(b"".join(streams)), "GZIP", on_corrupt="skip")
    written = [record for records in numbered for record in records]
    assert set(outcome.records) <= set(written)
    others = iter(record for i, records in enumerate(numbered) if i != at for record in records)
    found = [record for record in outcome.records if record not in numbered[at]]
    assert all(record in others for record in found)
    assert outcome.damage is None
    before = [record for records in numbered[:at] for record in records]
    assert before == outcome.records[: len(before)]


def test_the_streams_are_what_gzip_reads():
    assert b"ab" == gzip.decompress(deflated(b"ab", 31, 1, zlib.Z_SYNC_FLUSH))
