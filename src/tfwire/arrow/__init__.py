"""TFRecord files as Arrow tables, without an Arrow library, for every library that speaks Arrow.

import polars as pl
from tfwire.arrow import open_reader

frame = pl.DataFrame(open_reader("train.tfrecord"))
"""

from tfwire.arrow._parsed_batches import RecordBatch
from tfwire.arrow._reader import ArrowReader, open_reader, read_table

__all__ = ["ArrowReader", "RecordBatch", "open_reader", "read_table"]
