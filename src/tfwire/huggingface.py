"""TFRecord files for Hugging Face datasets: prepared, in its cache, and streaming."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfwire import __version__
from tfwire._interface.files import (
    ObjectSource,
    either_word,
    input_paths,
    is_path,
    is_url,
    without_indexes,
)
from tfwire._interface.messages import column_names, integer, quoted
from tfwire._interface.partitions import infer_table, open_no_files, read_inputs, string_types
from tfwire.arrow import ArrowReader

try:
    import datasets
    import pyarrow
    from datasets.builder import Key
    from datasets.table import table_cast
except ImportError as _error:
    raise ImportError(
        "tfwire.huggingface needs datasets 4.4.2 or newer; pip install 'tfwire[huggingface]'"
    ) from _error

if TYPE_CHECKING:
    from tfwire.typing import BinaryAs, DataFiles, DetectedCompressionType, OnCorrupt, TableFeatures

__all__ = ["TFRecord"]

_SAMPLED_URLS = 16  # of a split, for inference


@dataclass(eq=False)
class _Config(datasets.BuilderConfig):
    """What a TFRecord builder was asked for. The fields are arguments of TFRecord."""

    specification: TableFeatures | None = None
    columns: list[str] | None = None
    features: datasets.Features | None = None
    batch_size: int = 1000
    binary_as: BinaryAs = "auto"
    compression_type: DetectedCompressionType = "auto"
    on_corrupt: OnCorrupt = "raise"

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: Any = None) -> str:
        """The name in the cache: by all arguments, the version of tfwire, and the paths, times and
        sizes of the files. What is prepared of other files is not taken for theirs."""
        sizes = [
            os.stat(file).st_size
            for files in (self.data_files or {}).values()
            for file in files
            if not is_url(file)
        ]
        arguments = {**config_kwargs, "tfwire": [__version__, sizes]}
        name: str = super().create_config_id(arguments, custom_features)
        return name


class TFRecord(datasets.ArrowBasedBuilder):
    """A ``datasets.ArrowBasedBuilder`` that reads TFRecord files of Examples or SequenceExamples.

    ``download_and_prepare`` and ``as_dataset`` make a Dataset in the cache of datasets, with
    ``num_proc`` in that many processes, each of which reads files of its own. What is in the cache
    is used again while the arguments, and the paths, times and sizes of the files, are the same.
    ``as_streaming_dataset`` makes an IterableDataset, which reads the files while it is iterated;
    every file is a shard.

    Numbers become ``Value("int64")`` and ``Value("float32")``, text ``Value("string")``, other
    strings ``Value("binary")``, and lists ``List``. A record without a feature of variable length
    has None. To decode images: ``dataset.cast_column("image", datasets.Image())``.

    Args:
        data_files: Paths, folders and patterns as for :func:`tfwire.read_records`, or URLs and
            their patterns as ``datasets.load_dataset`` takes them: one, a list, or a dict of these
            by split. Without a dict the split is "train".
        specification: The features as for Parser; of SequenceExamples an InferredSchema, or a pair
            of those of context and feature lists. None: they are inferred as by ``open_reader``; of
            URLs 16 of each split are looked at.
        columns: The names of the features to read; others are not parsed. None: those of
            ``features``, or all.
        features: A ``datasets.Features`` to which the columns are cast.
        batch_size: Records read at a time.
        binary_as: The type of strings, as for ``tfwire.arrow.open_reader``; "auto" is "string" for
            text, else "binary".
        compression_type, options: As for ``tfwire.read_records``.
        on_corrupt: What to do at damage, as for ``tfwire.read_records``.
        dataset_name: The name of its folder in the cache.
        arguments: Those of ``datasets.DatasetBuilder``: ``cache_dir``, ``token``,
            ``storage_options`` and others.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError, TypeError: An argument or the specification is not valid; a name in ``columns``
            or ``features`` is not in it.

    Example:
        >>> builder = TFRecord({"train": "train-*.tfrecord", "test": "test.tfrecord"})
        >>> builder.download_and_prepare()
        >>> builder.as_dataset(split="train").features
        {'name': Value('string'), 'x': List(Value('float32'), length=8)}
        >>> stream = TFRecord("train-*.tfrecord", columns=["name"]).as_streaming_dataset("train")
        >>> next(iter(stream))
        {'name': 'row 0'}
    """

    BUILDER_CONFIG_CLASS = _Config

    def __init__(
        self,
        data_files: DataFiles,
        specification: TableFeatures | None = None,
        *,
        columns: Iterable[str] | None = None,
        features: datasets.Features | None = None,
        batch_size: int = 1000,
        binary_as: BinaryAs = "auto",
        compression_type: DetectedCompressionType = "auto",
        on_corrupt: OnCorrupt = "raise",
        dataset_name: str = "tfrecord",
        options: DetectedCompressionType = None,
        **arguments: object,
    ) -> None:
        compression_type = either_word(compression_type, options, "auto")
        names = column_names(columns)
        _check_features(features, names)
        batch_size = integer("batch_size", batch_size, 1)
        self._specification = specification
        super().__init__(
            dataset_name=dataset_name,
            data_files=_as_patterns(data_files),
            specification=specification,
            columns=names,
            features=features,
            batch_size=batch_size,
            binary_as=binary_as,
            compression_type=compression_type,
            on_corrupt=on_corrupt,
            **arguments,
        )
        for split, files in self.config.data_files.items():
            files[:] = without_indexes(files)  # of those that datasets has found
            if not files:
                raise FileNotFoundError(f"data_files: no file matches for split {quoted(split)}")

    def _info(self) -> datasets.DatasetInfo:
        self._open()  # refuses what is not valid
        return datasets.DatasetInfo(features=self.config.features)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        dl_manager.download_config.use_etag = True  # a download is not taken for a newer file
        splits = dl_manager.download(self.config.data_files)
        if self._specification is None:
            files = [file for files in splits.values() for file in _sample(files)]
            self._specification = infer_table(
                list(map(_input, files)),
                self.config.compression_type,
                self.config.on_corrupt,
            )
            self._specification.complete &= len(files) == sum(map(len, splits.values()))
        reader = self._open()
        if not reader.types:  # the rows of a table without columns are lost in a Dataset
            raise ValueError("there are no columns to read")
        if self.info.features is None:
            schema = pyarrow.schema(reader)
            self.info.features = _usual_lists(datasets.Features.from_arrow_schema(schema))
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"files": list(files)})
            for split, files in splits.items()
        ]

    def _generate_shards(self, files: list[str]) -> Iterator[str]:
        yield from files

    def _generate_tables(self, files: list[str]) -> Iterator[tuple[Key, pyarrow.Table]]:
        reader, schema = self._open(), self.info.features.arrow_schema
        for shard, file in enumerate(files):
            with read_inputs(reader, [_input(file)]) as batches:
                for number, batch in enumerate(batches):
                    table = pyarrow.Table.from_batches([pyarrow.record_batch(batch)])
                    yield Key(shard, number), table_cast(table, schema)

    def _columns(self) -> list[str] | None:
        """The names of the features to read; None: all."""
        columns: list[str] | None = self.config.columns
        if columns is None and self.config.features is not None:
            columns = list(self.config.features)
        return columns

    def _open(self) -> ArrowReader:
        """A reader of no files, which opens some. Without a specification it has no columns."""
        config, specification = self.config, self._specification
        known = specification is not None
        binary_as = config.binary_as
        if specification is not None:
            binary_as = _usual_strings(specification, binary_as)
        elif isinstance(binary_as, Mapping):
            binary_as = "auto"
        return open_no_files(
            {} if specification is None else specification,
            columns=self._columns() if known else None,
            batch_size=config.batch_size,
            binary_as=binary_as,
            compression_type=config.compression_type,
            on_corrupt=config.on_corrupt,
        )


def _check_features(features: Any, columns: list[str] | None) -> None:
    if features is None:
        return
    if not isinstance(features, datasets.Features):
        raise TypeError(
            f"features must be a datasets.Features, found {type(features).__name__}; "
            "a specification of tfwire is the argument `specification`"
        )
    if columns is not None and set(columns) != set(features):
        raise ValueError(
            f"columns and features must have the same names, found {columns} and {list(features)}"
        )


def _as_patterns(data_files: Any) -> Any:
    """Paths and patterns as datasets takes them: str in lists and dicts."""
    if isinstance(data_files, Mapping):
        return {split: _as_patterns(files) for split, files in data_files.items()}
    if is_path(data_files):
        if is_url(name := os.fsdecode(data_files)):  # which datasets opens in its own way
            return name
        return [glob.escape(os.fsdecode(file)) for file in input_paths(data_files, None)]
    if isinstance(data_files, Iterable):
        items = list(data_files)
        if any(isinstance(item, Mapping) for item in items):  # of splits
            return [{**item, "path": _as_patterns(item["path"])} for item in items]
        files = map(_as_patterns, without_indexes(items))
        return [name for file in files for name in (file if isinstance(file, list) else [file])]
    raise TypeError(
        "data_files must be a path, pattern or URL, a list of them, or a dict of these by split, "
        f"found {type(data_files).__name__}"
    )


def _sample(files: list[str]) -> list[str]:
    """The files that say what the features are: to open a URL takes long."""
    urls = [file for file in files if is_url(file)]
    step = max(1, -(-len(urls) // _SAMPLED_URLS))
    return [file for file in files if not is_url(file)] + urls[::step]


def _input(file: str) -> Any:
    """A path, or a URL opened as datasets opens it, with the credentials of its user: ``open`` is
    replaced by datasets in modules of builders."""
    return ObjectSource(open(file, "rb"), file, owned=True) if is_url(file) else file


def _usual_strings(specification: TableFeatures, binary_as: BinaryAs) -> BinaryAs:
    """The types of strings, without large ones that nobody asked for: batches are small."""
    found = string_types(open_no_files(specification, binary_as=binary_as))
    if isinstance(binary_as, str):
        asked = dict.fromkeys(found, binary_as)
    else:
        asked = {**dict.fromkeys(found, "auto"), **binary_as}
    usual: dict[str, Any] = {
        name: kind.removeprefix("large_") if asked[name] == "auto" else kind
        for name, kind in found.items()
    }
    return usual


def _usual_lists(features: Any) -> Any:
    """Features with List for LargeList, as other datasets have them: batches are small."""
    if isinstance(features, datasets.LargeList):
        return datasets.List(_usual_lists(features.feature))
    if isinstance(features, dict):
        return type(features)({name: _usual_lists(each) for name, each in features.items()})
    if isinstance(features, datasets.List):
        return datasets.List(_usual_lists(features.feature), length=features.length)
    return features
