"""Fuzzing the C core (libFuzzer targets in C), and tfwire beside protobuf."""
