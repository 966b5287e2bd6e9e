"""The code of the pages, for the packages that are there, and the examples of the docstrings, as
they stand."""

from __future__ import annotations

import doctest
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import WITH_HELPERS, output_of_python
from helpers.documents import run_page
from helpers.paths import ROOT

pytestmark = pytest.mark.usefixtures("folder")


def needs(*packages):
    missing = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}")


# ---- In this process ----------------------------------------------------------------------------


@needs("polars", "pyarrow")
def test_arrow():
    run_page("arrow.md", "polars")
    first, second = tfw.decode_examples(list(tfw.read_records("pets.tfrecord")))
    assert [b"a", b"b"] == first["tags"]
    assert {"id"} == second.keys()


@needs("grain")
def test_datasets_of_grain():
    found = run_page("datasets.md", "grain")
    assert [256, 256, 256] == [len(batch["x"]) for batch in found["pipeline"]][:3]
    assert (256, 8) == next(iter(found["stream"]))["x"].shape


@needs("torch")
def test_datasets_of_torch():
    assert 1000 == sum(len(batch["x"]) for batch in run_page("datasets.md", "torch")["loader"])


@needs("datasets", "PIL")
def test_datasets_of_huggingface(folder, monkeypatch):
    import builders

    builders.use_folder(monkeypatch, folder)
    found = run_page("huggingface.md", "datasets", "huggingface")
    assert 1000 == len(found["rows"]) == sum(1 for _ in found["stream"])
    assert (32, 32) == found["picture"].size
    assert 1000 == sum(1 for _ in tfw.read_records("shuffled.tfrecord"))
    written, first = tfw.read_records("written.tfrecord"), tfw.read_records("images.tfrecord")
    assert list(first) == list(written)


@pytest.mark.parametrize(
    ("module", "package", "count"),
    [
        pytest.param(*case, marks=needs(case[1]))
        for case in [
            ("polars", "polars", 4),
            ("grain", "grain", 6),
            ("huggingface", "datasets", 5),
            ("torch", "torch", 16),
        ]
    ],
)
def test_examples_say_what_happens(folder, monkeypatch, module, package, count):
    """In a folder with files of four records."""
    if module == "huggingface":
        import builders

        builders.use_folder(monkeypatch, folder)
    rows = [{"name": f"row {i}", "x": np.full(8, i, np.float32)} for i in range(4)]
    for name in ("train-0", "train-1", "test"):
        tfw.write_records(f"{name}.tfrecord", rows)
    tfw.write_records("rows.tfrecord", [{"x": row["x"]} for row in rows])
    ours = import_module(f"tfwire.{module}")
    names = {name: getattr(ours, name) for name in getattr(ours, "__all__", ["scan_tfrecord"])}
    names |= {"tfw": tfw, "np": np, package: import_module(package)}
    result = doctest.testmod(ours, extraglobs=names)
    assert result.attempted >= count
    assert 0 == result.failed


# ---- In processes of their own: JAX and Lance warn at every fork after them ----------------------

EXACT = """
from itertools import chain

def ids(batches):
    return [tuple(row) for batch in batches for row in np.asarray(batch["x"]).tolist()]

training.set_epoch(0)
order = ids(training)
assert 900 == len(set(order))
"""
# The page, the packages whose blocks are run, and what holds after them.
CHECKS = {
    "duckdb": (
        "recipes-tables.md",
        ["duckdb"],
        """
assert [(0, 334, 999.0), (1, 333, 997.0), (2, 333, 998.0)] == heavy
query = "select count(*), max(name) from pets"
assert [(1000, "pet 999")] == database.sql(query).fetchall()
assert [(500,)] == duckdb.sql("select count(*) from 'light.parquet'").fetchall()
""",
    ),
    "records that a query finds": (
        "recipes-tables.md",
        ["duckdb", "polars"],
        """
assert [2, 5, 8, 11, 14, 17] == sorted(int(row["weight"][0]) for row in chosen)
assert {2} == {int(row["label"][0]) for row in chosen}
assert [b"pet 999", b"pet 998", b"pet 997"] == [row["name"][0] for row in top]
""",
    ),
    "pandas and parquet": (
        "recipes-tables.md",
        ["pandas", "pyarrow"],
        """
assert [499.5, 499.0, 500.0] == mean.tolist()
assert "large_string[pyarrow]" == frame["name"].dtype
table = pq.read_table("pets.parquet")
assert 1000 == table.num_rows
assert {f"pet {i}" for i in range(1000)} == set(table["name"].to_pylist())
""",
    ),
    "dask": (
        "recipes-tables.md",
        ["dask", "pandas", "pyarrow"],
        """
assert [999.0, 997.0, 998.0] == heaviest.sort_index().tolist()
assert 4 == pets.npartitions
assert 1000 == len(pets)
""",
    ),
    "daft": (
        "recipes-tables.md",
        ["daft", "pyarrow"],
        """
assert {"name": ["pet 0", "pet 1", "pet 2"]} == few
assert 1000 == pets.count_rows()
two = pets.select("weight", "label").limit(3)
assert {"weight", "label"} == two.to_pydict().keys()
assert 499500 == pets.sum("weight").to_pydict()["weight"][0]
assert 1000 == daft.from_arrow(reader).count_rows()
""",
    ),
    "lance": (
        "recipes-tables.md",
        ["lance", "pyarrow"],
        """
assert 333 == twos
rows = tfw.decode_examples(list(tfw.read_records("back.tfrecord")))
assert {b"pet %d" % i for i in range(1000)} == {row["name"][0] for row in rows}
""",
    ),
    "hosts share every epoch": (
        "training.md",
        [],
        EXACT
        + """
assert 8 == steps
epochs = []
for epoch in range(3):
    parts = []
    for host in hosts:
        host.set_epoch(epoch)
        parts.append(ids(host))
    assert [450, 450] == list(map(len, parts))
    assert set(order) == set(chain(*parts))
    epochs.append(set(parts[0]))
assert epochs[0] != epochs[1] != epochs[2]
""",
    ),
    "torch": (
        "training.md",
        ["torch", "torchdata"],
        EXACT
        + """
whole = StatefulDataLoader(stream, batch_size=None, collate_fn=collate)
stream.set_epoch(5)
first = ids(whole)
training.set_epoch(5)
assert first == ids(training)
stream.set_epoch(5)
elements = iter(whole)
before = [next(elements) for _ in range(4)]
resumed = StatefulDataLoader(stream, batch_size=None, collate_fn=collate)
resumed.load_state_dict(whole.state_dict())
assert first == ids(before) + ids(resumed)
assert 500 == sum(len(batch["x"]) for batch in loader)
assert 0 == checkpoint["epoch"]
assert 15 * 64 > sum(len(batch["x"]) for batch in to_device) >= 900
assert torch.bfloat16 == batch["x"].dtype
to_device.load_state_dict(json.loads(position))
assert [] == list(to_device)
""",
    ),
    "jax": (
        "training.md",
        ["jax"],
        EXACT
        + """
training.set_epoch(0)
assert order[:896] == ids([b for b in training][:14])
part.set_epoch(0)
assert order[:896] == ids(part)
assert (64, 8) == arrays["x"].shape
assert list(elements) == []
""",
    ),
    "images": (
        "train-images.md",
        ["torch"],
        """
def pictures(batches):
    return [batch["image"].cpu().numpy().tobytes() for batch in batches]

stream.set_epoch(0)
whole = pictures(loader)
assert 12 == len(whole)
assert (16, 3, 32, 32) == tuple(next(iter(loader))["image"].shape)
loader.load_state_dict(json.loads(checkpoint)["data"])
assert whole[5:] == pictures(loader)
stream.set_epoch(1)
assert not set(whole) & set(pictures(loader))
parts = [batches.shard_source(2, rank, "drop") for rank in range(2)]
assert [6, 6] == [sum(1 for _ in part) for part in parts]
""",
    ),
    "jax and torch": (
        "training.md",
        ["jax", "torch", "torchdata"],
        """
assert (64, 8) == columns["x"].shape
assert columns["x"].unsafe_buffer_pointer() == batch["x"].data_ptr()
""",
    ),
    "keras": (
        "training.md",
        ["keras", "jax"],
        """
assert 2 == len(history.history["loss"])
fresh = iter(pairs)
fresh.load_state_dict(state)
x, y = next(fresh)
assert ((64, 8), (64,)) == (x.shape, y.shape)
pairs.set_epoch(0)
again, count = iter(pairs), 0
for x2, _ in again:
    count += 1
    if (x2 == x).all():
        break
print(count)
assert 29 == count
""",
    ),
    "lightning": (
        "training.md",
        ["torch", "torchdata", "lightning"],
        """
assert 16 == trainer.global_step
""",
    ),
    "accelerate": (
        "training.md",
        ["torch", "torchdata", "accelerate"],
        """
assert any(p.grad.abs().sum() > 0 for p in prepared.parameters())
""",
    ),
}


@pytest.mark.parametrize(
    ("page", "packages", "checks"),
    [pytest.param(*check, marks=needs(*check[1])) for check in CHECKS.values()],
    ids=CHECKS,
)
def test_a_page_does_what_it_says(folder, page, packages, checks):
    run = (
        f"from helpers.documents import run_page\nglobals().update(run_page({page!r}, *{packages}))"
    )
    variables = {"PYTHONPATH": WITH_HELPERS["PYTHONPATH"], "KERAS_BACKEND": "jax"}
    output_of_python("-c", f"{run}\n{checks}", cwd=folder, **variables)


ROWS_OF_JAX = """
import jax.numpy as jnp, numpy as np, tfwire as tfw

ragged = tfw.RaggedTensor(jnp.arange(5), jnp.array([0, 2, 2, 5]))
for rows in (slice(None, None, -1), [2, 0], np.array([True, False, True])):
    chosen = ragged[rows]
    assert isinstance(chosen.values, jnp.ndarray)
    assert np.array([[0, 1], [], [2, 3, 4]], object)[rows].tolist() == chosen.to_list()
"""


@needs("jax")
def test_jax(folder):
    shown = output_of_python(ROOT / "examples" / "jax_training.py", cwd=folder)
    assert shown.startswith("accuracy after training: 99.")
    output_of_python("-c", ROWS_OF_JAX)
