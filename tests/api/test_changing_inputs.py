"""Threads that change what others are reading: some answer or an error, never a wrong access.

Each case is a call and what another thread does to its arguments meanwhile. Whatever comes out is
made of values that went in at some time. Under ASan (make check-sanitized) a wrong access ends the
run. TFWIRE_CHANGING_SECONDS says how long each case runs; a minute each finds more.
"""

import copy
import os
import pickle
import random
from contextlib import suppress

import numpy as np
import pytest

import tfwire as tfw
from helpers.arguments import input_cases  # noqa: F401  # adds cases to CASES
from helpers.arguments.input_changes import (
    CASES,
    COLUMN_PARSER,
    COUNT,
    EDGES,
    LONG_KEY,
    MESSAGES,
    PARSER,
    ROWS,
    SEQUENCE_PARSER,
    SEQUENCES,
    SPEC,
    anything,
    are_rows,
    case,
    change_bytes,
    change_list,
    change_numbers,
    run,
)
from helpers.search import FIRST_SEED

SECONDS = float(os.environ.get("TFWIRE_CHANGING_SECONDS", 0))

# ---- Lists of messages --------------------------------------------------------------------------


@case
def parse_a_list(rng):
    held, change = change_list(rng, MESSAGES, [bytearray(m) for m in MESSAGES[:5]])
    return lambda: PARSER.parse(held), change, are_rows


@case
def parse_a_list_of_anything(rng):
    held, change = change_list(rng, MESSAGES, [b"", b"\xff" * 9, "text", None, 3, [1]])
    return lambda: PARSER.parse(held), change, are_rows


@case
def parse_example_of_a_list(rng):
    held, change = change_list(rng, MESSAGES)
    return lambda: tfw.parse_example(held, SPEC), change, are_rows


@case
def parse_a_list_of_sequences(rng):
    held, change = change_list(rng, SEQUENCES)

    def check(result):
        context, lists = result[0], result[1]
        for i, steps in zip(context["i"].tolist(), np.asarray(lists["l"]), strict=True):
            assert set(steps.reshape(-1).tolist()) <= {0, i}

    return lambda: SEQUENCE_PARSER.parse(held), change, check


@case
def decode_a_list(rng):
    held, change = change_list(rng, MESSAGES, [bytearray(MESSAGES[1])])

    def check(result):
        for decoded in result:
            row = ROWS[decoded["i"][0]]
            assert decoded["s"] == [row["s"]]
            assert decoded["v"].tolist() == row["v"] if len(row["v"]) else True

    return lambda: tfw.decode_examples(held), change, check


@case
def parse_messages_that_change(rng):
    """The list stays, its bytearrays change."""
    held = [bytearray(m) for m in MESSAGES[:50]]
    changes = [change_bytes(rng, m, [0, 0x0A, 0x7F, 0x80, 0xFF]) for m in held]
    return lambda: PARSER.parse(held), lambda: rng.choice(changes)(), anything


# ---- Single messages ----------------------------------------------------------------------------


def one_message(rng, call, wrap=lambda data: data):
    """The key is all ASCII, or no UTF-8 at all: three times as long as text."""
    row = {LONG_KEY: 1, "i": 1, "f": [1.0] * 3, "s": b"x" * 500, "v": list(range(200))}
    data = bytearray(tfw.encode_example(row))
    held = wrap(data)
    return lambda: call(held), change_bytes(rng, data, [0, 0x0A, 0x41, 0x80, 0xED, 0xFF]), anything


@case
def decode_a_key_that_flips(rng):
    data = bytearray(tfw.encode_example({LONG_KEY: 1}))
    begin = data.index(LONG_KEY.encode())
    view = np.frombuffer(data, np.uint8)[begin : begin + len(LONG_KEY)]

    def change():
        view[:] = 0xFF
        view[:] = 0x41

    def check(result):
        (key,) = result
        assert set(key) <= {"k", "A", "\udcff"}
        assert len(key) == len(LONG_KEY)

    return lambda: tfw.decode_example(data), change, check


FIXED = tfw.Parser({key: SPEC[key] for key in "ifs"})
for name, *call in [
    ("decode_a_bytearray", tfw.decode_example),
    ("decode_a_view", tfw.decode_example, memoryview),
    ("decode_an_array", tfw.decode_example, lambda data: np.frombuffer(data, np.uint8)),
    ("decode_a_sequence", tfw.decode_sequence_example),
    ("parse_a_single_bytearray", PARSER.parse_single),
    ("parse_a_single_of_fixed_features", FIXED.parse_single),
    ("json_of_a_bytearray", tfw.example_to_json),
    ("checksum_of_a_bytearray", tfw.crc32c),
]:
    CASES[name] = lambda rng, call=call: one_message(rng, *call)


@case
def tensor_of_a_bytearray(rng):
    data = bytearray(tfw.serialize_tensor(np.arange(1000)))
    change = change_bytes(rng, data, [0, 0x08, 0x12, 0xFF])
    return lambda: tfw.parse_tensor(data, tfw.int64).sum(), change, anything


@case
def raw_bytes_of_a_bytearray(rng):
    data = bytearray(1024)
    change = change_bytes(rng, data, [0, 255])
    return lambda: tfw.decode_raw(data, tfw.int64).sum(), change, anything


# ---- Columns of strings -------------------------------------------------------------------------


def a_column(rng, call):
    """Its data, its offsets and its attributes change."""
    joined = np.frombuffer(bytearray(b"".join(MESSAGES)), np.uint8)
    offsets = np.cumsum([0, *map(len, MESSAGES)])
    column = tfw.BytesColumn(joined, offsets.copy())
    changes = [
        change_bytes(rng, joined, [0, 0x0A, 0xFF]),
        change_numbers(rng, column.offsets, [*EDGES, len(joined), len(joined) + 1]),
        lambda: setattr(column, "data", np.zeros((len(joined), 0), np.uint8)),
        lambda: setattr(column, "data", joined),
        lambda: setattr(column, "data", joined[: rng.randrange(len(joined))]),
    ]
    good = column.offsets

    def change():
        rng.choice(changes)()
        if rng.randrange(4) == 0:
            good[:] = offsets

    return lambda: call(column), change, anything


for name, call in {
    "parse_a_column": COLUMN_PARSER.parse,
    "decode_a_column": tfw.decode_examples,
    "column_to_objects": lambda column: column.to_numpy(),
    "column_to_strings": lambda column: [column[3], column[2:9].to_list(), repr(column)],
    "column_taken_apart": lambda column: column.take(np.array([5, 1])),
    "column_copied": lambda column: pickle.loads(pickle.dumps(column)),
    "encode_a_column_of_strings": lambda column: tfw.encode_columns(
        {"s": column, "i": np.arange(COUNT)}
    ),
}.items():
    CASES[name] = lambda rng, call=call: a_column(rng, call)


# ---- Columns to encode --------------------------------------------------------------------------


def encoded(columns):
    return lambda: tfw.encode_columns(columns)


@case
def encode_arrays(rng):
    columns = {
        "i": np.arange(3 * COUNT).reshape(COUNT, 3),
        "u": np.arange(COUNT, dtype=np.uint8),
        "f": np.arange(COUNT, dtype=np.float32),
        "d": np.arange(COUNT, dtype=np.float64),
    }
    changes = [
        change_numbers(rng, columns["i"], EDGES),
        change_numbers(rng, columns["u"], [0, 1, 255]),
        change_numbers(rng, columns["f"], [0.0, np.inf, np.nan]),
        change_numbers(rng, columns["d"], [0.0, 1e300]),
    ]

    def check(result):
        assert [set(d) for d in tfw.decode_examples(result)] == [set("idfu")] * COUNT

    return encoded(columns), lambda: rng.choice(changes)(), check


@case
def encode_ragged_rows(rng):
    splits = np.array([0, *np.cumsum([n % 4 for n in range(COUNT)])])
    values = np.arange(splits[-1])
    columns = {"r": tfw.RaggedTensor(values, splits)}
    changes = [
        change_numbers(rng, splits, [*EDGES, len(values)]),
        change_numbers(rng, values, EDGES),
    ]
    return encoded(columns), lambda: rng.choice(changes)(), anything


@case
def encode_ragged_strings(rng):
    strings = tfw.BytesColumn(bytearray(b"abc" * COUNT), np.arange(COUNT + 1) * 3)
    splits = np.arange(COUNT + 1)
    columns = {"r": tfw.RaggedTensor(strings, splits)}
    changes = [
        change_numbers(rng, splits, [*EDGES, COUNT]),
        change_numbers(rng, strings.offsets, [*EDGES, 3 * COUNT]),
    ]
    return encoded(columns), lambda: rng.choice(changes)(), anything


def encode_list_of(items, others=()):
    def make(rng):
        held, change = change_list(rng, items, others)

        def check(result):
            assert len(tfw.decode_examples(result)) == len(result)

        return encoded({"l": held}), change, check

    return make


for kind, items, others in [
    ("strings", [b"s%d" % n for n in range(COUNT)], [bytearray(b"b"), "text", 1, None]),
    ("texts", [f"s{n}" for n in range(COUNT)], [b"bytes"]),
    ("numbers", list(range(COUNT)), [1.5, 2**70, "text"]),
    ("lists", [[n] * (n % 4) for n in range(COUNT)], [[b"x"], 3]),
    ("arrays", [np.arange(n % 4) for n in range(COUNT)], [np.zeros(2, np.float32), "x"]),
]:
    CASES[f"encode_a_list_of_{kind}"] = encode_list_of(items, others)


@case
def encode_lists_that_change(rng):
    pairs = [change_list(rng, [n] * 5, [b"x", 2.5]) for n in range(COUNT)]
    changes = [change for _, change in pairs]
    return encoded({"l": [held for held, _ in pairs]}), lambda: rng.choice(changes)(), anything


@case
def encode_a_dict_that_changes(rng):
    columns = {f"c{n}": np.arange(50) for n in range(20)}
    spare = dict(columns)

    def change():
        columns.pop(f"c{rng.randrange(20)}", None)
        columns.update(rng.sample(sorted(spare.items(), key=lambda item: item[0]), 5))

    return encoded(columns), change, anything


# ---- Rows ---------------------------------------------------------------------------------------


def changing_rows(rng):
    rows = copy.deepcopy(ROWS[:100])
    for row in rows:
        row["a"], row["b"] = np.arange(50), bytearray(b"x" * 100)
    held, change = change_list(rng, rows)
    changes = [
        change,
        lambda: rng.choice(rows)["v"].append(rng.choice([1, 2.5])),
        lambda: rng.choice(rows)["v"].clear(),
        lambda: rng.choice(rows).update({f"n{rng.randrange(5)}": 1}),
        lambda: rng.choice(rows).pop(f"n{rng.randrange(5)}", None),
        lambda: rng.choice(rows)["a"].fill(rng.choice(EDGES)),
        lambda: rng.choice(rows)["b"].reverse(),
        lambda: rng.choice(rows)["b"].extend(b"y") if rng.randrange(50) else None,
        lambda: rng.choice(rows).__setitem__("b", bytearray(b"z")),
    ]

    def any_change():
        with suppress(BufferError):  # a bytearray that is being read
            rng.choice(changes)()

    return held, rows, any_change


@case
def encode_rows_that_change(rng):
    held, _, change = changing_rows(rng)

    def check(result):
        for decoded in tfw.decode_examples(result):
            assert decoded["s"] == [ROWS[decoded["i"][0]]["s"]]

    return lambda: tfw.encode_examples(held), change, check


@case
def encode_a_row_that_changes(rng):
    _, rows, change = changing_rows(rng)
    return lambda: [tfw.encode_example(row) for row in rows[:10]], change, anything


@case
def encode_a_sequence_that_changes(rng):
    _, rows, change = changing_rows(rng)
    return (
        lambda: tfw.encode_sequence_example(rows[0], {"l": rows[1]["v"], "a": rows[1]["a"]}),
        change,
        anything,
    )


# ---- Records ------------------------------------------------------------------------------------


def written(tmp, write):
    """Writes records; what is read again verifies."""
    path = os.path.join(tmp, "changing.tfrecord")

    def call():
        with tfw.TFRecordWriter(path) as writer:
            write(writer)
        return list(tfw.read_records(path))

    return call


@case
def write_a_list(rng, tmp):
    held, change = change_list(rng, MESSAGES, [bytearray(b"x"), memoryview(b"y")])

    def check(result):
        assert set(result) <= {*MESSAGES, b"x", b"y"}

    return written(tmp, lambda writer: writer.write_many(held)), change, check


@case
def write_columns(rng, tmp):
    strings = [b"s%d" % n for n in range(COUNT)]
    held, change = change_list(rng, strings)
    return written(tmp, lambda writer: writer.write_columns({"l": held})), change, anything


@case
def read_by_numbers(rng, tmp):
    path = os.path.join(tmp, "numbered.tfrecord")
    tfw.write_records(path, MESSAGES)
    file = tfw.TFRecordFile(path, tfw.RecordIndex.build(path))
    numbers = np.arange(100)
    change = change_numbers(rng, numbers, [*EDGES, COUNT - 1, COUNT])

    def check(result):
        assert set(result) <= set(MESSAGES)

    return lambda: file[numbers], change, check


# ---- Specifications -----------------------------------------------------------------------------


@case
def parse_with_a_spec_that_changes(rng):
    spec = dict(SPEC)
    kinds = [tfw.FixedLenFeature([], tfw.int64, -1), tfw.VarLenFeature(tfw.string), SPEC["v"]]

    def change():
        spec[rng.choice(["i", "v", "x", "y"])] = rng.choice(kinds)
        spec.pop(rng.choice(["x", "y"]), None)

    return lambda: tfw.parse_example(MESSAGES[:20], spec), change, anything


# ---- The tests ----------------------------------------------------------------------------------


def make_of(name, tmp_path):
    make = CASES[name]
    takes_folder = make.__code__.co_varnames[:2] == ("rng", "tmp")
    return (lambda rng: make(rng, str(tmp_path))) if takes_folder else make


@pytest.mark.filterwarnings("ignore:.* is empty:tfwire.TfwireWarning")
@pytest.mark.parametrize("name", CASES)
def test_inputs_that_change_give_some_answer(name, tmp_path):
    assert run(make_of(name, tmp_path), SECONDS or 0.05, seed=1) >= 0


@pytest.mark.filterwarnings("ignore:.* is empty:tfwire.TfwireWarning")
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST_SEED + 2, FIRST_SEED + 5))
@pytest.mark.parametrize("name", CASES)
def test_inputs_that_change_give_some_answer_for_long(name, seed, tmp_path):
    run(make_of(name, tmp_path), SECONDS or 0.5, seed)


def test_every_case_can_answer(tmp_path):
    """Without changes, every call returns: the cases do not only see errors."""
    for name in CASES:
        call, _, check = make_of(name, tmp_path)(random.Random(1))
        check(call())
