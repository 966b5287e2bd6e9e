"""TFRecord files and tf.train.Example messages without TensorFlow, every checksum verified.

    import tfwire as tfw

    with tfw.TFRecordWriter("pets.tfrecord") as writer:
        writer.write_columns({"label": [0, 1], "name": ["cat", "dog"]})

    parser = tfw.Parser({
        "label": tfw.FixedLenFeature([], tfw.int64),
        "name": tfw.FixedLenFeature([], tfw.string),
    })
    for batch in parser.parse_file("pets.tfrecord", batch_size=1024):
        print(batch["label"], batch["name"])

Names are imported on first use, so that ``import tfwire`` and the command line start at once.
"""

import sys
from importlib import import_module
from typing import Any

from tfwire._exports import EXPORTS
from tfwire._version import __version__ as __version__


def _refuse_subinterpreters() -> None:
    """Threads that read ahead cannot start in a subinterpreter, and numpy and cffi share state with
    the main one."""
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    try:
        interpreters = import_module(name)
    except ImportError:  # built without them
        return
    if interpreters.get_current() != interpreters.get_main():
        raise ImportError(
            "tfwire does not work in subinterpreters; import it in the main interpreter (for "
            "mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
        )


_refuse_subinterpreters()

__all__ = sorted(EXPORTS)
# Public modules that are no public names: they need a library that may be missing, or hold types.
_MODULES = ("beam", "grain", "huggingface", "polars", "ray", "spark", "torch", "typing")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        try:
            return import_module(f"tfwire.{name}")
        except ImportError as error:  # for hasattr
            raise AttributeError(f"tfwire.{name}: {error}") from error
    if name not in EXPORTS:
        raise AttributeError(f"module 'tfwire' has no attribute {name!r}")
    module = EXPORTS[name]
    if module == "tfwire":
        return import_module(f"tfwire.{name}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return __all__
