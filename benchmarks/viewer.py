"""Times and memory of tfwire view for a large file of photographs, and the speed of its search
beside that of verifying by CPU time, of short records, too: the figures of docs/viewer.md.

    python benchmarks/viewer.py [GIGABYTES] [FOLDER]
"""

from __future__ import annotations

import http.client
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

import tfwire as tfw
import workloads
from tfwire.view._dataset import DataSet
from tfwire.view._records import BrowsedFile
from tfwire.view._search import Search

PHOTOGRAPHS = 100  # different ones, again and again
SIDE = 250  # pixels: about 100 kB of noise


def photograph(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "jpeg", quality=98)
    return out.getvalue()


def write(path: Path, num_bytes: float) -> int:
    """A file of about this size; the number of its records."""
    records = [tfw.encode_example({"image": photograph(i), "label": i}) for i in range(PHOTOGRAPHS)]
    rounds = int(num_bytes / sum(map(len, records)))
    with tfw.TFRecordWriter(path) as writer:
        for _ in range(rounds):
            writer.write_many(records)
    return rounds * PHOTOGRAPHS


def measure(path: Path, count: int) -> str:
    """A row of the figures, with the index that is there or without."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "tfwire", "view", "--no-open", str(path)]
    viewer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert viewer.stdout is not None
    url = urlsplit(viewer.stdout.readline().strip())

    def seconds(target: str, since: float | None = None) -> str:
        since = time.perf_counter() if since is None else since
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
        connection.request("GET", url.path + target)
        response = connection.getresponse()
        response.read()
        late = "" if response.status == 200 else ", and was not found in time"
        return f"{time.perf_counter() - since:.3f} s{late}"

    try:
        times = {
            "first page, from the command on": seconds("", begin),
            "the middle record": seconds(f"?view=record&n={count // 2}"),
            "the last page": seconds(f"?start={count - 10}"),
            "features": seconds("?view=features"),
        }
        status = Path(f"/proc/{viewer.pid}/status").read_text(encoding="ascii")
    finally:
        viewer.kill()
        viewer.communicate()
    memory = int(status.partition("VmHWM:")[2].split()[0]) / 1000
    return ", ".join([*(f"{name} {found}" for name, found in times.items()), f"{memory:.0f} MB"])


def search_rates(paths: list[Path]) -> str:
    """The speed of searches for values that few records or none have, as part of that of verifying:
    the best of three rounds in turn."""
    dataset = DataSet([BrowsedFile(str(path)) for path in paths])
    words = {
        "text": "no such text",
        "a number": "417417",
        "a number of one byte": "77",
        "a float": "2.71828",
    }
    words["a number that is a tag"] = "10"

    def find(text: str) -> None:
        search = Search(dataset, None, text)
        search.start()
        while not search.is_done and search.is_running:
            time.sleep(0.002)

    def verify() -> None:
        for _ in tfw.verify_files(paths, num_threads=os.cpu_count() or 1):
            pass

    steps: dict[str, Callable[[], object]] = {"": verify}
    steps |= {name: partial(find, text) for name, text in words.items()}
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(3):
        for name, step in steps.items():
            begin = time.process_time()
            step()
            best[name] = min(best[name], time.process_time() - begin)
    verified = best.pop("")
    return ", ".join(f"{name} {verified / seconds:.2f}" for name, seconds in best.items())


def main(arguments: list[str]) -> None:
    gigabytes = float(arguments[0]) if arguments else 10
    with tempfile.TemporaryDirectory(dir=arguments[1] if len(arguments) > 1 else None) as folder:
        path = Path(folder) / "photographs.tfrecord"
        count = write(path, gigabytes * 1e9)
        print(f"{count:,} records, {path.stat().st_size / 1e9:.2f} GB")
        print("without an index:", measure(path, count))
        tfw.RecordIndex.build(path).save()
        print("with an index:   ", measure(path, count))
        print("search / verify, photographs:", search_rates([path]))
    for name in ("W1", "W5"):
        path = workloads.workloads()[name].path
        with tempfile.TemporaryDirectory() as folder:
            large = Path(folder) / path.name
            large.write_bytes(10 * path.read_bytes())
            print(f"search / verify, {name}, ten times in a file:", search_rates([large]))
        print(f"search / verify, {name}, ten files:", search_rates(10 * [path]))


if __name__ == "__main__":
    main(sys.argv[1:])
