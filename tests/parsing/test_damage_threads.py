"""Damage at the edges of ranges: one thread and several give what the reference gives."""

import itertools

import pytest

from helpers.reading import write_anew
from helpers.records.damaged_files import COUNT, DAMAGE, SPECIFICATIONS, contents, expected, parse
from tfwire._parsing import file_chunks

POLICIES = {
    "raise": {"on_corrupt": "raise"},
    "tail": {"on_corrupt": "tail"},
    "stop": {"on_corrupt": "stop"},
    "skip": {"on_corrupt": "skip"},
    "skip all": {"on_corrupt": "skip", "on_parse_error": "skip"},
    "skip misfits": {"on_corrupt": "raise", "on_parse_error": "skip"},
    "unverified": {"on_corrupt": "raise", "verify": False},
    "unverified, skip": {"on_corrupt": "skip", "verify": False},
}
RANGE_BYTES = (150, 400, 1 << 20)


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize(
    ("every", "threads"), [(48, [3]), pytest.param(8, [2, 3, 8], marks=pytest.mark.slow)]
)
def test_damage_at_the_edges_of_ranges(tmp_path, monkeypatch, kind, every, threads):
    """Ranges hold a few records. Of policies and damaged records it is each 48th pair, another one
    for every kind and specification; in the slow tests each eighth."""
    pairs = list(itertools.product(POLICIES.items(), range(COUNT)))
    for number, (name, records) in enumerate(SPECIFICATIONS.items()):
        (tmp_path / name).mkdir()
        turn = 5 * list(DAMAGE).index(kind) + 7 * number
        for (policy, options), at in pairs[turn % every :: every]:
            print(name, policy, at)
            size = RANGE_BYTES[(turn + at) % len(RANGE_BYTES)]
            monkeypatch.setattr(file_chunks, "_PARSED_BYTES", size)
            check(tmp_path / name, records, contents(records, kind, at), threads, options)


def check(folder, records, files, threads, options):
    """Compares what threads give with one thread, and that with the reference."""
    paths = [folder / str(i) for i in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        if not path.exists() or path.read_bytes() != content:
            write_anew(path, content)
    found = parse(records, paths, 1, **options)
    if options.get("verify", True):
        reference = expected(
            records, files, options["on_corrupt"], options.get("on_parse_error", "raise")
        )
        assert reference[:2] == found[:2]
    for num_threads in threads:
        assert found == parse(records, paths, num_threads, **options)
