"""Every feature specification on the inputs of TensorFlow's documentation of tf.io.parse_example.

Run it: each result is printed and compared with what TensorFlow's pages say.
"""

import numpy as np

import tfwire as tfw


def show(title, value):
    print(f"{title}\n    {value}")
    return value


# ---- VarLenFeature: any number of values, a SparseTensor -------------------------------------

serialized = [
    tfw.encode_example({"ft": [1.0, 2.0]}),
    tfw.encode_example({}),
    tfw.encode_example({"ft": [3.0]}),
]
parsed = tfw.parse_example(serialized, {"ft": tfw.VarLenFeature(tfw.float32)})
sparse = show("VarLenFeature", parsed["ft"])
assert sparse.indices.tolist() == [[0, 0], [0, 1], [2, 0]]
assert sparse.values.tolist() == [1.0, 2.0, 3.0]
assert np.asarray(sparse.dense_shape).tolist() == [3, 2]
show("... made dense", sparse.to_dense())

# The same with more features, and the names of the records.
serialized = [
    tfw.encode_example({"kw": ["knit", "big"], "gps": []}),
    tfw.encode_example({"kw": ["emmy"], "dank": [42], "gps": [7.0]}),
]
parsed = tfw.parse_example(
    serialized,
    {
        "kw": tfw.VarLenFeature(tfw.string),
        "dank": tfw.VarLenFeature(tfw.int64),
        "gps": tfw.VarLenFeature(tfw.float32),
    },
    example_names=["input0", "input1"],
)
assert show("kw", parsed["kw"]).values.tolist() == [b"knit", b"big", b"emmy"]
assert show("dank", parsed["dank"]).indices.tolist() == [[1, 0]]

# ---- FixedLenFeature: the same number of values in every record ------------------------------

serialized = [
    tfw.encode_example({"age": [0], "gender": ["f"]}),
    tfw.encode_example({"age": [], "gender": ["f"]}),  # no value and no kind: the default
]
parsed = tfw.parse_example(
    serialized,
    {
        "age": tfw.FixedLenFeature([], tfw.int64, default_value=-1),
        "gender": tfw.FixedLenFeature([], tfw.string),
    },
)
assert show("FixedLenFeature age", parsed["age"]).tolist() == [0, -1]
assert show("FixedLenFeature gender", parsed["gender"]).tolist() == [b"f", b"f"]

# ---- FixedLenSequenceFeature: padded to the longest record of the batch ----------------------

parsed = tfw.parse_example(
    [tfw.encode_example({"ft": [1.0, 2.0]}), tfw.encode_example({"ft": [3.0]})],
    {"ft": tfw.FixedLenSequenceFeature([], tfw.float32, allow_missing=True, default_value=-1.0)},
)
assert show("FixedLenSequenceFeature", parsed["ft"]).tolist() == [[1.0, 2.0], [3.0, -1.0]]

# ---- SparseFeature: indices in one feature, values in another --------------------------------

serialized = [
    tfw.encode_example({"val": [0.5, -1.0], "ix": [3, 20]}),
    tfw.encode_example({"val": [0.0], "ix": [42]}),
]
parsed = tfw.parse_example(
    serialized,
    {"sparse": tfw.SparseFeature(index_key="ix", value_key="val", dtype=tfw.float32, size=100)},
)
sparse = show("SparseFeature", parsed["sparse"])
assert sparse.indices.tolist() == [[0, 3], [0, 20], [1, 42]]
assert sparse.values.tolist() == [0.5, -1.0, 0.0]
assert np.asarray(sparse.dense_shape).tolist() == [2, 100]

# ---- RaggedFeature: rows of their own lengths, nested by partitions --------------------------

serialized = [
    tfw.encode_example({"tokens": ["a", "b", "c"]}),
    tfw.encode_example({"tokens": []}),
    tfw.encode_example({"tokens": ["d"]}),
]
parsed = tfw.parse_example(serialized, {"tokens": tfw.RaggedFeature(tfw.string)})
assert show("RaggedFeature", parsed["tokens"]).to_list() == [[b"a", b"b", b"c"], [], [b"d"]]

serialized = [
    tfw.encode_example({"values": [3, 1, 4, 1, 5, 9], "lengths": [2, 0, 4]}),
    tfw.encode_example({"values": [2, 6], "lengths": [1, 1]}),
]
parsed = tfw.parse_example(
    serialized,
    {
        "ragged": tfw.RaggedFeature(
            tfw.int64, value_key="values", partitions=[tfw.RaggedFeature.RowLengths("lengths")]
        )
    },
)
nested = show("RaggedFeature with RowLengths", parsed["ragged"])
assert nested.to_list() == [[[3, 1], [], [4, 1, 5, 9]], [[2], [6]]]

# ---- SequenceExample: a context and lists of steps --------------------------------------------

serialized = [
    tfw.encode_sequence_example(
        {"length": 3}, {"words": ["a", "b", "c"], "sizes": [[1], [2, 2], [5]]}
    ),
    tfw.encode_sequence_example({"length": 1}, {"words": ["d"], "sizes": [[7]]}),
]
context, lists, lengths = tfw.parse_sequence_example(
    serialized,
    context_features={"length": tfw.FixedLenFeature([], tfw.int64)},
    sequence_features={
        "words": tfw.FixedLenSequenceFeature([], tfw.string),
        "sizes": tfw.RaggedFeature(tfw.int64),
    },
)
assert show("context", context["length"]).tolist() == [3, 1]
assert show("words, padded", lists["words"]).tolist() == [[b"a", b"b", b"c"], [b"d", b"", b""]]
assert show("their lengths", lengths["words"]).tolist() == [3, 1]
assert show("sizes", lists["sizes"]).to_list() == [[[1], [2, 2], [5]], [[7]]]
