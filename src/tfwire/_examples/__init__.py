"""Examples in and out: Python values and columns to messages, messages to Python values."""
