"""Tensors, dtypes, errors, files and functions of tfwire.compat.

tests/oracle/test_compat.py compares them with TensorFlow; here is what must hold without it.
"""

import copy
import operator
import pickle
import warnings

import numpy as np
import pytest

import tfwire as tfw
import tfwire.compat as tf
from helpers.reading import damage

pytestmark = pytest.mark.usefixtures("folder")


# ---- Constants ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "error"),
    [
        (1.5, tf.int32, TypeError),
        ([1, 1.5], tf.int64, TypeError),
        ("1", tf.int32, TypeError),
        ("1", tf.float32, TypeError),
        (1, tf.string, TypeError),
        (1, tf.bool, TypeError),
        (True, tf.uint8, TypeError),
        (tf.constant(1), tf.int64, TypeError),
        (None, None, ValueError),
        ([1, "a"], None, ValueError),
        ([True, 1], None, ValueError),
        ([[1], [2, 3]], None, ValueError),
        (2**63, None, ValueError),
        ({}, None, ValueError),
        (np.array([1, 2], object), None, ValueError),
        (np.datetime64("2020-01-01"), None, ValueError),
        (1, "nonsense", TypeError),
    ],
    ids=repr,
)
def test_constants_that_tensorflow_refuses_are_refused(value, dtype, error):
    with pytest.raises(error):
        tf.constant(value, dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, "int32"), (2**31, "int64"), (1.5, "float32"), (True, "bool"), ("a", "string")]
    + [([1, 2.5], "float32"), ([], "float32"), (1j, "complex128"), (np.float64(1), "float64")]
    + [(np.arange(2), "int64"), (np.uint8(1), "uint8"), ([1, True], "int32"), (["a"], "string")],
    ids=repr,
)
def test_dtypes_are_inferred_as_by_tensorflow(value, dtype):
    assert dtype == tf.constant(value).dtype.name


def test_a_constant_fills_its_shape():
    assert [[7, 7]] == tf.constant(7, shape=[1, 2]).numpy().tolist()
    assert [[1], [2]] == tf.constant([1, 2], shape=(2, 1)).numpy().tolist()
    with pytest.raises(TypeError):
        tf.constant([1, 2, 3], shape=[2, 2])
    with pytest.raises(ValueError, match="negative"):
        tf.constant([1, 2], shape=[-1])


def test_a_constant_does_not_change_with_the_array_it_came_from():
    array = np.zeros(2)
    tensor = tf.constant(array)
    array[0] = 1
    assert [0, 0] == tensor.numpy().tolist()


def test_casts_between_numbers_and_strings_are_refused():
    with pytest.raises(tf.errors.UnimplementedError):
        tf.cast("1", tf.int32)
    with pytest.raises(tf.errors.UnimplementedError):
        tf.cast(1, tf.string)
    assert [44, 255, 2] == tf.cast([300.7, -1.0, 2.5], tf.uint8).numpy().tolist()


# ---- Tensors ------------------------------------------------------------------------------------


def test_operators():
    three = tf.constant(3)
    assert (-3, 3, 1, 3) == tuple(x.numpy() for x in (-three, abs(-three), three % 2, three // 1))
    assert (1.5, 4) == ((three / 2).numpy(), (1 + three).numpy())
    assert [True, False] == (tf.constant([True, True]) & [True, False]).numpy().tolist()
    assert b"ab" == ("a" + tf.constant("b")).numpy()
    assert [True, False] == (tf.constant(["a", "b"]) == "a").numpy().tolist()
    assert [False, True] == (~tf.constant([True, False])).numpy().tolist()
    assert (three == None) is False  # noqa: E711
    for wrong in (lambda: three + 1.5, lambda: three + tf.constant(1.0), lambda: three < "a"):
        with pytest.raises(TypeError):
            wrong()
        with pytest.raises(tf.errors.InvalidArgumentError):
            wrong()
    with pytest.raises(tf.errors.InvalidArgumentError, match="zero"):
        three // 0


def test_indices():
    tensor = tf.constant([[1, 2], [3, 4]])
    assert 4 == tensor[1, tf.constant(1)].numpy()
    assert [2, 4] == tensor[:, 1].numpy().tolist()
    assert (1, 2, 2) == tensor[tf.newaxis].shape
    assert [[3, 4]] == tensor[tf.constant([False, True])].numpy().tolist()
    with pytest.raises(tf.errors.InvalidArgumentError):
        tensor[2]
    with pytest.raises(TypeError):
        tensor["a"]


def test_shapes():
    tensor = tf.constant([[1, 2]])
    assert (2, 2, 2) == (tensor.shape.ndims, tensor.shape.rank, tensor.shape.num_elements())
    assert [1, 2] == tensor.get_shape().as_list()
    tensor.set_shape([None, 2])
    with pytest.raises(ValueError, match="shape"):
        tensor.set_shape([2, 2])
    shape = tf.TensorShape([None, 2])
    assert not shape.is_fully_defined()
    assert shape.is_compatible_with([5, 2])
    assert [None, 2, 3] == (shape + [3]).as_list()
    assert (1, None, 2) == [1] + shape
    assert tf.TensorShape(None).rank is None
    assert np.zeros(tensor.shape).shape == tensor.shape == (1, 2)


def test_tensors_copy_and_pickle():
    tensor = tf.constant([b"a\0"])
    for found in (copy.copy(tensor), copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert [b"a\0"] == found.numpy().tolist()


def test_there_is_one_class_of_dtypes():
    assert type(tf.uint8) is type(tfw.int64) is tf.DType
    assert tf.int64 is tfw.int64
    assert "tf.float32" == repr(tf.float32)
    assert (4, True) == (tf.float32.size, tf.float32.is_floating)
    assert not tf.float32.is_integer | tf.float32.is_bool
    assert (255, 0, -128) == (tf.uint8.max, tf.uint8.min, tf.int8.min)
    assert tf.as_dtype("half") == np.float16
    assert tf.constant(1).dtype == np.int32 == tf.int32
    assert np.zeros(1, tf.uint16.as_numpy_dtype).dtype == np.zeros(1, tf.uint16).dtype
    with pytest.raises(TypeError):
        _ = tf.string.max
    with pytest.raises(TypeError):
        tf.as_dtype("nonsense")


# ---- Errors -------------------------------------------------------------------------------------


def damaged_file():
    tfw.write_records("damaged", [b"record"])
    damage("damaged", 14)
    return "damaged"


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("DataLossError", lambda: list(tf.data.TFRecordDataset(damaged_file()))),
        ("NotFoundError", lambda: list(tf.data.TFRecordDataset("none"))),
        ("NotFoundError", lambda: tf.io.read_file("none")),
        ("NotFoundError", lambda: tf.io.gfile.GFile("none").read()),
        ("AlreadyExistsError", lambda: tf.io.gfile.copy(damaged_file(), damaged_file())),
        ("FailedPreconditionError", lambda: tf.io.read_file(".")),
        (
            "InvalidArgumentError",
            lambda: tf.io.parse_single_example(b"", {"a": tf.io.FixedLenFeature([], tf.int64)}),
        ),
        ("InvalidArgumentError", lambda: tf.io.decode_raw(b"abc", tf.int16)),
        ("InvalidArgumentError", lambda: tf.io.parse_tensor(b"junk", tf.int32)),
        ("InvalidArgumentError", lambda: tf.io.decode_image(b"junk")),
        ("InvalidArgumentError", lambda: tf.reshape([1, 2], [3])),
        ("InvalidArgumentError", lambda: tf.strings.to_number("x")),
    ],
)
def test_except_clauses_for_tensorflow_catch_what_is_raised(name, use):
    cls = getattr(tf.errors, name)
    assert isinstance(cls, type)
    assert issubclass(cls, Exception)
    with pytest.raises(cls) as caught:
        use()
    if isinstance(caught.value, tf.errors.OpError):
        assert str(caught.value) == caught.value.message


def test_errors_are_made_as_tensorflow_makes_them():
    error = tf.errors.OutOfRangeError(None, None, "End of sequence")
    assert "End of sequence" == error.message == str(error)
    assert 15 == tf.errors.DATA_LOSS
    assert tf.errors.DataLossError is tfw.DataLossError


# ---- Functions ----------------------------------------------------------------------------------


def test_py_function_takes_a_list_of_dtypes():
    found = tf.py_function(lambda x: (x, "a"), [1], [tf.int32, tf.string])
    assert [1, b"a"] == [tensor.numpy() for tensor in found]
    assert [1] == [tensor.numpy() for tensor in tf.py_function(lambda x: x, [1], [tf.int32])]
    assert [] == tf.py_function(lambda: None, [], [])
    for wrong in ([tf.int32, tf.int32], [tf.int64], tf.string):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.py_function(lambda x: x, [1], wrong)


def test_numpy_function_passes_arrays():
    def shout(text, number):
        assert isinstance(text, bytes)
        assert isinstance(number, np.int32)
        return text.upper(), np.float64(number)

    found = tf.numpy_function(shout, ["a\0", 1], [tf.string, tf.float64])
    assert [b"A\0", 1.0] == [tensor.numpy() for tensor in found]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.numpy_function(lambda: np.float64(1), [], tf.float32)


def test_tf_function_is_the_identity():
    def double(x):
        return x * 2

    assert tf.function(double) is double
    assert tf.function(jit_compile=True)(double) is double
    assert tf.function(input_signature=[tf.TensorSpec([], tf.int32)])(double) is double


def test_blocks_for_graphs_have_no_effect():
    with tf.device("/cpu:0"), tf.name_scope("input"), tf.control_dependencies([]):
        assert 1 == tf.cond(tf.constant(True), lambda: 1, lambda: 2)


def test_a_batch_of_images_is_cropped_or_padded_image_by_image():
    images = np.arange(2 * 3 * 2).reshape(2, 3, 2, 1)
    found = tf.image.resize_with_crop_or_pad(images, 2, 4).numpy()
    assert (2, 2, 4, 1) == found.shape
    for image, expected in zip(images, found, strict=True):
        single = tf.image.resize_with_crop_or_pad(image, 2, 4).numpy()
        assert np.array_equal(expected, single)
    with pytest.raises(ValueError, match="shape"):
        tf.image.resize_with_crop_or_pad(np.zeros((2, 2)), 2, 2)


def test_files():
    tf.io.write_file("folder/a", "text")
    assert b"text" == tf.io.read_file(tf.constant("folder/a")).numpy()
    assert [b"folder/a"] == tf.io.matching_files("folder/*").numpy().tolist()
    gfile = tf.io.gfile
    with gfile.GFile("folder/b", "w") as file:
        file.write("one\ntwo\n")
    with gfile.GFile("folder/b") as file:
        assert ["one\n", "two\n"] == list(file)
    assert b"one\n" == gfile.GFile("folder/b", "rb").readline()
    assert ["folder/a", "folder/b"] == sorted(gfile.glob("folder/*"))
    assert gfile.exists("folder/a")
    assert 4 == gfile.stat("folder/a").length
    for wrong in (None, 5, ["text"], object()):
        with pytest.raises(TypeError, match="bytes-like"):
            gfile.GFile("folder/a", "w").write(wrong)
        with pytest.raises(TypeError, match=r"mode must be a str|expected str"):
            gfile.GFile("folder/a", wrong)
    assert b"text" == tf.io.read_file("folder/a").numpy()
    gfile.rename("folder/a", "folder/c")
    gfile.remove("folder/b")
    assert [("folder", [], ["c"])] == list(gfile.walk("folder"))
    gfile.rmtree("folder")
    assert not tf.gfile.Exists("folder")


# ---- What is missing ----------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [tf.Tensor, tf.SparseTensor, tf.RaggedTensor, tf.io.gfile.GFile])
def test_missing_names_of_classes_and_objects_are_explained(cls):
    for holder in (cls, cls.__new__(cls)):
        with pytest.raises(AttributeError, match=r"nonsense.*docs/porting\.md"):
            _ = holder.nonsense
        assert not hasattr(holder, "__nonsense__")


def test_public_names_exist_and_are_documented():
    for name in tf.__all__:
        if callable(value := getattr(tf, name)):
            assert value.__doc__, name


@pytest.mark.parametrize("owner", ["TensorShape", "TensorSpec", "SparseTensorSpec", "data.Options"])
def test_classes_explain_what_they_do_not_have(owner):
    cls = operator.attrgetter(owner)(tf)
    made = cls() if owner == "data.Options" else cls([1])
    for where in (cls, made):
        assert not hasattr(where, "nothing")
        with pytest.raises(AttributeError, match=rf"tf\.{owner}\.nothing is not in tfwire.compat"):
            _ = where.nothing
    copy.copy(pickle.loads(pickle.dumps(made)))


@pytest.mark.parametrize("name", ["none", b"none"])
def test_errors_of_files_name_the_file(name):
    with pytest.raises(
        tf.errors.NotFoundError, match=r"^none: No such file or directory$"
    ) as caught:
        tf.io.read_file(name)
    assert isinstance(caught.value, tf.errors.OpError)


def test_a_pattern_without_files_is_an_invalid_argument():
    with pytest.raises(tf.errors.InvalidArgumentError, match="no files match"):
        tf.data.Dataset.list_files("nothing*")


def test_a_file_that_is_open_for_writing_cannot_be_read(tmp_path):
    with pytest.raises(tf.errors.PermissionDeniedError, match="not open for reading"):
        tf.io.gfile.GFile(str(tmp_path / "a"), "w").read()


# ---- Complex numbers as real ones ---------------------------------------------------------------

COMPLEX = np.array([1.5 + 2j, -2.5 - 1j, 0 + 3j])
AS_REAL = {
    "cast": lambda: tf.cast(tf.constant(COMPLEX), tf.float32).numpy().tolist(),
    "cast of an array": lambda: tf.cast(COMPLEX.astype(np.complex64), tf.float64).numpy().tolist(),
    "constant": lambda: tf.constant(COMPLEX, tf.float32).numpy().tolist(),
    "convert_to_tensor": lambda: tf.convert_to_tensor(COMPLEX, tf.float64).numpy().tolist(),
    "operand": lambda: (tf.constant([1.0] * 3) * COMPLEX).numpy().tolist(),
    "py_function": lambda: tf.py_function(lambda: COMPLEX, [], tf.float32).numpy().tolist(),
    "generator": lambda: (
        next(
            iter(
                tf.data.Dataset.from_generator(
                    lambda: [COMPLEX], output_signature=tf.TensorSpec([3], tf.float32)
                )
            )
        )
        .numpy()
        .tolist()
    ),
    "float": lambda: [float(each) for each in tf.constant(COMPLEX)],
    "array": lambda: np.array(tf.constant(COMPLEX), np.float32).tolist(),
    "int": lambda: [int(each) + 0.5 for each in tf.constant(COMPLEX + [0, 0, 0.5])],
}


@pytest.mark.parametrize("name", AS_REAL)
def test_complex_numbers_become_real_ones_without_a_warning(name):
    """Of their real parts, as in TensorFlow, which logs a warning or lets numpy's out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = AS_REAL[name]()
    assert found == ([1.5, -1.5, 0.5] if name == "int" else [1.5, -2.5, 0.0])


def test_complex_padding_of_integers_is_refused_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="does not fit elements of int64"):
            list(tf.data.Dataset.range(2).padded_batch(2, padding_values=1j))


def test_arguments_by_their_names_in_tensorflow_1(tmp_path):
    table = [[1, 2], [3, 4]]
    assert [[3], [7]] == tf.reduce_sum(table, reduction_indices=1, keep_dims=True).numpy().tolist()
    assert 10 == tf.reduce_sum(table, reduction_indices=None).numpy()
    assert (1, 2, 2) == tf.expand_dims(table, dim=0).shape
    assert [0, 0] == tf.zeros_like(tensor=[1, 2], optimize=True).numpy().tolist()
    tf.assert_equal(1, 1, data=["told"], summarize=3)
    with pytest.raises(ValueError, match="either axis or reduction_indices"):
        tf.reduce_sum(table, axis=0, reduction_indices=0)
    with pytest.raises(TypeError, match="keep_dims"):
        tf.cast(1, tf.int64, keep_dims=True)
    path = tmp_path / "file"
    path.touch()
    assert tf.gfile.Exists(filename=str(path))
    tf.gfile.Copy(oldpath=str(path), newpath=str(path) + "2")
    assert ["file", "file2"] == sorted(tf.gfile.ListDirectory(dirname=str(tmp_path)))
