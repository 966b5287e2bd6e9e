"""tfwire repair: a new file of all records that verify or can be corrected."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, show_path
from tfwire.cli import _arguments, verify
from tfwire.cli._streams import Progress

if TYPE_CHECKING:
    from tfwire import FlippedBit, RepairReport
    from tfwire._interface.files import LostRecords


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
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
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
        _arguments.print_json(_as_json(report, options))
    else:
        _print(report, options)
    return int(bool(report.skipped))


def _print(report: RepairReport, options: argparse.Namespace) -> None:
    lost, flips = report.skipped, report.flipped_bits
    print(
        f"{show_path(options.output)}: {plural(report.num_records, 'record')}, "
        f"{flips.num_corrected:,} of them corrected; "
        f"{plural(lost.num_regions, 'region')} lost, {plural(lost.num_bytes, 'byte')}"
    )
    for flip in flips:
        print(f"  {_describe_flip(flip)}")
    _arguments.print_more(flips.num_bits, len(flips), "flipped bit")
    gaps = verify.find_lost(report, options.input)
    verify.print_lost(report, gaps)
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
    elif options.correct or not verify.may_be_corrected(report, lost):
        words = []
    if not words or options.input == "-":
        return verify.show_command(["tfwire", "verify", options.output])
    return verify.show_command([*words, "--force", options.input, options.output])


def _describe_flip(flip: FlippedBit) -> str:
    if flip.corrected:
        doubt = "; two flipped bits could look the same" if flip.ambiguous else ""
        what = "corrected"
    else:
        doubt = "; ambiguous, two flipped bits could look the same (--accept-ambiguous)"
        what = "not corrected"
    return f"{what}: byte {flip.offset} bit {flip.bit}, record {flip.record_index}{doubt}"


def _as_json(report: RepairReport, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "path": report.path,
        "output": options.output,
        "compression": _arguments.show_compression(report.compression),
        "records": report.num_records,
        "payload_bytes": report.payload_bytes,
        "num_lost": report.skipped.num_regions,
        "lost": [_arguments.region_json(region) for region in report.skipped],
        **verify.lost_json(report, verify.find_lost(report, options.input)),
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
