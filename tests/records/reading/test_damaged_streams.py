"""Damaged gzip and zlib streams: all whole records come, and what is lost is in proportion."""

from __future__ import annotations

import gzip
import io
import struct
import warnings
import zlib

import pytest

import tfwire as tfw
from helpers.reading import Bytes, inflatable, read_outcome
from helpers.reference import Damage, Outcome, Region, file_of, flip, frame, header, read

RECORDS = [b"first", b"", b"the third record", b"4"]
DATA = file_of(RECORDS)

# Each so many-th bit or cut by day, of all places within a byte and a header; each by night.
some = pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])


LONGER = [bytes([i]) * (i * 37 % 90) for i in range(30)]
COMPRESS = {"GZIP": lambda data: gzip.compress(data, mtime=0), "ZLIB": zlib.compress}


@some
@pytest.mark.parametrize("name", COMPRESS)
def test_every_cut_of_a_compressed_file_is_an_error_after_all_whole_records(
    outcome_of, name, every
):
    data = COMPRESS[name](file_of(LONGER))
    for size in range(1, len(data), every):
        expected = read(inflatable(data[:size], name)[0], "stop").records
        outcome = outcome_of(data[:size], name)
        assert expected == outcome.records, size
        end = len(file_of(expected))
        assert Damage(len(expected), end, "compressed stream") == outcome.damage, size


@some
@pytest.mark.parametrize("name", COMPRESS)
def test_every_flipped_bit_of_a_compressed_file_is_an_error(outcome_of, name, every):
    """Some bits mean nothing to the content: time and system, and what fills the last byte."""
    data = COMPRESS[name](file_of(RECORDS * 3))
    for bit in range(0, 8 * len(data), every):
        damaged = flip(data, bit)
        content, error = inflatable(damaged, name)
        outcome = outcome_of(damaged, name)
        assert read(content, "stop").records == outcome.records, bit
        assert (error is None) == (outcome.damage is None), bit


def test_a_torn_compressed_file_is_tolerated_as_a_torn_tail(outcome_of):
    data = gzip.compress(file_of(LONGER))
    cut = data[: len(data) * 2 // 3]
    whole = read(inflatable(cut, "GZIP")[0], "tail")
    outcome = outcome_of(cut, on_corrupt="tail")
    assert whole.records == outcome.records
    assert [Region(len(cut), len(cut), len(whole.records), "compressed stream")] == [
        region for region in outcome.skipped if region.reason == "compressed stream"
    ]
    damaged = flip(data, 8 * len(data) - 1)
    assert "compressed stream" == outcome_of(damaged, on_corrupt="tail").damage.reason


def test_reading_goes_on_at_the_next_gzip_member():
    members = [gzip.compress(file_of(LONGER[i : i + 10]), mtime=0) for i in (0, 10, 20)]
    first, second = len(members[0]), len(members[0]) + len(members[1])
    for at in range(3, len(members[1]), 5):
        data = members[0] + flip(members[1], 8 * at + 1) + members[2]
        outcome = read_outcome(Bytes(data), "GZIP", on_corrupt="skip")
        assert LONGER[:10] == outcome.records[:10]
        assert LONGER[20:] == outcome.records[-10:]
        for region in outcome.skipped:
            if region.reason == "compressed stream":
                assert first <= region.begin < region.end == second


@pytest.mark.parametrize("record", [b"", b"x", bytes(1000)])
def test_short_members_give_their_records_though_the_ends_are_damaged(record):
    """Also one after the other; what a stream says after its content costs no record."""
    records = [b"%d" % i + record for i in range(20)] if record else [b""] * 3
    members = [gzip.compress(frame(record), mtime=0) for record in records]
    damaged = b"".join(flip(member, 8 * len(member) - 40) for member in members)
    for source in (Bytes(damaged), io.BytesIO(damaged)):
        outcome = read_outcome(source, "GZIP", on_corrupt="skip")
        assert records == outcome.records
        assert len(records) == len(outcome.skipped)


def test_a_member_that_lost_its_end_does_not_take_the_next_one_with_it():
    """Inflating runs on into the next member; the search goes back, where the source can."""
    members = [gzip.compress(file_of(LONGER[i : i + 10]), mtime=0) for i in (0, 10)]
    for cut in range(1, len(members[0]) - 20, 5):
        source = io.BytesIO(members[0][:-cut] + members[1])
        outcome = read_outcome(source, on_corrupt="skip")
        assert LONGER[10:20] == outcome.records[-10:], cut


def test_no_record_reaches_across_what_was_lost():
    """A record of eight bytes that is torn right after its header, and the header of the next:
    length and checksum of the latter are a payload of eight bytes and its checksum."""
    first, second = file_of([b"whole", b"8 bytes."]), file_of([b"second"])
    assert [b"whole", struct.pack("<Q", 6)] == read(first[: 21 + 12] + second, "skip").records[:2]
    torn = gzip.compress(first[: 21 + 12], mtime=0)[:-8]
    outcome = read_outcome(io.BytesIO(torn + gzip.compress(second)), on_corrupt="skip")
    assert [b"whole", b"second"] == outcome.records
    assert Region(21, 33, 1, "truncated") in outcome.skipped


def test_a_torn_stored_member_does_not_give_the_records_of_the_next_one_twice():
    """Wherever the first is cut, its stored block runs on into the second, whose records verify
    in there; then they are found again where they belong."""
    records = [b"%d " % i + bytes(range(i, i + 40)) for i in range(12)]
    first, second = (gzip.compress(file_of(half), 0) for half in (records[:6], records[6:]))
    for cut in range(1, len(first)):
        reader = tfw.read_records(io.BytesIO(first[:cut] + second), "GZIP", on_corrupt="skip")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [next(reader), *reader]
        assert records[6:] == found[-6:], cut
        assert records[: len(found) - 6] == found[:-6], cut


def test_neither_damage_nor_a_member_that_ended_hide_what_comes_again():
    """The stored block of the first member runs on over the second one, in which a record is
    damaged, into the third."""
    first = [b"first %d" % i for i in range(40)]
    torn = gzip.compress(file_of(first), 0, mtime=0)
    others = [[b"second %d" % i for i in range(6)], [b"third %d" % i for i in range(9)]]
    contents = [bytearray(file_of(records)) for records in others]
    contents[0][3 * 24 + 12] ^= 1
    del others[0][3]
    second, third = (gzip.compress(content, 0, mtime=0) for content in contents)
    for run_on in range(len(second) + 1, len(second) + len(third)):
        source = io.BytesIO(torn[: len(torn) - 8 - run_on] + second + third)
        outcome = read_outcome(source, "GZIP", on_corrupt="skip")
        rest = [*others[0], *others[1]]
        assert rest == outcome.records[-len(rest) :], run_on
        assert first[: len(outcome.records) - len(rest)] == outcome.records[: -len(rest)], run_on


def test_equal_records_of_two_members_come_twice():
    """Though damage comes before the first one, and its member has lost most of its trailer."""
    same, bad = frame(b"the same"), flip(frame(b"bad"), 8 * 12)
    for level in (0, 6):
        first, second = (gzip.compress(content, level) for content in (bad + same, same))
        for cut in range(9):
            source = io.BytesIO(first[: len(first) - cut] + second)
            outcome = read_outcome(source, "GZIP", on_corrupt="skip")
            assert [b"the same"] * 2 == outcome.records, cut


def test_without_another_member_the_loss_reaches_to_the_end(outcome_of):
    data = gzip.compress(file_of(LONGER), mtime=0)
    damaged = data[: len(data) // 2] + b"\xff" * 20 + data[len(data) // 2 + 20 :]
    outcome = outcome_of(damaged, on_corrupt="skip")
    assert LONGER[: len(outcome.records)] == outcome.records != []
    lost = [region for region in outcome.skipped if region.reason == "compressed stream"]
    assert [len(damaged)] == [region.end for region in lost]


@pytest.mark.parametrize("name", COMPRESS)
def test_rubbish_after_a_compressed_stream_is_an_error_and_zeros_are_padding(outcome_of, name):
    data = COMPRESS[name](DATA)
    assert Outcome(RECORDS, []) == outcome_of(data + bytes(1000), name)
    outcome = outcome_of(data + b"rubbish", name)
    assert Outcome(RECORDS, [], Damage(4, len(DATA), "compressed stream")) == outcome


def test_a_bomb_is_stopped_at_max_record_size():
    size = 1 << 24
    bomb = gzip.compress(struct.pack("<Q", size) + header(size)[8:] + bytes(size))
    assert len(bomb) < size // 500
    outcome = read_outcome(Bytes(bomb), max_record_size=1 << 20)
    assert Outcome([], [], Damage(0, 0, "too large")) == outcome
