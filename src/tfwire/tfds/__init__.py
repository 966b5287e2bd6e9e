"""Datasets that TensorFlow Datasets (TFDS) prepared, without TensorFlow and without TFDS.

    data = tfwire.tfds.open("~/tensorflow_datasets/mnist/3.0.1")
    data.info.splits["train"].num_examples      # 60000
    example = data["train[:10%]"][0]            # {'image': array(...), 'label': np.int64(4)}
    data.info.classes["label"].int2str(example["label"])

Values are those that TFDS gives: images and encoded tensors are decoded, numbers have the types
that features.json declares, features nest as they do there.
"""

from __future__ import annotations

from tfwire.tfds._examples import Split
from tfwire.tfds._features import SkipDecoding
from tfwire.tfds._folder import ClassLabel, SplitInfo
from tfwire.tfds._prepared import Info, Prepared, open

__all__ = ["ClassLabel", "Info", "Prepared", "SkipDecoding", "Split", "SplitInfo", "open"]

for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
del _name
