"""Memory beyond the interpreter and the outputs stays small for a file of any size."""

import platform
import sys

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import output_of_python

MEASURE = """
import resource, sys
import tfwire as tfw

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

path = sys.argv[1]
parser = tfw.Parser({"id": tfw.FixedLenFeature([], tfw.int64),
                     "name": tfw.FixedLenFeature([], tfw.string),
                     "values": tfw.VarLenFeature(tfw.float32)})
next(tfw.read_records(path)); next(iter(parser.parse_file(path)))
before = peak()
records = sum(1 for _ in tfw.read_records(path))
parsed = sum(len(batch["id"]) for batch in parser.parse_file(path))
threads = sum(len(batch["id"]) for batch in parser.parse_file(path, num_threads=2))
print(records, parsed, threads, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss in other units")
def test_reading_and_parsing_take_little_memory(tmp_path):
    """128 MiB of records: far less than that, and less than 64 MiB, beyond what a start takes."""
    path = tmp_path / "large.tfrecord"
    count, block = 0, 1 << 14
    with tfw.TFRecordWriter(path) as writer:
        while path.stat().st_size < 1 << 27:
            ids = np.arange(count, count + block)
            columns = {"id": ids, "name": ["goat"] * block, "values": np.ones((block, 200), "f")}
            writer.write_columns(columns)
            count += block
    output = output_of_python("-c", MEASURE, path)
    *counts, kib = map(int, output.split())
    assert [count] * 3 == counts
    assert kib < 64 * 1024


FAULTS = """
import resource, sys
import tfwire as tfw

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

with tfw.TFRecordFile(sys.argv[1]) as records:
    for _ in range(3):
        records[range(1000)]
    before = faults()
    for _ in range(20):
        records[range(1000)]
    print(faults() - before)
"""


@pytest.mark.unsanitized("its allocator is another")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about memory that glibc keeps")
def test_lists_of_records_take_the_memory_of_those_before(tmp_path):
    """3 MB a list, which is 780 pages of the system."""
    path = tmp_path / "records"
    tfw.write_records(path, [bytes(3000)] * 1000)
    output = output_of_python("-c", FAULTS, path)
    assert int(output) < 20 * 100


BATCHES = """
import resource, sys
import tfwire as tfw

features = {"p": tfw.FixedLenSequenceFeature([], tfw.int64, allow_missing=True),
            "v": tfw.VarLenFeature(tfw.int64)}
parser = tfw.Parser(features)
messages = [tfw.encode_example({"p": [1] * (100 + i % 7), "v": [2] * 100}) for i in range(1000)]

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        batch = parser.parse(messages)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.unsanitized("its allocator is another")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about memory that glibc keeps")
def test_batches_of_messages_take_the_memory_of_those_before():
    """4 MB a batch, which is 1,000 pages of the system."""
    assert int(output_of_python("-c", BATCHES)) < 10 * 100


PASSES = """
import itertools, resource, sys
import tfwire as tfw

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

features = {"s": tfw.FixedLenFeature([], tfw.string)}
columns = tfw.Parser(features, bytes_as="column")
lists = tfw.Parser(features)
path, kind = sys.argv[1:]
passes = {
    "columns": lambda: columns.parse_file(path),
    "by two threads": lambda: columns.parse_file(path, num_threads=2),
    "objects": lambda: lists.parse_file(path),
    "dataset": tfw.TFRecordDataset(path).batch(128).parse_example(features).__iter__,
}
for _ in range(10):
    assert sum(len(batch["s"]) for batch in passes[kind]()) == 2000
before = faults()
for _ in range(20):
    assert sum(len(batch["s"]) for batch in passes[kind]()) == 2000
print(faults() - before)
"""


@pytest.fixture(scope="module")
def strings(tmp_path_factory):
    path = tmp_path_factory.mktemp("strings") / "strings.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns({"s": [bytes(6000)] * 2000})
    return path


@pytest.mark.unsanitized("its allocator is another")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about memory that glibc keeps")
@pytest.mark.parametrize("kind", ["columns", "by two threads", "objects", "dataset"])
def test_a_pass_over_a_file_takes_the_memory_of_the_one_before(strings, kind):
    """A pass takes 12 MB, of which 1 to 12 at a time: 300 pages and more."""
    output = output_of_python("-c", PASSES, strings, kind)
    assert int(output) < 20 * 100


IDLE = """
import gc, os, sys
import tfwire as tfw

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def use(parser):
    batches = parser.parse_file([sys.argv[1]] * 4, 8000)
    assert [len(batch["s"]) for batch in batches] == [8000]
    return parser

features = {"s": tfw.FixedLenFeature([], tfw.string)}
for _ in range(4):  # specifications are kept when they were met several times
    use(tfw.Parser(features, bytes_as="column"))
gc.collect()
before = resident()
parser = use(tfw.Parser(features, bytes_as="column"))
idle = resident()
del parser
gc.collect()
print(idle - before, resident() - before)
"""


@pytest.mark.unsanitized("its allocator is another")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about memory that glibc gives back")
def test_memory_that_a_parser_keeps_ends_with_it(strings):
    """One batch of 48 MB: malloc itself keeps no block of more than 32 MiB."""
    idle, gone = map(int, output_of_python("-c", IDLE, strings).split())
    assert 40 << 20 < idle < 100 << 20
    assert gone < 20 << 20
