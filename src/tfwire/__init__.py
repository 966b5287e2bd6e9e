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

from importlib import import_module
from typing import Any

from tfwire._base.html_display import register_display
from tfwire._base.interpreters import refuse_subinterpreters
from tfwire._records.encoder import register_encoder
from tfwire._version import __version__ as __version__


def _exports() -> dict[str, tuple[str, str]]:
    """Every public name, and the module and attribute that it is: __init__.pyi lists them once, as
    ``from MODULE import (`` and ``NAME as NAME,`` lines."""
    exports = {}
    module = ""
    with open(__file__.removesuffix("c") + "i", encoding="utf-8") as stub:  # no pathlib: 4 ms
        lines = stub.readlines()
    for line in lines:
        words = line.replace("(", " ").replace(")", " ").replace(",", " ").split()
        if words[:1] == ["from"]:
            module, words = words[1], words[3:]
        for i, word in enumerate(words):
            if word == "as":
                exports[words[i + 1]] = (module, words[i - 1])
    return exports


refuse_subinterpreters()
_EXPORTS = _exports()

__all__ = sorted(_EXPORTS)

# Writers take rows and columns, but records know nothing of Examples.
register_encoder(lambda: import_module("tfwire._examples.encode"))
# Records, columns and datasets show themselves in notebooks, but know nothing of HTML.
register_display(lambda: import_module("tfwire.view").as_html)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'tfwire' has no attribute {name!r}")
    module, attribute = _EXPORTS[name]
    value = (
        import_module(f"tfwire.{name}")
        if module == "tfwire"
        else getattr(import_module(module), attribute)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
