"""Programs that were written for TensorFlow, with the import replaced."""

from typing import Any

from typing_extensions import assert_type

import tfwire.compat as tf

features = {
    "label": tf.io.FixedLenFeature([], tf.int64),
    "image": tf.io.FixedLenFeature([], tf.string),
}


def parse(record: Any) -> Any:
    example = tf.io.parse_single_example(record, features)
    image = tf.io.decode_png(example["image"], channels=3)
    return tf.cast(image, tf.float32) / 255.0, example["label"]


dataset = tf.data.TFRecordDataset(["a.tfrecord"], compression_type="GZIP")
dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.shuffle(1000).batch(32).prefetch(tf.data.AUTOTUNE)
for images, labels in dataset:
    print(images.shape, labels.numpy())

with tf.io.TFRecordWriter("a.tfrecord") as writer:
    example = tf.train.Example(
        features=tf.train.Features(
            feature={"label": tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))}
        )
    )
    writer.write(example.SerializeToString())

value = tf.constant([1, 2, 3])
assert_type(value, tf.Tensor)
assert_type(value + 1, tf.Tensor)
assert_type(2 * value - value, tf.Tensor)
assert_type(-value, tf.Tensor)
assert_type(tf.reshape(value, [3, 1]), tf.Tensor)
assert_type(tf.stack([value, value]), tf.Tensor)
assert_type(tf.io.gfile.exists("a"), Any)
assert_type(tf.cast(value, tf.float32).dtype, tf.DType)
