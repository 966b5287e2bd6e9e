"""Random searches over pipelines, faults and places to resume at, beside models; and passes without
elements, in the middle of what repeats them: not the end, and never a loop."""

import json
import os
import random
from itertools import islice

import numpy as np
import pytest

import tfwire as tfw
import tfwire.compat as tfc
from helpers.data import pipelines
from helpers.data.empty_passes import MOST, build, draw, is_ordered, model, numbers
from tfwire import Dataset


@pytest.mark.posix("it writes files anew that are open")
def test_random_pipelines_give_what_their_model_says():
    assert pipelines.search("quick", 0, least=100) == 100


@pytest.mark.slow
def test_very_many_random_pipelines_give_what_their_model_says():
    seconds = float(os.environ.get("TFWIRE_PIPELINES_SECONDS", "30"))
    pipelines.search("slow", seconds, least=1000)


# ---- Empty passes ----------------------------------------------------------------------------


SPEC = {"n": tfw.FixedLenFeature([], tfw.int64)}


def of_sizes(*sizes, lib=Dataset):
    """A dataset with so many elements in each pass, none in later ones."""
    left = iter(sizes)
    return lib.from_generator(lambda: range(next(left, 0)))


@pytest.mark.parametrize("lib", [Dataset, tfc.data.Dataset])
@pytest.mark.parametrize("way", [lambda d: d, lambda d: d.shuffle(9, seed=1), lambda d: d.batch(2)])
def test_a_counted_repeat_goes_on(lib, way):
    repeated = way(of_sizes(0, 0, 2, 0, lib=lib)).repeat(4)
    assert 2 == sum(len(x) if getattr(x, "ndim", 0) else 1 for x in repeated.as_numpy_iterator())


@pytest.mark.parametrize("way", [lambda d: d, lambda d: d.shuffle(9, seed=1)])
def test_an_endless_repeat_ends_at_an_empty_pass(way):
    elements = iter(way(of_sizes(2, 1, 0, 2)).repeat())
    assert [0, 0, 1] == sorted(elements)
    resumed = iter(way(of_sizes(2, 1, 0, 2)).repeat())
    resumed.load_state_dict(elements.state_dict())
    assert [] == list(resumed)


def test_nothing_is_repeated_at_once():
    assert [] == list(Dataset.range(0).repeat(2**62))


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_random_pipelines(first):
    for seed in range(first, first + 100):
        case = draw(random.Random(seed))
        expected = list(islice(model(case), MOST))
        found = numbers(build(case))
        if not is_ordered(case):
            expected, found = sorted(expected), sorted(found)
        assert expected == found, case


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_pipelines_resume(first):
    for seed in range(first, first + 20):
        case = draw(random.Random(seed))
        whole, elements = numbers(build(case)), iter(build(case))
        for place in range(len(whole) + 2):  # also after the end
            resumed = iter(build(case))
            resumed.load_state_dict(json.loads(json.dumps(elements.state_dict())))
            assert whole[place:] == numbers(resumed), (case, place)
            next(elements, None)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "way",
    [
        lambda d, threads: d.repeat(6).batch(2).parse_example(SPEC, num_threads=threads),
        lambda d, threads: d.batch(2).parse_example(SPEC, num_threads=threads).repeat(6),
        lambda d, threads: d.shuffle(9, 1).repeat(6).batch(2).parse_example(SPEC),
        lambda d, threads: d.repeat(6).shuffle(9, 1).batch(2).parse_example(SPEC),
        lambda d, threads: d.prefetch(threads).repeat(2).repeat(3).parse_example(SPEC),
    ],
)
def test_shards_whose_files_are_empty_in_some_epochs(tmp_path, way, threads):
    for name, count in (("a", 0), ("b", 5), ("c", 0)):
        records = [tfw.encode_example({"n": n}) for n in range(count)]
        tfw.write_records(tmp_path / name, records)
    files = tfw.TFRecordDataset(str(tmp_path / "?"), shuffle_files=True)
    found = [
        int(n)
        for index in range(3)
        for element in way(files.shard_source(3, index), threads)
        for n in np.ravel(element["n"])
    ]
    assert sorted(6 * list(range(5))) == sorted(found)
