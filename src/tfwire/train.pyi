# The message classes are made at run time; this is what they offer to type checkers.
from collections.abc import Iterable, Mapping
from typing import Literal, final

from google.protobuf.internal.containers import (
    MessageMap,
    RepeatedCompositeFieldContainer,
    RepeatedScalarFieldContainer,
)
from google.protobuf.message import Message

from tfwire._base.aliases import BytesLike, Integer, Number, SupportsSerialize, Value

@final
class BytesList(Message):
    @property
    def value(self) -> RepeatedScalarFieldContainer[bytes]: ...
    def __init__(self, *, value: Iterable[BytesLike | str] | None = ...) -> None: ...

@final
class FloatList(Message):
    @property
    def value(self) -> RepeatedScalarFieldContainer[float]: ...
    def __init__(self, *, value: Iterable[Number] | None = ...) -> None: ...

@final
class Int64List(Message):
    @property
    def value(self) -> RepeatedScalarFieldContainer[int]: ...
    def __init__(self, *, value: Iterable[Integer] | None = ...) -> None: ...

@final
class Feature(Message):
    @property
    def bytes_list(self) -> BytesList: ...
    @property
    def float_list(self) -> FloatList: ...
    @property
    def int64_list(self) -> Int64List: ...
    def __init__(
        self,
        *,
        bytes_list: Message | Mapping[str, object] | None = ...,
        float_list: Message | Mapping[str, object] | None = ...,
        int64_list: Message | Mapping[str, object] | None = ...,
    ) -> None: ...
    def WhichOneof(
        self, oneof_group: str | bytes
    ) -> Literal["bytes_list", "float_list", "int64_list"] | None: ...

@final
class Features(Message):
    @property
    def feature(self) -> MessageMap[str, Feature]: ...
    def __init__(self, *, feature: Mapping[str, Message] | None = ...) -> None: ...

@final
class FeatureList(Message):
    @property
    def feature(self) -> RepeatedCompositeFieldContainer[Feature]: ...
    def __init__(self, *, feature: Iterable[Message] | None = ...) -> None: ...

@final
class FeatureLists(Message):
    @property
    def feature_list(self) -> MessageMap[str, FeatureList]: ...
    def __init__(self, *, feature_list: Mapping[str, Message] | None = ...) -> None: ...

@final
class Example(Message):
    @property
    def features(self) -> Features: ...
    def __init__(self, *, features: Message | Mapping[str, object] | None = ...) -> None: ...
    def to_dict(self) -> dict[str, Value]: ...

@final
class SequenceExample(Message):
    @property
    def context(self) -> Features: ...
    @property
    def feature_lists(self) -> FeatureLists: ...
    def __init__(
        self,
        *,
        context: Message | Mapping[str, object] | None = ...,
        feature_lists: Message | Mapping[str, object] | None = ...,
    ) -> None: ...
    def to_dict(self) -> dict[str, Value]: ...

def to_dict(message: BytesLike | SupportsSerialize) -> dict[str, Value]: ...
