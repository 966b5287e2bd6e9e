"""What the two parsers share: sessions for any number of threads, input, errors, files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tfwire._arguments import boolean, choice, integer
from tfwire._core import lib
from tfwire._parsing.assemble import Cells, with_objects
from tfwire._parsing.cut import results_of_batches
from tfwire._parsing.failure import Misfit, Place, keys_of, parse_error
from tfwire._parsing.file_batches import FileBatches
from tfwire._parsing.schema import Out, Schema
from tfwire._parsing.serialized import (
    is_scalar,
    names_of,
    single_message,
    single_name,
    unwrap,
)
from tfwire._parsing.session import Session
from tfwire._parsing.single import SingleSession
from tfwire._parsing.spec import Plan
from tfwire._records.blocks import Block
from tfwire._records.markers import Markers
from tfwire._records.streams import BatchReader
from tfwire._spans import Spans, slices_of
from tfwire.features import FixedLenFeature

__all__ = ["BaseParser"]

# Of a file, read at a time. Less would stay in the second level of the cache, but every lot takes
# some steps of Python.
_BUFFER_SIZE = 1 << 21


def _unchanged(value: Any) -> Any:
    return value


def _fixed_only(schemas: Sequence[Schema | None]) -> Schema | None:
    """The schema of Examples of FixedLenFeatures, where that is what is asked for."""
    schema, *others = schemas
    if schema is None or others:
        return None
    features = schema.plan.features.values()
    return schema if all(isinstance(f, FixedLenFeature) for f in features) else None


def _place(record: int | None, names: Any) -> Place:
    """A record of a batch."""
    named = names is not None and record is not None and record < len(names)
    return Place(None, record, names[record] if named else None)


class BaseParser:
    """A compiled specification; Parser and SequenceParser say of what."""

    def __init__(
        self, plans: Sequence[Plan | None], bytes_as: str, empty_is_missing: bool, **init: Any
    ) -> None:
        choice("bytes_as", bytes_as, ("object", "column"))
        empty_is_missing = boolean("empty_is_missing", empty_is_missing)
        self._init = {**init, "bytes_as": bytes_as, "empty_is_missing": empty_is_missing}
        self._plans = plans
        self._schemas = tuple(None if plan is None else Schema(plan) for plan in plans)
        self._flags = lib.TFW_EMPTY_IS_MISSING if empty_is_missing else 0
        self._finish: Callable[[Any], Any] = with_objects if bytes_as == "object" else _unchanged
        self._sessions: list[Session] = []
        self._blocks: list[Block] = []  # that nobody is using, as the sessions
        self._short = _fixed_only(self._schemas)
        self._single_sessions: list[SingleSession] = []

    def __getstate__(self) -> dict[str, Any]:
        return self._init

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def parse(self, serialized: Any, out: Out | None = None) -> Any:
        """Parses a batch.

        Args:
            serialized: A list, tuple, iterable or object array of bytes-like objects, a
                BytesColumn, or an object whose ``numpy()`` is one. A single byte string gives
                what ``parse_single`` gives, as in TensorFlow.
            out: Arrays to write to, by key: for FixedLenFeatures of numbers, C-contiguous, of the
                column's dtype and shape; the first dimension may be larger. The others are made.
                They are looked at once, and must not be resized before this returns.

        Returns:
            What the class says, with a first dimension of the batch.

        Raises:
            ParseError: A message does not fit; ``record_index`` says which.
            TypeError, ValueError: ``serialized`` or ``out`` is of another type or shape.
        """
        return self._parse(serialized, out, None)

    def parse_single(self, serialized: Any) -> Any:
        """Parses one message.

        Args:
            serialized: A bytes-like object, or an object whose ``numpy()`` is one.

        Returns:
            What the class says: numpy scalars and bytes for the shape ``[]``, else arrays.

        Raises:
            ParseError: The message does not fit.
            TypeError, ValueError: ``serialized`` is no byte string.
        """
        return self._parse_single(serialized, None)

    def parse_file(
        self,
        paths: Any,
        batch_size: int = 1024,
        *,
        compression_type: Any = "auto",
        verify: bool = True,
        on_corrupt: str = "raise",
        on_parse_error: str = "raise",
        num_threads: int = 1,
        drop_remainder: bool = False,
        receipt: bool = False,
    ) -> FileBatches:
        """Reads record files and parses their records in batches, in C from end to end.

        Batches go across the borders of files. Every intact record before an error is delivered
        before the error is raised, in a batch that may be incomplete.

        Args:
            paths: A path, a URL, a binary file object, or an iterable of them.
            batch_size: Records of a batch; the last may have fewer.
            compression_type: None or "", "GZIP", "ZLIB", or "auto": what the file begins with.
            verify: Check the records' checksums; the checksums of their lengths always are.
            on_corrupt: What to do at damage: "raise", "skip", "tail" or "stop", as for
                ``read_records``.
            on_parse_error: What to do at a record that does not fit: "raise", or "skip": leave it
                out, note it and warn at the end.
            num_threads: Above 1 so many threads read and parse whole batches ahead, two mebibytes
                or more each; the batches are the same.
            drop_remainder: Leave out a last batch that is not complete.
            receipt: Keep account of the records, for the iterator's ``receipt``.

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
        batch_size = integer("batch_size", batch_size, 1)
        num_threads = integer("num_threads", num_threads, 1)
        drop_remainder = boolean("drop_remainder", drop_remainder)
        verify, receipt = boolean("verify", verify), boolean("receipt", receipt)
        skip = choice("on_parse_error", on_parse_error, ("raise", "skip")) == "skip"
        # Threads verify payloads side by side, unless what is read depends on what is damaged.
        apart = num_threads > 1 and on_corrupt in ("raise", "tail") and not (skip or receipt)
        reader = BatchReader(
            paths,
            compression_type,
            verify=verify and not apart,
            on_corrupt=on_corrupt,
            buffer_size=_BUFFER_SIZE,
            receipt=receipt,
            markers=Markers(),
        )
        return FileBatches(
            self,
            reader,
            batch_size,
            skip=skip,
            num_threads=num_threads,
            verify=verify and apart,
            drop_remainder=drop_remainder,
        )

    def _parse(self, serialized: Any, out: Out | None, names: Any) -> Any:
        serialized = unwrap(serialized)
        if is_scalar(serialized):
            return self._parse_single(serialized, names)
        if names is not None:
            names = names_of(names)
        [batch] = self._parse_batches(serialized, None, out, names)
        return batch

    def _parse_batches(
        self, serialized: Any, size: int | None, out: Out | None = None, names: Any = None
    ) -> list[Any]:
        """As parse, cut into batches of a size; None: all in one, also if there are none."""
        count, slices = slices_of(serialized)
        session = self._acquire()
        try:
            session.begin(count, out)
            parsed = 0
            for spans in slices:
                self._append(session, spans, names)
                parsed += spans.num_spans
            if parsed != count:  # else the rest of the columns would be whatever memory held
                raise ValueError(f"serialized had {count} messages at first, then {parsed}")
            return list(self._batches(session.take(count), count, size or max(1, count)))
        except Misfit as misfit:  # of all records together
            raise parse_error(misfit, _place(misfit.record, names)) from None
        finally:
            self._sessions.append(session)

    def _append(self, session: Session, spans: Spans, names: Any) -> None:
        """Parses a slice of a batch."""
        try:
            session.parse(spans.data, spans.data_len, spans.spans, spans.num_spans, spans.flags)
        except Misfit as misfit:
            record = misfit.record
            if record is None:
                raise
            keys = self._keys(spans.message(record), misfit)
            raise parse_error(misfit, _place(spans.first + record, names), keys) from None

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
        except Misfit as misfit:
            raise parse_error(misfit, Place(name=name), self._keys(message, misfit)) from None
        finally:
            self._single_sessions.append(session)

    def _parse_one(self, message: Any, name: Any) -> Any:
        """One record of any specification."""
        session = self._acquire()
        try:
            session.begin(1)
            session.parse_one(message)
            return self._single(session.take(1))
        except Misfit as misfit:
            raise parse_error(misfit, Place(name=name), self._keys(message, misfit)) from None
        finally:
            self._sessions.append(session)

    def _acquire(self) -> Session:
        """A session that no other thread uses until it is appended again."""
        try:
            return self._sessions.pop()
        except IndexError:
            return Session(self._schemas, self._flags)

    def _batches(self, parts: list[list[Cells]], count: int, size: int) -> Iterator[Any]:
        """Results from the columns of count records, in batches of a size."""
        raise NotImplementedError

    def _single(self, parts: list[list[Cells]]) -> Any:
        """The result from the columns of one record."""
        raise NotImplementedError

    def _dicts(
        self, plan: Plan | None, columns: list[Cells], count: int, size: int
    ) -> Iterator[dict[Any, Any]]:
        """The results of a plan for every batch."""
        fields = {} if plan is None else plan.fields
        finish = self._finish
        if count <= size:
            yield {key: finish(field.batch(columns, count)) for key, field in fields.items()}
            return
        values: list[Iterator[Any]] = [
            results_of_batches(field, columns, count, size, finish) for field in fields.values()
        ]
        for _ in range(0, count, size):
            yield dict(zip(fields, map(next, values), strict=True))  # holds nothing of it then

    def _dict(self, plan: Plan | None, columns: list[Cells]) -> dict[Any, Any]:
        """The results of a plan for one record."""
        if plan is None:
            return {}
        return {key: self._finish(field.single(columns)) for key, field in plan.fields.items()}

    def _keys(self, message: Any, misfit: Misfit) -> list[Any] | None:
        """The keys that a message has, where they help to understand a misfit."""
        if misfit.reason != "missing":
            return None
        return keys_of(message, sequence=len(self._plans) == 2, lists=misfit.list)
