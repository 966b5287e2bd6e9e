"""The stage DecodedImages: columns of stored images as pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfwire import images
from tfwire._base.arguments import check_type, numbered_device
from tfwire._base.errors import ParseError
from tfwire._base.text import shorten
from tfwire._data.prefetch import MapAhead
from tfwire._data.stages import Stage
from tfwire._data.structure import describe, description
from tfwire._examples.column_types import BytesColumn


class ImageDecoder:
    """Replaces stored images in elements, which are dicts, by their pixels.

    Args:
        names: By the key of a feature, that of its pixels.
        options: Those of ``images.decode``.
        restore: Other strings come as BytesColumn, and are to be object arrays.
    """

    def __init__(
        self, names: Mapping[Any, Any], options: dict[str, Any], restore: bool = False
    ) -> None:
        self.names = dict(names)
        self.options = {**options, "size": images.check_options(**options)}
        if options["device"] is not None:  # threads have a current device of their own
            self.options["device"] = numbered_device(options["device"])
        self._restore = restore

    def __call__(self, element: Any) -> dict[Any, Any]:
        check_type("an element", element, dict, "a dict, as of parse_example, to decode images of")
        self._check_keys(element)
        return {self.names.get(key, key): self._new(key, value) for key, value in element.items()}

    def _new(self, key: Any, value: Any) -> Any:
        if key in self.names:
            return self._decoded(key, value)
        return (
            np.asarray(value, object) if self._restore and isinstance(value, BytesColumn) else value
        )

    def _check_keys(self, element: Mapping[Any, Any]) -> None:
        for key in self.names:
            if key not in element:
                found = _shown(list(element))
                raise ValueError(f"feature {_shown(key)} of decode_images is not in {found}")
        others = {key for key in element if key not in self.names}
        new = list(self.names.values())
        for key in new:
            if key in others or new.count(key) > 1:
                raise ValueError(f"decode_images would give two features the name {_shown(key)}")

    def _decoded(self, key: Any, value: Any) -> Any:
        options = self.options
        if options["library"] is None and options["device"] is None:
            options = {**options, "library": images.fastest_library()}  # of single images, too
        try:
            return images.decode(value, **options)
        except TypeError as error:
            raise TypeError(f"feature {_shown(key)}: {error}") from error
        except ValueError as error:
            number = getattr(error, "record_index", None)
            found = str(error)
            if number is not None:
                found = (
                    f"image {number} (from 0) of the batch{found.removeprefix(f'image {number}')}"
                )
            message = f"feature {_shown(key)}: {found}"
            raise ParseError(message, feature=key, record_index=number, reason="image") from error

    def spec(self, spec: Any) -> Any:
        """The structure of an element that was of this one."""
        if not isinstance(spec, dict):
            return None
        self._check_keys(spec)
        return {
            self.names.get(key, key): self._pixels(text) if key in self.names else text
            for key, text in spec.items()
        }

    def _pixels(self, text: Any) -> str:
        strings = description(text)
        size, channels = self.options["size"], self.options["channels"] or None
        shape = None if strings is None or strings.kind else strings.sizes
        if shape is None or (size is None and shape):  # images of several shapes have no array
            return "images"
        return describe(np.uint8, (*shape, *(size or (None, None)), channels))

    def __str__(self) -> str:
        # Not library and device: pixels are the same, or nearly, and states fit other machines.
        return f"{self.names}, size={self.options['size']}, channels={self.options['channels']}"


class DecodedImages(MapAhead):
    """Elements whose stored images are decoded, in threads."""

    def __init__(self, source: Stage, decoder: ImageDecoder, num_threads: int) -> None:
        super().__init__(source, decoder, num_threads)
        self.spec = decoder.spec(source.spec)

    def with_threads(self, source: Stage, num_threads: int) -> DecodedImages:
        """The same on another stage, with at least this many threads."""
        decoder, own = self.arguments
        return DecodedImages(source, decoder, max(own, num_threads))

    def describe(self) -> str:
        return f"decode_images({self.function})"


def _shown(key: Any) -> str:
    return shorten(repr(key))
