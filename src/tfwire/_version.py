"""The version, equal to TFW_VERSION_STRING in csrc/tfwire.h (checked at import)."""

__version__ = "0.1.0"
