"""Files for datasets, and what comes of a dataset."""

import itertools

import numpy as np

import tfwire as tfw

SPEC = {"n": tfw.FixedLenFeature([], tfw.int64)}


def write_three(folder):
    """Three files of 2, 0 and 3 Examples {"n": 0..}."""
    paths = []
    number = itertools.count()
    for size in (2, 0, 3):
        paths.append(folder / f"{size}.tfrecord")
        rows = [{"n": next(number)} for _ in range(size)]
        tfw.write_records(paths[-1], tfw.encode_examples(rows))
    return paths


def numbered_files(folder, sizes):
    """Paths of files of so many Examples {"n": 0..}."""
    number = itertools.count()
    for i, size in enumerate(sizes):
        rows = [{"n": next(number)} for _ in range(size)]
        tfw.write_records(folder / f"numbered-{i}", tfw.encode_examples(rows))
    return [str(folder / f"numbered-{i}") for i in range(len(sizes))]


def number_of(record):
    """The number of an Example."""
    return int(tfw.parse_single_example(record, SPEC)["n"])


def drain(elements):
    """The values of elements up to their end or an error, and that error."""
    found = []
    try:
        for element in elements:
            found += np.ravel(element).tolist()
    except Exception as error:
        return found, error
    return found, None
