"""The ways from one format to another, for tfwire convert.

Records go to TFRecord files as they are. Tables go between TFRecord, Parquet and Arrow files,
columns to columns. All else goes row by row. The input is read twice, except as records: first to
find the columns and what the output cannot hold of them, then to write.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from tfwire import (
    InferredSchema,
    ParseError,
    ShardedWriter,
    SkippedRegions,
    encode_example,
    read_records,
    string,
)
from tfwire._interface.contents import (
    BatchReader,
    Survey,
    schema_from_survey,
    span_table,
)
from tfwire._interface.files import make_options
from tfwire._interface.messages import show_path
from tfwire._interface.new_files import FileSet
from tfwire.arrow import open_reader
from tfwire.cli import _arguments, _csv, _rows, _sequences, _tables, _webdataset
from tfwire.cli._row_survey import (
    ARROW_FORMATS,
    Losses,
    RowColumn,
    RowPlace,
    RowSurvey,
    columns_of_schema,
    typed_row,
)
from tfwire.cli._rows import MAX_ROWS, Encoder, NumberedRow, OpenedFile, Row, TextWriter, pieces
from tfwire.cli._sequences import SequenceRow
from tfwire.cli._streams import Progress

_BUDGET = 16 << 20  # bytes of a batch
_WINDOW = 64  # records whose sizes are added
_MAX_RECORD_SIZE = 2**30
PlacedRow = tuple[RowPlace, Row, Mapping[str, str] | None]


class Conversion:
    """A conversion of files.

    Args:
        options: Of the command.
        source, target: The formats.
        schema: Of --schema; None: the columns are those that are found.

    Attributes:
        losses: What the output does not hold.
        damaged: Records were left out.
        paths: The new files, once it is done.
        num_rows: Rows in them.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        source: str,
        target: str,
        schema: InferredSchema | None,
    ) -> None:
        self._options, self._source, self._target = options, source, target
        self._schema = schema
        self._csv = _csv.CsvForm.of(options)
        self._complained = False
        self._path = ""  # of the table that is read
        self._largest_window = 1
        self.losses = Losses()
        self.damaged = False
        self.paths: list[str] = []
        self.num_rows = 0
        self._total = sum(map(_arguments.file_size, options.files))
        self._progress = Progress(self._total)

    def run(self) -> None:
        """Converts the files.

        Raises:
            OSError, ValueError, Error: The input is at fault, or a file cannot be written. No new
                file is there.
        """
        tabular = ("tfrecord", *ARROW_FORMATS)
        if self._source == "tfrecord" and (self._target == "tfrecord" or self._options.examples):
            self._convert_records()
        elif self._source in tabular and self._target in tabular:
            self._convert_tables()
        else:
            self._convert_rows()
        self._progress.clear()

    # ---- Records ------------------------------------------------------------------------------

    def _convert_records(self) -> None:
        """Writes records as they are, or as JSON."""
        self._begin_pass()
        records = (record for _, _, record in self._records())
        if self._target == "tfrecord":
            with self._sharded_writer() as writer:
                writer.write_many(records)
            self._note_files(writer.paths or [], writer.num_records)
        else:
            self._write_text(map(_sequences.record_line, records), Encoder(_sequences.record_line))

    def _records(self) -> Iterator[tuple[str, int, bytes]]:
        """Path, number and bytes of the records, in all at most --limit. Damage is reported when it
        is met first."""
        left = self._options.limit
        for name in self._options.files:
            if left == 0:
                return
            done = 0
            reader = read_records(
                name,
                self._options.compression,
                on_corrupt=self._options.on_corrupt,
                max_record_size=_MAX_RECORD_SIZE,
            )
            with reader:
                for number, record in enumerate(islice(reader, left)):
                    yield name, number, record
                    done += len(record) + 16
                    left = None if left is None else left - 1
                    self._report(name, done)
                self._complain_of_damage(name, reader.skipped)
        self._complained = True

    def _complain_of_damage(self, name: str, regions: SkippedRegions) -> None:
        self.damaged |= bool(regions)
        if not self._complained:
            self._progress.clear()
            self.losses.add_damage(name, regions)
            _arguments.complain_of_damage(self._options, name, regions, None)

    def _begin_pass(self) -> None:
        self._progress = Progress(self._total)

    def _report(self, name: str, done: int) -> None:
        size = _arguments.file_size(name)
        self._progress.update(name, min(done, size) if size else done)

    # ---- Tables -------------------------------------------------------------------------------

    def _convert_tables(self) -> None:
        if self._source == "tfrecord":
            schema, batches = self._read_examples()
        else:
            schema, batches = self._read_tables()
        batches = self._limited(batches)
        if self._target == "tfrecord":
            with self._sharded_writer() as writer:
                for batch in batches:
                    with _tables.column_errors(self._path):
                        writer.write_columns(batch, features=self._schema)
            self._note_files(writer.paths or [], writer.num_records)
            return
        with self._table_files(schema) as files:
            for batch in batches:
                files.write(batch, _tables.sizes_of_rows(batch))
        self._note_files(files.paths, files.num_rows)

    def _read_examples(self) -> tuple[Any, Iterator[Any]]:
        """The schema and record batches of TFRecord files."""
        survey = self._survey_records()
        found = survey.features()
        self.losses.num_kindless = sum(seen.kindless for seen in found.values())
        features: Any = self._schema
        if features is None:
            several = any(len(seen.kinds) > 1 for seen in found.values())
            if several and not survey.features(lists=True):
                self._refuse_kinds()
            features = _table_features(survey)
        if not features and not getattr(features, "sequence_features", None):
            self.losses.add_empty(survey.num_records)
        elif self._schema is not None:
            self.losses.add_left_out(found, features)
        self.losses.add_names(features)
        _tables.check_names(self._options.files, features)
        reader = open_reader(
            self._options.files,
            features,
            batch_size=max(1, min(MAX_ROWS, _WINDOW * _BUDGET // self._largest_window)),
            compression_type=self._options.compression,
            on_corrupt=self._options.on_corrupt,
            binary_as=self._binary_as(features, survey),
        )
        return _tables.schema_of(reader), self._read_batches(reader, survey.num_records)

    def _binary_as(self, features: Any, survey: Survey) -> Any:
        """The types of strings: of the columns of --schema, too, by all records."""
        found: dict[str, str] = {}
        if self._schema is not None:
            seen = survey.features() | survey.features(lists=True)
            for name, feature in [*features.items(), *features.sequence_features.items()]:
                if feature.dtype == string and name in seen and seen[name].text:
                    found[name] = "large_string"
        return found | dict.fromkeys(self._options.binary, "large_binary")

    def _read_batches(self, reader: Any, num_rows: int) -> Iterator[Any]:
        self._begin_pass()
        done = 0
        for batch in reader:
            yield _tables.record_batch(batch)
            done += batch.num_rows
            self._progress.update("", self._total * min(done, num_rows) // max(1, num_rows))

    def _survey_records(self) -> Survey:
        """What is in TFRecord files."""
        survey, left = Survey(), self._options.limit
        self._begin_pass()
        options = make_options(
            self._options.compression,
            on_corrupt=self._options.on_corrupt,
            max_record_size=_MAX_RECORD_SIZE,
        )
        for name in self._options.files:
            with BatchReader([name], options) as reader:
                while left != 0 and (batch := reader.next(left or 0)) is not None:
                    survey.add(batch, reader.path)
                    self._note_sizes(span_table(batch)[:, 1])
                    left = None if left is None else left - batch.count
                    self._report(name, reader.position.offset)
                self._complain_of_damage(name, reader.skipped)
        self._complained = True
        return survey

    def _refuse_kinds(self) -> None:
        """Raises ValueError: columns are of several kinds. It names the first row of each."""
        rows = RowSurvey(one_kind=True)
        for place, row, kinds in self._rows_of_records():
            rows.add(place, row, kinds)
        rows.found_columns(keep_order=False)

    def _note_sizes(self, sizes: Any) -> None:
        """Notes the sizes of records that follow each other."""
        windows = np.add.reduceat(sizes, range(0, len(sizes), _WINDOW))
        self._largest_window = max(self._largest_window, int(windows.max()))

    def _read_tables(self) -> tuple[Any, Iterator[Any]]:
        """The schema and record batches of Parquet or Arrow files."""
        paths = self._options.files
        schemas = [_tables.arrow_schema(path, self._source) for path in paths]
        for path, schema in zip(paths, schemas, strict=True):
            if not schema.equals(schemas[0]):
                raise ValueError(
                    f"{show_path(path)}: its columns are not those of {show_path(paths[0])}"
                )
        if self._target == "tfrecord":
            self.losses.lines += _tables.lost_types(paths[0], schemas[0], self._schema)
        return schemas[0], self._table_batches()

    def _table_batches(self) -> Iterator[Any]:
        self._begin_pass()
        for path in self._options.files:
            total, size = _tables.num_rows(path, self._source), _arguments.file_size(path)
            for batch, done in _tables.table_batches(path, self._source, _BUDGET):
                self._path = path
                yield batch
                self._report(path, size * done // max(1, total or 0) if total else 0)

    def _limited(self, batches: Iterable[Any]) -> Iterator[Any]:
        """At most --limit rows of record batches."""
        left = self._options.limit
        for batch in batches:
            if left is not None:
                batch = _tables.select_rows(batch, slice(0, left))
                left -= batch.num_rows
            yield batch
            if left == 0:
                return

    # ---- Rows ---------------------------------------------------------------------------------

    def _convert_rows(self) -> None:
        if self._source in ARROW_FORMATS:
            for path in self._options.files:
                schema = _tables.arrow_schema(path, self._source)
                self.losses.lines += _tables.lost_in_rows(path, schema)
        one_kind = self._source in ("tfrecord", *ARROW_FORMATS)
        survey, of_steps = RowSurvey(one_kind, self._source == "csv"), RowSurvey(one_kind)
        self._begin_pass()
        for place, row, kinds in self._rows():
            survey.add(place, row, kinds)
            if isinstance(row, SequenceRow):
                _sequences.check_target(self._target, place)
                _sequences.add_steps(of_steps, place, row)
        columns = self._columns(survey, self._schema)
        steps = self._columns(of_steps, getattr(self._schema, "sequence_features", None))
        with_key = self._source == "tar" and self._options.key is None
        self.losses.add_rows(survey, columns, self._target, self._options.examples)
        self.losses.add_rows(of_steps, steps, self._target, self._options.examples)
        if with_key and survey.num_rows:
            self.losses.lines.append("the keys of the samples; --key NAME makes them a column")
        if self._source == "csv" and self._csv.header:
            self.losses.lines += _csv.doubts_of_names(survey.columns)
        elif self._target == "csv" and not self._csv.header:
            self.losses.lines.append("the names of columns, as there is no header")
        self._begin_pass()
        rows = _typed(self._rows(), columns, steps)
        self._write_rows(rows, columns, steps if of_steps.columns else None)

    def _columns(self, survey: RowSurvey, schema: Any) -> list[RowColumn]:
        if self._schema is None:
            return survey.found_columns(keep_order=self._source != "tfrecord")
        columns = columns_of_schema(schema)
        self.losses.add_left_out(survey.columns, {column.name for column in columns})
        seen, json_lists = survey.columns, self._source == "csv"
        return [
            column._replace(
                text=column.name not in seen or seen[column.name].text, json_lists=json_lists
            )
            for column in columns
        ]

    def _rows(self) -> Iterator[PlacedRow]:
        """The rows with their places, and the kinds of their values if they are known."""
        if self._source == "tfrecord":
            yield from self._rows_of_records()
            return
        left = self._options.limit
        for path in self._options.files:
            for place, row, kinds in islice(self._rows_of_file(path), left):
                try:
                    _sequences.decode_all_base64(row, self._options.base64)
                except ValueError as error:
                    raise ValueError(f"{place}: {error}") from None
                yield place, row, kinds
                left = None if left is None else left - 1

    def _rows_of_records(self) -> Iterator[PlacedRow]:
        self.losses.num_kindless = 0
        for path, number, record in self._records():
            try:
                row, kinds, kindless = _sequences.record_row(record)
            except ValueError as error:
                raise _not_an_example(path, number, error) from None
            self.losses.num_kindless += kindless
            yield RowPlace(path, number, "record"), row, kinds

    def _rows_of_file(self, path: str) -> Iterator[PlacedRow]:
        if self._source in ARROW_FORMATS:
            of_records = _tables.is_of_records(_tables.arrow_schema(path, self._source))
            batches = _tables.table_batches(path, self._source, _BUDGET // 8)
            found = (_sequences.rows_of_batch(path, batch, of_records) for batch, _ in batches)
            for number, (row, kinds) in enumerate(chain.from_iterable(found)):
                yield RowPlace(path, number, "row"), row, kinds
            return
        unit = "row" if self._source == "tar" else "line"
        with _rows.opened(path) as source:
            for number, row, kinds in self._rows_of_text(source, path):
                yield RowPlace(path, number, unit), row, kinds
                self._progress.update(path, source.position())

    def _rows_of_text(self, source: OpenedFile, path: str) -> Iterator[NumberedRow]:
        if self._source == "tar":
            samples = _webdataset.sample_rows(source, self._options.key)
            return ((number, *found) for number, found in enumerate(samples))
        if self._source == "csv":
            return _csv.csv_rows(source, path, self._csv)
        return _rows.json_rows(source, _sequences.json_sequence)

    def _write_rows(
        self, rows: Iterator[Row], columns: list[RowColumn], steps: list[RowColumn] | None
    ) -> None:
        """Writes typed rows; those of SequenceExamples have columns of steps, too."""
        if self._target == "tfrecord" and steps is not None:
            with self._sharded_writer() as writer:
                for piece in pieces(rows, _BUDGET // 2):
                    table, features = _sequences.columns_of_rows(piece, columns, steps)
                    if table:
                        writer.write_columns(table, features=features)
                    else:  # of columns that the schema leaves out
                        writer.write_many([encode_example({})] * len(piece))
            self._note_files(writer.paths or [], writer.num_records)
        elif self._target == "tfrecord":
            kinds = _rows.kinds_of(columns)
            with self._sharded_writer() as writer, np.errstate(over="ignore"):
                writer.write_many(encode_example(_rows.features_of_row(row, kinds)) for row in rows)
            self._note_files(writer.paths or [], writer.num_records)
        elif self._target in ARROW_FORMATS:
            with self._table_files(_tables.schema_of_columns(columns)) as files:
                for piece in pieces(rows, _BUDGET // 2):
                    with _tables.arrow_errors("a column cannot be written"):
                        batch = _tables.table_of_rows(piece, columns)
                    files.write(batch, _tables.sizes_of_rows(batch))
            self._note_files(files.paths, files.num_rows)
        else:
            encoder = self._encoder(columns)
            if steps is not None:
                encoder = _sequences.encoder(encoder, columns, steps, self._options.examples)
            self._write_text(map(encoder.encode, rows), encoder)

    def _encoder(self, columns: list[RowColumn]) -> Encoder:
        if self._target == "csv":
            form = _csv.CsvForm() if self._source == "csv" else self._csv
            return _csv.csv_encoder(columns, self._options.output, form)
        if self._target == "tar":
            return _webdataset.sample_encoder(columns, self._options.key)
        return (_rows.example_encoder if self._options.examples else _rows.json_encoder)(columns)

    # ---- New files ----------------------------------------------------------------------------

    def _sharded_writer(self) -> ShardedWriter:
        return ShardedWriter(
            self._options.output,
            shard_size=self._options.shard_size,
            num_shards=_arguments.num_shards(self._options),
            options=_arguments.OUTPUT_COMPRESSIONS[self._options.output_compression],
        )

    def _file_set(self, open_writer: Callable[[Any], Any], select: Callable[..., Any]) -> FileSet:
        size = self._options.shard_size
        return FileSet(
            self._options.output, _arguments.num_shards(self._options), size, open_writer, select
        )

    def _table_files(self, schema: Any) -> FileSet:
        def open_writer(file: Any) -> Any:
            compression = self._options.output_compression
            return _tables.open_table_writer(file, self._target, compression, schema)

        return self._file_set(open_writer, _tables.select_rows)

    def _write_text(self, lines: Iterator[bytes], encoder: Encoder) -> None:
        """Writes rows that are encoded."""

        def open_writer(file: Any) -> Any:
            compressed = self._options.output_compression == "gzip"
            return TextWriter(file, compressed, encoder)

        with self._file_set(open_writer, lambda items, chosen: items[chosen]) as files:
            for piece in pieces(lines, _BUDGET // 2):
                files.write(piece, [len(line) for line in piece])
        self._note_files(files.paths, files.num_rows)

    def _note_files(self, paths: list[str], num_rows: int) -> None:
        self.paths, self.num_rows = paths, num_rows


def _not_an_example(path: str, number: int, error: Exception) -> ValueError:
    what = " is not an Example" if isinstance(error, ParseError) else ""
    reason = str(error).removeprefix("the message is not an Example: ")
    return ValueError(f"{show_path(path)}: record {number}{what}: {reason}")


def _table_features(survey: Survey) -> InferredSchema:
    """The specification of columns: of all features but those without a kind."""
    schema = schema_from_survey(survey)
    for name, seen in survey.features().items():
        if not seen.kinds:
            del schema[name]
    return schema


def _typed(
    rows: Iterable[PlacedRow], columns: Sequence[RowColumn], steps: Sequence[RowColumn]
) -> Iterator[Row]:
    """Rows with the values of their columns in the columns' kinds and order."""
    for place, row, _ in rows:
        try:
            typed = typed_row(row, columns)
            yield _sequences.typed(row, typed, steps) if isinstance(row, SequenceRow) else typed
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None
