"""Files to batches to parse, in C: its states are places in the files."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw
from helpers.data.files import SPEC, NumberedFiles
from helpers.data.named_pipelines import goes_on_everywhere
from helpers.products import diagonals
from helpers.reading import flip_byte
from tfwire import TFRecordDataset
from tfwire._records.reading.pipeline import NativePipeline

SIZES = [34, 0, 9, 7, 1]
TOTAL = sum(SIZES)


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    return NumberedFiles(tmp_path_factory.mktemp("files"), SIZES)


@pytest.fixture(scope="module")
def files(numbered):
    return numbered.plain


@pytest.fixture(scope="module")
def sources(numbered):
    """Paths and options of a dataset, by kind."""
    plain, gzip = numbered.plain, numbered.gzip
    return {
        "plain": (plain, {}),
        "gzip": (gzip, {"compression_type": "GZIP"}),
        "mixed": ([plain[0], gzip[2], plain[3]], {"compression_type": "auto"}),
        "damaged": (numbered.damaged, {"on_corrupt": "skip"}),
        "shuffled": (plain, {"shuffle_files": True, "seed": 4}),
        "no files": (iter(()), {}),
    }


def batches_of(source, size, num_threads, drop_remainder=False):
    paths, options = source
    dataset = TFRecordDataset(paths, **options).batch(size, drop_remainder)
    return dataset.parse_example(SPEC, num_threads=num_threads)


def texts(elements):
    return [element["n"].tolist() for element in elements]


@pytest.fixture
def small_units(monkeypatch):
    """Units of a few batches, so that small files have many."""
    monkeypatch.setattr("tfwire._parsing.file_chunks._PARSED_BYTES", 400)


@pytest.mark.filterwarnings("ignore:.*left out:tfwire.TfwireWarning")
@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize(
    ("name", "batches", "threads"),
    diagonals(
        0,
        3,
        ["plain", "gzip", "mixed", "damaged", "shuffled", "no files"],
        [(4, False), (7, True), (200, False)],
        [(1, 1), (1, 3), (2, 1)],
    ),
)
def test_every_place_is_gone_on_from(sources, name, batches, threads):
    """With any other number of threads, also twice."""
    source, (size, drop_remainder), (first, second) = sources[name], batches, threads
    goes_on_everywhere(
        lambda: batches_of(source, size, first, drop_remainder),
        lambda: batches_of(source, size, second, drop_remainder),
    )


@pytest.mark.parametrize("num_threads", [1, 2])
def test_what_was_given_is_not_read_again(tmp_path, monkeypatch, num_threads):
    """But for a chunk of some megabytes."""
    count, path = 200_000, tmp_path / "a"
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns({"n": np.arange(count)})
    make = TFRecordDataset(path).batch(500).parse_example
    elements = iter(make(SPEC, num_threads=num_threads))
    given = [next(elements)["n"] for _ in range(300)]
    state = elements.state_dict()
    elements.close()
    started = []
    begin = NativePipeline.__init__

    def noted(self, paths, options, start):
        started.append(start.position.record_index)
        begin(self, paths, options, start)

    monkeypatch.setattr(NativePipeline, "__init__", noted)
    resumed = iter(make(SPEC, num_threads=num_threads))
    resumed.load_state_dict(state)
    assert np.concatenate([*given, *(batch["n"] for batch in resumed)]).tolist() == [*range(count)]
    assert 300 * 500 - (4 << 20) // 29 < started[-1] <= 300 * 500


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize("num_threads", [1, 2])
def test_states_before_an_error(files, tmp_path, num_threads):
    """Each goes on there, up to the same error."""
    (tmp_path / "a").write_bytes(b"".join(Path(path).read_bytes() for path in files))
    flip_byte(tmp_path / "a", 30 * 40 + 14)
    source = (tmp_path / "a", {})
    elements, states, given = iter(batches_of(source, 4, num_threads)), [], []
    for _ in range(10):
        states.append(elements.state_dict())
        given += texts([next(elements)])
    with pytest.raises(tfw.DataLossError, match="record 40"):
        given.extend(map(np.ndarray.tolist, (batch["n"] for batch in elements)))
    assert list(range(40)) == list(itertools.chain(*given))
    for place, state in enumerate(states):
        resumed = iter(batches_of(source, 4, num_threads))
        resumed.load_state_dict(state)
        rest = []
        with pytest.raises(tfw.DataLossError, match="record 40"):
            rest.extend(texts([batch]) for batch in resumed)
        assert [batch for (batch,) in rest] == given[place:]


# ---- Records and vectors of records, however they were made --------------------------------------
def example(number):
    return tfw.encode_example({"n": [number]})


FEATURES = {"n": tfw.FixedLenFeature([], tfw.int64)}
ROWS = [[0, 1], [2, 3], [4, 5]]
VECTORS = np.array([[example(number) for number in row] for row in ROWS], object)
MAKERS = {
    "slices": lambda: tfw.Dataset.from_tensor_slices(VECTORS),
    "generator": lambda: tfw.Dataset.from_generator(lambda: iter(VECTORS)),
    "lists": lambda: tfw.Dataset.from_generator(lambda: iter(VECTORS.tolist())),
    "map": lambda: tfw.Dataset.range(3).map(lambda row: VECTORS[row]),
    "batch": lambda: tfw.Dataset.from_tensor_slices(VECTORS.ravel()).batch(2),
    "repeated": lambda: tfw.Dataset.from_tensor_slices(VECTORS.ravel()).batch(2).repeat(1),
    "mapped": lambda: tfw.Dataset.from_generator(lambda: VECTORS.ravel()).batch(2).map(np.copy),
    "even": lambda: tfw.Dataset.from_tensor_slices(VECTORS.ravel()).batch(2, drop_remainder=True),
}


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_vectors_of_records(make, num_threads):
    parsed = make().parse_example(FEATURES, num_threads=num_threads)
    assert ROWS == texts(parsed)
    assert [ROWS[:2], ROWS[2:]] == texts(parsed.batch(2))
    assert [ROWS[:2]] == texts(parsed.batch(2, drop_remainder=True))
    assert {2: [ROWS[2]], 1: ROWS[1:]} == {n: texts(parsed.skip(n)) for n in (2, 1)}


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_record_of_every_vector(make, num_threads):
    """They are records again, and are not taken for the batches that they come from."""
    rows = make().map(lambda row: row[1])
    parsed = rows.parse_example(FEATURES, num_threads=num_threads)
    assert [1, 3, 5] == [int(element["n"]) for element in parsed]
    assert [[1, 3], [5]] == texts(parsed.batch(2))
    assert [[1, 3], [5]] == texts(rows.batch(2).parse_example(FEATURES))


def test_shapes_of_parsed_vectors():
    told = {name: make().parse_example(FEATURES)._stage.spec for name, make in MAKERS.items()}
    assert {"n": "int64[2]"} == told["slices"] == told["even"]
    assert {"n": "int64[?]"} == told["batch"] == told["repeated"]
    assert all(told[name] is None for name in ("generator", "lists", "map", "mapped"))


def test_arrays_of_records_are_no_vectors():
    with pytest.raises(ValueError, match="scalar or vector"):
        list(tfw.Dataset.from_tensor_slices(VECTORS[None]).parse_example(FEATURES))
