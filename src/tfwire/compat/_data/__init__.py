"""``tf.data``: datasets whose elements are tensors."""

from tfwire.compat._data.dataset import Dataset, TFRecordDataset
from tfwire.compat._data.namespace import data
from tfwire.compat._data.specs import RaggedTensorSpec, SparseTensorSpec, TensorSpec

__all__ = [
    "Dataset",
    "RaggedTensorSpec",
    "SparseTensorSpec",
    "TFRecordDataset",
    "TensorSpec",
    "data",
]
