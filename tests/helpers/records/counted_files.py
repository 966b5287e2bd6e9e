"""Files whose records engines count, with what they must find by each policy for damage."""

from __future__ import annotations

import os
from pathlib import Path

import tfwire as tfw

COUNT = 300
FEATURES = {
    "i": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
}
_DAMAGED = 200  # the number of the damaged record

# The files of each case.
FILES = {
    "plain": ["plain"],
    "indexed": ["indexed"],
    "gzip": ["gzip"],
    "empty": ["empty"],
    "empty gzip": ["empty gzip"],
    "several": ["plain", "gzip", "empty", "indexed"],
    "damaged": ["damaged"],
    "damaged, indexed": ["damaged, indexed"],
    "torn": ["plain", "torn"],
}


def expected_count(name: str, policy: str) -> int | None:
    """How many records there are; None: damage is an error."""
    if name.startswith("damaged"):
        return {"skip": COUNT - 1, "stop": _DAMAGED}.get(policy)
    if name == "torn":
        return None if policy == "raise" else 2 * COUNT - 1
    return COUNT * sum(not file.startswith("empty") for file in FILES[name])


CASES = [
    (name, policy)
    for name in FILES
    for policy in ("raise", "skip", "tail", "stop")
    if policy in ("raise", "skip") or name.startswith(("damaged", "torn"))
]


def write_counted_files(folder: Path) -> dict[str, list[str]]:
    """Writes the files; gives the paths of each case."""
    rows = [{"i": i, "name": b"n%d" % i} for i in range(COUNT)]
    paths = {
        file: str(folder / file.replace(", ", "-")) for case in FILES.values() for file in case
    }
    for file, path in paths.items():
        compression = "GZIP" if "gzip" in file else None
        tfw.write_records(path, [] if "empty" in file else rows, compression)
        if "indexed" in file:
            tfw.RecordIndex.build(path).save()
        if "damaged" in file:
            _damage(path)
    os.truncate(paths["torn"], os.path.getsize(paths["torn"]) - 3)
    return {name: [paths[file] for file in case] for name, case in FILES.items()}


def _damage(path: str) -> None:
    """Changes a bit of a record, and not what an index compares."""
    offset = int(tfw.RecordIndex.build(path).offsets[_DAMAGED])
    status = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(offset + 14)
        byte = file.read(1)[0]
        file.seek(offset + 14)
        file.write(bytes([byte ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
