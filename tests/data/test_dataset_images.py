"""Stored images of datasets, decoded."""

from __future__ import annotations

import io
import json
import pickle

import numpy as np
import pytest
from PIL import Image

import tfwire as tfw
from helpers.data.named_pipelines import goes_on_everywhere
from tfwire import Dataset, TFRecordDataset
from tfwire.images import decode

SPEC = {
    "image/encoded": tfw.FixedLenFeature([], tfw.string),
    "label": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
}
NAMES = {"image/encoded": "image"}
COUNT = 13


def jpeg(number):
    pixels = np.random.default_rng(number).integers(0, 256, (12 + number % 3, 16, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG" if number % 5 else "PNG")
    return file.getvalue()


STORED = [jpeg(number) for number in range(COUNT)]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("images") / "images.tfrecord"
    columns = {"image/encoded": STORED, "label": range(COUNT)}
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns({**columns, "name": [f"name {i}" for i in range(COUNT)]})
    return str(path)


def parsed(path, **options):
    return TFRecordDataset(path, **options).parse_example(SPEC)


PIPELINES = {
    "batches": lambda path: parsed(path).batch(4),
    "batches by threads": lambda path: (
        TFRecordDataset(path).batch(4).parse_example(SPEC, num_threads=2)
    ),
    "singles": parsed,
    "shuffled": lambda path: parsed(path, indexed=True).shuffle(99, seed=1).batch(4),
    "mapped": lambda path: parsed(path).map(lambda element: element).batch(4),
    "not parsed": lambda path: Dataset.from_tensor_slices(
        {"image/encoded": STORED, "label": np.arange(COUNT), "name": ["a"] * COUNT}
    ),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", PIPELINES)
def test_images_are_those_that_are_decoded_alone(path, name, threads):
    found = PIPELINES[name](path).decode_images(NAMES, size=8, channels=3, num_threads=threads)
    seen = 0
    for element in found:
        assert ["image", "label", "name"] == list(element)
        labels = np.atleast_1d(element["label"])
        images = element["image"].reshape(-1, 8, 8, 3)
        names = np.ravel(np.asarray(element["name"], object)).tolist()
        if name != "not parsed":
            assert [b"name %d" % label for label in labels] == names
        for label, pixels in zip(labels, images, strict=True):
            assert np.array_equal(decode(STORED[label], 3, size=8), pixels)
            seen += 1
    assert COUNT == seen


@pytest.mark.parametrize("name", PIPELINES)
def test_every_place_is_gone_on_from(path, name):
    def make(threads):
        return PIPELINES[name](path).repeat(2).decode_images(NAMES, size=4, num_threads=threads)

    def show(element):
        return element["image"].tobytes(), str(element["label"])

    goes_on_everywhere(lambda: make(1), lambda: make(3), show, 2, 12)


def test_shards_and_augmentation(path):
    dataset = (
        parsed(path, indexed=True).shuffle(99, seed=2).decode_images(NAMES, size=8, channels=3)
    )
    flipped = dataset.map(
        lambda e, rng: {**e, "image": e["image"][:, :: 1 - 2 * rng.integers(2)]}, seed=3
    )
    whole = {int(e["label"]): e["image"].tobytes() for e in flipped}
    shards = [pickle.loads(pickle.dumps(dataset)).shard_source(3, i) for i in range(3)]
    assert COUNT == sum(1 for shard in shards for _ in shard)
    flipped.set_epoch(0)
    again = {int(e["label"]): e["image"].tobytes() for e in flipped}
    assert whole == again


def test_without_a_size_images_keep_theirs(path):
    (batch, *_) = parsed(path).batch(4).decode_images({"image/encoded": "image/encoded"})
    assert (object, (4,)) == (batch["image/encoded"].dtype, batch["image/encoded"].shape)
    assert [(12 + i % 3, 16, 3) for i in range(4)] == [x.shape for x in batch["image/encoded"]]
    assert list(SPEC) == list(batch)


@pytest.mark.parametrize(
    ("dataset", "options", "expected"),
    [
        (lambda path: parsed(path).batch(4), {"size": (5, 6), "channels": 3}, "uint8[?, 5, 6, 3]"),
        (lambda path: parsed(path).batch(4), {"size": 5}, "uint8[?, 5, 5, ?]"),
        (lambda path: parsed(path).batch(4), {"channels": 3}, "images"),
        (parsed, {"size": 5, "channels": 1}, "uint8[5, 5, 1]"),
        (parsed, {}, "uint8[?, ?, ?]"),
    ],
)
def test_the_spec_is_that_of_pixels(path, dataset, options, expected):
    found = dataset(path).decode_images(NAMES, **options)
    assert ["image", "label", "name"] == list(found.element_spec)
    assert expected == found.element_spec["image"]
    assert found.element_spec["label"] == dataset(path).element_spec["label"]
    assert "image" in repr(found)


def test_an_error_names_the_feature_and_the_image(tmp_path):
    stored = [*STORED[:6], STORED[6][:-40], b""]
    rows = [{"image/encoded": each, "label": 1, "name": "a"} for each in stored]
    tfw.write_records(tmp_path / "bad", rows)
    for threads in (1, 2):
        batches = iter(parsed(tmp_path / "bad").batch(4).decode_images(NAMES, num_threads=threads))
        next(batches)
        with pytest.raises(
            tfw.ParseError, match=r"feature 'image/encoded': image 2 \(from 0\) of the batch: JPEG"
        ) as caught:
            next(batches)
        error = caught.value
        assert ("image/encoded", 2, "image") == (error.feature, error.record_index, error.reason)
    singles = iter(parsed(tmp_path / "bad").decode_images(NAMES))
    with pytest.raises(tfw.ParseError, match=r"feature 'image/encoded': JPEG image of") as caught:
        list(singles)
    assert ("image/encoded", None) == (caught.value.feature, caught.value.record_index)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"image": "pixels"}, "feature 'image' of decode_images is not in"),
        ({"image/encoded": "label"}, "two features the name 'label'"),
        ({"image/encoded": "image", "name": "image"}, "two features the name 'image'"),
    ],
)
def test_names_are_checked(path, names, message):
    """At the call, where the features are known."""
    with pytest.raises(ValueError, match=message):
        parsed(path).decode_images(names)
    unknown = parsed(path).map(lambda element: element).decode_images(names)
    with pytest.raises(ValueError, match=message):
        next(iter(unknown))


def test_what_is_no_image(path):
    with pytest.raises(TypeError, match="an element must be a dict, as of parse_example"):
        next(iter(TFRecordDataset(path).decode_images(NAMES)))
    sparse = TFRecordDataset(path).batch(2)
    sparse = sparse.parse_example({"image/encoded": tfw.VarLenFeature(tfw.string)})
    message = "feature 'image/encoded': contents must be bytes-like, found SparseTensor"
    with pytest.raises(TypeError, match=message + ".*FixedLenFeature.*by filter"):
        next(iter(sparse.decode_images(NAMES)))
    with pytest.raises(TypeError, match="feature 'label': contents holds int64, not strings"):
        next(iter(parsed(path).batch(2).decode_images({"label": "x"})))
    with pytest.raises(ValueError, match="size must be at least 1"):
        parsed(path).decode_images(NAMES, size=0)
    with pytest.raises(TypeError, match="names must be a mapping"):
        parsed(path).decode_images("image/encoded")


def test_several_strings_of_a_record(path):
    """Lists of images are decoded, and other strings come as they would without."""
    rows = [{"frames": STORED[i : i + 2], "tags": ["a", "b"]} for i in (0, 3)]
    path = path + "-frames"
    tfw.write_records(path, rows)
    spec = {key: tfw.FixedLenFeature([2], tfw.string) for key in ("frames", "tags")}
    dataset = TFRecordDataset(path).batch(2).parse_example(spec)
    (plain,) = dataset
    (batch,) = dataset.decode_images({"frames": "frames"}, size=4, channels=3)
    assert (2, 2, 4, 4, 3) == batch["frames"].shape
    assert plain["tags"].tolist() == batch["tags"].tolist()
    assert type(plain["tags"]) is type(batch["tags"])
    (first, _) = TFRecordDataset(path).parse_example(spec).decode_images({"frames": "x"}, size=4)
    assert (2, 4, 4, 3) == first["x"].shape
    assert [b"a", b"b"] == first["tags"].tolist()
    ragged = {"frames": spec["frames"], "tags": tfw.RaggedFeature(tfw.string)}
    (mixed,) = TFRecordDataset(path).batch(2).parse_example(ragged).decode_images({"frames": "x"})
    assert [[b"a", b"b"], [b"a", b"b"]] == mixed["tags"].to_list()


def test_states_fit_whatever_the_threads_are(path):
    elements = iter(parsed(path).batch(4).decode_images(NAMES, size=4, num_threads=3))
    next(elements)
    state = json.loads(json.dumps(elements.state_dict()))
    resumed = iter(parsed(path).batch(4).decode_images(NAMES, size=4))
    resumed.load_state_dict(state)
    expected = [batch["label"].tolist() for batch in elements]
    assert expected == [batch["label"].tolist() for batch in resumed]
    other = iter(parsed(path).batch(4).decode_images(NAMES, size=4, library="pillow"))
    other.load_state_dict(state)  # as on another machine
    assert expected == [batch["label"].tolist() for batch in other]
    with pytest.raises(ValueError, match="another pipeline"):
        iter(parsed(path).batch(4).decode_images(NAMES, size=5)).load_state_dict(state)
