"""The public API is even: one word for one thing, with one default and one place."""

import inspect
from collections import defaultdict
from importlib import import_module

import pytest

import tfwire as tfw

pytestmark = pytest.mark.outside_c

MODULES = ["checksum", "sharding", "images"]
# Results, which programs read and do not make.
RESULTS = {"FileReport", "FlippedBit", "FlippedBits", "InferredSchema", "RecordIndex"}
RESULTS |= {"RecordIterator", "RepairReport", "SkippedRegion", "SkippedRegions", "DatasetIterator"}
RESULTS |= {"RecordPosition", "Receipt", "TornTail", "TfwireWarning"}
# TensorFlow's names and orders.
THEIRS = {"Dataset", "TFRecordDataset", "TFRecordOptions", "SparseTensor", "RaggedTensor"}
THEIRS |= {name for name in tfw.__all__ if name.endswith("Feature")}
# Parameters with several defaults.
DEFAULTS = {
    # Records in memory grow with the longest: who reads unknown files is protected. Who verifies
    # or repairs one must not take a valid record for damage.
    "max_record_size": {2**30, None},
    # A text index has no usual name.
    "index_path": {None, inspect.Parameter.empty},
    # An index to use, and whether to save one.
    "index": {None, False},
}
# Options that are keyword-only here and positional there.
POSITIONAL = {
    "compression_type": "second where one input is all that is given, as in TensorFlow",
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


def names_of(function):
    return [name for name in inspect.signature(function).parameters if name != "self"]


def parameters():
    """Of every name of a parameter: the functions that have it, with the parameter."""
    found = defaultdict(dict)
    for name, function in functions():
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
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
