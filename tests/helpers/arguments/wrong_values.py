"""Wrong values of the arguments of public functions, by the names of the arguments."""

from __future__ import annotations

import math
import zlib
from types import SimpleNamespace

import numpy as np

import tfwire as tfw
from helpers.arguments.public_functions import FUNCTIONS, OTHER_WORD


class Wrong:
    """What no argument may be."""


class Endless:
    """Options whose compression type is options again, and so on."""

    @property
    def compression_type(self):
        return self


class Saying:
    """A wrong value, and what the message says of it besides the name of the argument."""

    def __init__(self, value, pattern):
        self.value, self.pattern = value, pattern

    def __repr__(self):
        return repr(self.value)


class Otherwise(Saying):
    """A wrong value of which the message, perhaps the system's, says something else."""


SPEC = {"a": tfw.VarLenFeature(tfw.int64)}
NOT_PATHS = [Saying(each, r"found \w+") for each in (None, 7, 1.5, True, {"a": 1}.keys, object())]
NOT_NUMBERS = [1.5, "16", b"1", 2**70, [], {}, object(), np.array([1, 2])]
COUNTS = [True, 0, -1, *NOT_NUMBERS]
NOT_INTEGERS = [True, 2.0, "3", b"3", [1], np.bool_(True), np.float32(1)]
# Of 64 bits.
INTEGERS = [*(Saying(each, "must be an integer, found ") for each in NOT_INTEGERS), 10**20]
WORDS = ["nonsense", "RAISE", "Object", b"raise", "", 1, True, [], {}, object()]
WORDS += [np.array("raise"), np.array("object")]  # which are equal to right words
ON_CORRUPT = [*WORDS, None, "ignore", "as TensorFlow", "AS_TENSORFLOW"]
WRONG_PATTERNS = ["a{b}", "{", "{}", "{shard.x}", "{shard[0]}", "{shard:c}", ""]
WRONG_PATTERNS += ["{shard.real}", "{shard!r}", "{shard:0999999999}", "{shard:{shards}}"]
WRONG_PATTERNS += ["{shards.x}", "{shard:e}", "{shard:.2g}", "{shard:%}", "{shard!z}", "{0}"]
WRONG_PATTERNS += ["{shard:\0>3}", "{shard:d", "{shard.__class__}"]
WRONG_PATTERNS += ["{other}", "{shard:x"]
WRONG_PATTERNS += [Otherwise(each, "needs a field {shard}") for each in ("data", "{shards}")]
WRONG_PATTERNS += [Otherwise(each, "") for each in ("{shard:0999}", "{shard:/>3}", ".")]
NO_NAMES = [
    Saying("a\0b", "null character"),
    Otherwise("missing/folder", "No such file"),
    Otherwise("x" * 256, "too long|needs a field"),
]
SIZES = [0, -1, 1.5, "", "many", "1XB", None, True, [], "0.1", "\u0663MB", "9" * 5000, "MB"]
SIZES += ["15 parsecs", "-1", "0.5B", "1e3"]
SIZES += [Saying(each, "64 bits(?!.{150})") for each in ("9" * 400 + "TB", "9" * 30, 1 << 63)]

OPTIONS = {
    "compression_level": [42, -2, "x", 1.5, [], 10**30],
    "flush_mode": [99, zlib.Z_FINISH, "x", 1.5],
    "window_bits": [7, 50, -15, "x"],
    "compression_method": [3],
    "mem_level": [0, 10, "x"],
    "compression_strategy": [9],
}
WRONG_FEATURES = [5, None, tfw.VarLenFeature("nope"), tfw.VarLenFeature(None)]
WRONG_FEATURES += [tfw.FixedLenFeature("x", tfw.int64), tfw.FixedLenFeature(None, tfw.int64)]
WRONG_FEATURES += [tfw.FixedLenFeature([1.5], tfw.int64), tfw.FixedLenFeature([-1], tfw.int64)]
WRONG_FEATURES += [tfw.FixedLenFeature([], tfw.int64, 7), tfw.RaggedFeature(tfw.int64)]

NOT_BOOLS = [  # "no" and "False" would count as true
    Saying(each, "must be (a bool|True, False or None)[,;] (found|got)")
    for each in ("no", "", 1, 0, 1.0, np.int64(1), [], None)
]

# By the name of an argument, or of a function and its argument.
WRONG = {
    "compression_type": [
        *(Saying(word, '"GZIP" or "ZLIB"') for word in ("zip", "gz", 3, 1.5, [], b"x", b"\xff")),
        *(object(), True, np.True_, 1.0, np.array(1), ("GZIP",), {"compression_type": "GZIP"}),
        Endless(),
    ],
    "out_compression_type": [Saying(word, '"GZIP" or "ZLIB"') for word in ("zip", "gz", 3, [])],
    "on_corrupt": [Saying(word, "must be.*found") for word in ON_CORRUPT],
    "on_parse_error": [*WORDS, None],
    "bytes_as": [*WORDS, None],
    "max_record_size": [
        Saying(0, "must be at least 1, found 0"),
        Saying(-1, "must be at least 1, found -1"),
        Saying(2**63, "must fit into 64 bits"),
        Saying(1.5, "must be an integer, found float"),
        Saying("1", "must be an integer, found str"),
        Saying(True, "must be an integer, found bool"),
    ],
    "buffer_size": [Saying(-1, "must be at least 0, found -1"), Saying("1", "found str")],
    "prefetch.buffer_size": [-2, "1"],
    "shuffle.buffer_size": [0, -1, "1"],
    "start": [
        Saying((-1, 0), "start.record_index must be at least 0"),
        Saying((0, 2**70), "start.offset must fit into 64 bits"),
        Saying((0, 1.5), "start.offset must be an integer, found float"),
        Saying((1,), "start must be a RecordPosition, found tuple"),
        Saying(7, "start must be a RecordPosition, found int"),
        Saying("ab", "start must be a RecordPosition, found str"),
    ],
    "enumerate.start": ["1", 1.5, True],
    "list_files.shuffle": NOT_BOOLS[:-1],  # None is right
    "shuffle.reshuffle_each_iteration": NOT_BOOLS[:-1],
    "interval": [
        Saying(-1, "must be a number of seconds, 0 or more"),
        Saying(math.nan, "must be a number of seconds"),
        Saying("1", "must be a number, found str"),
        Saying(None, "must be a number, found NoneType"),
    ],
    "timeout": [Saying(-0.5, "seconds, 0 or more"), Saying("soon", "a number, found str")],
    "progress": [Saying(7, "must be callable, found int")],
    **dict.fromkeys(["index", "count", "seed", "capacity", "min_after_dequeue"], INTEGERS),
    "TFRecordFile.index": [1.5],
    "num_parallel_reads": [*INTEGERS, 0, -2],
    "num_parallel_calls": [0, -2, 1.5],
    "cycle_length": [0, 1.5, None, True],
    "block_length": [0, 1.5],
    "epoch": [-1, "1", 1.0],
    "element_length_func": [3],
    "bucket_boundaries": [[1.5], 4, "4"] + [Otherwise([1, 2], "one more item")],
    "bucket_batch_sizes": [[1, 0], 1] + [Otherwise([1, 1, 1], "one more item")],
    "padded_shapes": [3, "3", 5, [1.5], {"a": [None], "b": ["x"]}, ([-2], [1])],
    "padding_values": [[0], [0, 1]],
    "max_padding": [1.5, -1],
    "sample_from_datasets.weights": [[1, 2], [0], [math.nan], [-1.0]],
    "sample_from_datasets.datasets": [[], [[1]]],
    "zip.datasets": [(), 3, [5]],
    "from_generator.args": [3],
    "rule": ["odd", None],
    "out": [5],
    "columns": [3],
    "open_reader.columns": [3, "n", [["n"]], ["none"]],
    "binary_as": ["utf8"],
    "index_path": NOT_PATHS[1:],
    "max_open_files": [Saying(0, "must be at least 1, found 0"), Saying("1", "integer, found str")],
    "batch_size": [*COUNTS, None],
    "num_threads": COUNTS,
    "Parser.parse_file.num_threads": [*COUNTS, None],
    "infer_schema.num_records": COUNTS,
    "max_fill": NOT_NUMBERS,
    "fixed_length": COUNTS,
    "indent": NOT_NUMBERS,
    "parse_example.example_names": [5, 1.5, object(), "x", [5], [None], {"a": 1}, np.array([1])],
    "parse_single_example.example_names": [5, 1.5, object(), [5], ["1", "2"], [], np.array(1)],
    "features": [5, "x", 1.5, [("a", 1)], object()],
    "write_schema.features": [None, 5, "x", [], [("a", SPEC["a"])], {}, {5: SPEC["a"]}]
    + [{"a": SPEC["a"], 5: SPEC["a"]}]
    + [Otherwise({"a": each}, "'a'|dtype") for each in WRONG_FEATURES],
    "path": NOT_PATHS,
    "read_schema.path": [*NOT_PATHS, ""],
    "write_schema.path": [*NOT_PATHS, "", *NO_NAMES],
    "TFRecordWriter.path": [*NOT_PATHS, *NO_NAMES],
    "save.index_path": [*NOT_PATHS[1:], *NO_NAMES],
    "write_text.index_path": [*NOT_PATHS, *NO_NAMES],
    "paths": NOT_PATHS,
    "filenames": [*NOT_PATHS, ["data", None], ["data", 3]],
    "out_path": NOT_PATHS,
    "folder": NOT_PATHS,
    "pattern": [*NOT_PATHS, *NO_NAMES, *WRONG_PATTERNS],
    "num_shards": [0, -1, 1.5, "2", True, 10**30],
    "shard_size": SIZES,
    "total_bytes": [Saying(-1, "must be at least")],
    "num_hosts": [Saying(0, "must be at least")],
    "options": ["LZ4", 7, object(), b"bz2"]
    + [
        Otherwise(SimpleNamespace(compression_type="GZIP", **{option: value}), "")  # TensorFlow's
        for option, values in OPTIONS.items()
        for value in values
    ],
    **{option: [Otherwise(value, "") for value in values] for option, values in OPTIONS.items()},
    "write_records.records": [b"abc", "abc", None, 5, {"a": [1]}, np.array([b"a"]), [5]]
    + [[None, b"a"], [{"a": [None]}]],
}

# The functions that read: with nothing but a wrong argument they open nothing, be there a file or
# not.
READERS = {"read_records", "follow_records", "verify_file", "verify_files", "repair_file"}
READERS |= {"Parser.parse_file", "SequenceParser.parse_file", "TFRecordDataset", "infer_schema"}
READERS |= {"RecordIndex.build", "RecordIndex.build_many", "RecordIndex.load", "TFRecordFile"}
READERS |= {"RecordIndex.read_text", "TFRecordFiles"}
# More right arguments, beside which the wrong ones are as wrong.
BESIDE = {
    "TFRecordWriter": [{"atomic": True}, {"path": "data", "options": None, "append": True}],
    "TFRecordOptions": [{"compression_type": "ZLIB"}],
    "ShardedWriter": [{"num_shards": 12}, {"options": "ZLIB"}],
    "write_schema": [{"path": "out"}],
    **{name: [{"path": "missing"}] for name in READERS if "path" in FUNCTIONS[name][1]},
    **{name: [{"paths": "missing"}] for name in READERS if "paths" in FUNCTIONS[name][1]},
    "TFRecordDataset": [{"filenames": "missing"}],
}


def wrong_cases(name):
    """Right arguments for a function, the name of one of them, a wrong value for it, and what the
    message says."""
    _, right = FUNCTIONS[name]
    for more in [{}, *BESIDE.get(name, [])]:
        for argument in right:
            usual = NOT_BOOLS if isinstance(right[argument], bool) else WRONG.get(argument, [])
            values = WRONG.get(f"{name}.{argument}", usual)
            for value in [Saying(Wrong(), r"\bWrong\b"), *values]:
                if not isinstance(value, Saying):
                    value = Saying(value, "")
                yield {**right, **more}, argument, value
            if argument in OTHER_WORD and name != "TFRecordOptions":
                others = {key: each for key, each in {**right, **more}.items() if key != argument}
                for word in ("LZ4", 7, object()):
                    yield others, OTHER_WORD[argument], Otherwise(word, "compression_type")
