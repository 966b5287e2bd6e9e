"""Records by number: RecordIndex, its files, and random access."""
