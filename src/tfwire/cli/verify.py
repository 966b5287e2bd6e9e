"""tfwire verify checks every record; tfwire repair keeps those that verify, in a new file."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, printable, show_path
from tfwire.cli import _arguments, diff
from tfwire.cli._streams import Progress, colored

if TYPE_CHECKING:
    from tfwire import FileReport, FlippedBit, Receipt, RepairReport
    from tfwire._interface.damage import LostRecords
    from tfwire.typing import ParallelMap

_GAPS_IN_WORDS = 20


def add_verify(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire verify."""
    _arguments.add_shared(parser, "files", "--compression", "--json", "--jobs")
    parser.add_argument(
        "--crc32c",
        action="store_true",
        help="print the CRC-32C of the whole file in base64, as object stores show it",
    )
    parser.add_argument(
        "--receipt",
        action="store_true",
        help="print a fingerprint of the records of each file and of all files, which does not "
        "depend on the order of records",
    )
    parser.add_argument(
        "--same-as",
        nargs="+",
        default=[],
        metavar="FILE",
        help="compare with these files: do they hold the same records, in any order and however "
        "spread over files?",
    )
    parser.epilog = (
        "Exit status: 0 when every byte of every file belongs to a record that verifies (and the "
        "records are the same), 1 when not, when a file cannot be read or belongs to a set of "
        "shards that is half published, 2 for wrong usage."
    )
    parser.set_defaults(run=_run, in_turn=True)


def _run(options: argparse.Namespace) -> int:
    """Verifies files in parallel, and reports them in the order of the command line."""
    names = options.files + options.same_as
    _arguments.check_stdin(names)
    options.receipt = options.receipt or bool(options.same_as)
    progress = Progress(sum(map(_arguments.file_size, names)))
    reports: list[FileReport] = []
    others: list[FileReport] = []  # of --same-as
    failed = 0
    mixed = _arguments.half_published(options, names)
    for number, (name, found) in enumerate(_verified(names, options, progress)):
        progress.clear()
        if isinstance(found, Exception):
            failed += 1
            _report_failure(name, found, options)
        else:
            (reports if number < len(options.files) else others).append(found)
            _report(found, options)
    if len(names) > 1 and not options.same_as and not options.json:
        _report_sum(reports, failed)
    same = not options.same_as or (not failed and _report_comparison(reports, others, options))
    intact = all(report.intact for report in reports + others)
    return int(failed > 0 or mixed or not same or not intact)


def _verified(
    names: Sequence[str], options: argparse.Namespace, progress: Progress
) -> Iterator[tuple[str, FileReport | Exception]]:
    """Every name, and the report of its file or why there is none."""

    from tfwire._interface.damage import verify_inputs

    def verify(some: Sequence[str]) -> ParallelMap[Any, FileReport]:
        return verify_inputs(
            list(map(_arguments.input_file, some)),
            options.compression,
            options.crc32c,
            options.receipt,
            lambda file, done: progress.update(file if isinstance(file, str) else "-", done),
            _arguments.num_jobs(options),
        )

    return zip(names, _arguments.each_result(verify, names), strict=True)


# ---- Output -----------------------------------------------------------------------------------


def _report_failure(name: str, error: Exception, options: argparse.Namespace) -> None:
    if options.json:
        _arguments.print_json(
            {"path": name, "error": getattr(error, "strerror", None) or str(error)}
        )
    else:
        _arguments.complain(options, _arguments.error_line(error, name))


def _report(report: FileReport, options: argparse.Namespace) -> None:
    if options.json:
        _arguments.print_json(_as_json(report, options))
        return
    facts = [
        colored("intact", "green", sys.stdout)
        if report.intact
        else colored("DAMAGED", "red", sys.stdout),
        plural(report.num_records, "record"),
        plural(report.payload_bytes, "payload byte"),
    ]
    if report.compression:
        facts.append(_arguments.show_compression(report.compression))
    if options.crc32c:
        facts.append(f"crc32c {_crc_text(report) or 'unknown'}")
    if report.receipt is not None:
        facts.append(f"receipt {report.receipt.hash:016x}")
    print(f"{show_path(report.path)}: {', '.join(facts)}")
    lost = find_lost(report, report.path)
    print_lost(report, lost)
    print_remedy(report, lost)
    if (count := _records_in_index(report)) is not None:
        known = f"its index is that of a file of {plural(count, 'record')}"
        print(f"  {known}: some are missing, or it was written anew")


# ---- Damage in words ----------------------------------------------------------------------------


def find_lost(report: FileReport | RepairReport, name: str) -> list[LostRecords]:
    """What a file has lost, by its name on the command line."""
    from tfwire._interface.damage import lost_records

    on_disk = report.skipped and os.path.isfile(name)
    return lost_records(report, name if on_disk else None) if report.num_records else []


def _records_in_index(report: FileReport) -> int | None:
    """How many records its index counts, of a file without damage that is not as long as then."""
    from tfwire._interface.damage import records_in_index

    if report.skipped or not os.path.isfile(report.path):
        return None
    return records_in_index(report.path, os.path.getsize(report.path))


def print_lost(
    report: FileReport | RepairReport,
    lost: list[LostRecords],
    indent: str = "  ",
    most: int | None = None,
) -> None:
    """Prints what was left out of a file: how many records, in words, and each region.

    Args:
        report: Of the file.
        lost: What it has lost.
        indent: Of the lines.
        most: Of so many regions at most.
    """
    from tfwire._interface.damage import total_lost

    for gap in lost[:_GAPS_IN_WORDS]:
        print(f"{indent}{gap}")
    if len(lost) > 1:
        print(f"{indent}in all {total_lost(report, lost)}, in {plural(len(lost), 'place')}")
    listed = report.skipped[:most]
    for region in listed:
        print(f"{indent}{_arguments.describe_region(region, report.compression)}")
    if report.skipped.num_regions > len(listed):
        count = plural(report.skipped.num_regions, "region")
        more = "" if most is None else "; tfwire verify lists more"
        print(f"{indent}of {count} only {len(listed):,} are listed{more}")


def print_remedy(report: FileReport, lost: list[LostRecords], indent: str = "  ") -> None:
    """Prints what a file looks like, or the command that repairs it."""
    if report.hint is not None:
        print(f"{indent}{_arguments.as_flags(printable(report.hint))}")
    elif (command := repair_command(report, lost)) is not None:
        print(f"{indent}next: {command}")


def lost_json(
    report: FileReport | RepairReport, lost: list[LostRecords], most: int | None = None
) -> dict[str, Any]:
    """How many records a file has lost, and where, as fields of JSON."""
    from tfwire._interface.damage import total_lost

    count, certainty = total_lost(report, lost)
    gaps = [gap.to_dict() for gap in lost[:most]]
    return {"lost_records": count, "lost_certainty": certainty, "gaps": gaps}


def repair_command(report: FileReport, lost: list[LostRecords]) -> str | None:
    """The command that repairs a file; None: nothing would be left, or it cannot be read again."""
    from tfwire._interface.files import is_url

    path = report.path
    if not lost or not (is_url(path) or os.path.isfile(path)):
        return None
    folder, name = ("", path.rsplit("/", 1)[-1]) if is_url(path) else os.path.split(path)
    path = f"./{path}" if path.startswith("-") else path
    words = ["tfwire", "repair", *(["--correct"] if may_be_corrected(report, lost) else [])]
    return show_command([*words, path, os.path.join(folder, f"repaired-{name}")])


def may_be_corrected(report: FileReport | RepairReport, lost: list[LostRecords]) -> bool:
    """Whether single bits may have been flipped: of a record that is there, as a whole."""
    return not report.compression and any(gap.is_whole for gap in lost)


def show_command(words: Sequence[str]) -> str:
    """A command to be typed. What cannot be printed is written as bash and zsh read it."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if printable(word) == word:
        return shlex.quote(word)
    contents = os.fsencode(word)
    shown = (chr(c) if 32 <= c < 127 and c not in b"\\'" else f"\\{c:03o}" for c in contents)
    return f"$'{''.join(shown)}'"


# ---- JSON, and all files ------------------------------------------------------------------------


def _as_json(report: FileReport, options: argparse.Namespace) -> dict[str, Any]:
    fields = {**_arguments.report_json(report), **lost_json(report, find_lost(report, report.path))}
    if options.crc32c:
        fields["crc32c"] = _crc_text(report)
    if report.receipt is not None:
        fields["receipt"] = report.receipt.to_dict()
    if (count := _records_in_index(report)) is not None:
        fields["index_records"] = count
    return fields


def _crc_text(report: FileReport) -> str | None:
    from tfwire.checksum import base64_crc32c

    return None if report.file_crc32c is None else base64_crc32c(report.file_crc32c)


def _total_receipt(reports: list[FileReport]) -> Receipt:
    """The receipt of the records of several files."""
    from tfwire import Receipt

    receipts = (report.receipt for report in reports if report.receipt is not None)
    return sum(receipts, Receipt())


def _report_sum(reports: list[FileReport], failed: int) -> None:
    damaged = sum(not report.intact for report in reports)
    records = sum(report.num_records for report in reports)
    line = f"{len(reports) + failed:,} files, {plural(records, 'record')}: "
    line += f"{len(reports) - damaged:,} intact, {damaged:,} damaged"
    line += f", {failed:,} not readable" if failed else ""
    if reports and reports[0].receipt is not None:
        line += f", receipt {_total_receipt(reports).hash:016x}"
    print(line)


def _report_comparison(
    reports: list[FileReport], others: list[FileReport], options: argparse.Namespace
) -> bool:
    """Reports whether two sets of files hold the same records, and how many differ."""
    receipts = _total_receipt(reports), _total_receipt(others)
    same = receipts[0] == receipts[1]
    found: dict[str, Any] = {"same_records": same}
    words = f"the same records: {receipts[0]}"
    if not same:
        words = f"NOT the same records: {receipts[0]} and {receipts[1]}"
    if not same and "-" not in options.files + options.same_as:
        comparison = diff.compare_names(options.files, options.same_as, options)
        sums = diff.summary(comparison)
        found |= {kind: sums[kind] for kind in ("changed", "missing", "added")}
        words = f"NOT the same records: {diff.verdict(comparison, any_order=True)}"
    if options.json:
        _arguments.print_json({**found, "receipts": [each.to_dict() for each in receipts]})
    else:
        print(words)
    if not same and not options.json and len(options.files) == len(options.same_as) == 1:
        words = show_command(["tfwire", "diff", *options.files, *options.same_as])
        print(f"next: {words}")
    return same


# ---- tfwire repair -----------------------------------------------------------------------------


def add_repair(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire repair."""
    parser.add_argument("input", metavar="IN", help="the damaged file, - for stdin; only read")
    parser.add_argument("output", metavar="OUT", help="the new file")
    _arguments.add_shared(parser, "--compression", "--force", "--json")
    _arguments.add_shared(
        parser,
        "--output-compression",
        help="compression of OUT (default: as its name says, .gz or .zlib; else that of IN)",
    )
    parser.add_argument(
        "--correct",
        action="store_true",
        help="flip a single bit back where nothing else explains the damage",
    )
    parser.add_argument(
        "--accept-ambiguous",
        action="store_true",
        help="with --correct: also where two flipped bits would look the same",
    )
    parser.epilog = "Exit status: 0 when nothing was lost, 1 when something was, 2 for wrong usage."
    parser.set_defaults(run=_repair)


def _repair(options: argparse.Namespace) -> int:
    """Repairs, and reports lost regions and corrected bits."""
    from tfwire import repair_file

    if options.accept_ambiguous and not options.correct:
        raise _arguments.UsageError("--accept-ambiguous needs --correct")
    _arguments.choose_compression(options, "auto")
    _arguments.check_output(options.output, [options.input], options.force)
    progress = Progress(_arguments.file_size(options.input))
    report = repair_file(
        _arguments.input_file(options.input),
        options.output,
        compression_type=options.compression,
        correct=options.correct,
        accept_ambiguous=options.accept_ambiguous,
        overwrite=options.force,
        out_compression_type=_arguments.INPUT_COMPRESSIONS[options.output_compression],
        progress=partial(progress.update, options.input),
    )
    progress.clear()
    if options.json:
        _arguments.print_json(_repair_json(report, options))
    else:
        _print_repair(report, options)
    return int(bool(report.skipped))


def _print_repair(report: RepairReport, options: argparse.Namespace) -> None:
    lost, flips = report.skipped, report.flipped_bits
    print(
        f"{show_path(options.output)}: {plural(report.num_records, 'record')}, "
        f"{flips.num_corrected:,} of them corrected; "
        f"{plural(lost.num_regions, 'region')} lost, {plural(lost.num_bytes, 'byte')}"
    )
    for flip in flips:
        print(f"  {_describe_flip(flip)}")
    _arguments.print_more(flips.num_bits, len(flips), "flipped bit")
    gaps = find_lost(report, options.input)
    print_lost(report, gaps)
    if lost or flips:
        print(f"  next: {_next_command(report, gaps, options)}")


def _next_command(
    report: RepairReport, lost: list[LostRecords], options: argparse.Namespace
) -> str:
    """What may save more records, else what shows that all is well."""
    flips = report.flipped_bits
    words = ["tfwire", "repair", "--correct"]
    if flips.num_bits > flips.num_corrected:
        words.append("--accept-ambiguous")
    elif options.correct or not may_be_corrected(report, lost):
        words = []
    if not words or options.input == "-":
        return show_command(["tfwire", "verify", options.output])
    return show_command([*words, "--force", options.input, options.output])


def _describe_flip(flip: FlippedBit) -> str:
    if flip.corrected:
        doubt = "; two flipped bits could look the same" if flip.ambiguous else ""
        what = "corrected"
    else:
        doubt = "; ambiguous, two flipped bits could look the same (--accept-ambiguous)"
        what = "not corrected"
    return f"{what}: byte {flip.offset} bit {flip.bit}, record {flip.record_index}{doubt}"


def _repair_json(report: RepairReport, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "path": report.path,
        "output": options.output,
        "compression": _arguments.show_compression(report.compression),
        "records": report.num_records,
        "payload_bytes": report.payload_bytes,
        "num_lost": report.skipped.num_regions,
        "lost": [_arguments.region_json(region) for region in report.skipped],
        **lost_json(report, find_lost(report, options.input)),
        "num_flipped_bits": report.flipped_bits.num_bits,
        "flipped_bits": [
            {
                "byte": flip.offset,
                "bit": flip.bit,
                "record": flip.record_index,
                "record_begin": flip.record_offset,
                "ambiguous": flip.ambiguous,
                "corrected": flip.corrected,
            }
            for flip in report.flipped_bits
        ],
    }
