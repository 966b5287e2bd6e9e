# The public names. The module itself imports them on first use, by the table in _exports.py, which
# docs/make_api.py makes of this.
from tfwire import (
    arrow as arrow,
    checksum as checksum,
    compat as compat,
    images as images,
    sharding as sharding,
    tensorboard as tensorboard,
    train as train,
    view as view,
)
from tfwire._base.errors import (
    DataLossError as DataLossError,
    Error as Error,
    ParseError as ParseError,
    TfwireWarning as TfwireWarning,
)
from tfwire._data.dataset import (
    Dataset as Dataset,
    TFRecordDataset as TFRecordDataset,
)
from tfwire._data.iterator import (
    DatasetIterator as DatasetIterator,
)
from tfwire._examples.column_types import (
    BytesColumn as BytesColumn,
    RaggedTensor as RaggedTensor,
    SparseTensor as SparseTensor,
)
from tfwire._examples.decode import (
    decode_example as decode_example,
    decode_examples as decode_examples,
    decode_sequence_example as decode_sequence_example,
)
from tfwire._examples.decode_raw import (
    decode_raw as decode_raw,
)
from tfwire._examples.encode import (
    bytes_feature as bytes_feature,
    encode_columns as encode_columns,
    encode_example as encode_example,
    encode_examples as encode_examples,
    encode_sequence_example as encode_sequence_example,
    float_feature as float_feature,
    int64_feature as int64_feature,
)
from tfwire._examples.json_examples import (
    decode_json_example as decode_json_example,
    example_to_json as example_to_json,
)
from tfwire._examples.tensor_protos import (
    parse_tensor as parse_tensor,
    serialize_tensor as serialize_tensor,
)
from tfwire._parsing.features import (
    FixedLenFeature as FixedLenFeature,
    FixedLenSequenceFeature as FixedLenSequenceFeature,
    RaggedFeature as RaggedFeature,
    SparseFeature as SparseFeature,
    VarLenFeature as VarLenFeature,
    float32 as float32,
    int64 as int64,
    string as string,
)
from tfwire._parsing.infer import (
    InferredSchema as InferredSchema,
    infer_schema as infer_schema,
)
from tfwire._parsing.parsers import (
    Parser as Parser,
    SequenceParser as SequenceParser,
    parse_example as parse_example,
    parse_sequence_example as parse_sequence_example,
    parse_single_example as parse_single_example,
    parse_single_sequence_example as parse_single_sequence_example,
)
from tfwire._parsing.schema_files import (
    read_schema as read_schema,
    write_schema as write_schema,
)
from tfwire._records.files.compression import (
    TFRecordOptions as TFRecordOptions,
)
from tfwire._records.index.random_access import (
    TFRecordFile as TFRecordFile,
    TFRecordFiles as TFRecordFiles,
)
from tfwire._records.index.record_index import (
    RecordIndex as RecordIndex,
)
from tfwire._records.reading.damage import (
    FlippedBit as FlippedBit,
    FlippedBits as FlippedBits,
    RecordPosition as RecordPosition,
    SkippedRegion as SkippedRegion,
    SkippedRegions as SkippedRegions,
    TornTail as TornTail,
)
from tfwire._records.reading.follow_records import (
    follow_records as follow_records,
)
from tfwire._records.reading.read_records import (
    RecordIterator as RecordIterator,
    read_records as read_records,
)
from tfwire._records.reading.receipts import (
    Receipt as Receipt,
)
from tfwire._records.reading.verify_files import (
    FileReport as FileReport,
    verify_file as verify_file,
    verify_files as verify_files,
)
from tfwire._records.shards.sharded_writer import (
    ShardedWriter as ShardedWriter,
)
from tfwire._records.writing.repair_file import (
    RepairReport as RepairReport,
    repair_file as repair_file,
)
from tfwire._records.writing.write_records import (
    write_records as write_records,
)
from tfwire._records.writing.writer import (
    TFRecordWriter as TFRecordWriter,
)
from tfwire._version import (
    __version__ as __version__,
)
from tfwire.checksum import (
    crc32c as crc32c,
)
