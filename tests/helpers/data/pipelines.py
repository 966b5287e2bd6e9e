"""Random pipelines of datasets beside a model of their elements in plain Python.

A pipeline is a source and a list of stages, each a name and its arguments. ``build`` makes the
dataset, ``model`` generates what it should give, as flat lists of numbers. A fault is a function
that fails once, or a record that is damaged until it is mended.

As a program, it searches for so many seconds and prints how many cases it ran::

    PYTHONPATH=src:tests python -m helpers.data.pipelines SEED SECONDS
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings

import numpy as np

import tfwire as tfw
from helpers.data.files import PADDING, SPEC, NumberedFiles, flat
from helpers.data.pipeline_models import batches, bucketed, in_turn, taking_turns, times
from helpers.search import cases
from tfwire import Dataset, TFRecordDataset

SIZES = (11, 0, 4, 7, 1)
TOTAL = sum(SIZES)


class Fault(Exception):
    """What the functions of a pipeline raise."""


def flattened(elements):
    return [number for element in elements for number in flat(element)]


class Once:
    """A function of elements that fails once, at an element with a number; never for None."""

    def __init__(self, number, result):
        self._number, self._result = number, result

    def __call__(self, *element):
        numbers = flat(element)
        if self._number in numbers:
            self._number = None
            raise Fault("of a function")
        return self._result(*element)


def is_kept(numbers):
    return sum(numbers) % 4 != 1


# ---- Sources -------------------------------------------------------------------------------------


def generated(function):
    """What a generator gives that fails in the middle."""
    for number in range(TOTAL):
        yield function(number)


SOURCES = {
    "range": lambda files, once: Dataset.range(TOTAL),
    "arrays": lambda files, once: Dataset.from_tensor_slices({"n": np.arange(TOTAL)}),
    "generator": lambda files, once: Dataset.from_generator(generated, args=(once,)),
    "files": lambda files, once: TFRecordDataset(files.plain),
    "gzip": lambda files, once: TFRecordDataset(files.gzip, "GZIP"),
    "2 in turn": lambda files, once: TFRecordDataset(files.plain, num_parallel_reads=2),
    "3 in turn": lambda files, once: TFRecordDataset(files.plain, num_parallel_reads=3),
    "indexed": lambda files, once: TFRecordDataset(files.plain, indexed=True),
    "shuffled files": lambda files, once: TFRecordDataset(files.plain, shuffle_files=True, seed=5),
    "sampled": lambda files, once: Dataset.sample_from_datasets(
        [Dataset.range(9), Dataset.range(9, TOTAL)], [0.3, 0.7], seed=2
    ),
}
OF_RECORDS = {"files", "gzip", "2 in turn", "3 in turn", "indexed", "shuffled files"}
OF_NUMBERS = {"range", "generator", "sampled"}
BATCHING = {"batch", "padded_batch", "buckets", "shuffle_batch"}
SHUFFLING = {"shuffle", "shuffle_batch"}
REGROUPING = {"buckets", "interleave"}
WITH_LENGTH = {"range", "arrays", "indexed"}
WITHOUT_LENGTH = {"filter", "buckets", "unbatch", "interleave"}
IN_RANDOM_ORDER = {"shuffled files", "sampled"}  # the model does not know it
NUMBERED_FROM = 10**6  # no number of an element
DAMAGEABLE = OF_RECORDS - {"gzip", "shuffled files"}


def model_source(case):
    numbers = range(TOTAL)
    if case.source.endswith("in turn"):
        numbers = list(in_turn(SIZES, int(case.source[0])))
    read = case.chosen()[0] if case.source == "indexed" else numbers
    for number in numbers:
        if case.fault == ("damage", number) and number in read:
            raise Fault
        if case.source == "generator":
            case.fail_once("source", [number])
        yield [number]


# ---- Stages --------------------------------------------------------------------------------------


def build(case, files, faults=True):
    """A dataset, made anew: nothing of it is shared with another."""
    kind, number = case.fault if faults else (None, None)

    def once(name, result):
        return Once(number if name == kind else None, result)

    dataset = SOURCES[case.source](files, once("source", lambda x: x))
    for i, (name, *arguments) in enumerate(case.stages):
        if name == "map":
            same = once(i, lambda *x: x if len(x) > 1 else x[0])
            dataset = dataset.map(same, num_parallel_calls=arguments[0])
        elif name == "filter":
            dataset = dataset.filter(once(i, lambda *x: is_kept(flat(x))))
        elif name == "parse":
            dataset = dataset.parse_example(SPEC, num_threads=arguments[0])
        elif name == "padded_batch":
            values = b"" if case.is_bytes(i) else PADDING
            dataset = dataset.padded_batch(arguments[0], None, values)
        elif name == "zip":
            dataset = Dataset.zip(dataset, Dataset.range(arguments[0]).prefetch(1))
        elif name == "concatenate":
            dataset = dataset.concatenate(Dataset.range(arguments[0]))
        elif name == "interleave":
            dataset = dataset.interleave(repeated, *arguments)
        elif name == "buckets":
            values = b"" if case.is_bytes(i) else PADDING
            dataset = dataset.bucket_by_sequence_length(
                bucket_of, [1, 2], arguments[0], None, values, False, False, arguments[1]
            )
        else:
            dataset = getattr(dataset, name)(*arguments)
    return dataset


def model(case, stages=None):
    """The elements of a pipeline, each as its flat numbers; raises Fault where an error comes."""
    stages = list(enumerate(case.stages)) if stages is None else stages
    if not stages:
        yield from model_source(case)
        return
    i, (name, *arguments) = stages[-1]

    def below():
        return model(case, stages[:-1])

    if name in ("batch", "padded_batch", "shuffle_batch"):
        yield from batches(below(), *arguments[: 1 if name == "shuffle_batch" else None])
    elif name == "repeat":
        if case.is_known_to_be_empty(stages[:-1]):
            return  # nothing is read
        for _ in range(arguments[0]):
            yield from below()
    elif name == "take":
        yield from (e for _, e in zip(range(arguments[0]), below(), strict=False))
    elif name in ("skip", "shard"):
        size, first = arguments if name == "shard" else (1, 0)
        drop = arguments[0] if name == "skip" else 0
        for place, element in enumerate(below()):
            if place >= drop and place % size == first:
                yield element
    elif name == "zip":
        pairs = zip(below(), range(arguments[0]), strict=False)
        yield from ([*one, other] for one, other in pairs)
    elif name == "enumerate":
        yield from ([number, *one] for number, one in enumerate(below(), *arguments))
    elif name == "concatenate":
        yield from below()
        yield from ([number] for number in range(*arguments))
    elif name == "interleave":
        yield from taking_turns(below(), *arguments)
    elif name == "buckets":
        yield from bucketed(below(), *arguments)
    elif name == "unbatch":
        yield from ([number] for element in below() for number in element)
    else:
        for element in below():
            if name in ("map", "filter"):
                case.fail_once(i, element)
            if name != "filter" or is_kept(element):
                yield element


def repeated(*element):
    element = element if len(element) > 1 else element[0]
    count = times(flat(element))
    return Dataset.from_generator(lambda: [element] * count)


def bucket_of(*element):
    return sum(flat(element)) % 3


class Case:
    """A pipeline and its fault: ("damage", record), ("source", number), (stage, number) or none."""

    def __init__(self, chance):
        self.source = chance.choice(sorted(SOURCES))
        self.stages = []
        for _ in range(chance.randrange(6)):
            self._add(chance)
        self.fault = self._fault(chance)
        self._failed = False

    def is_bytes(self, i):
        return self.source in OF_RECORDS and ["parse"] not in [s[:1] for s in self.stages[:i]]

    @property
    def shuffled(self):
        return self.source in IN_RANDOM_ORDER or self._shuffles_in(0, None)

    @property
    def fails_before_shuffle(self):
        """Whether a shuffle draws on what fails, and so gives its buffer before the error."""
        first = self.fault[0] + 1 if isinstance(self.fault[0], int) else self._by_number
        return self.fault[0] is not None and self._shuffles_in(first, None)

    @property
    def gives_all(self):
        """Whether the elements before the fault are those that the model gives, in some order."""
        place = self.fault[0] if isinstance(self.fault[0], int) else 0
        orderly = {"take", "skip", "shard", "zip", "enumerate", "interleave"}
        drops = any(s[0] in orderly or (s[0] in ("batch", "buckets") and s[2]) for s in self.stages)
        known = self.source not in IN_RANDOM_ORDER and not self._by_number
        return not drops and known and not self._shuffles_in(0, place)

    @property
    def _by_number(self):
        """Whether a stage shuffles records by their numbers, without a buffer."""
        numbers, following = self.chosen()
        name, *arguments = following[0] if following else [None]
        if self.source != "indexed" or name not in SHUFFLING:
            return False
        held = arguments[1 if name == "shuffle_batch" else 0]
        return bool(held >= len(numbers))

    def chosen(self):
        """The records that the first stages choose by their numbers, and the stages after these.
        Others are not read, if the records are indexed."""
        numbers, following = range(TOTAL), list(self.stages)
        while following and following[0][0] in ("take", "skip", "shard"):
            name, *arguments = following.pop(0)
            if name == "shard":
                numbers = numbers[arguments[1] :: arguments[0]]
            else:
                numbers = numbers[: arguments[0]] if name == "take" else numbers[arguments[0] :]
        return numbers, following

    def is_known_to_be_empty(self, stages):
        """Whether the number of elements is known without reading, and 0."""
        is_known = self.source in WITH_LENGTH and not {s[0] for _, s in stages} & WITHOUT_LENGTH
        return is_known and next(model(self.mended(), stages), None) is None

    def _shuffles_in(self, first, last):
        return any(stage[0] in SHUFFLING for stage in self.stages[first:last])

    def fail_once(self, place, numbers):
        if self.fault[0] == place and self.fault[1] in numbers and not self._failed:
            self._failed = True
            raise Fault

    def mended(self):
        """The same without its fault."""
        other = object.__new__(Case)
        other.source, other.stages, other.fault = self.source, self.stages, (None, None)
        return other

    def _add(self, chance):
        names = {stage[0] for stage in self.stages}
        batched, parsed = names & BATCHING, "parse" in names
        size = chance.randint(1, 9)
        shards = chance.randint(1, 4)
        threads = chance.choice([1, 1, 2, 3])
        choices = [
            ["shard", shards, chance.randrange(shards)],
            [
                "shuffle",
                chance.choice([1, 3, 10, 1000]),
                chance.randrange(9),
                chance.random() < 0.7,
            ],
            ["repeat", chance.randrange(4)],
            ["skip", chance.randrange(12)],
            ["prefetch", chance.randint(1, 4)],
            ["cache"],
            ["interleave", chance.randint(1, 4), chance.randint(1, 3)],
        ]
        paired = names & {"zip", "enumerate"}
        if not batched and not paired and self.source in OF_NUMBERS:
            choices.append(["concatenate", chance.randrange(9)])
        if (
            self.stages
            and self.stages[-1][0] in ("batch", "padded_batch", "buckets")
            and "parse" not in names
        ):
            choices += [["unbatch"]] * 3
        if not parsed:
            choices += [["map", threads]] if batched else [["map", threads], ["filter"]]
        if not batched:  # else an incomplete batch might be the last one taken, without its error
            choices.append(["take", chance.randrange(40)])
        if not batched and not paired:
            choices += [["batch", size, chance.random() < 0.3]] * 2
            least = chance.randint(1, 5)
            choices.append(["shuffle_batch", size, least + chance.randrange(20), least, 3, True])
            if not parsed:
                choices += [["padded_batch", size], ["zip", chance.randrange(50)]]
                sizes = [chance.randint(1, 4) for _ in range(3)]
                choices.append(["buckets", sizes, chance.random() < 0.3])
                choices.append(["enumerate", NUMBERED_FROM])
        if (
            self.source in OF_RECORDS
            and not paired
            and not names & {"parse", "padded_batch", "buckets"}
        ):
            choices += [["parse", threads]] * 2
        self.stages.append(chance.choice(choices))

    def _fault(self, chance):
        places = [i for i, stage in enumerate(self.stages) if stage[0] in ("map", "filter")]
        places += ["source"] * (self.source == "generator")
        places += ["damage"] * (self.source in DAMAGEABLE)
        if not places or chance.random() < 0.2:
            return None, None
        return chance.choice(places), chance.randrange(TOTAL)

    def __repr__(self):
        return f"{self.source} {self.stages} fault={self.fault}"


KEEPING_ALL = {"shuffle", "prefetch", "map", "repeat", "parse", "cache", "concatenate"}


# ---- The check -----------------------------------------------------------------------------------


def drained(elements):
    """All elements, and whether an error followed."""
    found = []
    try:
        for element in elements:
            found.append(flat(element))
    except (Fault, tfw.DataLossError):
        return found, True
    return found, False


def check(case, files, chance):
    """Draws the elements, saves and resumes at random places, and compares all with the model."""
    whole, failed = drained(build(case.mended(), files))
    assert not failed
    expected = list(model(case.mended()))
    if not case.shuffled:
        assert whole == expected
    elif all(s[0] in KEEPING_ALL for s in case.stages):
        assert sorted(whole) == sorted(expected)
    damaged = case.fault[1] if case.fault[0] == "damage" else None
    if damaged is not None:
        files.flip(damaged)
    try:
        given, failed, states = drained_and_saved(case, files, chance)
    finally:
        if damaged is not None:
            files.flip(damaged)
    if case.fails_before_shuffle:
        if case.gives_all:
            expected, fails = drained(model(case))
            assert fails == failed
            assert sorted(flattened(expected)) == sorted(flattened(given))
    elif case.shuffled and failed and any(s[0] in REGROUPING for s in case.stages):
        # Buckets give what they hold before the error, and how often an incomplete batch is
        # interleaved the whole does not tell.
        if not any(s[0] == "interleave" for s in case.stages):
            assert set(flattened(given)) <= set(flattened(whole))
    elif case.shuffled:
        assert flattened(whole)[: len(flattened(given))] == flattened(given)
        assert failed or given == whole
    else:
        assert (given, failed) == drained(model(case))
    for before, state in chance.sample(states, min(len(states), 4)):
        same = flattened(before) == flattened(whole)[: len(flattened(before))]
        if state is not None and (same or case.gives_all):
            resumed = iter(build(case, files, faults=False))
            resumed.load_state_dict(state)
            rest, failed = drained(resumed)
            assert not failed
            assert flattened(before + rest) == flattened(whole)


def drained_and_saved(case, files, chance):
    """The elements, whether an error followed, and states with the elements before them."""
    elements, given, states, failed = iter(build(case, files)), [], [], False
    often = chance.choice([0.1, 1])
    while True:
        if chance.random() < often:
            states.append((list(given), saved(elements)))
        try:
            given.append(flat(next(elements)))
        except StopIteration:
            break
        except (Fault, tfw.DataLossError):
            failed = True
            break
    states.append((list(given), saved(elements)))
    elements.close()
    return given, failed, states


def saved(elements):
    """A state after a way through JSON; None where there is none because of an error."""
    try:
        return json.loads(json.dumps(elements.state_dict()))
    except (Fault, tfw.DataLossError, ValueError):
        return None


def search(seed, seconds, least=0):
    """How many cases were run."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files, count = NumberedFiles(folder, SIZES), 0
        for name, chance in cases(seed, seconds, least):
            case = Case(chance)
            try:
                check(case, files, chance)
            except Exception as error:
                raise AssertionError(f"case {name}: {case}") from error
            count += 1
    return count


if __name__ == "__main__":
    print(search(sys.argv[1], float(sys.argv[2])))
