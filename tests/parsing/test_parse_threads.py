"""Batches, errors and what is left out do not depend on the number of threads or on sizes."""

import gzip
import os
import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from cases.results import plain_dict
from helpers.reference import file_of
from tfwire._parsing import file_chunks

pytestmark = pytest.mark.short_strings

FEATURES = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "s": tfw.FixedLenFeature([], tfw.string),
    "v": tfw.VarLenFeature(tfw.float32),
    "p": tfw.FixedLenSequenceFeature([], tfw.string, allow_missing=True),
    "r": tfw.RaggedFeature(tfw.int64, "w", [tfw.RaggedFeature.RowLengths("m")]),
}
BAD = tfw.encode_example({"n": b"not a number"})


def record(n):
    values = list(range(n % 5))
    return tfw.encode_example(
        {
            "n": n,
            "s": b"s" * (n % 300),
            "v": np.float32(values),
            "p": [bytes([65 + n % 26])] * (n % 3),
            "w": values,
            "m": [1] * (n % 5),
        }
    )


@st.composite
def files(draw):
    """Some files: records, a few of which do not fit; perhaps damaged, perhaps compressed."""
    contents, number = [], 0
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.sampled_from([0, 1, 7, 40, 150]))
        records = [record(n) for n in range(number, number + count)]
        number += count
        if count and draw(st.integers(0, 3)) == 0:
            records[draw(st.integers(0, count - 1))] = BAD
        content = bytearray(file_of(records))
        if content and draw(st.integers(0, 2)) == 0:
            content[draw(st.integers(0, len(content) - 1))] ^= 1 << draw(st.integers(0, 7))
        if content and draw(st.integers(0, 3)) == 0:
            del content[draw(st.integers(0, len(content) - 1)) :]
        compressed = draw(st.booleans())
        contents.append((bytes(content), compressed))
    return contents


def everything(paths, batch_size, num_threads, **options):
    """All that an iteration shows: batches, the error, what was left out."""
    parser = tfw.Parser(FEATURES)
    batches = parser.parse_file(paths, batch_size, num_threads=num_threads, **options)
    found, error = [], None
    try:
        found.extend(plain_dict(batch) for batch in batches)
    except tfw.Error as caught:
        error = type(caught), str(caught)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("tfwire")]
    left_out = [str(one) for one in batches.parse_errors]
    # At a ParseError, one thread may have looked at more of the file than several.
    skipped = None if error and issubclass(error[0], tfw.ParseError) else list(batches.skipped)
    return found, error, skipped, left_out


@pytest.mark.filterwarnings("ignore:.*left out")
@given(
    contents=files(),
    batch_size=st.sampled_from([1, 3, 16, 64, 1000]),
    on_corrupt=st.sampled_from(["raise", "tail", "stop", "skip"]),
    on_parse_error=st.sampled_from(["raise", "skip"]),
    drop_remainder=st.booleans(),
    verify=st.booleans(),
    range_bytes=st.sampled_from([100, 700, 3000, 1 << 14, 0]),
    num_threads=st.sampled_from([1, 2, 3, 8]),
)
def test_nothing_depends_on_the_number_of_threads(
    tmp_path_factory, contents, batch_size, range_bytes, num_threads, **options
):
    folder = tmp_path_factory.mktemp("threads")
    paths = []
    for i, (content, compressed) in enumerate(contents):
        paths.append(folder / f"{i}.tfrecord")
        paths[-1].write_bytes(gzip.compress(content, 1) if compressed else content)
    options["compression_type"] = "auto"
    expected = everything(paths, batch_size, 1, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_chunks, "_PARSED_BYTES", range_bytes)
        assert expected == everything(paths, batch_size, num_threads, **options)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_batches_of_a_pipe_do_not_wait_for_others(num_threads):
    """Of regular files several are made in one go; the writer of a pipe may be slow."""
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb", 0) as source, os.fdopen(writable, "wb", 0) as sink:
        sink.write(file_of([record(n) for n in range(12)]))
        batches = tfw.Parser(FEATURES).parse_file(source, 4, num_threads=num_threads)
        for first in (0, 4, 8):
            assert list(range(first, first + 4)) == next(batches)["n"].tolist()
        sink.close()
        assert [] == list(batches)


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_what_the_pipeline_does_not_read_is_left_to_the_reader(tmp_path, monkeypatch, num_threads):
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    tfw.write_records(paths[0], [record(n) for n in range(100)])
    tfw.write_records(paths[1], [*map(record, range(30)), BAD, *map(record, range(20))])
    for on_parse_error in ("raise", "skip"):
        options = {"on_parse_error": on_parse_error, "num_threads": num_threads}
        expected = everything(paths, 16, **options)
        with monkeypatch.context() as patch:
            patch.setattr(file_chunks.FileChunks, "_native", lambda *_: None)
            assert expected == everything(paths, 16, **options)


def test_records_longer_than_what_is_read_at_once(tmp_path):
    path = tmp_path / "long.tfrecord"
    records = [tfw.encode_example({"s": bytes([n]) * (n << 20)}) for n in (1, 0, 5, 2)]
    tfw.write_records(path, records)
    parser = tfw.Parser({"s": tfw.FixedLenFeature([], tfw.string)})
    for batch_size in (1, 3):
        batches = parser.parse_file([path, path], batch_size, num_threads=2)
        strings = [string for batch in batches for string in batch["s"]]
        assert [bytes([n]) * (n << 20) for n in (1, 0, 5, 2)] * 2 == strings
