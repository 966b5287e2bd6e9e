"""decode_raw: numbers from the bytes of strings."""

import sys

import numpy as np
import pytest

import tfwire as tfw
from helpers.arguments.tensor_types import DTYPES, EXTENDED, dtype_named

pytestmark = pytest.mark.short_strings


@pytest.mark.parametrize("name", [*DTYPES, *EXTENDED])
@pytest.mark.parametrize("little_endian", [True, False])
def test_raw_bytes_are_read_in_either_order(name, little_endian):
    dtype = dtype_named(name)
    values = np.array([0, 1, 1, 0]).astype(dtype)
    native = little_endian == (sys.byteorder == "little")
    if dtype.kind == "c":
        stored = values if native else values.byteswap()
    else:
        bits = values.view(f"u{dtype.itemsize}")
        stored = bits if native else bits.byteswap()
    found = tfw.decode_raw(stored.tobytes(), dtype, little_endian)
    assert (dtype, (4,)) == (found.dtype, found.shape)
    assert values.tobytes() == found.tobytes()


@pytest.mark.parametrize(
    ("strings", "expected"),
    [
        (b"", []),
        (b"\1\0\2\0", [1, 2]),
        (bytearray(b"\1\0"), [1]),
        (memoryview(b"\1\0"), [1]),
        ("\1\0", [1]),
        (np.array(b"\1\0", object), [1]),
        ([b"\1\0", b"\2\0"], [[1], [2]]),
        ([[b"\1\0"], [b"\2\0"]], [[[1]], [[2]]]),
        (np.array([[b"\1\0"], [b"\2\0"]], object), [[[1]], [[2]]]),
        ([b"", b""], [[], []]),
        ([], []),
    ],
)
def test_strings_of_any_shape_gain_a_dimension(strings, expected):
    found = tfw.decode_raw(strings, np.uint16)
    assert expected == found.tolist()
    assert found.flags.writeable


def test_no_strings_have_the_shape_that_tensorflow_gives():
    assert (0, 0) == tfw.decode_raw([], "uint8").shape
    assert (0, 3, 0) == tfw.decode_raw(np.empty((0, 3), object), "uint8").shape
    assert (0, 2) == tfw.decode_raw([], "uint16", fixed_length=4).shape


def test_columns_of_bytes_are_read():
    data = b"..\1\0\2\0\3\0\4\0.."
    column = tfw.BytesColumn(data, [2, 4, 6, 8, 10])
    assert [[1], [2], [3], [4]] == tfw.decode_raw(column, "uint16").tolist()
    assert [[2], [3]] == tfw.decode_raw(column[1:3], "uint16").tolist()
    assert [[1], [2], [3], [4]] == tfw.decode_raw(column, "uint8", fixed_length=1).tolist()
    table = tfw.BytesColumn(data, [2, 4, 6, 8, 10], (2, 2))
    assert [[[1], [2]], [[3], [4]]] == tfw.decode_raw(table, "uint16").tolist()
    assert (0, 0) == tfw.decode_raw(column[:0], "uint16").shape
    with pytest.raises(ValueError, match="2 bytes at element 0 and 4 at element 1"):
        tfw.decode_raw(tfw.BytesColumn(data, [2, 4, 8]), "uint16")


@pytest.mark.parametrize(
    ("strings", "expected"),
    [
        ([b"ab", b"abcd"], [[0x6261, 0], [0x6261, 0x6463]]),
        (b"abcdef", [0x6261, 0x6463]),
        (b"abc", [0x6261, 0x63]),
        (b"", [0, 0]),
    ],
)
def test_fixed_length_cuts_and_pads(strings, expected):
    assert expected == tfw.decode_raw(strings, "int16", fixed_length=4).tolist()


def test_padding_comes_before_the_byte_order():
    found = tfw.decode_raw(b"abc", "int16", little_endian=False, fixed_length=4)
    assert [0x6162, 0x6300] == found.tolist()


@pytest.mark.parametrize("fixed_length", [0, -2, 3])
def test_fixed_length_is_a_multiple_of_the_size(fixed_length):
    with pytest.raises(ValueError, match=f"multiple of 2, the size of int16, found {fixed_length}"):
        tfw.decode_raw(b"ab", "int16", fixed_length=fixed_length)


def test_a_length_that_does_not_divide_is_named():
    with pytest.raises(ValueError, match="3 bytes, which is not a multiple of 2, the size of"):
        tfw.decode_raw(b"abc", "int16")


def test_lengths_that_differ_are_named():
    with pytest.raises(ValueError, match="2 bytes at element 0 and 4 at element 1"):
        tfw.decode_raw([b"ab", b"abcd"], "int16")


@pytest.mark.parametrize("strings", [3, [1], None, np.arange(3), np.array([b"ab"])])
def test_decode_raw_reads_byte_strings_only(strings):
    with pytest.raises(TypeError):
        tfw.decode_raw(strings, "int16")


def test_decode_raw_makes_numbers_only():
    with pytest.raises(TypeError, match="string"):
        tfw.decode_raw(b"ab", "string")


def test_raw_bools_are_any_byte():
    assert [True, False, True] == tfw.decode_raw(b"\2\0\1", bool).tolist()


@pytest.mark.parametrize("form", ["one", "list", "column"])
def test_a_serialized_tensor_is_named(form):
    tensor = tfw.serialize_tensor(np.ones(3, np.float32))
    column = tfw.BytesColumn(np.frombuffer(tensor, np.uint8), np.array([0, len(tensor)]))
    given = {"one": tensor, "list": [tensor, tensor], "column": column}[form]
    with pytest.raises(ValueError, match="parse_tensor reads it"):
        tfw.decode_raw(given, "float64")
