"""The n-th allocation of the core fails below Python, for every n: an error, and nothing is hurt.

Runs where the core was built with TFW_TEST_FAULTS (make check-sanitized).
"""

import ctypes

import numpy as np
import pytest

import tfwire as tfw
from tfwire import _native
from tfwire._records.reading.verify_files import verify_file
from tfwire._records.writing.repair_file import repair_file

try:
    COUNTDOWN = ctypes.c_long.in_dll(ctypes.CDLL(_native.__file__), "tfwi_test_fail_allocation")
except ValueError:
    pytest.skip("the core was built without faults", allow_module_level=True)

ROWS = {"a": np.arange(20).reshape(10, 2), "s": [b"%d" % i for i in range(10)]}
SPEC = {"a": tfw.FixedLenFeature([2], "int64"), "s": tfw.FixedLenFeature([], "string")}
PARSER = tfw.Parser(SPEC)
EXAMPLES = [bytes(example) for example in tfw.encode_columns(ROWS)]


def repaired(path):
    out = path.with_name("repaired")
    out.unlink(missing_ok=True)
    repair_file(path, out)
    return out.read_bytes()


CALLS = {
    "Parser": lambda path: tfw.Parser(SPEC).parse(EXAMPLES),
    "parse": lambda path: PARSER.parse(EXAMPLES),
    "parse_file": lambda path: list(PARSER.parse_file(path, batch_size=3)),
    "decode_examples": lambda path: tfw.decode_examples(EXAMPLES),
    "encode_columns": lambda path: [bytes(one) for one in tfw.encode_columns(ROWS)],
    "read_records": lambda path: [bytes(record) for record in tfw.read_records(path)],
    "skip": lambda path: [bytes(one) for one in tfw.read_records(path, on_corrupt="skip")],
    "verify": lambda path: verify_file(path).num_records,
    "repair": repaired,
}


@pytest.mark.parametrize("name", CALLS)
def test_the_nth_failing_allocation_is_a_memory_error_and_the_next_call_works(tmp_path, name):
    path = tmp_path / "records"
    tfw.write_records(path, EXAMPLES)
    call = CALLS[name]
    expected = repr(call(path))
    failures = 0
    for n in range(1000):
        COUNTDOWN.value = n
        try:
            assert expected == repr(call(path))  # where it does with less memory
        except MemoryError:
            failures += 1
        finally:
            reached, COUNTDOWN.value = COUNTDOWN.value == -1, -1
        assert expected == repr(call(path))
        if not reached:
            break
    assert not reached
    assert failures > 0
