"""GZIP and ZLIB: names, detection, streams of many shapes, what is written."""

from __future__ import annotations

import gzip
import random
import sys
import zlib
from collections import Counter

import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.command import output_of_python
from helpers.paths import GOLDEN
from helpers.reading import Bytes, read_outcome
from helpers.records.counted_zlib import CountedZlib
from helpers.reference import file_of, flip, frame
from tfwire._base import system
from tfwire._records.files import compression, inflate
from tfwire._records.files.byte_sources import FileSource

COMPRESS = {
    "": bytes,
    "GZIP": lambda data: gzip.compress(data, mtime=0),
    "ZLIB": zlib.compress,
}
INFLATE = {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}

# Lengths whose little-endian bytes are a valid beginning of a gzip or zlib stream.
AWKWARD = [376, 24184, 40056, 55928, 559903]

RECORDS = [b"", b"cat" * 100, bytes(range(256)) * 300, b"end"]


def shuffled_bytes(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


# ---- Names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        (None, ""),
        ("", ""),
        ("GZIP", "GZIP"),
        ("gzip", "GZIP"),
        ("Zlib", "ZLIB"),
        (b"ZLIB", "ZLIB"),
        (0, ""),
        (1, "ZLIB"),
        (2, "GZIP"),
        (tfw.TFRecordOptions("gzip"), "GZIP"),
        (tfw.TFRecordOptions(tfw.TFRecordOptions("ZLIB")), "ZLIB"),
    ],
)
def test_compression_has_tensorflows_names_in_any_case(tmp_path, given_name, name):
    assert name == tfw.TFRecordOptions.get_compression_type_string(given_name)
    tfw.write_records(tmp_path / "data", RECORDS, given_name)
    assert file_of(RECORDS) == INFLATE[name]((tmp_path / "data").read_bytes())
    assert RECORDS == list(tfw.read_records(tmp_path / "data", given_name))


def test_options_show_what_was_given():
    options = tfw.TFRecordOptions("GZIP", compression_level=9)
    assert "TFRecordOptions(compression_type='GZIP', compression_level=9)" == repr(options)
    with pytest.raises(ValueError, match="Not a valid compression_type"):
        tfw.TFRecordOptions("auto")  # a word of readers


# ---- Detection --------------------------------------------------------------------------------


@pytest.mark.parametrize("length", AWKWARD)
def test_a_plain_file_that_begins_like_a_compressed_one_is_read_as_plain(outcome_of, length):
    records = [bytes(length), b"second"]
    data = file_of(records)
    assert data[:2] == b"\x1f\x8b" or (
        data[0] == 0x78 and int.from_bytes(data[:2], "big") % 31 == 0
    )
    assert records == outcome_of(data).records


@pytest.mark.parametrize("name", ["GZIP", "ZLIB"])
def test_compression_is_detected(outcome_of, name):
    for level in range(10):
        for records in ([], [b""], RECORDS, [shuffled_bytes(1000)]):
            make = gzip.compress if name == "GZIP" else zlib.compress
            assert records == outcome_of(make(file_of(records), level)).records


def test_a_file_too_short_to_tell_is_damage(outcome_of):
    for name, compress in COMPRESS.items():
        for size in range(1, 30):
            damage = outcome_of(compress(file_of([b"a record of some length"]))[:size]).damage
            assert (0, 0) == damage[:2], (name, size)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (flip(gzip.compress(file_of(RECORDS)), 8 * 11), "tried plain records and GZIP"),
        (shuffled_bytes(1000), "tried plain records, GZIP and ZLIB"),
        (flip(file_of(RECORDS[1:]), 8 * 12), "^(?!.*tried).*checksum"),  # its header is sound
    ],
    ids=["gzip", "nothing", "plain"],
)
def test_the_message_names_the_readings_that_were_tried(data, message):
    with pytest.raises(tfw.DataLossError, match=message):
        list(tfw.read_records(Bytes(data)))


def test_the_wrong_name_is_an_error_at_the_first_record():
    for name, compress in COMPRESS.items():
        for other in {"", "GZIP", "ZLIB"} - {name}:
            outcome = read_outcome(Bytes(compress(file_of(RECORDS))), other)
            assert ([], (0, 0)) == (outcome.records, outcome.damage[:2])


# ---- Streams ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["GZIP", "ZLIB"])
def test_streams_one_after_the_other_are_all_read(outcome_of, name):
    """Also empty ones, ones that end within a record, and ones of a byte each."""
    data = file_of(RECORDS)
    compress = COMPRESS[name]
    for cut in (0, 5, 16, 100, len(data)):
        streams = compress(data[:cut]) + compress(b"") + compress(data[cut:])
        assert RECORDS == outcome_of(streams).records, cut
    if name == "GZIP":
        streams = b"".join(compress(bytes([byte])) for byte in file_of([b"first", b"second"]))
        assert [b"first", b"second"] == outcome_of(streams).records


def test_gzip_headers_with_name_comment_and_extra_are_read(outcome_of):
    plain = gzip.compress(frame(b"record"), mtime=0)
    extra = b"\x05\x00extra"
    header = plain[:3] + b"\x1c" + plain[4:10] + extra + b"name\0" + b"comment\0"
    assert [b"record"] == outcome_of(header + plain[10:]).records


@pytest.mark.parametrize("name", ["GZIP", "ZLIB"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_stream_in_any_pieces_gives_the_same(name, data):
    records = data.draw(st.lists(st.binary(max_size=400), max_size=12))
    level = data.draw(st.integers(0, 9))
    window = data.draw(st.integers(9, 15))
    compressor = zlib.compressobj(level, wbits=window + (16 if name == "GZIP" else 0))
    stream = b""
    for record in records:
        stream += compressor.compress(frame(record))
        if data.draw(st.booleans()):
            stream += compressor.flush(zlib.Z_FULL_FLUSH)
    stream += compressor.flush()
    at_once = data.draw(st.sampled_from([None, 1, 2, 7, 100]))
    size = data.draw(st.sampled_from([None, 64]))
    assert records == list(tfw.read_records(Bytes(stream, at_once), buffer_size=size))


@pytest.mark.parametrize("name", ["GZIP", "ZLIB"])
def test_long_records_that_hardly_compress_are_read(outcome_of, name):
    records = [shuffled_bytes(size, size) for size in (70_000, 1, 300_000, 262_144)]
    assert records == outcome_of(COMPRESS[name](file_of(records))).records


def test_without_isal_everything_is_read_and_written_by_zlib(tmp_path):
    code = (
        "import sys; sys.modules['isal'] = None; sys.modules['isal.isal_zlib'] = None\n"
        "import tfwire as tfw\n"
        "from tfwire._records.files import inflate\n"
        "assert inflate._fast.__name__ == 'zlib'\n"
        "assert list(tfw.read_records(sys.argv[1])) == list(tfw.read_records(sys.argv[2]))\n"
        "tfw.write_records(sys.argv[3], [b'a record'] * 9, 'GZIP')\n"
    )
    files = GOLDEN / "examples.tfrecord.gz", GOLDEN / "examples.tfrecord"
    output_of_python("-c", code, *files, tmp_path / "without")
    options = tfw.TFRecordOptions("GZIP", compression_level=6)
    tfw.write_records(tmp_path / "with", [b"a record"] * 9, options)
    assert (tmp_path / "with").read_bytes() == (tmp_path / "without").read_bytes()


@pytest.mark.unsanitized("under ASan peak memory is not ours")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss in other units")
def test_a_bomb_takes_little_memory(path):
    """32 MiB of empty records out of 150 KiB."""
    bomb = gzip.compress(frame(b"") * (1 << 21), 1)
    assert len(bomb) < 1 << 18
    path.write_bytes(bomb)
    code = (
        "import resource, sys\n"
        "import tfwire as tfw\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "next(tfw.read_records(sys.argv[1]))\n"
        "before = peak()\n"
        "assert 1 << 21 == sum(1 for _ in tfw.read_records(sys.argv[1]))\n"
        "assert peak() - before < 16 << 10, peak() - before\n"
    )
    output_of_python("-c", code, path)


# ---- Files of TensorFlow, and what is written ----------------------------------------------------


@pytest.mark.parametrize("name", ["empty", "examples"])
@pytest.mark.parametrize(("suffix", "given_name"), [(".gz", "GZIP"), (".zlib", "ZLIB")])
def test_files_written_by_tensorflow_are_read(name, suffix, given_name):
    expected = list(tfw.read_records(GOLDEN / f"{name}.tfrecord"))
    for kind in ("auto", given_name):
        found = tfw.read_records(GOLDEN / f"{name}.tfrecord{suffix}", kind)
        assert expected == list(found)


@pytest.mark.parametrize(
    ("name", "suffix", "header"),
    [("", "", ""), ("GZIP", ".gz", "1f8b0800000000000003"), ("ZLIB", ".zlib", "789c")],
)
def test_empty_files_and_headers_are_as_tensorflow_writes_them(path, name, suffix, header):
    options = tfw.TFRecordOptions(name, compression_level=6)
    tfw.write_records(path, [], options)
    assert (GOLDEN / f"empty.tfrecord{suffix}").read_bytes() == path.read_bytes()
    tfw.write_records(path, RECORDS, options)
    assert path.read_bytes().startswith(bytes.fromhex(header))


class ForeignDeflater:
    """As zlib's on Windows (10) and macOS (19), which name their system in the header."""

    def __init__(self, name, *parameters):
        self._name, self._deflater, self._made = name, COMPRESSOBJ(*parameters), 0

    def compress(self, data):
        return self._named(self._deflater.compress(data))

    def flush(self, *mode):
        return self._named(self._deflater.flush(*mode))

    def _named(self, piece):
        found = bytearray(piece)
        if 0 <= 9 - self._made < len(found):
            found[9 - self._made] = self._name
        self._made += len(found)
        return bytes(found)


COMPRESSOBJ = zlib.compressobj


@pytest.mark.parametrize("name", [10, 19])
def test_gzip_files_have_the_same_bytes_on_every_system(path, name, monkeypatch):
    options = tfw.TFRecordOptions("GZIP", compression_level=6)
    tfw.write_records(path, RECORDS, options)
    expected = path.read_bytes()
    compression._names_another_system.cache_clear()

    def made(*parameters, wbits=0):
        return ForeignDeflater(name, *(parameters or (1, zlib.DEFLATED, wbits)))

    monkeypatch.setattr(zlib, "compressobj", made)
    try:
        tfw.write_records(path, RECORDS, options)
    finally:
        compression._names_another_system.cache_clear()
    assert expected == path.read_bytes()


def test_parameters_reach_zlib(tmp_path):
    def size(options, **arguments):
        with tfw.TFRecordWriter(tmp_path / "data", options, **arguments) as writer:
            writer.write_many([b"some text, " * 50] * 200)
        data = (tmp_path / "data").read_bytes()
        assert data.startswith(b"\x1f\x8b")
        assert 200 == len(list(tfw.read_records(tmp_path / "data")))
        return len(data)

    usual = size("GZIP", compression_level=6)
    assert 200 * 550 < size("GZIP", compression_level=0)
    assert usual == size(tfw.TFRecordOptions("GZIP", compression_level=0), compression_level=6)
    assert usual < size(tfw.TFRecordOptions("GZIP", compression_strategy=zlib.Z_HUFFMAN_ONLY))
    assert usual == size(tfw.TFRecordOptions("GZIP", window_bits=31, mem_level=9))
    assert usual < size(tfw.TFRecordOptions("GZIP", window_bits=9, mem_level=1))
    assert usual < size(tfw.TFRecordOptions("GZIP", flush_mode=zlib.Z_FULL_FLUSH))


@pytest.mark.parametrize(
    "arguments",
    [{"window_bits": -15}, {"window_bits": 8}, {"mem_level": 10}, {"compression_level": 10}],
)
def test_parameters_that_zlib_does_not_know_are_refused(tmp_path, arguments):
    with pytest.raises(ValueError, match=r"window_bits|zlib does not know"):
        tfw.TFRecordWriter(tmp_path / "data", tfw.TFRecordOptions("ZLIB", **arguments))


def test_flush_ends_a_block_so_that_a_reader_sees_all(tmp_path):
    for name in ("GZIP", "ZLIB"):
        with tfw.TFRecordWriter(tmp_path / name, name) as writer:
            for i in range(3):
                writer.write(b"record %d" % i)
                writer.flush()
                outcome = read_outcome(tmp_path / name, on_corrupt="tail")
                assert [b"record %d" % k for k in range(i + 1)] == outcome.records


# ---- Work and memory in proportion ---------------------------------------------------------------


MEMBER = gzip.compress(frame(b"x" * 40))
LATE = MEMBER[:-5] + bytes([MEMBER[-5] ^ 1]) + MEMBER[-4:]
# One that inflates to a header and a bit, and then breaks: as short as can be.
BROKEN = gzip.compress(bytes(12))[:-8] + b"\xff"


# What is repeated, the policy, and at most so many calls and bytes.
WORK = {
    "intact": (MEMBER, "raise", 3, 60),
    "intact, skip": (MEMBER, "skip", 3, 60),
    "torn": (MEMBER[:-1], "skip", 7, 80),
    "wrong checksum": (LATE, "skip", 7, 80),
    "torn earlier": (MEMBER[:-12], "skip", 40, 300),
    "broken at once": (BROKEN, "skip", 40, 200),
    "beginnings": (b"\x1f\x8b\x08\0" * 10, "skip", 25, 400),
    "torn between intact ones": (MEMBER + MEMBER[:30], "skip", 15, 300),
    "ends between intact ones": (MEMBER + MEMBER[20:], "skip", 40, 300),
    "flipped bits between intact ones": (MEMBER + flip(MEMBER, 8 * 15), "skip", 40, 300),
}


@pytest.mark.parametrize("case", WORK)
def test_the_work_for_many_members_is_in_proportion(path, monkeypatch, case):
    """Calls per member, and bytes that are inflated or copied per byte; both whatever their
    number. A call takes about a microsecond, a byte at most 10 ns."""
    member, policy, calls, num_bytes = WORK[case]
    modules = {name: getattr(inflate, name) for name in ("zlib", "_fast")}
    for number in (100, 1000):
        work = Counter()
        for name, module in modules.items():
            monkeypatch.setattr(inflate, name, CountedZlib(work, module))
        path.write_bytes(MEMBER + member * number)
        read_outcome(path, "GZIP", on_corrupt=policy)
        assert work["calls"] <= calls * number + 100
        assert work["bytes"] <= num_bytes * len(member) * number + (1 << 18)


# ---- Files that change while they are read again ------------------------------------------------

LONG = [random.Random(i).randbytes(1000) for i in range(200)]
INTACT = gzip.compress(file_of(LONG))
DAMAGED = INTACT[:-9] + bytes([INTACT[-9] ^ 0x55]) + INTACT[-8:]


@pytest.mark.parametrize("policy", ["raise", "skip", "tail", "stop"])
@pytest.mark.parametrize("left", [0, 5, 50, 2000, 60_000])
@pytest.mark.parametrize("content", ["the same", "zeros", "a short member"])
def test_a_file_that_is_cut_while_it_is_read_again_is_damaged(
    path, monkeypatch, policy, left, content
):
    """After damage the stream is inflated once more, from its beginning."""
    path.write_bytes(DAMAGED)
    rewind = FileSource.rewind

    def cut(self, offset):
        new = {"the same": DAMAGED, "zeros": bytes(left), "a short member": MEMBER}[content]
        path.write_bytes(new[:left])
        rewind(self, offset)

    monkeypatch.setattr(FileSource, "rewind", cut)
    monkeypatch.setattr(system, "num_cpus", lambda: 1)
    outcome = read_outcome(path, on_corrupt=policy)
    assert LONG[: len(outcome.records)] == outcome.records[: len(LONG)]
    assert outcome.damage or outcome.skipped
