"""Training in JAX from TFRecord files: written in shards, read shuffled, batched and parsed.

    python examples/jax_training.py

Needs jax. Replace the model and the optimizer by your own; the rest can stay.
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import tfwire as tfw

FEATURES = {
    "x": tfw.FixedLenFeature([8], tfw.float32),
    "label": tfw.FixedLenFeature([], tfw.int64),
}


def write_dataset(folder, count=20_000):
    """Points of two classes, separated by a plane, in four files."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 8)).astype(np.float32)
    label = (x @ rng.normal(size=8) > 0.5).astype(np.int64)
    pattern = folder / "points-{shard:05d}-of-{shards:05d}.tfrecord"
    with tfw.ShardedWriter(pattern, num_shards=4) as writer:
        writer.write_columns({"x": x, "label": label})
    return writer.paths


def loss(weights, x, label):
    logits = x @ weights["w"] + weights["b"]
    return jnp.mean(jax.nn.softplus(logits) - label * logits)


@jax.jit
def step(weights, x, label):
    gradient = jax.grad(loss)(weights, x, label)
    return jax.tree.map(lambda w, g: w - 0.5 * g, weights, gradient)


def train(paths, epochs=5):
    dataset = (
        tfw.TFRecordDataset(paths)
        .shuffle(10_000, seed=1)
        .repeat(epochs)
        .batch(256, drop_remainder=True)  # one shape, compiled once
        .parse_example(FEATURES)
        .prefetch(2)  # read and parsed while the device computes
    )
    weights = {"w": jnp.zeros(8), "b": jnp.zeros(())}
    for batch in dataset:
        weights = step(weights, batch["x"], batch["label"])
    return weights


def main():
    with tempfile.TemporaryDirectory() as folder:
        paths = write_dataset(Path(folder))
        weights = train(paths)
        (data,) = tfw.Parser(FEATURES).parse_file(paths, batch_size=20_000)
    predicted = data["x"] @ np.asarray(weights["w"]) + float(weights["b"]) > 0
    accuracy = float(np.mean(predicted == data["label"]))
    print(f"accuracy after training: {accuracy:.1%}")
    assert accuracy > 0.97


if __name__ == "__main__":
    main()
