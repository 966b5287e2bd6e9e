"""TFRecord files in Hugging Face datasets, prepared and streaming."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import datasets
import fsspec
import numpy as np
import pyarrow as pa
import pytest
from builders import both, prepared, streamed, use_folder
from datasets import Features, List, Value
from fsspec.implementations.memory import MemoryFileSystem
from PIL import Image
from sample import COUNT, SPEC, columns

import tfwire as tfw
from helpers.command import output_of_python
from tfwire.huggingface import TFRecord

EXPECTED = [{"id": i, "name": b"name %d" % i, "x": [i, 2 * i, 3 * i]} for i in range(COUNT)]
INFERRED = [{**row, "name": f"name {row['id']}"} for row in EXPECTED]
FEATURES = Features(
    {"id": Value("int64"), "name": Value("binary"), "x": List(Value("float32"), length=3)}
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    use_folder(monkeypatch, tmp_path)
    return tmp_path / "cache"


# ---- Files --------------------------------------------------------------------------------------


@both
def test_data_files_as_users_give_them(files, read):
    folder = Path(files[0]).parent
    patterns = f"{folder}/part-*", [f"{folder}/part-[0-9]"], folder / "*", b"%b/p*" % bytes(folder)
    for given in (files, tuple(files), *patterns):
        assert INFERRED == list(read(given))
    assert INFERRED == list(read([{"split": "all_of_them", "path": files}], split="all_of_them"))
    splits = {"train": files[:2], "test": files[2], "none": f"{folder}/part-0"}
    first = len(list(tfw.read_records(files[:2])))
    assert INFERRED[:first] == list(read(splits))
    assert INFERRED[first:] == list(read(splits, split="test"))
    every = read(splits, split=None)
    assert {"train", "test", "none"} == every.keys()
    assert {**FEATURES, "name": Value("string")} == every["test"].features


def test_folders_names_like_patterns_and_what_lies_beside(tmp_path):
    (tmp_path / "table").mkdir()
    for name in ("part-0", "part[1]", "part1"):
        tfw.write_records(tmp_path / "table" / name, [{"name": name}])
        tfw.RecordIndex.build(tmp_path / "table" / name).save()
    (tmp_path / "table/_SUCCESS").touch()
    (tmp_path / "table/.part-0.crc").write_bytes(b"crc\0")
    folder = str(tmp_path / "table")
    given = {"folder": folder, "literal": f"{folder}/part[1]", "pattern": [f"{folder}/part*"]}
    builder = TFRecord(given)
    builder.download_and_prepare()
    found = {split: rows["name"][:] for split, rows in builder.as_dataset().items()}
    every = ["part-0", "part1", "part[1]"]
    assert {"folder": every, "literal": ["part[1]"], "pattern": every} == found


def test_indexes_that_a_pattern_of_urls_finds_are_left_out():
    for name in "ab":
        tfw.write_records(f"memory://hf/{name}", [{"name": name}])
    MemoryFileSystem().pipe("/hf/a.tfwindex", b"an index")
    stream = TFRecord("memory://hf/*").as_streaming_dataset("train")
    assert ["a", "b"] == [row["name"] for row in stream]


def test_files_that_are_not_there(files):
    with pytest.raises(FileNotFoundError, match="Unable to find"):
        TFRecord("absent.tfrecord")
    with pytest.raises(FileNotFoundError, match=r"no file matches the pattern: 'absent-\*'"):
        TFRecord({"train": files, "test": "absent-*"})
    with pytest.raises(TypeError, match=r"data_files must be a path, pattern or URL.*found int"):
        TFRecord(3)
    with pytest.raises(TypeError, match="found NoneType"):
        TFRecord({"train": None})


NUM_PROC = """
import sys, datasets
import tfwire as tfw
from tfwire.huggingface import TFRecord

if __name__ == "__main__":
    spec = {"id": tfw.FixedLenFeature([], tfw.int64)}
    for specification in (None, spec):
        builder = TFRecord(sys.argv[2:], specification, cache_dir=sys.argv[1])
        builder.download_and_prepare(num_proc=2)
        found = builder.as_dataset(split="train")
        assert found["id"][:] == list(range(len(found))), found
        print(len(found), len(found.cache_files), builder.config_id)
"""


def test_processes_share_the_files_and_agree_on_their_name(files, cache):
    variables = {"HF_DATASETS_DISABLE_PROGRESS_BARS": "1"}
    first, second = (
        output_of_python("-c", NUM_PROC, cache / seed, *files, PYTHONHASHSEED=seed, **variables)
        for seed in "12"
    )
    assert first == second
    assert [f"{COUNT} 2"] * 2 == [line.rpartition(" ")[0] for line in first.splitlines()]


class Guarded(MemoryFileSystem):
    """Files that only who knows the key may read, with ETags."""

    protocol = "guarded"
    cachable = False

    def __init__(self, key=None, **options):
        super().__init__(**options)
        self.key = key

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("guarded://", "memory://"))

    def info(self, path, **options):
        found = super().info(path, **options)
        content = self.store.get(found["name"])
        return found if content is None else {**found, "ETag": str(tfw.crc32c(content.getvalue()))}

    opened = 0

    def _open(self, *arguments, **options):
        Guarded.opened += 1
        if self.key != "right":
            raise PermissionError("the key is wrong")
        return super()._open(*arguments, **options)


@pytest.fixture
def urls(files):
    fsspec.register_implementation("guarded", Guarded, clobber=True)
    for path in files:
        fsspec.filesystem("memory").pipe(f"/urls/{Path(path).name}", Path(path).read_bytes())
    return [f"guarded://urls/{Path(path).name}" for path in files]


KEY = {"guarded": {"key": "right"}}


@both
def test_urls_are_opened_with_the_options_of_datasets(urls, read):
    with pytest.raises(Exception, match="the key is wrong"):
        list(read(urls, storage_options={"guarded": {"key": "wrong"}}))
    assert INFERRED == list(read(urls, storage_options=KEY))
    assert INFERRED == list(read(urls, storage_options={"key": "right"}))


@both
def test_a_url_that_changed_is_read_anew(urls, read):
    assert INFERRED[0] == next(iter(read(urls, storage_options=KEY)))
    memory = fsspec.filesystem("memory")
    memory.pipe("/urls/part-0", memory.cat("/urls/part-1"))
    second = list(read(urls[1], storage_options=KEY))
    assert second * 2 == list(read(urls[:2], storage_options=KEY))
    assert second == list(read(urls[0], storage_options=KEY))


def test_a_url_without_an_etag_is_read_anew_when_asked(urls):
    memory = fsspec.filesystem("memory")
    path = "memory://urls/part-0"
    assert INFERRED[0] == prepared(path)[0]
    memory.pipe("/urls/part-0", memory.cat("/urls/part-2"))
    builder = TFRecord(path)
    builder.download_and_prepare(download_mode="force_redownload", verification_mode="no_checks")
    assert INFERRED[-1] == builder.as_dataset(split="train")[-1]


def test_few_urls_are_opened_to_infer(urls, tmp_path):
    memory = fsspec.filesystem("memory")
    for i in range(40):
        memory.pipe(f"/many/{i:02}", memory.cat("/urls/part-0"))
    Guarded.opened = 0
    tfw.write_records(str(tmp_path / "late"), [{"late": 1}])
    memory.pipe("/many/01", (tmp_path / "late").read_bytes())  # which is not among them
    rows = streamed("guarded://many/*", storage_options=KEY)
    assert 0 < Guarded.opened <= 16
    with pytest.warns(tfw.TfwireWarning, match="many/01: record 0 is the first with .*'late'"):
        assert None in [row["id"] for row in rows]
    Guarded.opened = 0
    streamed("guarded://many/*", SPEC, storage_options=KEY)
    assert 0 == Guarded.opened


def test_a_url_is_named_in_errors(tmp_path):
    tfw.write_records(tmp_path / "data", [{"id": i} for i in range(5)])
    fsspec.filesystem("memory").pipe("/urls/cut", (tmp_path / "data").read_bytes()[:-1])
    with pytest.raises(tfw.DataLossError, match=r"memory:///urls/cut: record 4 at byte"):
        list(streamed("memory://urls/cut", {"id": SPEC["id"]}))


# ---- Columns ------------------------------------------------------------------------------------


@both
def test_specifications_and_columns(files, read):
    found = read(files, SPEC)
    assert EXPECTED == list(found)
    assert FEATURES == Features({name: found.features[name] for name in FEATURES})
    found = read(files, SPEC, columns=iter(["x", "id"]))
    assert ["x", "id"] == list(found.features)
    assert {"x": [7.0, 14.0, 21.0], "id": 7} == list(found)[7]
    assert ["name"] == list(read(files, columns=["name"]).features)
    text = read(files, columns=["name"], binary_as="string")
    assert Features({"name": Value("string")}) == text.features
    assert "name 3" == list(text)[3]["name"]
    assert Value("large_binary") == read(files, binary_as="large_binary").features["name"]


@both
def test_features_of_datasets(files, read):
    features = Features(
        {"name": Value("string"), "x": List(Value("float64")), "id": Value("int16")}
    )
    found = read(files, features=features)
    assert features == found.features
    assert [{"name": f"name {i}", "x": [i, 2 * i, 3 * i], "id": i} for i in range(COUNT)] == list(
        found
    )
    found = read(files, SPEC, features=Features({"id": Value("float32")}), columns=["id"])
    assert [{"id": float(i)} for i in range(COUNT)] == list(found)


RAGGED = tfw.RaggedFeature
KINDS = {
    "tags": tfw.VarLenFeature(tfw.string),
    "pairs": tfw.FixedLenSequenceFeature([2], tfw.int64, allow_missing=True),
    "rows": RAGGED(tfw.int64, "v", [RAGGED.RowLengths("p"), RAGGED.UniformRowLength(2)]),
    "sparse": tfw.SparseFeature("i", "w", tfw.float32, size=9),
    "grid": tfw.FixedLenFeature([2, 2], tfw.float32, default_value=[[0, 1], [2, 3]]),
}


@both
def test_every_kind_of_feature(tmp_path, read):
    """With values, empty, absent and without a kind."""
    full = {"tags": ["a", "b"], "pairs": [1, 2, 3, 4], "v": [1, 2], "p": [0, 1], "i": 4, "w": 0.5}
    full["grid"] = [5.0] * 4
    kindless = {"tags": [], "pairs": [], "v": [], "p": [], "i": [], "w": []}
    dtypes = [object, np.int64, np.int64, np.int64, np.int64, np.float32]
    empty = {name: np.empty(0, dtype) for name, dtype in zip(kindless, dtypes, strict=True)}
    tfw.write_records(tmp_path / "data", [full, empty, {}, kindless])
    found = read(str(tmp_path / "data"), KINDS, batch_size=2)
    assert (
        Features(
            {
                "tags": List(Value("binary")),
                "pairs": List(List(Value("int64"), length=2)),
                "rows": List(List(List(Value("int64"), length=2))),
                "sparse": {"indices": List(Value("int64")), "values": List(Value("float32"))},
                "grid": List(List(Value("float32"), length=2), length=2),
            }
        )
        == found.features
    )
    default = [[0.0, 1.0], [2.0, 3.0]]
    absent = {"tags": None, "pairs": None, "rows": None, "grid": default}
    sparse = {"indices": None, "values": None}
    first, second, *others = found
    assert {
        "tags": [b"a", b"b"],
        "pairs": [[1, 2], [3, 4]],
        "rows": [[], [[1, 2]]],
        "sparse": {"indices": [4], "values": [0.5]},
        "grid": [[5.0] * 2] * 2,
    } == first
    nothing = {"indices": [], "values": []}
    assert {"tags": [], "pairs": [], "rows": [], "sparse": nothing, "grid": default} == second
    assert 2 == len(others)
    for row in others:
        assert row.pop("sparse") in (None, sparse)
        assert absent == row


@both
def test_sequences(tmp_path, read):
    record = tfw.encode_sequence_example({"id": 3}, {"words": [["a"], ["b", "c"]]})
    tfw.write_records(tmp_path / "data", [record] * 3)
    expected = [{"id": 3, "words": [[b"a"], [b"b", b"c"]]}] * 3
    specification = ({"id": SPEC["id"]}, {"words": tfw.VarLenFeature(tfw.string)})
    assert expected == list(read(str(tmp_path / "data"), specification))
    expected = [{"id": 3, "words": [["a"], ["b", "c"]]}] * 3
    assert expected == list(read(str(tmp_path / "data")))
    record = tfw.encode_sequence_example({}, {"words": [["a"]]})  # no context at all
    tfw.write_records(tmp_path / "lists", [record] * 3)
    assert [{"words": ["a"]}] * 3 == list(read(str(tmp_path / "lists")))


@both
def test_nothing_to_read_is_an_error(tmp_path, files, read):
    """A Dataset without columns has no rows either: the records would be lost."""
    tfw.write_records(tmp_path / "data", [{}, {}])
    for arguments in ((files, SPEC, []), (files, None, []), (files, {}), (str(tmp_path / "data"),)):
        path, specification, columns = [*arguments, None, None][:3]
        with pytest.raises(ValueError, match="no columns to read"):
            read(path, specification, columns=columns)


@both
def test_a_file_without_records(tmp_path, files, read):
    tfw.write_records(tmp_path / "empty", [])
    assert INFERRED == list(read([str(tmp_path / "empty"), *files]))
    with pytest.raises(ValueError, match="no records to infer a schema from"):
        read(str(tmp_path / "empty"))
    assert [] == list(streamed(str(tmp_path / "empty"), SPEC))
    with pytest.raises(ValueError, match='"train" corresponds to no data'):  # as datasets has it
        prepared(str(tmp_path / "empty"), SPEC)


@both
def test_compressed_files(tmp_path, read):
    with tfw.TFRecordWriter(tmp_path / "data", "ZLIB") as writer:
        writer.write_columns(columns(np.arange(COUNT)))
    assert INFERRED == list(read(str(tmp_path / "data")))
    assert INFERRED == list(read(str(tmp_path / "data"), compression_type="ZLIB"))
    with pytest.raises(Exception, match=r"generating|record 0"):
        list(read(str(tmp_path / "data"), SPEC, compression_type=None))


@both
def test_images(tmp_path, read):
    file = io.BytesIO()
    Image.new("RGB", (5, 4), "red").save(file, "PNG")
    rows = [{"image": file.getvalue(), "label": i % 2} for i in range(3)]
    tfw.write_records(tmp_path / "data", rows)
    names = datasets.ClassLabel(names=["cat", "dog"])
    for found in (
        read(str(tmp_path / "data")).cast_column("image", datasets.Image()),
        read(
            str(tmp_path / "data"), features=Features({"image": datasets.Image(), "label": names})
        ),
    ):
        rows = list(found)
        assert [(5, 4)] * 3 == [row["image"].size for row in rows]
        assert (255, 0, 0) == rows[0]["image"].getpixel((1, 1))
        assert [0, 1, 0] == [row["label"] for row in rows]
    assert "dog" == found.features["label"].int2str(rows[1]["label"])


def test_arguments_that_are_wrong(files):
    with pytest.raises(TypeError, match="argument `specification`"):
        TFRecord(files, features=SPEC)
    with pytest.raises(ValueError, match="same names"):
        TFRecord(files, columns=["id"], features=FEATURES)
    with pytest.raises(TypeError, match="columns must be a list of names, found str"):
        TFRecord(files, columns="id")
    with pytest.raises(ValueError, match="'y' is not a feature of the specification"):
        TFRecord(files, SPEC, columns=["y"])
    for read in (prepared, streamed):
        with pytest.raises(ValueError, match="'y' is not a feature of the specification"):
            read(files, columns=["y"])
        with pytest.raises(ValueError, match="'y' is not a feature of the specification"):
            read(files, features=Features({"y": Value("int64")}))
    for name, value in {
        "on_corrupt": "ignore",
        "binary_as": "utf8",
        "compression_type": "LZ4",
        "batch_size": 0,
        "no_such_option": 1,
    }.items():
        with pytest.raises((ValueError, TypeError), match=name):
            TFRecord(files, **{name: value})
    for wrong in (3, {"id": 3}, {"id": Value("int64")}):
        with pytest.raises((ValueError, TypeError)):
            TFRecord(files, wrong)


# ---- Streams ------------------------------------------------------------------------------------


def test_a_stream_is_sharded_shuffled_and_resumed(files):
    stream = streamed(files, SPEC, batch_size=10)
    assert 3 == stream.num_shards
    shards = [stream.shard(3, index) for index in range(3)]
    assert EXPECTED == [row for shard in shards for row in shard]
    shuffled = [row["id"] for row in stream.shuffle(seed=1, buffer_size=100)]
    assert list(range(COUNT)) != shuffled
    assert list(range(COUNT)) == sorted(shuffled)
    for stop in (0, 5, 10, 337, COUNT - 1):
        rows = iter(stream)
        assert EXPECTED[:stop] == [next(rows) for _ in range(stop)]
        state = pickle.loads(pickle.dumps(stream.state_dict()))
        again = streamed(files, SPEC, batch_size=10)
        again.load_state_dict(state)
        assert EXPECTED[stop:] == list(again)
    copy = pickle.loads(pickle.dumps(stream))
    assert EXPECTED == list(copy)
    tables = list(stream.with_format("arrow").iter(batch_size=300))
    assert EXPECTED == pa.concat_tables(tables).to_pylist()


def test_streams_left_half_read(files):
    for _ in range(20):
        rows = iter(streamed(files, SPEC, batch_size=7))
        assert EXPECTED[0] == next(rows)
        del rows
    assert EXPECTED[:30] == list(streamed(files, SPEC, batch_size=7).take(30))
