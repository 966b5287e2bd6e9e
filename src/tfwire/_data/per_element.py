"""The methods of Dataset that make or choose elements one by one: map, filter, decode_images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from tfwire._base.aliases import ImageLibrary, Value
from tfwire._base.arguments import check_callable, check_type, integer
from tfwire._data import stages
from tfwire._data.batching import Parse
from tfwire._data.decoded_images import DecodedImages, ImageDecoder
from tfwire._data.grouped import Regrouping
from tfwire._data.pipeline import Element
from tfwire._data.prefetch import MapAhead
from tfwire._data.randomized import Randomized
from tfwire._data.stages import Stage

if TYPE_CHECKING:
    from tfwire._data.dataset import Dataset

Key = TypeVar("Key")
Result = TypeVar("Result")


class PerElement(Regrouping[Element]):
    """The methods that call a function for every element."""

    def _dataset(self, stage: Stage, name: str) -> Dataset[Any]:
        """A dataset of other elements."""
        dataset: Any = self._next(stage, name)
        found: Dataset[Any] = dataset
        return found

    @overload
    def map(
        self,
        map_func: Callable[[Element], Result],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        seed: None = None,
    ) -> Dataset[Result]: ...
    @overload
    def map(
        self,
        map_func: Callable[..., Result],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> Dataset[Result]: ...
    def map(
        self,
        map_func: Callable[..., Result],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
        *,
        seed: int | None = None,
    ) -> Dataset[Result]:
        """``map_func`` of every element, an ordinary Python function; the order is kept.

        Tuples are passed as separate arguments, named tuples as one.

        With a seed, ``map_func`` gets a ``numpy.random.Generator`` as one more argument, for random
        augmentation. Its numbers depend on the seed, the epoch and the place of the element alone,
        not on threads, nor on where a pass was resumed, nor on ``shard_source`` where elements are
        known by their places: of indexed records, arrays and ranges, also all shuffled with a seed
        and then repeated, and of generators as they are. Else, as after ``filter`` or ``unbatch``,
        shards draw other numbers, but never those of another shard.

        Args:
            map_func: The function.
            num_parallel_calls: Above 1, this many threads call it ahead. That pays if a call takes
                milliseconds without Python's lock. None, 1 or -1 (AUTOTUNE): the thread that asks
                for elements calls it.
            deterministic, name: Ignored.
            seed: Of the random numbers; None: ``map_func`` gets none.

        Raises:
            TypeError: ``map_func`` is not callable, or ``seed`` not an integer.
            ValueError: ``num_parallel_calls`` is neither above 0 nor -1.

        Example:
            >>> [int(x) for x in Dataset.range(3).map(lambda x: 10 * x)]
            [0, 10, 20]
            >>> noisy = Dataset.range(3).map(lambda x, rng: int(x) + rng.random(), seed=1)
            >>> shards = [noisy.shard_source(2, i) for i in range(2)]
            >>> list(noisy) == [x for shard in shards for x in shard]
            True
        """
        check_callable("map_func", map_func)
        stage, function, num_threads = self._stage, self._calling(map_func), 1
        if seed is not None:
            stage, function = Randomized(stage, seed), self._calling_with_generator(map_func)
        if num_parallel_calls is not None:
            num_threads = integer("num_parallel_calls", num_parallel_calls)
            if num_threads < 1 and num_threads != -1:
                raise ValueError(
                    f"num_parallel_calls must be at least 1, or -1, found {num_threads}"
                )
        if num_threads > 1:
            return self._dataset(MapAhead(stage, function, num_threads), "map")
        return self._dataset(stages.Map(stage, function), "map")

    @overload
    def filter(
        self, predicate: Callable[[Element], object], name: str | None = None
    ) -> Dataset[Element]: ...
    @overload
    def filter(
        self, predicate: Callable[..., object], name: str | None = None
    ) -> Dataset[Element]: ...
    def filter(self, predicate: Callable[..., object], name: str | None = None) -> Dataset[Element]:
        """The elements for which ``predicate`` is true.

        Tuples are passed as separate arguments, named tuples as one.

        Raises:
            TypeError: ``predicate`` is not callable.

        Example:
            >>> [int(x) for x in Dataset.range(5).filter(lambda x: x % 2 == 1)]
            [1, 3]
        """
        check_callable("predicate", predicate)
        return self._dataset(stages.Filter(self._stage, self._calling(predicate)), "filter")

    def decode_images(
        self,
        names: Mapping[Key, Key],
        *,
        size: int | Sequence[int] | None = None,
        channels: Literal[0, 1, 3, 4] = 0,
        num_threads: int = 1,
        library: ImageLibrary | None = None,
        device: object = None,
    ) -> Dataset[dict[Key, Value]]:
        """Stored images decoded to pixels, by :func:`tfwire.images.decode`, and resized.

        Elements are dicts, of single records or batches, as ``parse_example`` makes them.

        Args:
            names: By the key of a feature with stored images, the key of the pixels that replace
                it; the same key is right, too.
            size: The height and width to resize to, or one number for both. None: images keep their
                own; those of a batch that differ in it are an object array.
            channels: 1 (grey), 3 (RGB) or 4 (RGBA); 0: those of each image.
            num_threads: How many threads decode, an element each, ahead of time; 1: that which asks
                for elements. Only the speed depends on it. The adapters of :mod:`tfwire.torch` use
                as many as they are told to parse with, if these are more.
            library, device: As for :func:`tfwire.images.decode` of a column. "cuda" is the device
                that is current now.

        Raises:
            ImportError: Pillow is not installed (``pip install 'tfwire[images]'``), or torchvision,
                where it was asked for.
            ValueError: The size, channels, library or names make no sense; on iteration ParseError:
                an image cannot be decoded; the message says which, of which feature.

        Example:
            >>> file = "47494638376101000100800000ffffff0000002c00000000010001000002024401003b"
            >>> dataset = Dataset.from_tensor_slices({"image": [bytes.fromhex(file)] * 4}).batch(2)
            >>> next(iter(dataset.decode_images({"image": "pixels"}, size=8)))["pixels"].shape
            (2, 8, 8, 3)
        """
        check_type("names", names, Mapping, "a mapping of keys to keys")
        num_threads = integer("num_threads", num_threads, 1)
        options = {"size": size, "channels": channels, "library": library, "device": device}
        stage, columns = self._stage, None
        if isinstance(stage, Parse):
            columns = stage.in_columns()
        decoder = ImageDecoder(names, options, columns is not None)
        return self._dataset(DecodedImages(columns or stage, decoder, num_threads), "decode_images")
