"""Arrow data without a library of Arrow's."""
