"""Our clients against a gemmd that speaks TLS by itself, and one on a Unix socket."""

import asyncio
import ssl

import numpy as np
import pytest
import trustme
import wheel  # noqa: F401: puts the package on the path
from gemmctl_world import gemmctl

import gemmd
from daemon import Daemon

MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Of an authority: its file, a server's certificate and key, a client's in one file."""
    folder, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    server, client = authority.issue_cert("localhost", "127.0.0.1"), authority.issue_cert("client@example.org")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    server.private_key_pem.write_to_path(folder / "server.key")
    for piece in server.cert_chain_pems:
        piece.write_to_path(folder / "server.pem", append=True)
    client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    return {name: str(folder / name) for name in ("ca.pem", "server.pem", "server.key", "client.pem")}


@pytest.fixture(params=["alone", "mutual"])
def secure(request, files):
    more = ("--tls-client-ca", files["ca.pem"]) if request.param == "mutual" else ()
    started = Daemon("--tls-cert", files["server.pem"], "--tls-key", files["server.key"], *more)
    started.mutual = bool(more)
    yield started
    started.stop()
    started.kill()


def context(files, secure):
    made = ssl.create_default_context(cafile=files["ca.pem"])
    if secure.mutual:
        made.load_cert_chain(files["client.pem"])
    return made


def test_python(secure, files):
    url = f"https://127.0.0.1:{secure.port}"
    with gemmd.Client(url, ca=context(files, secure)) as client:
        assert (client.transpose(MATRIX) == MATRIX.T).all()

    async def ask():
        async with gemmd.AsyncClient(url, ca=context(files, secure)) as client:
            return await client.matmul(MATRIX, MATRIX.T)

    assert (asyncio.run(ask()) == MATRIX @ MATRIX.T).all()
    if not secure.mutual:
        with gemmd.Client(url, ca=files["ca.pem"]) as client:
            assert (client.flip(MATRIX) == MATRIX[:, ::-1]).all()
        with gemmd.Client(url) as client, pytest.raises(gemmd.TransportError):
            client.transpose(MATRIX)
        plain = gemmd.Client(url.replace("https", "http"), retries=0)
        with plain as client, pytest.raises(gemmd.TransportError, match="Then its address begins with https://"):
            client.transpose(MATRIX)


def test_gemmctl(secure, files, tmp_path):
    if secure.mutual:
        pytest.skip("gemmctl has no option for a certificate of its own")
    np.save(tmp_path / "m.npy", MATRIX)
    url = f"https://127.0.0.1:{secure.port}"
    done = gemmctl("transpose", str(tmp_path / "m.npy"), "-o", str(tmp_path / "t.npy"), "--ca", files["ca.pem"], url=url)
    assert done[0] == 0, done
    assert (np.load(tmp_path / "t.npy") == MATRIX.T).all()
    done = gemmctl("transpose", str(tmp_path / "m.npy"), "-o", str(tmp_path / "t.npy"), url=url)
    assert done[0] != 0 and "certificate" in done[2].lower(), done
    done = gemmctl("stats", url=url.replace("https", "http"))
    assert done[0] == 3 and "Then the URL begins with https://" in done[2], done


def test_a_unix_socket(tmp_path):
    started = Daemon("--listen", f"unix:{tmp_path}/sock")
    try:
        np.save(tmp_path / "m.npy", MATRIX)
        done = gemmctl("transpose", str(tmp_path / "m.npy"), "-o", str(tmp_path / "t.npy"), url=f"unix:{tmp_path}/sock")
        assert done[0] == 0, done
        with gemmd.Client(f"unix:{tmp_path}/sock") as client:
            assert (client.transpose(MATRIX) == MATRIX.T).all()
    finally:
        started.stop()
        started.kill()
