"""Files that are damaged at one record, in every way, and what parsing must give of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import tfwire as tfw
from cases.results import plain_dict
from helpers.reference import FOOTER, HEADER, frame, read

BATCH, COUNT = 4, 12
LIMIT = 2000  # max_record_size: only the kind "too long" has longer records


class Records(NamedTuple):
    """Records of one specification.

    Attributes:
        parser: Of the specification.
        record: Makes the n-th record.
        misfit: A record that does not fit.
    """

    parser: Any
    record: Callable[[int], bytes]
    misfit: bytes


def sequence(n: int) -> bytes:
    return tfw.encode_sequence_example(
        {"n": n}, {"s": [b"s" * (n % 4)] * (n % 5), "x": [[n, 0.5]] * (n % 3)}
    )


def ragged(n: int) -> bytes:
    rows = [1, 2, 0][: n % 4]
    return tfw.encode_example({"v": list(range(sum(rows))), "lengths": rows})


SPECIFICATIONS = {
    "numbers": Records(
        tfw.Parser({"n": tfw.FixedLenFeature([], tfw.int64), "x": tfw.VarLenFeature(tfw.float32)}),
        lambda n: tfw.encode_example({"n": n, "x": [n / 2] * (n % 3)}),
        tfw.encode_example({"n": "a string"}),
    ),
    "fixed numbers": Records(
        tfw.Parser({"x": tfw.FixedLenFeature([3], tfw.float32)}),
        lambda n: tfw.encode_example({"x": [n, 0.5, -n]}),
        tfw.encode_example({"x": [1.0, 2.0]}),
    ),
    "strings": Records(
        tfw.Parser({"s": tfw.FixedLenFeature([], tfw.string)}),
        lambda n: tfw.encode_example({"s": b"%d" % n + b"s" * (20 + 7 * (n % 3))}),
        tfw.encode_example({"other": b"s"}),
    ),
    "columns of strings": Records(
        tfw.Parser(
            {"s": tfw.FixedLenSequenceFeature([], tfw.string, allow_missing=True)},
            bytes_as="column",
        ),
        lambda n: tfw.encode_example({"s": [b"%d" % n] * (n % 4)}),
        tfw.encode_example({"s": [1]}),
    ),
    "lists": Records(
        tfw.Parser({"v": tfw.VarLenFeature(tfw.int64), "s": tfw.VarLenFeature(tfw.string)}),
        lambda n: tfw.encode_example({"v": list(range(n)), "s": [b"s"] * (n % 3)}),
        tfw.encode_example({"v": [0.5]}),
    ),
    "ragged": Records(
        tfw.Parser(
            {"r": tfw.RaggedFeature(tfw.int64, "v", [tfw.RaggedFeature.RowLengths("lengths")])}
        ),
        ragged,
        tfw.encode_example({"v": [1, 2, 3], "lengths": [1, 1]}),
    ),
    "sequences": Records(
        tfw.SequenceParser(
            {"n": tfw.FixedLenFeature([], tfw.int64)},
            {
                "s": tfw.VarLenFeature(tfw.string),
                "x": tfw.FixedLenSequenceFeature([2], tfw.float32, allow_missing=True),
            },
        ),
        sequence,
        tfw.encode_sequence_example({"n": 1}, {"s": [[1]]}),
    ),
}


Damage = Callable[[list[bytes], int, Records], bytes]


def changed(change: Callable[[bytes], bytes]) -> Damage:
    """A kind of damage that changes one record."""

    def damage(frames: list[bytes], at: int, records: Records) -> bytes:
        return b"".join([*frames[:at], change(frames[at]), *frames[at + 1 :]])

    return damage


def flipped(at: int) -> Damage:
    def flip(record: bytes) -> bytes:
        place = at % len(record)
        return record[:place] + bytes([record[place] ^ 1]) + record[place + 1 :]

    return changed(flip)


def cut(size: int) -> Damage:
    """The file ends within the record."""
    return lambda frames, at, records: b"".join(frames[:at]) + frames[at][:size]


def misfit(frames: list[bytes], at: int, records: Records) -> bytes:
    return b"".join([*frames[:at], frame(records.misfit), *frames[at + 1 :]])


def and_a_misfit(damage: Damage) -> Damage:
    """Damage, and a record after it that does not fit: its number counts what is left out."""

    def both(frames: list[bytes], at: int, records: Records) -> bytes:
        with_misfit = [*frames[: at + 1], frame(records.misfit), *frames[at + 1 :]]
        return damage(with_misfit, at, records)

    return both


# Functions of the records with their frames, the number of one, and the kind of records.
DAMAGE = {
    "length": flipped(0),
    "length checksum": flipped(9),
    "payload": flipped(HEADER + 1),
    "footer": flipped(-1),
    "misfit": misfit,
    "payload, and a misfit": and_a_misfit(flipped(HEADER + 1)),
    "length, and a misfit": and_a_misfit(flipped(0)),
    "malformed": changed(lambda record: frame(b"\x0a\x7f")),
    "empty": changed(lambda record: frame(b"")),
    "cut in the header": cut(HEADER - 5),
    "cut in the payload": cut(HEADER + 1),
    "too long": changed(lambda record: frame(bytes(LIMIT + 1))),
    "zeros in its place": changed(lambda record: bytes(len(record))),
    "zeros before it": changed(lambda record: bytes(24) + record),
    "a byte before it": changed(lambda record: b"x" + record),
    "rubbish before it": changed(lambda record: b"rubbish " * 5 + record),
    "a byte is gone": changed(lambda record: record[1:]),
    "the footer is gone": changed(lambda record: record[:-FOOTER]),
    "the header is gone": changed(lambda record: record[HEADER:]),
    "twice": changed(lambda record: record + record),
}


def contents(records: Records, kind: str, at: int) -> list[bytes]:
    """Three files; the second one is damaged."""
    frames = [frame(records.record(n)) for n in range(COUNT)]
    return [b"".join(frames), DAMAGE[kind](frames, at, records), b"".join(frames)]


class Found(NamedTuple):
    """All that an iteration shows.

    Attributes:
        batches: In a form that can be compared.
        error: The class and the reason of the error at the end; or None.
        details: More of it, of what was left out, and of the regions.
    """

    batches: list[Any]
    error: tuple[type, str] | None
    details: Any = None


def plain(batch: Any) -> list[Any]:
    return list(map(plain_dict, batch if isinstance(batch, tuple) else (batch,)))


def parse(records: Records, paths: list[Path], num_threads: int, **options: Any) -> Found:
    """What parse_file gives."""
    batches = records.parser.parse_file(
        paths, BATCH, num_threads=num_threads, max_record_size=LIMIT, **options
    )
    found, error, details = [], None, None
    with batches:
        try:
            found.extend(map(plain, batches))
        except tfw.Error as caught:
            error = type(caught), caught.reason
            details = str(caught), caught.record_index, caught.path
        # At a ParseError, regions after it may be among them.
        skipped = () if error and error[0] is tfw.ParseError else list(batches.skipped)
        return Found(found, error, (details, list(map(str, batches.parse_errors)), skipped))


@cache
def why_unfit(parser: Any, record: bytes) -> str | None:
    """The reason for which a record does not fit the specification of a parser, if it does not."""
    try:
        parser.parse([record])
    except tfw.ParseError as error:
        return error.reason
    return None


def expected(records: Records, files: Iterable[bytes], corrupt: str, misfits: str) -> Found:
    """The same by the reference's reading in plain Python, and one record at a time."""
    good, error = [], None
    for data in files:
        outcome = read(data, corrupt, LIMIT)
        for record in outcome.records:
            reason = why_unfit(records.parser, record)
            if reason is None:
                good.append(record)
            elif misfits == "raise":
                error = tfw.ParseError, reason
                break
        if error is None and outcome.damage is not None:
            error = tfw.DataLossError, outcome.damage.reason
        if error is not None:
            break
    batches = [good[i : i + BATCH] for i in range(0, len(good), BATCH)]
    return Found([plain(records.parser.parse(batch)) for batch in batches], error)
