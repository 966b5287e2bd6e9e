"""tfwire.beam beside Beam's own transforms: what is read, how files are split, what is damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import zlib

import apache_beam as beam
import numpy as np
import pyarrow
import pytest
import zstandard
from apache_beam.io import iobase, tfrecordio
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.options.value_provider import RuntimeValueProvider, StaticValueProvider
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.display import DisplayData
from beam_files import (
    FEATURES,
    RECORDS,
    SHORT,
    check_read,
    read,
    read_all,
    row,
    run,
    source_of,
    write,
)

import tfwire as tfw
from helpers.records.counted_files import (
    CASES,
    FEATURES as COUNTED_FEATURES,
    expected_count,
    write_counted_files,
)
from tfwire.beam import (
    ReadAllFromTFRecord,
    ReadBatchesFromTFRecord,
    ReadFromTFRecord,
    WriteToTFRecord,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    return write_counted_files(tmp_path_factory.mktemp("counted"))


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")  # of damage that is left out
@pytest.mark.parametrize(("name", "policy"), CASES)
def test_records_are_counted(counted, name, policy):
    expected = expected_count(name, policy)
    files, options = counted[name], {"on_corrupt": policy}

    def count(pipeline):
        records = pipeline | beam.Create(files) | ReadAllFromTFRecord(**options)
        assert_that(records | beam.combiners.Count.Globally(), equal_to([expected]), "records")
        for file in files:
            read = ReadBatchesFromTFRecord(file, COUNTED_FEATURES, batch_size=64, **options)
            sizes = pipeline | file >> read | f"{file} sizes" >> beam.Map(lambda b: b.num_rows)
            yield sizes

    if expected is None:
        with pytest.raises(Exception, match="at byte"), run() as pipeline:
            list(count(pipeline))
        return
    with run() as pipeline:
        sizes = tuple(count(pipeline)) | beam.Flatten()
        assert_that(sizes | beam.CombineGlobally(sum), equal_to([expected]), "rows")


# ---- As Beam's own -----------------------------------------------------------------------------

COMPRESSED = {
    "plain": bytes,
    "a.gz": gzip.compress,
    "a.deflate": zlib.compress,
    "a.bz2": bz2.compress,
    "a.xz": lzma.compress,
    "a.zst": zstandard.compress,
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_records_are_those_that_beam_reads(tmp_path, name):
    tfw.write_records(tmp_path / "records", SHORT)
    path = str(tmp_path / name)
    (tmp_path / name).write_bytes(COMPRESSED[name]((tmp_path / "records").read_bytes()))
    names, patterns = [(path, record) for record in SHORT], [path, str(tmp_path / "none*")]
    given = CompressionTypes.detect_compression_type(name)
    with run() as pipeline:
        created = pipeline | beam.Create(patterns)
        for kind in (CompressionTypes.AUTO, given):
            options = {"compression_type": kind}
            for make in (tfrecordio.ReadAllFromTFRecord, ReadAllFromTFRecord):
                label = f"{make.__module__} all {kind}"
                found = created | label >> make(with_filename=True, **options)
                assert_that(found, equal_to(names), label=label + " names")
            for make in (tfrecordio.ReadFromTFRecord, ReadFromTFRecord):
                label = f"{make.__module__} {kind}"
                found = pipeline | label >> make(path, **options)
                assert_that(found, equal_to(SHORT), label=label + " records")
        found = pipeline | ReadFromTFRecord(path, with_filename=True)
        assert_that(found, equal_to(names), label="once, with names")


class Reversed(beam.coders.Coder):
    def encode(self, value):
        return value[::-1].encode()

    def decode(self, encoded):
        return encoded.decode()[::-1]


@pytest.mark.parametrize("index", [False, True])
def test_a_coder_decodes_every_record(tmp_path, index):
    path = write(tmp_path / "words", [b"ot", b"eb", b""], index)
    for make in (tfrecordio.ReadFromTFRecord, ReadFromTFRecord):
        check_read(make(path, Reversed()), ["to", "be", ""])
    check_read(ReadAllFromTFRecord(Reversed()), ["to", "be", ""], lambda p: p | beam.Create([path]))


def test_patterns_and_empty_files(tmp_path):
    for number in range(3):
        write(tmp_path / f"part-{number}", RECORDS[number : number + 2], index=number == 1)
    (tmp_path / "part-3").write_bytes(b"")
    with gzip.open(tmp_path / "part-4.gz", "wb"):
        pass
    expected = [record for number in range(3) for record in RECORDS[number : number + 2]]
    pattern = str(tmp_path / "part-*")
    check_read(ReadFromTFRecord(pattern), expected)
    check_read(ReadFromTFRecord(tmp_path / "part-*"), expected)
    check_read(ReadFromTFRecord(StaticValueProvider(str, pattern)), expected)
    check_read(ReadAllFromTFRecord(), expected, lambda p: p | beam.Create([pattern]))
    check_read(ReadFromTFRecord(str(tmp_path / "part-3")), [])


def test_files_that_were_matched(tmp_path):
    """Their names are not taken for patterns."""
    write(tmp_path / "a[1]", RECORDS[:2])
    write(tmp_path / "a1", RECORDS[2:4])
    write(tmp_path / "a[2]", RECORDS[4:], index=True)
    matched = FileSystems.match([str(tmp_path / "*")])[0].metadata_list
    given = [file for file in matched if "[" in file.path and not file.path.endswith("index")]
    expected = RECORDS[:2] + RECORDS[4:]
    check_read(ReadAllFromTFRecord(), expected, lambda pipeline: pipeline | beam.Create(given))
    given = [file for file in matched if "[2]" in file.path]  # with its index
    check_read(ReadAllFromTFRecord(), RECORDS[4:], lambda pipeline: pipeline | beam.Create(given))


def test_folders_sets_and_what_lies_beside(tmp_path):
    with run() as pipeline:
        create = pipeline | beam.Create(SHORT)
        _ = create | WriteToTFRecord(f"{tmp_path}/out/part", num_shards=3)
    (tmp_path / "out").rename(tmp_path / "out[1]")
    for file in (tmp_path / "out[1]").iterdir():
        tfw.RecordIndex.build(file).save()
    for name in ("_SUCCESS", ".part.crc", "features.json"):
        (tmp_path / "out[1]" / name).write_bytes(b"no records")
    names = [f"{tmp_path}/out[1]", f"{tmp_path}/out[1]/*", f"{tmp_path}/out[1]/part@3"]
    for name in names:
        check_read(ReadFromTFRecord(name), SHORT)
    check_read(ReadAllFromTFRecord(), SHORT * 3, lambda pipeline: pipeline | beam.Create(names))
    literal = write(tmp_path / "a[1]", SHORT[:1])
    write(tmp_path / "a1", RECORDS)
    check_read(ReadFromTFRecord(literal), SHORT[:1])
    (tmp_path / "out[1]/part-00001-of-00003").unlink()
    with pytest.raises(FileNotFoundError, match="1 of 3 shards missing, the first"):
        ReadFromTFRecord(names[-1])


def test_a_pattern_that_matches_nothing(tmp_path):
    pattern = str(tmp_path / "*")
    for make in (tfrecordio.ReadFromTFRecord, ReadFromTFRecord, ReadBatchesFromTFRecord):
        with pytest.raises(OSError, match=r"No files found .*\*"):
            make(pattern)
    with pytest.raises(OSError, match="No files found"):
        ReadBatchesFromTFRecord(pattern, validate=False)  # which has nothing to infer from
    check_read(ReadFromTFRecord(pattern, validate=False), [])
    check_read(ReadBatchesFromTFRecord(pattern, FEATURES, validate=False), [])
    check_read(ReadAllFromTFRecord(), [], lambda p: p | beam.Create([pattern]))


def test_workers_in_processes_of_their_own(tmp_path):
    path = write(tmp_path / "a", [tfw.encode_example(row(i)) for i in range(2500)], index=True)
    options = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    with beam.Pipeline("FnApiRunner", PipelineOptions(options)) as pipeline:
        records = pipeline | ReadFromTFRecord(path) | beam.Map(tfw.decode_example)
        ids = records | beam.Map(lambda example: example["id"].item())
        assert_that(ids, equal_to(range(2500)))
        batches = pipeline | ReadBatchesFromTFRecord(path, FEATURES) | beam.Reshuffle()
        ids = batches | beam.FlatMap(lambda batch: batch["id"].to_pylist())
        assert_that(ids, equal_to(range(2500)), label="batches")


# ---- Batches -----------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path):
    for number in range(2):
        ids = range(100 * number, 100 * number + 100)
        write(tmp_path / f"part-{number}", map(tfw.encode_example, map(row, ids)), number == 1)
    return str(tmp_path / "part-?")


def test_batches_for_arrow(rows):
    with run() as pipeline:
        read = ReadBatchesFromTFRecord(rows, batch_size=30, with_filename=True)
        batches = pipeline | read | beam.Reshuffle()
        sizes = batches | beam.MapTuple(lambda path, batch: (path[-1], batch.num_rows))
        assert_that(sizes, equal_to([(c, n) for c in "01" for n in (30, 30, 30, 10)]), label="n")
        found = batches | beam.FlatMapTuple(lambda _, batch: batch.to_pylist())
        # A list without a value has no kind in a record, and is null.
        text = [[name.decode() for name in row(i)["name"]] for i in range(200)]
        expected = [{**row(i), "name": text[i] or None} for i in range(200)]
        assert_that(found, equal_to(expected))


def test_batches_for_numpy(rows):
    with run() as pipeline:
        read = ReadBatchesFromTFRecord(
            rows, FEATURES, columns=["id"], batch_size=64, batches_as="numpy"
        )
        batches = pipeline | read | beam.Reshuffle()
        keys = batches | beam.Map(lambda batch: (list(batch), batch["id"].dtype.name))
        assert_that(keys, equal_to([(["id"], "int64")] * 4), label="keys")
        found = batches | beam.FlatMap(lambda batch: batch["id"].tolist())
        assert_that(found, equal_to(range(200)))


def test_options_of_arrow_batches(rows):
    transform = ReadBatchesFromTFRecord(
        rows.replace("?", "1"), FEATURES, columns=["name"], binary_as="string", with_positions=True
    )
    [batch] = read(source_of(transform))
    assert batch.schema.field("name").type == pyarrow.large_list(pyarrow.string())
    assert batch["record_index"].to_pylist() == list(range(100))
    assert set(batch["path"].to_pylist()) == {rows.replace("?", "1")}


def test_sequence_examples_are_batches_for_arrow(tmp_path):
    sequence = tfw.encode_sequence_example({"id": 1}, {"steps": [[1], [2]]})
    path = write(tmp_path / "s", [sequence] * 3)
    [batch] = read(source_of(ReadBatchesFromTFRecord(path)))
    assert batch["steps"].to_pylist() == [[1, 2]] * 3
    with pytest.raises(ValueError, match="SequenceExamples"):
        ReadBatchesFromTFRecord(path, batches_as="numpy")


def test_a_record_that_does_not_fit(tmp_path):
    records = [tfw.encode_example({"id": i if i != 57 else b"x"}) for i in range(90)]
    path = write(tmp_path / "a", records, index=True)
    features = {"id": FEATURES["id"]}
    for kind in ("arrow", "numpy"):
        source = source_of(ReadBatchesFromTFRecord(path, features, batch_size=10, batches_as=kind))
        with pytest.raises(tfw.ParseError, match="id") as caught:
            read(source)
        assert (caught.value.path, caught.value.record_index) == (path, 57)


# ---- Transforms --------------------------------------------------------------------------------


def test_what_numpy_has_no_place_for_is_read_as_arrow(tmp_path):
    path = str(tmp_path / "sequences")
    tfw.write_records(path, [tfw.encode_sequence_example({"a": 1}, {"b": [[2]]})])
    spec = ({"a": tfw.FixedLenFeature([], tfw.int64)}, {"b": tfw.VarLenFeature(tfw.int64)})
    with pytest.raises(ValueError, match='SequenceExamples need batches_as="arrow"'):
        ReadBatchesFromTFRecord(path, spec, batches_as="numpy")
    assert ReadBatchesFromTFRecord(path, spec, batches_as="arrow")


@pytest.mark.parametrize("batches_as", ["arrow", "numpy"])
def test_workers_warn_of_features_that_come_late(tmp_path, batches_as):
    first = tfw.encode_example({"i": 1, "s": "x" * 200})
    tfw.write_records(tmp_path / "late", [*[first] * 30_000, {"i": 1, "s": "y", "late": 1}])
    transform = ReadBatchesFromTFRecord(str(tmp_path / "late"), batches_as=batches_as)
    source = pickle.loads(pickle.dumps(transform._source))
    with pytest.warns(tfw.TfwireWarning, match="record 30000 is the first with .* 'late'"):
        list(read_all(source))


def test_transforms_are_pickled_without_handles(rows):
    for transform in (
        ReadFromTFRecord(rows),
        ReadAllFromTFRecord(),
        ReadBatchesFromTFRecord(rows, FEATURES),
        ReadBatchesFromTFRecord(rows, tfw.infer_schema(rows.replace("?", "0")), batches_as="numpy"),
    ):
        if hasattr(transform, "_source"):
            before = sum(1 for _ in read_all(transform._source))  # makes the handles
            again = pickle.loads(pickle.dumps(transform._source))
            assert sum(1 for _ in read_all(again)) == before
        else:
            pickle.loads(pickle.dumps(transform._reading))


def test_types_of_elements(rows):
    def type_of(transform):
        pipeline = beam.Pipeline("FnApiRunner")
        return (pipeline | beam.Create([rows]) | transform).element_type

    assert type_of(ReadAllFromTFRecord()) is bytes
    assert type_of(ReadAllFromTFRecord(with_filename=True)) == beam.typehints.Tuple[str, bytes]
    assert type_of(ReadAllFromTFRecord(Reversed())) == beam.typehints.Any
    pipeline = beam.Pipeline("FnApiRunner")
    assert (pipeline | ReadFromTFRecord(rows)).element_type is bytes
    arrow = pipeline | "b" >> ReadBatchesFromTFRecord(rows, FEATURES)
    assert arrow.element_type is pyarrow.RecordBatch
    with pytest.raises(Exception, match="int"):
        pipeline | "c" >> ReadFromTFRecord(rows) | beam.Map(abs).with_input_types(int)


def test_what_runners_show(rows):
    for make in (tfrecordio.ReadFromTFRecord, ReadFromTFRecord):
        read = iobase.Read(make(rows)._source)
        items = {item.key: item.value for item in DisplayData.create_from(read).items}
        assert (items["file_pattern"], items["compression"]) == (rows, "auto")
    items = {i.key: i.value for i in DisplayData.create_from(ReadFromTFRecord(rows)).items}
    assert items["file_pattern"] == rows


WRONG = {
    "a number": (ReadFromTFRecord, (3,), {}, TypeError, "file_pattern must be of type string"),
    "batches of a number": (ReadBatchesFromTFRecord, (3,), {}, TypeError, "file_pattern"),
    "a word as coder": (ReadFromTFRecord, ("x", "bytes"), {}, TypeError, "coder must be a Coder"),
    "a class as coder": (ReadAllFromTFRecord, (beam.coders.BytesCoder,), {}, TypeError, "coder"),
    "a policy": (ReadAllFromTFRecord, (), {"on_corrupt": "ignore"}, ValueError, "on_corrupt must"),
    "compression": (ReadFromTFRecord, ("x",), {"compression_type": "GZIP!"}, TypeError, "compress"),
    "all's": (ReadAllFromTFRecord, (), {"compression_type": "GZIP!"}, TypeError, "compress"),
    "validate": (
        ReadFromTFRecord,
        ("x",),
        {"validate": "no"},
        TypeError,
        "validate must be a bool",
    ),
    "names": (ReadFromTFRecord, ("x",), {"with_filename": 1}, TypeError, "with_filename must be"),
    "size": (ReadBatchesFromTFRecord, ("x", FEATURES), {"batch_size": 0}, ValueError, "batch_size"),
    "columns": (ReadBatchesFromTFRecord, ("x", FEATURES), {"columns": "id"}, TypeError, "columns"),
    "no column": (ReadBatchesFromTFRecord, ("x", FEATURES), {"columns": []}, ValueError, "counts"),
    "no feature": (
        ReadBatchesFromTFRecord,
        ("x", {}),
        {"batches_as": "numpy"},
        ValueError,
        "ReadFromTFRecord counts records",
    ),
    "a column": (ReadBatchesFromTFRecord, ("x", FEATURES), {"columns": ["z"]}, ValueError, "'z'"),
    "a list": (ReadBatchesFromTFRecord, ("x", ["id"]), {}, TypeError, "features must be a dict"),
    "as": (ReadBatchesFromTFRecord, ("x", FEATURES), {"batches_as": "x"}, ValueError, "batches_as"),
    "numpy tensors": (
        ReadBatchesFromTFRecord,
        ("x", FEATURES),
        {"batches_as": "numpy", "tensors": True},
        ValueError,
        "tensors",
    ),
    "numpy column": (
        ReadBatchesFromTFRecord,
        ("x", FEATURES),
        {"batches_as": "numpy", "columns": ["z"]},
        ValueError,
        "'z' is not a feature",
    ),
    "a pattern that is not known": (
        ReadBatchesFromTFRecord,
        (RuntimeValueProvider("input", str, None),),
        {},
        ValueError,
        "features must be given",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case):
    make, arguments, options, error, message = WRONG[case]
    if make is not ReadAllFromTFRecord:
        options = {"validate": False, **options}
    with pytest.raises(error, match=message):
        make(*arguments, **options)


def test_an_element_that_is_no_path():
    with pytest.raises(Exception, match="expected a path or a FileMetadata, found int"):
        check_read(ReadAllFromTFRecord(), [], lambda pipeline: pipeline | beam.Create([3]))


def test_a_missing_file_names_itself(tmp_path):
    path = write(tmp_path / "a", RECORDS[:1])
    source = source_of(ReadFromTFRecord(path))
    (tmp_path / "a").unlink()
    with pytest.raises(OSError, match="a"):
        read(source)


def test_arrays_of_batches_are_writable(rows):
    [batch, *_] = read(
        source_of(ReadBatchesFromTFRecord(rows.replace("?", "0"), FEATURES, batches_as="numpy"))
    )
    batch["id"] += np.int64(1)
