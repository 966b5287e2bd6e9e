"""What parses as an Example and is none: refused by whatever reads without a specification."""

import json
import struct

import numpy as np
import pytest

import tfwire as tfw
import tfwire.arrow
from helpers.command import tfwire_command

EXAMPLE = tfw.encode_example({"label": 3})
EVENT = b"\x09" + struct.pack("<d", 1.7e9) + b"\x10\x05\x2a\x0d\x0a\x0b\x0a\x04loss\x15" + bytes(4)
SCENARIO = (b"\x09" + bytes(8)) * 11 + b"\x2a\x01x" + b"\x12\x04\x08\x07\x10\x01" * 3 + b"\x50\x0a"
OTHERS = {
    "an event of TensorBoard": EVENT,
    "a serialized tensor": tfw.serialize_tensor(np.ones((2, 3), np.float32)),
    "another protocol buffer, with fields 1, 2": b"\x08\x05\x10\x01",
    "another protocol buffer, with fields 1, 2, 5, 10": SCENARIO,
    "another protocol buffer, with fields 1": b"\n\x02\x08\x01",
    "another protocol buffer, with fields 1, 3, 10": b"\x08\x05\x1a\x01x\x50\x01",
}
READERS = {
    "decode": lambda record, path: tfw.decode_example(record),
    "many": lambda record, path: tfw.decode_examples([EXAMPLE, record]),
    "sequence": lambda record, path: tfw.decode_sequence_example(record),
    "schema": lambda record, path: tfw.infer_schema(path),
    "json": lambda record, path: tfw.example_to_json(record),
    "arrow": lambda record, path: tfwire.arrow.open_reader(path).read_all(),
}


@pytest.fixture(params=OTHERS)
def other(request, tmp_path):
    path = tmp_path / "others.tfrecord"
    tfw.write_records(path, [OTHERS[request.param]] * 2)
    return request.param, OTHERS[request.param], path


@pytest.mark.parametrize("reader", READERS)
def test_another_message_is_no_empty_example(other, reader):
    name, record, path = other
    with pytest.raises(tfw.ParseError, match=f"no features; it may be {name}: "):
        READERS[reader](record, path)


@pytest.mark.parametrize("sequence", [False, True])
@pytest.mark.parametrize("record", [b"", b"\n\0", b"\n\0\n\0", b"\x0a\x80\x00"])
def test_an_empty_message_is_an_empty_example(tmp_path, record, sequence):
    found = tfw.decode_sequence_example(record) if sequence else tfw.decode_example(record)
    assert found == (({}, {}) if sequence else {})
    path = tmp_path / "empty"
    tfw.write_records(path, [record])
    assert dict(tfw.infer_schema(path)) == {}


def test_steps_alone_are_no_example():
    record = tfw.encode_sequence_example({}, {"steps": [[1], [2]]})
    with pytest.raises(tfw.ParseError, match=r"a SequenceExample: .*decode_sequence_example"):
        tfw.decode_example(record)
    with_context = tfw.encode_sequence_example({"id": 1}, {"steps": [[1], [2]]})
    assert list(tfw.decode_example(with_context)) == ["id"]


def test_a_specification_keeps_what_tensorflow_makes_of_it():
    optional = {"a": tfw.VarLenFeature(tfw.int64), "b": tfw.FixedLenFeature([], tfw.int64, 7)}
    assert tfw.parse_single_example(EVENT, optional)["b"] == 7


def test_commands_refuse_or_name_it(other):
    name, _, path = other
    for target in ("jsonl", "csv"):
        done = tfwire_command("convert", path, "-o", path.with_suffix(f".{target}"))
        assert done.returncode == 1
        assert f"record 0 is not an Example: it has no features; it may be {name}" in done.stderr
    for command in ("schema", "stats"):
        done = tfwire_command(command, path)
        assert done.returncode == 1
        assert f"it may be {name}" in done.stderr
    shown = tfwire_command("head", "--format", "json", path).stdout.splitlines()
    assert [json.loads(line)["other"]["maybe"] for line in shown] == [name] * 2
    assert "other" in tfwire_command("info", path).stdout
