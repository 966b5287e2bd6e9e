"""CRC-32C from Python: values, what may hold the bytes, the choice of a kernel, the tables."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from helpers.paths import ROOT
from tfwire._base.native import ffi, lib, text

CHECK = b"123456789"
CHECK_CRC = 0xE3069283

uint32s = st.integers(0, 2**32 - 1)


def reference(data, crc=0):
    """The definition, bit by bit."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def kernels():
    """The kernels of this build with whether this machine runs them, best first."""
    found, supported = [], ffi.new("bool *")
    while (name := lib.tfw_crc32c_kernel_name(len(found), supported)) != ffi.NULL:
        found.append((text(name), bool(supported[0])))
    return found


# ---- Values ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (CHECK, CHECK_CRC),
        (bytes(32), 0x8A9136AA),  # this and the following: RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_known_values(data, crc):
    assert crc == tfw.crc32c(data)


@pytest.mark.parametrize(
    ("data", "masked"),
    [
        (b"", 0xA282EAD8),
        (CHECK, 0xC78AB0E5),
        ((0).to_bytes(8, "little"), 0x07980329),
        ((1).to_bytes(8, "little"), 0x41DE7501),
        ((84).to_bytes(8, "little"), 0x8745515F),
    ],
)
def test_masked_values_that_tensorflow_writes(data, masked):
    assert masked == tfw.checksum.masked_crc32c(data)


@given(st.binary(max_size=600), uint32s)
def test_it_is_the_definition(data, value):
    assert reference(data, value) == tfw.crc32c(data, value)


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_continuing_and_combining_are_concatenation(a, b):
    whole = tfw.crc32c(a + b)
    assert whole == tfw.crc32c(b, tfw.crc32c(a))
    assert whole == tfw.checksum.combine_crc32c(a=tfw.crc32c(a), b=tfw.crc32c(b), len_b=len(b))


@given(uint32s)
def test_masking_is_undone_and_changes_every_value(crc):
    masked = tfw.checksum.mask_crc(crc)
    assert crc != masked
    assert crc != tfw.checksum.mask_crc(masked)
    assert crc == tfw.checksum.unmask_crc(crc=masked)


# ---- What holds the bytes --------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        bytearray,
        memoryview,
        lambda data: type("Bytes", (bytes,), {})(data),
        lambda data: np.frombuffer(data, np.uint8),
        lambda data: np.frombuffer(data, np.uint8).reshape(3, 3),
        lambda data: np.frombuffer(data, np.dtype("S9"))[0],
        lambda data: np.array(data, object),
        lambda data: SimpleNamespace(numpy=lambda: data),
        lambda data: SimpleNamespace(numpy=lambda: np.frombuffer(data, np.int8)),
        lambda data: memoryview(b"xx" + data)[2:],
    ],
)
def test_every_holder_of_bytes_gives_the_same_value(wrap):
    assert CHECK_CRC == tfw.crc32c(wrap(CHECK))
    assert tfw.checksum.mask_crc(CHECK_CRC) == tfw.checksum.masked_crc32c(wrap(CHECK))


@pytest.mark.parametrize("dtype", ["<f4", ">i8", "?", "<c16", "datetime64[s]", "S5"])
def test_an_array_counts_as_its_memory(dtype):
    array = np.arange(6).astype(dtype).reshape(2, 3)
    assert tfw.crc32c(array.tobytes()) == tfw.crc32c(array)


def test_empty_arrays_and_views():
    assert 0 == tfw.crc32c(np.zeros((0, 3)))
    assert 7 == tfw.crc32c(memoryview(b""), 7)


@pytest.mark.parametrize(
    "gaps", [memoryview(b"abcdef")[::2], np.arange(6)[::2], np.ones((2, 3), order="F")]
)
def test_memory_with_gaps_is_refused(gaps):
    with pytest.raises(ValueError, match="contiguous"):
        tfw.crc32c(gaps)


@pytest.mark.parametrize("wrong", ["text", 3, None, 1.5, [b"a"], np.array([b"a"], object)])
def test_what_holds_no_bytes_is_refused(wrong):
    with pytest.raises(TypeError, match=r"bytes"):
        tfw.crc32c(wrong)


@pytest.mark.parametrize("number", [-1, 2**32])
def test_checksums_have_32_bits(number):
    for call in (
        lambda: tfw.crc32c(b"", number),
        lambda: tfw.checksum.mask_crc(number),
        lambda: tfw.checksum.unmask_crc(number),
        lambda: tfw.checksum.combine_crc32c(number, 0, 0),
        lambda: tfw.checksum.combine_crc32c(0, number, 0),
    ):
        with pytest.raises(OverflowError):
            call()


# ---- Kernels ---------------------------------------------------------------------------------


def in_new_process(kernel):
    """Runs a checksum with TFWIRE_CRC32C set; returns the finished process."""
    code = "import tfwire as t; print(t.checksum.crc32c_kernel(), t.crc32c(bytes(range(256)) * 50))"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TFWIRE_CRC32C": kernel, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_best_supported_kernel_is_used_unless_one_is_forced():
    best = next(name for name, supported in kernels() if supported)
    assert os.environ.get("TFWIRE_CRC32C") or best == tfw.checksum.crc32c_kernel()


def test_the_portable_kernel_is_last_and_always_supported():
    assert ("portable", True) == kernels()[-1]


@pytest.mark.parametrize(("name", "supported"), kernels())
def test_each_kernel_is_forced_by_the_environment(name, supported):
    process = in_new_process(name)
    if supported:
        expected = f"{name} {reference(bytes(range(256)) * 50)}\n"
        assert (0, expected, "") == (process.returncode, process.stdout, process.stderr)
    else:
        assert process.returncode != 0
        assert f"TFWIRE_CRC32C={name}: this checksum kernel is not supported" in process.stderr


def test_an_unknown_kernel_is_an_import_error():
    process = in_new_process("fastest")
    assert process.returncode != 0
    assert (
        "ImportError: TFWIRE_CRC32C=fastest: this checksum kernel does not exist" in process.stderr
    )


def test_the_tables_are_what_their_generator_writes():
    command = [sys.executable, str(ROOT / "csrc/crc32c/gen_tables.py")]
    generated = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert (ROOT / "csrc/crc32c/crc32c_tables.h").read_text(encoding="ascii") == generated
