"""Long ranges over HTTP by sockets of their own, beside aiohttp."""

import datetime
import ipaddress
import socket
import ssl

import fsspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fsspec.implementations.http import HTTPFileSystem

import tfwire as tfw
from helpers.remote.object_server import RECORDS, serving_records, small_ranges
from tfwire._records.remote import http_connections, read_ahead
from tfwire._records.remote.http_connections import connections_of


@pytest.fixture
def server(monkeypatch):
    with small_ranges(monkeypatch), serving_records() as server:
        yield server


@pytest.fixture
def connected(monkeypatch):
    """The addresses of the sockets that were opened for ranges."""
    found = []
    create = socket.create_connection

    def connect(address, *rest, **options):
        found.append(address)
        return create(address, *rest, **options)

    monkeypatch.setattr(http_connections.socket, "create_connection", connect)
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
        raise NotImplementedError

    url = "http://host/a"
    yield "client_kwargs", HTTPFileSystem(client_kwargs={"trust_env": True}), url
    yield "an option of every request", HTTPFileSystem(ssl=False), url
    yield "a client", HTTPFileSystem(get_client=client), url
    yield "a subclass", OwnFileSystem(), url
    yield "a name and a password", HTTPFileSystem(), "http://name:password@host/a"
    yield "a header of two lines", HTTPFileSystem(headers={"a": "b\r\nc: d"}), url
    yield "a header that is not ASCII", HTTPFileSystem(headers={"a": "ä"}), url


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


def test_certificates_are_checked(server, connected, tmp_path, monkeypatch):
    made, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made, key)
    server.wrap(context)
    url = server.url("/a", "https")
    fs = fsspec.filesystem("https", skip_instance_cache=True)
    with pytest.raises(ssl.SSLCertVerificationError):
        connections_of(fs, url)._connect()
    trusting = ssl.create_default_context(cafile=made)
    monkeypatch.setattr(http_connections, "_tls_context", lambda: trusting)
    connected.clear()
    connections = connections_of(fs, url)
    found = connections._connect()
    found.close()
    assert [("127.0.0.1", server.port)] == connected
