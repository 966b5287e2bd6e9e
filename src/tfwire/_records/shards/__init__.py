"""Sets of files: ShardedWriter, the names of shards, and how they appear together."""
