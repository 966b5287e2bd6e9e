"""Every remedy that a message names is tried: the situation is raised, the remedy applied, and what
failed before succeeds.

The messages are found in the sources. One that names a remedy and is not in a table here fails.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import tfwire as tfw
from helpers.command import output_of_python, tfwire_main
from helpers.paths import PACKAGE, ROOT, TESTS
from helpers.reading import damage
from tfwire.sharding import MARKER

RECORDS = [b"cat", b"dog", b"goat"] * 3

# ---- The messages -------------------------------------------------------------------------------

# Words by which a message tells what to do.
REMEDY = re.compile(
    r"pip install|tfwire (?:verify|repair|index)\b|\buse (?!by\b)|recover_shards|\binstead\b"
    r"|RecordIndex\.build|repair_tail=True|compression_type=.auto|leave it out by|ask for receipt"
    r"|\bpass (?:it|batch)|ascontiguousarray|indexed=True|(?:save|load)\(path\)|batches_as="
    r"|declare an array|pass it here|row_splits_dtype=int64|max_padding allows|makes one"
    r"|give the file"
)
# Texts that describe, and are no advice about an error: --help, pages of the viewer, sources.
DESCRIPTIONS = re.compile(
    r"^For one session|^No file appears before|^The pages are served|is in use by"
    r"|too little for reading ahead|^TFRecordFile looks|^files indexed|in place of plain rows"
)


def text_of(node: ast.AST) -> str | None:
    """The text of a string, with a mark for each value that is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    return None


def texts(path: Path) -> Iterator[str]:
    """The strings of a module that are no docstrings and no parts of others."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            known.add(node.value)
        elif node not in known and (text := text_of(node)) is not None:
            known.update(ast.walk(node))
            yield text


@cache
def advice() -> list[str]:
    """The messages of the package that name a remedy. Those of compat name TensorFlow's ways, and
    have tests of their own."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if "compat" not in path.relative_to(PACKAGE).parts and path.name != "completion.py":
            found += [
                text for text in texts(path) if re.search("[ (]", text) and REMEDY.search(text)
            ]
    return [text for text in found if "<" not in text and not DESCRIPTIONS.search(text)]


# ---- The remedies -------------------------------------------------------------------------------


def raised(call: Callable[[], Any], *kinds: type[Exception]) -> str:
    with pytest.raises(kinds or (TypeError, ValueError, OSError, tfw.Error)) as caught:
        call()
    return str(caught.value)


def run_code(text: str) -> Any:
    """Runs code of a message as a user would who has imported tfwire, and nothing else of it."""
    return eval(text, {"tfwire": tfw, "RecordIndex": tfw.RecordIndex, "numpy": np})


def damaged_file() -> None:
    tfw.write_records("data", [tfw.encode_example({"a": i}) for i in range(9)])
    damage("data", 40)


def half_published() -> None:
    tfw.write_records("p-0", RECORDS)
    steps = [[".tfwire-0.tmp", "p-0", 1, None]]
    Path(MARKER).write_text(json.dumps(steps))


def recover_shards() -> None:
    half_published()
    with pytest.warns(tfw.TfwireWarning, match="half published") as found:
        list(tfw.read_records("p-0"))
    code = re.search(r"tfwire\.sharding\.recover_shards\(.*?\)", str(found[0].message))
    output_of_python("-c", f"import tfwire; {code[0]}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RECORDS == list(tfw.read_records("p-0"))


def recover_objects() -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/half/p-0", b"")
    tfw.write_records("memory://half/p-0", RECORDS)
    tfw.write_records("memory://half/p-1", RECORDS)
    files.pipe(f"/half/{MARKER}", json.dumps([["p-0", -1, "p-0"]]).encode())
    try:
        tfw.sharding.recover_shards("memory://half")
        assert not files.exists(f"/half/{MARKER}")
    finally:
        files.rm("/half", recursive=True)


def cut_tail() -> None:
    tfw.write_records("data", RECORDS)
    Path("data").write_bytes(Path("data").read_bytes()[:-3])
    message = raised(lambda: tfw.TFRecordWriter("data", append=True))
    assert "repair_tail=True would cut" in message
    with tfw.TFRecordWriter("data", append=True, repair_tail=True) as writer:
        writer.write(b"more")
    assert [*RECORDS[:-1], b"more"] == list(tfw.read_records("data"))


def repair_and_continue(message: str, options: str) -> None:
    assert "'tfwire repair'" in message
    tfwire_main("repair", "data", "new")
    kept = list(tfw.read_records("new"))
    with tfw.TFRecordWriter("new", options, append=True) as writer:
        writer.write(b"more")
    assert [*kept, b"more"] == list(tfw.read_records("new"))
    assert len(kept) >= len(RECORDS) - 2


def repair_damage_before_the_tail() -> None:
    """A length that reaches beyond the end hides the records after it."""
    tfw.write_records("data", RECORDS)
    length = (1 << 20).to_bytes(8, "little")
    header = length + tfw.checksum.masked_crc32c(length).to_bytes(4, "little")
    content = Path("data").read_bytes()
    Path("data").write_bytes(content + header + content)
    message = raised(lambda: tfw.TFRecordWriter("data", append=True, repair_tail=True))
    repair_and_continue(message, "")


def repair_a_cut_stream() -> None:
    """As a killed writer leaves it: all that was flushed, and no end."""
    with tfw.TFRecordWriter("data", "GZIP") as writer:
        writer.write_many(RECORDS)
        writer.flush()
        flushed = Path("data").read_bytes()
    Path("data").write_bytes(flushed)
    for repair_tail in (False, True):
        message = raised(
            lambda repair=repair_tail: tfw.TFRecordWriter(
                "data", "GZIP", append=True, repair_tail=repair
            )
        )
    repair_and_continue(message, "GZIP")
    assert RECORDS == list(tfw.read_records("new"))[:-1]


def use_gzip() -> None:
    tfw.write_records("data", RECORDS, "ZLIB")
    assert "use GZIP" in raised(lambda: tfw.TFRecordWriter("data", "ZLIB", append=True))
    tfw.write_records("data", RECORDS, "GZIP")
    tfw.TFRecordWriter("data", "GZIP", append=True).close()


def ask_for_a_receipt() -> None:
    tfw.write_records("data", RECORDS)
    records = tfw.read_records("data")
    assert "receipt=True" in raised(lambda: records.receipt)
    records = tfw.read_records("data", receipt=True)
    assert len(RECORDS) == len(list(records)) == records.receipt.num_records


def detect_the_compression() -> None:
    tfw.write_records("data", RECORDS, "GZIP")
    message = raised(lambda: list(tfw.read_records("data", None)))
    assert "readers detect others with compression_type='auto'" in message
    assert RECORDS == list(tfw.read_records("data", compression_type="auto"))
    result = tfwire_main("verify", "data", "--compression", "none")
    assert b"--compression auto detects others" in result.stdout
    assert 0 == tfwire_main("verify", "data", "--compression", "auto").returncode


def build_index(message: str) -> None:
    """Runs the code of a message."""
    run_code(
        re.search(r"RecordIndex\.build\(path\)\.save\(\)", message)[0].replace("path", "'data'")
    )


def make_an_index() -> None:
    tfw.write_records("data", RECORDS)
    message = raised(lambda: tfw.RecordIndex.load("data"))
    words = re.search(r"'tfwire (.*?)'", message)[1].replace("FILE", "data").split()
    for make in (lambda: build_index(message), lambda: tfwire_main(*words)):
        Path("data.tfwindex").unlink(missing_ok=True)
        make()
        assert len(RECORDS) == len(tfw.RecordIndex.load("data"))


def index_what_was_appended() -> None:
    tfw.write_records("data", RECORDS)
    message = raised(lambda: tfw.TFRecordWriter("data", append=True, index=True))
    with tfw.TFRecordWriter("data", append=True) as writer:
        writer.write(b"more")
    build_index(message)
    assert len(RECORDS) + 1 == len(tfw.RecordIndex.load("data"))


def give_the_file_of_an_index() -> None:
    tfw.write_records("data", RECORDS)
    tfw.RecordIndex.build("data").save()
    message = raised(lambda: list(tfw.read_records("data.tfwindex")))
    path = re.search(r"give the file that it is for, (\S+)", message)[1]
    assert RECORDS == list(tfw.read_records(path))
    result = tfwire_main("schema", "data.tfwindex")
    assert b"give the file that it is for, data" in result.stderr
    assert b"tfwire repair" not in result.stderr


def verify_and_repair() -> None:
    damaged_file()
    result = tfwire_main("schema", "data")
    assert b"tfwire verify lists all damage; tfwire repair keeps" in result.stderr
    assert b"record 1" in tfwire_main("verify", "data").stdout
    tfwire_main("repair", "data", "new")
    assert len(RECORDS) - 1 == len(list(tfw.read_records("new")))


def verify_lists_all(command: list[str]) -> None:
    """More regions than a command lists."""
    tfw.write_records("data", RECORDS * 30)
    content = bytearray(Path("data").read_bytes())
    at = 0
    for i, record in enumerate(RECORDS * 30):
        content[at + 12] ^= i % 2
        at += len(record) + 16
    Path("data").write_bytes(content)
    result = tfwire_main(*command)
    assert b"tfwire verify lists" in result.stderr + result.stdout
    assert 135 == tfwire_main("verify", "data").stdout.count(b"data crc")


def verify_what_bench_refuses() -> None:
    damaged_file()
    assert b"see tfwire verify" in tfwire_main("bench", "data").stderr
    assert b"record 1" in tfwire_main("verify", "data").stdout


def index_the_files() -> None:
    tfw.write_records("data", RECORDS)
    dataset = tfw.TFRecordDataset(["data"])
    assert "indexed=True" in raised(lambda: dataset.shard_source(2, 0, rule="drop"))
    dataset = tfw.TFRecordDataset(["data"], indexed=True)
    assert RECORDS[:4] == list(dataset.shard_source(2, 0, rule="drop"))


def divide_the_records() -> None:
    tfw.write_records("data", RECORDS)
    with pytest.warns(tfw.TfwireWarning, match="with indexed=True"):
        assert [] == list(tfw.TFRecordDataset(["data"]).shard_source(2, 1))
    assert [] != list(tfw.TFRecordDataset(["data"], indexed=True).shard_source(2, 1))


def cache_indexed_records() -> None:
    tfw.write_records("data", RECORDS)
    assert "indexed=True" in raised(lambda: tfw.TFRecordDataset(["data"], cache_bytes=1000))
    assert RECORDS == list(tfw.TFRecordDataset(["data"], indexed=True, cache_bytes=1000))


def raise_max_padding() -> None:
    rows = [np.zeros(1, np.int64), np.zeros(100, np.int64)]
    data = tfw.Dataset.from_generator(lambda: iter(rows))
    assert "max_padding allows 9" in raised(lambda: list(data.padded_batch(2, max_padding=9)))
    assert (2, 100) == next(iter(data.padded_batch(2, max_padding=10**4))).shape


def raise_max_padding_of_a_sparse_tensor() -> None:
    sparse = tfw.SparseTensor(np.array([[0, 99]]), np.array([7]), np.array([9, 100]))
    assert "max_padding allows 9" in raised(lambda: sparse.to_dense(max_padding=9))
    assert (9, 100) == sparse.to_dense(max_padding=10**5).shape


def make_strings_dense() -> None:
    sparse = tfw.SparseTensor(np.array([[0]]), np.array([b"a"], object), np.array([1]))
    assert "use to_dense()" in raised(sparse.to_scipy)
    assert [b"a"] == sparse.to_dense().tolist()


def use_a_ragged_tensor() -> None:
    sparse = tfw.SparseTensor(np.array([[0, 0]]), np.array([7]), np.array([1, 1]))
    assert "use a RaggedTensor" in raised(lambda: tfw.encode_columns({"a": sparse}))
    tfw.encode_columns({"a": tfw.RaggedTensor(sparse.values, [0, 1])})


def use_another_feature() -> None:
    count = 1 << 14
    examples = [tfw.encode_example({"a": np.zeros(count)})] + [b""] * (3 << 14)
    padded = tfw.FixedLenSequenceFeature([], tfw.float32, allow_missing=True)
    message = raised(lambda: tfw.parse_example(examples, {"a": padded}))
    assert "use a RaggedFeature, a VarLenFeature or smaller batches" in message
    for feature in (tfw.RaggedFeature(tfw.float32), tfw.VarLenFeature(tfw.float32)):
        tfw.parse_example(examples, {"a": feature})
    tfw.parse_example(examples[:100], {"a": padded})


def use_other_helpers() -> None:
    helpers = [tfw.int64_feature, tfw.float_feature, tfw.bytes_feature]
    for value in (1, 1.5, "x"):
        for helper in helpers:
            try:
                helper(value)
            except TypeError as error:
                getattr(tfw, re.search(r"use (\w+)", str(error))[1])(value)


def use_what_takes_several() -> None:
    for name in ("p-0", "p-1"):
        tfw.write_records(name, RECORDS)
    ones: list[Callable[[str], Any]] = [tfw.TFRecordFile, tfw.RecordIndex.build, tfw.verify_file]
    for one in (*ones, tfw.follow_records):
        message = raised(lambda one=one: one("p-*"))
        code = re.search(r"use ([\w.]+\(paths\))", message)[1]
        several = list(eval(f"tfw.{code}", {"tfw": tfw, "paths": "p-*"}))
        assert several == RECORDS * 2 or ["p-0", "p-1"] == [each.path for each in several]
    assert "use repair_file for each" in raised(lambda: tfw.repair_file("p-*", "new"))
    for report in tfw.verify_files("p-*"):
        tfw.repair_file(report.path, f"new {report.path}")


def use_objects() -> None:
    array = np.array([b"abc", b"de"])
    for call in (
        tfw.decode_examples,
        lambda strings: tfw.decode_raw(strings, "int8", fixed_length=2),
        lambda records: tfw.write_records("data", records),
    ):
        assert "use dtype=object" in raised(lambda call=call: call(array))
    tfw.write_records("data", array.astype(object))
    tfw.decode_raw(array.astype(object), "int8", fixed_length=2)
    tfw.decode_examples(np.array([tfw.encode_example({"a": 1})], object))


def make_it_contiguous() -> None:
    array = np.arange(20, dtype=np.uint8)[::2]
    message = raised(lambda: tfw.crc32c(array))
    make = run_code(re.search(r"numpy\.ascontiguousarray", message)[0])
    assert tfw.crc32c(array.tobytes()) == tfw.crc32c(make(array))


def leave_a_column_out() -> None:
    tfw.write_records("data", [tfw.encode_sequence_example({"a": 1, "b": 2}, {"a": [[1]]})])
    context = {name: tfw.FixedLenFeature([], tfw.int64) for name in "ab"}
    lists = {"a": tfw.VarLenFeature(tfw.int64)}
    message = raised(lambda: tfw.arrow.open_reader("data", (context, lists)))
    assert "leave it out by `columns`" in message
    tfw.arrow.open_reader("data", (context, lists), columns=["b"])
    tfw.arrow.open_reader("data", ({"b": context["b"]}, lists))


def index_what_is_far() -> None:
    """The viewer gives up after some seconds; here at once."""
    from tfwire.view import _budget, _dataset, _records

    def find(budget: Any) -> Any:
        files = [_records.BrowsedFile("data", "auto")]
        return _dataset.DataSet(files).find(4999, budget)

    tfw.write_records("data", [bytes(1000)] * 5000, "GZIP")
    late = _budget.Budget(seconds=0)
    assert "tfwire index makes that quick" in raised(lambda: find(late), LookupError)
    assert 0 == tfwire_main("index", "data").returncode
    assert 4999 == find(late).position.record_index


def follow_what_datasets_say() -> None:
    """Every replacement of a transformation that a Dataset does not have names what exists."""
    from tfwire._data.dataset_methods import _INSTEAD

    for name, instead in _INSTEAD.items():
        assert f"instead: {instead}" in raised(
            lambda name=name: getattr(tfw.Dataset.range(1), name), AttributeError
        )
        for path in re.findall(r"\b(?:tfwire|Dataset|itertools|functools)\.[\w.]*\w", instead):
            root, *rest = path.split(".")
            value: Any = {"tfwire": tfw, "Dataset": tfw.Dataset}.get(root) or __import__(root)
            for part in rest:
                value = getattr(value, part)


REMEDIES: dict[str, Callable[[], None]] = {
    "tfwire.sharding.recover_shards({})": recover_shards,
    "tfwire.sharding.recover_shards of the folder puts": recover_objects,
    "tfwire.sharding.recover_shards of the folder restores": recover_objects,
    "repair_tail=True would cut the file there": cut_tail,
    "records that verify follow it": repair_damage_before_the_tail,
    "what was compressed cannot be cut off": repair_a_cut_stream,
    "a ZLIB file cannot be continued": use_gzip,
    "ask for receipt=True": ask_for_a_receipt,
    "readers detect others with compression_type='auto'": detect_the_compression,
    "compression_type='auto' tried": detect_the_compression,
    "no such index; RecordIndex.build(path).save()": make_an_index,
    "index and append exclude each other": index_what_was_appended,
    "give the file that it is for": give_the_file_of_an_index,
    "tfwire verify lists all damage": verify_and_repair,
    "tfwire verify lists them": lambda: verify_lists_all(["head", "data"]),
    "tfwire verify lists more": lambda: verify_lists_all(["info", "data"]),
    "see tfwire verify": verify_what_bench_refuses,
    "needs files that are indexed": index_the_files,
    "with indexed=True, records are divided": divide_the_records,
    "cache_bytes needs": cache_indexed_records,
    "bytes of padding; max_padding allows {}": raise_max_padding,
    "a dense array of shape {}": raise_max_padding_of_a_sparse_tensor,
    "scipy has no sparse arrays of strings": make_strings_dense,
    "a SparseTensor cannot be a column": use_a_ragged_tensor,
    "smaller batches": use_another_feature,
    "{}, found {}; use {}": use_other_helpers,
    "{} must be one file, found {}; use {}": use_what_takes_several,
    "RecordIndex.build_many(paths)": use_what_takes_several,
    "use dtype=object": use_objects,
    "two columns would have the name": leave_a_column_out,
    "it is too far to read there": index_what_is_far,
    "numpy.ascontiguousarray": make_it_contiguous,
    "; instead: {}": follow_what_datasets_say,
}


@pytest.mark.parametrize("key", REMEDIES)
def test_a_remedy_cures(key, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    REMEDIES[key]()


# What another test shows, most often of a library that is not here: its file, and words there.
TORCH, ENGINES = "neighbours/test_torch_", "engines/test_"
ELSEWHERE = {
    "instead: ": ("cli/test_cli_port.py", "def check_against_compat"),
    "does not use TensorFlow": ("cli/test_cli_port.py", "does not use TensorFlow"),
    "iterate once for each epoch": ("data/test_dataset_resume_shards.py", "once for each epoch"),
    "is not read in blocks": (
        "records/remote/test_remote_caches.py",
        "use simplecache:: or filecache::",
    ),
    "its index has no keys": ("records/index/test_record_keys.py", "has no keys.*RecordIndex"),
    "need row_splits_dtype=int64": ("parsing/test_parse_errors.py", "need row_splits_dtype=int64"),
    "batches with strings cannot be": (f"{TORCH}collated_batches.py", 'HINT = "batch_size=None"'),
    "tfwire repair {} {}": ("cli/test_cli_view_data.py", "tfwire repair .*"),
    "len needs the DataLoader's": (f"{TORCH}iterable.py", 'match="num_workers"'),
    "use snapshot_every_n_steps=1": (f"{TORCH}resumed.py", "snapshot_every_n_steps=4"),
    'SequenceExamples need batches_as="arrow"': (f"{ENGINES}beam.py", "SequenceExamples need"),
    '{} need batches_as="arrow"': (f"{ENGINES}beam.py", '"tensors": True'),
    "declare an array": (f"{ENGINES}spark.py", "declare an array"),
    "the folder to write is missing": (f"{ENGINES}spark.py", "folder to write is missing"),
    "the path to read is missing": (f"{ENGINES}spark.py", "path to read is missing"),
}


def keys_of(message: str) -> list[str]:
    """The entries of the tables that a message belongs to."""
    return [key for key in (*REMEDIES, *ELSEWHERE) if key in message]


def test_every_remedy_has_a_run():
    found = [text for text in advice() if "pip install" not in text]
    assert [] == [text for text in found if not keys_of(text)]
    assert [] == [key for key in (*REMEDIES, *ELSEWHERE) if not any(key in text for text in found)]
    for path, words in ELSEWHERE.values():
        assert words in (TESTS / path).read_text(encoding="utf-8")


def test_what_is_to_be_installed_exists_and_is_enough():
    """The extra of a message has the packages that the message names."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = dict(re.findall(r"^(\w+) = (\[.*\])$", project, re.MULTILINE))
    named = [text for text in advice() if "pip install 'tfwire[" in text]
    assert len(named) > 8
    for text in named:
        extra = re.search(r"pip install 'tfwire\[(\w+)\]'", text)[1]
        wanted = re.search(r"needs? ([\w -]+?)(?:\[| \d| and |;|:|$)", text)
        if wanted and "{}" not in text:
            assert f'"{wanted[1]}' in extras[extra].replace("ray[data]", "ray"), text
