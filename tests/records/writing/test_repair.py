"""Repair and correction, and the arithmetic that correction rests on."""

import gzip
import os
import random
import shutil
import zlib
from functools import reduce

import numpy as np
import pytest

import tfwire as tfw
from helpers.reference import flip
from tfwire._records.reading.verify_files import verify_file
from tfwire._records.writing.repair_file import repair_file

RECORDS = [b"", b"x", b"some payload", bytes(range(200))]


def write(path, records):
    tfw.write_records(path, records)
    return path.read_bytes()


def flipped(data, *bits):
    return reduce(flip, bits, data)


def repaired(tmp_path, damaged, **options):
    (tmp_path / "in").write_bytes(damaged)
    report = repair_file(tmp_path / "in", tmp_path / "out", overwrite=True, **options)
    assert damaged == (tmp_path / "in").read_bytes()
    return report, (tmp_path / "out").read_bytes()


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("out", "auto", "ZLIB"),
        ("out.tfrecord.gz", "auto", "GZIP"),
        ("out.gz", "", ""),
        ("out", "gzip", "GZIP"),
    ],
)
def test_the_new_file_is_compressed_as_asked_else_as_its_name_says(tmp_path, name, asked, expected):
    tfw.write_records(tmp_path / "in", RECORDS, "ZLIB")
    report = repair_file(tmp_path / "in", tmp_path / name, out_compression_type=asked)
    assert "ZLIB" == report.compression
    new = verify_file(tmp_path / name)
    assert (expected, len(RECORDS)) == (new.compression, new.num_records)
    with pytest.raises(ValueError, match="Not a valid out_compression_type"):
        repair_file(tmp_path / "in", tmp_path / "x", out_compression_type="xz")
    assert not (tmp_path / "x").exists()


# ---- Correction -------------------------------------------------------------------------------


def test_a_bit_anywhere_in_a_file_is_corrected(tmp_path):
    """Headers, payloads and footers, in steps of eleven: the tests in C take every bit."""
    data = write(tmp_path / "whole", RECORDS)
    for bit in range(0, 8 * len(data), 11):
        report, out = repaired(tmp_path, flipped(data, bit), correct=True)
        assert data == out
        assert [] == report.skipped
        (flip,) = report.flipped_bits
        assert (bit // 8, bit % 8, True) == (flip.offset, flip.bit, flip.corrected)


def test_nothing_is_corrected_without_being_asked_to(tmp_path):
    data = write(tmp_path / "whole", RECORDS)
    report, out = repaired(tmp_path, flipped(data, 8 * 30))
    assert (3, [], 1) == (report.num_records, report.flipped_bits, len(report.skipped))
    assert out == data[:16] + data[33:]


def test_two_flipped_bits_in_a_record_are_lost_not_guessed(tmp_path):
    data = write(tmp_path / "whole", RECORDS)
    begin = len(data) - 216  # of the last record
    rng = random.Random(1)
    for _ in range(60):
        bits = rng.sample(range(8 * begin, 8 * len(data)), 2)
        report, out = repaired(tmp_path, flipped(data, *bits), correct=True)
        assert [] == report.flipped_bits
        assert [(begin, len(data))] == [(r.begin, r.end) for r in report.skipped]
        assert data[:begin] == out


def test_one_flipped_bit_in_each_of_many_records_is_corrected(tmp_path):
    records = [os.urandom(50 + i) for i in range(100)]
    data = write(tmp_path / "whole", records)
    begin, bits = 0, []
    for i, record in enumerate(records):
        bits.append(8 * begin + i * 31 % (8 * (len(record) + 16)))
        begin += len(record) + 16
    report, out = repaired(tmp_path, flipped(data, *bits), correct=True)
    assert data == out
    assert bits == [8 * flip.offset + flip.bit for flip in report.flipped_bits]
    assert list(range(100)) == [flip.record_index for flip in report.flipped_bits]


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_content_damaged_before_it_was_compressed_is_corrected(tmp_path, compress):
    data = write(tmp_path / "whole", RECORDS)
    report, out = repaired(tmp_path, compress(flipped(data, 8 * 45)), correct=True)
    assert (45, True) == (report.flipped_bits[0].offset, report.flipped_bits[0].corrected)
    assert data == zlib.decompress(out, 47)


def ambiguous_footer(data):
    """A bit of the only record's footer that flips an even run of bits of the unmasked CRC, as two
    bits of the payload would."""
    stored = int.from_bytes(data[-4:], "little")
    for bit in range(32):
        run = tfw.checksum.unmask_crc(stored ^ 1 << bit) ^ tfw.checksum.unmask_crc(stored)
        if run.bit_count() % 2 == 0:
            return 8 * len(data) - 32 + bit
    raise AssertionError("no such bit")


def test_an_ambiguous_bit_is_reported_and_corrected_on_demand_only(tmp_path):
    """In a long record some two bits of the payload look like such a bit of the footer."""
    data = write(tmp_path / "whole", [random.Random(5).randbytes(300_000), b"next"])
    end = len(data) - 20
    damaged = flipped(data, ambiguous_footer(data[:end]))
    report, out = repaired(tmp_path, damaged, correct=True)
    assert [(True, False)] == [(f.ambiguous, f.corrected) for f in report.flipped_bits]
    assert [(0, end)] == [(region.begin, region.end) for region in report.skipped]
    assert data[end:] == out
    report, out = repaired(tmp_path, damaged, correct=True, accept_ambiguous=True)
    assert [(True, True)] == [(f.ambiguous, f.corrected) for f in report.flipped_bits]
    assert data == out


def test_a_corrected_header_leads_past_records_within_its_payload(tmp_path):
    """Resynchronising cannot tell the records of a file within a record from others."""
    inner = write(tmp_path / "inner", [b"one", b"two"])
    data = write(tmp_path / "whole", [inner, b"next"])
    damaged = flipped(data, 3)
    report, out = repaired(tmp_path, damaged)
    assert [b"one", b"two", b"next"] == list(tfw.read_records(tmp_path / "out"))
    assert [(0, 12), (50, 54)] == [(region.begin, region.end) for region in report.skipped]
    report, out = repaired(tmp_path, damaged, correct=True)
    assert data == out


# ---- Repair -----------------------------------------------------------------------------------


def test_every_cut_keeps_all_whole_records(tmp_path):
    data = write(tmp_path / "whole", RECORDS)
    ends = np.cumsum([0] + [len(record) + 16 for record in RECORDS]).tolist()
    for cut in range(17, len(data)):
        whole = max(end for end in ends if end <= cut)
        report, out = repaired(tmp_path, data[:cut])
        assert data[:whole] == out
        expected = [] if whole == cut else [(whole, cut, "truncated")]
        assert expected == [(r.begin, r.end, r.reason) for r in report.skipped]


def test_a_file_without_records_leaves_no_output(tmp_path):
    (tmp_path / "in").write_bytes(b"no record file at all, just text")
    with pytest.raises(tfw.DataLossError, match="no record verifies"):
        repair_file(tmp_path / "in", tmp_path / "out")
    assert ["in"] == os.listdir(tmp_path)


@pytest.mark.posix("it makes a link")
def test_output_is_never_replaced_by_accident(tmp_path):
    write(tmp_path / "in", RECORDS)
    (tmp_path / "out").write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        repair_file(tmp_path / "in", tmp_path / "out")
    os.symlink(tmp_path / "in", tmp_path / "link")
    with pytest.raises(shutil.SameFileError):
        repair_file(tmp_path / "in", tmp_path / "link", overwrite=True)
    assert b"precious" == (tmp_path / "out").read_bytes()


def test_output_that_cannot_be_written_leaves_no_trace(tmp_path):
    write(tmp_path / "in", RECORDS)
    with pytest.raises((NotADirectoryError, FileNotFoundError)):  # the latter on Windows
        repair_file(tmp_path / "in", tmp_path / "in" / "out")
    with pytest.raises(FileNotFoundError):
        repair_file(tmp_path / "in", tmp_path / "nowhere" / "out")
    assert ["in"] == os.listdir(tmp_path)


# ---- Verification -----------------------------------------------------------------------------


def test_the_checksum_of_a_file_needs_no_second_pass(tmp_path):
    """It follows from the records' own, also where payloads are long; from a pipe, too."""
    records = [b"", os.urandom(5000), b"short", os.urandom(300_000), *[b"y"] * 1000]
    data = write(tmp_path / "whole", records)
    expected = tfw.crc32c(data)
    assert expected == verify_file(tmp_path / "whole", file_crc32c=True).file_crc32c
    with open(tmp_path / "whole", "rb") as file:
        assert expected == verify_file(file, file_crc32c=True).file_crc32c
    assert verify_file(tmp_path / "whole").file_crc32c is None


def test_progress_ends_with_the_size_of_the_file(tmp_path):
    data = write(tmp_path / "whole", [os.urandom(1000) for _ in range(2000)])
    for name, content in {"plain": data, "gzip": gzip.compress(data)}.items():
        (tmp_path / name).write_bytes(content)
        seen = []
        verify_file(tmp_path / name, progress=seen.append)
        assert sorted(seen) == seen
        assert len(content) == seen[-1]


# ---- The code ---------------------------------------------------------------------------------


def powers_of_x(count):
    """x^0, x^1, ... modulo the Castagnoli polynomial, reflected."""
    found = np.empty(count, np.uint32)
    power = 0x80000000
    for i in range(count):
        found[i] = power
        power = (power >> 1) ^ (0x82F63B78 if power & 1 else 0)
    return found


def coincidences_of_pairs(bits):
    """How often two pairs of bits of a codeword have one syndrome."""
    powers = powers_of_x(bits)
    i, j = np.triu_indices(bits, 1)
    sums = np.sort(powers[i] ^ powers[j])
    return int(np.count_nonzero(sums[1:] == sums[:-1]))


@pytest.mark.slow
def test_three_flipped_bits_look_like_one_only_in_longer_payloads():
    """Four bits that cancel out exist from 5244 bits of data and a CRC of 32 on, 656 bytes."""
    assert 0 == coincidences_of_pairs(5243 + 32)
    assert coincidences_of_pairs(5244 + 32) > 0


def test_two_flipped_bits_of_a_payload_never_look_like_one():
    """Every power of x has an odd number of bits, since x + 1 divides the polynomial."""
    powers = powers_of_x(100_000)
    bits = np.unpackbits(powers.view(np.uint8)).reshape(-1, 32).sum(axis=1)
    assert (bits % 2 == 1).all()


def test_powers_of_x_repeat_after_256_mebibytes():
    """Not before, as 2^31 - 1 is a prime; combining multiplies by them."""
    one = 0x80000000
    assert one == tfw.checksum.combine_crc32c(one, 0, 2**31 - 1)
    assert one != tfw.checksum.combine_crc32c(one, 0, 1)
