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


def deepest(call, functions):
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


def write(path, method, *arguments):
    with tfw.TFRecordWriter(path.with_name("b")) as writer:
        getattr(writer, method)(*arguments)


def parsed(messages):
    return tfw.parse_example(messages, FEATURES)


# The functions of C, the number of frames, and the call. More than four: the reason beside it.
ANY, READ, PARSE = ("tfw_",), ("tfw_reader_next", "tfw_pipeline_next"), ("tfw_parse",)
NEXT = ("tfw_pipeline_next",)
CALLS = {
    "crc32c": (ANY, 1, lambda _: tfw.crc32c(b"")),
    "encode_example": (ANY, 2, lambda _: tfw.encode_example(ROWS[0])),
    # C takes the rows that it can read, Python the others, in turn.
    "encode_examples": (ANY, 5, lambda _: tfw.encode_examples(ROWS)),
    # A table has batches, a batch is encoded block by block.
    "encode_columns": (ANY, 6, lambda _: tfw.encode_columns({"x": [1, 2, 3]})),
    "decode_example": (ANY, 3, lambda _: tfw.decode_example(MESSAGES[0])),
    "decode_examples": (ANY, 4, lambda _: tfw.decode_examples(MESSAGES)),
    "parse": (ANY, 4, lambda _: PARSER.parse(MESSAGES)),
    "parse_single": (ANY, 3, lambda _: PARSER.parse_single(MESSAGES[0])),
    "parse_example": (ANY, 4, lambda _: parsed(MESSAGES)),
    "parse_single_example": (ANY, 3, lambda _: tfw.parse_single_example(MESSAGES[0], FEATURES)),
    # As encode_columns.
    "write_columns": (("tfw_encode",), 6, lambda path: write(path, "write_columns", {"x": [1]})),
    # Four of the writer, which takes any iterable in chunks, and those of encode_examples.
    "write_many of rows": (("tfw_encode_rows",), 9, lambda path: write(path, "write_many", ROWS)),
    # A pass over files: its results, which wait for each other, and the stops of the pipeline.
    "verify_file": (NEXT, 6, lambda path: tfw.verify_file(path)),
    # Three of the iterator that threads share, and three as verify_file.
    "verify_files": (NEXT, 7, lambda path: list(tfw.verify_files([path]))),
    "infer_schema": (("tfw_survey",), 4, lambda path: tfw.infer_schema(path)),
    "RecordIndex.build": (NEXT, 7, lambda path: tfw.RecordIndex.build(path)),
    # Every stage of a dataset takes two, ``take`` and what it gathers from; a user's function takes
    # one more.
    "read_records": (READ, 4, lambda path: list(tfw.read_records(path))),
    # The iterator that threads share takes two, a unit one, its builder and its session one each.
    "parse_file": (READ, 5, lambda path: list(PARSER.parse_file(path, 32))),
    "a record of a file": (("tfw_read_record",), 3, lambda path: tfw.TFRecordFile(path)[7]),
    "dataset": (READ, 10, lambda path: list(tfw.TFRecordDataset([path]))),
    "map": (PARSE, 9, lambda path: list(tfw.TFRecordDataset([path]).batch(9).map(parsed))),
    "batch": (READ, 14, lambda path: list(tfw.TFRecordDataset([path]).batch(9).map(parsed))),
    # The last is ``call``, which makes the error and checks it.
    "shuffle": (
        ("tfw_exchange", *PARSE),
        11,
        lambda path: list(tfw.TFRecordDataset([path]).shuffle(50).batch(9).map(parsed)),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_c_is_called_by_few_others(name, path):
    functions, frames, call = CALLS[name]
    call(path)  # makes what later calls use again; a specification is noted when it comes again
    call(path)
    found = deepest(lambda: call(path), functions)
    assert 0 < len(found) <= frames, found
