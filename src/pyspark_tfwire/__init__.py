"""Where Spark looks for data sources by itself: ``spark.read.format("tfrecord")``."""

from tfwire.spark import SparkSource as DefaultSource

__all__ = ["DefaultSource"]
