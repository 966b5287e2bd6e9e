"""Messages that tell a newcomer where, what was expected and what was found."""

import io
import os
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw
from helpers.arguments.public_functions import EXAMPLE, FEATURES, FUNCTIONS, OPENING, unchecked
from helpers.arguments.wrong_values import READERS, Otherwise, wrong_cases
from helpers.products import check_each
from tfwire import checksum


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.tfrecord"
    tfw.write_records(path, [b"cat", b"dog"])
    return path


def test_a_writer_that_was_not_closed_is_not_called_closed(path):
    writers = [tfw.TFRecordWriter(path)]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        writers.clear()
    assert [f"<TFRecordWriter {path!r}> was not closed"] == [str(each.message) for each in found]


def test_appending_to_a_text_advises_no_word_that_writers_refuse(path):
    path.write_text("no records at all, just a text")
    with pytest.raises(tfw.DataLossError, match="readers detect others") as raised:
        tfw.TFRecordWriter(path, append=True)
    assert "begins like text" in str(raised.value)


@pytest.mark.parametrize("records", [5, None, io.BytesIO])
def test_what_is_no_iterable_of_records_is_named(path, records):
    refused = pytest.raises(TypeError, match="expected an iterable of records, found")
    with tfw.TFRecordWriter(path) as writer, refused:
        writer.write_many(records)
    with pytest.raises(TypeError, match="expected an iterable of records, found"):
        tfw.Receipt.of(records)


@pytest.mark.parametrize("crc", ["4waSgw==", b"1", 1.0, None, -1, 1 << 32])
def test_what_is_no_crc_is_named(crc):
    with pytest.raises((TypeError, ValueError), match=r"^crc must be"):
        checksum.base64_crc32c(crc)


def test_a_position_past_the_end_tells_how_long_the_file_is(path):
    start = tfw.RecordPosition(5, 10**9)
    with pytest.raises(tfw.DataLossError, match="the file has 38 bytes; the file was cut"):
        list(tfw.read_records(path, start=start))


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
@pytest.mark.parametrize("num_threads", [0, 1, 2])
def test_a_read_that_fails_names_its_file(num_threads):
    path = "/proc/self/mem"  # EIO at its beginning
    if num_threads:
        parser = tfw.Parser({"x": tfw.VarLenFeature(tfw.int64)})
        records = parser.parse_file(path, batch_size=1, num_threads=num_threads)
    else:
        records = tfw.read_records(path)
    with pytest.raises(OSError, match="/proc/self/mem"):
        list(records)


# ---- Every argument of every function: a message names it, and what was found --------------------

# What a function is about: the message says what was expected and found, if not this name. A name
# of a dtype, or a default value, is of a feature, whose name is in the message.
DATA = {"serialized", "row", "rows", "columns", "context", "feature_lists", "example", "message"}
DATA |= {"json_examples", "input_bytes", "tensor", "tensors", "record", "records", "value"}
DATA |= {"shape", "default_value", "value_key", "options", "example_name", "state", "indices"}


INT64 = tfw.int64
MET = {  # by newcomers: a call, and what its message must say
    "row splits of None": (lambda: tfw.RaggedTensor([1], None), "row_splits must be integers"),
    "row splits of text": (lambda: tfw.RaggedTensor([1], "01"), "row_splits must be integers"),
    "values of None": (lambda: tfw.RaggedTensor(None, [0, 0]), "values must be .*found NoneType"),
    "values of text": (lambda: tfw.RaggedTensor("ab", [0, 1]), "values must be .*found str"),
    "a number too large": (
        lambda: tfw.TFRecordFile("a.tfrecord")[99],
        r"a\.tfrecord: record 99 of 2",
    ),
    "numbers too large": (
        lambda: tfw.TFRecordFiles(["a.tfrecord"] * 2)[[0, 99]],
        r"a\.tfrecord and 1 other file: record 99 of 4",
    ),
    "a closed file": (lambda: closed("a.tfrecord")[0], r"a\.tfrecord: the file is closed"),
    "shape for dtype": (
        lambda: tfw.Parser({"k": tfw.FixedLenFeature(INT64, [])}),
        r"feature k: .*found \[\]; the arguments are FixedLenFeature\(shape, dtype",
    ),
    "default for dtype": (
        lambda: tfw.Parser({"k": tfw.FixedLenSequenceFeature([], True, INT64)}),
        r"feature k: .*found bool; the arguments are FixedLenSequenceFeature\(shape, dtype",
    ),
    "one message": (lambda: tfw.decode_example(b"\xff"), "the message is malformed"),
    "one sequence": (lambda: tfw.decode_sequence_example(b"\xff"), "the message is malformed"),
    "one of two messages": (lambda: tfw.decode_examples([b"", b"\xff"]), "message 1 is malformed"),
    "two words": (
        lambda: tfw.read_records("a.tfrecord", "GZIP", options=tfw.TFRecordOptions("ZLIB")),
        'compression_type="GZIP" and options=TFRecordOptions are two words',
    ),
    "a number for a word": (lambda: tfw.TFRecordWriter("b", 3), "compression_type: 3; expected"),
    "a span of time": (
        lambda: tfw.encode_columns({"k": [np.timedelta64(3, "s")]}),
        "feature 'k': record 0: expected numbers, .* found timedelta64",
    ),
    "a list that contains itself": (
        lambda: tfw.serialize_tensor(endless()),
        "would exceed the maximum number of dimension",
    ),
    "a schema of no files": (lambda: tfw.infer_schema(iter(())), "^no files: there are no records"),
    "no gzip stream": (
        lambda: list(tfw.read_records("a.tfrecord", "GZIP")),
        "no GZIP stream .* at byte 0 of the compressed file",
    ),
}


def endless():
    inner = []
    inner.append([inner])
    return inner


def closed(path):
    with tfw.TFRecordFile(path) as file:
        return file


@pytest.mark.parametrize("name", MET)
def test_what_newcomers_met_is_told(path, monkeypatch, name):
    monkeypatch.chdir(path.parent)
    call, message = MET[name]
    with pytest.raises((TypeError, ValueError, IndexError, tfw.Error), match=message):
        call()


OPTIONS = [("compression_level", 99), ("window_bits", 99), ("mem_level", 99), ("flush_mode", 99)]
OPTIONS += [("compression_strategy", 99), ("compression_method", 1), ("input_buffer_size", "1")]


@pytest.mark.parametrize(("name", "wrong"), [*OPTIONS, ("compression_level", 1.5)])
@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
def test_options_are_checked_when_they_are_made(compression, name, wrong):
    with pytest.raises((TypeError, ValueError), match=f"{name.split('_')[-1]}|zlib"):
        tfw.TFRecordOptions(compression, **{name: wrong})


@pytest.mark.parametrize("wrong", [2**63, "x", "\ud800", {}, 1j])
@pytest.mark.parametrize("make", [list, lambda values: [[value] for value in values]])
def test_a_column_names_the_record_at_fault(make, wrong):
    for absent in ([], [None]):
        column = [*make([1, 2]), *absent, *make([wrong, 3])]
        message = rf"^feature 'a': record {2 + len(absent)}: (?!record)"
        with pytest.raises((TypeError, ValueError), match=message):
            tfw.encode_columns({"a": column})


def test_a_report_shows_no_record(path):
    report = tfw.verify_file(path)
    assert b"cat" == report.first
    assert "cat" not in repr(report)


def test_a_sparse_tensor_is_a_named_tuple():
    sparse = tfw.SparseTensor(np.array([[0, 1]]), np.array([7]), np.array([2, 2]))
    indices, values, shape = sparse
    assert len(sparse) == 3
    assert [[0, 1], [7], [2, 2]] == [indices[0].tolist(), values.tolist(), shape.tolist()]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tfw.write_records("data", [EXAMPLE] * 5)
    index = tfw.RecordIndex.build("data")
    index.save()
    index.write_text("text")
    tfw.write_schema(FEATURES, "schema.json")


def contents():
    """All files, with what they hold."""
    return {path.name: path.read_bytes() for path in Path().iterdir()}


def test_every_argument_of_every_function_is_in_the_table():
    assert [] == sorted(set(unchecked()))


def test_the_arguments_of_the_table_are_right(files):
    def check(name, function, arguments):
        function(**arguments)
        if name != "RaggedFeature":  # TensorFlow's refuses bools of numpy
            flags = {key for key, value in arguments.items() if isinstance(value, bool)}
            function(**{**arguments, **{key: np.bool_(arguments[key]) for key in flags}})

    check_each(check, [(name, *function) for name, function in FUNCTIONS.items()])


HOSTILE = "\x1b[31m\u202e\x9b\r"


def test_what_a_message_repeats_of_an_argument_does_not_command_a_terminal(files):
    def check(function, arguments):
        messages = []
        for argument in arguments:
            for wrong in (HOSTILE, f"s3x://{HOSTILE}", {"a": HOSTILE}, {HOSTILE: 5}):
                try:
                    function(**{**arguments, argument: wrong})
                except Exception as error:
                    messages.append(str(error).replace("\n", ""))
        assert all(map(str.isprintable, messages)), messages

    check_each(check, FUNCTIONS.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_wrong_arguments_are_refused_by_name(files, monkeypatch, name):
    """By the call, which opens no file and changes none."""
    function, _ = FUNCTIONS[name]
    before = contents()
    if name in READERS:
        monkeypatch.setattr(os, "open", None)

    def check(arguments, argument, wrong):
        with pytest.raises((TypeError, ValueError, OSError)) as raised:
            function(**{**arguments, argument: wrong.value})
        assert name in OPENING or before == contents()
        message = str(raised.value)
        assert "0x" not in message
        if not isinstance(wrong, Otherwise):
            assert type(raised.value) in (TypeError, ValueError)
            assert argument in DATA or re.search(rf"\b{argument}\b", message)
        assert re.search(wrong.pattern, message)

    check_each(check, wrong_cases(name))


@pytest.mark.parametrize(
    ("name", "argument", "known"),
    [
        ("read_records", "on_corrupt", ["raise", "skip", "tail", "stop"]),
        ("read_records", "compression_type", ["auto", "GZIP", "ZLIB"]),
        ("Parser.parse_file", "on_corrupt", ["raise", "skip", "stop"]),
        ("Parser.parse_file", "on_parse_error", ["raise", "skip"]),
        ("Parser", "bytes_as", ["object", "column"]),
        ("SequenceParser", "bytes_as", ["object", "column"]),
        ("encode_columns", "bytes_as", ["object", "column"]),
        ("shard_source", "rule", ["even", "drop", "pad"]),
        ("TFRecordDataset", "on_corrupt", ["raise", "skip", "stop"]),
        ("TFRecordDataset", "compression_type", ["GZIP", "ZLIB"]),
        ("verify_file", "compression_type", ["auto", "GZIP", "ZLIB"]),
        ("decode", "channels", ["0", "1", "3", "4"]),
    ],
)
def test_a_wrong_word_lists_the_known_ones(files, name, argument, known):
    function, arguments = FUNCTIONS[name]
    wrong = 2 if argument == "channels" else "nonsense"
    with pytest.raises(ValueError, match=argument) as raised:
        function(**{**arguments, argument: wrong})
    assert str(wrong) in str(raised.value)
    assert all(word in str(raised.value) for word in known)


TEXT_PATHS = {"TFRecordWriter", "write_records"}  # TensorFlow's writer takes no bytes either
PATHS = {"path", "paths", "out_path", "index_path", "filenames", "folder", "pattern"}


def test_a_null_character_in_a_path_is_refused_by_name(files):
    """The operating system would say "embedded null byte", and not where."""
    before = contents()

    def check(name, argument, path):
        function, arguments = FUNCTIONS[name]
        given = [path] if isinstance(arguments[argument], list) else path
        message = rf"{argument}.* must not hold a null char"
        with pytest.raises(ValueError, match=message) as raised:
            function(**{**arguments, argument: given})
        assert "\0" not in str(raised.value)
        assert before == contents()

    cases = [
        (name, argument, path)
        for name, (_, arguments) in FUNCTIONS.items()
        for argument in PATHS & set(arguments)
        for path in ("da\0ta{shard}", b"da\0ta{shard}", Path("da\0ta{shard}"))
        if not (isinstance(path, bytes) and name in TEXT_PATHS)
    ]
    check_each(check, cases)
