"""Files of this machine and their bytes: paths and URLs, sources and sinks, compression, locks."""
