"""What a viewer shows: pictures, requests to it, and its answers."""

import functools
import http.client
import io
import re
import wave
from html import unescape
from urllib.parse import urlsplit

from PIL import Image


@functools.cache
def jpeg(shade=0, size=(64, 48)):
    """A JPEG of one color."""
    out = io.BytesIO()
    Image.new("RGB", size, (shade, 90, 60)).save(out, "jpeg")
    return out.getvalue()


@functools.cache
def encoded(kind, size=(40, 30), color=(200, 30, 30)):
    """An image of one color."""
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, kind)
    return out.getvalue()


def wav(seconds=0.01):
    """A silent sound."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(2 * int(8000 * seconds)))
    return out.getvalue()


def get(viewer, target="", *, path=None, method="GET", **headers):
    """The response, and its body."""
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server_port, timeout=20)
    try:
        base = urlsplit(viewer.url).path
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path or base + target, headers=headers)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def links(body, kind):
    return [unescape(each) for each in re.findall(rf'{kind}="([^"]*)"', body.decode())]
