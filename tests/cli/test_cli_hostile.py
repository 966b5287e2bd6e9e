"""The command over hostile files: no traceback, no control character, output in proportion.

A case runs some twenty commands, so a profile gets a fifth of the cases that it asks for: 8 in
``make test``, 20,000 in ``make campaign``."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
import zlib
from importlib.util import find_spec

import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from cases.wire import field
from helpers.command import ENVIRONMENT, tfwire_main
from helpers.reference import frame, header
from tfwire import train

# What a terminal obeys or does not show, and what text formats escape.
PIECES = ["\x1b[31m", "\x1b]0;t\x07", "\r", "\n", "\x9b2J", "\u202e", "\u2066", "\u200b", "\u2028"]
PIECES += ["\x00", "\x7f", "\\", '"', "'", "{", "é", "東", "😀", "a", "key", "%s"]
PIECES += ["\ufeff", "\ue000"]

# Bytes that a command may print for each byte of the uncompressed file, and besides. The worst are
# empty steps of a feature list as text: 24 characters for 2 bytes.
FACTOR, BESIDES = 30, 20_000
BOUNDED = {"head", "count", "info"}  # whatever the file holds; as text
BOUND = 600_000

# ---- Files --------------------------------------------------------------------------------------


def text(rng: random.Random) -> str:
    length = rng.choice([0, 1, 1, 3, 10, 200])
    return "".join(rng.choices(PIECES, k=length))


def values(rng: random.Random) -> object:
    count = rng.choice([0, 1, 1, 2, 30, 500])
    kind = rng.randrange(4)
    if kind == 0:
        return [rng.choice([0, -1, 2**63 - 1, rng.getrandbits(40)]) for _ in range(count)]
    if kind == 1:
        return [rng.choice([0.0, float("nan"), float("-inf"), 1e38, 0.1]) for _ in range(count)]
    if kind == 2:
        return [text(rng) for _ in range(count)]
    return [rng.randbytes(rng.randrange(9)) for _ in range(count)]


def feature(rng: random.Random) -> bytes:
    """A Feature as it should be, or of random fields."""
    if rng.random() < 0.8:
        example = tfw.encode_example({"x": values(rng)})
        return train.Example.FromString(example).features.feature["x"].SerializeToString()
    return b"".join(field(rng.randrange(1, 5), rng.randbytes(rng.randrange(6))) for _ in range(3))


def entry(rng: random.Random, value: bytes) -> bytes:
    key = text(rng).encode() if rng.random() < 0.9 else rng.randbytes(5)
    return field(1, field(1, key) + field(2, value))


def example(rng: random.Random) -> bytes:
    return field(1, b"".join(entry(rng, feature(rng)) for _ in range(rng.choice([0, 1, 3, 200]))))


def sequence(rng: random.Random) -> bytes:
    lists = b"".join(
        entry(rng, b"".join(field(1, feature(rng)) for _ in range(rng.choice([0, 1, 5]))))
        for _ in range(rng.choice([0, 1, 3]))
    )
    return example(rng) + field(2, lists)


def empty_steps(rng: random.Random) -> bytes:
    return field(2, field(1, field(1, b"k") + field(2, b"\x0a\x00" * rng.choice([1, 100, 5000]))))


def groups(rng: random.Random) -> bytes:
    depth = rng.choice([1, 90, 110, 5000])
    return b"\x23" * depth + b"\x24" * rng.choice([depth, depth - 1])


def nested(rng: random.Random) -> bytes:
    record = b""
    for _ in range(rng.choice([5, 200])):
        record = field(1, record)
    return record


def same_keys(rng: random.Random) -> bytes:
    return field(1, field(1, field(1, b"k") + field(2, b"")) * rng.choice([2, 3000]))


def long_key(rng: random.Random) -> bytes:
    key = rng.choice(PIECES) * rng.choice([100, 20_000])
    return tfw.encode_example({key: 1, key + "2": [key]})


def plain(rng: random.Random) -> bytes:
    return rng.choice([b"", text(rng).encode(), rng.randbytes(rng.randrange(200))])


RECORDS = [example, example, sequence, empty_steps, groups, nested, same_keys, long_key, plain]


def content(rng: random.Random) -> bytes:
    """An uncompressed file, intact or damaged."""
    records = [rng.choice(RECORDS)(rng) for _ in range(rng.choice([0, 1, 1, 2, 5]))]
    data = b"".join(frame(r) if len(r) < 2000 else framed(r) for r in records)
    if rng.random() < 0.2:
        data += header(rng.choice([0, 1, 5, 2**31, 2**40, 2**63, 2**64 - 1])) + rng.randbytes(9)
    if rng.random() < 0.1:
        data = (frame(b"") + b"?") * rng.choice([10, 3000])
    return damaged(rng, data)


def framed(record: bytes) -> bytes:
    """As ``frame``, by the library, for it is long."""
    length = header(len(record))
    return length + record + tfw.checksum.masked_crc32c(record).to_bytes(4, "little")


def damaged(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice([0, 0, 0, 1, 4])):
        at = rng.randrange(len(out) + 1)
        what = rng.randrange(4)
        if what == 0:
            del out[at:]
        elif what == 1:
            out[at:at] = rng.randbytes(rng.randrange(40))
        elif at < len(out):
            out[at] ^= 1 << rng.randrange(8)
    return bytes(out)


def compressed(rng: random.Random, data: bytes) -> bytes:
    kind = rng.randrange(5)
    if kind == 0:
        half = len(data) // 2
        return damaged(rng, gzip.compress(data[:half]) + gzip.compress(data[half:]))
    return damaged(rng, zlib.compress(data)) if kind == 1 else data


# ---- Commands -----------------------------------------------------------------------------------

OPTIONS = {
    "info": ["--json"],
    "head": [
        *("--format=json", "--format=text", "--format=table", "--records", "--format=protojson"),
        *("--full", "-n3", "-n0"),
    ],
    "cat": ["--format=json", "--format=text", "--format=table", "--records"],
    "count": ["--json"],
    "schema": ["--all", "-n3", "--format=pbtxt", "--format=json", "-o=out.py", "--force"],
    "stats": ["--json", "--plot=out.svg", "--force"],
    "view": ["--force", "-n3", "--size=1kB", "--boxes=a,a,key,key"],
    "verify": ["--json", "--crc32c", "--receipt", "--jobs=2", "--same-as=IN"],
    "diff": ["--json", "--quiet", "--limit=3", "--ignore-order", "--jobs=2"],
    "repair": ["--correct", "--accept-ambiguous", "--force", "--json"],
    "index": ["--text", "--check", "--json", "-j2"],
    "split": ["--force", "--index", "--json", "--jobs=2", "--output-compression=gzip"],
    "merge": ["--force", "--index", "--json", "--jobs=2", "--output-compression=zlib"],
    "shuffle": ["--force", "--index", "--json", "--seed=1", "--memory=1kB"],
    "convert": ["--force", "--json", "--limit=3", "--base64=a", "--key=a", "--num-shards=2"],
    "bench": ["--json"],
}
FORMATS = ["tfrecord", "jsonl", "csv", "tar"]
FORMATS += [] if find_spec("pyarrow") is None else ["parquet", "arrow"]
OUTPUTS = {
    "view": [["--html=out.html"]],
    "convert": [
        [f"--from={source}", f"-o=out{{shard}}.{target}", f"--on-corrupt={policy}"]
        for source in ["tfrecord"] * 10 + FORMATS
        for target in FORMATS
        for policy in ("raise", "skip", "tail", "stop")
    ],
    "diff": [["IN"], ["other"]],
    "repair": [["out"]],
    "split": [["-o=out{shard}", "--shards=2"], ["-o=o{shard}", "--shard-size=1kB"]],
    "merge": [["-o=out"]],
    "shuffle": [["-o=out"], ["-o=out{shard:03}", "--shards=3"]],
}


def words_of(rng: random.Random, command: str, path: str) -> list[str]:
    chosen = [word for word in OPTIONS[command] if rng.random() < 0.4]
    if command != "shuffle":
        chosen.append("--compression=" + rng.choice(["auto"] * 5 + ["none", "gzip", "zlib"]))
    files = (
        [path, "missing"] if rng.random() < 0.1 and command not in ("repair", "bench") else [path]
    )
    if command == "bench":
        chosen.append("--seconds=1e-9")
    words = [command, *files, *rng.choice(OUTPUTS.get(command, [[]])), *chosen]
    return [path if word == "IN" else word.replace("=IN", f"={path}") for word in words]


def check(words: list[str], size: int, stdin: bytes = b"") -> None:
    result = tfwire_main(*words, stdin=stdin)
    shown = result.stdout + result.stderr
    assert result.returncode in (0, 1, 2)
    out = shown.decode()
    assert all(line.isprintable() for line in out.split("\n"))
    assert "Traceback" not in out
    assert "unexpected" not in out
    assert len(shown) <= FACTOR * size + BESIDES
    if words[0] in BOUNDED and not any("json" in word for word in words) and "--full" not in words:
        assert len(shown) <= BOUND


@settings(max_examples=max(5, settings.default.max_examples // 5))
@given(seed=st.integers(0, 2**64))
def test_no_file_and_no_options_are_too_much(seed, tmp_path_factory):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("hostile", numbered=True)
    before = os.getcwd()
    os.chdir(folder)
    try:
        path = "in" + text(rng).replace("\0", "").replace("/", "")[:60]
        data = content(rng)
        with open(path, "wb") as file:
            file.write(compressed(rng, data))
        for command in OPTIONS:
            words = words_of(rng, command, path)
            check(words, len(data) + 300 * len(path))
            if command not in ("index", "shuffle", "view", "convert", "bench"):
                with open(path, "rb") as file:
                    stdin = file.read()
                check(["-" if word == path else word for word in words], len(data), stdin)
    finally:
        os.chdir(before)
        for name in os.listdir(folder):
            os.unlink(folder / name)
        folder.rmdir()


# ---- Memory -------------------------------------------------------------------------------------

LARGE = {
    "many keys": lambda: field(
        1, b"".join(field(1, field(1, b"%x" % i) + b"\x12\x00") for i in range(150_000))
    ),
    "a long key": lambda: field(1, field(1, field(1, b"\x1b" * 1_000_000))),
    "empty steps": lambda: field(2, field(1, field(1, b"k") + field(2, b"\x0a\x00" * 500_000))),
    "empty strings": lambda: field(
        1, field(1, b"\x0a\x01k" + field(2, field(1, b"\x0a\x00" * 500_000)))
    ),
    "packed ones": lambda: field(
        1, field(1, b"\x0a\x01k" + field(2, field(3, field(1, b"\x01" * 1_000_000))))
    ),
    "groups": lambda: b"\x23" * 500_000 + b"\x24" * 500_000,
    "other": lambda: b"\x1b" * 1_000_000,
}
COMMANDS = [["info"], ["info", "--json"], ["head"], ["head", "--format=json"], ["cat"]]
COMMANDS += [["cat", "--format=json"], ["count"], ["verify"], ["bench", "--seconds=1e-9"]]
COMMANDS += [["schema"], ["stats"], ["stats", "--json"], ["view", "--html=page.html"]]


CASES = [(kind, words) for kind in LARGE for words in COMMANDS]
CASES = [
    pytest.param(*case, marks=[pytest.mark.slow] * (case != ("empty steps", ["cat"])))
    for case in CASES
]


@pytest.mark.unsanitized("weighs a process")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="VmHWM is Linux")
@pytest.mark.parametrize(("kind", "words"), CASES, ids=str)
def test_memory_is_in_proportion(kind, words, tmp_path):
    """Of a file of a megabyte no command makes more than 300: a message of protobuf and its text
    together take some hundred bytes for a step of two bytes."""
    (tmp_path / "in").write_bytes(framed(LARGE[kind]()))
    code = (
        "import sys\n"
        "from tfwire.cli import main\n"
        "status = main(sys.argv[1:])\n"
        "with open('/proc/self/status') as lines:\n"  # ru_maxrss begins with the peak of the parent
        "    print(*(line for line in lines if line.startswith('VmHWM')), file=sys.stderr)\n"
        "sys.exit(status)"
    )
    command = [sys.executable, "-c", code, *words, str(tmp_path / "in")]
    with open(tmp_path / "out", "wb") as out:
        result = subprocess.run(
            command,
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=ENVIRONMENT,
            timeout=120,
        )
    no_examples = kind in ("groups", "other") and words[0] in ("schema", "stats")
    assert no_examples == result.returncode, result.stderr
    peak = int(result.stderr.split()[-2]) * 1024
    size = (tmp_path / "out").stat().st_size
    assert peak < 400 << 20
    assert size <= FACTOR * 1_500_000
