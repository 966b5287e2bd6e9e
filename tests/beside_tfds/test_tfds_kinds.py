"""Every feature connector of TFDS, written by TFDS, as TFDS and tfwire read it."""

import numpy as np
import pytest

pytest.importorskip("tensorflow_datasets")

import tensorflow_datasets as tfds

import tfwire as tfw
import tfwire.tfds
from helpers.tfds_kinds import all_kinds

KINDS = all_kinds(tfds.features)
NO_CONNECTORS = {"BBox", "DocArg", "Documentation", "Encoding", "FeatureConnector", "TensorInfo"}


def plain(value):
    """Values with their types and shapes, for comparison."""
    if hasattr(value, "to_list"):  # ragged
        return "ragged", value.to_list()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return str(value.dtype), value.shape, value.tolist()
    if isinstance(value, tfw.Dataset) or hasattr(value, "__next__"):
        return list(map(plain, value))
    return list(map(plain, value)) if hasattr(value, "element_spec") else value


def written(folder, feature, values, shards=None):
    tfds.dataset_builders.store_as_tfds_dataset(
        name="kinds",
        version="1.0.0",
        features=tfds.features.FeaturesDict({"f": feature}),
        split_datasets={"train": [(number, {"f": v}) for number, v in enumerate(values)]},
        data_dir=folder,
        disable_shuffling=True,
    )
    return folder / "kinds" / "1.0.0"


def theirs(folder, split="train", decoders=None):
    builder = tfds.builder_from_directory(folder)
    examples = tfds.as_numpy(builder.as_dataset(split=split, decoders=decoders))
    return [
        {key: list(part) if _is_dataset(part) else part for key, part in example.items()}
        for example in examples
    ]


def _is_dataset(value):
    return not isinstance(value, (np.ndarray, np.generic, bytes, dict)) and not hasattr(
        value, "to_list"
    )


def ours(folder, split="train", **options):
    return [
        {key: list(part) if isinstance(part, tfw.Dataset) else part for key, part in one.items()}
        for one in tfwire.tfds.open(folder, **options)[split]
    ]


def comparable(examples):
    return [
        {k: list(map(plain, v)) if isinstance(v, list) else plain(v) for k, v in example.items()}
        for example in examples
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_tfds(tmp_path, kind):
    folder = written(tmp_path, *KINDS[kind])
    expected = comparable(theirs(folder))
    assert 2 == len(expected)
    assert expected == comparable(ours(folder))
    data = tfwire.tfds.open(tmp_path / "kinds")["train"]
    assert expected == comparable(
        [
            {k: list(v) if isinstance(v, tfw.Dataset) else v for k, v in data[number].items()}
            for number in range(2)
        ]
    )


def test_every_connector_has_a_kind():
    """A connector that is new in TFDS fails this."""
    text = " ".join(repr(type(feature)) for feature in _all_features())
    names = set(tfds.features.__all__) - NO_CONNECTORS
    names |= {"Translation", "TranslationVariableLanguages"}
    assert set() == {name for name in names if f".{name}'" not in text}


def _all_features():
    todo = [tfds.features.FeaturesDict({"f": feature}) for feature, _ in KINDS.values()]
    while todo:
        feature = todo.pop()
        yield feature
        if isinstance(feature, tfds.features.FeaturesDict):
            todo += feature.values()
        elif isinstance(feature, tfds.features.Sequence):
            todo.append(feature.feature)


@pytest.mark.parametrize("kind", ["image", "sequence image", "video", "zlib int64"])
def test_skipped_decoding_is_that_of_tfds(tmp_path, kind):
    folder = written(tmp_path, *KINDS[kind])
    expected = theirs(folder, decoders={"f": tfds.decode.SkipDecoding()})
    found = ours(folder, decoders={"f": tfwire.tfds.SkipDecoding()})
    assert comparable(expected) == comparable(found)


EXPRESSIONS = [
    *("train", "train[:10%]", "train[33.3%:]", "train[-25%:]", "train[3:7]+train[:2]", "all"),
    *("train[-5:]", "train[:-5]", "train[0shard]", "train[:1shard]", "train[5:20%]"),
]


def test_splits_are_those_of_tfds(tmp_path):
    folder = written(tmp_path, np.int64, range(37))
    for split in EXPRESSIONS:
        assert comparable(theirs(folder, split)) == comparable(ours(folder, split)), split
    parts = tfds.even_splits("train", 5)
    mine = tfwire.tfds.open(folder)["train"].even_splits(5)
    for expected, found in zip(parts, mine, strict=True):
        assert [e["f"] for e in theirs(folder, expected)] == [e["f"] for e in found]


def test_the_description_is_that_of_tfds(tmp_path):
    folder = written(tmp_path, *KINDS["sequence class label"])
    expected = tfds.builder_from_directory(folder).info
    info = tfwire.tfds.open(folder).info
    assert (expected.name, str(expected.version)) == (info.name, info.version)
    assert expected.splits["train"].shard_lengths == list(info.splits["train"].shard_lengths)
    assert expected.features["f"].names == list(info.classes["f"].names)
