"""Cases of test_changing_inputs.py: tensors, arguments of parsers, datasets, indexes, files."""

import copy
import io
import os
from contextlib import suppress

import numpy as np

import tfwire as tfw
from helpers.arguments.input_changes import (
    COUNT,
    EDGES,
    MESSAGES,
    PARSER,
    ROWS,
    SEQUENCES,
    SPEC,
    anything,
    are_rows,
    case,
    change_bytes,
    change_list,
    change_numbers,
)
from tfwire import train

# ---- Tensors ------------------------------------------------------------------------------------


@case
def serialize_an_array(rng):
    array = np.arange(1000)
    change = change_numbers(rng, array, EDGES)

    def check(result):
        assert tfw.parse_tensor(result, tfw.int64).shape == (1000,)

    return lambda: tfw.serialize_tensor(array), change, check


@case
def serialize_a_list(rng):
    held, change = change_list(rng, range(200), [1.5, 2**40])
    return lambda: tfw.serialize_tensor(held), change, anything


@case
def raw_bytes_of_a_list(rng):
    held, change = change_list(rng, [bytes(16)] * 50, [bytearray(16), b"", b"x" * 8])
    return lambda: tfw.decode_raw(held, tfw.int64), change, anything


@case
def raw_bytes_of_a_column(rng):
    data, offsets = bytearray(16 * COUNT), np.arange(COUNT + 1) * 16
    column = tfw.BytesColumn(data, offsets)
    changes = [
        change_bytes(rng, data, [0, 255]),
        change_numbers(rng, column.offsets, [*EDGES, 16 * COUNT, 16]),
        lambda: setattr(column, "data", np.zeros((100, 0), np.uint8)),
        lambda: setattr(column, "data", np.frombuffer(data, np.uint8)),
    ]
    return lambda: tfw.decode_raw(column, tfw.int64), lambda: rng.choice(changes)(), anything


@case
def sparse_to_dense(rng):
    indices = np.stack([np.arange(100) // 10, np.arange(100) % 10], axis=1)
    values, shape = np.arange(100), np.array([10, 10])
    sparse = tfw.SparseTensor(indices, values, shape)
    changes = [
        change_numbers(rng, indices, [0, 5, 9, -1, 2**62]),
        change_numbers(rng, values, EDGES),
        change_numbers(rng, shape, [0, 10, 11, -1]),
    ]

    def call():
        return [sparse.to_dense(-1), sparse.shape, repr(sparse)]

    return call, lambda: rng.choice(changes)(), anything


@case
def ragged_rows_as_lists(rng):
    values, splits = np.arange(COUNT), np.arange(COUNT + 1)
    ragged = tfw.RaggedTensor(values, splits)
    changes = [change_numbers(rng, splits, [*EDGES, COUNT]), change_numbers(rng, values, EDGES)]

    def call():
        return [ragged.to_list(), ragged[3], ragged[-5:], ragged.row_lengths(), repr(ragged)]

    return call, lambda: rng.choice(changes)(), anything


@case
def features_of_lists(rng):
    numbers, change_ints = change_list(rng, range(100), [1.5, "x"])
    strings, change_strings = change_list(rng, [b"x", "y"] * 50, [bytearray(b"b"), 1])

    def call():
        return [
            tfw.int64_feature(numbers),
            tfw.float_feature(numbers),
            tfw.bytes_feature(strings),
            train.BytesList(value=strings),
            train.Int64List(value=numbers),
        ]

    return call, lambda: rng.choice([change_ints, change_strings])(), anything


@case
def json_of_a_list(rng):
    texts = [tfw.example_to_json(message) for message in MESSAGES[:50]]
    held, change = change_list(rng, texts, [b"{}", "", None])
    return lambda: tfw.decode_json_example(held), change, anything


@case
def checksum_of_an_array(rng):
    array = np.arange(1000)
    return lambda: tfw.crc32c(array), change_numbers(rng, array, EDGES), anything


# ---- Arguments of parsers -----------------------------------------------------------------------


@case
def parse_into_arrays_that_change(rng):
    """What is written to them is also written by the other thread; the dict changes too."""
    arrays = {"i": np.zeros(COUNT, np.int64), "f": np.zeros((COUNT, 3), np.float32)}
    out = dict(arrays)
    changes = [
        change_numbers(rng, arrays["i"], EDGES),
        change_numbers(rng, arrays["f"], [0.0, np.nan]),
        lambda: out.pop("f", None),
        lambda: out.update(f=np.zeros((rng.randrange(COUNT), 3), np.float32)),
        lambda: out.update(arrays),
    ]
    return lambda: PARSER.parse(MESSAGES, out=out), lambda: rng.choice(changes)(), anything


@case
def parse_with_names_that_change(rng):
    bad = [*MESSAGES[:50], b"\xff"]
    held, change = change_list(rng, [f"name {n}" for n in range(51)], [b"x", 3])

    def call():
        with suppress(tfw.ParseError):
            tfw.parse_example(bad, SPEC, held)
        return tfw.parse_example(MESSAGES[:51], SPEC, held)

    return call, change, are_rows


@case
def compile_a_spec_that_changes(rng):
    shape, default = [3], [0.0] * 3
    array = np.zeros(3, np.float32)
    spec = {
        "f": tfw.FixedLenFeature(shape, tfw.float32, default),
        "a": tfw.FixedLenFeature([3], tfw.float32, array),
        "s": tfw.FixedLenFeature([], tfw.string, "x"),
    }
    changes = [
        lambda: shape.clear() if shape else shape.append(3),
        lambda: default.clear() if rng.randrange(2) else default.extend([1.0] * 3),
        change_numbers(rng, array, [0.0, np.inf]),
        lambda: spec.pop("s", None),
        lambda: spec.update(s=tfw.FixedLenFeature([], tfw.string, "yy")),
    ]

    def call():
        parser = tfw.Parser(spec)
        return [parser.parse(MESSAGES[:9]), parser.parse_single(MESSAGES[0])]

    return call, lambda: rng.choice(changes)(), anything


@case
def parse_sequences_with_specs_that_change(rng):
    context = {"i": tfw.FixedLenFeature([], tfw.int64)}
    lists = {"l": tfw.FixedLenSequenceFeature([1], tfw.int64)}

    def change():
        context["j"] = tfw.FixedLenFeature([rng.randrange(4)], tfw.int64, [1] * rng.randrange(4))
        lists["m"] = tfw.VarLenFeature(rng.choice([tfw.int64, tfw.string]))
        rng.choice([context, lists]).popitem()

    return lambda: tfw.parse_sequence_example(SEQUENCES[:20], context, lists), change, anything


# ---- Datasets and files -------------------------------------------------------------------------


@case
def slices_of_arrays(rng):
    array, held = np.arange(100), list(range(100))
    _, change = held, change_numbers(rng, array, EDGES)
    changes = [change, lambda: held.reverse(), lambda: held.__setitem__(3, 2**40)]

    def call():
        dataset = tfw.Dataset.from_tensor_slices({"a": array, "l": held})
        return list(dataset.shuffle(10, seed=1).batch(7))

    return call, lambda: rng.choice(changes)(), anything


@case
def states_that_change(rng):
    """Of a state that is saved or loaded, the iterator keeps a copy."""

    def begin():
        return iter(tfw.Dataset.range(60).shuffle(7, seed=1).map(int).shuffle(5, seed=2))

    expected, elements = list(begin()), begin()
    given = [next(elements) for _ in range(20)]
    good = elements.state_dict()
    states = [copy.deepcopy(good)]

    def spoil(part):
        if isinstance(part, dict):
            part[rng.choice(sorted(part))] = rng.choice([0, None, "x"])
        elif isinstance(part, list) and part:
            part[rng.randrange(len(part))] = rng.choice([0, 2**40, None])

    def change():
        part = states[-1]
        while rng.randrange(4) and isinstance(part, (dict, list)) and part:
            part = rng.choice(list(part.values()) if isinstance(part, dict) else part)
        spoil(part)
        if rng.randrange(9) == 0:
            states[:] = [copy.deepcopy(good)]

    def call():
        resumed = begin()
        state = copy.deepcopy(good)
        resumed.load_state_dict(state)
        states.append(state)
        again = begin()
        saved = resumed.state_dict()
        again.load_state_dict(saved)
        states.append(saved)
        del states[:-2]
        return list(resumed), list(again), again.state_dict() if rng.randrange(2) else None

    def check(result):
        assert given + result[0] == expected
        assert given + result[1] == expected

    return call, change, check


@case
def random_access_by_an_index_that_changes(rng, tmp):
    path = os.path.join(tmp, "indexed.tfrecord")
    tfw.write_records(path, MESSAGES)
    file = tfw.TFRecordFile(path, tfw.RecordIndex.build(path))
    offsets = file.index.offsets
    offsets.flags.writeable = True
    numbers = list(range(0, COUNT, 3))
    change = change_numbers(rng, offsets, [*EDGES, 16, int(offsets[-1])])

    def call():
        with suppress(OSError):
            return [*file[numbers], file[5], *file[:4]]
        return []

    def check(result):
        assert set(result) <= set(MESSAGES)

    return call, change, check


@case
def a_file_object_that_keeps_its_view(rng, tmp):
    """It goes on writing to what it was asked to fill."""
    path = os.path.join(tmp, "kept.tfrecord")
    tfw.write_records(path, MESSAGES)
    with open(path, "rb") as file:
        data = file.read()
    views = []

    class Keeping(io.BytesIO):
        def readinto(self, buffer):
            views.append(buffer)
            return super().readinto(buffer)

    def change():
        for view in views[-3:]:
            view[rng.randrange(len(view))] = rng.randrange(256)

    def check(result):
        assert set(result) <= set(MESSAGES)

    return lambda: list(tfw.read_records(Keeping(data))), change, check


@case
def a_file_object_whose_content_changes(rng, tmp):
    path = os.path.join(tmp, "content.tfrecord")
    tfw.write_records(path, MESSAGES)
    with open(path, "rb") as file:
        data = file.read()
    held = io.BytesIO(data)

    def change():
        what = rng.randrange(4)
        if what == 0:
            held.truncate(rng.randrange(len(data)))
        elif what == 1:
            held.seek(rng.randrange(len(data)))
        else:
            held.seek(0)
            held.write(data)

    def call():
        held.seek(0)
        return list(tfw.read_records(held))

    def check(result):
        assert set(result) <= set(MESSAGES)

    return call, change, check


@case
def paths_that_change(rng, tmp):
    paths = [os.path.join(tmp, f"p{n}.tfrecord") for n in range(5)]
    for path in paths:
        tfw.write_records(path, MESSAGES[:20])
    held, change = change_list(rng, paths)

    def call():
        return [
            *tfw.read_records(held),
            *tfw.TFRecordFiles(held),
            *tfw.TFRecordDataset(held),
        ]

    def check(result):
        assert set(result) <= set(MESSAGES[:20])
        list(PARSER.parse_file(held))

    return call, change, check


@case
def write_shards_of_a_list(rng, tmp):
    held, change = change_list(rng, MESSAGES[:60], [bytearray(b"x")])

    pattern = os.path.join(tmp, "s-{shard}")

    def call():
        with tfw.ShardedWriter(pattern, num_shards=3) as writer:
            writer.write_many(held)
        return list(tfw.read_records([pattern.format(shard=n) for n in range(3)]))

    def check(result):
        assert set(result) <= {*MESSAGES[:60], b"x"}

    return call, change, check


@case
def write_a_bytearray(rng, tmp):
    path = os.path.join(tmp, "bytes.tfrecord")
    data = bytearray(100_000)
    change = change_bytes(rng, data, [0, 255])

    def call():
        with tfw.TFRecordWriter(path) as writer:
            writer.write(data)
            writer.write(np.frombuffer(data, np.int64))
            writer.write_many([memoryview(data)] * 3)
        return [len(record) for record in tfw.read_records(path)]

    def check(result):
        assert result == [len(data)] * 5

    return call, change, check


@case
def messages_of_rows_that_change(rng):
    row = copy.deepcopy(ROWS[3])
    held, change = change_list(rng, row["v"], [5, 6])
    row["v"], row["m"] = held, held

    def check(result):
        assert [found["i"].tolist() for found in tfw.decode_examples(result)] == [[3]] * 40

    return lambda: tfw.encode_examples([row] * 40), change, check
