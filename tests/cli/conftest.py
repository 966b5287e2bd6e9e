"""A file of records, and a viewer of files that serves in a thread."""

import threading

import pytest

import tfwire as tfw
from helpers.command import RECORDS
from tfwire.view._records import BrowsedFile
from tfwire.view._server import Viewer


@pytest.fixture
def path(folder):
    tfw.write_records("in", RECORDS)
    return "in"


@pytest.fixture
def serve():
    """Starts a viewer of files."""
    viewers = []

    def start(*paths, corners=()):
        viewer = Viewer([BrowsedFile(str(path)) for path in paths], corners)
        viewers.append(viewer)
        threading.Thread(target=viewer.serve_forever, kwargs={"poll_interval": 0.01}).start()
        return viewer

    yield start
    for viewer in viewers:
        viewer.shutdown()
        viewer.server_close()
