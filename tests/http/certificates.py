"""Certificates for tests of TLS, made by openssl: an authority, and what it signs."""

import shutil
import subprocess

OPENSSL = shutil.which("openssl")


def openssl(*arguments, cwd):
    subprocess.run([OPENSSL, *arguments], cwd=cwd, check=True, capture_output=True, timeout=60)


class Authority:
    """A certificate authority in a folder, with a file NAME.pem and NAME.key for each certificate."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        folder.mkdir(exist_ok=True)
        openssl("req", "-x509", *self._new_key(name), "-out", f"{name}.pem", "-subj", f"/CN={name}",
                "-days", "30", cwd=folder)
        self.file = str(folder / f"{name}.pem")

    @staticmethod
    def _new_key(name, kind="ec"):
        key = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256") if kind == "ec" else ("rsa:2048",)
        return ("-newkey", *key, "-nodes", "-keyout", f"{name}.key")

    def sign(self, name, serial=1, days=30, client=False, kind="ec"):
        """(certificate, key): files. days: -1 has expired."""
        usage = "clientAuth" if client else "serverAuth"
        (self.folder / f"{name}.ext").write_text(
            f"subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\n")
        openssl("req", *self._new_key(name, kind), "-out", f"{name}.csr", "-subj", f"/CN={name}",
                cwd=self.folder)
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem",
                "-CAkey", f"{self.name}.key", "-set_serial", str(serial), "-days", str(days),
                "-extfile", f"{name}.ext", "-out", f"{name}.pem", cwd=self.folder)
        return str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")
