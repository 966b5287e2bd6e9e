"""The commands that read files, as words."""

# Every subcommand, with IN where a file is read and OUT where one is written.
READING = {
    "info": ["info", "IN"],
    "info --json": ["info", "--json", "IN"],
    "head": ["head", "IN"],
    "head json": ["head", "--format", "json", "IN"],
    "cat": ["cat", "IN"],
    "cat json": ["cat", "--format", "json", "IN"],
    "cat raw": ["cat", "--format", "raw", "IN"],
    "count": ["count", "IN"],
    "count --json": ["count", "--json", "IN"],
    "schema": ["schema", "IN"],
    "schema json": ["schema", "--all", "--format", "json", "IN"],
    "stats": ["stats", "IN"],
    "stats --json": ["stats", "--json", "IN"],
    "verify": ["verify", "IN", "--crc32c", "--receipt"],
    "verify --json": ["verify", "IN", "--json", "--crc32c", "--receipt"],
    "verify --same-as": ["verify", "IN", "--same-as", "IN2"],
    "repair": ["repair", "IN", "OUT"],
    "repair --correct": ["repair", "--correct", "--accept-ambiguous", "--json", "IN", "OUT"],
    "index": ["index", "IN"],
    "index --text": ["index", "--text", "--json", "IN"],
    "index --check": ["index", "--check", "IN"],
    "split": ["split", "IN", "-o", "OUT-{shard}", "--shards", "2", "--index"],
    "merge": ["merge", "IN", "-o", "OUT", "--output-compression", "gzip"],
    "shuffle": ["shuffle", "IN", "-o", "OUT", "--seed", "1", "--json"],
    "convert": ["convert", "IN", "-o", "OUT", "--from", "tfrecord", "--to", "jsonl"],
    "convert --json": ["convert", "IN", "-o", "OUT", "--from", "tfrecord", "--to", "tar", "--json"],
    "bench": ["bench", "IN", "--seconds", "0.001"],
}


def words_of(name, path, out="out"):
    names = {"IN": path, "IN2": path, "OUT": out, "OUT-{shard}": out + "-{shard}"}
    return [names.get(word, word) for word in READING[name]]
