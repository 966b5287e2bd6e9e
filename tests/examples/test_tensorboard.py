"""tfwire.tensorboard: what event files log, as columns."""

import struct

import numpy as np
import pytest

import tfwire as tfw
from tfwire import tensorboard


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def event(step, *values, wall_time=1.7e9):
    summary = field(5, b"".join(field(1, value) for value in values)) if values else b""
    return b"\x09" + struct.pack("<d", wall_time) + bytes([0x10, step]) + summary


def value(tag, content, plugin=None):
    metadata = field(9, field(1, field(1, plugin))) if plugin else b""
    return field(1, tag) + metadata + content


def tensor(array):
    return field(8, tfw.serialize_tensor(array))


def test_values_of_every_kind(tmp_path):
    image = tensor(np.array([b"40", b"30", b"png"], object))
    records = [
        b"\x09" + bytes(8) + field(3, b"brain.Event:2"),
        event(1, value(b"loss", b"\x15" + struct.pack("<f", 0.5))),
        event(2, value(b"accuracy", tensor(np.float32(0.25)), b"scalars")),
        event(3, value(b"accuracy", tensor(np.float64(0.75)))),
        event(4, value(b"photo", image, b"images"), value(b"old", field(4, b"\x08\x05\x10\x07"))),
        event(5, value(b"weights", field(5, b"")), value(b"any", tensor(np.ones((2, 3))))),
    ]
    path = tmp_path / "events.out.tfevents.1"
    tfw.write_records(path, records)
    found = tensorboard.scalars(path)
    tags = ["loss", "accuracy", "accuracy", "photo", "old", "weights", "any"]
    assert found["tag"] == tags
    assert found["step"].tolist() == [1, 2, 3, 4, 4, 5, 5]
    assert found["wall_time"].tolist() == [1.7e9] * 7
    np.testing.assert_array_equal(found["value"], [0.5, 0.25, 0.75, *[np.nan] * 4])
    assert found["kind"] == [*["scalar"] * 3, "image", "image", "histogram", "tensor"]
    assert found["shape"] == [[], [], [], [30, 40], [5, 7], [], [2, 3]]


@pytest.mark.parametrize("record", [b"\xff\xff", tfw.encode_example({"x": 1})])
def test_what_is_no_event_is_refused(tmp_path, record):
    path = tmp_path / "records"
    tfw.write_records(path, [event(1), record])
    with pytest.raises(tfw.ParseError, match="record 1 is no event of TensorBoard"):
        tensorboard.scalars(path)
    tfw.write_records(path, [])
    assert [len(column) for column in tensorboard.scalars(path).values()] == [0] * 6
