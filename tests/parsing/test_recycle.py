"""Memory of large results is used again, but never while anybody can see it."""

import gc
import random

import numpy as np
import pytest

import tfwire as tfw
from helpers.threads import at_once, quick_switches

FEATURES = {
    "x": tfw.FixedLenFeature([1000], tfw.float32),
    "s": tfw.FixedLenFeature([], tfw.string),
    "v": tfw.VarLenFeature(tfw.int64),
    "p": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True),
}


def address(array):
    return array.__array_interface__["data"][0]


def record(n):
    return tfw.encode_example(
        {
            "x": np.full(1000, n, np.float32),
            "s": bytes([n]) * 5000,
            "v": np.full(600 + n % 50, n),
            "p": np.full(500 + n % 3, n),
        }
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("recycle") / "large.tfrecord"
    tfw.write_records(path, [record(n) for n in range(200)])
    return path


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("bytes_as", ["object", "column"])
def test_batches_that_are_held_keep_their_values(path, bytes_as, num_threads):
    """Some batches are dropped, some held, of some only one column or a slice of it."""
    choose = random.Random(1)
    held = []
    parser = tfw.Parser(FEATURES, bytes_as=bytes_as)
    batches = parser.parse_file(path, 50, num_threads=num_threads)
    for _ in range(3):
        for begin, batch in zip(range(0, 200, 50), batches, strict=True):
            parts = [
                ("x", batch["x"][3:5, 7]),
                ("v", batch["v"].values[:600]),
                ("p", batch["p"][0]),
                ("s", batch["s"]),
            ]
            held += [(begin, *choose.choice(parts)) for _ in range(choose.randrange(3))]
            del batch, parts
        batches = parser.parse_file(path, 50, num_threads=num_threads)
    batches.close()
    del parser
    gc.collect()
    assert held
    for begin, key, part in held:
        if key == "s":
            assert [bytes([begin + i]) * 5000 for i in range(50)] == list(np.asarray(part))
        elif key == "x":
            assert [begin + 3, begin + 4] == part.tolist()
        else:
            assert {begin} >= set(part.tolist()) - {0}


def test_batches_that_are_dropped_give_their_memory_to_the_next(path):
    parser = tfw.Parser(FEATURES, bytes_as="column")
    found = {key: set() for key in "xsv"}  # padded ones are malloc's
    for batch in parser.parse_file([path] * 10, 50):
        found["x"].add(address(batch["x"]))
        found["s"].add(address(batch["s"].data))
        found["v"].add(address(batch["v"].values))
        del batch
    # One is being filled while the loop variable still holds the one before; of two batches each.
    assert all(len(addresses) <= 8 for addresses in found.values()), found


@pytest.mark.parametrize("num_threads", [1, 2])
def test_batches_share_no_entry(path, num_threads):
    """Several are cut from one allocation: what is written to one, no other sees."""
    parser = tfw.Parser(FEATURES, bytes_as="column")
    batches = list(parser.parse_file([path] * 2, 8, num_threads=num_threads))
    assert len(batches) == 50
    for n, batch in enumerate(batches):
        for array in arrays(batch):
            array[...] = n
    for n, batch in enumerate(batches):
        assert all((array == n).all() for array in arrays(batch))


def arrays(batch):
    strings, sparse = batch["s"], batch["v"]
    return [batch["x"], batch["p"], strings.data, strings.offsets, sparse.values, sparse.indices]


@pytest.mark.parametrize("num_threads", [1, 2])
def test_threads_that_read_with_one_parser_never_share_memory(tmp_path, num_threads):
    tfw.write_records(tmp_path / "a", [{"n": n} for n in range(2000)])
    parser = tfw.Parser({"n": tfw.FixedLenFeature([], tfw.int64)})

    def read(_):
        for _ in range(12):
            with parser.parse_file(tmp_path / "a", 64, num_threads=num_threads) as batches:
                found = np.concatenate([batch["n"] for batch in batches])
            assert np.array_equal(found, np.arange(2000))

    with quick_switches():
        at_once(read, 6)
