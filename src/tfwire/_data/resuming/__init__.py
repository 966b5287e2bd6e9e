"""Where passes stand, and what is left of them for other shards."""
