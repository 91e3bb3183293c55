"""Certificates for tests of TLS, made by openssl: an authority, and what it signs. They have the
extensions that strict verification (RFC 5280; the default from Python 3.13 on) asks for."""

import datetime
import shutil
import subprocess

OPENSSL = shutil.which("openssl")
# Of `openssl ca`: the one command that can sign what has expired in every version.
SETTINGS = """[ca]
default_ca = all
[all]
database = index.txt
serial = serial
new_certs_dir = .
default_md = sha256
policy = names
[names]
commonName = supplied
"""


def openssl(*arguments, cwd):
    subprocess.run([OPENSSL, *arguments], cwd=cwd, check=True, capture_output=True, timeout=60)


class Authority:
    """A certificate authority in a folder, with a file NAME.pem and NAME.key for each certificate."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        folder.mkdir(exist_ok=True)
        openssl("req", "-x509", *self._new_key(name), "-out", f"{name}.pem", "-subj", f"/CN={name}",
                "-days", "30", "-addext", "keyUsage=critical,keyCertSign,cRLSign", cwd=folder)
        (folder / "ca.cnf").write_text(SETTINGS)
        self.file = str(folder / f"{name}.pem")

    @staticmethod
    def _new_key(name, kind="ec"):
        key = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256") if kind == "ec" else ("rsa:2048",)
        return ("-newkey", *key, "-nodes", "-keyout", f"{name}.key")

    def sign(self, name, serial=1, days=30, client=False, kind="ec"):
        """(certificate, key): files. days: -1 has expired."""
        usage = "clientAuth" if client else "serverAuth"
        (self.folder / f"{name}.ext").write_text(
            f"subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\n"
            "authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n")
        openssl("req", *self._new_key(name, kind), "-out", f"{name}.csr", "-subj", f"/CN={name}",
                cwd=self.folder)
        (self.folder / "index.txt").write_text("")
        (self.folder / "serial").write_text(f"{serial:04X}\n")
        now = datetime.datetime.now(datetime.timezone.utc)
        begin, end = (f"{now + datetime.timedelta(days):%Y%m%d%H%M%SZ}" for days in (min(days, 0) - 1, days))
        openssl("ca", "-batch", "-notext", "-config", "ca.cnf", "-in", f"{name}.csr", "-cert", f"{self.name}.pem",
                "-keyfile", f"{self.name}.key", "-startdate", begin, "-enddate", end,
                "-extfile", f"{name}.ext", "-out", f"{name}.pem", cwd=self.folder)
        return str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")
