"""How readers open files."""

from tfwire._records.files.byte_sources import check_ends as check_ends
from tfwire._records.files.compression import compression_name as compression_name
from tfwire._records.reading.options import AS_TENSORFLOW as AS_TENSORFLOW
