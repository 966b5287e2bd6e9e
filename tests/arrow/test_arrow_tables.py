"""Tables of Arrow data, without a library of Arrow's, as columns to be written."""

import errno
import gc
from random import Random
from threading import Event, Thread

import numpy as np
import pytest

import tfwire as tfw
from helpers.arrow.columns import NUMBERS, Batch, Stream, capsule, ffi, lay_out, table_of

NULL = ffi.NULL
STRINGS = ["u", "U", "z", "Z", "vu", "vz", "w:3"]
LISTS = ["+l", "+L", "+vl", "+vL", "+w:2"]
TEXT = [b"cat", b"dog", None, b"emu"]
SOME = {
    **{f: [1, 0, None, 3] for f in NUMBERS},
    **dict.fromkeys(STRINGS, TEXT),
    "b": [1, 0, None, 1],
}


def rows_of(table, **arguments):
    """What is read of what a table is encoded to; every struct was released."""
    records = tfw.encode_columns(table, **arguments)
    assert table.made == table.released > 0
    return [
        {name: np.asarray(values).tolist() for name, values in row.items()}
        for row in tfw.decode_examples(records)
    ]


def expected(values):
    """The rows of a column x."""
    return [{} if value is None else {"x": flattened(value)} for value in values]


def flattened(value):
    if not isinstance(value, (list, tuple)):
        return [value]
    return [item for part in value for item in flattened(part)]


def one(format, values, before=0, **changes):
    """A table of one column x."""
    node = lay_out(format, values, before)
    for name, value in changes.items():
        setattr(node, name, value)
    return Batch(table_of({"x": node}))


# ---- Types ----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", SOME)
def test_every_type_with_null_and_an_offset(format):
    values = SOME[format]
    for before in (0, 1, 9):
        assert expected(values) == rows_of(one(format, values, before))
        assert expected(values[:2]) == rows_of(one(format, values[:2], before))


@pytest.mark.parametrize("kind", LISTS)
def test_lists_of_every_type(kind):
    for inner, (a, b, _, c) in SOME.items():
        values = [[a, b], None, [c, c]] if kind == "+w:2" else [[a, b], [], None, [c]]
        for before in (0, 9):
            assert expected(values) == rows_of(one((kind, inner), values, before))


@pytest.mark.parametrize("index", [format for format in NUMBERS if format not in "efg"])
def test_dictionaries_of_every_index(index):
    for values in ("u", "Z", "vu", "l", "s", "g", "b"):
        some = SOME[values]
        assert expected(some * 2) == rows_of(one(("dictionary", index, values), some * 2, 3))
        lists = [[some[0], some[1]], None, [], [some[0]]]
        for kind in ("+l", "+vl"):
            found = rows_of(one((kind, ("dictionary", index, values)), lists, 1))
            assert expected(lists) == found


def test_the_type_null():
    assert [{}, {}] == rows_of(one("n", [None, None]))
    table = one(("+l", "n"), [[], None, []])
    records = tfw.encode_columns(table)
    assert tfw.encode_columns({"x": [[]]}) == records[:1] == records[2:]
    assert b"\n\0" == records[1]


def test_numbers_are_converted_as_those_of_numpy():
    floats = np.array([0.1, 1e300, -1e300, np.nan, -0.0, 1e-46])
    for format, dtype in (("e", "f2"), ("f", "f4"), ("g", "f8")):
        with np.errstate(over="ignore"):
            values = floats.astype(dtype)
        assert tfw.encode_columns({"x": values}) == tfw.encode_columns(one(format, values.tolist()))
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    node = lay_out("e", [0.0])
    node.buffers[1], node.length = halves, 2**16
    found = tfw.parse_example(
        tfw.encode_columns(Batch(table_of({"x": node}))),
        {"x": tfw.FixedLenFeature([], tfw.float32)},
    )["x"]
    assert np.array_equal(halves.astype(np.float32), found, equal_nan=True)


def test_a_value_outside_of_int64_is_refused_as_of_numpy():
    values = [1, 2**63 - 1, 2**63, 2**64 - 1]
    with pytest.raises(ValueError, match=r"feature 'x': .*outside of int64") as of_numpy:
        tfw.encode_columns({"x": np.array(values, np.uint64)})
    with pytest.raises(
        ValueError, match="feature 'x': record 2: a value outside of int64"
    ) as found:
        rows_of(one("L", values))
    assert str(of_numpy.value).endswith(str(found.value).partition("record 2: ")[2])
    with pytest.raises(ValueError, match="record 1: a value outside"):
        rows_of(one(("+l", "L"), [[1], [2, 2**63]]))
    assert expected([1, None]) == rows_of(one("L", [1, None]))  # null is 2**64 - 1 there


def any_column(random, count):
    """A format, and so many values of it."""
    format = random.choice(sorted(SOME))
    some = [value for value in SOME[format] if value is not None]
    if random.random() < 0.5 and format not in "be":
        format = ("dictionary", random.choice("cCiL"), format)

    kinds = random.choices(LISTS, k=random.randrange(4))
    kinds[1:] = ["+w:2"] * len(kinds[1:])
    for kind in reversed(kinds):
        format = (kind, format)

    def value(depth):
        if depth == len(kinds):
            return random.choice(some)
        size = 2 if kinds[depth] == "+w:2" else random.randrange(4)
        return [value(depth + 1) for _ in range(size)]

    return format, [value(0) if random.random() < 0.8 else None for _ in range(count)]


@pytest.mark.parametrize("seed", range(60))
def test_columns_of_any_types(seed):
    random = Random(seed)
    count, before = random.randrange(1, 20), random.randrange(10)
    columns = {name: any_column(random, count) for name in "yx"}
    rows = [
        {
            name: flattened(columns[name][1][i])
            for name in sorted(columns)
            if columns[name][1][i] is not None
        }
        for i in range(count)
    ]
    nodes = {name: lay_out(*column, before) for name, column in columns.items()}
    assert rows == rows_of(Batch(table_of(nodes)))
    table = table_of(nodes)
    table.offset, table.length = 1, count - 1
    assert rows[1:] == rows_of(Batch(table))


# ---- What is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "advice"),
    [
        ("tsu:UTC", "timestamp.* int64"),
        ("tdD", "date.* int32"),
        ("ttm", "time.* int64"),
        ("tDs", "duration.* int64"),
        ("tiM", "interval.* string"),
        ("d:10,2", "decimal.* float64"),
        ("+m", "map.* lists"),
        ("+us:0,1", "union.* one of its types"),
        ("+ud:0,1", "union.* one of its types"),
        ("+s", "struct.* columns"),
        ("+r", "run-end.* type of its values"),
        ("?", "not supported"),
    ],
)
def test_types_that_no_feature_holds(format, advice):
    for table in (one("l", [1]), one(("+l", "l"), [[1]])):
        node = table.node.children[0]
        (node.children or [node])[0].format = format
        with pytest.raises(TypeError, match=f"feature 'x': .*{advice}"):
            rows_of(table)
        assert table.made == table.released == 2


@pytest.mark.parametrize("kind", LISTS)
def test_null_inside_a_list(kind):
    for inner, values in (
        ("i", [[1, 2], [3, None]]),
        (("dictionary", "c", "u"), [[b"a", b"a"], [None, b"a"]]),
    ):
        table = one((kind, inner), values)
        with pytest.raises(TypeError, match="feature 'x': record 1: a null inside a list"):
            rows_of(table)
    with pytest.raises(TypeError, match="feature 'x': record 0: a null inside a list"):
        rows_of(one((kind, ("+w:2", "i")), [[[1, 2], None]]))


put = setattr

# Each makes of a table of one column x, of lists, one that is not as Arrow says.
HOSTILE = {
    "a column too short": lambda schema, array: put(array.children[0], "length", 1),
    "a length below zero": lambda schema, array: put(array, "length", -1),
    "an offset below zero": lambda schema, array: put(array.children[0], "offset", -1),
    "an offset without an end": lambda s, array: put(array.children[0], "offset", 2**63 - 2),
    "more nulls than elements": lambda s, array: put(array.children[0], "null_count", 99),
    "fewer nulls than none": lambda s, array: put(array.children[0], "null_count", -2),
    "nulls without a bitmap": lambda s, array: put(array.children[0], "null_count", 1),
    "no buffers": lambda schema, array: put(array.children[0], "n_buffers", 0),
    "a buffer too many": lambda schema, array: put(array.children[0], "n_buffers", 3),
    "buffers nowhere": lambda schema, array: put(array.children[0], "buffers", NULL),
    "no column": lambda schema, array: put(array, "n_children", 0),
    "columns nowhere": lambda schema, array: put(array, "children", NULL),
    "no elements": lambda schema, array: put(array.children[0], "n_children", 0),
    "elements nowhere": lambda s, array: array.children[0].children.__setitem__(0, NULL),
    "elements too short": lambda s, array: put(array.children[0].children[0], "length", 2),
    "a dictionary": lambda schema, array: put(array.children[0], "dictionary", array),
    "no format": lambda schema, array: put(schema.children[0], "format", NULL),
    "no columns in the schema": lambda schema, array: put(schema, "n_children", 0),
    "columns nowhere in the schema": lambda schema, array: put(schema, "children", NULL),
    "fewer columns than none": lambda schema, array: put(schema, "n_children", -1),
    "columns without end": lambda schema, array: put(schema, "n_children", 2**40),
    "a list of nothing": lambda schema, array: put(schema.children[0], "n_children", 0),
}


REFUSED = (
    "array that is|array is missing|array whose|buffer|children|impossible number|nulls without|"
    "column without a type|a list without|outside of the elements"
)


@pytest.mark.parametrize("name", HOSTILE)
def test_structs_that_lie_are_refused(name, tmp_path):
    table = one(("+l", "l"), [[1, 2], [3]])
    table.edit = HOSTILE[name]
    with tfw.TFRecordWriter(tmp_path / "out") as writer:
        with pytest.raises(ValueError, match=REFUSED):
            writer.write_columns(table)
        assert table.made == table.released == 2
        assert 0 == writer.receipt.num_records


@pytest.mark.parametrize(
    ("format", "buffer", "lies"),
    [
        ("u", 1, [[0, 3, 2], [-1, 0, 3], [3, 0, 3]]),
        ("U", 1, [[0, 3, 2], [-1, 0, 3], [3, 0, 3]]),
        (("+l", "i"), 1, [[0, 3, 2], [-1, 0, 3], [0, 1, 99], [0, 99, 1]]),
        (("+L", "i"), 1, [[0, 3, 2], [-1, 0, 3], [0, 1, 2**62], [0, 2**62, 1]]),
        (("+vl", "i"), 1, [[0, -1], [0, 99], [2**31 - 1, 0]]),
        (("+vL", "i"), 2, [[1, -1], [1, 99], [2**63 - 1, 0]]),
        (("dictionary", "c", "u"), 1, [[0, 9], [-1, 0], [127, 127]]),
        (("dictionary", "L", "l"), 1, [[0, 9], [2**63, 0], [2**64 - 1, 0]]),
        ("vu", 1, [[-1, 0, 0, 0, 13, 0, 0, 0], [13, 0, 1, 0] * 2, [13, 0, 0, 99] * 2]),
        ("vu", 3, [[12], [-1], [0]]),
    ],
)
def test_numbers_in_buffers_that_lie_are_refused(format, buffer, lies):
    values = [b"thirteen here", b"thirteen also"] if format == "vu" else [b"cat", b"dog"]
    values = [[1, 2], [3]] if isinstance(format, tuple) and format[0][0] == "+" else values
    values = [1, 2] if format[-1] == "l" and format[0] == "dictionary" else values
    for lie in lies:
        table = one(format, values)
        node = table.node.children[0]
        node.buffers[buffer] = np.array(lie, node.buffers[buffer].dtype)
        with pytest.raises(ValueError, match=r"feature 'x': record \d"):
            rows_of(table)
        assert table.made == table.released == 2


class Given:
    """Hands over what it is given."""

    def __init__(self, result):
        self.result = result

    def __arrow_c_array__(self, requested_schema=None):
        return self.result


def test_what_is_no_table():
    class GivenStream(Given):
        def __arrow_c_stream__(self, requested_schema=None):
            return self.result

    for result in (None, 1, (), (None, None), (capsule(ffi.new("int *"), b"other"),) * 2):
        with pytest.raises(TypeError, match=r"Given must|two capsules"):
            tfw.encode_columns(Given(result))
        with pytest.raises(TypeError, match="GivenStream must hand over an Arrow capsule"):
            tfw.encode_columns(GivenStream(result))
    array = Batch(lay_out("l", [1, 2]))
    with pytest.raises(TypeError, match="expected a table"):
        tfw.encode_columns(array)
    assert 2 == array.released
    table = one("l", [1])
    used = table.__arrow_c_array__()
    assert 1 == len(tfw.encode_columns(Given(used)))
    with pytest.raises(ValueError, match="released"):
        tfw.encode_columns(Given(used))
    assert 2 == table.released


def test_two_columns_of_one_name():
    node = table_of({"x": lay_out("l", [1])})
    table = Batch(table_of({"x": lay_out("l", [1]), "y": node.children[0]}))
    table.node.children[1].name = "x"
    with pytest.raises(ValueError, match="two columns are named 'x'"):
        tfw.encode_columns(table)
    assert 2 == table.released


def test_a_row_that_is_null():
    table = one("l", [1, 2])
    table.node.buffers, table.node.null_count = [np.array([1], np.uint8)], 1
    with pytest.raises(TypeError, match="a row that is null"):
        rows_of(table)


# ---- Streams --------------------------------------------------------------------------------


def stream(*batches, **arguments):
    return Stream([table_of({"x": lay_out("i", batch)}) for batch in batches], **arguments)


def test_batches_of_a_stream_follow_each_other():
    table = stream([1, 2], [], [None], [3])
    assert expected([1, 2, None, 3]) == rows_of(table)
    assert 6 == table.released
    assert [] == rows_of(Stream([], schema=table.node))
    assert [b"\n\0"] * 3 == tfw.encode_columns(Stream([table_of({}, 1), table_of({}, 2)]))


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("bytes_as", ["object", "column"])
def test_all_ways_to_encode_give_the_same(bytes_as, num_threads):
    values = [[i, i + 2] if i % 7 else None for i in range(5000)]
    want = tfw.encode_columns(one(("+l", "s"), values))
    table = Stream(
        [table_of({"x": lay_out(("+l", "s"), part)}) for part in (values[:10], values[10:])]
    )
    found = tfw.encode_columns(table, bytes_as=bytes_as, num_threads=num_threads)
    assert want == (found if bytes_as == "object" else found.to_list())
    assert 4 == table.released


@pytest.mark.parametrize("num_threads", [1, 3])
def test_writers_write_tables(tmp_path, num_threads):
    values = list(range(20_000))
    want = tfw.encode_columns({"x": values})
    with tfw.TFRecordWriter(tmp_path / "one", num_threads=num_threads) as writer:
        writer.write_columns(stream(values[:100], values[100:]))
    assert want == list(tfw.read_records(tmp_path / "one"))
    pattern = tmp_path / "part-{shard}-of-{shards}"
    with tfw.ShardedWriter(pattern, num_shards=2, num_threads=num_threads) as sharded:
        sharded.write_columns(stream(values[:100], values[100:]))
    for shard, path in enumerate(sharded.paths):
        assert want[shard::2] == list(tfw.read_records(path))


def test_columns_are_sorted_by_their_names():
    nodes = {name: lay_out("l", [i]) for i, name in enumerate("bca")}
    arrays = {name: np.array([i]) for i, name in enumerate("bca")}
    for sort_keys in (True, False):
        found = tfw.encode_columns(Batch(table_of(nodes)), sort_keys=sort_keys)
        assert tfw.encode_columns(arrays, sort_keys=sort_keys) == found


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (errno.EIO, OSError),
        (errno.EINVAL, ValueError),
        (errno.ENOSYS, ValueError),
        (errno.ENOMEM, MemoryError),
    ],
)
def test_a_stream_that_fails(tmp_path, code, error):
    table = stream([1, 2], [3])
    table.batches.insert(1, (code, b"the disk is gone"))
    with tfw.TFRecordWriter(tmp_path / "out") as writer:
        with pytest.raises(error, match="stream failed: the disk is gone"):
            writer.write_columns(table)
        writer.write({"x": 9})
    assert 3 == table.made == table.released
    assert tfw.encode_columns({"x": [1, 2, 9]}) == list(tfw.read_records(tmp_path / "out"))
    table = Stream([], schema=(code, b""))
    with pytest.raises(error, match="without a message"):
        tfw.encode_columns(table)
    assert 1 == table.made == table.released


def test_a_faulty_batch_comes_after_the_batches_before(tmp_path):
    table = Stream([table_of({"x": lay_out("L", values)}) for values in ([1], [2, 2**63], [3])])
    with (
        tfw.TFRecordWriter(tmp_path / "out") as writer,
        pytest.raises(ValueError, match="feature 'x': record 2: a value outside"),
    ):
        writer.write_columns(table)
    assert 4 == table.made == table.released
    assert tfw.encode_columns({"x": [1]}) == list(tfw.read_records(tmp_path / "out"))


def test_a_writer_that_fails_releases_the_table():
    class Full:
        def write(self, data):
            raise OSError(errno.ENOSPC, "full")

    for num_threads in (1, 2):
        table = stream(list(range(200_000)), [1])
        writer = tfw.TFRecordWriter(Full(), num_threads=num_threads)
        with pytest.raises(OSError, match="full"):
            writer.write_columns(table)
        assert 3 == table.made == table.released
        with pytest.raises(OSError, match="full"):
            writer.close()


def test_a_table_that_is_not_read_to_its_end_is_released():
    from tfwire._examples.column_batches import batches_of_columns

    for steps in range(3):
        table = stream([1], [2], [3])
        batches = batches_of_columns(table, None, True, 100)
        for _ in range(steps):
            next(batches)
        batches.close()
        del batches
        gc.collect()
        assert 2 + steps == table.made == table.released


def test_a_mapping_stays_a_mapping():
    class Row(dict):
        """Has an attribute of every name."""

        def __getattr__(self, name):
            return lambda *arguments: None

    assert tfw.encode_columns({"x": [1]}) == tfw.encode_columns(Row(x=[1]))


@pytest.mark.parametrize(
    ("format", "buffer"),
    [
        (("+l", "i"), 1),
        (("+L", "u"), 1),
        (("+vl", "i"), 2),
        (("dictionary", "i", "u"), 1),
        ("vu", 1),
    ],
)
def test_a_table_that_changes_while_it_is_read(format, buffer):
    """Some messages or an error, and no access outside of the table, which ASan would find. Of the
    offsets of strings nobody can know whether they end in their buffer."""
    value = [b"a string that is longer than a view"] * 2
    values = [value if isinstance(format, tuple) and format[0] != "dictionary" else value[0]] * 500
    if "i" in format and format[0] != "dictionary":
        values = [[1, 2]] * 500
    outcomes = []
    for seed in range(5):
        table, done = one(format, values), Event()
        capsules = table.__arrow_c_array__()
        memory = table.copies[id(table.node.children[0].buffers[buffer])].view("i4")
        noise = np.random.default_rng(seed).integers(-3, 1100, (50, len(memory))).astype("i4")
        thread = Thread(target=change, args=(memory, noise, done))
        thread.start()
        try:
            outcomes.append(len(tfw.encode_columns(Given(capsules))))
        except (ValueError, TypeError) as error:
            outcomes.append(str(error))
        finally:
            done.set()
            thread.join()
        assert 2 == table.released
    assert all(outcome == 500 or "feature 'x'" in outcome for outcome in outcomes)


def change(memory, noise, done):
    good = memory.copy()
    while not done.is_set():
        for line in noise:
            memory[:] = line
            memory[:] = good
