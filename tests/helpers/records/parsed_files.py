"""Files of Examples to parse."""

import tfwire as tfw

FEATURES = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "s": tfw.FixedLenFeature([], tfw.string),
    "v": tfw.VarLenFeature(tfw.int64),
    "x": tfw.FixedLenFeature([2], tfw.float32, default_value=[0, 0]),
}


def row(n):
    """Records of very different sizes, so that windows end anywhere."""
    values = list(range(n % 7)) + ([0] * 50_000 if n % 40 == 39 else [])
    return {"n": n, "s": b"s" * (n % 5), "v": values} | ({"x": [n, 0.5]} if n % 3 else {})


RECORDS = tfw.encode_examples([row(n) for n in range(200)])

BAD = tfw.encode_example({"n": 0.5, "s": "", "v": [1]})


def write(path, records):
    tfw.write_records(path, records)
    return path


def write_all(folder):
    """The records in files of different sizes and compressions, one of them empty."""
    paths = []
    for i, (begin, end, options) in enumerate(
        [(0, 3, None), (3, 3, None), (3, 120, "GZIP"), (120, 199, None), (199, 200, "ZLIB")]
    ):
        paths.append(folder / f"{i}.tfrecord")
        tfw.write_records(paths[-1], RECORDS[begin:end], options)
    return paths


def numbers(batches):
    return [batch["n"].tolist() for batch in batches]


def drain(batches):
    """The batches before an error, and the error."""
    found = []
    try:
        for batch in batches:
            found.append(batch)
    except Exception as error:
        return found, error
    raise AssertionError("no error")
