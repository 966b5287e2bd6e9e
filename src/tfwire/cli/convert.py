"""tfwire convert: files of one format from files of another."""

from __future__ import annotations

import argparse
import codecs
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from tfwire._interface.messages import plural, shorten, show_path
from tfwire.cli import _arguments
from tfwire.cli._arguments import UsageError

if TYPE_CHECKING:
    from tfwire.cli._conversion import Conversion

_SHOWN_LINES = 20  # of what was lost


class FileFormat(NamedTuple):
    """A file format.

    Attributes:
        suffixes: Of file names, without the dot.
        compressions: That it can be written with; the first unless another is asked for.
        is_table: pyarrow reads and writes it.
    """

    suffixes: tuple[str, ...]
    compressions: tuple[str, ...]
    is_table: bool = False


_PLAIN_OR_GZIP = ("none", "gzip")
FORMATS = {
    "tfrecord": FileFormat(
        ("tfrecord", "tfrecords", "tfrec", "tfr", "record"), ("none", "gzip", "zlib")
    ),
    "parquet": FileFormat(("parquet", "pq"), ("snappy", "none", "gzip", "zstd", "lz4"), True),
    "arrow": FileFormat(("arrow", "feather", "ipc"), ("none", "zstd", "lz4"), True),
    "jsonl": FileFormat(("jsonl", "ndjson"), _PLAIN_OR_GZIP),
    "csv": FileFormat(("csv", "tsv"), _PLAIN_OR_GZIP),
    "tar": FileFormat(("tar",), _PLAIN_OR_GZIP),
}


def format_of(path: str) -> str | None:
    """The format that a file's name says: train.tfrecord, train.tfrecord-00000-of-00010,
    train.csv.gz; None if it says none."""
    from tfwire._interface.new_files import split_name

    _, dot, suffix = split_name(path)[0].rpartition(".")
    for format_name, known in FORMATS.items():
        if suffix in known.suffixes and dot:
            return format_name
    return None


def delimiter(text: str) -> str:
    """The type of an argument that is a delimiter."""
    found = {"tab": "\t", "\\t": "\t"}.get(text.lower(), text)
    if len(found) != 1 or found == '"' or not (found.isprintable() or found == "\t"):
        raise argparse.ArgumentTypeError(
            f"must be a character or the word tab, found {shorten(repr(text))}"
        )
    return found


def encoding(text: str) -> str:
    """The type of an argument that is an encoding of text."""
    try:
        "a".encode(text)
    except (LookupError, ValueError):
        raise argparse.ArgumentTypeError(
            f"must be an encoding that Python knows, found {shorten(repr(text))}"
        ) from None
    return "utf-8-sig" if codecs.lookup(text).name == "utf-8" else text


# ---- The command line ---------------------------------------------------------------------------

_CONVERT_EPILOG = (
    "Formats are found by the names of files: .tfrecord, .parquet, .arrow (.feather, .ipc), .jsonl "
    "(.ndjson), .csv, .tar; Parquet and Arrow need pyarrow. The input is read twice: first to find "
    "its columns. The report says what the output does not hold, or holds in another form. No file "
    "appears before all are complete. Exit status: 0, 1 when the input is at fault, 2 for wrong "
    "usage."
)


def add_convert(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire convert."""
    parser.add_argument("files", nargs="+", metavar="IN", help="a file; all of one format")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="the new file, or files, like 'train-{shard:05d}-of-{shards:05d}.parquet'",
    )
    for flag, name, what in (("--from", "source", "input"), ("--to", "target", "output")):
        parser.add_argument(
            flag,
            dest=name,
            choices=list(FORMATS),
            type=str.lower,
            metavar="FORMAT",
            help=f"format of the {what}: {', '.join(FORMATS)}",
        )
    _add_columns(parser)
    _add_csv(parser)
    _arguments.add_shared(parser, "--compression", "--force", "--json")
    parser.add_argument(
        "--on-corrupt",
        choices=["raise", "skip", "tail", "stop"],
        default="raise",
        help="damage in TFRecord files: raise an error (default), skip damaged records, or read up "
        "to a damaged end (tail) or to any damage (stop)",
    )
    parser.add_argument(
        "--limit", type=_arguments.count, metavar="N", help="convert the first N rows of all"
    )
    _add_output(parser)
    parser.epilog = _CONVERT_EPILOG
    parser.set_defaults(run=_convert)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    """What the columns are."""
    parser.add_argument(
        "--schema",
        metavar="FILE",
        help="a schema.pbtxt or features.json that says which columns there are, and of which kind "
        "(default: those that are found); of Parquet and Arrow files, how lists in lists are "
        "written",
    )
    parser.add_argument(
        "--base64",
        action="append",
        default=[],
        metavar="NAME",
        help="decode the strings of this column of JSON lines or CSV; may be repeated",
    )
    parser.add_argument(
        "--binary",
        action="append",
        default=[],
        metavar="NAME",
        help="write the strings of this column to Parquet and Arrow files as bytes, also where all "
        "are UTF-8 and would be text; may be repeated",
    )
    parser.add_argument(
        "--examples",
        action="store_true",
        help="write JSON lines as tf.train.Example or SequenceExample in protobuf's JSON, in place "
        "of plain rows",
    )
    parser.add_argument(
        "--key", metavar="NAME", help="the column of the keys of samples in a tar file"
    )


def _add_csv(parser: argparse.ArgumentParser) -> None:
    """How CSV files are written. From CSV to CSV, all of it is of the input."""
    parser.add_argument(
        "--delimiter",
        type=delimiter,
        metavar="CHAR",
        help="between the cells of CSV: a character, or the word tab (default: a comma; a tab in "
        "files named .tsv)",
    )
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="the first line of CSV names the columns (default), or it is a row like others",
    )
    parser.add_argument(
        "--encoding",
        type=encoding,
        metavar="NAME",
        help="encoding of CSV that is read, like latin-1 or utf-16 (default: utf-8)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    """How the output is written."""
    every = dict.fromkeys(name for known in FORMATS.values() for name in known.compressions)
    _arguments.add_shared(
        parser,
        "--output-compression",
        choices=list(every),
        help="compression of the output (default: as its name says, .gz or, of TFRecord files, "
        ".zlib; else snappy for Parquet, none for others)",
    )
    group = parser.add_mutually_exclusive_group()
    _arguments.add_shared(group, "--shards", help="write N files in turn, a row each")
    _arguments.add_shared(
        group,
        "--shard-size",
        help="fill files of about this size, before compression, in turn, like 150MB or 1GiB",
    )


def _convert(options: argparse.Namespace) -> int:
    """Checks the command line, converts and reports."""
    _check(options)
    if options.source == "tfrecord" and _arguments.half_published(options, options.files):
        return 1
    from tfwire import TfwireWarning, read_schema
    from tfwire.cli._conversion import Conversion

    schema = None if options.schema is None else read_schema(options.schema)
    conversion = Conversion(options, options.source, options.target, schema)
    with warnings.catch_warnings():  # complain_of_damage says it
        warnings.simplefilter("ignore", TfwireWarning)
        conversion.run()
    _report(options, conversion)
    return int(conversion.damaged)


# ---- Checks, before a file is touched -----------------------------------------------------------


def _check(options: argparse.Namespace) -> None:
    """Sets the formats and the compression where they are not given.

    Raises:
        UsageError: Something is wrong with the command line.
        OSError: A file that is read, or the folder of the output, does not exist.
    """
    _check_formats(options)
    _check_options(options)
    for name in options.files:
        _check_input(name, options.source)
    read = [*options.files, *([] if options.schema is None else [options.schema])]
    _arguments.check_output(options.output, read, options.force, _arguments.num_shards(options))


def _check_formats(options: argparse.Namespace) -> None:
    known = ", ".join(FORMATS)
    if options.source is None:
        found = {name: format_of(name) for name in options.files}
        for name, format_name in found.items():
            if format_name is None:
                _check_input(name, "tfrecord")
                raise UsageError(f"{name}: unknown format: give --from with one of {known}")
        if len(set(found.values())) > 1:
            first, *others = found
            other = next(name for name in others if found[name] != found[first])
            both = f"{other} is {found[other]}, and {first} is {found[first]}"
            raise UsageError(f"{both}: convert one format")
        options.source = found[options.files[0]]
    if options.target is None:
        options.target = format_of(options.output)
        if options.target is None:
            raise UsageError(f"{options.output}: unknown format: give --to with one of {known}")
    for format_name in (options.source, options.target):
        if FORMATS[format_name].is_table:
            _check_pyarrow("Parquet" if format_name == "parquet" else "Arrow")


def _check_pyarrow(name: str) -> None:
    try:
        import_module("pyarrow")
    except ImportError:
        raise UsageError(f"{name} files need pyarrow; pip install 'tfwire[arrow]'") from None


def _check_options(options: argparse.Namespace) -> None:
    """Raises UsageError if an option does not go with the formats."""
    source, target = options.source, options.target
    compressions = FORMATS[target].compressions
    whole = () if FORMATS[target].is_table else compressions  # tables are compressed within
    _arguments.choose_compression(options, compressions[0], whole)
    records = source == "tfrecord" and (target == "tfrecord" or options.examples)
    wrong = {
        f"--output-compression {options.output_compression} is not for {target}, "
        f"which takes {', '.join(compressions)}": options.output_compression not in compressions,
        "--examples is for JSON lines as output": options.examples and target != "jsonl",
        "--base64 is for JSON lines and CSV as input": options.base64
        and source not in ("jsonl", "csv"),
        "--binary is for TFRecord files that become Parquet or Arrow files": options.binary
        and not (source == "tfrecord" and FORMATS[target].is_table),
        "--delimiter, --header and --no-header are for CSV files": "csv" not in (source, target)
        and (options.delimiter, options.header) != (None, None),
        "--encoding is for CSV as input": options.encoding is not None and source != "csv",
        "--key is for tar files": options.key is not None and "tar" not in (source, target),
        "--on-corrupt is for TFRecord files as input": options.on_corrupt != "raise"
        and source != "tfrecord",
        "--compression is for TFRecord files as input": options.compression != "auto"
        and source != "tfrecord",
        "--schema is not for Parquet and Arrow files as input, which have one, unless TFRecord "
        "files are written": options.schema is not None
        and FORMATS[source].is_table
        and target != "tfrecord",
        "--schema is not for records that are written as they are": options.schema is not None
        and records,
    }
    for text, is_wrong in wrong.items():
        if is_wrong:
            raise UsageError(text)


def _check_input(name: str, source: str) -> None:
    """Checks that a file can be read, twice."""
    from tfwire._interface.files import check_rereadable, is_url
    from tfwire._interface.new_files import split_name

    if source == "tfrecord" and is_url(name):
        return
    if name == "-":
        raise UsageError("- (standard input) cannot be read twice; give files")
    if FORMATS[source].compressions == _PLAIN_OR_GZIP and split_name(name)[1] == "ZLIB":
        raise ValueError(f"{name}: zlib is read of TFRecord files; compress {source} by gzip")
    check_rereadable(name)


# ---- The report ---------------------------------------------------------------------------------


def _report(options: argparse.Namespace, conversion: Conversion) -> None:
    lost = conversion.losses.all_lines()
    if options.json:
        facts: dict[str, Any] = {"rows": conversion.num_rows, "files": conversion.paths}
        _arguments.print_json({**facts, "lost": lost})
        return
    for path in conversion.paths:
        print(show_path(path))
    files = plural(len(conversion.paths), "file")
    print(f"{files}, {plural(conversion.num_rows, 'row')}")
    print("lost or changed:" if lost else "lost: nothing")
    for line in lost[:_SHOWN_LINES]:
        print(f"  {line}")
    _arguments.print_more(len(lost), _SHOWN_LINES, "line")
