"""The one place of variables, connections and secrets: sealed on the way into the store, opened on the way out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from headrace.clock import Clock, SystemClock, to_micros
from headrace.errors import NotFoundError, SecretError, StateError, did_you_mean
from headrace.logs import MaskingRules, sensitive_values
from headrace.secrets.keyring import Keyring, key_id
from headrace.secrets.keys import KeyFile, KeySource, default_keys, key_source, new_key
from headrace.secrets.local_files import LocalSecrets
from headrace.secrets.names import check_secret_name, check_secret_value
from headrace.settings import Settings
from headrace.store import (
    KeptKind,
    KeptRow,
    Store,
    Transaction,
    delete_kept,
    get_kept,
    kept_names,
    kept_under_other_keys,
    list_kept,
    reseal,
    set_kept,
    used_key_ids,
)


class Entry(NamedTuple):
    """A variable or a connection, opened."""

    name: str
    value: Any
    description: str | None
    is_sealed: bool


class Vault:
    """Everything by name. A secret belongs to a project; variables and connections belong to the installation."""

    def __init__(
        self,
        store: Store,
        keys: KeySource | None = None,
        local: LocalSecrets | None = None,
        clock: Clock | None = None,
        rules: MaskingRules | None = None,
    ) -> None:
        """Without `keys`: a file beside an embedded store, none for a shared one."""
        self._rules = rules or MaskingRules()
        self._store = store
        self._keys = keys or default_keys(store.database.url)
        self._keyring = Keyring(self._keys)
        self._local = local
        self._clock = clock or SystemClock()

    # ---- variables and connections -------------------------------------------------------------------------------

    def variable(self, name: str) -> Any:
        """The value of a variable. NotFoundError if there is none."""
        return self._value("variable", "", name)

    def set_variable(self, name: str, value: Any, description: str | None = None) -> None:
        found = sensitive_values(value, name, rules=self._rules)
        self._set("variable", "", name, value, description, is_secret=next(found, None) is not None)

    def connection(self, name: str) -> dict[str, Any]:
        """The fields of a connection. NotFoundError if there is none."""
        fields: dict[str, Any] = self._value("connection", "", name)
        return {**fields, "conn_id": name}

    def set_connection(self, name: str, fields: Mapping[str, Any]) -> None:
        """Create or replace a connection; `fields` as `connection_fields` makes them."""
        kept = {key: value for key, value in fields.items() if key != "conn_id" and value is not None}
        is_secret = "password" in kept or "extra" in kept
        self._set("connection", "", name, kept, kept.get("description"), is_secret=is_secret)

    def entries(self, kind: KeptKind) -> list[Entry]:
        """Every variable or connection with its value."""
        with self._store.read() as tx:
            rows = list_kept(tx, kind)
        return [Entry(row.name, self._opened(row), row.description, row.key_id is not None) for row in rows]

    def delete(self, kind: KeptKind, name: str) -> bool:
        """False: there was none."""
        return self._store.transact(lambda tx: delete_kept(tx, kind, "", name))

    def names(self, kind: KeptKind) -> list[str]:
        with self._store.read() as tx:
            return kept_names(tx, kind)

    # ---- secrets of projects -------------------------------------------------------------------------------------

    def secret(self, project: str, name: str) -> str:
        """A secret of a project, or of the person at this machine if nobody else uses the store."""
        with self._store.read() as tx:
            row = get_kept(tx, "secret", project, check_secret_name(name))
        if row is not None:
            return str(self._opened(row))
        value = self._local.get(name) if self._local is not None else None
        if value is None:
            raise NotFoundError(f"project `{project}` has no secret `{name}`")
        return value

    def set_secret(self, project: str, name: str, value: str) -> None:
        check_secret_value(check_secret_name(name), value)
        self._set("secret", project, name, value, None, is_secret=True)

    def delete_secret(self, project: str, name: str) -> bool:
        return self._store.transact(lambda tx: delete_kept(tx, "secret", project, check_secret_name(name)))

    def secret_names(self, project: str) -> list[str]:
        """What secrets a project has; their values are for its tasks only."""
        with self._store.read() as tx:
            return kept_names(tx, "secret", project)

    # ---- keys ----------------------------------------------------------------------------------------------------

    def rotate(self) -> int:
        """Seal everything with the newest key; returns how many things were sealed anew.

        A key file gets a new first key. The key before it stays until the next rotation, for a process that read the
        file a moment ago; older ones leave unless something is still sealed with them.
        """
        if not isinstance(self._keys, KeyFile):
            if not self._keyring.has_key:
                self._keys.make()
            return self._store.transact(self._reseal)
        before = self._keys.keys()
        self._keys.replace([new_key(), *before])
        count = self._store.transact(self._reseal)
        with self._store.read() as tx:
            used = used_key_ids(tx)
        known = self._keys.keys()
        self._keys.replace([*known[:2], *(key for key in known[2:] if key_id(key) in used)])
        return count

    def _reseal(self, tx: Transaction) -> int:
        rows = kept_under_other_keys(tx, key_id(self._keys.keys()[0]))
        for row in rows:
            document = msgspec.json.encode(self._opened(row)).decode()
            sealed = self._keyring.seal(_label(row), document)
            reseal(tx, row._replace(document=sealed.document, key_id=sealed.key_id))
        return len(rows)

    # ---- sealing -------------------------------------------------------------------------------------------------

    def _value(self, kind: KeptKind, scope: str, name: str) -> Any:
        with self._store.read() as tx:
            row = get_kept(tx, kind, scope, name)
            names = kept_names(tx, kind, scope) if row is None else []
        if row is None:
            raise NotFoundError(f"there is no {kind} `{name}`", hint=did_you_mean(name, names))
        return self._opened(row)

    def _opened(self, row: KeptRow) -> Any:
        document = row.document if row.key_id is None else self._keyring.open(_label(row), row.document, row.key_id)
        return msgspec.json.decode(document)

    def _set(
        self, kind: KeptKind, scope: str, name: str, value: Any, description: str | None, *, is_secret: bool
    ) -> None:
        _check_name(kind, name)
        document = msgspec.json.encode(value).decode()
        row = KeptRow(kind, scope, name, document, None, description, to_micros(self._clock.now()))
        if is_secret or self._keyring.has_key:
            row = self._sealed(row)
        self._store.transact(lambda tx: set_kept(tx, row))

    def _sealed(self, row: KeptRow) -> KeptRow:
        try:
            sealed = self._keyring.seal(_label(row), row.document)
        except SecretError as error:
            raise SecretError(f"could not keep {row.kind} `{row.name}`: {error.message}", hint=error.hint) from None
        return row._replace(document=sealed.document, key_id=sealed.key_id)


def open_vault(settings: Settings, store: Store, clock: Clock | None = None) -> Vault:
    """The vault of a store as the settings want it. Local secrets count where nobody else uses the store."""
    local = None if store.is_shared else LocalSecrets(settings.secrets.local_dir.expanduser())
    return Vault(store, key_source(settings, store.database.url), local, clock, MaskingRules.of(settings.secrets))


def _check_name(kind: str, name: str) -> None:
    if not name or name != name.strip() or "\0" in name:
        raise StateError(f"expected the name of a {kind} without spaces around it, got: `{name}`")


def _label(row: KeptRow) -> tuple[str, str, str]:
    return row.kind, row.scope, row.name
