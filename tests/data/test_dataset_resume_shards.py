"""Passes that go on with another number of shards: what was not given comes exactly once."""

import itertools
import json
import random

import pytest

from helpers.data.files import RECORDS, SPEC, NumberedFiles, flat
from helpers.products import diagonals
from tfwire import Dataset, TFRecordDataset

SIZES = (10, 0, 5, 6, 1, 7, 2)
TOTAL = sum(SIZES)

pytestmark = pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")  # more shards than files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return NumberedFiles(tmp_path_factory.mktemp("files"), SIZES)


def indexed(files):
    return TFRecordDataset(files.plain, indexed=True)


def parsed(dataset, size=3, **options):
    return dataset.batch(size).parse_example(SPEC, **options)


def doubled(x):
    return x


SOURCES = {
    "files": lambda files: TFRecordDataset(files.plain),
    "gzip": lambda files: TFRecordDataset(files.gzip, "GZIP"),
    "shuffled files": lambda files: TFRecordDataset(files.plain, shuffle_files=True, seed=3),
    "files in turn": lambda files: TFRecordDataset(files.plain, num_parallel_reads=2),
    "indexed": indexed,
    "arrays": lambda files: Dataset.from_tensor_slices(RECORDS[:TOTAL]),
    "chosen": lambda files: indexed(files).skip(2).take(25),
    "concatenated": lambda files: TFRecordDataset(files.plain[:3]).concatenate(
        TFRecordDataset(files.plain[3:])
    ),
}
ORDERS = {
    "in order": lambda dataset: dataset,
    "shuffled": lambda dataset: dataset.shuffle(100, seed=1),
    "by a buffer": lambda dataset: dataset.shuffle(6, seed=1),
    "by chance": lambda dataset: dataset.shuffle(6),
    "twice": lambda dataset: dataset.shuffle(4, seed=1).map(doubled).shuffle(3, seed=2),
    "exactly, by chance": lambda dataset: dataset.shuffle(100),
}
ENDS = {
    "records": lambda dataset: dataset,
    "batches": lambda dataset: dataset.batch(3),
    "parsed": parsed,
    "parsed by threads": lambda dataset: parsed(dataset, num_threads=3),
    "parsed one by one": lambda dataset: dataset.parse_example(SPEC),
    "mapped": lambda dataset: dataset.map(doubled).filter(lambda x: True).batch(2).prefetch(2),
}


def begin(shards, rng, most):
    """Iterators over shards, some of whose elements were taken, and the records of these."""
    iterators = [iter(shard) for shard in shards]
    given = []
    for elements in iterators:
        for element in itertools.islice(elements, rng.randrange(most)):
            given += flat(element)
    return iterators, given


def numbers(elements):
    """The numbers in each of the elements."""
    return list(map(flat, elements))


def saved(iterators):
    return json.loads(json.dumps([elements.state_dict() for elements in iterators]))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("source", "order"), diagonals(0, 3, SOURCES, ORDERS))
def test_what_was_not_given_comes_once(files, source, order, end):
    def make():
        return ENDS[end](ORDERS[order](SOURCES[source](files)))

    every = sorted(x for element in make() for x in flat(element))
    rng = random.Random(f"{source}{order}{end}")
    for most in (1, 4, 12, 100):
        counts = [rng.randrange(1, 6) for _ in range(3)]
        dataset = make()
        shards = [dataset.shard_source(counts[0], i) for i in range(counts[0])]
        iterators, given = begin(shards, rng, most)
        for count in counts[1:]:
            dataset = make().resume(saved(iterators))
            shards = [dataset.shard_source(count, i) for i in range(count)]
            iterators, more = begin(shards, rng, most)
            given += more
        given += [x for elements in iterators for element in elements for x in flat(element)]
        assert sorted(given) == every, counts
        following = [x for shard in shards for element in shard for x in flat(element)]
        assert sorted(following) == every


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("count", [1, 3])
def test_as_many_shards_go_on_in_the_same_order(files, source, count):
    dataset = SOURCES[source](files).shuffle(4, seed=1).repeat(2).batch(3)
    shards = [dataset.shard_source(count, i) for i in range(count)]
    iterators, _ = begin(shards, random.Random(1), 5)
    rest = dataset.resume(saved(iterators))
    for i, elements in enumerate(iterators):
        assert numbers(elements) == numbers(rest.shard_source(count, i))


@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_the_order_of_numbered_records_is_kept(files, order):
    dataset = ORDERS[order](indexed(files))
    whole = [flat(record)[0] for record in dataset]
    dataset.set_epoch(0)
    iterators = [iter(dataset.shard_source(3, i)) for i in range(3)]
    given = {flat(record)[0] for elements in iterators for record in itertools.islice(elements, 4)}
    rest = dataset.resume(saved(iterators))
    parts = [list(rest.shard_source(2, i)) for i in range(2)]
    assert 1 >= abs(len(parts[0]) - len(parts[1]))
    assert [x for x in whole if x not in given] == [flat(record)[0] for x in parts for record in x]
    assert [*map(len, parts)] == [9, 10]


@pytest.mark.parametrize("rule", ["even", "drop", "pad"])
def test_rules_divide_what_is_left(files, rule):
    dataset = indexed(files).shuffle(100, seed=1)
    shards = [dataset.shard_source(4, i, rule) for i in range(4)]
    iterators, _ = begin(shards, random.Random(2), 5)
    states = saved(iterators)
    left = [x for elements in iterators for record in elements for x in flat(record)]
    rest = dataset.resume(states)
    parts = [numbers(rest.shard_source(3, i, rule)) for i in range(3)]
    assert rule == "even" or 1 == len(set(map(len, parts)))
    found = sorted(x for part in parts for (x,) in part)
    if rule == "even":
        assert sorted(left) == found
    elif rule == "drop":
        assert len(left) // 3 * 3 == len(found)
        assert set(found) <= set(left)
    else:
        assert set(left) == set(found)


def test_random_numbers_are_those_of_the_record(files):
    dataset = indexed(files).shuffle(100, seed=1).map(lambda x, rng: (x, rng.random()), seed=5)
    expected = dict(dataset)
    dataset.set_epoch(0)
    iterators = [iter(dataset.shard_source(3, i)) for i in range(3)]
    found = dict(x for elements in iterators for x in itertools.islice(elements, 3))
    rest = dataset.resume(saved(iterators))
    found |= dict(x for i in range(2) for x in rest.shard_source(2, i))
    assert expected == found


@pytest.mark.parametrize("order", ORDERS)
def test_workers_divide_the_shares_of_hosts(files, order):
    """As Grain's do: the state of a host holds those of its workers."""
    dataset = ORDERS[order](indexed(files)).batch(2)
    given = []

    def take(dataset, hosts, workers):
        shards = [
            dataset.shard_source(hosts, i).shard_source(workers, j)
            for i in range(hosts)
            for j in range(workers)
        ]
        iterators, more = begin(shards, random.Random(1), 3)
        given.extend(more)
        states = saved(iterators)
        return iterators, [states[i * workers : (i + 1) * workers] for i in range(hosts)]

    _, states = take(dataset, 2, 3)
    for hosts, workers in ((3, 2), (1, 2), (2, 2)):
        iterators, states = take(dataset.resume(states), hosts, workers)
    given += [x for elements in iterators for element in elements for x in flat(element)]
    assert list(range(TOTAL)) == sorted(given)


def test_a_state_of_a_resumed_pass_goes_on_itself(files):
    dataset = TFRecordDataset(files.plain).shuffle(6, seed=1).batch(2)
    states = saved(begin([dataset.shard_source(3, i) for i in range(3)], random.Random(1), 4)[0])
    shard = dataset.resume(states).shard_source(2, 1)
    elements = iter(shard)
    next(elements)
    state = elements.state_dict()
    rest = resumed_at(dataset.resume(states).shard_source(2, 1), state)
    assert numbers(elements) == numbers(rest)
    with pytest.raises(ValueError, match=r"go on by Dataset\.resume"):
        iter(dataset.shard_source(2, 1)).load_state_dict(state)
    with pytest.raises(ValueError, match="another pipeline"):
        iter(dataset.resume(states).shard_source(2, 0)).load_state_dict(state)
    later = iter(shard)
    next(later)
    state = later.state_dict()
    assert 1 == state["epoch"]
    assert numbers(later) == numbers(resumed_at(dataset.shard_source(2, 1), state))


def resumed_at(dataset, state):
    elements = iter(dataset)
    elements.load_state_dict(json.loads(json.dumps(state)))
    return elements


def test_states_before_positions_of_sources_were_in_them_go_on(files):
    """Of the elements in a buffer, as older versions saved them."""
    dataset = TFRecordDataset(files.plain).shuffle(6, seed=1)
    iterators, given = begin([dataset.shard_source(2, i) for i in range(2)], random.Random(7), 9)
    states = saved(iterators)
    for state in states:
        del state["at"][1]["source"]
    rest = dataset.resume(states)
    given += [x for i in range(3) for record in rest.shard_source(3, i) for x in flat(record)]
    assert list(range(TOTAL)) == sorted(given)


def test_states_that_are_not_those_of_all_shards_are_refused(files):
    dataset = indexed(files).shuffle(100, seed=1).batch(2)
    states = saved([iter(dataset.shard_source(3, i)) for i in range(3)])
    cases = {
        r"states\[0\] is not of shard 0 of 2 of this pipeline, or not all": states[:2],
        r"states\[2\] and states\[0\] are both of shard 0 of 3, and none": [*states[:2], states[0]],
        r"states\[0\] is of shard 1 of 3: states must be in the order": [
            states[1], states[0], states[2]
        ],
        r"states\[1\] is of epoch 4, states\[0\] of epoch 0": [
            states[0], {**states[1], "epoch": 4}, states[2]
        ],
        r"states\[1\] holds no state": [states[0], {"a": [1]}],
        "found none": [],
        "of version 1": [{**states[0], "version": 3}],
        "5 batches after a snapshot": [{"_steps_since_snapshot": 5}],
        r"states\[0\] is not of shard 0 of 3": saved(
            [iter(indexed(files).batch(3).shard_source(3, i)) for i in range(3)]
        ),
    }  # fmt: skip
    for message, wrong in cases.items():
        with pytest.raises(ValueError, match=message):
            dataset.resume(wrong)
    with pytest.raises(TypeError, match="list of the states of all shards, found dict"):
        dataset.resume(states[0])
    other = saved([iter(dataset.resume(states).shard_source(2, i)) for i in range(2)])
    mixed = saved([iter(dataset.shard_source(2, i)) for i in range(2)])
    with pytest.raises(ValueError, match=r"states\[1\] went on from other states"):
        dataset.resume([mixed[0], {**other[1], "epoch": mixed[0]["epoch"]}])


@pytest.mark.parametrize(
    "make",
    [
        lambda files: indexed(files).repeat(),
        lambda files: Dataset.from_generator(lambda: range(9)),
        lambda files: indexed(files).cache(),
        lambda files: indexed(files).batch(2).unbatch(),
    ],
)
def test_what_cannot_be_divided_says_so(files, make):
    dataset = make(files)
    iterators = [iter(dataset.shard_source(2, i)) for i in range(2)]
    states = saved(iterators)
    assert next(iterators[1]) == next(iter(dataset.resume(states).shard_source(2, 1)))
    with pytest.raises(ValueError, match=r"cannot be divided among another number .* go on with 2"):
        next(iter(dataset.resume(states).shard_source(3, 0)))


def test_stages_after_resume_do_not_mistake_what_positions_count():
    base = Dataset.range(78)
    iterators, _ = begin([base.shard_source(3, i) for i in range(3)], random.Random(1), 6)
    rest = base.resume(saved(iterators)).batch(4)
    states = saved([iter(rest.shard_source(2, i)) for i in range(2)])
    with pytest.raises(ValueError, match=r"with batch\(4.* after resume"):
        base.batch(4).resume(states)


@pytest.mark.parametrize("again", [lambda rest: rest.repeat(2), lambda rest: rest.cache()])
def test_passes_after_resume_do_not_lose_the_states(again):
    begun = iter(Dataset.range(9))
    next(begun)
    rest = Dataset.range(9).resume([begun.state_dict()])
    with pytest.raises(ValueError, match=r"resume would lose .*: iterate once for each epoch"):
        next(iter(again(rest)))
    assert [list(range(1, 9)), list(range(9))] == [list(rest) for _ in range(2)]


def test_stages_after_resume_begin_with_the_epoch_of_the_states():
    dataset = Dataset.range(9)
    assert 9 == len(list(dataset))
    elements = iter(dataset)
    next(elements)
    state = elements.state_dict()
    assert 1 == state["epoch"]
    rest = dataset.resume([state]).batch(4)
    assert [[1, 2, 3, 4], [5, 6, 7, 8]] == numbers_of_arrays(rest)
    assert [[0, 1, 2, 3], [4, 5, 6, 7], [8]] == numbers_of_arrays(rest)


def numbers_of_arrays(elements):
    return [element.tolist() for element in elements]


def test_a_loader_whose_last_batch_was_short_has_nothing_left():
    """Its state counts batches: more elements than there are."""
    dataset = Dataset.range(78)
    elements = iter(dataset).state_dict()
    of = {"batch_size": 7}
    state = {"version": 1, "of": of, "at": elements, "batches": 12}
    assert [] == list(dataset.resume([state]))
    assert [] == [x for i in range(2) for x in dataset.resume([state]).shard_source(2, i)]


def test_states_of_several_epochs_are_refused_in_any_order():
    dataset = Dataset.range(9)
    states = saved([iter(dataset.shard_source(2, i)) for i in range(2)])
    with pytest.raises(ValueError, match=r"states\[1\] is of epoch 1.*all must be of the same"):
        dataset.resume([states[0], {**states[1], "epoch": 1}])


def damages(value):
    """A state with a part of it as something else, for each part."""
    yield from (None, -1, "x", [], {}, 10**30)
    if isinstance(value, dict):
        for key in value:
            yield from ({**value, key: wrong} for wrong in damages(value[key]))
    if isinstance(value, list):
        for i in range(len(value)):
            yield from ([*value[:i], wrong, *value[i + 1 :]] for wrong in damages(value[i]))


@pytest.mark.parametrize("order", ["in order", "shuffled", "by a buffer"])
@pytest.mark.parametrize("source", ["files", "files in turn", "indexed"])
def test_damaged_states_raise_value_errors(files, source, order):
    dataset = ORDERS[order](SOURCES[source](files)).batch(2)
    states = saved(begin([dataset.shard_source(2, i) for i in range(2)], random.Random(1), 4)[0])
    rest = dataset.resume(states)
    resumed = saved(begin([rest.shard_source(3, i) for i in range(3)], random.Random(1), 3)[0])
    for all_states in (states, resumed):
        for at in damages(all_states[0]["at"]):
            try:
                wrong = dataset.resume([{**all_states[0], "at": at}, *all_states[1:]])
                list(wrong)
            except ValueError:
                pass


def test_shards_in_one_process_resume_in_turn():
    dataset = Dataset.range(40).shuffle(5, seed=3).take(17)
    begun = [iter(dataset.shard_source(2, i)) for i in range(2)]
    before = [next(elements) for elements in begun]
    rest = dataset.resume(saved(begun))
    after = [element for i in range(2) for element in rest.shard_source(2, i)]
    assert sorted(dataset) == sorted([*before, *after])


def test_a_dataset_that_was_resumed_is_resumed_as_the_first_one():
    dataset = Dataset.range(40).shuffle(40, seed=3)
    found = []
    for num_shards in (3, 2, 4):
        begun = [iter(dataset.shard_source(num_shards, i)) for i in range(num_shards)]
        found += [next(elements) for elements in begun]
        dataset = dataset.resume(saved(begun))
    assert list(range(40)) == sorted([*found, *dataset])
    assert list(range(40)) == sorted(dataset)  # of the next epoch


def test_what_cannot_be_divided_is_named():
    dataset = Dataset.range(40).shuffle(5, seed=3).take(17)
    states = saved([iter(dataset.shard_source(2, i)) for i in range(2)])
    with pytest.raises(ValueError, match=r"what is left of Take\(17\) cannot be divided"):
        next(iter(dataset.resume(states).shard_source(3, 0)))
