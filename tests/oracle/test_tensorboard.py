"""Event files that TensorFlow wrote."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tfwire as tfw

EVENT, SUMMARY = tf.compat.v1.Event, tf.compat.v1.Summary


def metadata(plugin):
    return tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name=plugin)
    )


def test_values_of_a_summary_writer(tmp_path):
    values = {
        "loss": (metadata("scalars"), np.float32(0.25), "scalar", []),
        "count": (metadata("scalars"), np.int64(-7), "scalar", []),
        "image": (metadata("images"), np.array([b"4", b"3", b"png"]), "image", [3, 4]),
        "text": (metadata("text"), np.array([b"some"]), "text", [1]),
        "raw": (None, np.zeros((2, 3), np.float32), "tensor", [2, 3]),
    }
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        for step in range(2):
            for tag, (about, tensor, _, _) in values.items():
                assert tf.summary.write(tag, tf.constant(tensor), step, about)
    writer.close()
    (path,) = tmp_path.iterdir()
    found = tfw.tensorboard.scalars(path)
    assert list(values) * 2 == found["tag"]
    assert [0] * 5 + [1] * 5 == found["step"].tolist()
    assert [kind for *_, kind, _ in values.values()] * 2 == found["kind"]
    assert [shape for *_, shape in values.values()] * 2 == found["shape"]
    np.testing.assert_array_equal([0.25, -7, *[np.nan] * 3] * 2, found["value"])
    records = [EVENT.FromString(record) for record in tfw.read_records(path)]
    times = [event.wall_time for event in records for _ in event.summary.value]
    assert times == found["wall_time"].tolist()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"simple_value": 2.5}, (2.5, "scalar", [])),
        ({"image": SUMMARY.Image(height=3, width=4)}, (np.nan, "image", [3, 4])),
        ({"histo": tf.compat.v1.HistogramProto(min=1)}, (np.nan, "histogram", [])),
        ({"audio": SUMMARY.Audio(sample_rate=8000)}, (np.nan, "audio", [])),
        ({}, (np.nan, "none", [])),
    ],
)
def test_values_of_graphs(tmp_path, value, expected):
    event = EVENT(step=3, wall_time=5, summary=SUMMARY(value=[SUMMARY.Value(tag="x", **value)]))
    with tf.io.TFRecordWriter(str(tmp_path / "events")) as writer:
        writer.write(EVENT(file_version="brain.Event:2").SerializeToString())
        writer.write(event.SerializeToString())
    found = tfw.tensorboard.scalars(tmp_path / "events")
    assert (["x"], [3], [5.0]) == (found["tag"], [*found["step"]], [*found["wall_time"]])
    assert ([expected[1]], [expected[2]]) == (found["kind"], found["shape"])
    np.testing.assert_array_equal([expected[0]], found["value"])
