"""TFRecord files and tf.train.Example messages without TensorFlow, at the speed of memory."""

from tfwire._version import __version__
from tfwire.errors import DataLossError, Error, ParseError

__all__ = ["DataLossError", "Error", "ParseError", "__version__"]
