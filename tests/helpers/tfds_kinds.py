"""Every feature connector of TFDS, in the shapes that it allows, with two examples of each."""

import numpy as np


def pixels(*shape, dtype=np.uint8, seed=0):
    random = np.random.default_rng(seed)
    if dtype == np.float32:
        return random.random(shape, np.float32)
    return random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def numbers(F):
    """Name: the feature, and two values."""
    kinds = {f"scalar {n}": (getattr(np, n), [5, 7]) for n in ("int8", "int16", "int32", "int64")}
    kinds |= {f"scalar {n}": (F.Scalar(getattr(np, n)), [5, 200]) for n in ("uint8", "uint16")}
    return kinds | {
        "scalar uint32": (np.uint32, [1, 2**32 - 1]),
        "scalar uint64": (F.Scalar(np.uint64), [1, 2**64 - 1]),
        "scalar float16": (np.float16, [0.5, -2]),
        "scalar float32": (np.float32, [0.1, np.inf]),
        "scalar float64": (np.float64, [0.1, 1e30]),
        "scalar bool": (np.bool_, [True, False]),
        "scalar string": (np.str_, ["a", "\u00e9"]),
        "scalar optional": (F.Scalar(np.int32, optional=True), [5, None]),
        "tensor": (F.Tensor(shape=(2, 3), dtype=np.float64), [np.ones((2, 3)), np.eye(2, 3)]),
        "tensor bool": (F.Tensor(shape=(3,), dtype=np.bool_), [[True, False, True], [False] * 3]),
        "tensor strings": (F.Tensor(shape=(2,), dtype=np.str_), [["a", "b"], ["", "c"]]),
        "tensor unknown": (F.Tensor(shape=(None,), dtype=np.uint8), [[1, 2], []]),
        "tensor unknown first": (
            F.Tensor(shape=(None, 2), dtype=np.int32),
            [np.ones((3, 2), np.int32), np.zeros((0, 2), np.int32)],
        ),
        "tensor unknown later": (
            F.Tensor(shape=(2, None), dtype=np.int32),
            [
                np.arange(6, dtype=np.int32).reshape(2, 3),
                np.arange(2, dtype=np.int32).reshape(2, 1),
            ],
        ),
        "tensor unknown strings": (F.Tensor(shape=(None,), dtype=np.str_), [["a"], []]),
        "tensor optional": (
            F.Tensor(shape=(2,), dtype=np.int64, optional=True),
            [[1, 2], None],
        ),
        "tensor optional float": (F.Tensor(shape=(), dtype=np.float32, optional=True), [1.5, None]),
        "tensor optional bool": (F.Tensor(shape=(), dtype=np.bool_, optional=True), [True, None]),
        "tensor optional string": (F.Tensor(shape=(), dtype=np.str_, optional=True), ["a", None]),
    }


def encoded(F):
    kinds = {}
    for encoding in ("bytes", "zlib"):
        for name in ("bool", "uint8", "int64", "uint64", "float16", "float64", "complex64"):
            dtype = np.dtype(name)
            values = [np.arange(6).reshape(2, 3).astype(dtype), np.ones((2, 3), dtype)]
            feature = F.Tensor(shape=(2, 3), dtype=dtype.type, encoding=encoding)
            kinds[f"{encoding} {name}"] = feature, values
        wide = [np.ones((3, 2), np.int16), np.zeros((0, 4), np.int16)]
        options = {"dtype": np.int16, "encoding": encoding}
        kinds |= {
            f"{encoding} scalar": (F.Tensor(shape=(), **options), [np.int16(3), np.int16(-1)]),
            f"{encoding} unknown": (
                F.Tensor(shape=(None,), **options),
                [wide[0][0], wide[1][:, 0]],
            ),
            f"{encoding} dynamic": (F.Tensor(shape=(None, None), **options), wide),
            f"{encoding} dynamic and known": (
                F.Tensor(shape=(None, 2, None), **options),
                [np.ones((3, 2, 1), np.int16), np.ones((1, 2, 4), np.int16)],
            ),
        }
    return kinds


def media(F):
    grey, rgb, rgba = (pixels(5, 4, channels) for channels in (1, 3, 4))
    wide = pixels(6, 3, 3, seed=1)
    return {
        "image": (F.Image(), [rgb, wide]),
        "image of a shape": (F.Image(shape=(5, 4, 3)), [rgb, rgb[::-1].copy()]),
        "image grey": (F.Image(shape=(None, None, 1)), [grey, grey[::-1].copy()]),
        "image with alpha": (F.Image(shape=(None, None, 4)), [rgba, rgba[::-1].copy()]),
        "image jpeg": (F.Image(encoding_format="jpeg", shape=(None, None, 1)), [grey, grey + 1]),
        "image uint16": (
            F.Image(shape=(None, None, 3), dtype=np.uint16),
            [pixels(5, 4, 3, dtype=np.uint16), np.full((2, 2, 3), 300, np.uint16)],
        ),
        "image uint16 grey": (
            F.Image(shape=(None, None, 1), dtype=np.uint16),
            [pixels(9, 8, 1, dtype=np.uint16), np.arange(64, dtype=np.uint16).reshape(8, 8, 1)],
        ),
        "image float32": (
            F.Image(shape=(None, None, 1), dtype=np.float32),
            [pixels(5, 4, 1, dtype=np.float32), pixels(2, 2, 1, dtype=np.float32)],
        ),
        "labeled image": (F.LabeledImage(labels=["a", "b", "c"]), [grey % 3, grey % 2]),
        "video": (
            F.Video(shape=(None, 5, 4, 3)),
            [np.stack([rgb] * 2), np.stack([rgb, rgb[::-1], rgb])],
        ),
        "video of a length": (F.Video(shape=(2, 5, 4, 1)), [np.stack([grey] * 2)] * 2),
        "video without frames": (F.Video(shape=(None, 5, 4, 3)), [np.stack([rgb]), []]),
        "audio": (F.Audio(), [np.arange(9), np.arange(0)]),
        "audio float": (
            F.Audio(dtype=np.float32),
            [np.ones(3, np.float32), np.ones(1, np.float32)],
        ),
        "audio of channels": (
            F.Audio(shape=(None, 2)),
            [np.ones((3, 2), int), np.ones((1, 2), int)],
        ),
        "bounding box": (
            F.BBoxFeature(),
            [F.BBox(0.0, 0.25, 0.5, 1.0), F.BBox(0.0, 0.0, 1.0, 1.0)],
        ),
        "bounding box of pixels": (
            F.BBoxFeature(bbox_format="XYXY"),
            [np.float32([1, 2, 3, 4])] * 2,
        ),
        "class label": (F.ClassLabel(names=["cat", "dog"]), ["dog", -1]),
        "class label by number": (F.ClassLabel(num_classes=3), [2, 0]),
        "text": (F.Text(), ["a \u00e9", ""]),
        "translation": (F.Translation(["en", "fr"]), [{"en": "a", "fr": "b"}] * 2),
        "translations": (
            F.TranslationVariableLanguages(["en", "fr"]),
            [{"en": "a", "fr": ["b", "c"]}, {"fr": "d"}],
        ),
    }


def nested(F):
    rgb = pixels(5, 4, 3)
    boxes = F.Sequence({"box": F.BBoxFeature(), "label": F.ClassLabel(num_classes=5)})
    return {
        "dict": (
            F.FeaturesDict(
                {"a": np.uint8, "b": {"c": F.Text(), "d": F.Tensor(shape=(2,), dtype=np.bool_)}}
            ),
            [{"a": 3, "b": {"c": "x", "d": [True, False]}}] * 2,
        ),
        "sequence": (F.Sequence(np.int32), [[1, 2, 3], []]),
        "sequence bool": (F.Sequence(np.bool_), [[True, False], []]),
        "sequence float64": (F.Sequence(np.float64), [[0.1], []]),
        "sequence of a length": (F.Sequence(np.uint8, length=2), [[1, 2], [3, 4]]),
        "sequence text": (F.Sequence(F.Text()), [["a", "b"], []]),
        "sequence class label": (F.Sequence(F.ClassLabel(names=["x", "y"])), [["x", "y"], []]),
        "sequence tensor": (
            F.Sequence(F.Tensor(shape=(2, 2), dtype=np.float32)),
            [np.ones((3, 2, 2), np.float32), np.ones((0, 2, 2), np.float32)],
        ),
        "sequence tensor unknown": (
            F.Sequence(F.Tensor(shape=(None,), dtype=np.int64), length=2),
            [np.arange(6).reshape(2, 3), np.arange(2).reshape(2, 1)],
        ),
        "sequence encoded": (
            F.Sequence(F.Tensor(shape=(2,), dtype=np.float64, encoding="zlib")),
            [np.ones((3, 2)), np.ones((1, 2))],
        ),
        "sequence dynamic": (
            F.Sequence(F.Tensor(shape=(None, None), dtype=np.int32, encoding="bytes")),
            [np.ones((3, 2, 2), np.int32), np.ones((1, 2, 3), np.int32)],
        ),
        "sequence image": (F.Sequence(F.Image(shape=(5, 4, 3))), [[rgb, rgb[::-1].copy()], [rgb]]),
        "sequence image empty": (F.Sequence(F.Image()), [[rgb], []]),
        "sequence dict": (
            boxes,
            [
                [
                    {"box": F.BBox(0.0, 0.0, 1.0, 1.0), "label": 3},
                    {"box": F.BBox(0.0, 0.5, 1.0, 1.0), "label": 1},
                ],
                [],
            ],
        ),
        "sequence sequence": (F.Sequence(F.Sequence(np.int16)), [[[1, 2], [], [3]], []]),
        "sequence sequence bool": (F.Sequence(F.Sequence(np.bool_)), [[[True], []], [[False]]]),
        "sequence sequence text": (F.Sequence(F.Sequence(F.Text())), [[["a"], ["b", "c"]], [[]]]),
        "sequence sequence tensor": (
            F.Sequence(F.Sequence(F.Tensor(shape=(2,), dtype=np.float32))),
            [[np.ones((2, 2), np.float32), np.zeros((1, 2), np.float32)], []],
        ),
        "sequence sequence sequence": (
            F.Sequence(F.Sequence(F.Sequence(np.int64))),
            [[[[1], [2, 3]], []], [[[]]]],
        ),
        "sequence sequence image": (
            F.Sequence(F.Sequence(F.Image(shape=(5, 4, 3)))),
            [[[rgb], [rgb, rgb]], [[rgb]]],
        ),
        "sequence video": (
            F.Sequence(F.Video(shape=(None, 5, 4, 3))),
            [[np.stack([rgb]), np.stack([rgb] * 2)], [np.stack([rgb])]],
        ),
        "sequence dict of sequences": (
            F.Sequence({"tokens": F.Sequence(F.Text()), "id": np.int32}),
            [[{"tokens": ["a", "b"], "id": 1}, {"tokens": [], "id": 2}], []],
        ),
    }


def datasets(F):
    rgb = pixels(5, 4, 3)
    step = {
        "observation": {
            "image": F.Image(shape=(5, 4, 3)),
            "state": F.Tensor(shape=(2,), dtype=np.float32),
        },
        "action": F.Tensor(shape=(3,), dtype=np.float64),
        "is_last": np.bool_,
        "instruction": F.Text(),
        "grasped": F.Sequence(np.int32),
        "depth": F.Tensor(shape=(None, None), dtype=np.uint16, encoding="zlib"),
    }

    def steps(count):
        return [
            {
                "observation": {"image": rgb, "state": np.full(2, n, np.float32)},
                "action": np.full(3, n / 3),
                "is_last": n == count - 1,
                "instruction": f"step {n}",
                "grasped": list(range(n)),
                "depth": np.full((n, 2), n, np.uint16),
            }
            for n in range(count)
        ]

    return {
        "dataset": (F.Dataset(step), [steps(3), steps(1)]),
        "dataset of numbers": (F.Dataset(np.float32), [[1, 2], [3]]),
        "dataset of a length": (F.Dataset({"a": np.int64}, length=2), [[{"a": 1}, {"a": 2}]] * 2),
        "dataset of sequences": (F.Dataset(F.Sequence(np.int32)), [[[1, 2], [3]], [[]]]),
    }


def all_kinds(F):
    return {**numbers(F), **encoded(F), **media(F), **nested(F), **datasets(F)}
