"""Many statements, one trip: order, failures and checks on the line to PostgreSQL."""

from __future__ import annotations

import pytest

from headrace.errors import ConflictError, StoreError
from headrace.store import Store
from headrace.store.sql import Sql

CREATE = Sql("CREATE TABLE note (id bigint PRIMARY KEY, text text, flag boolean, score double precision)")
INSERT = Sql("INSERT INTO note (id, text, flag, score) VALUES (:id, :text, :flag, :score)")
COUNT = Sql("SELECT count(*) FROM note")
BY_TEXT = Sql("SELECT id FROM note WHERE text IN :texts[] ORDER BY id")
RENAME = Sql("UPDATE note SET text = r.text FROM (SELECT * FROM ROWS(:rows)) AS r WHERE note.id = r.id",
             rows=(("id", "bigint"), ("text", "text")), changes_all=True)  # fmt: skip


@pytest.fixture
def store(prepared_postgres_url):
    store = Store(prepared_postgres_url)
    with store.begin() as tx:
        tx.change(CREATE)
    yield store
    store.dispose()


def add(tx, number: int, text: str | None = "x") -> None:
    tx.write(INSERT, {"id": number, "text": text, "flag": True, "score": 0.5})


def count(store: Store) -> int:
    with store.read() as tx:
        return tx.run(COUNT)[0][0]


def test_what_was_written_is_seen_by_what_is_asked_later(store):
    def work(tx):
        add(tx, 1)
        before = tx.ask(COUNT)
        add(tx, 2)
        after = tx.ask(COUNT)
        return before.rows(), after.rows()

    assert store.transact(work) == ([(1,)], [(2,)])
    assert count(store) == 2


@pytest.mark.parametrize("text", ["", "NULL", 'a"b', "a\\b", "a,b{c}", "é\n'", "%s $1 :id", " "])
def test_text_arrives_as_it_was_alone_and_in_a_list(store, text):
    store.transact(lambda tx: add(tx, 7, text))
    with store.read() as tx:
        assert tx.run(BY_TEXT, {"texts": ["other", text]}) == [(7,)]
        assert tx.run(Sql("SELECT text, flag, score FROM note")) == [(text, True, 0.5)]


def test_a_failure_names_the_statement_that_failed_and_the_others_change_nothing(store):
    def work(tx):
        add(tx, 1)
        add(tx, 1)
        add(tx, 2)

    with pytest.raises(ConflictError, match="duplicate key"):
        store.database.transact(work, tries=1)
    assert count(store) == 0
    store.transact(lambda tx: add(tx, 3))
    assert count(store) == 1


def test_a_statement_that_could_not_be_prepared_can_be_tried_again(store):
    missing = Sql("SELECT * FROM later WHERE id = :id")
    with pytest.raises(Exception, match="later"), store.begin() as tx:
        tx.ask(missing, {"id": 1})
        tx.run(COUNT)
    with store.begin() as tx:
        tx.change(Sql("CREATE TABLE later (id bigint)"))
        assert tx.run(missing, {"id": 1}) == []


def test_a_write_that_misses_a_row_is_not_committed_though_the_commit_travels_with_it(store):
    store.transact(lambda tx: add(tx, 1))
    with pytest.raises(ConflictError, match="somebody else was first"), store.begin() as tx:
        tx.write_each(RENAME, [{"id": 1, "text": "lost"}, {"id": 2, "text": "lost"}])
        add(tx, 3)
    assert count(store) == 1
    store.transact(lambda tx: tx.write_each(RENAME, [{"id": 1, "text": "found"}]))
    with store.read() as tx:
        assert tx.run(BY_TEXT, {"texts": ["lost", "found", "x"]}) == [(1,)]
        assert tx.run(BY_TEXT, {"texts": ["found"]}) == [(1,)]


def test_an_interrupted_exchange_gives_up_its_connection(store, monkeypatch):
    class Interrupted(BaseException):
        pass

    def interrupted(tx):
        line = tx._line
        monkeypatch.setattr(line, "_push", lambda: (_ for _ in ()).throw(Interrupted()))
        tx.run(Sql("SELECT 41"))

    with pytest.raises(Interrupted):
        store.transact(interrupted)
    with store.read() as tx:
        assert tx.run(Sql("SELECT 42")) == [(42,)]


def test_a_connection_that_broke_while_idle_is_replaced_before_anything_is_lost(store):
    backend = Sql("SELECT pg_backend_pid()")
    with store.read() as tx:
        ((pid,),) = tx.run(backend)
    other = Store(store.database.url)
    with other.read() as tx:
        tx.run(Sql("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
    other.dispose()
    store.transact(lambda tx: add(tx, 1))
    assert count(store) == 1


def test_a_connection_that_breaks_in_the_middle_is_told(store):
    def work(tx):
        ((pid,),) = tx.run(Sql("SELECT pg_backend_pid()"))
        other = Store(store.database.url)
        with other.read() as killer:
            killer.run(Sql("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        other.dispose()
        tx.run(COUNT)

    with pytest.raises(StoreError, match="could not reach"):
        store.transact(work)
    assert count(store) == 0


def test_an_answer_that_is_here_sends_nothing(store):
    def work(tx):
        first, second = tx.ask(COUNT), tx.ask(COUNT)
        assert first.rows() == [(0,)]
        add(tx, 1)
        add(tx, 1)
        assert second.rows() == [(0,)]  # the mistake is still here
        tx.run(COUNT)

    with pytest.raises(ConflictError, match="duplicate key"):
        store.database.transact(work, tries=1)
