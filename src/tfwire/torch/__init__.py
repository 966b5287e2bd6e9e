"""TFRecord files for PyTorch: datasets for torch.utils.data.DataLoader, tensors without copies.

torch has no tensors of strings: they are lists of bytes or, with ``strings="tensor"``, a
StringTensor. A RaggedTensor ``r`` holds tensors or, with ``nested=True``, is torch's nested tensor.
A SparseTensor ``s`` holds tensors, too: ``torch.sparse_coo_tensor(s.indices.T, s.values,
tuple(s.dense_shape))`` is torch's form of it.

torch's own function for ``collate_fn`` looks at every string of a batch. Give :func:`collate` to a
DataLoader instead: strings cost nothing then.
"""

from __future__ import annotations

try:
    import torch as torch
except ImportError as _error:
    raise ImportError(
        "tfwire.torch needs torch 2.1 or newer; pip install 'tfwire[torch]'"
    ) from _error

from tfwire.torch._datasets import TFRecordIterableDataset, TFRecordMapDataset
from tfwire.torch._tensors import StringTensor, as_tensors
from tfwire.torch._threads import ThreadLoader
from tfwire.torch._worker_batches import collate

__all__ = [
    "StringTensor",
    "TFRecordIterableDataset",
    "TFRecordMapDataset",
    "ThreadLoader",
    "as_tensors",
    "collate",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
del _name
