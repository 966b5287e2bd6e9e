"""What reads the records of several files, and warns where their set is half published."""

import warnings

import tfwire as tfw


def parse_files(paths):
    parser = tfw.Parser({"a": tfw.FixedLenFeature([], tfw.string)})
    return [value for batch in parser.parse_file(paths, 2) for value in batch["a"]]


def records_by_number(paths):
    with tfw.TFRecordFiles(paths) as files:
        return list(files)


READERS = {
    "read_records": lambda paths: list(tfw.read_records(paths)),
    "one by one": lambda paths: [record for p in paths for record in tfw.read_records(p)],
    "files": records_by_number,
    "file by file": lambda paths: [record for p in paths for record in tfw.TFRecordFile(p)],
    "dataset": lambda paths: list(tfw.TFRecordDataset(paths)),
    "in turn": lambda paths: list(tfw.TFRecordDataset(paths, num_parallel_reads=9)),
    "indexed": lambda paths: list(tfw.TFRecordDataset(paths, indexed=True)),
    "shuffled": lambda paths: sorted(tfw.TFRecordDataset(paths).shuffle(9, seed=1)),
    "parse_file": parse_files,
    "threads": lambda paths: list(tfw.TFRecordDataset(paths).prefetch(1)),
}


def files_of(pattern):
    return sorted(map(str, pattern.parent.glob(pattern.name)))


def read_with_warnings(reader, paths):
    """What a reader gives, and its warnings of sets that are half published."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings(
            "ignore", r".* is empty: there are no files"
        )  # before the first set
        found = reader(paths)
    assert {tfw.TfwireWarning} >= {each.category for each in caught}
    return found, [str(each.message) for each in caught]
