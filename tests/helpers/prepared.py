"""Folders as TensorFlow Datasets (TFDS) prepares them, written by tfwire."""

import io
import json

import tfwire as tfw


def tensor(dtype, *sizes, **more):
    return {"tensor": {"dtype": dtype, "shape": {"dimensions": [*map(str, sizes)]}, **more}}


def group(**features):
    return {"featuresDict": {"features": features}}


def sequence(feature, length="-1", connector="Sequence"):
    name = f"tensorflow_datasets.core.features.x.{connector}"
    return {"pythonClassName": name, "sequence": {"feature": feature, "length": length}}


def png(pixels):
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return out.getvalue()


def prepare(folder, features, splits, labels=None, **info):
    """Writes a version folder.

    Args:
        splits: By name, a list of shards, each a list of rows to encode.
        labels: Names of classes, by the key of the feature.
        info: Further fields of dataset_info.json.
    """
    folder.mkdir(parents=True)
    described = []
    name = info.setdefault("name", folder.parent.name)
    for split, shards in splits.items():
        for number, rows in enumerate(shards):
            path = f"{name}-{split}.tfrecord-{number:05}-of-{len(shards):05}"
            with tfw.TFRecordWriter(folder / path) as writer:
                for row in rows:
                    writer.write(row)
        described.append({"name": split, "shardLengths": [str(len(rows)) for rows in shards]})
    info = {"version": folder.name, "splits": described, **info}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    (folder / "features.json").write_text(json.dumps(features))
    for key, names in (labels or {}).items():
        (folder / f"{key.replace('/', '-')}.labels.txt").write_text("\n".join(names) + "\n")
    return folder


def pets(folder):
    """Four examples with an image and a label, in two shards."""
    import numpy as np

    image = {"image": {"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8"}}
    rows = [
        {"image": png(np.full((2, 3, 3), n, np.uint8)), "label": label, "name": f"pet {n}"}
        for n, label in enumerate([1, 0, 0, 1])
    ]
    features = group(image=image, label={"classLabel": {"numClasses": "2"}}, name={"text": {}})
    splits = {"train": [rows[:3], rows[3:]]}
    keys = {"tuple": {"items": [{"featureKey": "image"}, {"featureKey": "label"}]}}
    labels = {"label": ["cat", "dog"]}
    return prepare(folder, features, splits, labels, description="Pets.", supervisedKeys=keys)
