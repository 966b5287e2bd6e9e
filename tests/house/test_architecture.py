"""What may include or import what, and what the sources may contain."""

import ast
import pickle
import re
from collections import Counter, defaultdict
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from types import SimpleNamespace

import pytest

from helpers.paths import CSRC, PACKAGE, ROOT, TESTS
from helpers.products import check_each

pytestmark = pytest.mark.outside_c

# csrc/: what the files of a folder may include, beside their own folder and tfwire.h. Records and
# Examples (wire, parse, encode) know nothing of each other; only arrow/, pipeline/ and python/ may
# know both.
C_FOLDERS = {
    "base": set(),
    "crc32c": {"base"},
    "records": {"base", "crc32c"},
    "wire": {"base"},
    "parse": {"base", "wire"},
    "encode": {"base", "wire"},
    "pipeline": {"base", "crc32c", "records", "wire", "parse", "encode"},
    "arrow": {"base", "parse", "pipeline"},
    "python": {"base", "crc32c", "records", "wire", "parse", "encode"},
}
PUBLIC = ["tfwire.h", "tfwire_arrow.h", "tfwire_pipeline.h", "tfwire_python.h"]
C_SOURCES = sorted(CSRC.rglob("*.[ch]"))

# src/tfwire/: what the modules of a package, or a public module, may import beside their own
# package. "tfwire" is the public API, imported as a user does. Records and Examples know nothing of
# each other; the root registers the encoder of Examples with the writers.
PYTHON_ROOMS = {
    "_base": set(),
    "_records": {"_base"},
    "_examples": {"_base"},
    "_parsing": {"_base", "_records", "_examples"},
    "_data": {"_base", "_records", "_examples", "_parsing", "images"},
    "checksum": {"_base"},
    "images": {"_base", "_examples"},
    "tensorboard": {"_base", "_records", "_examples"},
    "arrow": {"_base", "_records", "_parsing"},
    "typing": {"_base", "_records", "_examples", "_parsing"},
    # The neighbours stand on what is public, and on the one inner interface.
    "_interface": {"_base", "_records", "_examples", "_parsing", "_data", "arrow"},
    "torch": {"tfwire", "typing", "_interface"},
    "grain": {"tfwire", "typing", "_interface"},
    "huggingface": {"tfwire", "typing", "_interface", "arrow"},
    "polars": {"typing", "_interface", "arrow"},
    "tfds": {"tfwire", "typing", "_interface", "images"},
    "beam": {"tfwire", "typing", "_interface", "arrow"},
    "ray": {"typing", "_interface", "arrow"},
    "spark": {"tfwire", "typing", "_interface", "arrow"},
    "compat": {"tfwire", "typing", "_interface", "_examples", "images"},  # train is of _examples
    "view": {"tfwire", "_interface"},
    "cli": {
        *("tfwire", "typing", "_interface", "_examples", "_parsing"),
        *("arrow", "checksum", "compat", "view"),
    },
}
# How many names of private modules neighbours import, those of tfwire._interface aside. The numbers
# only go down: what a neighbour lacks becomes public, or enters the interface with a line why.
PRIVATE_NAMES = {
    **dict.fromkeys(["torch", "grain", "huggingface", "polars", "beam", "ray", "spark"], 0),
    "compat": 0,
    "view": 0,
    "tfds": 0,
    "cli": 6,  # the server and pages of the viewer; two texts made with protobuf
}
# Imports inside functions, against the arrows: writers encode rows and columns, indexes keep values
# of a feature, columns are written by specifications, and objects show themselves in notebooks.
# There are no others.
LATE = {
    "_records": {"tfwire._examples.encode", "tfwire._parsing.survey"},
    "_examples": {"tfwire._parsing.write_plans"},
    "_base": {"tfwire.view"},
}

# src/tfwire/_records/: the rooms in it, and what each may import beside itself and the frames.
RECORD_ROOMS = {
    "files": set(),
    "remote": {"files"},
    "reading": {"files", "remote"},
    "index": {"files", "remote", "reading"},
    "writing": {"files", "remote", "reading", "index"},
    "shards": {"files", "remote", "reading", "index", "writing"},
}
# Public modules that belong to the room of a package.
ROOM_OF_MODULE = {"train": "_examples", "sharding": "_records"}

# tests/: the folders are rooms of src/tfwire; the others, and what they are for.
TEST_FOLDERS = {
    "api": "what holds for every public function",
    "beside_tfds": "comparison with TensorFlow Datasets",
    "c": "the tests of csrc, in C",
    "cases": "messages and specifications with what TensorFlow makes of them",
    "engines": "Beam, Ray and Spark, as their users run them",
    "fuzz": "targets, models and corpora",
    "golden": "files that TensorFlow wrote",
    "helpers": "what tests share",
    "house": "what holds for the sources, the documentation and the packages",
    "neighbours": "other libraries, as their users run them",
    "oracle": "comparison with TensorFlow",
    "typing": "programs for type checkers",
}

# Names of classes and functions that two modules define, with the reason. Other names are unique.
NAMED_TWICE = {
    "TensorFlow's names: tfwire.compat has its form of what tfwire has": {
        *("Dataset", "TFRecordDataset", "TFRecordWriter", "RaggedTensor", "SparseTensor"),
        *("decode_raw", "parse_tensor", "serialize_tensor", "map_structure"),
    },
    "TensorFlow's names of several modules; and split, the parts of a batch": {"join", "split"},
    "tf.Session, and the parser's state in C": {"Session"},
    "Python's": {"__dir__", "__getattr__"},
}

# Files of more than 500 lines, with the reason.
LONG_FILES = {
    "csrc/tfwire.h": "one header to include, to install and for cffi to read; most of it comments",
}


def folder_of(path):
    return path.relative_to(CSRC).parts[0]


def name_of(path):
    return path.relative_to(CSRC).as_posix()


def includes(path):
    return re.findall(r'^#include "([^"]+)"', path.read_text(encoding="ascii"), re.MULTILINE)


@cache
def module_at(path):
    """What the tests ask of a module, which is parsed once.

    Attributes:
        at_import: What the statements of its top level import.
        elsewhere: What others import, in functions and under conditions.
        for_types: What is imported for type checkers alone.
        defined: Classes and functions of its top level, without private functions.
        constants: Its private constants, with the text of their values.
    """
    found = SimpleNamespace(at_import=set(), elsewhere=set(), for_types=set())
    found.defined, found.constants = set(), []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        at_import = isinstance(node, (ast.Import, ast.ImportFrom))
        when = "for_types" if for_types else "at_import" if at_import else "elsewhere"
        vars(found)[when].update(names_imported(node))
        private = isinstance(node, ast.FunctionDef) and re.match("_(?!_)", node.name)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not private:
            found.defined.add(node.name)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in getattr(node, "targets", None) or [node.target]:
                if re.fullmatch("_[A-Z0-9_]+", ast.unparse(target)):
                    found.constants.append((ast.unparse(target), ast.unparse(node.value)))
    return found


def names_imported(tree):
    """The modules that a statement and those within it import, and what they take from them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def imports(path, types=True, late=True):
    """The tfwire modules that a file imports, wherever in the file, also those for types alone, and
    those of LATE."""
    module = module_at(path)
    found = module.at_import | module.elsewhere | (module.for_types if types else set())
    against = LATE.get(path.relative_to(PACKAGE).parts[0], ())
    ours = {name for name in found if name.startswith("tfwire")} - {"tfwire"}
    return {name for name in ours if late or not name.startswith(tuple(against))}


def test_late_imports_are_inside_functions():
    """And each of them is one that somebody needs."""
    for room, names in LATE.items():
        paths = list((PACKAGE / room).rglob("*.py"))
        assert names <= {name for path in paths for name in imports(path)}
        for path in paths:
            assert not names & module_at(path).at_import, path


def test_c_sources_are_ascii():
    """And say their license first, and no line is longer than 100 columns."""
    others = [*ROOT.glob("benchmarks/**/*.[ch]"), *ROOT.glob("examples/**/*.[ch]")]
    for path in [*C_SOURCES, *others, *TESTS.rglob("*.[ch]")]:
        text = path.read_text(encoding="ascii")
        assert text.startswith("/* SPDX-License-Identifier: Apache-2.0 */\n/* "), path
        if "fuzz" in path.parts:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            assert len(line) <= 100, f"{path.name}:{number}"


def test_files_are_short():
    long = set()
    for folder in ("csrc", "src", "tests", "benchmarks", "examples", "docs", "packaging"):
        for path in (ROOT / folder).rglob("*.*"):
            if path.suffix in (".c", ".h", ".py", ".pyi"):
                lines = path.read_text(encoding="utf-8").count("\n")
                long |= {path.relative_to(ROOT).as_posix()} if lines > 500 else set()
    assert set(LONG_FILES) == long


def test_folders_are_small():
    """Whoever looks for a file reads all names of its folder. Corpora are for programs."""
    for most, root in ((30, CSRC), (30, TESTS), (25, PACKAGE)):
        files = [path for path in root.rglob("*.*") if path.is_file()]
        folders = Counter(path.parent.relative_to(ROOT).as_posix() for path in files)
        crowded = {folder for folder, count in folders.items() if count > most}
        assert set() == {name for name in crowded if not re.search("/(corpus|__pycache__)", name)}


def test_every_c_folder_has_a_rule():
    assert set(C_FOLDERS) == folders_in(CSRC)
    assert PUBLIC == sorted(path.name for path in CSRC.glob("*.[ch]"))


def test_the_names_of_c_sources_are_unique():
    """Object files may lie in one folder, and a name says which file is meant."""
    for pattern in ("*.c", "*.h"):
        stems = [path.stem for path in CSRC.rglob(pattern)]
        assert sorted(set(stems)) == sorted(stems)


def test_every_function_meets_edge_arguments():
    """A function of the header that is new gets its place in tests/c/base/test_arguments*.c."""
    header = "".join((CSRC / name).read_text(encoding="ascii") for name in PUBLIC)
    functions = set(re.findall(r"TFW_API [^;(]*?\b(tfw_\w+)\(", header))
    paths = (ROOT / "tests" / "c" / "base").glob("test_arguments*.c")
    tested = "".join(path.read_text(encoding="ascii") for path in paths)
    assert len(functions) > 50
    assert set() == {name for name in functions if f"{name}(" not in tested}


def test_c_files_include_what_their_folder_may_know():
    """Headers included by headers count: each of them is a file of its own here."""

    def check(path):
        if path.name in PUBLIC:
            assert includes(path) == ([] if path.name == "tfwire.h" else ["tfwire.h"])
            return
        allowed = C_FOLDERS[folder_of(path)] | {folder_of(path)}
        for name in includes(path):
            assert (CSRC / name).is_file(), name
            python = folder_of(path) == "python" and name == "tfwire_python.h"
            arrow = folder_of(path) == "arrow" and name == "tfwire_arrow.h"
            threads = folder_of(path) in {"pipeline", "python"} and name == "tfwire_pipeline.h"
            known = name == "tfwire.h" or python or arrow or threads
            assert known or name.split("/")[0] in allowed, name

    check_each(check, C_SOURCES)


def test_c_headers_include_each_other_in_no_circle():
    """And each is guarded by its name, but those that are included again for each kernel."""
    graph = {name_of(path): includes(path) for path in C_SOURCES if path.suffix == ".h"}
    assert set(graph) == set(TopologicalSorter(graph).static_order())
    for path in C_SOURCES:
        if path.suffix == ".h":
            text = path.read_text(encoding="ascii")
            guard = re.search(r"^#ifndef (\w+)", text, re.MULTILINE)
            if guard is None and path.stem.endswith("_template"):
                assert "OF_KERNEL" in text or "crc32c" in path.stem, path
                continue
            assert guard[1] in (f"TFWIRE_{path.stem}_H".upper(), f"{path.stem}_H".upper()), path


# A method that does nothing yet; a type of what C returns that is not written down.
UNFINISHED = r"\braise NotImplementedError\b|type: ignore\[no-any-return\]"


def test_modules_leave_nothing_unfinished():
    def check(path):
        assert not re.search(UNFINISHED, path.read_text(encoding="utf-8"))

    check_each(check, sorted(PACKAGE.rglob("*.py")))


def test_only_native_imports_the_native_module():
    users = {
        path.name
        for path in PACKAGE.rglob("*.py")
        if any(name.startswith("tfwire._native") for name in imports(path))
    }
    assert {"native.py"} == users


def room_of_module(name):
    """The room that a module or package of the root belongs to."""
    return ROOM_OF_MODULE.get(name, name)


def room_of(path):
    """The room that a file belongs to."""
    return room_of_module(path.relative_to(PACKAGE).with_suffix("").parts[0])


def files_of(*rooms):
    return [path for path in PACKAGE.rglob("*.py") if room_of(path) in rooms]


def test_every_python_room_has_a_rule():
    rooms = {room_of(path) for path in PACKAGE.rglob("*.py")}
    assert set(PYTHON_ROOMS) == rooms - {"__init__", "__main__", "_exports", "_version"}


def folders_in(folder):
    return {path.name for path in folder.iterdir() if path.is_dir()} - {"__pycache__"}


def test_folders_of_tests_are_rooms():
    """Whoever changes a room finds its tests by the name of the folder, and a test by its own."""
    rooms = folders_in(TESTS) - set(TEST_FOLDERS)
    assert set() == rooms - {room.removeprefix("_") for room in PYTHON_ROOMS}
    assert folders_in(PACKAGE / "_records") == folders_in(TESTS / "records")
    names = [path.name for room in rooms for path in (TESTS / room).rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
    assert [] == [path.name for path in TESTS.glob("test_*.py")]


@pytest.mark.parametrize("room", PYTHON_ROOMS)
def test_python_files_import_what_their_room_may_know(room):
    """Imports inside functions count, and every arrow of the table is one that somebody needs."""
    public, needed = import_module("tfwire").__all__, set()
    for path in files_of(room):
        for name in imports(path, late=False):
            found = room_of_module(name.partition(".")[2].split(".")[0])
            is_name = found in public and found not in PYTHON_ROOMS
            needed.add("tfwire" if is_name or not found else found)
    assert needed - {room, "_native", "_version", "__version__"} == PYTHON_ROOMS[room]


@pytest.mark.parametrize("room", PRIVATE_NAMES)
def test_neighbours_use_what_is_public_or_in_the_interface(room):
    """Each could be a distribution of its own, without a line changed."""
    found, own = set(), (f"tfwire.{room}.", "tfwire._interface.")
    for path in files_of(room):
        names = {name for name in imports(path) if name.count(".") > 1}
        names -= {name.rpartition(".")[0] for name in names}  # the modules that they are taken from
        found |= {name for name in names if "._" in name and not name.startswith(own)}
    assert PRIVATE_NAMES[room] == len(found), sorted(found)


def test_the_interface_says_what_is_in_it():
    """A name that no neighbour uses leaves it; one that they need comes with a word about it."""
    paths = files_of(*PRIVATE_NAMES)
    used = {name.rpartition("._interface.")[2] for path in paths for name in imports(path)}
    for path in (PACKAGE / "_interface").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        names = [alias.asname for node in nodes for alias in node.names if alias.asname]
        told = set(re.findall(r"``(\w+)", ast.get_docstring(tree)))
        assert [] == [name for name in names if name not in told], path.name
        assert [] == [name for name in names if f"{path.stem}.{name}" not in used], path.name


@pytest.mark.parametrize("room", RECORD_ROOMS)
def test_the_rooms_of_records_know_those_before_them(room):
    needed = set()
    for path in (PACKAGE / "_records" / room).glob("*.py"):
        names = [name.split(".") for name in imports(path) if name.startswith("tfwire._records.")]
        needed |= {name[2] for name in names}
    assert needed - {room, "frames"} == RECORD_ROOMS[room]


@pytest.mark.parametrize(
    "table", [C_FOLDERS, PYTHON_ROOMS, RECORD_ROOMS], ids=["csrc", "src", "records"]
)
def test_arrows_point_one_way(table):
    order = list(TopologicalSorter(table).static_order())
    assert set(table) <= set(order)


def test_no_python_module_is_in_a_circle():
    """Imports inside functions count, those for type checkers alone do not: nothing is loaded by
    them. tfwire.compat is one namespace: its parts may ask for it."""
    modules = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        modules[".".join(("tfwire", *(part for part in parts if part != "__init__")))] = path
    arrows = {
        name: {found for found in imports(path, types=False, late=False) if found in modules}
        - {name, "tfwire"}
        for name, path in modules.items()
    }
    arrows = {name: found - set(name.rsplit(".", 1)[:1]) for name, found in arrows.items()}
    while leaves := {name for name, found in arrows.items() if not found & set(arrows)}:
        arrows = {name: found for name, found in arrows.items() if name not in leaves}
    assert set() == set(arrows)


def test_classes_and_functions_are_named_once():
    """A name says which one is meant. Private functions are their module's own affair."""
    homes = Counter(name for path in PACKAGE.rglob("*.py") for name in module_at(path).defined)
    twice = {name for name, count in homes.items() if count > 1}
    assert set().union(*NAMED_TWICE.values()) == twice


def test_private_constants_of_one_name_have_one_value():
    """A name says of what: _BLOCK_BYTES, _RECORDS_PER_FETCH."""
    values = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for name, value in module_at(path).constants:
            values[name].add(value)
    assert {} == {name: found for name, found in values.items() if len(found) > 1}


def test_neighbours_are_not_imported_by_the_core():
    """Optional packages are imported inside functions only; protobuf in the modules made of it,
    which are imported only where messages are used; a neighbour in the module of its name, torch in
    the one that decodes by torchvision, too."""
    made_of_protobuf = {"_examples/protobuf.py", "_examples/json_examples.py", "train.py"}
    made_of_protobuf |= {"_parsing/schema_files.py", "_parsing/schema_pbtxt.py"}
    optional = {"tensorflow", "torch", "grain", "pyarrow", "fsspec", "PIL", "google", "jax", "isal"}
    optional |= {"datasets"}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        allowed = "google" if name in made_of_protobuf else name.removesuffix(".py").split("/")[0]
        allowed = "torch" if name == "images/_torchvision.py" else allowed
        roots = {found.split(".")[0] for found in module_at(path).at_import}
        assert set() == roots & optional - {allowed}, name


def test_public_names_are_importable_and_typed():
    """__init__.py finds in its stub, as text, what Python does."""
    tfwire = import_module("tfwire")
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    stubbed = [each.asname for node in imports for each in node.names if each.asname]
    assert sorted(stubbed) == tfwire.__all__
    assert len(stubbed) > 60
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tfwire.nothing  # noqa: B018


def test_public_classes_are_of_tfwire():
    """Their pickles, reprs and tracebacks survive a move."""
    tfwire = import_module("tfwire")
    for name in tfwire.__all__:
        found = getattr(tfwire, name)
        assert found.__doc__, name
        if isinstance(found, type):
            assert "tfwire" == found.__module__, name
            assert found is pickle.loads(pickle.dumps(found))


def test_versions_agree():
    header = (CSRC / "tfwire.h").read_text(encoding="ascii")
    version = import_module("tfwire").__version__
    assert f'#define TFW_VERSION_STRING "{version}"' in header
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="ascii")
    recipe = ROOT / "packaging" / "conda" / "recipe.yaml"
    assert f'  version: "{version}"\n' in recipe.read_text(encoding="ascii")


def test_the_tests_that_reliability_names_exist():
    page = (ROOT / "docs" / "internals" / "reliability.md").read_text(encoding="utf-8")
    goals = page[page.index("## Goals and their tests") :]
    found = set()
    for path in [*(ROOT / "tests").rglob("*.py"), *(ROOT / "tests" / "c").rglob("*.c")]:
        text = path.read_text(encoding="utf-8")
        pairs = re.findall(r"^def (test_\w+)|RUN\((\w+)\)", text, re.MULTILINE)
        found |= {path.name, *map("".join, pairs)}
    named = set(re.findall(r"`((?:test_)?\w+_\w+(?:\.\w+)?)`", goals)) - {"read_records"}
    assert len(named) > 50
    assert set() == named - found
