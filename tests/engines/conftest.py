"""Tests with Beam, Ray and Spark, collected only where they are (make engines); their sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from helpers.paths import SOURCE

PACKAGES = {"beam": "apache_beam", "ray": "ray", "spark": "pyspark"}
collect_ignore_glob = [
    f"test_{name}*.py" for name, package in PACKAGES.items() if find_spec(package) is None
]
_SAIL = """
import sys
from pysail.spark import SparkConnectServer
server = SparkConnectServer("127.0.0.1", 0)
server.start(background=True)
print(server.listening_address[1], flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def workers():
    """Two workers of Ray."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, object_store_memory=200e6)
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def spark():
    """A session of Spark, or of Sail, with two workers, where a task is tried three times."""
    from pyspark.sql import SparkSession

    from tfwire.spark import SparkSource

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(SOURCE)  # for its workers, where make does not set it
    if find_spec("pysail") is None:
        builder = SparkSession.builder.master("local[2, 3]").config("spark.ui.enabled", "false")
        session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
        yield session  # finds the data source by itself
        session.stop()
        return
    command = [sys.executable, "-c", _SAIL]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as server:
        try:
            port = int(server.stdout.readline())
            session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
            session.dataSource.register(SparkSource)
            yield session
            session.client.close()  # stop() would wait for the server, which does not answer
        finally:
            server.kill()  # it does not end by itself
