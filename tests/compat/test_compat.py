"""What tfwire.compat gives beyond the steps of the tutorials: sparse and ragged results."""

import base64
import io
import operator
import re

import numpy as np
import PIL.Image
import pytest

import tfwire
import tfwire.compat as tf
from helpers.paths import DOCS
from helpers.view.viewing import jpeg
from tfwire.compat._errors import INSTEAD

SPEC = {
    "sparse": tf.io.VarLenFeature(tf.int64),
    "ragged": tf.io.RaggedFeature(tf.string),
}
SERIALIZED = tfwire.encode_examples(
    [{"sparse": [1, 2], "ragged": ["a"]}, {"ragged": ["b", "c"]}, {"sparse": [3]}]
)


@pytest.fixture(params=["called", "mapped"])
def parsed(request):
    """A batch from parse_example, also by way of a dataset."""
    if request.param == "called":
        return tf.io.parse_example(SERIALIZED, SPEC)
    dataset = tf.data.Dataset.from_tensor_slices(SERIALIZED).batch(3)
    return next(iter(dataset.map(lambda batch: tf.io.parse_example(batch, SPEC)).prefetch(1)))


def test_the_parts_of_a_sparse_tensor_are_tensors(parsed):
    sparse = parsed["sparse"]
    assert isinstance(sparse, tf.SparseTensor)
    assert [[0, 0], [0, 1], [2, 0]] == sparse.indices.numpy().tolist()
    assert [1, 2, 3] == sparse.values.numpy().tolist()
    assert [3, 2] == sparse.dense_shape.numpy().tolist()
    assert ((3, 2), np.int64) == (sparse.shape, sparse.dtype)
    assert [[1, 2], [0, 0], [3, 0]] == tf.sparse.to_dense(sparse).numpy().tolist()
    assert [[1, 2], [9, 9], [3, 9]] == tf.sparse.to_dense(sparse, 9).numpy().tolist()


def test_the_parts_of_a_ragged_tensor_are_tensors(parsed):
    ragged = parsed["ragged"]
    assert isinstance(ragged, tf.RaggedTensor)
    assert [b"a", b"b", b"c"] == ragged.values.numpy().tolist()
    assert [b"a", b"b", b"c"] == ragged.flat_values.numpy().tolist()
    assert [0, 1, 3, 3] == ragged.row_splits.numpy().tolist()
    assert [1, 2, 0] == ragged.row_lengths().numpy().tolist()
    assert (3, None) == ragged.shape
    assert [[b"a"], [b"b", b"c"], []] == ragged.to_list()
    assert [[b"a"], [b"b", b"c"], []] == [row.numpy().tolist() for row in ragged]
    assert [b"b", b"c"] == ragged[1].numpy().tolist()


def test_numpy_of_a_ragged_tensor_is_one_array_where_rows_agree(parsed):
    ragged = parsed["ragged"].numpy()
    assert ((3,), object) == (ragged.shape, ragged.dtype)
    assert [b"b", b"c"] == ragged[1].tolist()
    assert (1, 2) == parsed["ragged"][1:2].numpy().shape


def test_a_dataset_gives_sparse_and_ragged_tensors_back_as_numpy():
    dataset = tf.data.Dataset.from_tensor_slices(SERIALIZED).batch(3)
    element = next(dataset.map(lambda x: tf.io.parse_example(x, SPEC)).as_numpy_iterator())
    np.testing.assert_equal(tfwire.parse_example(SERIALIZED, SPEC)["sparse"], element["sparse"])
    assert isinstance(element["ragged"], tfwire.RaggedTensor)


def test_methods_that_a_dataset_does_not_have_name_their_replacement():
    dataset = tf.data.Dataset.from_tensor_slices([1, 2])
    with pytest.raises(AttributeError, match=r"Dataset\.sparse_batch is not .*ragged_batch"):
        dataset.sparse_batch(2)
    with pytest.raises(AttributeError, match="porting"):
        dataset.nonsense(2)
    assert not hasattr(dataset, "numpy")


def test_what_follows_records_is_a_dataset_of_tensors():
    """And no longer a TFRecordDataset, as in TensorFlow."""
    records = tf.data.TFRecordDataset("none")
    assert tf.data.Dataset is type(records.take(1)) is type(records.map(lambda record: record))
    assert tfwire.Dataset is type(tfwire.TFRecordDataset("none").take(1))


# ---- docs/porting.md ----------------------------------------------------------------------------

PAGE = (DOCS / "porting.md").read_text(encoding="utf-8")


def names_of(title):
    """TensorFlow's names in the first column of a table of docs/porting.md."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| ")]
    return sorted({name for row in rows for name in re.findall(r"\btf\.([\w.]*\w)", row)})


@pytest.mark.parametrize("title", ["Every call", "Input pipelines of TensorFlow 1"])
def test_what_the_page_names_is_there(title):
    names = names_of(title)
    assert len(names) > 15
    for name in names:
        operator.attrgetter(name)(tf)
        if not name.startswith("compat"):
            operator.attrgetter(name)(tf.compat.v1)


def test_what_the_page_calls_missing_names_its_replacement():
    names = names_of("What is not here, and what to use")
    assert len(names) > 15
    for name in names:
        with pytest.raises(AttributeError, match="instead: "):
            operator.attrgetter(name)(tf)


def test_no_replacement_is_named_for_what_is_there():
    for name in INSTEAD:
        head, *_ = name.split(".")
        if head[0].islower() or head in vars(tf):  # others are classes that hold the name
            with pytest.raises(AttributeError, match=re.escape(INSTEAD[name])):
                operator.attrgetter(name)(tf)


# ---- What replacements do -----------------------------------------------------------------------

IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
LIST = [{"a": 1}, {"a": 2}]
RAGGED = {"values": np.array([1, 2, 3]), "row_lengths": [1, 2], "row_splits": [0, 1, 3]}
REPLACED = {  # the name, what its arguments are, and what TensorFlow 2.21 gives for them
    "image.flip_left_right": ({"image": IMAGE}, IMAGE[:, ::-1]),
    "image.flip_up_down": ({"image": IMAGE}, IMAGE[::-1]),
    "image.extract_jpeg_shape": ({"x": tf.constant(jpeg(90, (6, 4)))}, (4, 6)),
    "image.decode_and_crop_jpeg": (
        {"contents": jpeg(90, (6, 4)), "top": 1, "left": 2, "height": 2, "width": 3},
        tf.image.decode_jpeg(jpeg(90, (6, 4))).numpy()[1:3, 2:5],
    ),
    "image.random_brightness": ({"x": np.zeros(3), "seed": 1, "max_delta": 0}, np.zeros(3)),
    "image.per_image_standardization": (
        {"x": np.full((2, 2, 3), 7, np.uint8)},
        np.zeros((2, 2, 3)),
    ),
    "io.decode_base64": ({"x": tf.constant(b"__79_A")}, b"\xff\xfe\xfd\xfc"),
    "io.encode_base64": ({"x": tf.constant(b"\xff\xfe\xfd\xfc")}, b"__79_A"),
    "data.experimental.from_list": ({"elements": LIST}, [1, 2]),
    "RaggedTensor.from_row_lengths": (RAGGED, [[1], [2, 3]]),
    "RaggedTensor.from_row_splits": (RAGGED, [[1], [2, 3]]),
    "map_fn": ({"f": lambda x: 2 * x, "tensor": tf.constant([1, 2])}, [2, 4]),
    "matmul": ({"x": tf.constant([[1, 2]]), "y": tf.constant([[3], [4]])}, [[11]]),
    "floor_div": ({"x": tf.constant(-7), "y": 2}, -4),
    "data.experimental.at": ({"dataset": tf.data.Dataset.range(5), "index": 3}, 3),
    "Tensor.T": ({"x": tf.constant([[1, 2]])}, [[1], [2]]),
    "Tensor.size": ({"x": tf.constant([1, 2])}, 2),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replacements_do_what_they_replace(name):
    arguments, expected = REPLACED[name]
    code = re.split(r", of x|, or ", INSTEAD[name])[0]
    names = {"tf": tf, "tfwire": tfwire, "numpy": np, "base64": base64, "PIL": PIL, "io": io}
    found = eval(code, {**names, **arguments})
    if isinstance(found, tf.data.Dataset):
        found = [element["a"] for element in found]
    found = found.to_list() if hasattr(found, "to_list") else found
    if isinstance(expected, bytes):
        assert expected == found
    else:
        np.testing.assert_array_equal(np.array(expected, object), np.array(found, object))


@pytest.mark.parametrize(("name", "axis"), [("left_right", 1), ("up_down", 0)])
def test_random_flips_are_random(name, axis):
    code, _, setup = INSTEAD[f"image.random_flip_{name}"].partition(", with ")
    names = {"tf": tf, "numpy": np, "seed": 1, "image": tf.constant(IMAGE)}
    exec(setup, names)
    found = [eval(code, names).numpy() for _ in range(20)]
    flipped = [np.array_equal(np.flip(IMAGE, axis), each) for each in found]
    assert 0 < sum(flipped) < 20
    assert all(f or np.array_equal(IMAGE, each) for f, each in zip(flipped, found, strict=True))
