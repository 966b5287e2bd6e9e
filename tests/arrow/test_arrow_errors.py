"""Files that are damaged or do not fit, as Arrow streams: what arrives, and what the error says."""

import gzip
import operator

import pytest

import tfwire as tfw
from helpers.arrow.structs import (
    EXPECTED,
    FEATURES,
    FLOAT,
    INT64,
    ROWS,
    SEQUENCE,
    STRING,
    Stream,
    damage,
    rows_of_batch,
    written,
)
from tfwire._interface.partitions import open_no_files, read_inputs
from tfwire.arrow import open_reader


def outcome(iterator):
    """The rows that arrive, and the message of the error after them."""
    rows = []
    try:
        for batch in iterator:
            rows += batch
    except Exception as error:
        return rows, error
    return rows, None


def both(reader, said=operator.eq):
    """What a stream and what iterating gives: the same rows, and the same message, or what of it
    is said to be the same."""
    stream = Stream(reader)
    rows, error = outcome(stream)
    again, repeated = outcome(stream)
    assert not again
    assert str(repeated) == str(error)
    stream.close()
    other_rows, other = outcome(rows_of_batch(batch) for batch in reader)
    assert rows == other_rows
    assert said(str(other), str(error))
    return rows, error, other


def test_damage_in_mid_stream(tmp_path):
    path = written(tmp_path, [{"n": i} for i in range(20)])
    damage(path, 7)
    reader = open_reader(path, {"n": tfw.FixedLenFeature([], INT64)}, batch_size=5)
    rows, error, other = both(reader)
    assert [row["n"] for row in rows] == list(range(7))
    assert isinstance(other, tfw.DataLossError)
    assert f"{path}: record 7 at byte" in str(error)


def test_a_cut_file(tmp_path):
    path = written(tmp_path, [{"n": i} for i in range(3)])
    data = (tmp_path / "data").read_bytes()
    (tmp_path / "data").write_bytes(data[:-3])
    rows, _, _ = both(open_reader(path, {"n": tfw.FixedLenFeature([], INT64)}))
    assert len(rows) == 2


def test_the_shape_of_a_tensor(tmp_path):
    path = written(tmp_path, [{"a": [1, 2, 3, 4, 5]}])
    reader = open_reader(path, {"a": tfw.FixedLenFeature([2, 3], INT64)}, tensors=True)
    rows, error, _ = both(reader)
    assert not rows
    assert str(error).endswith("Values size: 5 but output shape: [2, 3]")


MISFITS = [
    (tfw.FixedLenFeature([], FLOAT), {"a": 1}, {"a": 0.5}),
    (tfw.FixedLenFeature([2], INT64), {"a": [1]}, {"a": [1, 2]}),
    (tfw.VarLenFeature(STRING), {"a": [1]}, {"a": ["x"]}),
    (tfw.FixedLenSequenceFeature([2], INT64, True), {"a": [1, 2, 3]}, {"a": [1, 2]}),
    (
        tfw.RaggedFeature(INT64, "a", [tfw.RaggedFeature.RowLengths("p")]),
        {"a": [1, 2], "p": [3]},
        {"a": [1, 2], "p": [2]},
    ),
    (
        tfw.RaggedFeature(INT64, "a", [tfw.RaggedFeature.RowSplits("p")]),
        {"a": [1, 2], "p": [1, 2]},
        {"a": [1, 2], "p": [0, 2]},
    ),
    (
        tfw.RaggedFeature(INT64, "a", [tfw.RaggedFeature.RowLimits("p")]),
        {"a": [1, 2], "p": [2, 1]},
        {"a": [1, 2], "p": [1, 2]},
    ),
    (
        tfw.RaggedFeature(INT64, "a", [tfw.RaggedFeature.ValueRowIds("p")]),
        {"a": [1, 2], "p": [1, 0]},
        {"a": [1, 2], "p": [0, 1]},
    ),
]


@pytest.mark.parametrize(("feature", "bad", "good"), MISFITS)
def test_a_record_that_does_not_fit(tmp_path, feature, bad, good):
    """The stream says what the parser says; the records before it arrive."""
    path = written(tmp_path, [good, good, good, bad, good])
    rows, error, other = both(open_reader(path, {"a": feature}, batch_size=2))
    assert len(rows) == 3
    assert isinstance(other, tfw.ParseError)
    assert f"{path}: record 3: " in str(error)


def test_a_missing_feature(tmp_path):
    path = written(tmp_path, [{"a": 1}, {"b": 2}])
    # The other says the keys that the record has, too.
    reader = open_reader(path, {"a": tfw.FixedLenFeature([], INT64)})
    rows, error, _ = both(reader, str.startswith)
    assert len(rows) == 1
    assert "Feature: a (data type: int64) is required but could not be found." in str(error)


def test_indices_that_do_not_fit(tmp_path):
    features = {"a": tfw.SparseFeature("i", "v", FLOAT, size=10)}
    good, bad = {"i": [1], "v": [0.5]}, {"i": [1, 2], "v": [0.5]}
    reader = open_reader(written(tmp_path, [good, bad]), features)
    rows, error, other = both(reader, lambda *_: True)
    assert len(rows) == 1
    assert "record 1: Key: a.  " in str(error)
    assert isinstance(other, tfw.ParseError)


def test_a_misfit_in_feature_lists(tmp_path):
    good = tfw.encode_sequence_example({"id": 1}, {"words": [["a"]]})
    bad = tfw.encode_sequence_example({"id": 1}, {"words": [[1]]})
    path = written(tmp_path, [good, bad])
    rows, error, _ = both(open_reader(path, SEQUENCE))
    assert len(rows) == 1
    assert "Feature list: words, step 0" in str(error)


def test_strings_that_are_not_utf8(tmp_path):
    features = {"a": tfw.VarLenFeature(STRING), "b": tfw.FixedLenFeature([2], STRING)}
    good = {"a": ["é", "€", "😀"], "b": ["", "x" * 20]}
    for wrong in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"abcdefgh\xe2\x82"):
        for bad in ({"a": ["ok", wrong], "b": ["", ""]}, {"a": [], "b": ["x", wrong]}):
            path = written(tmp_path, [good, good, bad, good])
            reader = open_reader(path, features, binary_as="large_string")
            rows, error, other = both(reader)
            assert rows == [good] * 2
            assert f"{path}: record 2: Key: " in str(error)
            assert "not UTF-8" in str(error)
            assert other.reason == "utf-8"


@pytest.mark.parametrize("key", ["é" * 61, "x" + "€" * 4000, "a" * 60, "b" * 61, "\x9b" * 5000])
def test_long_keys_are_shortened(tmp_path, key):
    """The message still says what was expected and found, as that of the parser."""
    path = written(tmp_path, [{key: 1}])
    reader = open_reader(path, {key: tfw.FixedLenFeature([], FLOAT)})
    _, error, _ = both(reader, operator.eq if key.isprintable() else lambda *_: True)
    assert "Data type: int64 but expected type: float32" in str(error)
    if key.isprintable():
        assert len(str(error)) < len(path) + 200
    assert "\x9b" not in str(error)


def test_errors_of_what_is_read_ahead(tmp_path):
    """Compressed files are read when the stream is opened; what arrives is the same."""
    written(tmp_path, ROWS)
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress((tmp_path / "data").read_bytes())[:-12])
    rows, _, _ = both(open_reader(str(cut), FEATURES, batch_size=1))
    assert len(rows) < 4
    path = written(tmp_path, [*ROWS, {"n": 1}], options="ZLIB")
    rows, _, _ = both(open_reader(path, FEATURES))
    assert rows == EXPECTED


def test_a_file_that_is_missing(tmp_path):
    path = str(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        open_reader(path, FEATURES).__arrow_c_stream__()
    with pytest.raises(FileNotFoundError):
        open_reader(path)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_a_file_that_goes_while_it_is_read(tmp_path, num_threads):
    paths = [written(tmp_path, ROWS, name) for name in ("a", "b")]
    stream = Stream(open_reader(paths, FEATURES, num_threads=num_threads))
    (tmp_path / "b").unlink()
    rows, error = outcome(stream)
    stream.close()
    assert rows == EXPECTED
    assert str(error) == f"{paths[1]}: No such file or directory"


def test_other_files_are_read_with_the_compression_that_was_given(tmp_path):
    """As tfwire.huggingface and tfwire.beam read them."""
    tfw.write_records(tmp_path / "a.gz", [{"x": 1}] * 3, "GZIP")
    features = {"x": tfw.FixedLenFeature([], tfw.int64)}
    for compression_type in ("GZIP", "auto"):
        reader = open_no_files(features, compression_type=compression_type)
        assert [len(batch) for batch in read_inputs(reader, [tmp_path / "a.gz"])] == [3]
    with pytest.raises(tfw.DataLossError):
        list(read_inputs(open_no_files(features, compression_type=""), [tmp_path / "a.gz"]))
