"""How the iteration over files ends: closed, dropped, failed, forked; its threads."""

import gc
import io
import itertools
import os
import pickle
import sys
import threading
import time

import pytest

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.records.parsed_files import BAD, FEATURES, RECORDS, drain, numbers, write, write_all
from helpers.threads import threads_of_tfwire, wait_for
from tfwire._parsing import builders as builder

pytestmark = pytest.mark.short_strings


@pytest.fixture
def parser():
    return tfw.Parser(FEATURES)


@pytest.fixture
def files(tmp_path):
    return write_all(tmp_path)


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


@FORKS_BESIDE_THREADS
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


@FORKS_BESIDE_THREADS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_a_thread_reads_is_reported(parser, tmp_path):
    """The child finds the reader in use, forever; it must not wait for it or complain of it."""
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
