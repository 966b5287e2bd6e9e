"""tfwire.arrow, tfwire.checksum, tfwire.sharding, tfwire.images, tfwire.tensorboard."""

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import tfwire as tfw
from tfwire import arrow, checksum, images, sharding, tensorboard
from tfwire.typing import (
    Array,
    DType,
    FeatureStatistics,
    FileBatches,
    Input,
    OnCorrupt,
    ParallelMap,
    Row,
)

assert_type(tfw.crc32c(b"data"), int)
assert_type(checksum.crc32c(np.zeros(3), checksum.crc32c(memoryview(b"data"))), int)
assert_type(checksum.masked_crc32c(bytearray(3)), int)
assert_type(checksum.unmask_crc(checksum.mask_crc(42)), int)
assert_type(checksum.combine_crc32c(1, 2, 3), int)
assert_type(checksum.crc32c_kernel(), str)
assert_type(checksum.base64_crc32c(1), str)

assert_type(sharding.recommend_num_shards(10**9, num_hosts=2), int)
assert_type(sharding.recover_shards("."), list[str])
assert_type(sharding.MARKER, str)
assert_type(tfw.__version__, str)

pixels = images.decode(b"", 3)
assert_type(pixels, npt.NDArray[np.uint8])
assert_type(images.decode([b"", b""], size=(4, 5), num_threads=2), Array)
assert_type(images.decode(tfw.BytesColumn(b"", [0]), library="pillow"), Array)
assert_type(images.decode([b""], size=4, device="cuda"), Any)
assert_type(images.crop_or_pad(pixels, 224, 224), npt.NDArray[np.uint8])

found: dict[str, Any] = {**tensorboard.scalars("events", on_corrupt="tail")}

reader = arrow.open_reader(["a", "b"], {"n": tfw.FixedLenFeature([], tfw.int64)}, columns=["n"])
assert_type(reader, arrow.ArrowReader)
assert_type(reader.types, dict[str, str])
assert_type([batch.num_rows for batch in reader], list[int])
assert_type([len(batch) for batch in arrow.open_reader("a", with_positions=True)], list[int])
with iter(reader) as batches:
    assert_type(next(batches), arrow.RecordBatch)


# Programs annotate their own functions with the types of tfwire's.
def labels(path: str, on_corrupt: OnCorrupt = "raise") -> FileBatches[dict[str, tfw.SparseTensor]]:
    parser = tfw.Parser({"label": tfw.VarLenFeature(tfw.int64)})
    return parser.parse_file(path, batch_size=8, on_corrupt=on_corrupt)


def reports(paths: list[str]) -> ParallelMap[Input, tfw.FileReport]:
    return tfw.verify_files(paths)


row: Row = {"label": 1}
dtype: DType = tfw.int64
statistics: dict[str, FeatureStatistics] = tfw.infer_schema(["a"]).statistics
