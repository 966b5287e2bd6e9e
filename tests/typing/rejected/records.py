"""Wrong words and wrong types where records are read and written."""

import io

import tfwire as tfw

tfw.read_records(3)  # error
tfw.read_records([3])  # error
tfw.read_records("a", options="BZIP2")  # error
tfw.TFRecordWriter("a", compression_type="auto")  # error
tfw.read_records("a", "BZIP2")  # error
tfw.read_records("a", on_corrupt="nonsense")  # error
tfw.read_records("a", verify="no")  # error
tfw.read_records("a", max_record_size="1")  # error
tfw.read_records("a", start=3)  # error
tfw.read_records("a", filenames="b")  # error
tfw.follow_records(io.BytesIO())  # error
tfw.follow_records("a", on_corrupt="tail")  # error
for record in tfw.read_records("a"):
    record.encode()  # error

with tfw.TFRecordWriter("a") as writer:
    writer.write(3)  # error
    writer.write(None)  # error
    writer.write_many(b"record")  # error
    writer.write_many([1, 2])  # error
    writer.write_columns([1, 2])  # error
    writer.append(b"")  # error
tfw.TFRecordWriter(3)  # error
tfw.TFRecordWriter("s3://b/a", storage_options="anon")  # error
tfw.read_records("s3://b/a", storage_options=[("anon", True)])  # error
tfw.TFRecordFile("s3://b/a", storage_options="anon")  # error
tfw.TFRecordWriter("a", "BZIP2")  # error
tfw.TFRecordWriter("a", "auto")  # error
tfw.TFRecordWriter("a", compression_level="9")  # error
tfw.TFRecordWriter(io.StringIO())  # error
tfw.TFRecordOptions("auto")  # error
tfw.write_records("a", [3])  # error
tfw.ShardedWriter(3)  # error
tfw.ShardedWriter("a-{shard}", num_shards="2")  # error

with tfw.TFRecordFile("a") as numbered:
    numbered["0"]  # error
    numbered[0].encode()  # error
    numbered.by_key[1.5]  # error
tfw.RecordIndex.build("a", key=3)  # error
tfw.TFRecordFile(io.BytesIO())  # error
tfw.TFRecordFiles([1])  # error
tfw.RecordIndex.build(3)  # error
tfw.RecordIndex.build("a", "BZIP2")  # error
tfw.verify_file("a", compression_type="BZIP2")  # error
tfw.verify_file(io.StringIO())  # error
tfw.verify_file("a", progress=3)  # error
tfw.verify_file("a").intact()  # error
tfw.verify_files(["a"], num_threads="2")  # error
tfw.verify_files([3])  # error
tfw.RecordIndex.build_many([3])  # error
tfw.repair_file("a")  # error
tfw.repair_file("a", io.BytesIO())  # error
tfw.Receipt.of(3)  # error
tfw.Receipt.from_dict(3)  # error
tfw.Receipt() + 3  # error
