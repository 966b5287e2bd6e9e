"""Differential fuzzing: what tfwire decodes, and what protobuf does, of mutated messages.

Usage: ``python tests/fuzz/differential.py [--seconds=N] [--runs=N] [--seed=N] [LOG_FOLDER]``.
Messages of the corpus are mutated; tfwire and protobuf must both refuse the result, or find the
same features, kinds and values. What has no features but unknown fields counts as refused. Stops
at the first difference, with the message. Writes its statistics as libFuzzer does, for report.py.

Three differences are known. protobuf refuses keys that are not UTF-8, tfwire hands them over. The
other two are its Python runtime's own, not those of protobuf in C++: a map entry that has an
unknown field is taken for an unknown field as a whole, and field number 0 is let through within
unknown groups. What protobuf would say but for the first two, it says of messages of the same form
whose keys are bytes and whose maps are repeated entries.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

import tfwire as tfw
from tfwire import train
from tfwire._examples.protobuf import message_classes

CORPUS = Path(__file__).parent / "corpus"
EDGES = bytes([0, 1, 2, 5, 0x0A, 0x0D, 0x12, 0x1A, 0x22, 0x7A, 0x7B, 0x7C, 0x7F, 0x80, 0xFF])
LONGEST = 1 << 12
GROUP = 3  # the wire type

# The messages of tf.train, but for the type of the keys and with a map as what it is on the wire.
TWINS = message_classes(
    "twin",
    {
        "BytesList": ["repeated bytes value = 1"],
        "FloatList": ["repeated float value = 1"],
        "Int64List": ["repeated int64 value = 1"],
        "Feature": [
            "oneof kind: BytesList bytes_list = 1",
            "oneof kind: FloatList float_list = 2",
            "oneof kind: Int64List int64_list = 3",
        ],
        "FeatureList": ["repeated Feature feature = 1"],
        "FeatureEntry": ["bytes key = 1", "Feature value = 2"],
        "ListEntry": ["bytes key = 1", "FeatureList value = 2"],
        "Features": ["repeated FeatureEntry feature = 1"],
        "FeatureLists": ["repeated ListEntry feature_list = 1"],
        "Example": ["Features features = 1"],
        "SequenceExample": ["Features context = 1", "FeatureLists feature_lists = 2"],
    },
)

# ---- What each of them finds --------------------------------------------------------------------


def feature_values(feature: Any) -> Any:
    """The values of a Feature as decode_example has them."""
    kind = feature.WhichOneof("kind")
    if kind is None:
        return []
    values = getattr(feature, kind).value
    if kind == "bytes_list":
        return list(values) or np.array([], object)
    return np.array(values, np.int64 if kind == "int64_list" else np.float32)


def map_items(entries: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(entries, "items"):
        yield from entries.items()
    else:
        for entry in entries:
            yield entry.key.decode(errors="surrogateescape"), entry.value


def features_of(features: Any) -> dict[str, Any]:
    return {key: feature_values(value) for key, value in map_items(features.feature)}


def lists_of(lists: Any) -> dict[str, Any]:
    items = map_items(lists.feature_list)
    return {key: [feature_values(step) for step in value.feature] for key, value in items}


def read(data: bytes, classes: Any, sequence: bool) -> Any:
    """The message, or None where protobuf refuses it."""
    try:
        return classes["SequenceExample" if sequence else "Example"].FromString(data)
    except DecodeError:
        return None


def contents(message: Any, sequence: bool) -> Any:
    if message is None:
        return None
    if sequence:
        found = features_of(message.context), lists_of(message.feature_lists)
    else:
        found = features_of(message.features)
    return None if found in ({}, ({}, {})) and is_of_another_type(message) else found


def is_of_another_type(message: Any) -> bool:
    """Whether a message without features has fields that are unknown."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return bool(known.ByteSize() != message.ByteSize())


def has_unknown_entries(twin: Any, sequence: bool) -> bool:
    """Whether some map entry has a field that it should not."""
    entries = list(twin.context.feature if sequence else twin.features.feature)
    if sequence:
        entries += twin.feature_lists.feature_list
    return any(len(UnknownFieldSet(entry)) for entry in entries)


def has_field_zero(fields: Any) -> bool:
    return any(
        field.field_number == 0 or (field.wire_type == GROUP and has_field_zero(field.data))
        for field in fields
    )


def has_field_zero_inside(message: Any) -> bool:
    """Whether some unknown group, here or in a part, has a field of number 0."""
    parts = [value for field, value in message.ListFields() if field.message_type is not None]
    inner = [item for part in parts for item in (part if hasattr(part, "append") else [part])]
    return has_field_zero(UnknownFieldSet(message)) or any(map(has_field_zero_inside, inner))


def by_tfwire(data: bytes, sequence: bool) -> Any:
    try:
        return tfw.decode_sequence_example(data) if sequence else tfw.decode_example(data)
    except tfw.ParseError:
        return None


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        same_kind = type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape
        return same_kind and np.array_equal(a, b, equal_nan=a.dtype == np.float32)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        same_type = type(a) is type(b) and len(a) == len(b)
        return same_type and all(map(equal, a, b))
    return bool(a == b)


def difference(data: bytes, sequence: bool) -> str | None:
    """What is wrong with the answer to a message, or None."""
    found = by_tfwire(data, sequence)
    expected = contents(read(data, vars(train), sequence), sequence)
    if equal(expected, found):
        return None
    twin = read(data, TWINS, sequence)
    if twin is not None and found is None and has_field_zero_inside(twin):
        return None
    if twin is not None and (expected is None or has_unknown_entries(twin, sequence)):
        expected = contents(twin, sequence)
        if equal(expected, found):
            return None
    return f"{data.hex()}: protobuf {expected}, tfwire {found}"


# ---- Mutation -----------------------------------------------------------------------------------


def seeds(sequence: bool) -> list[bytes]:
    """The messages of the corpus: after the choices come a count and the lengths."""
    found = []
    for path in sorted((CORPUS / "decode").iterdir()):
        data = path.read_bytes()
        if len(data) > 3 and bool(data[0] & 1) == sequence:
            found.append(data[3 + 2 * (data[2] % 4) :])
    return found


def mutate(rng: random.Random, data: bytearray, other: bytes) -> None:
    """Takes bytes out, puts some of another message in, changes one, or doubles a piece."""
    at, size = rng.randrange(len(data) + 1), rng.randint(1, 12)
    begin = rng.randrange(len(other) + 1)
    choice = rng.randrange(7)
    if choice == 0:
        del data[at : at + size]
    elif choice == 1:
        data[at:at] = other[begin : begin + size]
    elif choice == 2:
        data[at : at + size] = other[begin : begin + size]
    elif choice == 3:
        data[at:at] = data[at : at + size]
    elif at < len(data) and choice == 4:
        data[at] ^= 1 << rng.randrange(8)
    elif at < len(data) and choice == 5:
        data[at] = rng.choice(EDGES)
    elif at < len(data):
        data[at] = (data[at] + rng.randint(-2, 2)) % 256


def messages(seed: int) -> Iterator[tuple[bytes, bool]]:
    """Mutated messages without end, each with whether it is a SequenceExample. What is still a
    message is now and then mutated further."""
    rng = random.Random(seed)
    pools = {sequence: seeds(sequence) for sequence in (False, True)}
    while True:
        sequence = rng.random() < 0.3
        pool = pools[sequence]
        data = bytearray(rng.choice(pool))
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            mutate(rng, data, rng.choice(pool))
        message = bytes(data[:LONGEST])
        if rng.random() < 0.02 and by_tfwire(message, sequence) is not None:
            place = rng.randrange(40, 40 + 4 * len(pools[not sequence]))
            pool[place:] = [*pool[place : place + 4000], message]
        yield message, sequence


# ---- Running ------------------------------------------------------------------------------------


def run(seed: int, runs: float, seconds: float) -> tuple[int, float, str | None]:
    """How many messages were compared, in how many seconds, and the difference found."""
    begin = time.monotonic()
    count, wrong = 0, None
    for message, sequence in messages(seed):
        passed = time.monotonic() - begin
        if count >= runs or passed >= seconds or wrong is not None:
            break
        wrong = difference(message, sequence)
        count += 1
    return count, time.monotonic() - begin, wrong


def write_log(folder: Path, count: int, seconds: float, wrong: str | None) -> None:
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown"
    log = folder / f"differential-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.log"
    folder.mkdir(parents=True, exist_ok=True)
    log.write_text(
        f"commit {commit}\n{wrong or 'no difference'}\n"
        f"stat::number_of_executed_units: {count}\n"
        f"stat::average_exec_per_sec: {count / max(seconds, 1e-9):.0f}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--runs", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("log_folder", type=Path, nargs="?")
    options = parser.parse_args()
    count, seconds, wrong = run(options.seed, options.runs, options.seconds)
    print(f"{count} messages in {seconds:.0f} s, seed {options.seed}: {wrong or 'no difference'}")
    if options.log_folder is not None:
        write_log(options.log_folder, count, seconds, wrong)
    sys.exit(wrong is not None)


if __name__ == "__main__":
    main()
