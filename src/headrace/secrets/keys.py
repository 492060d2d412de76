"""Where the keys come from: the settings, or a file that only its owner can read.

The first key seals, all of them open. A key is 32 random bytes in URL-safe base64, as Airflow's `fernet_key`.
"""

from __future__ import annotations

import base64
import binascii
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from headrace.errors import SecretError
from headrace.settings import Settings

_KEY_BYTES = 32
_FILE_MODE = 0o600
_SQLITE = "sqlite:///"
KEY_FILE_NAME = "secrets.key"
HOW_TO_SET = "set `secrets.keys` (`headrace secrets new-key` prints one), the same for all schedulers and agents"
HOW_TO_BRING_BACK = (
    "put that key into `secrets.keys`, or `secrets.key` of the backup beside the database"
    " (see docs/operations/backup-and-upgrade.md)"
)


class KeySource(Protocol):
    """What a keyring asks. Called again whenever a key is missing, so that a new one needs no restart."""

    def keys(self) -> Sequence[str]:
        """Every key that is known at present, the one that seals first."""
        ...

    def make(self) -> str:
        """Create the first key. SecretError if it cannot be done here."""
        ...


class NoKeys:
    """A database that others share, and nobody has said which key to use."""

    def keys(self) -> Sequence[str]:
        return ()

    def make(self) -> str:
        raise SecretError(
            "there is no key to seal secrets with, and they are never stored as plain text", hint=HOW_TO_SET
        )


class SettingKeys(NoKeys):
    """Keys out of the settings."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(_checked(key, "`secrets.keys`") for key in keys)

    def keys(self) -> Sequence[str]:
        return self._keys


class MemoryKeys:
    """A key that lives as long as this process, for a database that does so, too."""

    def __init__(self) -> None:
        self._keys = [new_key()]

    def keys(self) -> Sequence[str]:
        return self._keys

    def make(self) -> str:
        return self._keys[0]


class KeyFile:
    """One key a line, readable for its owner only. Made when the first secret is written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def keys(self) -> Sequence[str]:
        try:
            text = self.path.read_text(encoding="ascii")
        except FileNotFoundError:
            return ()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it holds more than keys"
            raise SecretError(f"could not read the key file: {reason}", file=str(self.path)) from None
        return tuple(_checked(line.strip(), f"a line of `{self.path}`") for line in text.splitlines() if line.strip())

    def make(self) -> str:
        """The first key; if another process makes one at the same moment, that one."""
        written = self._write_beside([new_key()])
        try:
            # A link is refused if the file is there by now, where renaming would replace it.
            os.link(written, self.path)
        except FileExistsError:
            pass
        finally:
            written.unlink()
        return self.keys()[0]

    def replace(self, keys: Sequence[str]) -> None:
        """Have exactly these keys from now on."""
        os.replace(self._write_beside(keys), self.path)

    def _write_beside(self, keys: Sequence[str]) -> Path:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # `mkstemp` makes files that only their owner can read.
            descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}-")
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                os.fchmod(descriptor, _FILE_MODE)
                file.write("".join(f"{key}\n" for key in keys))
                file.flush()
                os.fsync(descriptor)
        except OSError as error:
            raise SecretError(f"could not write the key file: {error.strerror}", file=str(self.path)) from None
        return Path(name)


def key_source(settings: Settings, url: str) -> KeySource:
    """The keys of a store: as the settings say, or a file beside an embedded database."""
    given = settings.secrets
    if given.keys:
        return SettingKeys(given.keys)
    if given.key_file is not None:
        return KeyFile(given.key_file)
    return default_keys(url)


def default_keys(url: str) -> KeySource:
    """Where the keys of a store are if nobody says otherwise."""
    if not url.startswith("sqlite"):
        return NoKeys()
    path = url.removeprefix(_SQLITE).partition("?")[0]
    return KeyFile(Path(path).absolute().parent / KEY_FILE_NAME) if path and path != ":memory:" else MemoryKeys()


def new_key() -> str:
    """A key that nobody can guess."""
    return base64.urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode()


def _checked(key: str, where: str) -> str:
    try:
        size = len(base64.b64decode(key.replace("-", "+").replace("_", "/"), validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if size != _KEY_BYTES:
        raise SecretError(
            f"expected {where} to be a key of {_KEY_BYTES} bytes in base64, got one of {len(key)} characters",
            hint="`headrace secrets new-key` prints one",
        )
    return key
