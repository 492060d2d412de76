"""Secrets of the person who runs workflows on a machine of their own: one file each, readable for its owner only."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from headrace.errors import SecretError
from headrace.secrets.names import check_secret_name, check_secret_value

_FOLDER_MODE = 0o700


class LocalSecrets:
    """The files in one folder; a file's name is the secret's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str) -> str | None:
        try:
            return self._path(name).read_text(encoding="utf-8").removesuffix("\n")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SecretError(f"could not read the local secret `{name}`: {reason}") from None

    def set(self, name: str, value: str) -> None:
        path = self._path(name)
        check_secret_value(name, value)
        try:
            self.folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            # `mkstemp` makes files that only their owner can read; a half-written one is never seen.
            descriptor, written = tempfile.mkstemp(dir=self.folder, prefix=".")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(value)
            os.replace(written, path)
        except OSError as error:
            raise SecretError(f"could not write the local secret `{name}`: {error.strerror}") from None

    def delete(self, name: str) -> bool:
        """False: there was none."""
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise SecretError(f"could not delete the local secret `{name}`: {error.strerror}") from None
        return True

    def names(self) -> list[str]:
        try:
            return sorted(path.name for path in self.folder.iterdir() if not path.name.startswith("."))
        except OSError:
            return []

    def _path(self, name: str) -> Path:
        # The rules for names leave no way out of the folder.
        return self.folder / check_secret_name(name)
