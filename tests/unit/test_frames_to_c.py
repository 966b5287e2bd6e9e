"""How many Python frames lie between a call of a user and C: a wrapper that only passes arguments
on is one more to read, and costs time."""

import sys

import pytest

import tfwire as tfw

ROWS = [{"x": i, "y": [1.0, 2.0]} for i in range(300)]
FEATURES = {
    "x": tfw.FixedLenFeature([], tfw.int64),
    "y": tfw.FixedLenFeature([2], tfw.float32),
}


def deepest(call, functions=("tfw_",)):
    """The tfwire functions on the stack, in the call of these functions of C that has the most."""
    most = []

    def profile(frame, event, called):
        nonlocal most
        if event != "c_call" or not getattr(called, "__name__", "").startswith(functions):
            return
        names = []
        while frame is not None:
            if frame.f_globals.get("__name__", "").startswith("tfwire."):
                names.append(frame.f_code.co_name)
            frame = frame.f_back
        most = max(most, names[::-1], key=len)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return most


@pytest.fixture
def path(tmp_path):
    tfw.write_records(tmp_path / "a", ROWS)
    return tmp_path / "a"


MESSAGES = tfw.encode_examples(ROWS)
PARSER = tfw.Parser(FEATURES)
CALLS = {
    "crc32c": (1, lambda: tfw.crc32c(b"")),
    "encode_example": (2, lambda: tfw.encode_example(ROWS[0])),
    "encode_examples": (5, lambda: tfw.encode_examples(ROWS)),
    "encode_columns": (6, lambda: tfw.encode_columns({"x": [1, 2, 3]})),  # a table has batches
    "decode_example": (3, lambda: tfw.decode_example(MESSAGES[0])),
    "decode_examples": (3, lambda: tfw.decode_examples(MESSAGES)),
    "parse": (4, lambda: PARSER.parse(MESSAGES)),
    "parse_single": (3, lambda: PARSER.parse_single(MESSAGES[0])),
    "parse_example": (4, lambda: tfw.parse_example(MESSAGES, FEATURES)),
    "parse_single_example": (3, lambda: tfw.parse_single_example(MESSAGES[0], FEATURES)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_calls_c_by_few_others(name):
    frames, call = CALLS[name]
    call()  # makes what later calls use again
    found = deepest(call)
    assert 0 < len(found) <= frames, found


def parsed(messages):
    return tfw.parse_example(messages, FEATURES)


# The frames from next() to the functions of C that read and parse. Every stage of a dataset takes
# two, ``take`` and what it gathers from; a function of the user's takes one more.
READ, PARSE = ("tfw_reader_next", "tfw_read_unit"), ("tfw_parse",)
PASSES = {
    "read_records": (READ, 4, lambda path: tfw.read_records(path)),
    "parse_file": (READ, 5, lambda path: PARSER.parse_file(path, 32)),
    "a record of a file": (("tfw_verify",), 3, lambda path: [tfw.TFRecordFile(path)[7]]),
    "dataset": (READ, 10, lambda path: tfw.TFRecordDataset([path])),
    "map": (PARSE, 9, lambda path: tfw.TFRecordDataset([path]).batch(9).map(parsed)),
    "batch": (READ, 14, lambda path: tfw.TFRecordDataset([path]).batch(9).map(parsed)),
    "shuffle": (
        ("tfw_exchange", *PARSE),
        10,
        lambda path: tfw.TFRecordDataset([path]).shuffle(50).batch(9).map(parsed),
    ),
}


@pytest.mark.parametrize("name", PASSES)
def test_next_calls_c_by_few_others(name, path):
    functions, frames, items = PASSES[name]
    found = deepest(lambda: list(items(path)), functions)
    assert 0 < len(found) <= frames, found
