"""The process and its system: calls that fail, interrupts, other platforms."""
