"""Iterators of tfwire.compat after an error: they go on, or say that they cannot."""

import threading

import numpy as np
import pytest

import tfwire
import tfwire.compat as tf

Dataset = tf.data.Dataset
FAILING = {1, 4, 5}


def fail(x):
    if int(x) in FAILING:
        raise ArithmeticError("a number")
    return x


def failing():
    return Dataset.range(9).map(fail)


def outcomes(dataset, most=100):
    """Elements, and None for each error of a function; the name of another error."""
    found, elements = [], iter(dataset)
    for _ in range(most):
        try:
            found.append(next(elements))
        except StopIteration:
            return found
        except ArithmeticError:
            found.append(None)
        except (tf.errors.OpError, TypeError) as error:
            found.append(type(error).__name__)
    raise AssertionError("there is no end")


def numbers(found):
    return [x if x is None or isinstance(x, str) else np.asarray(x).tolist() for x in found]


ALIKE = {
    "map": lambda d: d,
    "map of map": lambda d: d.map(lambda x: x).map(lambda x: x),
    "threads": lambda d: d.map(lambda x: x, num_parallel_calls=3),
    "prefetch": lambda d: d.prefetch(3),
    "filter": lambda d: d.filter(lambda x: x >= 0),
    "shuffle of one": lambda d: d.shuffle(1),
    "all": lambda d: d.prefetch(1).take(99).skip(0).repeat(1).concatenate(Dataset.range(0)),
    "zip": lambda d: Dataset.zip((d, Dataset.range(9))).map(lambda x, y: x),
    "zip after": lambda d: Dataset.zip((Dataset.range(9), d)).map(lambda x, y: x),
    "zip of both": lambda d: Dataset.zip((d, d)).map(lambda x, y: x),
    "shard": lambda d: d.shard(1, 0),
}


@pytest.mark.parametrize("name", ALIKE)
def test_an_iterator_goes_on(name):
    assert [0, None, 2, 3, None, None, 6, 7, 8] == numbers(outcomes(ALIKE[name](failing())))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_loses_no_element(size, threads):
    dataset = Dataset.range(9).map(fail, num_parallel_calls=threads).batch(size).prefetch(2)
    found = numbers(outcomes(dataset))
    assert [0, 2, 3, 6, 7, 8] == [n for batch in found if batch for n in batch]
    assert 3 == found.count(None)
    assert all(len(batch) <= size for batch in found if batch)


@pytest.mark.parametrize("buffer_size", [1, 2, 5, 20])
@pytest.mark.parametrize("batch", [None, 2])
def test_a_shuffle_loses_no_element(buffer_size, batch):
    dataset = failing().shuffle(buffer_size, seed=1)
    found = numbers(outcomes(dataset if batch is None else dataset.batch(batch)))
    given = [n for one in found if one is not None for n in np.ravel(one)]
    assert [0, 2, 3, 6, 7, 8] == sorted(given)
    assert 3 == found.count(None)


@pytest.mark.parametrize("threads", [None, 2])
def test_a_long_shuffle_loses_no_element(threads):
    def failing_often(x):
        if int(x) % 25 == 0:
            raise ArithmeticError
        return x

    dataset = Dataset.range(4000).map(failing_often, num_parallel_calls=threads)
    found = numbers(outcomes(dataset.shuffle(1500, seed=1), most=4001))
    assert 160 == found.count(None)
    assert [n for n in range(4000) if n % 25] == sorted(n for n in found if n is not None)


def test_a_shuffle_goes_on_where_its_source_has_no_position():
    def generate():
        yield from (1, "x", *range(2, 4000))

    spec = tf.TensorSpec([], tf.int64)
    dataset = Dataset.from_generator(generate, output_signature=spec).shuffle(3, seed=1)
    found = numbers(outcomes(dataset, most=4001))
    assert 1 == found.count("DtypeError")
    assert list(range(1, 4000)) == sorted(n for n in found if n != "DtypeError")


@pytest.mark.parametrize(
    "between",
    [
        lambda d: d,
        lambda d: d.map(lambda x: x, num_parallel_calls=2),
        lambda d: d.prefetch(3),
        lambda d: d.filter(lambda x: x >= 0),
        lambda d: d.shuffle(3, seed=1),
        lambda d: Dataset.zip((d, Dataset.range(9))).map(lambda x, y: x),
        lambda d: d.concatenate(Dataset.range(0)).repeat(1).shard(1, 0),
        lambda d: d.batch(4).unbatch(),
        lambda d: d.batch(4).prefetch(1).unbatch(),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 9])
def test_an_error_above_hides_none_below(between, size):
    def fail_too(x):
        if int(x) in (0, 3, 6):
            raise ArithmeticError("another number")
        return x

    found = numbers(outcomes(between(failing()).map(fail_too).batch(size)))
    assert [2, 7, 8] == sorted(n for batch in found if batch for n in batch)
    assert 6 == found.count(None)


def test_an_error_above_hides_no_damage(tmp_path):
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        tfwire.write_records(path, [b"0", b"1", b"2"])
    with open(paths[0], "r+b") as file:
        file.seek(2 * 17 + 12)
        file.write(b"x")

    def fail_too(x):
        if bytes(x.numpy()) == b"0":
            raise ArithmeticError
        return x

    dataset = tf.data.TFRecordDataset(paths).map(fail_too).batch(4)
    found = numbers(outcomes(dataset))
    assert [None, [b"1"], "DataLossError", None, [b"1", b"2"]] == found


@pytest.mark.parametrize("buffer_size", [2, 4, 20])
def test_states_of_a_shuffle_after_errors(buffer_size):
    def build():
        return iter(failing().shuffle(buffer_size, seed=1).repeat(2))

    elements, states, found = build(), [], []
    while True:
        try:
            states.append(elements.state_dict())
        except (ArithmeticError, ValueError):
            states.append(None)
        try:
            found.append(int(next(elements)))
        except ArithmeticError:
            found.append(None)
        except StopIteration:
            break
    assert [state for state in states if state]
    for i, state in enumerate(states):
        if state is not None:
            resumed = build()
            resumed.load_state_dict(state)
            assert found[i:] == numbers(outcomes(resumed))


def test_numbers_and_shards_and_epochs():
    assert [0, 2, 3, 6, 7, 8] == [int(one[0]) for one in outcomes(failing().enumerate()) if one]
    assert [0, None, 3, None, None, 7] == numbers(outcomes(failing().shard(2, 0)))
    twice = numbers(outcomes(failing().repeat(2)))
    assert twice[:9] == twice[9:]
    assert [0, None, 2] == numbers(outcomes(failing().take(2)))


def test_elements_of_a_generator_that_do_not_fit():
    def generate():
        yield from (1, "x", 2)
        raise ArithmeticError

    dataset = Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64))
    assert [1, "DtypeError", 2, None] == numbers(outcomes(dataset))


def test_damage_is_followed_by_the_next_file(tmp_path):
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        tfwire.write_records(path, [b"0", b"1", b"2"])
    with open(paths[0], "r+b") as file:
        file.seek(17 + 12)
        file.write(b"x")
    found = numbers(outcomes(tf.data.TFRecordDataset(paths)))
    assert [b"0", "DataLossError", b"0", b"1", b"2"] == found


@pytest.mark.parametrize(
    "stage",
    [
        lambda d: d.flat_map(lambda x: Dataset.range(1)),
        lambda d: d.interleave(lambda x: Dataset.range(1), 1),
        lambda d: d.cache(),
        lambda d: d.take_while(lambda x: x >= 0),
        lambda d: d.window(2).flat_map(lambda w: w),
        lambda d: d.scan(np.int64(0), lambda state, x: (state, x)).map(lambda x: x).batch(1),
        lambda d: d.unique().prefetch(2),
    ],
)
def test_an_iterator_that_cannot_go_on_says_so(stage):
    found = numbers(outcomes(stage(failing())))
    assert [None, "FailedPreconditionError"] == found[-2:]
    assert 1 == found.count(None)


def test_the_state_after_an_error_is_that_of_the_next_element():
    for build in (failing, lambda: failing().enumerate(), lambda: failing().repeat(2)):
        elements = iter(build())
        next(elements)
        with pytest.raises(ArithmeticError):
            next(elements)
        resumed = iter(build())
        resumed.load_state_dict(elements.state_dict())
        assert int(np.ravel(next(resumed))[-1]) == int(np.ravel(next(elements))[-1]) == 2


def test_a_state_is_loaded_in_place_of_what_cannot_go_on():
    elements = iter(Dataset.range(9).map(fail).unique())
    state = elements.state_dict()
    assert 0 == next(elements)
    with pytest.raises(ArithmeticError):
        next(elements)
    with pytest.raises(ValueError, match="interrupted"):
        elements.state_dict()
    elements.load_state_dict(state)
    assert 0 == next(elements)


def test_every_error_reaches_one_thread():
    elements, found = iter(Dataset.range(300).map(lambda x: 1 // (int(x) % 3))), []

    def draw():
        while True:
            try:
                found.append(next(elements))
            except StopIteration:
                return
            except ZeroDivisionError:
                found.append(None)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 100 == found.count(None)
    assert 300 == len(found)


def test_an_iterator_of_tfwire_itself_ends():
    elements = iter(tfwire.Dataset.range(9).map(fail))
    assert 0 == next(elements)
    with pytest.raises(ArithmeticError):
        next(elements)
    assert [] == list(elements)
