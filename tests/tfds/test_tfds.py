"""tfwire.tfds, with folders that tfwire wrote; tests/beside_tfds compares values with TFDS."""

import json
import pickle

import numpy as np
import pytest

import tfwire as tfw
import tfwire.tfds
from helpers.prepared import group, pets, prepare, sequence, tensor
from tfwire.tfds import SkipDecoding

pytestmark = pytest.mark.outside_c
pytest.importorskip("PIL")


@pytest.fixture
def folder(tmp_path):
    return pets(tmp_path / "pets" / "1.0.0")


@pytest.fixture
def numbers(tmp_path):
    rows = [{"n": n} for n in range(250)]
    splits = {"train": [[*rows[:90]], [*rows[90:200]]], "test": [rows[200:]]}
    return prepare(tmp_path / "numbers" / "2.0.0", group(n=tensor("uint8")), splits)


def test_examples_are_decoded(folder):
    data = tfwire.tfds.open(folder)
    example = data["train"][3]
    assert (2, 3, 3) == example["image"].shape
    assert 3 == example["image"][0, 0, 0]
    assert (b"pet 3", np.int64(1)) == (example["name"], example["label"])
    assert "dog" == data.info.classes["label"].int2str(example["label"])
    assert 1 == data.info.classes["label"].str2int("dog")
    assert ("image", "label") == data.info.supervised_keys
    assert ("pets", "1.0.0", "Pets.") == data.info[:1] + data.info[2:4]


def test_a_dataset_folder_with_one_version_is_enough(folder):
    assert 4 == len(tfwire.tfds.open(folder.parent)["train"])
    pets(folder.parent / "1.1.0")
    with pytest.raises(ValueError, match=r"found '1\.0\.0', '1\.1\.0'; open one of these"):
        tfwire.tfds.open(folder.parent)
    with pytest.raises(FileNotFoundError, match="no dataset of TFDS"):
        tfwire.tfds.open(folder.parent / "nothing")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("train[:10%]", range(20)),
        ("train[195:]+test[:2]", range(195, 202)),
        ("train[-1%:]", range(198, 200)),
        ("train[1shard]", range(90, 200)),
        ("all", range(250)),
    ],
)
def test_expressions_choose_examples(numbers, expression, expected):
    split = tfwire.tfds.open(numbers)[expression]
    assert list(expected) == [int(example["n"]) for example in split]
    assert list(expected) == split.columns()["n"].tolist()
    assert list(expected) == [int(example["n"]) for example in split.dataset()]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("valid", "there is no split 'valid'; found 'train', 'test'"),
        ("train[5]", "one example is a slice"),
        ("train[:201]", "not within its 200 examples"),
        ("train[:101%]", "a percentage from -100 to 100"),
        ("train[a]", "is not understood"),
        ("all[:5]", "takes no slice"),
    ],
)
def test_other_expressions_are_refused(numbers, expression, reason):
    with pytest.raises(ValueError, match=reason):
        tfwire.tfds.open(numbers)[expression]


def test_parts_are_even(numbers):
    data = tfwire.tfds.open(numbers)
    parts = data["train[:10]"].even_splits(3)
    assert [4, 3, 3] == [len(part) for part in parts]
    assert [3, 3, 3] == [len(p) for p in data["train[:10]"].even_splits(3, drop_remainder=True)]
    assert list(range(10)) == [int(example["n"]) for example in parts[0] + parts[1] + parts[2]]
    assert 2 * 4 == len(data.split("train[:4%]", rounding="pct1_dropremainder"))


def test_datasets_are_shuffled_batched_and_resumed(numbers):
    split = tfwire.tfds.open(numbers)["train"]
    shuffled = [int(example["n"]) for example in split.dataset(shuffle=True, seed=1)]
    assert list(range(200)) == sorted(shuffled) != shuffled
    batches = list(split.dataset(batch_size=64))
    assert [64, 64, 64, 8] == [len(batch["n"]) for batch in batches]
    iterator = iter(split.dataset(shuffle=True, seed=1))
    next(iterator)
    resumed = iter(split.dataset(shuffle=True, seed=1))
    resumed.load_state_dict(iterator.state_dict())
    assert shuffled[1:] == [int(example["n"]) for example in resumed]


def test_a_split_is_copied_to_another_process(numbers):
    split = tfwire.tfds.open(numbers)["test"]
    assert split[0] == pickle.loads(pickle.dumps(split))[0]


def test_a_file_that_does_not_fit_its_description_is_named(numbers):
    path = next(numbers.glob("*test*"))
    tfw.write_records(path, [tfw.encode_example({"n": 1})] * 3)
    with pytest.raises(
        ValueError, match=r"tfrecord-00000-of-00001: .*50 examples.*found 3 records"
    ):
        tfwire.tfds.open(numbers)["test"][0]


@pytest.mark.parametrize(
    ("wrong", "found"),
    [(None, "NoneType"), (3, "int"), (["a"], "list"), (b"a", "bytes"), ("", "an empty string")],
)
def test_a_folder_of_another_type_is_refused(wrong, found):
    with pytest.raises(
        (TypeError, ValueError), match=f"folder must be a path or URL, found {found}"
    ):
        tfwire.tfds.open(wrong)


def test_features_are_chosen_and_left_encoded(folder):
    data = tfwire.tfds.open(folder, columns=["image"], decoders={"image": SkipDecoding()})
    example = data["train"][0]
    assert ["image"] == list(example)
    assert example["image"].startswith(b"\x89PNG")
    data = tfwire.tfds.open(folder, decoders={"name": bytes.decode})
    assert "pet 0" == data["train"][0]["name"]
    for options in {"columns": ["imag"]}, {"decoders": {"imag": SkipDecoding()}}:
        with pytest.raises(ValueError, match="no feature 'imag'; found 'image', 'label', 'name'"):
            tfwire.tfds.open(folder, **options)


def test_a_value_that_cannot_be_decoded_is_named(tmp_path):
    image = {"image": {"dtype": "uint8"}}
    folder = prepare(tmp_path / "a" / "1.0.0", group(image=image), {"train": [[{"image": b"no"}]]})
    with pytest.raises(ValueError, match=r"split 'train'.*record 0: feature 'image': 2 bytes"):
        tfwire.tfds.open(folder)["train"][0]


def test_a_folder_without_features_takes_them(folder):
    (folder / "features.json").unlink()
    with pytest.raises(ValueError, match="pass features="):
        tfwire.tfds.open(folder)
    features = {"label": tfw.FixedLenFeature([], tfw.int64)}
    assert {"label": 1} == tfwire.tfds.open(folder, features=features)["train"][0]


def test_other_file_formats_are_named(folder):
    info = json.loads((folder / "dataset_info.json").read_text())
    (folder / "dataset_info.json").write_text(json.dumps({**info, "fileFormat": "array_record"}))
    with pytest.raises(ValueError, match="the files are array_record, expected tfrecord"):
        tfwire.tfds.open(folder)


def test_names_of_files_follow_their_template(folder):
    info = json.loads((folder / "dataset_info.json").read_text())
    info["splits"][0]["filepathTemplate"] = "{SPLIT}-{SHARD_INDEX}.{FILEFORMAT}"
    (folder / "dataset_info.json").write_text(json.dumps(info))
    for path in folder.glob("*.tfrecord-*"):
        path.rename(folder / f"train-{path.name[-14:-9]}.tfrecord")
    assert 4 == len(list(tfwire.tfds.open(folder)["train"]))


@pytest.fixture
def episodes(tmp_path):
    """RLDS: three episodes of two, three and four steps."""
    step = group(action=tensor("float64", 2), is_last=tensor("bool"), text={"text": {}})
    features = group(steps=sequence(step, connector="Dataset"), id=tensor("int32"))
    rows = [
        {
            "id": n,
            "steps/action": np.arange(2 * count, dtype=np.float32) + 10 * n,
            "steps/is_last": [k == count - 1 for k in range(count)],
            "steps/text": [f"{n} {k}" for k in range(count)],
        }
        for n, count in enumerate([2, 3, 4])
    ]
    return prepare(tmp_path / "robot" / "1.0.0", features, {"train": [rows]})


def test_steps_are_a_dataset_in_every_episode(episodes):
    episode = tfwire.tfds.open(episodes)["train"][1]
    assert 3 == len(episode["steps"])
    steps = list(episode["steps"])
    assert [10.0, 11.0] == steps[0]["action"].tolist()
    assert (np.float64, np.bool_) == (steps[0]["action"].dtype, type(steps[0]["is_last"]))
    assert [False, False, True] == [bool(step["is_last"]) for step in steps]


def test_a_decoder_that_fails_is_named_with_its_place(folder, episodes):
    def fails(stored):
        raise KeyError("no such word")

    said = "feature 'name': its decoder raised KeyError: 'no such word'"
    data = tfwire.tfds.open(folder, decoders={"name": fails})["train"]
    for read in (lambda: data[3], lambda: data.columns(), lambda: list(data.dataset(batch_size=4))):
        with pytest.raises(ValueError, match=rf"split 'train', .*, record [03]: {said}") as found:
            read()
        assert isinstance(found.value.__cause__.__cause__.__cause__, KeyError)
    data = tfwire.tfds.open(episodes, decoders={"steps": {"text": fails}})["train"]
    steps = list(data)[2]["steps"]
    for read in (lambda: list(steps), lambda: next(iter(steps.skip(0)))):
        with pytest.raises(
            ValueError, match=r"split 'train', .*, record 2: step 0: feature 'steps/text'"
        ):
            read()
    with pytest.raises(ValueError, match="step 0 of example 0: feature 'steps/text': its decoder"):
        list(data.steps())


def test_steps_are_mixed_over_episodes(episodes):
    split = tfwire.tfds.open(episodes)["train"]
    flat = [step["text"] for step in split.steps()]
    assert [b"0 0", b"0 1", b"1 0", b"1 1", b"1 2"] == flat[:5]
    mixed = list(split.steps(shuffle=True, seed=3, numbered=True))
    assert sorted(flat) == sorted(step["text"] for step in mixed)
    assert all(step["text"] == b"%d %d" % (step["episode"], step["step"]) for step in mixed)
    assert flat != [step["text"] for step in mixed]
    with pytest.raises(ValueError, match="holds steps"):
        tfwire.tfds.open(episodes, columns=["id"])["train"].steps()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"splits": {"train": 3}}, "its splits are not those of TFDS"),
        ({"splits": [{"name": "train", "shardLengths": ["3", "-1"]}]}, "a count, found '-1'"),
        ({"splits": [{"name": "train", "shardLengths": [3.5]}]}, r"a count, found 3\.5"),
        ({"splits": [{"name": "train", "numShards": "x"}]}, "its splits are not those of TFDS"),
        ({"splits": [{"name": "train", "numShards": 10**9}]}, "1000000000 files, more than"),
        ({"splits": [{"name": "a"}, {"name": "a"}]}, "split 'a' is there twice"),
        ({"splits": [{"name": "a", "filepathTemplate": "{SPLIT:>9}"}]}, "filepathTemplate"),
        ({"location": "x"}, "not as TFDS describes it"),
        ({"supervisedKeys": {"tuple": {"items": 5}}}, "not as TFDS describes it"),
    ],
)
def test_a_dataset_info_that_is_wrong_is_named(folder, changed, message):
    path = folder / "dataset_info.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    with pytest.raises(ValueError, match=message) as caught:
        tfwire.tfds.open(folder)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    "feature",
    [
        {"image": "x"},
        {"image": {"dtype": "foo"}},
        tensor([1]),
        tensor("int64", "a"),
        tensor("int64", -7),
        sequence(tensor("int64"), "abc"),
        {"classLabel": {"numClasses": "x"}},
    ],
)
def test_a_features_json_that_is_wrong_is_named(folder, feature):
    (folder / "features.json").write_text(json.dumps(group(label=feature)))
    with pytest.raises(ValueError, match="pets") as caught:
        tfwire.tfds.open(folder)
    assert str(folder) in str(caught.value)


def test_an_image_that_is_damaged_is_named_in_columns_too(tmp_path):
    image = {"image": {"shape": {"dimensions": ["-1", "-1", "1"]}, "dtype": "uint16"}}
    rows = [{"image": b"\x89PNG\r\n\x1a\n" + bytes(n)} for n in (0, 16, 17, 25)]
    folder = prepare(tmp_path / "x" / "1.0.0", group(image=image), {"train": [rows]})
    split = tfwire.tfds.open(folder)["train"]
    for number in range(4):
        with pytest.raises(ValueError, match=f"record {number}: feature 'image'"):
            split[number]
        with pytest.raises(ValueError, match=f"record {number}: feature 'image'"):
            split.columns([number])


def test_one_number_in_an_array_is_an_example(numbers):
    split = tfwire.tfds.open(numbers)["train"]
    assert {"n": 7} == split[np.array(7)]


def test_a_class_without_a_name(folder):
    (folder / "label.labels.txt").write_text("cat\n")
    label = tfwire.tfds.open(folder).info.classes["label"]
    assert ["cat"] == label.int2str([0])
    with pytest.raises(ValueError, match="class 1 has no name: 1 of 2 have one"):
        label.int2str(1)
