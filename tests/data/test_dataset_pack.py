"""pack: sequences side by side in rows of one length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from helpers.data.named_pipelines import goes_on_everywhere
from helpers.reading import flip_byte
from tfwire import Dataset, RaggedTensor, TFRecordDataset

RAGGED = {name: tfw.RaggedFeature(tfw.int64) for name in ("ids", "targets")}
LENGTHS = {"ids": 9, "targets": 6}


def model(elements, lengths, num_bins, on_long="raise", padding=0):
    """The rows, each as lists, by plain loops."""
    pieces = []
    for element in elements:
        if on_long == "trim":
            element = {name: element[name][:length] for name, length in lengths.items()}
        count = max(1, *(-(-len(element[name]) // length) for name, length in lengths.items()))
        for i in range(count):
            pieces.append({n: element[n][i * k : (i + 1) * k] for n, k in lengths.items()})
    groups = [[]]
    for piece in pieces:
        for bins in groups[-1:]:
            for row in bins:
                if all(sum(len(p[n]) for p in [*row, piece]) <= k for n, k in lengths.items()):
                    row.append(piece)
                    break
            else:
                if len(bins) == num_bins:
                    groups.append([[piece]])
                else:
                    bins.append([piece])
    return [
        {
            column: values
            for name, length in lengths.items()
            for column, values in columns(name, [piece[name] for piece in row], length, padding)
        }
        for bins in groups
        for row in bins
    ]


def columns(name, parts, length, padding):
    values = [value for part in parts for value in part]
    free = length - len(values)
    ids = [number for number, part in enumerate(parts, 1) for _ in part]
    positions = [place for part in parts for place in range(len(part))]
    yield name, values + [padding] * free
    yield f"{name}_segment_ids", ids + [0] * free
    yield f"{name}_positions", positions + [0] * free


def listed(row):
    return {name: values.tolist() for name, values in row.items()}


def numbered(sizes):
    """Elements with numbers that occur once."""
    numbers = iter(range(1, 10**6))
    return [
        {"ids": [next(numbers) for _ in range(a)], "targets": [next(numbers) for _ in range(b)]}
        for a, b in sizes
    ]


def ragged(rows):
    splits = np.cumsum([0, *map(len, rows)])
    return RaggedTensor(np.array([x for row in rows for x in row], np.int64), splits)


def in_batches(elements, size):
    some = [elements[i : i + size] for i in range(0, len(elements), size)]
    return [{name: ragged([e[name] for e in part]) for name in LENGTHS} for part in some]


SIZES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=60)


@given(
    sizes=SIZES,
    longer=st.sampled_from([0, 3, 14]),
    num_bins=st.integers(1, 7),
    on_long=st.sampled_from(["split", "trim"]),
    batch=st.sampled_from([0, 1, 5, 99]),
    padding=st.sampled_from([None, -1]),
)
def test_rows_are_those_of_the_model(sizes, longer, num_bins, on_long, batch, padding):
    sizes = [(a + (longer if b % 4 == 1 else 0), b + (longer if a == 9 else 0)) for a, b in sizes]
    elements = numbered(sizes)
    expected = model(elements, LENGTHS, num_bins, on_long, padding or 0) if sizes else []
    given = in_batches(elements, batch) if batch else elements
    dataset = Dataset.from_generator(lambda: given)
    found = dataset.pack(LENGTHS, num_bins=num_bins, on_long=on_long, padding_values=padding)
    assert expected == list(map(listed, found))


@pytest.fixture(scope="module")
def elements():
    sizes = np.random.default_rng(1).integers(0, [10, 7], (700, 2)).tolist()
    return numbered(sizes)


@pytest.fixture(scope="module")
def path(tmp_path_factory, elements):
    path = tmp_path_factory.mktemp("files") / "texts"
    tfw.write_records(path, map(tfw.encode_example, elements))
    return path


def parsed(path, **options):
    return TFRecordDataset(path, **options).parse_example(RAGGED)


WAYS = {
    "records": parsed,
    "batches": lambda path: TFRecordDataset(path).batch(37).parse_example(RAGGED),
    "threads": lambda path: TFRecordDataset(path).batch(64).parse_example(RAGGED, num_threads=3),
    "records by threads": lambda path: TFRecordDataset(path).parse_example(RAGGED, num_threads=2),
    "indexed": lambda path: parsed(path, indexed=True),
    "mapped": lambda path: parsed(path).map(lambda element: element),
    "cached": lambda path: parsed(path).cache(),
    "ahead": lambda path: parsed(path).prefetch(9),
    "padded when batched": lambda path: TFRecordDataset(path).parse_example(
        {n: tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True) for n in LENGTHS}
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_rows_do_not_depend_on_the_way(path, elements, way):
    expected = model(elements, LENGTHS, 8)
    found = list(WAYS[way](path).pack(LENGTHS, num_bins=8))
    assert expected == list(map(listed, found))
    assert {row["ids"].dtype for row in found} == {np.dtype(np.int64)}


PACKED = {
    **{way: lambda path, way=way: WAYS[way](path).take(150) for way in WAYS if way != "cached"},
    "shuffled": lambda path: TFRecordDataset(path).shuffle(50, 1).parse_example(RAGGED).take(90),
    "exactly shuffled": lambda path: (
        TFRecordDataset(path, indexed=True).shuffle(999, 2).take(90).parse_example(RAGGED)
    ),
    "few": lambda path: parsed(path).take(2),
    "none": lambda path: parsed(path).take(0),
    "repeated": lambda path: parsed(path).take(40).repeat(3),
    "of a shard": lambda path: parsed(path, indexed=True).shard_source(7, 3),
}


def shown(row):
    return str({name: values.tolist() for name, values in row.items()})


@pytest.mark.parametrize("on_long", ["raise", "split"])
@pytest.mark.parametrize("name", PACKED)
def test_every_place_is_gone_on_from(path, name, on_long):
    lengths = LENGTHS if on_long == "raise" else {"ids": 3, "targets": 2}
    goes_on_everywhere(
        lambda: PACKED[name](path).pack(lengths, num_bins=5, on_long=on_long), None, shown, 5, 30
    )


AFTER = {
    "batch": lambda rows: rows.batch(4),
    "shuffle": lambda rows: rows.shuffle(9, 1).batch(2),
    "repeat": lambda rows: rows.skip(60).repeat(2).prefetch(2),
    "map": lambda rows: rows.map(lambda row, rng: (row, rng.integers(9)), seed=1),
}


@pytest.mark.parametrize("name", AFTER)
def test_rows_go_through_other_stages(path, name):
    goes_on_everywhere(lambda: AFTER[name](parsed(path).pack(LENGTHS)), None, str, 5, 30)


def test_shards_have_every_sequence_once(path, elements):
    dataset = parsed(path, indexed=True).pack(LENGTHS, num_bins=4)
    rows = [row for i in range(3) for row in dataset.shard_source(3, i)]
    found = np.concatenate([row["ids"][row["ids_segment_ids"] > 0] for row in rows])
    assert sorted(found) == sorted(x for element in elements for x in element["ids"])


def test_states_are_small(path):
    rows = iter(parsed(path).pack(LENGTHS, num_bins=100))
    for _ in range(130):
        next(rows)
    assert len(repr(rows.state_dict())) < 700


def test_a_row_has_a_description(path):
    rows = parsed(path).pack({"ids": 9})
    assert rows.element_spec["ids_positions"] == "int32[9]"
    dense = Dataset.from_tensor_slices({"x": np.zeros((4, 3), np.float32)}).pack({"x": 7})
    assert dense.element_spec["x"] == "float32[7]"
    (row, last) = dense
    assert row["x_segment_ids"].tolist() == [1, 1, 1, 2, 2, 2, 0]
    assert last["x"].dtype == np.float32
    assert dense.batch(2).element_spec["x"] == "float32[?, 7]"


def test_scalars_and_strings():
    elements = [{"words": ["a", "bc"], "weight": 0.5}, {"words": [], "weight": 1.5}]
    (row,) = Dataset.from_generator(lambda: elements).pack(
        {"words": 3, "weight": 4}, padding_values={"words": b"-"}
    )
    assert row["words"].tolist() == [b"a", b"bc", b"-"]
    assert row["weight"].tolist() == [0.5, 1.5, 0, 0]
    assert row["weight_segment_ids"].tolist() == [1, 2, 0, 0]
    batches = Dataset.from_tensor_slices({"x": np.arange(5)}).batch(3).pack({"x": 4}, num_bins=1)
    assert [[0, 1, 2, 3], [4, 0, 0, 0]] == [row["x"].tolist() for row in batches]


def test_empty_lists_and_wider_numbers_change_no_values():
    big = 2**53 + 1
    elements = [{"x": []}, {"x": np.array([1], np.int32)}, {"x": [big]}, {"x": []}]
    (row,) = Dataset.from_generator(lambda: elements).pack({"x": 3})
    assert row["x"].tolist() == [1, big, 0]
    assert row["x_segment_ids"].tolist() == [2, 3, 0]
    (row,) = Dataset.from_generator(lambda: elements[:1]).pack({"x": 3})
    assert row["x"].tolist() == [0, 0, 0]


def test_trimmed_and_split():
    dataset = Dataset.from_generator(lambda: [{"x": np.arange(7)}, {"x": np.arange(2)}])
    assert [[0, 1, 2], [0, 1, 0]] == [
        row["x"].tolist() for row in dataset.pack({"x": 3}, on_long="trim")
    ]
    split = list(dataset.pack({"x": 3}, on_long="split"))
    assert [[0, 1, 2], [3, 4, 5], [6, 0, 1]] == [row["x"].tolist() for row in split]
    assert split[2]["x_positions"].tolist() == [0, 0, 1]


# ---- What is wrong ------------------------------------------------------------------------------

WRONG = {
    "no feature": ({"y": [1]}, r"feature 'x' of pack is not in \['y'\]"),
    "long": ({"x": [1] * 9}, "feature 'x' of an element has 9 values, and its row 4; on_long"),
    "of rank 2": ({"x": [[1]]}, "feature 'x' of pack must be of rank 0 or 1, found rank 2"),
    "ragged twice": (
        {"x": RaggedTensor(RaggedTensor([1], [0, 1]), [0, 1])},
        "must be a sequence of values, found a RaggedTensor",
    ),
    "too many dimensions": (
        {"x": RaggedTensor(np.zeros((1, 2, 2)), [0, 1])},
        "must be a sequence of values",
    ),
    "sparse": (
        {"x": tfw.SparseTensor(np.array([[0]]), np.array([1]), np.array([2]))},
        "found a SparseTensor",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_element_that_is_wrong(name):
    wrong, message = WRONG[name]
    rows = iter(Dataset.from_generator(lambda: [{"x": [1]}, wrong]).pack({"x": 4}))
    assert next(rows)["x"].tolist() == [1, 0, 0, 0]  # what was before it
    with pytest.raises(ValueError, match=message):
        rows.state_dict()
    with pytest.raises(ValueError, match=message):
        next(rows)
    with pytest.raises(StopIteration):
        next(rows)


def test_elements_that_are_no_dicts():
    with pytest.raises(TypeError, match="an element must be a dict, as of parse_example, to pack"):
        list(Dataset.range(3).pack({"x": 3}))


def test_a_batch_whose_features_differ():
    batch = {"x": ragged([[1], [2]]), "y": ragged([[1]])}
    with pytest.raises(ValueError, match=r"different numbers of rows: {'x': 2, 'y': 1}"):
        list(Dataset.from_generator(lambda: [batch]).pack({"x": 3, "y": 3}))


@pytest.mark.parametrize("batch", [None, 10])
def test_rows_come_before_the_error_of_their_source(path, tmp_path, elements, batch):
    file = tmp_path / "damaged"
    file.write_bytes(path.read_bytes())
    flip_byte(file, tfw.RecordIndex.build(path).offsets[600] + 14)
    dataset = TFRecordDataset(file)
    dataset = parsed(file) if batch is None else dataset.batch(batch).parse_example(RAGGED)
    rows, found = iter(dataset.pack(LENGTHS, num_bins=8)), []
    with pytest.raises(tfw.DataLossError):
        found.extend(map(listed, iter(lambda: next(rows), None)))
    assert model(elements[:600], LENGTHS, 8) == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lengths": {}}, "lengths must name features"),
        ({"lengths": {"x": 3, "x_positions": 3}}, "lengths must name features whose rows differ"),
        ({"lengths": {"x": 0}}, r"lengths\[x\] must be at least 1, found 0"),
        ({"lengths": {"x": 2**31}}, r"lengths\[x\] must be below 2\*\*31"),
        ({"lengths": {"x": 3}, "num_bins": 0}, "num_bins must be at least 1"),
        (
            {"lengths": {"x": 3}, "num_bins": 10**9},
            r"num_bins times the lengths must be below 2\*\*31",
        ),
        ({"lengths": {"x": 3}, "on_long": "cut"}, "on_long must be one of"),
        ({"lengths": {"x": 3}, "padding_values": {"y": 3}}, "padding_values must be of"),
        ({"lengths": {"x": 3}, "padding_values": [3]}, "padding_values must be scalars"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Dataset.range(3).pack(**arguments)


def test_features_that_cannot_be_packed_are_refused_at_once(path):
    with pytest.raises(ValueError, match=r"feature 'x' is not in \['ids', 'targets'\]"):
        parsed(path).pack({"x": 3})
    with pytest.raises(ValueError, match=r"feature 'x' of pack is not in \['n'\]"):
        Dataset.from_tensor_slices({"n": [1]}).pack({"x": 3})
    sparse = TFRecordDataset(path).parse_example({"ids": tfw.VarLenFeature(tfw.int64)})
    with pytest.raises(ValueError, match="must be a RaggedFeature to be packed, found VarLen"):
        sparse.pack({"ids": 3})
    dense = {"ids": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True)}
    with pytest.raises(ValueError, match="found FixedLenSequenceFeature"):
        TFRecordDataset(path).batch(3).parse_example(dense).pack({"ids": 3})


@pytest.mark.parametrize("at", [[10**6, 0, None], [0, 10**6, None], [0, -1, None], [0, 0], "x"])
def test_states_that_are_damaged_are_refused(path, at):
    dataset = parsed(path).pack(LENGTHS, num_bins=8)
    rows = iter(dataset)
    next(rows)
    state = rows.state_dict()
    if isinstance(at, list) and len(at) == 3:
        at[2] = state["at"][2]
    with pytest.raises(ValueError, match=r"damaged|missing"):
        iter(dataset).load_state_dict({**state, "at": at})
