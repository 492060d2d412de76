"""Seals documents with the newest key and opens what any known key has sealed."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from headrace.errors import SecretError
from headrace.secrets.keys import HOW_TO_BRING_BACK, KeySource


class Sealed(NamedTuple):
    document: str
    key_id: str


class Keyring:
    """`label` is what is sealed ("variable", "", "api_token"): a sealed document opens only under its own."""

    def __init__(self, source: KeySource) -> None:
        self._source = source

    @property
    def has_key(self) -> bool:
        return bool(self._source.keys())

    def seal(self, label: tuple[str, ...], document: str) -> Sealed:
        """With the first key, which is made if there is none yet and one can be made here."""
        # Asked each time: a rotation may have put another key first.
        keys = self._source.keys()
        key = keys[0] if keys else self._source.make()
        token = _cipher(key).encrypt(msgspec.json.encode([*label, document]))
        return Sealed(token.decode(), key_id(key))

    def open(self, label: tuple[str, ...], document: str, used_key_id: str) -> str:
        """The document that was sealed. SecretError if its key is not here, or if it was tampered with."""
        # Only whoever seals or opens something pays for the import.
        from cryptography.fernet import InvalidToken

        what = f"{label[0]} `{label[-1]}`"
        key = next((one for one in self._source.keys() if key_id(one) == used_key_id), None)
        if key is None:
            message = f"{what} is sealed with the key {used_key_id}, which is not here"
            raise SecretError(message, hint=HOW_TO_BRING_BACK)
        try:
            *sealed_label, opened = msgspec.json.decode(_cipher(key).decrypt(document.encode()), type=list[str])
        except (InvalidToken, msgspec.DecodeError):
            raise SecretError(f"{what} was changed after it had been sealed") from None
        if tuple(sealed_label) != label:
            raise SecretError(f"{what} holds what was sealed as {sealed_label[0]} `{sealed_label[-1]}`")
        return opened


def key_id(key: str) -> str:
    """A short name of a key that says nothing about it."""
    return hashlib.sha256(b"headrace key id\0" + key.encode()).hexdigest()[:12]


@lru_cache(maxsize=8)
def _cipher(key: str) -> Any:
    # Most commands and many agents never meet a secret.
    from cryptography.fernet import Fernet

    return Fernet(key.encode())
