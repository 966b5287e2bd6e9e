"""Names of test cases."""


def label(value):
    """How `value` is written, without its address: processes that share the tests must agree."""
    text = repr(value)
    return type(value).__name__ if " at 0x" in text else text
