# The public names, for type checkers; the module itself imports them on first use.
from tfwire import checksum as checksum, train as train
from tfwire._version import __version__ as __version__
from tfwire.checksum import crc32c as crc32c
from tfwire.columns import (
    BytesColumn as BytesColumn,
    RaggedTensor as RaggedTensor,
    SparseTensor as SparseTensor,
)
from tfwire.dataset import (
    Dataset as Dataset,
    DatasetIterator as DatasetIterator,
    TFRecordDataset as TFRecordDataset,
)
from tfwire.errors import (
    DataLossError as DataLossError,
    Error as Error,
    ParseError as ParseError,
    TfwireWarning as TfwireWarning,
)
from tfwire.example import (
    bytes_feature as bytes_feature,
    decode_example as decode_example,
    decode_examples as decode_examples,
    decode_sequence_example as decode_sequence_example,
    encode_columns as encode_columns,
    encode_example as encode_example,
    encode_examples as encode_examples,
    encode_sequence_example as encode_sequence_example,
    float_feature as float_feature,
    int64_feature as int64_feature,
)
from tfwire.features import (
    FixedLenFeature as FixedLenFeature,
    FixedLenSequenceFeature as FixedLenSequenceFeature,
    RaggedFeature as RaggedFeature,
    SparseFeature as SparseFeature,
    VarLenFeature as VarLenFeature,
    float32 as float32,
    int64 as int64,
    string as string,
)
from tfwire.index import (
    RecordIndex as RecordIndex,
    TFRecordFile as TFRecordFile,
    TFRecordFiles as TFRecordFiles,
)
from tfwire.inference import (
    InferredSchema as InferredSchema,
    infer_schema as infer_schema,
)
from tfwire.json_format import (
    decode_json_example as decode_json_example,
    example_to_json as example_to_json,
)
from tfwire.parsing import (
    Parser as Parser,
    SequenceParser as SequenceParser,
    parse_example as parse_example,
    parse_sequence_example as parse_sequence_example,
    parse_single_example as parse_single_example,
    parse_single_sequence_example as parse_single_sequence_example,
)
from tfwire.receipts import Receipt as Receipt
from tfwire.records import (
    RecordIterator as RecordIterator,
    RecordPosition as RecordPosition,
    SkippedRegion as SkippedRegion,
    SkippedRegions as SkippedRegions,
    TFRecordOptions as TFRecordOptions,
    TFRecordWriter as TFRecordWriter,
    TornTail as TornTail,
    follow_records as follow_records,
    read_records as read_records,
    write_records as write_records,
)
from tfwire.repair import (
    FlippedBit as FlippedBit,
    FlippedBits as FlippedBits,
    RepairReport as RepairReport,
    repair_file as repair_file,
)
from tfwire.schema_files import (
    read_schema as read_schema,
    write_schema as write_schema,
)
from tfwire.sharding import (
    ShardedWriter as ShardedWriter,
)
from tfwire.tensors import (
    decode_raw as decode_raw,
    parse_tensor as parse_tensor,
    serialize_tensor as serialize_tensor,
)
from tfwire.verification import (
    FileReport as FileReport,
    verify_file as verify_file,
)
