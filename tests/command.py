"""The tfwire command, run as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import tfwire

# Wherever the tests found the package, from whatever folder the command runs in.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tfwire.__file__).parents[1])}


def tfwire_command(*words, **options):
    """A finished process, its output as text unless text=False is given."""
    options = {"capture_output": True, "text": True, "env": ENVIRONMENT, **options}
    return subprocess.run([sys.executable, "-m", "tfwire", *map(str, words)], **options)
