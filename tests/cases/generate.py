"""Runs TensorFlow over the case table and writes what to expect: python tests/cases/generate.py

The rules of reference.py answer too. Where they differ from TensorFlow, the difference must be a
known one, or the run fails.

Some messages make TensorFlow write past its buffers or die. So every group of cases runs in a
forked process, suspicious cases each in one of their own, and "crash" is an answer like others.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
sys.path.insert(0, str(Path(__file__).parents[1]))

import tensorflow as tf

from cases import differences, reference
from cases.results import call, error_feature, plain_dict, reason
from cases.sequences import sequence_cases
from cases.table import Case, example_cases

HERE = Path(__file__).parent
FILES = {"examples.jsonl.gz": example_cases, "sequences.jsonl.gz": sequence_cases}
GROUP = 500  # cases per process
# TensorFlow trusts the counts of these: each gets a process, so that no other shares its memory.
SUSPICIOUS = re.compile(r"unpacked|overrun last|(list|feature) cut at|\[0\]|\[2, 0\]")


class Io:
    """TensorFlow's names in one namespace."""

    int32, int64, float32, float64 = tf.int32, tf.int64, tf.float32, tf.float64
    string, bool = tf.string, tf.bool
    FixedLenFeature = tf.io.FixedLenFeature
    FixedLenSequenceFeature = tf.io.FixedLenSequenceFeature
    VarLenFeature = tf.io.VarLenFeature
    RaggedFeature = tf.io.RaggedFeature
    SparseFeature = tf.io.SparseFeature


def strings(messages: list[bytes]) -> Any:
    return tf.constant(messages, tf.string)


def answer(case: Case) -> dict[str, Any]:
    """What TensorFlow answers: its values, or the class and the core of its error.

    The message is not kept: it may hold the whole record.
    """
    try:
        return {"values": [plain_dict(values) for values in call(Io, tf.io, case, strings)]}
    except Exception as error:  # every class is an answer
        text = str(error)
        return {"error": type(error).__name__, "reason": reason(text), "key": error_feature(text)}


def answers_of_child(cases: list[Case]) -> list[dict[str, Any]]:
    """The answers of a forked process; it may die before it has given all."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as out:
            for case in cases:
                print(json.dumps(answer(case)), file=out, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        found = [json.loads(line) for line in lines if line.endswith("\n")]
    os.waitpid(pid, 0)
    return found


def answers(cases: list[Case]) -> Iterator[dict[str, Any]]:
    """An answer per case; a case at which the process dies answers {"error": "crash"}."""
    while cases:
        found = answers_of_child(cases)
        yield from found
        if len(found) < len(cases):
            yield {"error": "crash", "reason": "crash", "key": None}
            found.append({})
        cases = cases[len(found) :]


def groups(cases: Iterable[Case]) -> Iterator[list[Case]]:
    group: list[Case] = []
    for case in cases:
        alone = SUSPICIOUS.search(case["group"]) is not None
        if group and (alone or len(group) == GROUP):
            yield group
            group = []
        group.append(case)
        if alone:
            yield group
            group = []
    if group:
        yield group


def completed(case: Case, found: dict[str, Any]) -> Case:
    """The case with the answer that is expected of tfwire: by the rules, which are TensorFlow's
    unless the case is one of a known difference; then it keeps TensorFlow's answer beside it."""
    if "spec: " in case["group"]:  # the rules know no wrong specs
        return case | {"expected": found}
    rule = reference.answer(case)
    if not differences.clashes(case, found, rule):
        return case | {"expected": rule}
    name = differences.find(case["group"], found)
    if name is None:
        raise ValueError(f"unexplained: {case}: TensorFlow {found}, rules {rule}")
    return case | {"expected": rule, "difference": name, "tensorflow": found}


def answered(cases: Iterable[Case]) -> Iterator[Case]:
    for group in groups(cases):
        for case, found in zip(group, answers(group), strict=True):
            yield completed(case, found)


def write(path: Path, cases: Iterable[Case]) -> int:
    """A line per case; the gzip header carries no time, so equal cases give equal files."""
    lines = [json.dumps(case, separators=(",", ":")) for case in cases]
    text = "".join(line + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    return len(lines)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, cases in FILES.items():
        print(name, write(folder / name, answered(cases())), "cases", flush=True)


if __name__ == "__main__":
    main()
