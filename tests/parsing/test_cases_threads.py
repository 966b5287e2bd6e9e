"""The case table in files, parsed by one thread and by several: every answer is the table's."""

from collections import Counter

import pytest

import tfwire as tfw
from cases import files
from cases.replay import load
from tfwire._parsing import file_chunks

THREADS = (1, 2, 3, 8)
FEW = (1, 3)  # by day
SPLIT = 3


def in_parts(number):
    """By day a third of the specifications, another one in each test; by night all of them."""
    parts = [(number, FEW)]
    parts += [pytest.param(part, THREADS, marks=pytest.mark.slow) for part in range(SPLIT)]
    return pytest.mark.parametrize(("part", "threads"), parts)


@pytest.fixture(scope="module")
def groups():
    """The cases by specification. Only while they are used: they slow down each fork."""
    return list(files.groups(load()))


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch):
    """Several threads have something to do."""
    monkeypatch.setattr(file_chunks, "_PARSED_BYTES", 300)


def write(path, cases):
    path.unlink(missing_ok=True)  # as write_anew
    tfw.write_records(path, files.messages_of(cases))


@in_parts(0)
def test_files_of_the_case_table(groups, tmp_path, part, threads):
    """The cases with values that share a specification, one after another in a file."""
    path = tmp_path / "x"
    for group in groups[part::SPLIT]:
        write(path, group.good)
        expected = files.answered(group.good)
        for num_threads in threads[1:] if threads == FEW else threads:  # one: see the errors
            assert (expected, None, []) == files.parse(group, path, num_threads)


@in_parts(1)
def test_errors_of_the_case_table(groups, tmp_path, part, threads):
    """Each 30th case with an error, in the slow tests each second, between cases with values,
    which are in other ranges."""
    path = tmp_path / "x"
    every = 30 if threads == FEW else 2
    for group in groups[part::SPLIT]:
        before, after = group.good[:2], group.good[2:4]
        for bad in group.bad[::every]:
            write(path, [*before, bad, *after])
            expected = files.parse(group, path, 1)
            assert [] == files.unlike_the_table(group, before, bad, expected), (bad, expected)
            for num_threads in threads[1:]:
                assert expected == files.parse(group, path, num_threads), bad


@pytest.mark.filterwarnings("ignore:.*left out")
@in_parts(2)
def test_what_is_left_out_of_the_case_table(groups, tmp_path, part, threads):
    """The cases that share a specification; the records that do not fit are left out."""
    path = tmp_path / "x"
    most = 30 if threads == FEW else 300
    for group in groups[part::SPLIT]:
        cases = [*group.bad[:most], *group.good[:most]]
        write(path, cases)
        expected = files.parse(group, path, 1, on_parse_error="skip")
        assert expected.error is None
        if group.batch_size == 1:
            numbers = [one[-1] for one in expected.left_out]
            assert [n for n, case in enumerate(cases) if case in group.bad] == numbers
            assert files.answered(group.good[:most]) == expected.batches
        for num_threads in threads[1:]:
            assert expected == files.parse(group, path, num_threads, on_parse_error="skip")


def test_files_hold_nearly_all_batch_cases(groups):
    """Not those without messages, nor those whose specification is refused."""
    count = Counter(good=0, bad=0)
    for group in groups:
        count += Counter(good=len(group.good), bad=len(group.bad))
    assert count["good"] > 4_900
    assert count["bad"] > 6_800


ROWS = {"r": tfw.RaggedFeature(tfw.int64, "v", [tfw.RaggedFeature.ValueRowIds("ids")])}


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("num_threads", THREADS)
@pytest.mark.parametrize("ids", [[1, 0], [10**12, 10**12]], ids=["decreasing", "too large"])
def test_the_record_that_does_not_fit_is_named_whatever_check_finds_it(tmp_path, ids, num_threads):
    """Each check looks at all records: the one that is wrong, not the first one, and not a later
    one that fails an earlier check. No intact record is left out."""
    values = {"v": [1, 2], "ids": [0, 1]}
    wrong, wrong_earlier = {"v": [1, 2], "ids": ids}, {"v": [1, 2], "ids": [0]}
    path = tmp_path / "x"
    tfw.write_records(path, [values, values, wrong, values, wrong_earlier, values])
    parser = tfw.Parser(ROWS)
    with pytest.raises(tfw.ParseError, match=r"record 2: Key: r\.  The row ids") as caught:
        list(parser.parse_file(path, 100, num_threads=num_threads))
    assert 2 == caught.value.record_index
    batches = parser.parse_file(path, 100, num_threads=num_threads, on_parse_error="skip")
    assert [4] == [len(batch["r"]) for batch in batches]
    assert [2, 4] == [error.record_index for error in batches.parse_errors]
