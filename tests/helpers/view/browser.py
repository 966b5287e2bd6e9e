"""Chromium without a window, driven through a pipe: pages with their policies in force."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time

CHROMIUM = shutil.which("chromium")
_SECONDS = 60
# The browser reads its file 3 and writes its file 4.
_LAUNCHER = """
import fcntl, os, sys
found = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for number, file in zip((3, 4), found):
    os.dup2(file, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A browser with one page.

    Args:
        folder: For its profile.

    Attributes:
        complaints: What it has logged since the last page: refused scripts and pictures, errors.
    """

    def __init__(self, folder):
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
        read, self._commands = os.pipe()
        self._answers, write = os.pipe()
        words = [sys.executable, "-c", _LAUNCHER, str(read), str(write), CHROMIUM, *flags]
        self._process = subprocess.Popen(
            words, pass_fds=(read, write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._buffer, self._number, self._session = b"", 0, None
        self.complaints = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self._process.kill()
        self._process.wait()
        for number in (self._commands, self._answers):
            with contextlib.suppress(OSError):
                os.close(number)

    def show(self, address, width=1200, *, dark=False):
        """Loads a page, and waits until its pictures that are in sight are there."""
        self.call("Page.navigate", url="about:blank")  # the last one may ask on
        self.until("location.href === 'about:blank'")
        self.complaints.clear()
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 640}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=address)
        self.until(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def value(self, expression):
        """What an expression is in the page; promises are waited for."""
        found = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression):
        deadline = time.monotonic() + _SECONDS
        while not self.value(expression):
            assert time.monotonic() < deadline, expression
            time.sleep(0.02)

    def press(self, key):
        self.until("document.readyState === 'complete'")  # its script listens
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        code = {"ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Escape": 27}.get(key, 0)
        key_event = {"key": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **key_event, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key_event)

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _note(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Log.entryAdded":
            entry = parameters["entry"]
            if not entry.get("url", "").endswith("/favicon.ico"):
                self.complaints.append(entry["text"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))

    def _next(self):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], _SECONDS)
            assert ready, "the browser does not answer"
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
