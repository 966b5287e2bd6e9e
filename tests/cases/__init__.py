"""The case table: what TensorFlow answers to thousands of messages and specs, and our rules."""
