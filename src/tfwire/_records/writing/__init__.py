"""One file written: TFRecordWriter, appending to a file, repairing it."""
