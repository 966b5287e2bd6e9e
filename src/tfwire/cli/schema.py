"""tfwire schema: the specification that parses files, as code or as a schema file."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import TYPE_CHECKING

from tfwire._interface.messages import plural, show_path
from tfwire.cli import _arguments
from tfwire.cli._arguments import UsageError
from tfwire.cli._printing.record_text import printable_text

if TYPE_CHECKING:
    from tfwire import InferredSchema

_ENDINGS = {".py": "code", ".pbtxt": "pbtxt", ".json": "json"}


def add_schema(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire schema."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a TFRecord file, - for stdin; or one schema file: NAME.pbtxt or NAME.json",
    )
    _arguments.add_shared(parser, "--compression", "--force")
    number = parser.add_mutually_exclusive_group()
    number.add_argument(
        "-n",
        "--limit",
        "--records",
        dest="records",
        type=_arguments.positive,
        metavar="N",
        help="read N records, in equal parts of every file (default: all of files that are not "
        "long, else some)",
    )
    number.add_argument("--all", action="store_true", help="read all records")
    parser.add_argument(
        "--format",
        choices=_ENDINGS.values(),
        help="Python code (default), schema.pbtxt of TensorFlow Metadata, or features.json of TFDS",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="write a file; without --format, its name says which: .py, .pbtxt or .json",
    )
    parser.epilog = (
        "A feature that not all records have, or that has more or fewer values in some, is a "
        "VarLenFeature. Exit status: 0, 1 when the data is at fault, also when records disagree on "
        "the kind of a feature; 2 for wrong usage."
    )
    parser.set_defaults(run=_schema)


def _schema(options: argparse.Namespace) -> int:
    _arguments.check_stdin(options.files)
    known = [name for name in options.files if name.endswith((".pbtxt", ".json"))]
    if known and len(options.files) > 1:
        raise UsageError(f"{show_path(known[0])}: a schema file is read alone")
    if known and (options.all or options.records or options.compression != "auto"):
        raise UsageError("-n, --all and --compression are for TFRecord files")
    if options.force and options.output is None:
        raise UsageError("--force needs --output")
    if options.output is not None:
        ending = next((end for end in _ENDINGS if options.output.endswith(end)), None)
        if options.format is None and ending is None:
            raise UsageError("OUT must end in .py, .pbtxt or .json, or give --format")
        options.format = options.format or _ENDINGS[str(ending)]
        _arguments.check_output(options.output, options.files, options.force)
    if not known and _arguments.half_published(options, options.files):
        return 1
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        schema = _read(options, known)
        text = _as_text(schema, options.format or "code")
    for warning in found:
        _arguments.complain(options, warning.message)
    if schema.num_records:
        _say_what_was_read(options, schema.num_records, schema.complete)
    if options.output is None:
        sys.stdout.write(printable_text(text.splitlines()))
    else:
        from tfwire._interface.new_files import replace_file

        replace_file(options.output, [text.encode()])
    return int(bool(found))


def _read(options: argparse.Namespace, known: list[str]) -> InferredSchema:
    from tfwire import infer_schema, read_schema
    from tfwire._interface.partitions import infer_table

    if known:
        return read_schema(known[0])
    files = [_arguments.input_file(name) for name in options.files]
    if not (options.all or options.records):
        return infer_table(files, options.compression, "raise")
    number = None if options.all else options.records
    return infer_schema(files, number, compression_type=options.compression)


def _say_what_was_read(options: argparse.Namespace, count: int, complete: bool) -> None:
    """To the terminal: the output may be a file of code."""
    text = f"all {plural(count, 'record')} were read"
    if not complete:
        text = f"{plural(count, 'record')} were read; --all reads all, and finds what others have"
    print(text, file=sys.stderr)


def _as_text(schema: InferredSchema, format_name: str) -> str:
    from tfwire._parsing.schema_files import schema_as_text

    if format_name == "code":
        return f"import tfwire as tfw\n\n{schema!r}\n"
    return schema_as_text(schema, as_json=format_name == "json")
