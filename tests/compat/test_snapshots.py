"""``snapshot`` of tfwire.compat: what was kept is served to the same pipeline and to no other."""

import os
import sys
import threading
import types
from collections import namedtuple

import numpy as np
import pytest

import tfwire
import tfwire.compat as tf
from helpers.command import output_of_python
from tfwire.compat._data.fingerprints import fingerprint

Dataset = tf.data.Dataset


def values(dataset):
    return [np.asarray(element).tolist() for element in dataset.as_numpy_iterator()]


def of_source(source):
    """The dataset that a program of a user makes: a module of its own, with its globals."""
    module = types.ModuleType("program_of_a_user")
    module.tf, module.np, module.Dataset = tf, np, Dataset
    exec(source, module.__dict__)
    return module.dataset


# Programs of a user; another has 2 in the place of 1.
NUMBERS = {
    "source": "dataset = Dataset.range(%s)",
    "an array": "dataset = Dataset.from_tensor_slices(np.array([0, %s]))",
    "an argument": "dataset = Dataset.range(9).batch(%s)",
    "a constant": "dataset = Dataset.range(3).map(lambda x: x + %s)",
    "a default argument": "dataset = Dataset.range(3).map(lambda x, n=%s: x + n)",
    "an enclosed variable": "def made(n): return lambda x: x + n\n"
    "dataset = Dataset.range(3).map(made(%s))",
    "a global": "K = [%s]\ndataset = Dataset.range(3).map(lambda x: x + K[0])",
    "a function called": "def f(x): return x + %s\ndef g(x): return f(x)\n"
    "dataset = Dataset.range(3).map(g)",
    "a function inside": "def f(x):\n def g(): return x + %s\n return g()\n"
    "dataset = Dataset.range(3).map(f)",
    "an object": "class C:\n def __init__(self, n): self.n = n\n"
    " def __call__(self, x): return x + self.n\n"
    "dataset = Dataset.range(3).map(C(%s))",
    "a method": "class C:\n def f(self, x): return x + %s\ndataset = Dataset.range(3).map(C().f)",
    "a method of a base": "class B:\n n = %s\nclass C(B):\n"
    " def f(self, x): return x + self.n\n"
    "dataset = Dataset.range(3).map(C().f)",
    "a set": "dataset = Dataset.range(5).filter(lambda x: tf.constant(int(x) in {0, %s}))",
    "a generator": "def g(): yield from range(%s)\ndataset = Dataset.from_generator(g, tf.int64)",
    "behind a cache": "dataset = Dataset.range(3).map(lambda x: x + %s).cache()",
    "a function behind lru_cache": "import functools\n@functools.lru_cache\n"
    "def f(x): return x + %s\n"
    "dataset = Dataset.range(3).map(lambda x: f(int(x)))",
    "a function that wears the name of another": "import functools\n@functools.wraps(np.sort)\n"
    "def f(x): return x + %s\ndataset = Dataset.range(3).map(f)",
    "an attribute of a function": "def f(x): return x + f.n\nf.n = %s\n"
    "dataset = Dataset.range(3).map(f)",
    "the default of a dict": "import collections\nd = collections.defaultdict(lambda: %s)\n"
    "dataset = Dataset.range(3).map(lambda x: x + d.copy()[0])",
    "a regular expression": "import re\nr = re.compile('%s')\n"
    "dataset = Dataset.range(3).map(lambda x: tf.constant(r.match(str(int(x))) is None))",
}
# What is put in its place, by one and by the other.
OTHERS = {
    "strings": ("dataset = Dataset.from_tensor_slices(['%s'])", "ab', 'c", "a', 'bc"),
    "order of stages": ("dataset = Dataset.range(9).%s)", "skip(2).take(4", "take(4).skip(2"),
    "zero and False": ("dataset = Dataset.range(1).map(lambda x: tf.constant(%s))", "0", "False"),
    "an operator": ("dataset = Dataset.range(3).map(lambda x: x %s x)", "+", "*"),
    "a filter": ("dataset = Dataset.range(3).filter(lambda x: x %s 1)", ">", "<"),
    "an inner dataset": (
        "dataset = Dataset.range(3).flat_map(lambda x: Dataset.range(%sx))",
        "",
        "2 * ",
    ),
    "a mask": (
        "a = np.ma.array([1, 2], mask=[0, %s])\n"
        "dataset = Dataset.range(3).map(lambda x: x + int(a.sum()))",
        "0",
        "1",
    ),
    "names of fields": (
        "a = np.array([(1, 2)], [('%s', 'i4')])\n"
        "dataset = Dataset.range(3).map(lambda x: x + int(a['a'][0]))",
        "a', 'i4'), ('b",
        "b', 'i4'), ('a",
    ),
    "a C function": ("dataset = Dataset.range(1, 4).map(tf.%s)", "negative", "abs"),
}
PAIRS = {**{name: (source, "1", "2") for name, source in NUMBERS.items()}, **OTHERS}


@pytest.mark.parametrize("name", PAIRS)
def test_a_changed_pipeline_is_not_served_what_was_kept(name, tmp_path):
    template, first, second = PAIRS[name]
    for source in (template % first, template % second, template % first):
        expected = values(of_source(source))
        for _ in range(2):
            assert expected == values(of_source(source).snapshot(str(tmp_path)))
    assert 2 == len(os.listdir(tmp_path))


@pytest.mark.parametrize(
    "lines",
    [
        "import user_package.functions\ndef g(x): return user_package.functions.f(x)",
        "from user_package import functions\ndef g(x): return functions.f(x)",
        "def g(x):\n from user_package.functions import f\n return f(x)",
        "def g(x):\n import user_package.functions as u\n return u.f(x)",
        "__package__ = 'user_package'\ndef g(x):\n from .functions import f\n return f(x)",
    ],
)
def test_a_module_of_the_user_counts_where_it_is_imported(lines, tmp_path, monkeypatch):
    package = types.ModuleType("user_package")
    package.__path__ = []
    package.functions = types.ModuleType("user_package.functions")
    monkeypatch.setitem(sys.modules, "user_package", package)
    monkeypatch.setitem(sys.modules, "user_package.functions", package.functions)
    for n in (1, 2, 1):
        exec(f"def f(x): return x + {n}", package.functions.__dict__)
        for _ in range(2):
            dataset = of_source(f"{lines}\ndataset = Dataset.range(2).map(g)")
            assert [n, n + 1] == values(dataset.snapshot(str(tmp_path)))
    assert 2 == len(os.listdir(tmp_path))


def test_a_function_may_ask_for_a_module_that_is_not_there(tmp_path):
    lines = "def g(x):\n try: import not_there_at_all\n except ImportError: return x + 1"
    for _ in range(2):
        dataset = of_source(f"{lines}\ndataset = Dataset.range(2).map(g)")
        assert [1, 2] == values(dataset.snapshot(str(tmp_path)))
    assert 1 == len(os.listdir(tmp_path))


def test_files_count_although_a_function_names_them_too(tmp_path):
    paths = [str(tmp_path / "a.tfrecord")]
    found = set()
    for number in range(2):
        tfwire.write_records(paths[0], [b"one"] * (1 + number))
        dataset = tf.data.TFRecordDataset(paths).map(lambda x: (x, paths)[0])
        dataset._stage.source.paths = paths
        found.add(fingerprint(dataset._stage))
    assert 2 == len(found)


def test_the_same_pipeline_is_served_what_was_kept(tmp_path):
    log = tmp_path / "log"

    def counted(x):
        with open(log, "a") as file:
            file.write("x")
        return x

    for _ in range(2):
        dataset = Dataset.range(3).shuffle(3).map(counted).batch(2).snapshot(str(tmp_path / "kept"))
        first = values(dataset)
        assert first == values(dataset)
    assert "xxx" == log.read_text()


@pytest.mark.parametrize("way", ["plain", "indexed", "interleave", "lines"])
def test_a_replaced_file_is_read_again(way, tmp_path):
    path = str(tmp_path / "a.tfrecord")

    def build():
        if way == "lines":
            return tf.data.TextLineDataset(path)
        if way == "interleave":
            return Dataset.from_tensor_slices([path]).interleave(tf.data.TFRecordDataset, 1)
        return tf.data.TFRecordDataset(path, indexed=way == "indexed")

    for word in (b"one", b"two"):
        if way == "lines":
            (tmp_path / "a.tfrecord").write_bytes(word)
        else:
            tfwire.write_records(path, [word])
        os.utime(path, ns=(0, int.from_bytes(word, "big")))
        for _ in range(2):
            found = list(build().snapshot(str(tmp_path / "kept")).as_numpy_iterator())
            assert [word] == found
    assert 2 == len(os.listdir(tmp_path / "kept"))


PROGRAM = """
import sys, tfwire.compat as tf
SIZES = {"a": {1, 2, 3}, "b": frozenset("xyz")}
class Adding:
    def __init__(self, n): self.n, self.me = n, self
    def __call__(self, x): return fact(3) + x + self.n + len(SIZES)
def fact(n): return 1 if n == 0 else n * fact(n - 1)
features = {"x": tf.io.FixedLenFeature([2], tf.int64, [1, 2]), "y": tf.io.VarLenFeature(tf.string)}
dataset = tf.data.Dataset.range(3).map(Adding(1)).shuffle(9).rejection_resample(
    lambda x: 0, [1.0]).prefetch(2)
parsed = tf.data.TFRecordDataset(["nowhere"]).batch(2).parse_example(features)
print(tf.data.Dataset.zip({"a": dataset, "b": parsed}).snapshot("kept")._stage._generate.args[0])
"""


def test_other_processes_have_the_same_fingerprint(tmp_path):
    found = [output_of_python("-c", PROGRAM, cwd=tmp_path, PYTHONHASHSEED=seed) for seed in "01"]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (threading.Lock(), "_thread.lock"),
        ((x for x in range(3)), "builtins.generator"),
        (np.frompyfunc(lambda x: x, 1, 1), "np.frompyfunc"),
    ],
)
def test_what_cannot_be_compared_is_not_kept(value, words, tmp_path):
    with pytest.warns(tfwire.TfwireWarning, match=f"keeps nothing.*{words}"):
        dataset = Dataset.range(3).map(lambda x: (x, value)[0]).snapshot(str(tmp_path))
    assert [0, 1, 2] == values(dataset) == values(dataset)
    assert [] == os.listdir(tmp_path)


def test_named_tuples_that_were_kept_are_named_tuples(tmp_path):
    pair = namedtuple("Pair", "a b")
    dataset = Dataset.from_tensor_slices(pair([1, 2], {"c": pair([3, 4], [5, 6])}))
    dataset.save(str(tmp_path / "saved"))
    kept = dataset.snapshot(str(tmp_path / "kept"))
    cached = dataset.cache(str(tmp_path / "cached"))
    for one in (kept, kept, cached, cached, Dataset.load(str(tmp_path / "saved"))):
        assert [9, 12] == values(one.map(lambda p: p.a + p.b["c"].a + p.b["c"].b))
        assert "Pair" == type(next(iter(one))).__name__


def test_objects_nested_too_deeply_are_not_kept(tmp_path):
    nested = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.warns(tfwire.TfwireWarning, match="nested too deeply"):
        Dataset.range(3).map(lambda x: (x, nested)[0]).snapshot(str(tmp_path))
    while nested:
        nested = nested[0]
