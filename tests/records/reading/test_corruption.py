"""Damage: every bit, every cut, every policy, with outcomes that the reference computes."""

from __future__ import annotations

import gzip
import os
import pickle

import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.reading import Bytes, read_outcome
from helpers.reference import Damage, Outcome, Region, file_of, flip, frame, header, read

POLICIES = ["raise", "skip", "tail", "stop"]
RECORDS = [b"first", b"", b"the third record", b"4"]
DATA = file_of(RECORDS)
OFFSETS = [len(file_of(RECORDS[:i])) for i in range(len(RECORDS))]


def reaching_to_the_end(outcome: Outcome, policy: str, data: bytes) -> Outcome:
    """An object is not read on after the damage that stops: how far it reaches is not known."""
    if policy != "stop":
        return outcome
    assert all(region.begin < region.end <= len(data) for region in outcome.skipped)
    skipped = [region._replace(end=len(data)) for region in outcome.skipped]
    return outcome._replace(skipped=skipped)


# ---- Plain files ------------------------------------------------------------------------------


# Each so many-th bit or cut by day, of all places within a byte and a header; each by night.
some = pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])


@some
@pytest.mark.parametrize("policy", POLICIES)
def test_every_flipped_bit_gives_what_the_policy_says(outcome_of, policy, every):
    for bit in range(0, 8 * len(DATA), every):
        damaged = flip(DATA, bit)
        outcome = outcome_of(damaged, "", on_corrupt=policy)
        assert read(damaged, policy) == reaching_to_the_end(outcome, policy, damaged), bit


@pytest.mark.parametrize("policy", POLICIES)
def test_every_cut_gives_what_the_policy_says(outcome_of, policy):
    for size in range(len(DATA)):
        outcome = outcome_of(DATA[:size], on_corrupt=policy)
        assert read(DATA[:size], policy) == reaching_to_the_end(outcome, policy, DATA[:size]), size


@some
def test_a_flipped_bit_never_goes_unnoticed_and_costs_one_record(outcome_of, every):
    """The same from outside, without the reference's rules."""
    for bit in range(1, 8 * len(DATA), every):
        outcome = outcome_of(flip(DATA, bit), "", on_corrupt="skip")
        hit = max(i for i, offset in enumerate(OFFSETS) if offset <= bit // 8)
        assert RECORDS[:hit] + RECORDS[hit + 1 :] == outcome.records
        [region] = outcome.skipped
        assert (OFFSETS[hit], hit) == (region.begin, region.record_index)
        assert (OFFSETS + [len(DATA)])[hit + 1] == region.end


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_gives_what_the_policy_says(data):
    """Pieces of files, headers of any length and rubbish, in any order."""
    piece = st.one_of(
        st.binary(max_size=30).map(frame),
        st.integers(0, 2**64 - 1).map(header),
        st.binary(max_size=20),
        st.binary(max_size=20).map(lambda record: frame(record)[:-3]),
    )
    damaged = b"".join(data.draw(st.lists(piece, max_size=8)))
    policy = data.draw(st.sampled_from(POLICIES))
    outcome = read_outcome(Bytes(damaged, 13), "", on_corrupt=policy)
    assert read(damaged, policy) == reaching_to_the_end(outcome, policy, damaged)


def test_records_inside_a_damaged_record_are_taken_for_records():
    """The documented trap: the search after a damaged header cannot distinguish them."""
    inner = file_of([b"inner 0", b"inner 1"])
    data = file_of([b"before", inner, b"after"])
    header_hit = flip(data, 8 * (len(frame(b"before")) + 2))
    outcome = read_outcome(Bytes(header_hit), "", on_corrupt="skip")
    assert [b"before", b"inner 0", b"inner 1", b"after"] == outcome.records
    payload_hit = flip(data, 8 * (len(frame(b"before")) + 40))
    outcome = read_outcome(Bytes(payload_hit), "", on_corrupt="skip")
    assert [b"before", b"after"] == outcome.records


@pytest.mark.parametrize("length", [2**31, 2**40, 2**62, 2**63, 2**64 - 1])
@pytest.mark.parametrize("limit", [2**30, None])
def test_a_hostile_length_is_an_error_after_the_records_before_it(path, length, limit):
    path.write_bytes(frame(b"good") + header(length) + b"some bytes")
    for source in (path, Bytes(path.read_bytes())):
        outcome = read_outcome(source, "", max_record_size=limit)
        assert [b"good"] == outcome.records
        assert (1, len(frame(b"good"))) == outcome.damage[:2]
        assert outcome.damage.reason in ("too large", "truncated")


def test_a_record_above_max_record_size_is_damage():
    data = file_of([b"12345", b"123456", b"1"])
    outcome = read_outcome(Bytes(data), max_record_size=5)
    assert Outcome([b"12345"], [], Damage(1, 21, "too large")) == outcome
    outcome = read_outcome(Bytes(data), max_record_size=5, on_corrupt="skip")
    assert Outcome([b"12345", b"1"], [Region(21, 43, 1, "too large")]) == outcome


SPEC = {"a": tfw.FixedLenFeature([], tfw.string)}
ROWS = tfw.encode_examples([{"a": "x" * size} for size in (1, 99, 2)])
# How each gives the sizes of the values in a file.
LIMITED = {
    "parse_file": lambda path, **o: tfw.Parser(SPEC).parse_file(path, 1, **o),
    "2 threads": lambda path, **o: tfw.Parser(SPEC).parse_file(path, 1, num_threads=2, **o),
    "dataset": lambda path, **o: tfw.TFRecordDataset(path, **o).batch(1).parse_example(SPEC),
    "one by one": lambda path, **o: tfw.TFRecordDataset(path, **o).parse_example(SPEC).batch(1),
    "in turn": lambda path, **o: (
        tfw.TFRecordDataset([path, os.devnull], num_parallel_reads=2, **o)
        .batch(1)
        .parse_example(SPEC)
    ),
    "shuffled": lambda path, **o: (
        tfw.TFRecordDataset(path, **o).shuffle(1).batch(1).parse_example(SPEC)
    ),
}


@pytest.mark.parametrize("name", LIMITED)
def test_readers_of_batches_have_the_same_limit(tmp_path, name):
    def sizes(**options):
        for batch in LIMITED[name](path, **options):
            found.append(len(batch["a"][0]))
        return found

    path, found = tmp_path / "data", []
    path.write_bytes(file_of(ROWS))
    with pytest.raises(tfw.DataLossError, match="above the limit") as caught:
        sizes(max_record_size=99)
    assert ([1], 1, "too large") == (found, caught.value.record_index, caught.value.reason)
    for limit in (len(ROWS[1]), None, 2**62):
        found = []
        assert [1, 99, 2] == sizes(max_record_size=limit)
    found = []
    with pytest.warns(tfw.TfwireWarning):
        assert [1, 2] == sizes(max_record_size=99, on_corrupt="skip")


def test_an_index_has_no_limit(path):
    path.write_bytes(file_of(ROWS))
    assert ROWS == list(tfw.TFRecordDataset(path, indexed=True, max_record_size=None))
    with pytest.raises(ValueError, match=r"indexed excludes .*max_record_size"):
        tfw.TFRecordDataset(path, indexed=True, max_record_size=99)


def test_without_verify_only_headers_are_checked():
    data = bytearray(DATA)
    data[13] ^= 1
    assert [b"fhrst"] + RECORDS[1:] == list(tfw.read_records(Bytes(data), verify=False))
    data[0] ^= 1
    with pytest.raises(tfw.DataLossError):
        list(tfw.read_records(Bytes(data), "", verify=False))


# ---- What an error says -----------------------------------------------------------------------


def test_an_error_names_file_record_offset_and_reason(path):
    path.write_bytes(flip(DATA, 8 * (OFFSETS[2] + 15)))
    with pytest.raises(tfw.DataLossError) as caught:
        list(tfw.read_records(path))
    error = caught.value
    assert (path, OFFSETS[2], 2, "data crc") == (
        error.path,
        error.offset,
        error.record_index,
        error.reason,
    )
    assert str(error).startswith(f"{path}: record 2 at byte {OFFSETS[2]}: ")
    assert "third" not in str(error)  # never payload
    copy = pickle.loads(pickle.dumps(error))
    assert (str(error), vars(error)) == (str(copy), vars(copy))


GZIP = gzip.compress(DATA, mtime=0)
TEXT = b"name,label\ncat,1\ndog,2\n"


@pytest.mark.parametrize(
    ("content", "given", "message"),
    [
        (GZIP, "", r"gzip.*compression_type='auto'"),
        (DATA, "GZIP", "compression_type='auto'"),
        (GZIP[:15], "GZIP", "^(?!.*'auto')"),  # it was cut
        (TEXT, "auto", r"not a TFRecord file\?.*text.*GZIP and ZLIB"),
        (TEXT, "GZIP", "this is no GZIP stream"),
    ],
)
@pytest.mark.parametrize("reader", [tfw.read_records, tfw.TFRecordDataset])
def test_a_file_of_another_kind_is_called_by_its_name(path, content, given, message, reader):
    path.write_bytes(content)
    with pytest.raises(tfw.DataLossError, match=message):
        list(reader(path, given))
    if content in (GZIP, DATA):
        assert RECORDS == list(reader(path, "auto"))


def test_after_an_error_the_iterator_is_at_its_end():
    records = tfw.read_records(Bytes(DATA[:-1]))
    with pytest.raises(tfw.DataLossError):
        list(records)
    assert [] == list(records)
    with pytest.raises(StopIteration):
        next(records)


def test_what_is_left_out_is_counted_in_one_warning_that_points_to_the_caller(path):
    path.write_bytes(flip(flip(DATA, 100), 8 * (OFFSETS[2] + 15)))
    with pytest.warns(UserWarning, match=r"2 damaged region.*53 bytes.*record 0, byte 0") as caught:
        assert [b"", b"4"] == list(tfw.read_records(path, on_corrupt="skip"))
    assert [__file__] == [warning.filename for warning in caught]


def test_regions_are_listed_over_all_files(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    paths[0].write_bytes(flip(DATA, 100))
    paths[1].write_bytes(DATA)
    paths[2].write_bytes(DATA[:-1])
    records = tfw.read_records(paths, on_corrupt="skip")
    with pytest.warns(UserWarning, match="left out"):
        assert RECORDS[1:] + RECORDS + RECORDS[:-1] == list(records)
    expected = [
        tfw.SkippedRegion(paths[0], 0, 21, 0, "data crc", 1, True),
        tfw.SkippedRegion(paths[2], OFFSETS[3], len(DATA) - 1, 3, "truncated"),
    ]
    assert expected == records.skipped


def test_records_between_damaged_ones_keep_their_numbers_and_places(path):
    """They come in one batch; also where a parser tells which of them does not fit."""
    bad = bytearray(frame(b"bad"))
    bad[-1] ^= 1
    path.write_bytes((bytes(bad) + frame(b"good")) * 50)
    expected = [(path, 2 * i + 1, 39 * i + 19, b"good") for i in range(50)]
    records = tfw.read_records(path, on_corrupt="skip", receipt=True)
    with pytest.warns(UserWarning, match="left out 50 damaged"):
        assert expected == list(records.with_positions())
    assert tfw.Receipt.of([b"good"] * 50) == records.receipt
    assert (50, 50 * 19) == (records.skipped.num_regions, records.skipped.num_bytes)
    assert tfw.RecordPosition(100, 50 * 39) == records.position
    parser = tfw.Parser({"x": tfw.FixedLenFeature([], tfw.int64)})
    for num_threads in (1, 2):
        batches = parser.parse_file(
            path, on_corrupt="skip", on_parse_error="skip", num_threads=num_threads
        )
        with pytest.warns(UserWarning, match="left out 50"):
            assert [] == list(batches)
        assert list(range(1, 100, 2)) == [error.record_index for error in batches.parse_errors]
