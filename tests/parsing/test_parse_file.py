"""Files to batches: exact across windows, files and threads; nothing before an error is lost."""

import gc
import io
import os

import numpy as np
import pytest

import tfwire as tfw
from cases.results import plain_dict
from helpers.reading import flip_byte
from helpers.records.parsed_files import BAD, FEATURES, RECORDS, drain, numbers, write, write_all
from tfwire._parsing import file_chunks

pytestmark = pytest.mark.short_strings


@pytest.fixture
def parser():
    return tfw.Parser(FEATURES)


@pytest.fixture
def files(tmp_path):
    return write_all(tmp_path)


def chunks(values, size):
    return [list(values[i : i + size]) for i in range(0, len(values), size)]


# ---- Batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 7, 64, 200, 1000])
def test_batches_are_exact_across_files_and_windows(parser, files, batch_size, num_threads):
    batches = list(parser.parse_file(files, batch_size, num_threads=num_threads))
    expected = [parser.parse(chunk) for chunk in chunks(RECORDS, batch_size)]
    assert len(expected) == len(batches)
    for one, other in zip(expected, batches, strict=True):
        assert plain_dict(one) == plain_dict(other)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_incomplete_last_batch_can_be_left_out(parser, files, num_threads):
    for batch_size in (30, 50, 201):
        batches = parser.parse_file(files, batch_size, num_threads=num_threads, drop_remainder=True)
        complete = 200 // batch_size * batch_size
        assert chunks(range(complete), batch_size) == numbers(batches)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda path: path,
        str,
        lambda path: os.fsencode(path),
        lambda path: iter([path]),
        lambda path: io.BytesIO(path.read_bytes()),
    ],
)
def test_inputs_are_paths_and_file_objects(parser, tmp_path, wrap):
    path = write(tmp_path / "one.tfrecord", RECORDS[:10])
    assert [list(range(10))] == numbers(parser.parse_file(wrap(path)))


@pytest.mark.parametrize("batch_size", [5000, 9000, 10**15])
def test_a_large_batch_takes_what_its_records_take(tmp_path, batch_size):
    path = write(tmp_path / "small.tfrecord", tfw.encode_columns({"n": np.arange(9000)}))
    parser = tfw.Parser({"n": tfw.FixedLenFeature([], tfw.int64)})
    batches = list(parser.parse_file(path, batch_size))
    assert list(range(9000)) == np.concatenate([batch["n"] for batch in batches]).tolist()
    assert min(batch_size, 9000) == len(batches[0]["n"])
    for batch in batches:
        held = batch["n"].base  # the arrays of all batches in the same memory
        assert sum(array.nbytes for array in held) <= 2.5 * batch["n"].nbytes


def test_what_keeps_memory_is_not_made_by_users(tmp_path):
    path = write(tmp_path / "one.tfrecord", tfw.encode_columns({"n": np.arange(90)}))
    (batch,) = tfw.Parser({"n": tfw.FixedLenFeature([], tfw.int64)}).parse_file(path, 90)
    kind = type(batch["n"].base)
    for make in (kind, kind.__new__, object.__new__):
        with pytest.raises(TypeError):
            make(*[kind] * (make is not kind))


def test_arrays_and_strings_keep_the_memory_of_their_batches(tmp_path):
    strings = [b"%d" % i * (i % 7) for i in range(95)]
    columns = {"s": strings, "n": np.arange(95), "f": np.ones((95, 2, 3), np.float32)}
    path = write(tmp_path / "one.tfrecord", tfw.encode_columns(columns))
    features = {
        "s": tfw.FixedLenFeature([1, 1], tfw.string),
        "n": tfw.FixedLenFeature([], tfw.int64),
        "f": tfw.FixedLenFeature([2, 3], tfw.float32),
    }
    parser = tfw.Parser(features, bytes_as="column")
    batches = list(parser.parse_file(path, 10))
    held = batches[0]["n"].base
    for number in 9, -10, 1 << 40:
        with pytest.raises(IndexError):
            held[number]
    del held, parser
    gc.collect()
    list(tfw.Parser(features).parse_file(path, 10))  # in other memory
    for i, batch in enumerate(batches):
        size = 10 if i < 9 else 5
        part = slice(10 * i, 10 * i + size)
        assert [[[s]] for s in strings[part]] == batch["s"].to_list()
        assert (0, (size, 1, 1)) == (batch["s"].offsets[0], batch["s"].shape)
        assert columns["n"][part].tolist() == batch["n"].tolist()
        assert (size, 2, 3) == batch["f"].shape
        for array in batch["n"], batch["f"], batch["s"].data, batch["s"].offsets:
            flags = array.flags
            assert (True, True, True) == (flags.c_contiguous, flags.aligned, flags.writeable)


def test_sequence_examples_are_read_alike(tmp_path):
    features = ({"n": FEATURES["n"]}, {"w": tfw.FixedLenSequenceFeature([], tfw.int64)})
    records = [tfw.encode_sequence_example({"n": n}, {"w": range(n % 4)}) for n in range(50)]
    path = write(tmp_path / "sequences.tfrecord", records)
    parser = tfw.SequenceParser(*features)
    for num_threads in (1, 2):
        batches = list(parser.parse_file(path, 20, num_threads=num_threads))
        assert [20, 20, 10] == [len(context["n"]) for context, _, _ in batches]
        for chunk, found in zip(chunks(records, 20), batches, strict=True):
            expected = [plain_dict(part) for part in parser.parse(chunk)]
            assert expected == [plain_dict(part) for part in found]


def test_no_files_and_empty_files_give_no_batches(parser, tmp_path):
    assert [] == list(parser.parse_file(iter([])))
    path = write(tmp_path / "empty.tfrecord", [])
    assert [] == list(parser.parse_file([path, path], num_threads=2))


# ---- Records that do not fit -------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_records_before_one_that_does_not_fit_are_delivered(
    parser, tmp_path, batch_size, num_threads
):
    first = write(tmp_path / "first.tfrecord", RECORDS[:10])
    second = write(tmp_path / "second.tfrecord", [*RECORDS[10:15], BAD, *RECORDS[16:30]])
    batches = parser.parse_file([first, second], batch_size, num_threads=num_threads)
    found, error = drain(batches)
    assert chunks(range(15), batch_size) == numbers(found)
    assert (tfw.ParseError, second, 5, "n", "kind") == (
        type(error),
        error.path,
        error.record_index,
        error.feature,
        error.reason,
    )
    assert str(error).startswith(f"{second}: record 5: Key: n.")
    assert [] == list(batches)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_records_that_do_not_fit_can_be_left_out(parser, tmp_path, batch_size, num_threads):
    records = list(RECORDS[:30])
    for n in (0, 7, 8, 29):
        records[n] = BAD
    path = write(tmp_path / "some.tfrecord", records)
    batches = parser.parse_file(path, batch_size, on_parse_error="skip", num_threads=num_threads)
    with pytest.warns(UserWarning, match=r"left out 4 record\(s\).*record 0: Key: n"):
        found = numbers(batches)
    kept = [n for n in range(30) if n not in (0, 7, 8, 29)]
    assert chunks(kept, batch_size) == found
    assert 4 == batches.num_parse_errors
    assert [0, 7, 8, 29] == [error.record_index for error in batches.parse_errors]
    assert {path} == {error.path for error in batches.parse_errors}


def test_only_the_first_errors_are_kept(parser, tmp_path, monkeypatch):
    monkeypatch.setattr(file_chunks, "_MAX_ERRORS_KEPT", 3)
    path = write(tmp_path / "bad.tfrecord", [BAD] * 20 + RECORDS[20:25])
    batches = parser.parse_file(path, on_parse_error="skip")
    with pytest.warns(UserWarning, match="left out 20"):
        assert [[20, 21, 22, 23, 24]] == numbers(batches)
    assert (20, 3) == (batches.num_parse_errors, len(batches.parse_errors))


CHECKED = {
    "s": tfw.SparseFeature("i", "v", tfw.string, 9),
    "r": tfw.RaggedFeature(tfw.int64, "w", [tfw.RaggedFeature.RowLengths("n")]),
    "q": tfw.FixedLenFeature([], tfw.string),
}


def checked(n, indices=2, lengths=(2, 1)):
    strings = [f"{n}", "x"]
    row = {"i": [3, 1][:indices], "v": strings, "w": [n, 2, 3], "n": lengths, "q": f"{n}"}
    return tfw.encode_example(row)


@pytest.mark.parametrize(
    ("bad", "feature", "reason"),
    [
        (checked(0, indices=1), "s", "count"),
        (checked(0, lengths=(1, 1)), "r", "partition"),
        (checked(0, indices=1, lengths=(1, 1)), "s", "count"),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 3, 50])
def test_columns_that_do_not_fit_each_other_are_found_at_their_record(
    tmp_path, bad, feature, reason, batch_size
):
    """This shows only when the records are put together, and still no other record is lost."""
    records = [checked(n) for n in range(20)]
    records[11] = bad
    records[13] = b"\xff"
    path = write(tmp_path / "checked.tfrecord", records)
    parser = tfw.Parser(CHECKED)
    found, error = drain(parser.parse_file(path, batch_size))
    assert [str(n).encode() for n in range(11)] == [q for batch in found for q in batch["q"]]
    assert (11, feature, reason) == (error.record_index, error.feature, error.reason)
    batches = parser.parse_file(path, batch_size, on_parse_error="skip")
    with pytest.warns(UserWarning, match="left out 2"):
        found = list(batches)
    kept = [n for n in range(20) if n not in (11, 13)]
    assert chunks(kept, batch_size) == [[int(q) for q in batch["q"]] for batch in found]
    assert kept == [int(row[0][0]) for batch in found for row in batch["r"].to_list()]
    assert kept == [int(v) for batch in found for v in batch["s"].values[1::2]]
    assert [11, 13] == [error.record_index for error in batches.parse_errors]


def test_steps_that_do_not_fit_each_other_are_found_at_their_record(tmp_path):
    lists = {"r": tfw.RaggedFeature(tfw.string, "v", [tfw.RaggedFeature.RowLengths("n")])}

    def record(n, lengths=(2,)):
        return tfw.encode_sequence_example({}, {"v": [[f"{n}", "x"]] * n, "n": [lengths] * n})

    records = [record(n) for n in range(8)]
    records[5] = record(5, (1,))
    path = write(tmp_path / "steps.tfrecord", records)
    found, error = drain(tfw.SequenceParser(None, lists).parse_file(path, 3))
    steps = [row for _, batch, _ in found for row in batch["r"].to_list()]
    assert [[[[str(n).encode(), b"x"]]] * n for n in range(5)] == steps
    assert (5, "r", "partition") == (error.record_index, error.feature, error.reason)


# ---- Damage ------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_records_before_damage_are_delivered(parser, tmp_path, batch_size, num_threads):
    path = write(tmp_path / "damaged.tfrecord", RECORDS[:30])
    flip_byte(path, sum(len(record) + 16 for record in RECORDS[:17]) + 12)
    batches = parser.parse_file(path, batch_size, num_threads=num_threads)
    found, error = drain(batches)
    assert chunks(range(17), batch_size) == numbers(found)
    assert (tfw.DataLossError, path, 17, "data crc") == (
        type(error),
        error.path,
        error.record_index,
        error.reason,
    )
    assert [] == list(batches)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_damaged_records_can_be_left_out(parser, tmp_path, num_threads):
    path = write(tmp_path / "damaged.tfrecord", RECORDS[:30])
    begin = sum(len(record) + 16 for record in RECORDS[:17])
    flip_byte(path, begin + 12)
    batches = parser.parse_file(path, 10, on_corrupt="skip", num_threads=num_threads)
    with pytest.warns(UserWarning, match=r"left out 1 damaged region"):
        found = numbers(batches)
    assert chunks([n for n in range(30) if n != 17], 10) == found
    assert [(begin, 17)] == [(region.begin, region.record_index) for region in batches.skipped]


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_missing_file_is_told_when_it_is_reached(parser, tmp_path, num_threads):
    path = write(tmp_path / "there.tfrecord", RECORDS[:5])
    batches = parser.parse_file([path, tmp_path / "gone"], 3, num_threads=num_threads)
    found, error = drain(batches)
    assert [[0, 1, 2], [3, 4]] == numbers(found)
    assert (FileNotFoundError, str(tmp_path / "gone")) == (type(error), str(error.filename))


def test_a_remainder_before_an_error_can_be_left_out_too(parser, tmp_path):
    path = write(tmp_path / "bad.tfrecord", [*RECORDS[:5], BAD])
    found, error = drain(parser.parse_file(path, 3, drop_remainder=True))
    assert [[0, 1, 2]] == numbers(found)
    assert isinstance(error, tfw.ParseError)
