"""tfwire bench: how fast tfwire and other installed packages read a file."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, printable, shorten, show_path
from tfwire.cli import _arguments

if TYPE_CHECKING:
    from tfwire import FileReport
    from tfwire.cli._speed import MeasuredReader, Subject


_MOST_SECONDS = 86_400
_MOST_FEATURES = 10_000  # that are parsed; a specification with 10,000 takes 50 MB


def add_bench(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire bench."""
    parser.add_argument("file", metavar="FILE", help="a TFRecord file")
    _arguments.add_compression(parser)
    parser.add_argument(
        "--seconds",
        type=duration,
        default=2.0,
        help="time for each reader (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON per reader")
    parser.epilog = (
        "The readers run one after the other, with the file in the page cache. tfwire and "
        "TensorFlow verify every checksum. Columns are parsed with the specification that tfwire "
        "infers from the first records. Exit status: 0, 1 when the file is damaged or cannot be "
        "read, 2 for wrong usage."
    )
    parser.set_defaults(run=_run)


def duration(text: str) -> float:
    """The type of arguments that are times in seconds."""
    value = float(text)
    if not 0 < value < _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be within (0, {_MOST_SECONDS}), found {text}")
    return value


def _run(options: argparse.Namespace) -> int:
    """Measures every reader, and prints each result at once."""
    if options.file == "-":
        return _arguments.refuse(options, "stdin cannot be measured: it is read once only")
    from tfwire import verify_file
    from tfwire.cli._speed import PARSE, READERS, Subject

    report = verify_file(options.file, compression_type=_arguments.chosen_compression(options))
    if not report.intact:
        _arguments.complain(
            options, report.hint or f"{options.file}: is damaged: see tfwire verify"
        )
        return 1
    if not report.num_records:
        _arguments.complain(options, f"{options.file}: holds no records")
        return 1
    file = Subject(options.file, report.compression, _schema(options.file, report))
    if not options.json:
        _print_head(report)
    best: dict[str, float] = {}  # records per second of tfwire, by operation
    for reader in READERS:
        if report.compression in reader.compressions and (file.schema or reader.operation != PARSE):
            _report(options, reader, _measured(reader, file, options.seconds), report, best)
    if file.schema is None and not options.json:
        print(
            "Nothing to parse: the records are not Examples that one specification of "
            f"1 to {_MOST_FEATURES:,} features describes."
        )
    return 0


def _schema(path: str, report: FileReport) -> Any:
    """The specification of a file's Examples, or None."""
    import warnings

    from tfwire import ParseError, TfwireWarning, infer_schema

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # features of several kinds
            schema = infer_schema(path, compression_type=report.compression)
    except (ParseError, TfwireWarning):
        return None
    count = len(schema) + len(schema.sequence_features)
    return schema if 0 < count <= _MOST_FEATURES else None


def _measured(reader: MeasuredReader, file: Subject, seconds: float) -> float | str:
    """Records per second, or why they could not be measured."""
    if not reader.installed:
        return f"{reader.package} is not installed"
    try:
        next(reader.read(file))  # imports, and the page cache
        return _rate(reader, file, seconds)
    except Exception as error:  # of any kind, from other packages
        return f"{type(error).__name__}: {printable(shorten(str(error)))}"


def _rate(reader: MeasuredReader, file: Subject, seconds: float) -> float:
    count, begin = 0, time.perf_counter()
    while True:
        for records in reader.read(file):
            count += records
            if (passed := time.perf_counter() - begin) >= seconds:
                return count / passed


# ---- Output -----------------------------------------------------------------------------------


def _print_head(report: FileReport) -> None:
    from tfwire.checksum import crc32c_kernel

    size = plural(_size(report), "byte")
    compression = _arguments.show_compression(report.compression)
    print(f"{show_path(report.path)}: {plural(report.num_records, 'record')} of {size} in all")
    print(f"compression {compression}, CRC-32C by {crc32c_kernel()}\n")
    print(f"{'':24}{'':22}{'records/s':>14}{'MB/s':>9}  tfwire is")


def _size(report: FileReport) -> int:
    """The size of the uncompressed file in bytes."""
    return report.payload_bytes + 16 * report.num_records


def _report(
    options: argparse.Namespace,
    reader: MeasuredReader,
    rate: float | str,
    report: FileReport,
    best: dict[str, float],
) -> None:
    row: dict[str, Any] = {"operation": reader.operation, "reader": reader.name}
    if isinstance(rate, str):
        row["problem"] = rate
        line = f"  {rate}"
    else:
        if reader.name == "tfwire":
            best[reader.operation] = rate
        ours = best.get(reader.operation, 0.0)
        mean = _size(report) / report.num_records
        facts = {"records_per_second": rate, "bytes_per_second": rate * mean, "ratio": ours / rate}
        row.update(facts)
        ratio = "" if reader.name == "tfwire" else f"{ours / rate:8.1f}x as fast"
        line = f"{rate:>14,.0f}{rate * mean / 1e6:>9,.0f}{ratio}"
    if options.json:
        _arguments.print_json(row)
    else:
        print(f"{reader.operation:24}{reader.name:22}{line}", flush=True)
