"""Long ranges over HTTP by sockets of their own, beside aiohttp."""

import datetime
import ipaddress
import random
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import fsspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fsspec.implementations.http import HTTPFileSystem

import tfwire as tfw
from helpers.remote.object_server import RECORDS, serving_records, small_ranges
from helpers.threads import wait_for
from tfwire._records.remote import http_connections, read_ahead
from tfwire._records.remote.http_answers import Body, Facts, UnsuitableError
from tfwire._records.remote.http_connections import Connections, connections_of


@pytest.fixture
def server(monkeypatch):
    with small_ranges(monkeypatch), serving_records() as server:
        yield server


@pytest.fixture
def connected(monkeypatch):
    """The addresses that were connected to for ranges."""
    found = []
    greet = Connections._greet

    def note(self, connection, address, stopped):
        found.append(address)
        return greet(self, connection, address, stopped)

    monkeypatch.setattr(Connections, "_greet", note)
    return found


def test_ranges_come_by_few_connections(server, connected, monkeypatch):
    monkeypatch.setattr(read_ahead, "_IN_FLIGHT", 2)
    assert RECORDS == list(tfw.read_records(server.url("/a", "http")))
    assert 1 <= len(connected) <= 2 < len(server.ranges)


def test_a_connection_that_the_server_has_closed_is_made_again(server, connected):
    with tfw.read_records(server.url("/a", "http")) as records:
        first = next(records)
        server.faults = lambda path, begin, end: "reset" if len(server.ranges) % 5 == 0 else None
        assert RECORDS == [first, *records]


def options_of_aiohttp():
    class OwnFileSystem(HTTPFileSystem):
        pass

    async def client(**kwargs):
        """Never called: no request is made."""

    url = "http://host/a"
    yield "client_kwargs", HTTPFileSystem(client_kwargs={"trust_env": True}), url
    yield "an option of every request", HTTPFileSystem(ssl=False), url
    yield "a client", HTTPFileSystem(get_client=client), url
    yield "a subclass", OwnFileSystem(), url
    yield "a name and a password", HTTPFileSystem(), "http://name:password@host/a"
    yield "a header of two lines", HTTPFileSystem(headers={"a": "b\r\nc: d"}), url
    yield "a header that is not ASCII", HTTPFileSystem(headers={"a": "ä"}), url
    yield "a range of the user", HTTPFileSystem(headers={"Range": "bytes=5-6"}), url
    yield "a name with a space", HTTPFileSystem(headers={"X y": "a"}), url
    yield "a URL that is not ASCII", HTTPFileSystem(encoded=True), "http://host/é"


@pytest.mark.parametrize(
    ("fs", "url"), [pytest.param(fs, url, id=name) for name, fs, url in options_of_aiohttp()]
)
def test_what_only_aiohttp_knows_is_left_to_it(fs, url):
    assert connections_of(fs, url) is None


def test_headers_of_the_user_are_sent(server, connected):
    server.token = "Bearer secret"
    options = {"headers": {"authorization": "Bearer secret"}}
    assert RECORDS == list(tfw.read_records(server.url("/a", "http"), storage_options=options))
    assert connected
    with pytest.raises(PermissionError, match=r"http://.*/a"):
        list(tfw.read_records(server.url("/a", "http")))


def certificate(folder):
    """Files of a certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
    now = datetime.datetime.now(datetime.timezone.utc)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - datetime.timedelta(days=1))
    builder = builder.not_valid_after(now + datetime.timedelta(days=1))
    made = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
    (folder / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "certificate.pem", folder / "key.pem"


@pytest.fixture
def secure(server, tmp_path, monkeypatch):
    """Connections of a server of TLS, whose certificate is trusted, and the bytes of its object."""
    made, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    server.wrap(context)
    trusting = ssl.create_default_context(cafile=made)
    monkeypatch.setattr(http_connections, "_tls_context", lambda: trusting)
    fs = fsspec.filesystem("https", skip_instance_cache=True)
    return connections_of(fs, server.url("/a", "https")), server.objects["/a"]


def test_ranges_come_over_tls(server, secure, connected):
    connections, data = secure
    facts, never = Facts("a", {"size": len(data)}), Event()
    for begin, end in ((0, 90_000), (90_000, 200_000)):
        body = Body(begin, end, memoryview(bytearray(end - begin)))
        connections.read_range(body, facts, never)
        assert data[begin:end] == body.joined()
    assert 1 == len(connected)
    connections.stop()


def test_certificates_are_checked(secure, monkeypatch):
    connections, _ = secure
    monkeypatch.setattr(http_connections, "_tls_context", ssl.create_default_context)
    with pytest.raises(ssl.SSLCertVerificationError):
        connections._connect(Event())
    assert not connections._used


def test_what_is_stopped_delivers_no_ciphertext(server, secure, monkeypatch):
    connections, _ = secure
    data = random.Random(1).randbytes(4 << 20)
    server.add("/a", data)
    monkeypatch.setattr(http_connections.Pace, "add", lambda *_: time.sleep(0.005))
    for _ in range(5):
        stopped = Event()
        body = Body(0, len(data), memoryview(bytearray(len(data))))
        failed = []

        def read(body=body, stopped=stopped, failed=failed):
            try:
                connections.read_range(body, Facts("a", {"size": len(data)}), stopped)
            except (OSError, EOFError) as error:
                failed.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        assert wait_for(lambda body=body: body.at > 100_000)
        stopped.set()
        connections.stop()
        thread.join()
        assert failed
        assert data[: body.at] == body.joined()


def test_a_handshake_that_never_comes_ends_with_the_reader(secure):
    connections, _ = secure
    with socket.create_server(("127.0.0.1", 0)) as silent:
        connections._address = silent.getsockname()
        stopped = Event()
        with ThreadPoolExecutor() as pool:
            waiting = pool.submit(connections._connect, stopped)
            greeted, _ = silent.accept()
            with greeted:
                assert greeted.recv(1)  # it begins the handshake
            stopped.set()
            connections.stop()
            with pytest.raises((OSError, EOFError)):
                waiting.result(20)


def answers_of(*answers):
    """A server of one thread that gives these answers, and a fake of its filesystem's object."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        with listening:
            for answer in answers:
                with listening.accept()[0] as connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)

    threading.Thread(target=serve).start()
    fs = fsspec.filesystem("http", skip_instance_cache=True)
    return connections_of(fs, f"http://127.0.0.1:{listening.getsockname()[1]}/a")


@pytest.mark.parametrize(
    "head", [b"103 Early Hints\r\n", b"302 Found\r\nLocation: /b\r\n", b"nonsense\r\n"]
)
def test_answers_that_are_not_plain_are_left_to_aiohttp(head):
    connections = answers_of(b"HTTP/1.1 " + head + b"\r\n")
    with pytest.raises(UnsuitableError):
        connections.read_range(Body(0, 9, memoryview(bytearray(9))), Facts("a", {}), Event())


def test_a_body_that_is_shorter_than_its_range_is_not_waited_for():
    head = b"HTTP/1.1 206 X\r\nContent-Range: bytes 0-8/9\r\nContent-Length: 3\r\n\r\nabc"
    body = Body(0, 9, memoryview(bytearray(9)))
    with pytest.raises(EOFError, match="after 3 of 9 bytes"):
        answers_of(head).read_range(body, Facts("a", {}), Event())
    assert b"abc" == body.joined()


def test_errors_that_pass_are_connection_errors(monkeypatch):
    fs = fsspec.filesystem("http", skip_instance_cache=True)
    connections = connections_of(fs, "http://127.0.0.1/a")

    def fail(*_, **__):
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(ConnectionError, match="try again"):
        connections._connect(Event())
