"""How the iteration over files ends: closed, dropped, failed, forked; its threads."""

import io
import itertools
import pickle
import sys

import pytest

import tfwire as tfw
from helpers.records.parsed_files import BAD, FEATURES, RECORDS, drain, write, write_all
from helpers.threads import threads_of_tfwire
from tfwire._parsing.file_chunks import FileChunks

pytestmark = pytest.mark.short_strings


@pytest.fixture
def parser():
    return tfw.Parser(FEATURES)


@pytest.fixture
def files(tmp_path):
    return write_all(tmp_path)


def test_threads_end_after_the_last_batch_and_after_an_error(parser, files, tmp_path):
    list(parser.parse_file(files, 10, num_threads=3))
    assert [] == threads_of_tfwire()
    drain(parser.parse_file(write(tmp_path / "bad", [BAD]), num_threads=3))
    assert [] == threads_of_tfwire()


@pytest.mark.parametrize("skip", ["raise", "skip"])
def test_whatever_fails_beside_reading_is_raised(parser, files, monkeypatch, skip):
    def fail(*arguments):
        raise MemoryError("no columns")

    monkeypatch.setattr(FileChunks, "_outcome", fail)
    batches = parser.parse_file(files, 50, num_threads=2, on_parse_error=skip)
    _, error = drain(batches)
    assert "no columns" == str(error)
    assert [] == list(batches)
    assert [] == threads_of_tfwire()


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_generator_of_paths_is_asked_when_the_file_before_was_read(tmp_path, num_threads):
    parser = tfw.Parser({"n": FEATURES["n"]})
    taken = []

    def paths():
        for n in itertools.count():
            taken.append(n)
            yield io.BytesIO((tmp_path / "one").read_bytes())

    write(tmp_path / "one", RECORDS[:1])
    with parser.parse_file(paths(), 1, num_threads=num_threads) as batches:
        for number in range(4):
            next(batches)
            assert len(taken) <= number + 2


def test_iterators_refuse_to_pickle(parser, files):
    with (
        parser.parse_file(files) as batches,
        pytest.raises(TypeError, match="pickle the parser"),
    ):
        pickle.dumps(batches)


def test_few_frames_lie_between_next_and_c(tmp_path):
    """Three functions of tfwire between an iterator's __next__ and the core's parsing."""
    records = [{"n": i, "name": "a" * (i % 3)} for i in range(500)]
    tfw.write_records(tmp_path / "records", records)
    spec = {"n": tfw.FixedLenFeature([], tfw.int64), "name": tfw.VarLenFeature(tfw.string)}
    depths = {}

    def profile(frame, event, function):
        if event == "c_call" and function.__name__ == "tfw_pipeline_next":
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
    assert {"tfw_pipeline_next": 3} == depths
