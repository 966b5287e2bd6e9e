"""What parsers share: all of them a compiled specification; Parser and SequenceParser the rest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

from tfwire._base.aliases import (
    BytesAs,
    BytesLike,
    DetectedCompressionType,
    Input,
    OnCorrupt,
    OnParseError,
    Out,
    StorageOptions,
    SupportsSerialize,
)
from tfwire._base.arguments import boolean, choice, integer
from tfwire._base.native import lib, objects
from tfwire._base.strings import Spans, message_slices
from tfwire._examples.column_types import Messages
from tfwire._parsing.assembler import Assembler
from tfwire._parsing.chunk_columns import Rows, is_checked, rows_of_chunk
from tfwire._parsing.failure import ParseFailure, Place, parse_error
from tfwire._parsing.features import FixedLenFeature
from tfwire._parsing.fields import Column, Cuts, results_of_batches, whole_and_rest, with_objects
from tfwire._parsing.file_chunks import Batch as Batch, FileParser, PathsOfFiles
from tfwire._parsing.native_session import Schema, Session
from tfwire._parsing.parse_file import FileBatches, ParsingOptions, parse_from
from tfwire._parsing.single import (
    SingleSession,
    batch_names,
    is_scalar,
    single_message,
    single_name,
    unwrap,
)
from tfwire._parsing.spec import Plan
from tfwire._records.files.compression import either_word
from tfwire._records.files.find_files import input_paths
from tfwire._records.reading.options import make_options
from tfwire._records.reading.pipeline import Chunk

Single = TypeVar("Single")
P = TypeVar("P", bound="BaseParser[Any, Any]")


def _fixed_only(schemas: Sequence[Schema | None]) -> Schema | None:
    """The schema, if it is for Examples and has only FixedLenFeatures; else None."""
    schema, *others = schemas
    if schema is None or others:
        return None
    features = schema.plan.features.values()
    return schema if all(isinstance(f, FixedLenFeature) for f in features) else None


def _place(record: int | None, names: Any) -> Place:
    """Where a record of a batch came from."""
    named = names is not None and record is not None and record < len(names)
    return Place(None, record, names[record] if named else None)


class BaseParser(FileParser[Batch], Generic[Batch, Single]):
    """Parses messages and files. Parser and SequenceParser make results of the columns."""

    _parameters: tuple[str, ...] = ()  # names of the specifications, as arguments

    def _start(
        self, schemas: Sequence[Schema | None], bytes_as: BytesAs, empty_is_missing: bool
    ) -> None:
        """What ``__init__`` does when the specifications are compiled."""
        choice("bytes_as", bytes_as, ("object", "column"))
        empty_is_missing = boolean("empty_is_missing", empty_is_missing)
        self._set_schemas(schemas)
        held = [None if plan is None else plan.features for plan in self._plans]
        self._init: dict[str, Any] = dict(zip(self._parameters, held, strict=False))
        self._init |= {"bytes_as": bytes_as, "empty_is_missing": empty_is_missing}
        self._flags = lib.TFW_EMPTY_IS_MISSING if empty_is_missing else 0
        self._finish: Callable[[Any], Any] = with_objects
        if bytes_as == "column":
            self._finish = lambda value: value
        self._sessions: list[Session] = []
        self._short = _fixed_only(self._schemas)
        self._single_sessions: list[SingleSession] = []

    @classmethod
    def _of(cls: type[P], schemas: Sequence[Schema | None]) -> P:
        """A parser of compiled specifications."""
        parser = cls.__new__(cls)
        parser._start(schemas, "object", False)
        return parser

    def __getstate__(self) -> dict[str, Any]:
        return self._init

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @overload
    def parse(self, serialized: bytes | bytearray | memoryview, out: None = None) -> Single: ...
    @overload
    def parse(self, serialized: Messages, out: Out | None = None) -> Batch: ...
    def parse(
        self, serialized: Messages | bytes | bytearray | memoryview, out: Out | None = None
    ) -> Batch | Single:
        """Parses a batch.

        Args:
            serialized: A list, tuple, iterable or object array of bytes-like objects, a
                BytesColumn, or an object whose ``numpy()`` is one. A single byte string is parsed
                as by ``parse_single``, as in TensorFlow.
            out: Arrays to write to, by key: for FixedLenFeatures of numbers, C-contiguous and
                aligned, of the column's dtype and shape; the first dimension may be larger. Other
                arrays are new. The given ones must not be resized before this returns.

        Returns:
            As described for the class, with a first dimension of the batch.

        Raises:
            ParseError: A message does not fit; ``record_index`` is its number.
            TypeError, ValueError: ``serialized`` or ``out`` has a wrong type or shape.
        """
        parsed: Batch | Single
        [parsed] = self._parse_batches(serialized, None, out)
        return parsed

    def parse_single(self, serialized: BytesLike | SupportsSerialize) -> Single:
        """Parses one message.

        Args:
            serialized: A bytes-like object, or an object whose ``numpy()`` is one.

        Returns:
            As described for the class: numpy scalars and bytes for the shape ``[]``, else arrays.

        Raises:
            ParseError: The message does not fit.
            TypeError, ValueError: ``serialized`` is not a byte string.
        """
        single: Single = self._parse_single(serialized, None)
        return single

    def parse_file(
        self,
        paths: Input | Iterable[Input],
        batch_size: int = 1024,
        *,
        compression_type: DetectedCompressionType = "auto",
        verify: bool = True,
        on_corrupt: OnCorrupt = "raise",
        on_parse_error: OnParseError = "raise",
        num_threads: int = 1,
        drop_remainder: bool = False,
        receipt: bool = False,
        max_record_size: int | None = 2**30,
        options: DetectedCompressionType = None,
        storage_options: StorageOptions = None,
    ) -> FileBatches[Batch]:
        """Reads record files and parses their records in batches, all in C.

        Batches may span files. Every intact record before an error is delivered before the error is
        raised, in a batch that may be incomplete.

        Args:
            paths: As for ``read_records``: paths, URLs, folders, patterns, file objects.
            batch_size: Records of a batch; the last may have fewer.
            compression_type, options: Two words for one argument: None or "", "GZIP", "ZLIB", or
                "auto" looks at the first bytes.
            verify: Check the checksums of payloads. Those of lengths are always checked.
            on_corrupt: What to do at damage: "raise", "skip", "tail" or "stop", as for
                ``read_records``.
            on_parse_error: What to do at a record that does not fit: "raise", or "skip": leave it
                out, note it and warn at the end.
            num_threads: This many threads read and parse, the caller's included: ahead, one to four
                mebibytes each. Of a list of compressed files this many are inflated at a time, as
                by ``read_records``. The batches are the same.
            drop_remainder: Leave out an incomplete last batch.
            receipt: Fingerprint the records, for the iterator's ``receipt``.
            max_record_size: Longer records are damage; None: no limit.
            storage_options: fsspec's options of the filesystem of URLs.

        Returns:
            An iterator and context manager: batches as ``parse`` gives them, ``.skipped`` (damaged
            regions), ``.parse_errors`` and ``.num_parse_errors`` (records left out), ``close()``.

        Raises:
            ValueError, TypeError: An argument is not valid.
            DataLossError, OSError, ParseError: From the iterator, with file and record number.

        Example:
            >>> _ = tfw.write_records("labels.tfrecord", [{"label": i} for i in range(5)])
            >>> parser = tfw.Parser({"label": tfw.FixedLenFeature([], tfw.int64)})
            >>> for batch in parser.parse_file("labels.tfrecord", batch_size=2):
            ...     print(batch["label"])
            [0 1]
            [2 3]
            [4]
        """
        compression_type = either_word(compression_type, options, "auto")
        parsing = ParsingOptions(
            integer("batch_size", batch_size, 1),
            make_options(compression_type, verify, on_corrupt, max_record_size, receipt=receipt),
            integer("num_threads", num_threads, 1),
            boolean("drop_remainder", drop_remainder),
            choice("on_parse_error", on_parse_error, ("raise", "skip")) == "skip",
        )
        return parse_from(self, input_paths(paths, storage_options), parsing)

    def _parse_batches(
        self, serialized: Any, size: int | None, out: Out | None = None, names: Any = None
    ) -> list[Any]:
        """As parse, cut into batches of a size; None: one batch, which may be empty, or one
        message."""
        serialized = unwrap(serialized)
        if is_scalar(serialized):
            return [self._parse_single(serialized, names)]
        if names is not None:
            names = batch_names(names)
        count, slices = message_slices(serialized)
        session = self._acquire()
        try:
            session.begin(count, out)
            parsed = 0
            for spans in slices:
                self._append(session, spans, names)
                parsed += spans.num_spans
            if parsed != count:  # the rest of the columns is not initialized
                raise ValueError(f"serialized had {count} messages at first, then {parsed}")
            return list(self._batches(session.take(count), count, size or max(1, count)))
        except ParseFailure as failure:  # of the batch as a whole
            raise parse_error(failure, _place(failure.record, names)) from None
        finally:
            self._sessions.append(session)

    def _append(self, session: Session, spans: Spans, names: Any) -> None:
        """Parses a slice of a batch."""
        try:
            session.parse(spans.data, spans.data_len, spans.spans, spans.num_spans, spans.flags)
        except ParseFailure as failure:
            record = failure.record
            if record is None:
                raise
            keys = self._keys(spans.message(record), failure)
            raise parse_error(failure, _place(spans.first + record, names), keys) from None

    def _parse_single(self, serialized: Any, name: Any) -> Any:
        message = serialized
        if type(message) is not bytes:
            message = single_message(unwrap(serialized))
        if name is not None:
            name = single_name(name)
        if self._short is None:
            return self._parse_one(message, name)
        try:
            session = self._single_sessions.pop()
        except IndexError:
            session = SingleSession(self._short, self._flags, self._init["bytes_as"] == "column")
        try:
            return session.parse(message)
        except ParseFailure as failure:
            raise parse_error(failure, Place(name=name), self._keys(message, failure)) from None
        finally:
            self._single_sessions.append(session)

    def _parse_one(self, message: Any, name: Any) -> Any:
        """Parses one record of any specification."""
        session = self._acquire()
        try:
            session.begin(1)
            session.parse_one(message)
            return self._single(session.take(1))
        except ParseFailure as failure:
            raise parse_error(failure, Place(name=name), self._keys(message, failure)) from None
        finally:
            self._sessions.append(session)

    def _acquire(self) -> Session:
        """A session for this thread, until it is appended to the unused ones again."""
        try:
            return self._sessions.pop()
        except IndexError:
            return Session(self._schemas, self._flags)

    def _assembler(self, size: int) -> Assembler | None:
        return Assembler(self, size) if is_checked(self._plans) else None

    def _batches_of(
        self, chunk: Chunk, count: int, size: int, paths: PathsOfFiles
    ) -> Iterator[Any]:
        rows = rows_of_chunk(chunk, self._schemas).between(0, count)
        return self._batches(rows.parts, count, size)

    @abstractmethod
    def _batches(self, parts: list[list[Column]], count: int, size: int) -> Iterator[Any]:
        """Results from the columns of count records, in batches of a size."""

    @abstractmethod
    def _single(self, parts: list[list[Column]]) -> Any:
        """The result from the columns of one record."""

    def _dicts(
        self, plan: Plan | None, columns: list[Column], count: int, size: int
    ) -> Iterator[dict[Any, Any]]:
        """The results of a plan for every batch."""
        fields = {} if plan is None else plan.fields
        finish = self._finish
        if count <= size:
            yield {key: finish(field.batch(columns, count)) for key, field in fields.items()}
            return
        cuts, rows = Cuts.of({}, {}) if plan is None else plan.cuts, Rows([columns], count)
        for first, number, batches in whole_and_rest(count, size):
            [part] = rows.between(first, number).parts
            results = results_of_batches(cuts, part, number, batches, finish)
            yield from objects.tfw_new_batches(cuts.like, cuts.keys, results, batches)

    def _dict(self, plan: Plan | None, columns: list[Column]) -> dict[Any, Any]:
        """The results of a plan for one record."""
        if plan is None:
            return {}
        return {key: self._finish(field.single(columns)) for key, field in plan.fields.items()}
