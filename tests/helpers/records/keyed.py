"""Record files whose records have keys."""

from __future__ import annotations

import operator

import tfwire as tfw

COUNT = 300
KEYS = {
    "int64": [3 * i - 100 for i in range(COUNT)],
    "text": [f"id {i}" for i in range(COUNT)],
    "bytes": [b"", b"\xff\0", b"\xff", *(b"%d\0" % i * (i % 40) for i in range(3, COUNT))],
}
KEYS["bytes"] = list(dict.fromkeys(KEYS["bytes"]))


def write(path, keys, options=None):
    rows = [{"id": key, "n": n, "more": "x" * (n % 50)} for n, key in enumerate(keys)]
    tfw.write_records(path, rows, options)
    return str(path)


def numbers_of(records):
    return [int(row["n"][0]) for row in tfw.decode_examples(records)]


def saved(path):
    with open(f"{path}.tfwindex", "rb") as file:
        return file.read()


by_key_of = operator.attrgetter("by_key")
