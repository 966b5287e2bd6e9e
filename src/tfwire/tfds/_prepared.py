"""open, and what it gives: a prepared dataset and what that says of itself."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tfwire import Parser
from tfwire._interface.descriptions import from_tfds, modern, to_tfds
from tfwire._interface.messages import choice, column_names, quoted, show_path
from tfwire.tfds._examples import Reader, Split
from tfwire.tfds._features import SkipDecoding, exact, feature_of
from tfwire.tfds._folder import (
    FEATURES,
    INFO,
    ClassLabel,
    PreparedFolder,
    SplitInfo,
    described_splits,
    prepared,
)
from tfwire.tfds._splits import ROUNDINGS, pieces_of
from tfwire.typing import AnyPath, StorageOptions, Value


class Info(NamedTuple):
    """What a prepared dataset says of itself.

    Attributes:
        name: Its name, such as "mnist".
        config: The name of its configuration; empty: it has none.
        version: Such as "3.0.1".
        description: A text.
        citation: BibTeX.
        homepage: A URL.
        license: A text.
        splits: By name.
        features: The specification by which its records are parsed, as of ``read_schema``.
        classes: Of labels and LabeledImages, by key.
        supervised_keys: The keys of input and target, in tuples and dicts; None: not known.
    """

    name: str
    config: str
    version: str
    description: str
    citation: str
    homepage: str
    license: str
    splits: dict[str, SplitInfo]
    features: dict[str, Value]
    classes: dict[str, ClassLabel]
    supervised_keys: Value


class Prepared:
    """A dataset that TFDS prepared; ``open`` makes it.

    ``data["train[:10%]+test"]`` is a :class:`Split`, by TFDS's expressions: percentages, numbers of
    examples, and ``train[2shard:]``; ``data["all"]`` are the examples of all splits.

    Attributes:
        folder: The folder of its version.
        info: What it says of itself.
    """

    def __init__(self, folder: str, info: Info, reader: Reader) -> None:
        self.folder = folder
        self.info = info
        self._reader = reader

    def __getitem__(self, expression: str) -> Split:
        return self.split(expression)

    def split(self, expression: str, *, rounding: str = "closest") -> Split:
        """The examples that an expression names.

        Args:
            expression: Such as "train", "train[:10%]", "train[100:200]+test" or "all".
            rounding: Of percentages: "closest", or "pct1_dropremainder", which makes every percent
                as long as the others and leaves a rest out.

        Raises:
            ValueError: There is no such split, the expression is none, or it reaches beyond the
                examples.
        """
        if not isinstance(expression, str):
            raise TypeError(f"expected a split such as 'train', found {type(expression).__name__}")
        choice("rounding", rounding, ROUNDINGS)
        try:
            pieces = pieces_of(expression, self.info.splits, rounding)
        except ValueError as error:
            raise ValueError(f"{show_path(self.folder)}: {error}") from None
        return Split(expression, self._reader, pieces)

    def __repr__(self) -> str:
        name = "/".join(filter(None, [self.info.name, self.info.config, self.info.version]))
        counts = {each.name: each.num_examples for each in self.info.splits.values()}
        return f"<Prepared {name!r}: {counts}>"


def open(
    folder: AnyPath,
    *,
    columns: Iterable[str] | None = None,
    decoders: Mapping[str, Value] | None = None,
    features: Mapping[str, Value] | AnyPath | None = None,
    storage_options: StorageOptions = None,
) -> Prepared:
    """Opens a folder that TFDS prepared, such as "~/tensorflow_datasets/mnist/3.0.1".

    Nothing but its descriptions is read now, and files are opened as examples of them are asked
    for. Where an index is saved beside a file (``tfwire index``), its headers are not read.

    Args:
        folder: A path or URL: of a version, or of a dataset with one version.
        columns: The features to read, by name; those of others, ``"steps/observation"``, by the
            path to them. None: all.
        decoders: For some features, in a dict that is nested as they are, or by path:
            ``SkipDecoding()``, or a function of a stored element that replaces decoding.
        features: A specification as for Parser, or the path of a features.json or schema.pbtxt: for
            a folder without a features.json, such as those of TFDS before 4.
        storage_options: fsspec's options of the filesystem of a URL.

    Returns:
        The dataset. Sound that TFDS decodes lazily stays the bytes of its file.

    Raises:
        FileNotFoundError: There is no such dataset.
        ValueError: There are several versions, the files are not TFRecord files, or a feature is
            described in a way that is not known. ``columns`` leaves it out.

    Example:
        >>> data = open("pets/1.0.0")
        >>> data
        <Prepared 'pets/1.0.0': {'train': 4}>
        >>> example = data["train[50%:]"][0]
        >>> example["image"].shape, data.info.classes["label"].int2str(example["label"])
        ((2, 3, 3), 'cat')
        >>> [int(label) for label in data["train"].columns()["label"]]
        [1, 0, 0, 1]
    """
    place = prepared(PreparedFolder(folder, storage_options))
    info = place.read_json(INFO) or {}
    file_format = str(info.get("fileFormat") or "tfrecord").lower()
    if file_format not in ("tfrecord", "file_format_unspecified"):
        raise ValueError(
            f"{place}: the files are {file_format}, expected tfrecord; prepare the dataset with "
            "file_format='tfrecord'"
        )
    tree = _tree(place, features)
    try:
        tree, names = _chosen(tree, column_names(columns))
        flat = _flat_decoders(decoders, names)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None
    splits = described_splits(place, info)
    try:
        root = feature_of(tree, flat)
        specification = from_tfds(tree)
        parser = Parser({key: exact(feature) for key, feature in specification.items()})
        described = _info(place, info, splits, specification, tree)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        reason = error if type(error) is ValueError else f"not as TFDS describes it: {error!r}"
        raise ValueError(f"{place}: {reason}") from None
    return Prepared(place.folder, described, Reader(parser, root, splits))


def _tree(place: PreparedFolder, features: Any) -> Any:
    """The features of a folder as the tree of a features.json."""
    if features is None:
        tree = place.read_json(FEATURES)
        if tree is None:
            raise ValueError(
                f"{place}: no {FEATURES}, which TFDS writes since 4.0; pass features=, a "
                "specification as for tfwire.Parser: tfwire.infer_schema(file) infers it"
            )
        return modern(tree)
    if isinstance(features, Mapping):
        return to_tfds(features)
    beside = PreparedFolder(os.path.dirname(os.path.abspath(features)), None)
    tree = beside.read_json(os.path.basename(features))
    if tree is None:
        raise FileNotFoundError(f"{show_path(os.fspath(features))}: there is no such file")
    return modern(tree)


def _chosen(tree: Any, columns: list[str] | None) -> tuple[Any, set[str]]:
    """The part of a tree that has some features, and the keys of those without parts."""
    keys: set[str] = set()
    used: set[str] = set()

    def part(node: Any, key: str) -> Any:
        """The node without what is not chosen; None: nothing is left."""
        names = {name for name in columns or () if key == name or key.startswith(f"{name}/")}
        used.update(names)
        if "featuresDict" in node:
            children = node["featuresDict"]["features"].items()
            parts = {n: part(c, f"{key}/{n}" if key else n) for n, c in children}
            left = {n: c for n, c in parts.items() if c is not None}
            return {**node, "featuresDict": {"features": left}} if left or names else None
        if "sequence" in node:
            inner = part(node["sequence"]["feature"], key)
            return inner and {**node, "sequence": {**node["sequence"], "feature": inner}}
        keys.add(key)
        return node if names or columns is None else None

    try:
        chosen = part(tree, "")
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a {FEATURES} of TFDS: {error!r}") from None
    unknown = [name for name in columns or () if name not in used]
    if unknown:
        shown = ", ".join(map(quoted, sorted(keys)))
        raise ValueError(f"columns: there is no feature {quoted(unknown[0])}; found {shown}")
    if chosen is None:
        raise ValueError("there are no features to read")
    return chosen, keys


def _flat_decoders(decoders: Any, keys: set[str]) -> dict[str, Any]:
    """Decoders by key.

    Raises:
        ValueError: There is no such feature.
        TypeError: Something is no decoder.
    """
    flat: dict[str, Any] = {}

    def add(tree: Mapping[str, Any], prefix: str) -> None:
        for name, decoder in tree.items():
            key = f"{prefix}{name}"
            if isinstance(decoder, Mapping):
                add(decoder, f"{key}/")
            elif key not in keys:
                shown = ", ".join(map(quoted, sorted(keys)))
                raise ValueError(f"decoders: there is no feature {quoted(key)}; found {shown}")
            elif not isinstance(decoder, SkipDecoding) and not callable(decoder):
                found = type(decoder).__name__
                raise TypeError(
                    f"decoders: {quoted(key)} must be SkipDecoding() or a function, found {found}"
                )
            else:
                flat[key] = decoder

    if decoders is not None and not isinstance(decoders, Mapping):
        raise TypeError(f"decoders must be a dict, found {type(decoders).__name__}")
    add(decoders or {}, "")
    return flat


def _info(place: PreparedFolder, info: Any, splits: Any, specification: Any, tree: Any) -> Info:
    location = info.get("location") or {}
    return Info(
        name=str(info.get("name", "")),
        config=str(info.get("configName", "")),
        version=str(info.get("version", "")),
        description=str(info.get("description", "")),
        citation=str(info.get("citation", "")),
        homepage=str(next(iter(location.get("urls") or []), "")),
        license=str((info.get("redistributionInfo") or {}).get("license", "")),
        splits=splits,
        features=specification,
        classes=dict(_classes(place, tree, ())),
        supervised_keys=_supervised(info.get("supervisedKeys") or {}),
    )


def _supervised(node: Any) -> Any:
    """Keys in tuples and dicts."""
    if "featureKey" in node:
        return node["featureKey"]
    if "tuple" in node:
        return tuple(map(_supervised, node["tuple"].get("items", [])))
    if "dict" in node:
        return {name: _supervised(each) for name, each in node["dict"].get("dict", {}).items()}
    return (node["input"], node["output"]) if {"input", "output"} <= set(node) else None


def _classes(
    place: PreparedFolder, node: Any, path: tuple[str, ...]
) -> Iterable[tuple[str, ClassLabel]]:
    if "featuresDict" in node:
        for name, child in node["featuresDict"]["features"].items():
            yield from _classes(place, child, (*path, name))
    elif "sequence" in node:
        yield from _classes(place, node["sequence"]["feature"], path)
    label = node.get("classLabel", (node.get("image") or {}).get("label"))
    if label is not None:
        file = "-".join(name.replace("/", ".") for name in path) + ".labels.txt"
        text = place.read(file)
        names = None if text is None else tuple(filter(None, map(str.strip, text.split("\n"))))
        count = int(label.get("numClasses") or len(names or ()))
        yield "/".join(path), ClassLabel(count, names)
