"""Files to batches: exact across windows, files and threads; nothing before an error is lost."""

import gc
import io
import itertools
import os
import pickle
import sys
import threading
import time

import numpy as np
import pytest

import tfwire as tfw
from cases.results import plain_dict
from tfwire._parsing import builders as builder

FEATURES = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "s": tfw.FixedLenFeature([], tfw.string),
    "v": tfw.VarLenFeature(tfw.int64),
    "x": tfw.FixedLenFeature([2], tfw.float32, default_value=[0, 0]),
}


def row(n):
    """Records of very different sizes, so that windows end anywhere."""
    values = list(range(n % 7)) + ([0] * 50_000 if n % 40 == 39 else [])
    return {"n": n, "s": b"s" * (n % 5), "v": values} | ({"x": [n, 0.5]} if n % 3 else {})


RECORDS = tfw.encode_examples([row(n) for n in range(200)])

BAD = tfw.encode_example({"n": 0.5, "s": "", "v": [1]})


@pytest.fixture
def parser():
    return tfw.Parser(FEATURES)


@pytest.fixture
def files(tmp_path):
    """The records in files of different sizes and compressions, one of them empty."""
    paths = []
    for i, (begin, end, options) in enumerate(
        [(0, 3, None), (3, 3, None), (3, 120, "GZIP"), (120, 199, None), (199, 200, "ZLIB")]
    ):
        paths.append(tmp_path / f"{i}.tfrecord")
        tfw.write_records(paths[-1], RECORDS[begin:end], options)
    return paths


def write(path, records):
    tfw.write_records(path, records)
    return path


def numbers(batches):
    return [batch["n"].tolist() for batch in batches]


def chunks(values, size):
    return [list(values[i : i + size]) for i in range(0, len(values), size)]


def drain(batches):
    """The batches before an error, and the error."""
    found = []
    try:
        for batch in batches:
            found.append(batch)
    except Exception as error:
        return found, error
    raise AssertionError("no error")


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


def test_strings_may_be_columns(files):
    parser = tfw.Parser(FEATURES, bytes_as="column")
    batches = list(parser.parse_file(files, 90))
    assert all(isinstance(batch["s"], tfw.BytesColumn) for batch in batches)
    assert [b"s" * (n % 5) for n in range(200)] == [s for b in batches for s in b["s"].to_list()]


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
        held = batch["n"].base
        assert held is None or held.nbytes <= 2.5 * batch["n"].nbytes


def test_batches_are_writable_and_outlive_everything(files):
    batches = list(tfw.Parser(FEATURES).parse_file(files, 20))
    before = [plain_dict(batch) for batch in batches]
    gc.collect()
    batches[0]["n"][:] = -1
    batches[0]["v"].values[:] = -1
    assert before[1:] == [plain_dict(batch) for batch in batches[1:]]


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
    assert [] == list(parser.parse_file([]))
    path = write(tmp_path / "empty.tfrecord", [])
    assert [] == list(parser.parse_file([path, path], num_threads=2))


@pytest.mark.parametrize(
    "arguments",
    [
        {"batch_size": 0},
        {"num_threads": 0},
        {"on_parse_error": "ignore"},
        {"on_corrupt": "ignore"},
        {"compression_type": "LZ4"},
    ],
)
def test_wrong_arguments_are_refused_at_once(parser, arguments):
    with pytest.raises(ValueError, match=r"must be|compression"):
        parser.parse_file("no such file", **arguments)


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
    monkeypatch.setattr(builder, "_MAX_ERRORS_KEPT", 3)
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
    content = bytearray(path.read_bytes())
    at = sum(len(record) + 16 for record in RECORDS[:17]) + 12
    content[at] ^= 1
    path.write_bytes(content)
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
    content = bytearray(path.read_bytes())
    begin = sum(len(record) + 16 for record in RECORDS[:17])
    content[begin + 12] ^= 1
    path.write_bytes(content)
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


# ---- Ends --------------------------------------------------------------------------------------


def threads_of_tfwire():
    return [thread for thread in threading.enumerate() if thread.name.startswith("tfwire")]


def wait_for(condition):
    for _ in range(500):
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("num_threads", [1, 2])
def test_closing_ends_the_iteration(parser, files, num_threads):
    with parser.parse_file(files, 10, num_threads=num_threads) as batches:
        assert list(range(10)) == next(batches)["n"].tolist()
    assert [] == list(batches)
    batches.close()
    assert [] == threads_of_tfwire()


def test_threads_end_with_an_iterator_that_is_dropped(parser, files):
    batches = parser.parse_file(files, 10, num_threads=3)
    next(batches)
    del batches
    gc.collect()
    assert wait_for(lambda: not threads_of_tfwire())


def test_threads_end_after_the_last_batch_and_after_an_error(parser, files, tmp_path):
    list(parser.parse_file(files, 10, num_threads=3))
    assert [] == threads_of_tfwire()
    drain(parser.parse_file(write(tmp_path / "bad", [BAD]), num_threads=3))
    assert [] == threads_of_tfwire()


@pytest.mark.parametrize("skip", ["raise", "skip"])
def test_whatever_fails_in_a_thread_is_raised(parser, files, monkeypatch, skip):
    def fail(*arguments):
        raise MemoryError("no columns")

    monkeypatch.setattr(builder.Builder, "begin", fail)
    batches = parser.parse_file(files, 50, num_threads=2, on_parse_error=skip)
    _, error = drain(batches)
    assert "no columns" == str(error)
    assert [] == list(batches)
    assert [] == threads_of_tfwire()


def test_threads_read_ahead_only_so_far(tmp_path):
    parser = tfw.Parser({"n": FEATURES["n"]})
    taken = []

    def paths():
        for n in itertools.count():
            taken.append(n)
            yield io.BytesIO((tmp_path / "one").read_bytes())

    write(tmp_path / "one", RECORDS[:1])
    with parser.parse_file(paths(), 1, num_threads=2) as batches:
        next(batches)
        assert wait_for(lambda: len(taken) >= 4)
        time.sleep(0.05)
        assert len(taken) <= 5


def test_threads_share_an_iterator_and_every_record_is_given_once(parser, tmp_path):
    waiting, go_on = threading.Event(), threading.Event()

    class Slow(io.BytesIO):
        def readinto(self, buffer):
            waiting.set()
            go_on.wait(10)
            return super().readinto(buffer)

    content = write(tmp_path / "one", RECORDS[:5]).read_bytes()
    batches = parser.parse_file(Slow(content), 2, compression_type=None)
    found = []
    threads = [threading.Thread(target=lambda: found.extend(batches)) for _ in range(2)]
    threads[0].start()
    assert waiting.wait(10)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert [[0, 1], [2, 3], [4]] == sorted(numbers(found))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_fork_in_mid_iteration_is_safe(parser, files, num_threads):
    """Both sides go on by themselves; threads stay with the parent, and the child is told."""
    batches = parser.parse_file(files[:1] + files[3:4], 20, num_threads=num_threads)
    assert [0, 1, 2, *range(120, 137)] == next(batches)["n"].tolist()
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = next(batches)["n"].tolist() == list(range(137, 157))
        except RuntimeError as error:
            good = num_threads > 1 and "fork" in str(error)
        finally:  # whatever happens: the child must not go on with the tests
            os._exit(0 if good else 1)
    assert list(range(137, 157)) == next(batches)["n"].tolist()
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    batches.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_a_thread_reads_is_reported(parser, tmp_path):
    """The child finds the reader in use, for ever; it must not wait for it or complain of it."""
    waiting, go_on = threading.Event(), threading.Event()

    class Slow(io.BytesIO):
        def readinto(self, buffer):
            waiting.set()
            go_on.wait(10)
            return super().readinto(buffer)

    content = write(tmp_path / "one", RECORDS[:5]).read_bytes()
    batches = parser.parse_file(Slow(content), compression_type=None, num_threads=2)
    assert waiting.wait(10)
    child = os.fork()
    if child == 0:
        told = False
        try:
            next(batches)
        except RuntimeError as error:
            told = "fork" in str(error)
        finally:
            os._exit(0 if told else 1)
    go_on.set()
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert [[0, 1, 2, 3, 4]] == numbers(batches)


def test_iterators_refuse_to_pickle(parser, files):
    with (
        parser.parse_file(files) as batches,
        pytest.raises(TypeError, match="pickle the parser"),
    ):
        pickle.dumps(batches)


@pytest.mark.parametrize("name", ["batch_size", "num_threads"])
@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (None, TypeError), (2.0, TypeError)])
def test_a_wrong_number_is_refused_by_name(parser, files, name, value, error):
    with pytest.raises(error, match=name):
        parser.parse_file(files, **{name: value})


def test_few_frames_lie_between_next_and_c(tmp_path):
    """Four functions of tfwire between an iterator's __next__ and the core's parsing."""
    records = [{"n": i, "name": "a" * (i % 3)} for i in range(500)]
    tfw.write_records(tmp_path / "records", records)
    spec = {"n": tfw.FixedLenFeature([], tfw.int64), "name": tfw.VarLenFeature(tfw.string)}
    depths = {}

    def profile(frame, event, function):
        if event == "c_call" and function.__name__ in ("tfw_read_unit", "tfw_columns_finish"):
            depth = 0
            while frame.f_code.co_name != "__next__":
                depth, frame = depth + 1, frame.f_back
            depths[function.__name__] = depth

    with tfw.Parser(spec).parse_file(tmp_path / "records", 100) as batches:
        sys.setprofile(profile)
        try:
            next(batches)
        finally:
            sys.setprofile(None)
    assert {"tfw_read_unit": 4} == depths
