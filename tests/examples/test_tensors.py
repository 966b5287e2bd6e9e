"""serialize_tensor, parse_tensor, decode_raw: TensorFlow's bytes, and no byte believed."""

import contextlib
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import tfwire as tfw
from helpers.arguments.tensor_types import DTYPES, EXTENDED, GOLDEN, dtype_named
from tfwire._examples.protobuf import parse_message
from tfwire._examples.tensor_protos import _TensorProto

pytestmark = pytest.mark.short_strings


def message(dtype, shape=(), **fields):
    """A TensorProto with any content."""
    proto = _TensorProto(dtype=dtype, **fields)
    proto.tensor_shape.SetInParent()
    for size in shape:
        proto.tensor_shape.dim.add(size=size)
    return proto.SerializeToString()


class DType:
    """What TensorFlow's and tfwire's dtypes have in common."""

    def __init__(self, dtype):
        self.as_numpy_dtype = dtype


# ---- Writing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "expected"), GOLDEN)
def test_every_type_has_tensorflows_bytes(name, expected):
    values = np.array([0, 1, 2]).astype(dtype_named(name))
    assert expected == tfw.serialize_tensor(values).hex()


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (np.array([1, 2], np.float32), "08011204120208022208" "0000803f00000040"),
        (np.int64(7), "08091200" "22080700000000000000"),
        (["ab", "c"], "08071204120208024202616242" "0163"),
        (np.zeros(0, np.float32), "080112021200"),
        ([], "080112021200"),
        ([[], []], "0801120612020802" "1200"),
        (1, "080312002204" "01000000"),
        (1.5, "080112002204" "0000c03f"),
        (True, "080a1200220101"),
        (1j, "081212002210" "0000000000000000000000000000f03f"),
        (2**40, "080912002208" "0000000000010000"),
        ([1, 2.5], "08011204120208022208" "0000803f00002040"),
        ([np.int64(1), 2.5], "08011204120208022208" "0000803f00002040"),
        ([np.int64(1)], "08031204120208012204" "01000000"),
        ([np.float64(1)], "08021204120208012208" "000000000000f03f"),
        (np.array([1, 2], ">i4"), "08031204120208022208" "0100000002000000"),
        ("\u00e9", "080712004202c3a9"),
        (b"a\0", "0807120042026100"),
        ([b"a\0", "x"], "0807120412020802" "42026100420178"),
    ],
)  # fmt: skip
def test_values_without_an_array_become_what_tensorflow_makes_of_them(tensor, expected):
    assert expected == tfw.serialize_tensor(tensor).hex()


@pytest.mark.parametrize("dtype", ["S", "U", "O"])
def test_arrays_of_strings_are_strings(dtype):
    expected = [b"a", b"bc"]
    tensor = tfw.serialize_tensor(np.array([["a", "bc"]], dtype))
    assert expected == tfw.parse_tensor(tensor, "string").tolist()[0]


@pytest.mark.parametrize("array", [np.arange(24).reshape(2, 3, 4).T, np.arange(10)[::-2]])
def test_values_are_written_row_major(array):
    assert tfw.serialize_tensor(array.copy()) == tfw.serialize_tensor(array)


@pytest.mark.parametrize(
    "tensor",
    [
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(1, "f4,i4"),
        np.zeros(1, np.longdouble),
        [None],
        [object()],
    ],
)
def test_types_that_tensorflow_has_not_are_refused(tensor):
    if getattr(tensor, "dtype", None) == np.float64:
        pytest.skip("long double is double here")
    with pytest.raises(TypeError):
        tfw.serialize_tensor(tensor)


def test_integers_beyond_int64_need_an_array():
    with pytest.raises(ValueError, match="array of uint64"):
        tfw.serialize_tensor([2**63])
    uint64 = np.array([2**63], np.uint64)
    assert [2**63] == tfw.parse_tensor(tfw.serialize_tensor(uint64), "uint64").tolist()


def test_what_no_protobuf_reader_takes_is_not_written():
    huge = np.broadcast_to(np.uint8(0), 2**31)
    with pytest.raises(ValueError, match="2147483648 bytes"):
        tfw.serialize_tensor(huge)


# ---- Reading what was written -------------------------------------------------------------------


@given(
    hnp.arrays(
        st.sampled_from(DTYPES),
        hnp.array_shapes(min_dims=0, min_side=0, max_dims=5, max_side=4),
        elements=None,
    )
)
def test_numbers_come_back(array):
    found = tfw.parse_tensor(tfw.serialize_tensor(array), array.dtype)
    assert (array.dtype, array.shape) == (found.dtype, found.shape)
    assert array.tobytes() == found.tobytes()


@given(
    hnp.arrays(object, hnp.array_shapes(min_dims=0, min_side=0), elements=st.binary() | st.text())
)
def test_strings_come_back(array):
    found = tfw.parse_tensor(tfw.serialize_tensor(array), "string")
    expected = [item.encode() if isinstance(item, str) else item for item in array.flat]
    assert expected == np.asarray(found, object).ravel().tolist()
    assert array.shape == np.shape(found) or found == expected[0]


@pytest.mark.parametrize("name", EXTENDED)
def test_types_of_ml_dtypes_come_back(name):
    bits = np.arange(256, dtype=np.uint8)
    array = bits.view(dtype_named(name)).reshape(-1, 2)
    for out_type in [name, array.dtype, DType(array.dtype.type)]:
        found = tfw.parse_tensor(tfw.serialize_tensor(array), out_type)
        assert (array.dtype, array.shape) == (found.dtype, found.shape)
        assert bits.tobytes() == found.tobytes()


def test_types_of_ml_dtypes_need_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match="bfloat16 needs the package ml_dtypes"):
        tfw.parse_tensor(b"", "bfloat16")


@pytest.mark.parametrize(
    "out_type",
    ["float32", "float", "f4", float, np.float32, np.dtype(">f4"), DType(np.float32)],
)
def test_the_type_is_given_in_any_form(out_type):
    found = tfw.parse_tensor(tfw.serialize_tensor([1.5]), out_type)
    assert np.dtype("float32") == found.dtype
    assert [1.5] == found.tolist()


@pytest.mark.parametrize("out_type", ["string", object, np.bytes_, np.str_, DType(object)])
def test_strings_are_asked_for_in_any_form(out_type):
    assert [b"a"] == tfw.parse_tensor(tfw.serialize_tensor(["a"]), out_type).tolist()


@pytest.mark.parametrize("out_type", ["no such type", "M8[s]", complex | int, None, 3])
def test_what_is_no_type_is_refused(out_type):
    with pytest.raises(TypeError):
        tfw.parse_tensor(b"", out_type)


def test_a_scalar_is_a_scalar():
    assert 7 == tfw.parse_tensor(tfw.serialize_tensor(7), "int32")
    assert isinstance(tfw.parse_tensor(tfw.serialize_tensor(7), "int32"), np.int32)
    assert b"abc" == tfw.parse_tensor(tfw.serialize_tensor("abc"), "string")


def test_results_are_writable_and_apart_from_their_source():
    source = bytearray(tfw.serialize_tensor(np.arange(3)))
    found = tfw.parse_tensor(source, "int64")
    source[-8:] = bytes(8)
    assert [0, 1, 2] == found.tolist()
    found[0] = 9
    assert [9, 1, 2] == found.tolist()


@pytest.mark.parametrize(
    "wrap", [bytes, bytearray, memoryview, lambda data: parse_message(_TensorProto, data)]
)
def test_messages_are_taken_in_every_form(wrap):
    assert [1, 2] == tfw.parse_tensor(wrap(tfw.serialize_tensor([1, 2])), "int32").tolist()


# ---- Lists of values ----------------------------------------------------------------------------

LISTED = [
    ("float32", 1, {"float_val": [1, 2]}),
    ("float64", 2, {"double_val": [1, 2]}),
    ("int32", 3, {"int_val": [1, 2]}),
    ("uint8", 4, {"int_val": [1, 2]}),
    ("int16", 5, {"int_val": [1, 2]}),
    ("int8", 6, {"int_val": [257, 2]}),
    ("complex64", 8, {"scomplex_val": [1, 0, 2, 0]}),
    ("int64", 9, {"int64_val": [1, 2]}),
    ("bfloat16", 14, {"half_val": [0x3F80, 0x4000]}),
    ("uint16", 17, {"int_val": [1, 2]}),
    ("complex128", 18, {"dcomplex_val": [1, 0, 2, 0]}),
    ("float16", 19, {"half_val": [0x3C00, 0x4000]}),
    ("uint32", 22, {"uint32_val": [1, 2]}),
    ("uint64", 23, {"uint64_val": [1, 2]}),
    ("float8_e5m2", 24, {"float8_val": b"\x3c\x40"}),
]


@pytest.mark.parametrize(("name", "number", "fields"), LISTED)
def test_listed_values_are_read_and_filled_up(name, number, fields):
    """The last value fills the shape; without any value the tensor is of zeros."""
    dtype = dtype_named(name)
    for shape, count in [((2,), 2), ((2, 2), 4), ((2, 0, 0), 0)]:
        if count:
            found = tfw.parse_tensor(message(number, shape, **fields), dtype)
            expected = np.array([1, 2, 2, 2][:count], dtype).reshape(shape)
        else:
            found = tfw.parse_tensor(message(number, shape), dtype)
            expected = np.zeros(shape, dtype)
        assert (expected.dtype, expected.shape) == (found.dtype, found.shape)
        assert expected.tobytes() == found.tobytes()
    zeros = tfw.parse_tensor(message(number, (3,)), dtype)
    assert bytes(3 * dtype.itemsize) == zeros.tobytes()


def test_listed_bools_and_strings_are_filled_up():
    bools = tfw.parse_tensor(message(10, (3,), bool_val=[False, True]), bool)
    assert [False, True, True] == bools.tolist()
    strings = message(7, (3,), string_val=[b"a", b"b\0"])
    assert [b"a", b"b\0", b"b\0"] == tfw.parse_tensor(strings, "string").tolist()
    assert [b"", b""] == tfw.parse_tensor(message(7, (2,)), "string").tolist()


def test_unpacked_lists_are_read():
    unpacked = b"\x08\x01\x12\x04\x12\x02\x08\x02\x2d\0\0\x80\x3f\x2d\0\0\0\x40"
    assert [1.0, 2.0] == tfw.parse_tensor(unpacked, "float32").tolist()


def test_strings_in_content_are_read():
    content = message(7, (2, 1), tensor_content=b"\x01\x02abc")
    assert [[b"a"], [b"bc"]] == tfw.parse_tensor(content, "string").tolist()


def test_fields_may_come_in_any_order():
    shape, dtype, content = b"\x12\x04\x12\x02\x08\x01", b"\x08\x04", b"\x22\x01\x07"
    for fields in [(shape, dtype, content), (content, dtype, shape), (dtype, content, shape)]:
        assert [7] == tfw.parse_tensor(b"".join(fields), "uint8").tolist()
    repeated = dtype + shape + b"\x22\x01\x05" + content  # the last one wins
    assert [7] == tfw.parse_tensor(repeated, "uint8").tolist()


# ---- What is refused ----------------------------------------------------------------------------


def refused(serialized, out_type="float32"):
    with pytest.raises(tfw.ParseError) as caught:
        tfw.parse_tensor(serialized, out_type)
    return caught.value


def test_another_type_is_named():
    error = refused(tfw.serialize_tensor([1.0]), "int32")
    assert "Type mismatch between parsed tensor (float) and dtype (int32)" == str(error)
    assert ("kind", "int32", "float") == (error.reason, error.expected, error.found)
    assert "DataType 20" in str(refused(message(20)))
    assert "DataType 0" in str(refused(b""))


@pytest.mark.parametrize("size", [0, 4, 5, 7, 9, 12])
def test_content_of_another_size_is_refused(size):
    error = refused(
        message(1, (2,), tensor_content=b"\1" * size, float_val=[] if size else [1] * 3)
    )
    assert "count" == error.reason
    assert "shape [2] and type float" in str(error)


def test_more_values_than_the_shape_has_are_refused():
    error = refused(message(1, (2,), float_val=[1, 2, 3]))
    assert (2, 3) == (error.expected, error.found)


def test_values_of_another_type_are_refused():
    assert "float_val, found int_val" in str(refused(message(1, (1,), int_val=[1])))


@pytest.mark.parametrize(
    "shape",
    [
        (2**62,),
        (2**32, 2**32),
        (2**63 - 1,) * 254,
        (1,) * 255,
        (-1,),
        (2, -(2**63)),
        (2**62, 0),
        (1,) * 100,
        (2**40,),
    ],
)
@pytest.mark.parametrize("fields", [{}, {"float_val": [1]}, {"tensor_content": b"1234"}])
def test_hostile_shapes_are_refused_without_memory(shape, fields):
    serialized = message(1, shape, **fields)
    tracemalloc.start()
    refused(serialized)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**23


def test_unknown_ranks_are_refused():
    proto = _TensorProto(dtype=1)
    proto.tensor_shape.unknown_rank = True
    assert "unknown rank" in str(refused(proto))


def test_filling_has_a_limit_that_may_be_raised():
    serialized = message(1, (2**25,), float_val=[1])
    assert "max_fill=67108864" in str(refused(serialized))
    assert 2**25 == len(tfw.parse_tensor(serialized, "float32", max_fill=2**27))


@pytest.mark.parametrize("content", [b"\x01", b"\x01\x02", b"\x80", b"\x01\x02abcd", b"\xff" * 20])
def test_string_content_that_does_not_add_up_is_refused(content):
    assert refused(message(7, (2,), tensor_content=content), "string").reason in (
        "count",
        "malformed",
    )
    assert "count" == refused(message(7, (2**62,), tensor_content=content), "string").reason


def test_bools_are_zero_or_one():
    assert "other than 0 and 1" in str(refused(message(10, (2,), tensor_content=b"\0\2"), bool))


def test_half_a_complex_number_is_refused():
    assert "half a complex" in str(refused(message(8, (1,), scomplex_val=[1, 2, 3]), "complex64"))


@pytest.mark.parametrize("array", [np.arange(300), np.array(["abc", "defg"], object)])
def test_cut_messages_are_refused_or_smaller(array):
    """Every prefix: an error, unless whole fields were cut off and zeros may stand for them."""
    serialized = tfw.serialize_tensor(array)
    out_type = "string" if array.dtype == object else "int64"
    for end in range(len(serialized)):
        try:
            found = tfw.parse_tensor(serialized[:end], out_type)
        except tfw.ParseError:
            continue
        assert np.size(found) in (1, array.size)
        assert end < 20


@given(st.binary(max_size=60), st.sampled_from([*DTYPES, "string"]))
def test_any_bytes_give_a_tensor_or_an_error(data, out_type):
    for serialized in [data, b"\x08\x01" + data, b"\x08\x01\x12\x04\x12\x02\x08\x02" + data]:
        with contextlib.suppress(tfw.ParseError):
            assert np.asarray(tfw.parse_tensor(serialized, out_type)).nbytes <= 2**26


@pytest.mark.parametrize("serialized", ["text", 3, None, [b""]])
def test_what_is_no_message_is_refused(serialized):
    with pytest.raises(TypeError, match="a serialized tensor must be bytes-like"):
        tfw.parse_tensor(serialized, "float32")
