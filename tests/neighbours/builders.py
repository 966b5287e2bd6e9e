"""TFRecord files as datasets of Hugging Face, for the tests here."""

from __future__ import annotations

from typing import Any

import datasets
import pytest

from tfwire.huggingface import TFRecord


def use_folder(monkeypatch: pytest.MonkeyPatch, folder: Any) -> None:
    """No test meets what another prepared, nor the cache of who runs it."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(folder / "cache"))
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", str(folder / "downloads"))


def prepared(*arguments: Any, split: Any = "train", **options: Any) -> Any:
    builder = TFRecord(*arguments, **options)
    builder.download_and_prepare()
    return builder.as_dataset(split=split)


def streamed(*arguments: Any, split: Any = "train", **options: Any) -> Any:
    return TFRecord(*arguments, **options).as_streaming_dataset(split=split)


both = pytest.mark.parametrize("read", [prepared, streamed])
