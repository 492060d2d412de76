"""How statements that are written once are asked of SQLite: lists of one, and updates row by row."""

from __future__ import annotations

import pytest

from headrace.definition import storable
from headrace.errors import ConflictError
from headrace.store import Store
from headrace.store.sql import Sql

CREATE = Sql("CREATE TABLE note (id bigint PRIMARY KEY, text text, number integer)")
INSERT = Sql("INSERT INTO note (id, text, number) VALUES (:id, :text, 0)")
ALL = Sql("SELECT id, text, number FROM note ORDER BY id")
CHOSEN = Sql("SELECT id FROM note WHERE text IN :texts[] AND NOT (id IN :ids[]) ORDER BY id")
CHANGE = """
    UPDATE note SET text = r.text, number = note.number + 1 FROM (SELECT * FROM ROWS(:rows)) AS r WHERE note.id = r.id
    """
UPDATE = Sql(CHANGE, rows=(("id", "bigint"), ("text", "text")), changes_all=True)


@pytest.fixture
def store(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/notes.db")
    with store.begin() as tx:
        tx.change(CREATE)
        for number, text in enumerate(("a", "b", "é", "[1]")):
            tx.write(INSERT, {"id": number, "text": text})
    yield store
    store.dispose()


@pytest.mark.parametrize(
    ("texts", "ids", "found"),
    [
        (["a"], [9], [0]),
        (["é"], [0], [2]),
        (["[1]"], [0], [3]),
        (["a"], [0], []),
        (["a", "b"], [0], [1]),
        (["a"], [], [0]),
        ([], [1], []),
        ([], [], []),
        (("a", "b", "é"), (0, 2), [1]),
    ],
)
def test_a_list_of_any_length_finds_its_elements(store, texts, ids, found):
    with store.read() as tx:
        assert tx.run(CHOSEN, {"texts": texts, "ids": ids}) == [(one,) for one in found]


def test_a_list_of_one_is_no_list_for_sqlite():
    assert CHOSEN.lists == ("texts", "ids")
    assert CHOSEN.sqlite_for_ones == "SELECT id FROM note WHERE text = :texts AND NOT (id = :ids) ORDER BY id"


def test_rows_are_updated_each_by_its_own_values(store):
    with store.begin() as tx:
        tx.write_each(UPDATE, [{"id": 1, "text": "x"}, {"text": "nul\0", "id": 2}])
    with store.read() as tx:
        assert tx.run(ALL) == [(0, "a", 0), (1, "x", 1), (2, storable("nul\0"), 1), (3, "[1]", 0)]


def test_a_row_that_is_not_there_is_told(store):
    with pytest.raises(ConflictError, match="1 of 2 rows"), store.begin() as tx:
        tx.write_each(UPDATE, [{"id": 1, "text": "x"}, {"id": 77, "text": "y"}])
    with store.read() as tx:
        assert tx.run(ALL)[1] == (1, "b", 0)


def test_an_update_of_rows_needs_no_table_of_them():
    assert "SELECT" not in UPDATE.sqlite and UPDATE.sqlite.count("?") == 2
    assert UPDATE.columns == ("text", "id")
