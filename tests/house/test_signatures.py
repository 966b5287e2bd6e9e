"""The public API is even: one word for one thing, with one default and one place."""

import ast
import inspect
import os
import typing
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

import tfwire as tfw
from helpers.documents import api

pytestmark = pytest.mark.outside_c

MODULES = ["checksum", "sharding", "images", "tensorboard", "tfds", "arrow", "view"]
# Their packages may be missing: they are read as text.
NEIGHBOURS = ["beam", "grain", "huggingface", "polars", "ray", "spark", "torch"]
# Results, which programs read and do not make.
RESULTS = {"FileReport", "FlippedBit", "FlippedBits", "InferredSchema", "RecordIndex"}
RESULTS |= {"RecordIterator", "RepairReport", "SkippedRegion", "SkippedRegions", "DatasetIterator"}
RESULTS |= {
    "Info",
    "Prepared",
    "Split",
    "SplitInfo",
    "ClassLabel",
    "ArrowReader",
    "RecordPosition",
    "Receipt",
    "TornTail",
    "TfwireWarning",
}
# TensorFlow's names and orders.
THEIRS = {"Dataset", "TFRecordDataset", "TFRecordOptions", "SparseTensor", "RaggedTensor"}
THEIRS |= {name for name in tfw.__all__ if name.endswith("Feature")}
# Names and orders of the neighbour.
THEIRS |= {
    f"beam.{name}" for name in ("ReadFromTFRecord", "ReadAllFromTFRecord", "WriteToTFRecord")
}
THEIRS |= {"spark.SparkSource", "torch.ThreadLoader"}
# Parameters with several defaults.
DEFAULTS = {
    # Records in memory grow with the longest: who reads unknown files is protected. Who verifies
    # or repairs one must not take a valid record for damage.
    "max_record_size": {2**30, None},
    # Readers look at the file, writers write a plain one; Beam has names of its own.
    "compression_type": {"auto", None, "CompressionTypes.AUTO"},
    # As large as pays, for arrays, for tables and for rows of datasets; of grain, no batch at all.
    "batch_size": {1024, 65536, 1000, None},
    # A text index has no usual name.
    "index_path": {None, inspect.Parameter.empty},
    # An index to use, and whether to save one.
    "index": {None, False},
}
# Options that are keyword-only here and positional there.
POSITIONAL = {
    "batch_size": "second in parse_file; tables and datasets have options only",
    "columns": "the table that is written; which columns of a table are read is an option",
    "compression_type": "second where one input is all that is given, as in TensorFlow",
    "features": "a specification; those of huggingface are a datasets.Features",
    "options": "next to the path or the records, as in TensorFlow",
    "index": "second in TFRecordFile; ShardedWriter has options only",
}


def functions():
    """Public functions, classes and methods by name."""
    for module in (tfw, *(import_module(f"tfwire.{name}") for name in MODULES)):
        for name in module.__all__:
            value = getattr(module, name)
            if name in THEIRS or not callable(value):
                continue
            if name not in RESULTS:
                yield name, value
            if inspect.isclass(value):
                for method, function in inspect.getmembers(value, callable):
                    ours = (getattr(function, "__module__", None) or "").startswith("tfwire")
                    if ours and not method.startswith("_"):
                        yield f"{name}.{method}", function


def neighbours():
    """Public functions and constructors of the neighbours, by name, with their parameters."""
    for module in NEIGHBOURS:
        for name in api.all_of(f"tfwire.{module}"):
            found = api.find(f"tfwire.{module}", name)
            if isinstance(found.node, ast.ClassDef):
                found = api.fields(found).get("__init__")
            if found and f"{module}.{name}" not in THEIRS:
                yield f"{module}.{name}", list(parameters_of(*found))


def parameters_of(node, module):
    """As of inspect.signature, from the text of a function."""
    arguments, kinds = node.args, inspect.Parameter
    positional = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(positional) - len(arguments.defaults))
    for kind, each, defaults in (
        (kinds.POSITIONAL_OR_KEYWORD, positional, [*missing, *arguments.defaults]),
        (kinds.KEYWORD_ONLY, arguments.kwonlyargs, arguments.kw_defaults),
    ):
        for argument, default in zip(each, defaults, strict=True):
            yield kinds(argument.arg, kind, default=default_of(default, module))


def default_of(default, module):
    """The value of a default, or its text where it is of another library."""
    if default is None:
        return inspect.Parameter.empty
    text = ast.unparse(api.constant(default, module))
    try:
        return eval(text, {})
    except NameError:
        return text


def names_of(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


def parameters():
    """Of every name of a parameter: the functions that have it, with the parameter."""
    found = defaultdict(dict)
    for name, function in functions():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                found[parameter.name][name] = parameter
    for name, theirs in neighbours():
        for parameter in theirs:
            found[parameter.name][name] = parameter
    del found["self"]
    return found


PARAMETERS = parameters()


def test_parameters_are_found():
    assert len(PARAMETERS) > 60
    assert {"read_records", "verify_file", "RecordIndex.build", "Parser.parse_file"} <= set(
        PARAMETERS["compression_type"]
    )


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_parameter_has_one_default(name):
    defaults = {parameter.default for parameter in PARAMETERS[name].values()}
    required = {inspect.Parameter.empty}
    if name in DEFAULTS:
        assert DEFAULTS[name] == defaults
    else:
        assert len(defaults - required) <= 1, PARAMETERS[name]


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_an_option_is_keyword_only_everywhere_or_nowhere(name):
    kinds = {parameter.kind for parameter in PARAMETERS[name].values()}
    assert (1 if name not in POSITIONAL else 2) == len(kinds), PARAMETERS[name]


def test_files_come_first():
    for name, function in functions():
        names = names_of(function)
        if {"path", "paths", "pattern"} & set(names) and name != "write_schema":
            assert names[0] in ("path", "paths", "pattern"), name
    # What is written comes first here, as in TensorFlow Data Validation.
    assert ["features", "path"] == names_of(tfw.write_schema)


def test_the_compression_comes_second():
    for function in (tfw.read_records, tfw.follow_records, tfw.verify_file, tfw.RecordIndex.build):
        assert "compression_type" == names_of(function)[1]


def test_each_function_with_a_compression_takes_both_words_for_it():
    """That of TensorFlow's readers, and that of its writers; Beam has its own."""
    both = set(PARAMETERS["compression_type"]) - {"beam.ReadBatchesFromTFRecord"}
    assert both == set(PARAMETERS["options"])
    assert {"read_records", "write_records", "open_reader", "polars.scan_tfrecord"} <= both
    assert {"ray.TFRecordDatasink", "huggingface.TFRecord", "infer_schema"} <= both
    assert {"compression_type", "options"} <= set(names_of(tfw.TFRecordDataset))


@pytest.mark.parametrize(
    "call",
    [
        tfw.read_records,
        partial(tfw.follow_records, timeout=0),
        tfw.verify_file,
        lambda path, **words: list(tfw.verify_files(path, **words)),
        tfw.RecordIndex.build,
        tfw.RecordIndex.build_many,
        lambda path, **words: tfw.repair_file(path, "b", overwrite=True, **words),
        tfw.infer_schema,
        tfw.Parser({"a": tfw.FixedLenFeature([], tfw.int64)}).parse_file,
        tfw.TFRecordDataset,
        lambda path, **words: tfw.arrow.open_reader(path, **words),
        lambda path, **words: tfw.write_records("c", [{"a": 1}], **words),
        lambda path, **words: tfw.TFRecordWriter("c", **words).close(),
        lambda path, **words: tfw.ShardedWriter("c-{shard}", num_shards=1, **words).close(),
    ],
)
def test_either_word_is_taken_and_not_both(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tfw.write_records("a", [{"a": 1}] * 3, "GZIP")
    for word in ("compression_type", "options"):
        found = call("a", **{word: "GZIP"})
        if isinstance(found, Iterator | tfw.Dataset):
            assert len(list(found)) in (1, 3)
        for path in {"c", "c-0"} & set(os.listdir()):
            assert b"\x1f\x8b" == Path(path).read_bytes()[:2]
        with pytest.raises(ValueError, match="BZIP2"):
            call("a", **{word: "BZIP2"})
    with pytest.raises(TypeError, match="two words for one argument"):
        call("a", compression_type="GZIP", options="GZIP")


def test_what_is_closed_is_a_context_manager():
    closed = {name.partition(".")[0] for name, _ in functions() if name.endswith(".close")}
    assert {"RecordIterator", "DatasetIterator", "TFRecordFile", "ShardedWriter"} <= closed
    for name in closed:
        assert {"__enter__", "__exit__"} <= set(dir(getattr(tfw, name))), name


def test_other_words_are_gone():
    others = {"filenames", "filename", "file_name", "file", "compression", "records_per_batch"}
    assert not others & PARAMETERS.keys()
    methods = {name.partition(".")[2] for name, _ in functions()}
    assert not {"as_dict", "as_list", "as_numpy"} & methods


# Annotated with classes of a package that is imported when it is used: protobuf, scipy.
UNRESOLVED = {"bytes_feature", "float_feature", "int64_feature", "SparseTensor.to_scipy"}


def test_type_hints_are_found_at_run_time():
    """By programs that ask for them: validators, documentation, dispatch."""
    failed, count = set(), 0
    for module in (tfw, *(import_module(f"tfwire.{name}") for name in (*MODULES, "train"))):
        for name in module.__all__:
            value = getattr(module, name)
            members = inspect.getmembers(value) if inspect.isclass(value) else []
            functions = [(f"{name}.{key}", found) for key, found in members if key[0] != "_"]
            functions += [
                (f"{name}.__init__", found) for key, found in members if key == "__init__"
            ]
            for key, found in [(name, value), *functions]:
                found = getattr(found, "fget", found)
                if isinstance(found, type) or inspect.isroutine(found):
                    count += 1
                    try:
                        typing.get_type_hints(found)
                    except NameError:
                        failed.add(key)
    assert count > 300
    assert UNRESOLVED == failed
