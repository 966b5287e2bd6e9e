"""Every line of docs/data-that-exists.md reads what its row says.

To add a row, write it there, and here a function that makes such data in the working folder and
returns what the line finds, as lists. A row that needs another package is tested where that package
is, by ``helpers.layouts.read``, and is named in ELSEWHERE.
"""

import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw
from helpers.layouts import LINES, read
from helpers.paths import TESTS
from helpers.prepared import group, pets, prepare, sequence, tensor

pytestmark = [pytest.mark.outside_c, pytest.mark.usefixtures("folder")]

RECORDS = [b"one", b"two", b"three"]
MAKERS = {}
ELSEWHERE = {  # the file in tests that reads the line of a row
    "such folders as a table with the column `day`": "engines/test_spark_partitions.py",
    "SequenceExamples as Parquet": "neighbours/test_arrow_convert.py",
}


def layout(name):
    """Names the row that a function makes data for."""

    def note(maker):
        MAKERS[name] = maker
        return maker

    return note


@pytest.mark.parametrize("name", LINES)
def test_the_line_reads_its_layout(name):
    if name in ELSEWHERE:
        assert f'read("{name}"' in (TESTS / ELSEWHERE[name]).read_text(encoding="utf-8")
        return
    expected = MAKERS[name]()
    assert expected == read(name, Frame=_Frame)
    assert expected


def test_every_layout_has_a_row():
    assert MAKERS.keys() | ELSEWHERE.keys() == LINES.keys()
    assert not MAKERS.keys() & ELSEWHERE.keys()


def framed():
    """A record file as bytes."""
    tfw.write_records("framed", RECORDS)
    return Path("framed").read_bytes()


@layout("records of any kind")
def _():
    tfw.write_records("train.tfrecord", RECORDS)
    return RECORDS


def _parts(*names):
    """Files with a record each, which is the name, and what Spark leaves beside them."""
    for path in map(Path, names):
        path.parent.mkdir(parents=True, exist_ok=True)
        tfw.write_records(path, [path.as_posix().encode()])
        path.with_name(f".{path.name}.crc").write_bytes(b"crc\0")
        (path.parent / "_SUCCESS").touch()
    return [name.encode() for name in names]


@layout("a folder of part files, with `_SUCCESS` and checksums")
def _():
    return _parts("table/part-00000", "table/part-00001")


@layout("a folder of folders, as `day=1`")
def _():
    return _parts("table/day=1/part-0", "table/day=2/part-0")


@layout("a set of shards, all or an error")
def _():
    return _parts(*(f"train.tfrecord-{i:05}-of-00003" for i in range(3)))


@layout("files by a pattern, indexes beside them")
def _():
    names = _parts("train-0", "train-1")
    for name in names:
        tfw.RecordIndex.build(name).save()
    Path("train-info.json").write_text("{}", encoding="utf-8")
    return names


@layout("Examples without a description")
def _():
    tfw.write_records("train.tfrecord", [{"x": [1.5, 2], "label": i} for i in range(3)])
    return [{"x": [[1.5, 2]] * 3, "label": [0, 1, 2]}]


@layout("SequenceExamples")
def _():
    serialized = tfw.encode_sequence_example({"id": "a"}, {"rgb": [[1.5], [2.5, 3]]})
    tfw.write_records("train.tfrecord", [serialized])
    return [({"id": [b"a"]}, {"rgb": [[1.5], [2.5, 3]]})]


@layout("the same, by number")
def _():
    tfw.write_records("train.tfrecord.gz", RECORDS, "GZIP")
    return [RECORDS[2], RECORDS[0]]


@layout("gzip or zlib, whatever the name")
def _():
    tfw.write_records("train.tfrecord.gz", RECORDS, "GZIP")
    return RECORDS


@layout("xz, and bzip2 by bz2")
def _():
    Path("train.tfrecord.xz").write_bytes(lzma.compress(framed()))
    return RECORDS


@layout("tar of record files")
def _():
    data = framed()
    with tarfile.open("shards.tar", "w") as archive:
        for name in ("a.tfrecord", "b.tfrecord"):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return RECORDS * 2


@layout("zip of record files")
def _():
    with zipfile.ZipFile("shards.zip", "w") as archive:
        archive.writestr("a.tfrecord", framed())
        archive.writestr("b.tfrecord", framed())
    return RECORDS * 2


@layout("a folder of TensorFlow Datasets")
def _():
    pets(Path("pets/1.0.0"))
    images = [np.full((2, 3, 3), n).tolist() for n in range(2)]
    return {"image": images, "label": [1, 0], "name": [b"pet 0", b"pet 1"]}


@layout("episodes of robots (RLDS)")
def _():
    steps = group(reward=tensor("float32"), is_first=tensor("bool"))
    rows = [{"steps/reward": [n, n + 0.5], "steps/is_first": [1, 0]} for n in (1.0, 2.0)]
    features = group(steps=sequence(steps, connector="Dataset"))
    prepare(Path("arm/1.0.0"), features, {"train": [rows]})
    rewards = [1.0, 1.5, 2.0, 2.5]
    return [{"reward": r, "is_first": n % 2 == 0} for n, r in enumerate(rewards)]


@layout("a schema as schema.pbtxt")
def _():
    tfw.write_records("train.tfrecord", [{"x": 1}, {"x": 2}])
    Path("schema.pbtxt").write_text(
        'feature { name: "x" type: INT presence { min_fraction: 1 } shape {} }', encoding="utf-8"
    )
    return [{"x": [1, 2]}]


@layout("events of a training")
def _():
    event = bytes.fromhex("09000000000000f03f10052a0d0a0b0a046c6f7373150000003f")
    tfw.write_records("events.out.tfevents.1", [event])
    columns = {"tag": ["loss"], "step": [5], "wall_time": [1], "value": [0.5]}
    return columns | {"kind": ["scalar"], "shape": [[]]}


@layout("serialized tensors")
def _():
    tensors = [np.full((2, 3), i, np.float32) for i in range(3)]
    tfw.write_records("tensors.tfrecord", map(tfw.serialize_tensor, tensors))
    return [tensor.tolist() for tensor in tensors]


class _Frame:
    """As a class of messages."""

    @staticmethod
    def FromString(serialized):
        return serialized.decode()


@layout("other messages")
def _():
    tfw.write_records("segment.tfrecord", RECORDS)
    return ["one", "two", "three"]


@layout("a file that is still being written")
def _():
    Path("train.tfrecord").write_bytes(framed()[:-1])
    return RECORDS[:2]


@layout("a damaged file")
def _():
    data = bytearray(framed())
    data[data.index(b"two")] ^= 1
    Path("train.tfrecord").write_bytes(data)
    return [RECORDS[0], RECORDS[2]]
