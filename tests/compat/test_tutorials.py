"""The code of five TensorFlow tutorials on TFRecords, with only the import line changed.

Each test is one tutorial's steps in its order; what differs is said beside it. The first three are
translations of TensorFlow's own page, in its versions of 2019 and 2024.
"""

import numpy as np
import pytest
from PIL import Image

import tfwire.compat as tf

pytestmark = [pytest.mark.outside_c, pytest.mark.usefixtures("folder")]


# ---- The message helpers that every version of the page begins with ----------------------------


def _bytes_feature(value):
    """Returns a bytes_list from a string / byte."""
    if isinstance(value, type(tf.constant(0))):
        value = value.numpy()
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _float_feature(value):
    """Returns a float_list from a float / double."""
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))


def _int64_feature(value):
    """Returns an int64_list from a bool / enum / int / uint."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def serialize_example(feature0, feature1, feature2, feature3):
    feature = {
        "feature0": _int64_feature(feature0),
        "feature1": _int64_feature(feature1),
        "feature2": _bytes_feature(feature2),
        "feature3": _float_feature(feature3),
    }
    example_proto = tf.train.Example(features=tf.train.Features(feature=feature))
    return example_proto.SerializeToString()


@pytest.fixture
def data():
    """The data set of the page, with a seed."""
    rng = np.random.RandomState(0)
    n_observations = 1000  # the page has ten times as many
    feature0 = rng.choice([False, True], n_observations)
    feature1 = rng.randint(0, 5, n_observations)
    strings = np.array([b"cat", b"dog", b"chicken", b"horse", b"goat"])
    feature2 = strings[feature1]
    feature3 = rng.randn(n_observations)
    return feature0, feature1, feature2, feature3


def test_messages():
    assert str(_bytes_feature(b"test_string")) == 'bytes_list {\n  value: "test_string"\n}\n'
    assert str(_bytes_feature("test_bytes")) == 'bytes_list {\n  value: "test_bytes"\n}\n'
    assert str(_int64_feature(True)) == "int64_list {\n  value: 1\n}\n"
    assert str(_int64_feature(1)) == "int64_list {\n  value: 1\n}\n"
    with pytest.raises(TypeError):
        _int64_feature(1.0)
    feature = _float_feature(np.exp(1))
    assert feature.SerializeToString() == b"\x12\x06\n\x04T\xf8-@"


def test_one_observation():
    """Also as the page of 2024 has it: it decorates serialize_example and calls it at once, and
    walks over the features and their kinds."""
    example_observation = [False, 4, b"goat", 0.9876]
    decorated = tf.py_function(Tout=tf.string)(serialize_example)(*example_observation)
    serialized_example = serialize_example(*example_observation)
    assert (tf.string, serialized_example) == (decorated.dtype, decorated.numpy())
    example_proto = tf.train.Example.FromString(serialized_example)
    assert 'key: "feature0"' in str(example_proto)
    result = {}
    for key, feature in example_proto.features.feature.items():
        kind = feature.WhichOneof("kind")
        result[key] = np.array(getattr(feature, kind).value).tolist()
    assert result.pop("feature3") == pytest.approx([0.9876])
    assert result == {"feature0": [0], "feature1": [4], "feature2": [b"goat"]}


def test_tensors_as_byte_strings():
    """What the page advises for values that are no scalars."""
    matrix = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    serialized = tf.io.serialize_tensor(matrix)
    feature = _bytes_feature(serialized)
    parsed = tf.io.parse_tensor(feature.bytes_list.value[0], out_type=tf.float32)
    assert parsed.shape.as_list() == [2, 2]
    np.testing.assert_array_equal(matrix.numpy(), parsed.numpy())


def test_datasets_print_their_elements(data):
    features_dataset = tf.data.Dataset.from_tensor_slices(data)
    for name in ("bool[]", "int64[]", "string[]", "float64[]"):
        assert name in repr(features_dataset)
    assert "TFRecordDataset" in repr(tf.data.TFRecordDataset(["test.tfrecord"]))


def test_dataset_of_observations_written_by_map(data):
    """from_tensor_slices, take, map with py_function, and a dataset's own writer (2019)."""
    feature0, feature1, feature2, feature3 = data
    assert len(list(tf.data.Dataset.from_tensor_slices(feature1).take(3))) == 3
    features_dataset = tf.data.Dataset.from_tensor_slices((feature0, feature1, feature2, feature3))
    for f0, f1, f2, f3 in features_dataset.take(1):
        assert (feature0[0], feature1[0]) == (f0.numpy(), f1.numpy())
        assert (feature2[0], feature3[0]) == (f2.numpy(), f3.numpy())
        assert "tf.Tensor(" in str(f3)

    def tf_serialize_example(f0, f1, f2, f3):
        tf_string = tf.py_function(serialize_example, (f0, f1, f2, f3), tf.string)
        return tf.reshape(tf_string, ())

    assert tf_serialize_example(f0, f1, f2, f3).shape == ()
    serialized_features_dataset = features_dataset.map(tf_serialize_example)

    filename = "test.tfrecord"
    writer = tf.data.experimental.TFRecordWriter(filename)
    writer.write(serialized_features_dataset)
    assert sum(1 for _ in tf.data.TFRecordDataset([filename])) == 1000


def test_dataset_of_observations_written_from_a_generator(data):
    features_dataset = tf.data.Dataset.from_tensor_slices(data)

    def generator():
        for features in features_dataset.take(5):
            yield serialize_example(*features)

    serialized_features_dataset = tf.data.Dataset.from_generator(
        generator, output_types=tf.string, output_shapes=()
    )
    filename = "test.tfrecord"
    tf.data.experimental.TFRecordWriter(filename).write(serialized_features_dataset)
    (first, *_) = tf.data.TFRecordDataset(filename)
    example = tf.train.Example.FromString(first.numpy())
    assert example.features.feature["feature2"].bytes_list.value[0] == data[2][0]


def test_py_function_as_a_decorator(data):
    """The page of 2024 decorates serialize_example and writes example.numpy()."""
    decorated = tf.py_function(Tout=tf.string)(serialize_example)
    features_dataset = tf.data.Dataset.from_tensor_slices(data).take(3)
    with tf.io.TFRecordWriter("test.tfrecord") as writer:
        for example in features_dataset.map(decorated):
            writer.write(example.numpy())
    assert len(list(tf.io.tf_record_iterator("test.tfrecord"))) == 3


def test_writer_reader_and_parser(data):
    """The Python writer, TFRecordDataset, take, map and parse_single_example."""
    feature0, feature1, feature2, feature3 = data
    filename = "test.tfrecord"
    with tf.io.TFRecordWriter(filename) as writer:
        for i in range(len(feature0)):
            writer.write(serialize_example(feature0[i], feature1[i], feature2[i], feature3[i]))

    filenames = [filename]
    raw_dataset = tf.data.TFRecordDataset(filenames)
    for raw_record in raw_dataset.take(10):
        assert "<tf.Tensor: shape=(), dtype=string, numpy=b'" in repr(raw_record)

    feature_description = {
        "feature0": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature1": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature2": tf.io.FixedLenFeature([], tf.string, default_value=""),
        "feature3": tf.io.FixedLenFeature([], tf.float32, default_value=0.0),
    }

    def _parse_function(example_proto):
        return tf.io.parse_single_example(example_proto, feature_description)

    parsed_dataset = raw_dataset.map(_parse_function)
    for i, parsed_record in enumerate(parsed_dataset.take(10)):
        assert feature0[i] == parsed_record["feature0"].numpy()
        assert feature1[i] == parsed_record["feature1"].numpy()
        assert feature2[i] == parsed_record["feature2"].numpy()
        assert np.float32(feature3[i]) == parsed_record["feature3"].numpy()
    batched = raw_dataset.batch(500).map(lambda x: tf.io.parse_example(x, feature_description))
    assert [batch["feature3"].shape for batch in batched] == [(500,), (500,)]


def test_images():
    """Photographs with their sizes; two files made here stand for the downloads of the page."""
    for name, size in {"cat.jpg": (320, 213), "bridge.jpg": (194, 240)}.items():
        rng = np.random.RandomState(len(name))
        pixels = rng.randint(0, 256, (size[1], size[0], 3), np.uint8)
        Image.fromarray(pixels).save(name)
    image_labels = {"cat.jpg": 0, "bridge.jpg": 1}

    def image_example(image_string, label):
        image_shape = tf.io.decode_jpeg(image_string).shape
        feature = {
            "height": _int64_feature(image_shape[0]),
            "width": _int64_feature(image_shape[1]),
            "depth": _int64_feature(image_shape[2]),
            "label": _int64_feature(label),
            "image_raw": _bytes_feature(image_string),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature))

    record_file = "images.tfrecords"
    with tf.io.TFRecordWriter(record_file) as writer:
        for filename, label in image_labels.items():
            with open(filename, "rb") as file:
                tf_example = image_example(file.read(), label)
            writer.write(tf_example.SerializeToString())

    raw_image_dataset = tf.data.TFRecordDataset("images.tfrecords")
    image_feature_description = {
        **{name: tf.io.FixedLenFeature([], tf.int64) for name in ("height", "width", "depth")},
        "label": tf.io.FixedLenFeature([], tf.int64),
        "image_raw": tf.io.FixedLenFeature([], tf.string),
    }

    def _parse_image_function(example_proto):
        return tf.io.parse_single_example(example_proto, image_feature_description)

    parsed_image_dataset = raw_image_dataset.map(_parse_image_function)
    for image_features, filename in zip(parsed_image_dataset, image_labels, strict=True):
        with open(filename, "rb") as file:
            assert image_features["image_raw"].numpy() == file.read()
        assert image_labels[filename] == image_features["label"].numpy()


def test_fashion_mnist():
    """Raw float32 images with float64 labels, by a dataset and by the queues of TensorFlow 1."""
    rng = np.random.RandomState(1)
    images = rng.rand(32, 784).astype(np.float32)
    labels = np.eye(10)[rng.randint(0, 10, 32)]

    def make_example(image, label):
        return tf.train.Example(
            features=tf.train.Features(
                feature={
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                    "label": tf.train.Feature(bytes_list=tf.train.BytesList(value=[label])),
                }
            )
        )

    filename = "fashion_mnist_train.tfrecord"
    writer = tf.python_io.TFRecordWriter(filename)
    for image, label in zip(images, labels, strict=True):
        ex = make_example(image.tobytes(), label.tobytes())
        writer.write(ex.SerializeToString())
    writer.close()

    example = next(tf.python_io.tf_record_iterator(filename))
    assert 'key: "image"' in str(tf.train.Example.FromString(example))

    def read_and_decode(serialized_example):
        features = tf.parse_single_example(
            serialized_example,
            features={
                "image": tf.FixedLenFeature([], tf.string),
                "label": tf.FixedLenFeature([], tf.string),
            },
        )
        image = tf.decode_raw(features["image"], tf.float32)
        label = tf.decode_raw(features["label"], tf.float64)
        return tf.reshape(image, [28, 28, 1]), tf.reshape(label, [10])

    dataset = tf.data.TFRecordDataset(filename).map(read_and_decode).batch(16)
    for i, (image, label) in enumerate(dataset):
        assert (16, 28, 28, 1) == image.shape
        np.testing.assert_array_equal(image.numpy().reshape(16, 784), images[16 * i :][:16])
        np.testing.assert_array_equal(label.numpy(), labels[16 * i :][:16])

    # As the tutorial has it: a queue of one file, without end, that a session draws batches from.
    filename_queue = tf.train.string_input_producer([filename])
    _, serialized_example = tf.TFRecordReader().read(filename_queue)
    image, label = read_and_decode(serialized_example)
    image, label = tf.train.batch([image, label], batch_size=16, capacity=500)
    step = 0
    with tf.Session() as sess:
        init_op = tf.group(tf.local_variables_initializer(), tf.global_variables_initializer())
        sess.run(init_op)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=sess, coord=coord)
        while step < 30:
            batch, one_hot = sess.run([image, label])
            assert (16, 28, 28, 1) == batch.shape
            begin = 16 * (step % 2)
            np.testing.assert_array_equal(batch.reshape(16, 784), images[begin : begin + 16])
            np.testing.assert_array_equal(one_hot, labels[begin : begin + 16])
            step += 1
        coord.request_stop()
        coord.join(threads)


def test_sequence_example():
    data = ["the", "speed", "of", "memory"]
    example = tf.train.SequenceExample()
    example.context.feature["length"].int64_list.value.append(len(data))
    words_list = example.feature_lists.feature_list["words"]
    for word in data:
        words_list.feature.add().int64_list.value.append(len(word))
    context, lists = tf.io.parse_single_sequence_example(
        example.SerializeToString(),
        context_features={"length": tf.io.FixedLenFeature([], tf.int64)},
        sequence_features={"words": tf.io.FixedLenSequenceFeature([], tf.int64)},
    )
    assert context["length"].numpy() == 4
    assert lists["words"].numpy().tolist() == [3, 5, 2, 6]


def test_segmentation():
    """Images and masks of different sizes, restored exactly, then cropped or padded and batched.

    The tutorial's tostring and fromstring have left numpy; their successors stand here.
    """
    rng = np.random.RandomState(2)
    original_images = [
        (
            rng.randint(0, 256, (height, width, 3), np.uint8),
            rng.randint(0, 21, (height, width), np.uint8),
        )
        for height, width in [(281, 500), (375, 500), (500, 333)]
    ]
    tfrecords_filename = "pascal_voc_segmentation.tfrecords"
    writer = tf.python_io.TFRecordWriter(tfrecords_filename)
    for img, annotation in original_images:
        example = tf.train.Example(
            features=tf.train.Features(
                feature={
                    "height": _int64_feature(img.shape[0]),
                    "width": _int64_feature(img.shape[1]),
                    "image_raw": _bytes_feature(img.tobytes()),
                    "mask_raw": _bytes_feature(annotation.tobytes()),
                }
            )
        )
        writer.write(example.SerializeToString())
    writer.close()

    record_iterator = tf.python_io.tf_record_iterator(path=tfrecords_filename)
    for string_record, (img, annotation) in zip(record_iterator, original_images, strict=True):
        example = tf.train.Example()
        example.ParseFromString(string_record)
        height = int(example.features.feature["height"].int64_list.value[0])
        width = int(example.features.feature["width"].int64_list.value[0])
        img_string = example.features.feature["image_raw"].bytes_list.value[0]
        annotation_string = example.features.feature["mask_raw"].bytes_list.value[0]
        img_1d = np.frombuffer(img_string, dtype=np.uint8)
        assert np.allclose(img, img_1d.reshape((height, width, -1)))
        annotation_1d = np.frombuffer(annotation_string, dtype=np.uint8)
        assert np.allclose(annotation, annotation_1d.reshape((height, width)))

    def read_and_decode(serialized_example):
        features = tf.parse_single_example(
            serialized_example,
            features={
                "height": tf.FixedLenFeature([], tf.int64),
                "width": tf.FixedLenFeature([], tf.int64),
                "image_raw": tf.FixedLenFeature([], tf.string),
                "mask_raw": tf.FixedLenFeature([], tf.string),
            },
        )
        image = tf.decode_raw(features["image_raw"], tf.uint8)
        annotation = tf.decode_raw(features["mask_raw"], tf.uint8)
        height = tf.cast(features["height"], tf.int32)
        width = tf.cast(features["width"], tf.int32)
        image = tf.reshape(image, tf.pack([height, width, 3]))
        annotation = tf.reshape(annotation, tf.pack([height, width, 1]))
        resized_image = tf.image.resize_image_with_crop_or_pad(
            image=image, target_height=384, target_width=384
        )
        resized_annotation = tf.image.resize_image_with_crop_or_pad(
            image=annotation, target_height=384, target_width=384
        )
        return resized_image, resized_annotation

    dataset = tf.data.TFRecordDataset(tfrecords_filename).map(read_and_decode)
    images, annotations = next(iter(dataset.shuffle(30, seed=1).batch(2)))
    assert (2, 384, 384, 3) == images.shape
    assert (2, 384, 384, 1) == annotations.shape

    # As the tutorial has it: ten epochs of the file, shuffled by a queue.
    expected = {
        image.numpy().tobytes(): annotation.numpy().tobytes() for image, annotation in dataset
    }
    filename_queue = tf.train.string_input_producer([tfrecords_filename], num_epochs=10)
    _, serialized_example = tf.TFRecordReader().read(filename_queue)
    images, annotations = tf.train.shuffle_batch(
        list(read_and_decode(serialized_example)),
        batch_size=2,
        capacity=30,
        num_threads=2,
        min_after_dequeue=10,
    )
    init_op = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())
    with tf.Session() as sess:
        sess.run(init_op)
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(coord=coord)
        for _ in range(3):
            img, anno = sess.run([images, annotations])
            assert (384, 384, 3) == img[0, :, :, :].shape
            for one, mask in zip(img, anno, strict=True):
                assert mask.tobytes() == expected[one.tobytes()]
        coord.request_stop()
        coord.join(threads)
        assert [2] * 12 == [len(sess.run(images)) for _ in range(12)]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(images)
