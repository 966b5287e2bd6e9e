"""tfwire port: what it calls runnable is in tfwire.compat, and what it calls missing is not."""

import ast
import json
import operator
import re

import pytest

import tfwire.compat as tf
from helpers.command import tfwire_command, tfwire_main
from helpers.paths import DOCS, TESTS
from tfwire.cli._porting.uses import find_uses
from tfwire.compat._errors import INSTEAD

pytestmark = [pytest.mark.outside_c, pytest.mark.usefixtures("folder")]

HALF = '{"cells": [{"cell_type": "code", "source": "\\ud800"}]}'
WRONG = ["", "{}", "[1]", '{"cells": [{}]}', '{"cells": 1}', b"\xff", HALF]
PROGRAM = """\
import tensorflow as tf
from tensorflow.io import TFRecordWriter

with TFRecordWriter("x") as writer:
    writer.write(tf.random.normal([1]))
dataset = (
    tf.data.TFRecordDataset("x")
    .map(lambda x: tf.io.decode_raw(x, tf.float32))
    .sparse_batch(2)
)
tf.cast(1, dtypes=tf.int64)
tf.quantization.quantize(1)
"""
REPORT = """\
a.py:1: change import tensorflow as tf  ->  import tfwire.compat as tf
a.py:2: change from tensorflow.io import TFRecordWriter  ->  import tfwire.compat as tf; \
TFRecordWriter = tf.io.TFRecordWriter
a.py:5: tf.random.normal does not run; instead: numpy.random.default_rng(seed)
a.py:9: TFRecordDataset.sparse_batch does not run; instead: dataset.ragged_batch, \
or dataset.padded_batch
a.py:11: tf.cast does not run; the call has an unexpected keyword argument 'dtypes'
a.py:12: tf.quantization.quantize does not run; no replacement is known; \
docs/porting.md has what there is
a.py: 4 of 11 uses of TensorFlow do not run; 2 imports to change
"""


def port(text, name="a.py", *options):
    """The command's answer to a program."""
    with open(name, "wb") as file:
        file.write(text.encode() if isinstance(text, str) else text)
    return tfwire_command("port", name, *options)


def uses_of(text):
    """What a program uses: names, and whether they run."""
    return {use.name: not use.fault for use in find_uses(ast.parse(text))[1]}


def test_what_is_not_followed_is_counted():
    """Attributes, items, results of functions, and what is found by a name that is made."""
    text = """
import importlib
import tensorflow as tf
def read(path):
    return tf.data.TFRecordDataset(path)
class Reader:
    def __init__(self, name):
        self.data = tf.data.TFRecordDataset("x")
        self.read = getattr(tf.io, name)
        self.number = int("1")
all_of_it = importlib.import_module("tensorflow.io")
x = getattr(Reader("x"), "number")
found["x"], y = tf.constant(1), 2
"""
    assert [5, 8, 9, 11, 13] == find_uses(ast.parse(text))[2]
    done = port(text, "a.py", "--all")
    assert "a.py:5: what becomes of this is not followed\n" in done.stdout
    assert done.stdout.endswith("; what becomes of them at 5 lines is not followed\n")


def faults_of(text):
    return [name for name, runs in uses_of(text).items() if not runs]


def test_a_report():
    done = port(PROGRAM)
    assert (1, "", REPORT) == (done.returncode, done.stderr, done.stdout)


def test_all_uses_on_request():
    done = port(PROGRAM, "a.py", "--all")
    lines = done.stdout.splitlines()
    assert "a.py:8: tf.io.decode_raw runs" in lines
    assert set(REPORT.splitlines()) < set(lines)
    assert len(lines) == len(REPORT.splitlines()) + 7


def test_json():
    done = port(PROGRAM, "a.py", "--json")
    found = json.loads(done.stdout)
    assert (1, False, "a.py") == (done.returncode, found["runs"], found["path"])
    assert {
        "line": 2,
        "old": "from tensorflow.io import TFRecordWriter",
        "new": "import tfwire.compat as tf; TFRecordWriter = tf.io.TFRecordWriter",
    } == found["imports"][1]
    assert 11 == len(found["uses"])
    faults = [use for use in found["uses"] if not use["runs"]]
    fault = "instead: dataset.ragged_batch, or dataset.padded_batch"
    place = {"line": 9, "column": 6, "name": "TFRecordDataset.sparse_batch", "runs": False}
    assert {**place, "fault": fault} == faults[1]
    assert {use["fault"] for use in found["uses"] if use["runs"]} == {None}


# ---- One source of truth ------------------------------------------------------------------------


def check_against_compat(uses):
    """Each use that is named from tf on is there, or raises, as it is told."""
    for use in uses:
        if use.name.startswith("tf.") and "the call has" not in use.fault:
            path = use.name.removeprefix("tf.")
            if not use.fault:
                operator.attrgetter(path)(tf)
                continue
            with pytest.raises(AttributeError) as raised:
                operator.attrgetter(path)(tf)
            if "; instead: " in str(raised.value) and "instead: tf." not in use.fault:
                assert str(raised.value).endswith(use.fault)


def test_the_five_tutorials_run():
    text = (TESTS / "compat" / "test_tutorials.py").read_text(encoding="utf-8")
    done = port(text.replace("import tfwire.compat as tf", "import tensorflow as tf"))
    assert re.fullmatch(
        r"a\.py:\d+: change import tensorflow as tf  ->  import tfwire\.compat as tf\n"
        r"a\.py: runs with 1 import changed \(1\d\d uses of TensorFlow\); "
        r"what becomes of them at \d lines is not followed\n",
        done.stdout,
    )
    assert 0 == done.returncode
    _, uses, _ = find_uses(ast.parse(text.replace("tfwire.compat as", "tensorflow as")))
    check_against_compat(uses)


PAGE = (DOCS / "porting.md").read_text(encoding="utf-8")


def named_in(title):
    """TensorFlow's names in the first column of a table of docs/porting.md."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| ")]
    return sorted({name for row in rows for name in re.findall(r"`@?(tf\.[\w.]*\w)", row)})


@pytest.mark.parametrize(
    ("title", "runs"),
    [
        ("Every call", True),
        ("Input pipelines of TensorFlow 1", True),
        ("What is not here, and what to use", False),
    ],
)
def test_the_tables_of_porting(title, runs):
    names = named_in(title)
    assert len(names) > 15
    _, uses, _ = find_uses(ast.parse("\n".join(["import tensorflow as tf", *names])))
    assert names == sorted(use.name for use in uses)
    assert {not runs} == {bool(use.fault) for use in uses}
    check_against_compat(uses)


def test_every_hint_is_given():
    """Those of names that begin at tf; others belong to objects."""
    names = [name for name in INSTEAD if name[0].islower() or name.split(".")[0] in vars(tf)]
    names = [name.replace("*", "nonsense") for name in names]
    text = "\n".join(["import tensorflow as tf", *(f"tf.{name}" for name in names)])
    _, uses, _ = find_uses(ast.parse(text))
    assert len(names) == len(uses) > 130
    assert all(use.fault.startswith("instead: ") for use in uses)
    check_against_compat(uses)


@pytest.mark.parametrize("module", ["tensorflow", "tensorflow.compat.v1"])
def test_hints_of_names_within_what_is_not_there(module):
    for name, instead in (
        ("contrib.data.map_and_batch(f, 3)", "tf.data.experimental.map_and_batch"),
        ("contrib.data.nonsense", INSTEAD["contrib"]),
        ("distribute.cluster_resolver.TPUClusterResolver()", INSTEAD["tpu"]),
        ("random.set_seed(1)", INSTEAD["set_random_seed"]),
        ("keras.utils.get_file('a', 'b')", INSTEAD["get_file"]),
    ):
        _, (use,), _ = find_uses(ast.parse(f"import {module} as tf\ntf.{name}"))
        assert f"instead: {instead}" == use.fault


def test_what_compat_has_runs():
    names = [name for name in tf.__all__ if name not in ("Any", "Callable")]
    _, uses, _ = find_uses(
        ast.parse("\n".join(["import tensorflow as tf", *(f"tf.{n}" for n in names)]))
    )
    assert [] == [use for use in uses if use.fault]
    assert len(names) == len(uses)


# ---- Imports ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import tensorflow", "import tfwire.compat as tensorflow"),
        ("import tensorflow as tf", "import tfwire.compat as tf"),
        ("import tensorflow.compat.v1 as tf", "import tfwire.compat.v1 as tf"),
        ("import tensorflow.compat.v2 as tf", "import tfwire.compat as tf"),
        ("import tensorflow.compat.v1", "import tfwire.compat as tensorflow"),
        ("import tensorflow.io as tfio", "from tfwire.compat import io as tfio"),
        (
            "import tensorflow.data.experimental as e",
            "import tfwire.compat as tf; e = tf.data.experimental",
        ),
        ("import tensorflow as tf, os", "import tfwire.compat as tf; import os"),
        ("from tensorflow import io", "from tfwire.compat import io"),
        ("from tensorflow import io as a, data", "from tfwire.compat import io as a, data"),
        ("from tensorflow.compat import v1 as tf", "import tfwire.compat.v1 as tf"),
        ("from tensorflow.compat import v2", "import tfwire.compat as v2"),
        (
            "from tensorflow.compat.v1 import placeholder",
            "from tfwire.compat.v1 import placeholder",
        ),
        (
            "from tensorflow.data import Dataset as D",
            "import tfwire.compat as tf; D = tf.data.Dataset",
        ),
    ],
)
def test_imports_and_what_to_write(old, new):
    imports, uses, _ = find_uses(ast.parse(old))
    assert [(1, old, new)] == [tuple(each) for each in imports]
    assert [] == [use for use in uses if use.fault]
    names = {}
    exec(new, names)
    bound = set(names) - {"__builtins__", "tf"}
    assert bound <= set(re.findall(r"\w+", old))


@pytest.mark.parametrize(
    ("text", "name", "fault"),
    [
        ("from tensorflow import keras", "tf.keras", "Keras"),
        ("from tensorflow.keras.layers import Dense", "tf.keras.layers.Dense", "Keras"),
        ("import tensorflow.keras as k", "tf.keras", "Keras"),
        ("from tensorflow.python.platform import gfile", "tf.python.platform.gfile", "tf.gfile"),
        ("from tensorflow.core.example import a_pb2", "tf.core.example.a_pb2", "tf.train"),
        ("import tensorflow_datasets as tfds", "tensorflow_datasets", "tfwire.tfds.open"),
        ("from tensorflow_io import arrow", "tensorflow_io", "no replacement"),
    ],
)
def test_imports_of_what_is_not_there(text, name, fault):
    imports, (use,), _ = find_uses(ast.parse(text))
    assert ([], name) == (imports, use.name)
    assert fault in use.fault


def test_an_import_keeps_what_is_there():
    imports, _, _ = find_uses(ast.parse("from tensorflow import data, keras, io"))
    assert "from tfwire.compat import data, io" == imports[0].new


# ---- Following names ----------------------------------------------------------------------------

BEGIN = "import tensorflow as tf\nimport tensorflow.compat.v1 as tf1\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("tf.keras.layers.Dense(3)", ["tf.keras.layers.Dense"]),
        ("t = tf.compat.v1\nt.get_variable('a')", ["tf.compat.v1.get_variable"]),
        ("a, b = tf.io, tf.nn", ["tf.nn"]),
        ("a, b = tf.io, 1\na.decode_csv", ["tf.io.decode_csv"]),
        ("def f(x=tf.nn.relu): return tf.matmul(x, x)", ["tf.nn.relu", "tf.matmul"]),
        ("class A(tf.keras.Model):\n  def f(self): tf.nn.relu", ["tf.keras.Model", "tf.nn.relu"]),
        ("@tf.autograph.experimental.do_not_convert\ndef f(): 1", None),
        ("def f(): g.linalg\ng = tf", ["tf.linalg"]),
        ("x = [tf.nn for tf.a in b if tf.linalg]", ["tf.nn", "tf.linalg"]),
        ("if a: g = tf\nelse: import numpy as g\ng.matmul", ["tf.matmul"]),
        ("d = tf.data.Dataset.range(3).map(f).prefetch(1)\nd.options()", ["Dataset.options"]),
        (
            "d = tf.data.Dataset.list_files('a')\nd = d.interleave(f)\nd.options",
            ["Dataset.options"],
        ),
        ("tf.data.TFRecordDataset('a').repeat().take(3).options", ["TFRecordDataset.options"]),
        ("tf.data.Dataset.zip((a, b)).batch(3).options", ["Dataset.options"]),
        ("tf.cast(x, tf.int64).T", ["Tensor.T"]),
        ("tf.strings.join(['a']).reshape", ["Tensor.reshape"]),
        ("(tf.constant(1) if a else tf.constant(2)).T", ["Tensor.T"]),
        ("if (x := tf.constant(1)) is not None: x.T", ["Tensor.T"]),
        ("with tf1.Session() as s: s.graph_def", ["Session.graph_def"]),
        ("o = tf.data.Options()\no.threading.nonsense", ["Options.threading.nonsense"]),
        ("tf.data.Dataset.range(3).batch(size=3)", ["Dataset.batch"]),
        ("tf.cast(1)\ntf.cast(1, 2, 3, 4)", ["tf.cast"]),
        ("match a:\n  case tf.nn: tf.linalg", ["tf.nn", "tf.linalg"]),
        ("try: tf.nn\nexcept tf.errors.Nonsense: tf.linalg\nfinally: tf.math.foo", None),
        ("async def f():\n  async for x in tf.nn: await tf.linalg", ["tf.nn", "tf.linalg"]),
    ],
)
def test_names_are_followed(text, names):
    found = faults_of(BEGIN + text)
    assert sorted(names) == sorted(found) if names else found


@pytest.mark.parametrize(
    "text",
    [
        "def f(tf): tf.nn",
        "tf = 1\ntf.nn",
        "for tf in a: tf.nn",
        "f = lambda tf: tf.nn",
        "[tf.nn for tf in a]",
        "with a as tf: tf.nn",
        "try: a\nexcept E as tf: tf.nn",
        "match a:\n  case {'x': 1, **tf}: tf.nn\n  case B() as tf: tf.nn",
        "class tf: pass\ntf.nn",
        "def tf(): pass\ntf.nn",
        "del tf\ntf.nn",
        "import numpy as tf\ntf.nn",
        "x = tf.constant(1)\nx = x.numpy()\nx.reshape(1)",
        "x = tf.constant(1)\nfor i in a: x.T; x = x.numpy()",
        "x = [1]\nif a: x = tf.constant(1)\nx.T",
        "d = tf.data.Dataset.range(3)\nd = list(d)\nd.options",
        "x = tf.constant(1)\nx.op, x.indices",  # as a value of a graph has
        "f = tf.io.gfile.GFile('a')\nf.name, f.mode, f.read()",
        "e = tf.train.Example()\ne.nonsense",
        "o = tf.data.Options()\no.autotune.enabled = o.deterministic = True",
        "c = tf1.ConfigProto()\nc.gpu_options.allow_growth = True\nc.a.b",
        "tf.reduce_sum(x, keep_dims=True)\ntf.reduce_sum(x, reduction_indices=0)",
        "tf.gfile.Exists(filename=a)\ntf.cast(*a)\ntf.cast(x, **a)",
        "tf.data.Dataset.batch(d, 3)\ntf.data.Dataset.range(1, 2, 3)",
        "x: tf.Tensor = tf.constant(1)\nx += 1\nx.T",
        "a, *b = 1, tf.constant(1)\na.T, b.T",
        "from . import tensorflow as tf\ntf.nn",
        "tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))",
    ],
)
def test_other_names_are_left_alone(text):
    assert [] == faults_of(BEGIN + text)


def test_a_program_without_tensorflow():
    done = port("import numpy as np\nnp.nn")
    assert (0, "a.py: does not use TensorFlow\n") == (done.returncode, done.stdout)


def test_our_own_programs_are_read():
    for path in sorted(TESTS.rglob("*.py")):
        find_uses(ast.parse(path.read_bytes()))


MODULES_LOST = [
    "class A:\n    t = tf",
    "d = {'a': tf}",
    "for q in [tf]:\n    q.nn.relu(1)",
    "x = [tf][0]",
    "def f(m):\n    m.nn.relu(1)\nf(tf)",
    "f(module=tf)",
    "def f(m=tf):\n    pass",
    "f = lambda m=tf: m",
    "match tf:\n    case x:\n        x.nn.relu(1)",
    "def f():\n    yield tf",
    "y = [q.nn.relu(1) for q in (tf, 1)]",
]


@pytest.mark.parametrize("program", MODULES_LOST)
def test_where_a_module_goes_that_is_not_followed_is_counted(program):
    imports, uses, lost = find_uses(ast.parse(f"import tensorflow as tf\n{program}"))
    assert (1, [], 1) == (len(imports), uses, len(lost))


@pytest.mark.parametrize(
    "program", ["d = {'a': tf.io.FixedLenFeature([], tf.int64)}", "x = (tf.float32, 3)"]
)
def test_values_of_tensorflow_in_containers_are_not_counted(program):
    assert [] == find_uses(ast.parse(f"import tensorflow as tf\n{program}"))[2]


@pytest.mark.parametrize("module", ["tensorflow", "tensorflow.io", "tensorflow.nosuch"])
def test_names_that_all_are_imported_cannot_be_told(module):
    done = port(f"from {module} import *\nVariable(1)\n")
    assert 1 == done.returncode
    assert (
        f"a.py:1: from {module} import * does not run; instead: import tensorflow as tf"
        in done.stdout
    )


# ---- Notebooks, folders, standard input ----------------------------------------------------------


def notebook(*cells):
    kinds = [{"cell_type": kind, "source": source} for kind, source in cells]
    return json.dumps({"cells": kinds, "nbformat": 4})


def test_a_notebook():
    text = notebook(
        ("markdown", "# tf.nn"),
        ("code", ["%matplotlib inline\n", "import tensorflow as tf\n", "!pip install x"]),
        ("code", "%%bash\ntf.nn"),
        ("code", ""),
        ("code", "if a:\n    %time b\nfiles = !ls\ntf?\ntf.nn"),
        ("code", "x = '''\n%s'''"),
    )
    done = port(text, "a.ipynb")
    assert done.stdout.splitlines() == [
        "a.ipynb:cell 2:2: change import tensorflow as tf  ->  import tfwire.compat as tf",
        f"a.ipynb:cell 5:5: tf.nn does not run; instead: {INSTEAD['nn']}",
        "a.ipynb: 1 of 1 use of TensorFlow does not run; 1 import to change",
    ]
    found = json.loads(port(text, "a.ipynb", "--json").stdout)
    assert (5, 5) == (found["uses"][0]["cell"], found["uses"][0]["line"])


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_notebook(text):
    done = port(text, "a.ipynb")
    assert 2 == done.returncode
    assert done.stderr.startswith("tfwire port: a.ipynb: not a notebook of format 4: ")


def test_a_folder(tmp_path):
    for name in ("b/c.py", "b/a.py", "d.ipynb", ".hidden/e.py", "f.txt"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(notebook() if name[-1] == "b" else "")
    done = tfwire_command("port", "in")
    names = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert ["in/d.ipynb", "in/b/a.py", "in/b/c.py"] == names


def test_a_folder_without_programs(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "f.txt").touch()
    done = tfwire_main("port", "in")
    assert 2 == done.returncode
    assert b"tfwire port: in: a folder without .py or .ipynb files\n" == done.stderr


def test_standard_input():
    done = tfwire_command("port", "-", stdin=b"import tensorflow as tf\ntf.nn")
    assert done.stdout.startswith("standard input:1: change import")
    assert 2 == tfwire_main("port", "-", "-").returncode


# ---- Trouble ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"x = 1\ny = '\xe9'\n", r":2: not utf-8: byte 0xe9"),
        (b"# coding: nonsense\n", r":1: unknown encoding: nonsense"),
        ("x = (\n", r":1: not Python 3: '\(' was never closed"),
        ("a = 1\nprint 'x'\n", r":2: not Python 3: Missing parentheses in call to 'print'.*"),
        ("x = 1\0\n", r".*: .*null bytes"),
        ("(" * 3000 + ")" * 3000, r".*: (not Python 3: )?(too many|expressions are) nested.*"),
        ("x = " + "-" * 100_000 + "1", r".*(nested|recursion|memory).*"),
        ("x = a" + ".b" * 50_000, r".*(nested|recursion|memory).*"),
    ],
)
def test_what_cannot_be_read(text, message):
    done = port(text)
    assert (2, "") == (done.returncode, done.stdout)
    assert re.fullmatch(rf"tfwire port: a\.py{message}\n", done.stderr), done.stderr[:300]


def test_many_elif_clauses():
    clauses = "".join(f"elif x == {i}:\n    tf.nn(x)\n" for i in range(500))
    assert "500 of 500 uses" in port(f"import tensorflow as tf\nif x:\n    y\n{clauses}").stdout
    assert "has more than" in tfwire_command("port", "/dev/zero").stderr


def test_encodings():
    assert 0 == port("# coding: latin-1\nx = 'é'\n".encode("latin-1")).returncode
    assert 0 == port(b"\xef\xbb\xbfimport tensorflow as tf\r\ntf.io\r\n").returncode
    assert 0 == port("x = '\\d'\n").returncode  # without a warning of its own


def test_trouble_does_not_end_the_command():
    port("import tensorflow as tf\ntf.nn", "b.py")
    done = tfwire_command("port", "nowhere.py", "b.py")
    assert 2 == done.returncode
    assert "tfwire port: nowhere.py: No such file or directory\n" == done.stderr
    assert "b.py:2: tf.nn does not run" in done.stdout
    assert "1 of 1 use of TensorFlow does not run" in done.stdout
