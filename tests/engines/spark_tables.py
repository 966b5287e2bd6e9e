"""What the tests of Spark share: schemas, and tables read with its processes or without."""

import pickle

import pyarrow as pa

from tfwire.spark import SparkSource


def arrow(**columns):
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


def read(options, schema):
    """The rows that the tasks of a data source give."""
    reader = pickle.loads(pickle.dumps(SparkSource(options).reader(schema)))
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions()]
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def load(spark, path, schema=None, **options):
    source = spark.read.format("tfrecord").options(**options)
    return (source.schema(schema) if schema else source).load(str(path))
