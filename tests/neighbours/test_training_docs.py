"""The code of docs/training.md, for the packages that are there. Each in a process of its own."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from helpers.command import WITH_HELPERS

EXACT = """
from itertools import chain

def ids(batches):
    return [tuple(row) for batch in batches for row in np.asarray(batch["x"]).tolist()]

training.set_epoch(0)
order = ids(training)
assert 900 == len(set(order))
"""


@pytest.fixture
def run(tmp_path):
    """Runs the page's code for some packages, and checks after it."""

    def run(checks, *neighbours):
        for name in neighbours:
            if find_spec(name) is None:
                pytest.skip(f"{name} is not installed")
        page = "from helpers.documents import run_page\n"
        page += f"found = run_page('training.md', *{neighbours})"
        environment = {**WITH_HELPERS, "KERAS_BACKEND": "jax"}
        result = subprocess.run(
            [sys.executable, "-c", f"{page}\nglobals().update(found)\n{checks}"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert 0 == result.returncode, result.stderr

    return run


def test_hosts_share_every_epoch(run):
    checks = """
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
"""
    run(EXACT + checks)


def test_torch(run):
    checks = """
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
"""
    run(EXACT + checks, "torch", "torchdata")


def test_lightning(run):
    run("assert 16 == trainer.global_step", "torch", "torchdata", "lightning")


def test_accelerate(run):
    checks = "assert any(p.grad.abs().sum() > 0 for p in prepared.parameters())"
    run(checks, "torch", "torchdata", "accelerate")


def test_jax(run):
    checks = """
training.set_epoch(0)
assert order[:896] == ids([b for b in training][:14])
part.set_epoch(0)
assert order[:896] == ids(part)
assert (64, 8) == arrays["x"].shape
assert list(elements) == []
"""
    run(EXACT + checks, "jax")


def test_keras(run):
    checks = """
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
"""
    run(checks, "keras", "jax")
