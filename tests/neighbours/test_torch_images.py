"""JPEGs decoded by torchvision: itself where it can be loaded, and a fake of it, which stands for a
GPU, too."""

from __future__ import annotations

import io
import sys
import types
from importlib import import_module
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
import torch
from PIL import Image

import tfwire as tfw
from helpers.view.pictures import others, pngs
from tfwire import images
from tfwire.images import _columns, decode
from tfwire.torch import TFRecordIterableDataset, ThreadLoader, as_tensors

PNGS, OTHERS = pngs(), others()
STORED = [*OTHERS.values(), *PNGS.values()]


def jpeg(height, width, mode="RGB", **options):
    smooth = np.random.default_rng(height).integers(0, 256, (9, 9, 3), np.uint8)
    image = Image.fromarray(smooth).resize((width, height), Image.Resampling.BICUBIC)
    file = io.BytesIO()
    image.convert(mode).save(file, "JPEG", **options)
    return file.getvalue()


JPEGS = [
    jpeg(40, 61, mode, quality=quality, subsampling=subsampling, progressive=progressive)
    for mode in ("RGB", "L")
    for quality, progressive in ((60, False), (92, True))
    for subsampling in (0, 1, 2)
]


class Fake:
    """torchvision.io, which decodes by Pillow and writes down what it was given.

    Attributes:
        calls: For every call its images, mode and device.
        fails: Whether a device refuses.
        events: What was recorded and waited for.
        current: The number of the current device.
    """

    class ImageReadMode:
        UNCHANGED, GRAY, RGB = range(3)

    def __init__(self):
        self.calls, self.fails, self.events, self.current = [], False, [], 0

    def new_event(self, blocking):
        assert blocking
        waited = types.SimpleNamespace()
        waited.record = self.events.append
        waited.synchronize = lambda: self.events.append("waited for")
        return waited

    def decode_jpeg(self, data, mode, device="cpu"):
        self.calls.append((data, mode, device))
        if device != "cpu" and self.fails:
            raise RuntimeError("nvJPEG is not there")
        if isinstance(data, torch.Tensor):
            return self._one(data, mode)
        return [self._one(each, mode) for each in data]

    def _one(self, data, mode):
        try:
            pixels = decode(data.numpy().tobytes(), (0, 1, 3)[mode], library="pillow")
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        return torch.from_numpy(pixels).permute(2, 0, 1)


@pytest.fixture
def fake(monkeypatch):
    """A torchvision, and a CUDA device, that are not there."""
    found = Fake()
    package, module = types.ModuleType("torchvision"), types.ModuleType("torchvision.io")
    package.__spec__ = ModuleSpec("torchvision", None, is_package=True)
    package.io = module
    module.decode_jpeg, module.ImageReadMode = found.decode_jpeg, found.ImageReadMode
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.io", module)
    monkeypatch.delitem(sys.modules, "tfwire.images._torchvision", raising=False)
    monkeypatch.delattr(images, "_torchvision", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: ("stream of", device.type))
    monkeypatch.setattr(torch.cuda, "Event", found.new_event)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: found.current)
    monkeypatch.setattr(torch.Tensor, "to", _to)
    _columns.fastest_library.cache_clear()
    yield found
    for name in ("tfwire.images._torchvision",):
        sys.modules.pop(name, None)
    if hasattr(images, "_torchvision"):
        del images._torchvision
    _columns.fastest_library.cache_clear()


_real_to = torch.Tensor.to


def _to(tensor, *words, **options):
    """Tensors stay: there is no device."""
    is_cuda = any(getattr(word, "type", word) == "cuda" for word in words)
    return tensor if is_cuda else _real_to(tensor, *words, **options)


def column(stored):
    ends = np.cumsum([0, *map(len, stored)])
    return tfw.BytesColumn(bytearray(b"".join(stored)), ends)


# ---- On the CPU -------------------------------------------------------------------------------


def test_jpegs_of_columns_go_to_torchvision(fake):
    found = decode(column(STORED), 3, size=8, num_threads=2)
    usual = [OTHERS[name] for name in ("jpeg_grey", "jpeg_rgb", "jpeg_progressive")]
    assert sorted(usual) == sorted(data.numpy().tobytes() for data, *_ in fake.calls)
    assert {(2, "cpu")} == {call[1:] for call in fake.calls}
    fake.calls.clear()
    assert np.abs(found.astype(int) - decode(STORED, 3, size=8, library="pillow")).max() <= 1
    decode(STORED, 4)
    decode(STORED[0])
    decode(STORED[0], 1, size=4, library="pillow")
    assert [] == fake.calls
    decode(STORED[1], 1, library="torchvision")
    assert 1 == len(fake.calls)


def test_columns_are_not_copied(fake):
    stored = column(JPEGS)
    decode(stored)
    begin, end = stored.data.ctypes.data, stored.data.ctypes.data + len(stored.data)
    addresses = [data.data_ptr() for data, *_ in fake.calls]
    assert [begin + int(offset) for offset in stored.offsets[:-1]] == addresses
    assert end > max(addresses)


@pytest.mark.parametrize("channels", [0, 1, 3])
def test_pixels_are_those_of_pillow(fake, channels):
    for stored in (JPEGS[:6], STORED):
        found, expected = decode(stored, channels), decode(stored, channels, library="pillow")
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_what_torchvision_refuses_is_told_by_pillow(fake):
    stored = [*JPEGS, JPEGS[0][:-100]]
    message = f"image {len(JPEGS)}: JPEG image of {len(stored[-1])} bytes is truncated"
    for options in ({}, {"device": "cuda"}):
        with pytest.raises(tfw.ParseError, match=message):
            decode(stored, **options)


# ---- On a device ------------------------------------------------------------------------------


def test_a_device_gets_all_jpegs_in_one_call(fake):
    found = decode(column(STORED), 3, size=8, device="cuda", num_threads=2)
    assert (len(STORED), 8, 8, 3) == tuple(found.shape)
    assert found.permute(0, 3, 1, 2).is_contiguous()
    ((data, mode, device),) = fake.calls
    assert (3, 2, "cuda") == (len(data), mode, device)
    assert [("stream of", "cuda"), "waited for"] == fake.events
    assert np.abs(found.numpy().astype(int) - decode(STORED, 3, size=8)).max() <= 1


def test_without_a_size_tensors_keep_their_shapes(fake):
    same = decode(JPEGS[:6], device="cuda")
    assert np.array_equal(decode(JPEGS[:6]), same.numpy())
    mixed = decode(STORED, device="cuda")
    assert list(map(np.shape, decode(STORED))) == [tuple(each.shape) for each in mixed]
    assert (40, 61, 3) == tuple(decode(JPEGS[0], device="cuda").shape)
    assert (0, 8, 8, 3) == tuple(decode([], 3, size=8, device="cpu").shape)
    assert [] == decode([], device="cpu")


def test_a_device_that_refuses_is_a_warning(fake):
    fake.fails = True
    with pytest.warns(tfw.TfwireWarning, match="3 JPEGs are decoded by the CPU: nvJPEG"):
        found = decode(JPEGS[:3], device="cuda")
    assert np.array_equal(decode(JPEGS[:3]), found.numpy())


def test_a_jpeg_without_its_end_is_not_for_a_device(fake):
    """nvJPEG may give grey for what is missing."""
    stored = [JPEGS[0], JPEGS[1] + b"more"]
    found = decode(stored, device="cuda")
    assert [1] == [len(data) for data, *_ in fake.calls if isinstance(data, list)]
    assert np.array_equal(decode(stored), found.numpy())


def test_devices_are_checked(fake, monkeypatch):
    with pytest.raises(ValueError, match="device='nonsense' is no device"):
        decode(JPEGS, device="nonsense")
    for device in ("cuda:99", "meta", "mps"):
        with pytest.raises(ValueError, match=r"finds 2 device|must be of type 'cpu' or"):
            decode(JPEGS, device=device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for call in (decode, lambda stored, **how: tfw.Dataset.range(1).decode_images({}, **how)):
        with pytest.raises(ValueError, match="device='cuda': torch finds no device of CUDA"):
            call(JPEGS, device="cuda")


# ---- Pipelines --------------------------------------------------------------------------------


@pytest.fixture
def dataset(tmp_path):
    path = tmp_path / "images.tfrecord"
    tfw.write_records(path, [{"x": each, "n": i} for i, each in enumerate(JPEGS)])
    spec = {"x": tfw.FixedLenFeature([], tfw.string), "n": tfw.FixedLenFeature([], tfw.int64)}
    return tfw.TFRecordDataset(str(path), indexed=True).batch(4).parse_example(spec)


@pytest.mark.parametrize("device", [None, "cuda"])
def test_pipelines_give_tensors(fake, dataset, device):
    pixels = dataset.decode_images({"x": "image"}, size=8, channels=3, device=device)
    expected = decode(JPEGS, 3, size=8)
    for loader in (
        torch.utils.data.DataLoader(TFRecordIterableDataset(pixels), batch_size=None),
        ThreadLoader(TFRecordIterableDataset(pixels), batch_size=None, num_threads=3),
    ):
        batches = list(loader)
        assert list(range(len(JPEGS))) == torch.cat([b["n"] for b in batches]).tolist()
        found = torch.cat([batch["image"] for batch in batches])
        assert np.abs(found.numpy().astype(int) - expected).max() <= 1
    in_one_call = [len(data) for data, *_ in fake.calls if isinstance(data, list)]
    assert in_one_call == ([4, 4, 4] * 2 if device else [])


def test_threads_decode_on_the_device_that_was_current(fake, dataset):
    fake.current = 1
    pixels = dataset.decode_images({"x": "image"}, size=8, num_threads=2, device="cuda")
    fake.current = 0  # as it is in every new thread
    assert len(list(pixels)) == len(fake.calls) > 1
    assert {torch.device("cuda:1")} == {device for *_, device in fake.calls}


def test_single_elements_go_to_torchvision_too(fake, dataset):
    singles = dataset.unbatch().decode_images({"x": "image"}, channels=3)
    assert len(JPEGS) == len(list(singles))
    assert len(JPEGS) == len(fake.calls)


def test_threads_of_an_adapter_decode(fake, dataset):
    pixels = dataset.decode_images({"x": "image"}, size=8, channels=3)
    stage = TFRecordIterableDataset(pixels, num_threads=3)._dataset._stage
    assert "DecodedImages" == type(stage).__name__
    assert 3 == stage.arguments[1]


def test_images_of_several_shapes_are_tensors():
    found = as_tensors({"image": decode([JPEGS[0], OTHERS["jpeg_rgb"]], library="pillow")})
    assert [(40, 61, 3), (40, 60, 3)] == [tuple(image.shape) for image in found["image"]]
    assert all(isinstance(image, torch.Tensor) for image in found["image"])


# ---- torchvision itself -----------------------------------------------------------------------


def real():
    try:
        import_module("torchvision")
    except (ImportError, RuntimeError):  # none, or one for another torch
        return False
    return True


def needs_torchvision(test):
    quiet = pytest.mark.filterwarnings("ignore:.*TorchVision are deprecated:DeprecationWarning")
    missing = pytest.mark.skipif(not real(), reason="no torchvision that fits this torch")
    return quiet(missing(test))


@needs_torchvision
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_torchvision_decodes_as_pillow_does(channels):
    stored = [*JPEGS, *STORED]
    found = decode(stored, channels, num_threads=2)
    expected = decode(stored, channels, library="pillow")
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@needs_torchvision
@pytest.mark.filterwarnings("error")
def test_a_warning_of_torchvision_that_is_an_error_does_no_harm():
    assert np.array_equal(decode(JPEGS[:6]), decode(JPEGS[:6], library="pillow"))


@needs_torchvision
@pytest.mark.parametrize("size", [8, (50, 70), (33, 200)])
def test_torchvision_resizes_nearly_as_pillow_does(size):
    found = decode(JPEGS, 3, size=size).astype(int)
    difference = np.abs(found - decode(JPEGS, 3, size=size, library="pillow"))
    assert difference.max() <= 1
    assert (difference > 0).mean() < 0.2


@needs_torchvision
@pytest.mark.parametrize("content", JPEGS[::5])
def test_an_image_cut_anywhere_is_refused_or_whole(content):
    whole = decode(content)
    for length in range(0, len(content), 7):
        try:
            found = decode(content[:length], library="torchvision")
        except ValueError:
            continue
        assert np.array_equal(whole, found), length


def test_a_torchvision_that_does_not_load_is_none(monkeypatch):
    for name in ("torchvision", "torchvision.io"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "tfwire.images._torchvision", raising=False)
    monkeypatch.delattr(images, "_torchvision", raising=False)
    _columns.fastest_library.cache_clear()
    with pytest.raises(ImportError, match="a torchvision that fits it; pip install torchvision"):
        decode(JPEGS, library="torchvision")
    monkeypatch.undo()
    _columns.fastest_library.cache_clear()
