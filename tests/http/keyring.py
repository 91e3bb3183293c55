"""Keys for tests: a keys file, its keys by name, and the headers that carry them."""

import base64
import hashlib
import os
import secrets


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def basic(key, user="anybody"):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{key}".encode()).decode()}


class Keyring:
    """Written as gemmctl writes it: whole, by a rename."""

    def __init__(self, path):
        self.path = path
        self.keys, self.lines = {}, {}
        self.write()

    def add(self, name, roles="use", quota=""):
        key = f"{secrets.token_hex(8)}.{secrets.token_hex(32)}"
        self.keys[name] = key
        digest = hashlib.sha256(key.encode()).hexdigest()
        self.lines[name] = (f"name={name} id={key.partition('.')[0]} sha256={digest} roles={roles}" +
                            (f" quota={quota}" if quota else ""))
        self.write()
        return key

    def remove(self, name):
        del self.keys[name], self.lines[name]
        self.write()

    def rename(self, old, new):
        """The key stays the same, by its id."""
        self.keys[new] = self.keys.pop(old)
        self.lines[new] = self.lines.pop(old).replace(f"name={old} ", f"name={new} ")
        self.write()

    def text(self):
        return "# keys of a test\n\n" + "".join(line + "\n" for line in self.lines.values())

    def write(self, text=None):
        new = f"{self.path}.new"
        with open(new, "w") as file:
            file.write(self.text() if text is None else text)
        os.chmod(new, 0o600)
        os.replace(new, self.path)

    def headers(self, name):
        return bearer(self.keys[name])
