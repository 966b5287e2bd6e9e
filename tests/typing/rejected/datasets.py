"""Wrong words and wrong types in pipelines."""

import tfwire as tfw

tfw.TFRecordDataset(3)  # error
tfw.TFRecordDataset("a", "BZIP2")  # error
tfw.TFRecordDataset("a", on_corrupt="nonsense")  # error
tfw.TFRecordDataset("a", buffer_size="1")  # error
tfw.TFRecordDataset("a", max_record_size="1")  # error
tfw.TFRecordDataset("a", indexed="yes")  # error
tfw.TFRecordDataset("a", shuffle_files="yes")  # error
tfw.TFRecordDataset("a", seed=None)  # error
tfw.Dataset.range("3")  # error
tfw.Dataset.from_generator([1, 2])  # error
tfw.Dataset.from_generator(lambda: [1], args=3)  # error
tfw.Dataset.list_files(3)  # error
tfw.Dataset.zip(tfw.Dataset.range(2), [1, 2])  # error

records = tfw.TFRecordDataset("a")
records.take("3")  # error
records.map(3)  # error
records.map(len, seed="1")  # error
records.filter("x")  # error
records.batch("32")  # error
records.batch(32, drop_remainder="yes")  # error
records.shuffle(None)  # error
records.repeat("2")  # error
records.shard(2)  # error
records.set_epoch("2")  # error
records.concatenate([b"a"])  # error
records.enumerate("1")  # error
records.cache(3)  # error
records.nonsense()  # error
tfw.Dataset.sample_from_datasets([records], "half")  # error
records.shard_source(2, 0, "odd")  # error
records.parse_example({"label": 3})  # error
records.parse_example({"label": tfw.FixedLenFeature([], tfw.int64)}, num_threads="2")  # error
records.prefetch("2")  # error
records.decode_images("image")  # error
records.decode_images({"x": "image"}, channels=2)  # error
records.decode_images({"x": "image"}, library="opencv")  # error
records.pack(["x"])  # error
records.pack({"x": 3}, on_long="drop")  # error
records.interleave(len)  # error
tfw.Dataset.zip(tfw.Dataset.range(2), tfw.Dataset.range(2), tfw.Dataset.range(2), "a")  # error
for record in records:
    record.encode()  # error
for number in tfw.Dataset.range(3):
    number.decode()  # error
iter(records).load_state_dict(3)  # error
iter(records).load_state_dict([])  # error
iter(records).save()  # error
