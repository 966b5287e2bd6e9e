"""The readers that tfwire bench and tfwire demo compare: TensorFlow's see the same records."""

import pytest

import tfwire as tfw
from tfwire.cli.bench import READERS, Subject

THEIRS = [reader for reader in READERS if reader.package == "tensorflow"]
MESSAGES = {
    "examples": [tfw.encode_example({"id": i, "s": ["a"] * (i % 3)}) for i in range(3000)],
    "sequences": [
        tfw.encode_sequence_example({"n": i}, {"s": [[1]] * (i % 3 + 1)}) for i in range(3000)
    ],
}


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("kind", MESSAGES)
def test_all_records_are_read_and_parsed(tmp_path, kind, compression):
    path = str(tmp_path / "data")
    tfw.write_records(path, MESSAGES[kind], compression)
    file = Subject(path, compression, tfw.infer_schema(path))
    assert [3000] * len(THEIRS) == [sum(reader.read(file)) for reader in THEIRS]
