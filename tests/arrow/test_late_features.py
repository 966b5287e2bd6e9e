"""Tables of a sample: what later records have and lack is null, named by a warning, or an error."""

import gc
import random
import threading
import warnings

import pytest

import tfwire as tfw
from helpers.arrow.structs import StreamError, rows_of_batch, rows_of_stream
from tfwire._interface.partitions import open_no_files, plan_partitions, read_partition
from tfwire.arrow import _table_types, open_reader

FIRST = {"id": 1, "text": "é", "pair": [1.0, 2.0], "tags": ["a"]}


@pytest.fixture(autouse=True)
def small_samples(monkeypatch):
    """A sample is the first records of each file: of one that is not compressed, about 16 KiB."""
    for name in ("_SMALL", "_LEAST_BYTES", "_MOST_BYTES"):
        monkeypatch.setattr(_table_types, name, 0)


def written(path, late, before=2000, compression=None):
    first = [{**FIRST, "tags": ["a", "b"][: i % 3]} for i in range(before)]
    tfw.write_records(path, [tfw.encode_example(row) for row in [*first, *late]], compression)
    return path


def warned(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
        gc.collect()
    return result, [str(w.message) for w in found if w.category is tfw.TfwireWarning]


def of_no_values(key):
    kinds = {"id": "int64_list", "text": "bytes_list", "pair": "float_list"}
    message = tfw.train.Example()
    getattr(message.features.feature[key], kinds[key]).SetInParent()
    return message


def batches_of(reader):
    return [row for batch in reader for row in rows_of_batch(batch)]


def test_what_a_later_record_lacks_is_null(tmp_path):
    late = [{"text": "x"}, {"id": 2, "text": [], "pair": []}, {"id": [], "pair": [], "tags": []}]
    reader = open_reader(written(tmp_path / "data", late))
    rows = rows_of_stream(reader)[2000:]
    assert [{"id", "text", "pair", "tags"}] * 3 == list(map(set, rows))
    assert [None, 2, None] == [row["id"] for row in rows]
    assert ["x", None, None] == [row["text"] for row in rows]
    assert [None] * 3 == [row["pair"] for row in rows]
    assert rows == batches_of(reader)[2000:]
    # A list of a kind that holds nothing is null, too.
    empty = [of_no_values(key).SerializeToString() for key in ("id", "text", "pair")]
    path = written(tmp_path / "empty", [])
    tfw.write_records(tmp_path / "more", [*tfw.read_records(path), *empty])
    assert [None] * 3 == [
        row["id"] for row in rows_of_stream(open_reader(tmp_path / "more"))[2000:]
    ]


def test_what_was_given_stays_required(tmp_path):
    path = written(tmp_path / "data", [{"text": "x"}])
    with pytest.raises(tfw.ParseError, match="is required but could not be found"):
        batches_of(open_reader(path, dict(open_reader(path).features)))


@pytest.mark.parametrize(
    ("late", "reason"),
    [({"id": [1, 2]}, "count"), ({"id": 1.5}, "kind"), ({"pair": [1.0]}, "count")],
)
def test_what_does_not_fit_is_an_error_with_advice(tmp_path, late, reason):
    reader = open_reader(written(tmp_path / "data", [{**FIRST, **late}]))
    advice = (
        r"record 2000: Key: .*features=infer_schema\(paths, num_records=None\) is what fits all"
    )
    with pytest.raises(tfw.ParseError, match=advice) as caught:
        batches_of(reader)
    assert reason == caught.value.reason
    with pytest.raises(StreamError, match=advice):
        rows_of_stream(reader)
    with pytest.raises(ValueError, match=r"'late' is not a feature of .*infer_schema"):
        open_reader(reader.paths, columns=["late"])


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize("num_threads", [1, 2, 8])
@pytest.mark.parametrize("seed", range(2))
def test_late_features_are_warned_of_wherever_they_are(tmp_path, seed, num_threads, compression):
    rng = random.Random(seed)
    names = [f"late{i}" * rng.randint(1, 20) for i in range(rng.choice([1, 5, 16, 20]))]
    late, first = [], {}
    for i in range(20000):
        row = dict(FIRST) if rng.random() < 0.9 else {"id": 3}
        if rng.random() < 0.001:
            name = rng.choice(names)
            row[name] = rng.choice([1, "x", [1.5] * 3, ["y" * 300]])
            first.setdefault(name, 2000 + i)
        late.append(dict(rng.sample(sorted(row.items()), len(row))))
    path = written(tmp_path / "data", late, compression=compression)
    _, found = warned(lambda: rows_of_stream(open_reader(path, num_threads=num_threads)))
    expected = sorted(first.items(), key=lambda item: item[1])
    (text,), ((name, record), *others) = found, expected
    assert f"data: record {record} is the first with the feature '{name[:20]}" in text
    assert text.count("features=infer_schema(paths, num_records=None)") == 1
    assert bool(others) == (", nor for others after it: '" in text)
    assert all(f"'{name[:20]}" in text for name, _ in others[:3])
    assert (len(others) > 3) == (f"', {min(15, len(others)) - 3} other" in text)
    assert (len(expected) > 16) == (" and more. The columns" in text)
    reader = open_reader(path, num_threads=num_threads)
    assert found == warned(lambda: [len(batch) for batch in reader])[1]
    # What was not asked for is not missed.
    assert [] == warned(lambda: batches_of(open_reader(path, columns=["id"])))[1]


def test_workers_warn_of_what_the_driver_has_not_seen(tmp_path):
    path = written(tmp_path / "data", [{**FIRST, "late": 1}])
    features = open_reader(path).features
    reader = open_no_files(features)
    (partition,) = plan_partitions(path, partition_bytes=1 << 30)
    _, found = warned(lambda: list(read_partition(partition, reader)))
    assert 1 == len(found)
    del features["tags"]  # as somebody wants it
    assert [] == warned(lambda: batches_of(open_reader(path, features)))[1]


def test_feature_lists_and_contexts_that_come_late(tmp_path):
    plain = [tfw.encode_sequence_example({"n": 1}, {"a": [[1]]})] * 3000
    late = tfw.encode_sequence_example({"n": 1, "m": "x"}, {"b": [[1.5]]})
    tfw.write_records(tmp_path / "lists", [*plain, late])
    rows, found = warned(lambda: rows_of_stream(open_reader(tmp_path / "lists")))
    assert {"n": 1, "a": None} == rows[3000]
    assert ["the feature 'm'; there is no column for it, nor for others after it: 'b'"] == [
        text.split("first with ")[1].split(".")[0] for text in found
    ]
    tfw.write_records(tmp_path / "examples", [*[{"n": 1}] * 3000, late])
    _, found = warned(lambda: rows_of_stream(open_reader(tmp_path / "examples")))
    assert [1] == [text.count("other") for text in found]
    tfw.write_records(
        tmp_path / "no-context", [*[tfw.encode_sequence_example({}, {"a": [[1]]})] * 3000, late]
    )
    _, found = warned(lambda: rows_of_stream(open_reader(tmp_path / "no-context")))
    assert [True] == [all(name in text for name in ("'n'", "'m'", "'b'")) for text in found]


def test_a_warning_that_is_an_error_is_raised(tmp_path):
    path = written(tmp_path / "data", [{"late": 1}])
    with warnings.catch_warnings():
        warnings.simplefilter("error", tfw.TfwireWarning)
        with pytest.raises(tfw.TfwireWarning, match="'late'"):
            batches_of(open_reader(path))


def test_the_main_thread_is_not_broken_by_streams_of_others(tmp_path, monkeypatch):
    """It warns of what they have read; where that is an error, it is printed."""
    path, printed = written(tmp_path / "data", [{"late": 1}]), []
    monkeypatch.setattr("sys.unraisablehook", lambda found: printed.append(found.exc_value))
    with warnings.catch_warnings():
        warnings.simplefilter("error", tfw.TfwireWarning)
        thread = threading.Thread(target=rows_of_stream, args=[open_reader(path)])
        thread.start()
        thread.join()
        for _ in range(1000):
            ""
    assert ["TfwireWarning"] == [type(error).__name__ for error in printed]
    assert "'late'" in str(printed[0])
