"""What of a TensorFlow program runs with tfwire.compat."""
