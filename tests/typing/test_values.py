"""Where the public API says no type: nowhere Any, and ``Value`` only where the data decides.

``Value`` is Any under a name of its own, so that a program indexes and computes with what it knows
to be there. A union would force it to cast.
"""

import ast
import re
from importlib import import_module

import tfwire
from helpers.documents import api

# This list may not grow. An entry is a public name and why no type can be said of it.
VALUES = {
    # What the files of TFDS declare.
    "tfds.ClassLabel.int2str": "a name, or a list of them",
    "tfds.ClassLabel.str2int": "a number, or a list of them",
    "tfds.Info.features": "specifications of any class",
    "tfds.Info.supervised_keys": "keys, nested as the file says",
    **{
        f"tfds.Split.{name}": "examples, nested as the file says"
        for name in ("__getitem__", "__getitems__", "__iter__", "columns", "dataset", "steps")
    },
    "tfds.open": "decoders, nested as the features",
    # A scalar or an array, by the shapes of the features; of mixed features an array or another
    # column, by the key.
    "Parser.__init__": "the values of a single Example",
    "SequenceParser": "the values of a single SequenceExample",
    "SequenceParser.__init__": "the values of mixed features",
    "parse_example": "the values of a single Example, which it takes too",
    "parse_sequence_example": "the values of mixed features",
    "parse_single_example": "the values of an Example",
    "parse_single_sequence_example": "the values of a SequenceExample",
    "Dataset.decode_images": "the values of an Example, and pixels",
    "images.decode": "a tensor of torch, which may not be there",
    "Dataset.parse_example": "the values of an Example, or of a batch of them",
    # What an element is depends on functions of the user, and on whether batches are batched again:
    # overloads by the type of the elements would be wrong for a dataset whose elements are unknown.
    "Dataset.batch": "elements of unknown structure, stacked",
    "Dataset.padded_batch": "elements of unknown structure, stacked",
    "Dataset.shuffle_batch": "elements of unknown structure, stacked",
    "Dataset.bucket_by_sequence_length": "elements of unknown structure, stacked",
    "Dataset.unbatch": "rows of elements of unknown structure",
    "Dataset.from_tensor_slices": "an array's rank decides what its slices are",
    "Dataset.zip": "of four datasets and more",
    "Dataset.element_spec": "the structure of an element: tuples and dicts of str",
    "torch.as_tensors": "the structure of its argument, with tensors in it",
    "grain.TFRecordIterDataset": "the elements of any dataset",
    "grain.TFRecordDataSource.__getitem__": "bytes, or the values of an Example",
    "torch.TFRecordIterableDataset.__iter__": "the elements of any dataset",
    "torch.TFRecordMapDataset.__getitem__": "bytes, or the values of an Example",
    "torch.TFRecordMapDataset.__getitems__": "as its __getitem__",
    "torch.StringTensor.to_list": "lists as deep as the rank",
    "torch.ThreadLoader.__iter__": "the batches of any dataset",
    "torch.collate": "a batch of any structure",
    "ray.TFRecordDatasink.on_write_complete": "Ray's, which is not there for a type checker",
    "ray.TFRecordDatasink.write": "Ray's blocks and context",
    "spark.SparkSource.reader": "Spark's, which is not there for a type checker",
    "spark.SparkSource.schema": "Spark's, which is not there for a type checker",
    "spark.SparkSource.writer": "Spark's, which is not there for a type checker",
    "arrow.read_table": "pyarrow's, which may not be there",
    # The message or the rank decides.
    "parse_tensor": "a scalar or an array of any type",
    "train.to_dict": "lists of one of three types, or those of a SequenceExample",
    "BytesColumn.to_list": "lists as deep as the rank",
    "RaggedTensor.to_list": "lists as deep as the ragged rank",
    "RaggedTensor.__init__": "a list of numbers or strings, or nested ones",
}
# pickle decides what these return.
PICKLED = {"__getstate__", "__reduce__", "__setstate__"}
# Beam decides what these take and return.
OF_BEAM = {"display_data", "expand"}


def public_definitions():
    """The functions and classes of the root and of the public modules, by name."""
    names = api.public_names()
    for module in api.MODULES:
        for name in api.all_of(f"tfwire.{module}"):
            found = api.find(f"tfwire.{module}", name)
            if found and name not in names:
                names[f"{module}.{name}"] = found
    return names


def members(name, found):
    """The annotated parts of a definition: functions, their overloads, and attributes."""
    if isinstance(found.node, ast.FunctionDef):
        body, prefix = api.tree_of(found.module).body, name.rpartition(".")[0]
        body = [node for node in body if getattr(node, "name", None) == found.node.name]
        yield from functions(body, f"{prefix}." if prefix else "")
    elif isinstance(found.node, ast.ClassDef):
        yield from ((name, node) for node in found.node.bases)
        own = set()
        for owner in (found, *api_bases(found)):
            for full, annotation in functions(owner.node.body, f"{name}."):
                if full not in own:
                    yield full, annotation
            own |= {f"{name}.{getattr(node, 'name', '')}" for node in owner.node.body}
            for node in owner.node.body:
                if isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_"):
                    yield f"{name}.{node.target.id}", node.annotation


def functions(body, prefix):
    """The signatures that type checkers see: the overloads, if there are any."""
    found = [
        node
        for node in body
        if isinstance(node, ast.FunctionDef)
        and (not node.name.startswith("_") or node.name.startswith("__"))
        and node.name not in PICKLED | OF_BEAM
    ]
    overloaded = {node.name for node in found if api.is_overload(node)}
    for node in found:
        if node.name not in overloaded or api.is_overload(node):
            arguments = node.args
            for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                yield prefix + node.name, each.annotation
            for each in (arguments.vararg, arguments.kwarg):
                yield prefix + node.name, each and each.annotation
            yield prefix + node.name, node.returns


def api_bases(found):
    """The bases of a class within the package, those of its bases too."""
    for base in found.node.bases:
        parent = api.find(found.module, api.base_name(base))
        if parent and isinstance(parent.node, ast.ClassDef):
            yield parent
            yield from api_bases(parent)


def named(annotation):
    """The names of types in an annotation, without what numpy says of any dtype or width."""
    if annotation is None:
        return set()
    text = ast.unparse(annotation).replace("'", "")
    for of_numpy in ("np.dtype[Any]", "np.integer[Any]", "np.ndarray[Any, Any]"):
        text = text.replace(of_numpy, "np.generic")
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}


FOUND = [
    (full, named(annotation))
    for name, found in public_definitions().items()
    for full, annotation in members(name, found)
]


def test_definitions_are_found():
    names = {name.partition(".")[0] for name, _ in FOUND}
    constants = {"__version__", "checksum", "float32", "int64", "string", "train"}
    assert set(tfwire.__all__) - constants - {"DatasetIterator", "TfwireWarning", "compat"} <= names
    assert len(FOUND) > 500
    assert ("read_records", {"RecordIterator"}) in FOUND


def test_nothing_public_says_any():
    assert [] == sorted({name for name, types in FOUND if "Any" in types})


def test_types_in_public_signatures_can_be_imported():
    """From tfwire.typing, also at run time; classes from there or from a public module."""
    api.sections()
    typing = import_module("tfwire.typing")
    assert set(api.aliases) - {"Value"} <= set(dir(typing))
    assert [] == [name for name in dir(typing) if getattr(typing, name) is None]
    names = public_definitions()
    public = {name.rpartition(".")[2] for name in names} | set(dir(typing))
    private = set()
    for name, found in names.items():
        for full, annotation in members(name, found):
            if full in (name, f"{name}.__init__") and isinstance(found.node, ast.ClassDef):
                continue  # bases, and what programs do not make themselves
            for each in named(annotation):
                place = api.find(found.module, each)
                if place and isinstance(place.node, ast.ClassDef):
                    private |= {f"{full}: {each}"} - {f"{full}: {known}" for known in public}
    assert private == {"grain.TFRecordIterDataset.__iter__: _Iterator"}  # grain's DatasetIterator


def test_the_data_decides_only_where_no_type_can_be_said():
    names = {name for name, types in FOUND if "Value" in types}
    assert set(VALUES) == {re.sub("^TFRecordDataset", "Dataset", name) for name in names}
