"""Files that hold no records are named, with what to do: by every way in."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

import tfwire as tfw
from helpers.reference import file_of
from tfwire._base.native import lib

RECORDS = [tfw.encode_example({"id": i, "name": b"x" * 300}) for i in range(3)]
DATA = file_of(RECORDS)
ID = {"id": tfw.VarLenFeature(tfw.int64)}
STEPS = {"steps": [[0.1] * 8] * 20}


def saved(save):
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def tar(file):
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("train.tfrecord")
        member.size = len(DATA)
        archive.addfile(member, io.BytesIO(DATA))


def in_zip(file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("train.tfrecord", DATA)


def delimited():
    return b"".join(bytes([len(r) & 127 | 128, len(r) >> 7]) + r for r in RECORDS)


def log_of_leveldb():
    block = b"\x01key and value"
    crc = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, block, len(block)))
    return struct.pack("<IH", crc, len(block) - 1) + block


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
PAGE = b"\n<!DOCTYPE html><html><title>Quota exceeded</title></html>"
RIEGELI = bytes.fromhex("83af70d10d884a3f" + "00" * 8 + "40" + "00" * 7 + "91bac23c9287e1a9")
FOREIGN = [
    (LFS, "a pointer of Git LFS; 'git lfs pull'"),
    (PAGE, "HTML; .*fetch the file again"),
    (b'<?xml version="1.0"?><Error/>', "XML; "),
    (json.dumps({"a": 1}).encode() * 20, "JSON.*convert --from jsonl"),
    (b'[{"a": 1}]', "JSON"),
    ("Größe,Maß\n".encode() * 99, "text; compression_type='auto' tried"),
    (gzip.compress(gzip.compress(DATA)), "gzip; it was compressed twice"),
    (gzip.compress(saved(tar)), "a tar archive of 'train.tfrecord'; "),
    (gzip.compress(PAGE), "HTML"),
    (lzma.compress(DATA), r"xz; .*lzma\.open"),
    (bz2.compress(DATA), r"bz2.*bz2\.open"),
    (b"\x28\xb5\x2f\xfd\x04\x58" + bytes(90), "zstd; 'zstd -d'"),
    (b"\x04\x22\x4d\x18" + bytes(90), "lz4; 'lz4 -d'"),
    (saved(tar), r"a tar archive of 'train.tfrecord'; .*tarfile\.open"),
    (saved(in_zip), r"a zip archive of 'train.tfrecord'; .*zipfile\.ZipFile"),
    (saved(lambda file: np.savez(file, np.ones(3))), "arrays of NumPy.*numpy.load"),
    (saved(lambda file: np.save(file, np.ones(3))), "an array of NumPy; numpy.load"),
    (b"PAR1" + bytes(90), "Parquet; 'tfwire convert --from parquet'"),
    (b"ARROW1\0\0" + bytes(90), "Arrow; 'tfwire convert --from arrow'"),
    (b"\x89HDF\r\n\x1a\n" + bytes(90), "HDF5; h5py"),
    (pickle.dumps({"a": 1}, 2), "a pickle"),
    (pickle.dumps({"a": 1}, 5), "a pickle"),
    (RECORDS[0], "a bare message, an Example or SequenceExample"),
    (tfw.encode_sequence_example({"id": "v"}, STEPS), r"a Seq.*decode_sequence_example\("),
    (tfw.encode_sequence_example({}, STEPS), r"a SequenceExample .*decode_sequence_example\("),
    (tfw.encode_sequence_example({}, STEPS)[2:], r"a Seq.*decode_sequence_example\("),
    (delimited(), "messages after their lengths"),
    (RIEGELI + bytes(30), "ArrayRecord"),
    (b"\x0a\x23\xd7\xce" + bytes(30), "RecordIO of MXNet"),
    (log_of_leveldb(), "a log of LevelDB"),
    (bytes(99) + struct.pack("<Q", 0xDB4775248B80FB57), "a table of LevelDB"),
    (bytes(16) + b"\xde\xc0\xef\xbe" + bytes(30), "LMDB"),
]


@pytest.mark.parametrize(("data", "named"), FOREIGN, ids=[named[:20] for _, named in FOREIGN])
@pytest.mark.parametrize(
    "read",
    [
        lambda path: list(tfw.read_records(path)),
        lambda path: list(tfw.read_records(io.BytesIO(path.read_bytes()))),
        lambda path: list(tfw.TFRecordDataset(path, "auto")),
        lambda path: list(tfw.Parser(ID).parse_file(path, num_threads=2)),
        tfw.RecordIndex.build,
        tfw.infer_schema,
    ],
    ids=["records", "object", "dataset", "parser", "index", "schema"],
)
def test_a_file_that_holds_no_records_is_named(tmp_path, data, named, read, request):
    path = tmp_path / "data"
    path.write_bytes(data)
    if "table" in named and "object" in request.node.callspec.id:
        named = "checksum"  # its end tells it, which a stream does not show
    with pytest.raises(tfw.DataLossError, match=named):
        read(path)


@pytest.mark.parametrize("data", [b"\x0a" + bytes(90), b"\x80" * 90, bytes(90), b"\x12\x34" * 40])
def test_what_is_not_known_is_not_named(tmp_path, data):
    path = tmp_path / "data"
    path.write_bytes(data)
    with pytest.raises(tfw.DataLossError, match=r"checksum.*nothing fits"):
        list(tfw.read_records(path))


def test_a_file_whose_first_record_is_damaged_is_not_named(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(DATA[:30])
    with pytest.raises(tfw.DataLossError, match="record takes"):
        list(tfw.read_records(path))


def test_the_advice_holds(tmp_path):
    """What unpacks by a file object is read without a copy on disk."""
    for name, data in (("tar", saved(tar)), ("zip", saved(in_zip))):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "xz").write_bytes(lzma.compress(DATA))
    (tmp_path / "bz2").write_bytes(bz2.compress(DATA))
    member = "train.tfrecord"
    with (
        tarfile.open(tmp_path / "tar") as in_tar,
        zipfile.ZipFile(tmp_path / "zip") as zipped,
        lzma.open(tmp_path / "xz") as xz,
        bz2.open(tmp_path / "bz2") as bzip2,
    ):
        for file in (in_tar.extractfile(member), zipped.open(member), xz, bzip2):
            assert list(tfw.read_records(file)) == RECORDS
