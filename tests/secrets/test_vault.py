"""Variables, connections and secrets on both databases: sealed, opened, rotated, refused."""

from __future__ import annotations

import threading

import pytest

from headrace.errors import NotFoundError, SecretError, StateError, UsageError
from headrace.logs import MaskingRules
from headrace.secrets import KeyFile, LocalSecrets, MemoryKeys, NoKeys, SettingKeys, Vault, new_key
from headrace.store import Store, get_kept
from headrace.store.sql import Sql

EVERYTHING = Sql("SELECT name, document, key_id FROM kept ORDER BY name")
SWAP = Sql("UPDATE kept SET document = :document, key_id = :key_id WHERE name = :name")


@pytest.fixture
def store(prepared_url):
    store = Store(prepared_url)
    yield store
    store.dispose()


def rows(store):
    with store.read() as tx:
        return {name: (document, key_id) for name, document, key_id in tx.run(EVERYTHING)}


def test_variables_and_connections_come_back_as_they_were(store):
    vault = Vault(store, MemoryKeys())
    vault.set_variable("greeting", "hällo", "for people")
    vault.set_connection("db", {"conn_id": "db", "conn_type": "postgres", "password": "s3cret", "port": 5432})
    assert vault.variable("greeting") == "hällo"
    assert vault.connection("db") == {"conn_id": "db", "conn_type": "postgres", "password": "s3cret", "port": 5432}
    (entry,) = vault.entries("variable")
    assert (entry.name, entry.value, entry.description, entry.is_sealed) == ("greeting", "hällo", "for people", True)
    vault.set_variable("greeting", "hi")
    assert vault.entries("variable")[0].description == "for people"
    assert vault.delete("variable", "greeting") and not vault.delete("variable", "greeting")


def test_nothing_is_readable_in_the_database(store):
    vault = Vault(store, MemoryKeys())
    vault.set_variable("plain_name", "find-me")
    vault.set_connection("db", {"conn_type": "http", "extra": '{"token": "find-me"}'})
    vault.set_secret("sales", "pg.password", "find-me")
    assert len(rows(store)) == 3
    assert not any("find-me" in document for document, _ in rows(store).values())


def test_a_name_that_is_not_there_suggests_the_nearest(store):
    vault = Vault(store, MemoryKeys())
    vault.set_variable("api_url", "x")
    with pytest.raises(NotFoundError, match="there is no variable `api_ur`") as caught:
        vault.variable("api_ur")
    assert caught.value.hint == "did you mean `api_url`?"


def test_without_a_key_secrets_are_refused_and_the_rest_is_kept(store):
    vault = Vault(store, NoKeys(), rules=MaskingRules(names=("geheim",)))
    vault.set_variable("greeting", "hello")
    vault.set_connection("api", {"conn_type": "http", "host": "example.com"})
    assert rows(store)["greeting"] == ('"hello"', None)
    refused = [
        lambda: vault.set_variable("api_token", "abc"),
        lambda: vault.set_variable("das_geheimnis", "abc"),
        lambda: vault.set_variable("config", '{"password": "abc"}'),
        lambda: vault.set_connection("db", {"conn_type": "http", "password": "abc"}),
        lambda: vault.set_secret("sales", "key", "abc"),
    ]
    for refuse in refused:
        with pytest.raises(SecretError, match="never stored as plain text"):
            refuse()
    assert set(rows(store)) == {"greeting", "api"}


def test_a_secret_belongs_to_its_project(store):
    vault = Vault(store, MemoryKeys())
    vault.set_secret("sales", "pg.password", "one")
    vault.set_secret("ops", "pg.password", "two")
    assert (vault.secret("sales", "pg.password"), vault.secret("ops", "pg.password")) == ("one", "two")
    assert vault.secret_names("sales") == ["pg.password"]
    assert vault.delete_secret("sales", "pg.password")
    with pytest.raises(NotFoundError, match=r"project `sales` has no secret `pg\.password`"):
        vault.secret("sales", "pg.password")


@pytest.mark.parametrize("name", ["", "a..b", "1a", "a.", "../x", "a/b", "a-", "x" * 256])
def test_names_of_secrets_have_rules(store, name):
    with pytest.raises(UsageError, match="expected the name of a secret"):
        Vault(store, MemoryKeys()).set_secret("p", name, "v")


def test_a_large_secret_is_refused_without_being_shown(store):
    with pytest.raises(UsageError, match="the secret `k` takes 16385 bytes, the limit is 16384"):
        Vault(store, MemoryKeys()).set_secret("p", "k", "v" * 16_385)


def test_names_with_spaces_around_are_refused(store):
    with pytest.raises(StateError, match="expected the name of a variable without spaces"):
        Vault(store, MemoryKeys()).set_variable(" a", "b")


def test_another_key_opens_nothing_and_says_which_is_missing(store):
    Vault(store, SettingKeys([new_key()])).set_variable("token", "abc")
    with pytest.raises(
        SecretError, match=r"variable `token` is sealed with the key \w{12}, which is not here"
    ) as caught:
        Vault(store, SettingKeys([new_key()])).variable("token")
    assert "put that key into `secrets.keys`" in caught.value.hint and "new-key" not in caught.value.hint


def test_a_sealed_document_opens_only_under_its_own_name(store):
    vault = Vault(store, MemoryKeys())
    vault.set_variable("mine", "x")
    vault.set_variable("theirs", "y")
    document, key_id = rows(store)["theirs"]
    with store.begin() as tx:
        tx.change(SWAP, {"name": "mine", "document": document, "key_id": key_id})
    with pytest.raises(SecretError, match="variable `mine` holds what was sealed as variable `theirs`"):
        vault.variable("mine")
    with store.begin() as tx:
        tx.change(SWAP, {"name": "mine", "document": document[:-4] + "AAA=", "key_id": key_id})
    with pytest.raises(SecretError, match="variable `mine` was changed after it had been sealed"):
        vault.variable("mine")


def test_rotation_with_keys_of_the_settings_seals_everything_anew(store):
    old, new = new_key(), new_key()
    Vault(store, NoKeys()).set_variable("plain", "x")
    Vault(store, SettingKeys([old])).set_secret("p", "k", "v")
    both = Vault(store, SettingKeys([new, old]))
    assert both.rotate() == 2
    assert both.rotate() == 0
    only_new = Vault(store, SettingKeys([new]))
    assert (only_new.variable("plain"), only_new.secret("p", "k")) == ("x", "v")
    with store.read() as tx:
        assert get_kept(tx, "variable", "", "plain").key_id is not None


def test_rotation_of_a_key_file_is_seen_by_who_has_it_open(store, tmp_path):
    file = KeyFile(tmp_path / "secrets.key")
    agent, command = Vault(store, file), Vault(store, KeyFile(file.path))
    agent.set_variable("token", "abc")
    first = file.keys()
    assert command.rotate() == 1
    assert agent.variable("token") == "abc"
    assert len(file.keys()) == 2 and file.keys()[1:] == first
    command.rotate()
    assert len(file.keys()) == 2 and first[0] not in file.keys()
    assert agent.variable("token") == "abc"


def test_the_key_file_is_private_and_made_once(tmp_path):
    file = KeyFile(tmp_path / "deep" / "secrets.key")
    assert file.keys() == ()
    made, barrier = [], threading.Barrier(8)

    def make():
        barrier.wait()
        made.append(file.make())

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 1 and file.keys() == (made[0],)
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.path.parent.iterdir()] == ["secrets.key"]


@pytest.mark.parametrize("key", ["short", "!" * 44, "YWJj"])
def test_what_is_no_key_is_refused_without_being_shown(tmp_path, key):
    with pytest.raises(SecretError, match="to be a key of 32 bytes in base64") as caught:
        SettingKeys([key])
    assert key not in str(caught.value)
    (tmp_path / "k").write_text(key)
    with pytest.raises(SecretError, match="a line of"):
        KeyFile(tmp_path / "k").keys()


def test_an_embedded_store_has_its_key_beside_it(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/a.db")
    Vault(store).set_secret("p", "k", "v")
    assert Vault(store).secret("p", "k") == "v"
    assert (tmp_path / "secrets.key").exists()
    store.dispose()


def test_local_secrets_are_files_that_come_after_those_of_the_project(store, tmp_path):
    local = LocalSecrets(tmp_path / "secrets")
    vault = Vault(store, MemoryKeys(), local)
    assert local.names() == [] and local.get("a.b") is None
    local.set("a.b", "mine")
    path = tmp_path / "secrets" / "a.b"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert vault.secret("p", "a.b") == "mine"
    vault.set_secret("p", "a.b", "ours")
    assert vault.secret("p", "a.b") == "ours"
    assert local.names() == ["a.b"] and local.delete("a.b") and not local.delete("a.b")
    with pytest.raises(UsageError):
        local.get("../../etc/passwd")
