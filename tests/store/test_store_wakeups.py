"""Events wake: in one process at once, between processes soon after the commit, on both databases."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading

import pytest

from headrace.store import News, Store
from headrace.store.news import NOTHING
from headrace.store.sql import Sql

SECONDS = 20.0
"""How long a test waits for what must happen; it goes on as soon as it happens."""
CHANGE = Sql("UPDATE pool SET slots = slots + 1")

OTHER_PROCESS = """
import sys
from headrace.store import Store
from headrace.store.sql import Sql

store = Store(sys.argv[1])
sys.stdin.readline()
with store.begin() as tx:
    tx.change(Sql("UPDATE pool SET slots = slots + 1"))
    tx.tell()
store.dispose()
"""


@pytest.fixture
def store(prepared_url):
    store = Store(prepared_url)
    yield store
    store.dispose()


def test_a_commit_with_news_wakes_everybody_in_the_process(store):
    woken = []
    store.wakeups.subscribe(lambda: woken.append("one"))
    store.wakeups.subscribe(lambda: woken.append("two"))
    with store.begin() as tx:
        tx.tell()
        assert woken == []
    assert woken == ["one", "two"]

    def work(tx):
        tx.tell()
        return 5

    assert store.transact(work) == 5
    assert woken == ["one", "two", "one", "two"]


@pytest.mark.parametrize(
    ("told", "woken"),
    [(News.WORK, ["agent"]), (News.PLANS, ["scheduler"]), (News.STOP, []), (News.ALL, ["agent", "scheduler"])],
)
def test_a_commit_wakes_those_whom_its_news_concern(store, told, woken):
    heard = []
    store.wakeups.subscribe(lambda: heard.append("agent"), News.WORK)
    store.wakeups.subscribe(lambda: heard.append("scheduler"), News.PLANS)
    store.transact(lambda tx: tx.tell(told))
    assert heard == woken


def test_another_process_is_told_what_the_news_are_of(store, prepared_url):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite only tells that something has changed, not what")
    store.wakeups.start()
    wait_until_listening(store, threading.Event())
    heard, last = [], threading.Event()
    store.wakeups.subscribe(lambda: heard.append("work"), News.WORK)
    store.wakeups.subscribe(last.set, News.STOP)
    other = Store(prepared_url)
    other.transact(lambda tx: tx.tell(News.PLANS))
    other.transact(lambda tx: tx.tell(News.STOP))
    other.dispose()
    assert last.wait(SECONDS)
    assert heard == []


def test_news_that_nobody_here_waits_for_do_not_arrive(store, prepared_url):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite only tells that something has changed, not what")
    arrived, other = queue.SimpleQueue(), Store(prepared_url)
    store.wakeups.subscribe(lambda: None, News.WORK | News.STOP)
    store.wakeups._hear = lambda kind, told: arrived.put(kind)
    store.wakeups.start()
    for _ in range(10_000):
        other.transact(lambda tx: tx.tell(News.WORK))
        if not arrived.empty():
            break
    other.transact(lambda tx: tx.tell(News.PLANS))
    other.transact(lambda tx: tx.tell(News.STOP | News.TRIGGERS))
    other.dispose()
    seen = NOTHING
    while not seen & News.STOP:  # they come in order
        seen |= arrived.get(timeout=SECONDS)
    assert seen | News.WORK == News.WORK | News.STOP


def test_a_commit_without_news_wakes_nobody(store):
    woken = []
    store.wakeups.subscribe(lambda: woken.append(1))
    store.transact(lambda tx: tx.change(CHANGE))
    assert woken == []


def test_what_was_rolled_back_wakes_nobody(store):
    woken = []
    store.wakeups.subscribe(lambda: woken.append(1))
    with pytest.raises(ZeroDivisionError), store.begin() as tx:
        tx.tell()
        raise ZeroDivisionError
    assert woken == []


def test_a_commit_of_another_process_wakes_this_one(store, prepared_url):
    woken, is_listening = threading.Event(), threading.Event()
    store.wakeups.subscribe(woken.set)
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, prepared_url], stdin=subprocess.PIPE, text=True
    ) as other:
        store.wakeups.start()
        # The other process commits only when somebody listens; whoever connects later looks at everything anyway.
        wait_until_listening(store, is_listening)
        other.communicate("go\n", timeout=SECONDS)
    assert woken.wait(SECONDS)


def test_a_commit_of_this_process_wakes_it_once(store, prepared_url):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite only tells that something has changed, not who has changed it")
    store.wakeups.start()
    wait_until_listening(store, threading.Event())
    woken, heard = [], threading.Event()
    store.wakeups.subscribe(lambda: woken.append(1))
    with store.begin() as tx:
        tx.tell()
    assert woken == [1]
    store.wakeups.subscribe(heard.set)
    other = Store(prepared_url)
    with other.begin() as tx:
        tx.tell()
    other.dispose()
    assert heard.wait(SECONDS)
    assert woken == [1, 1], "notifications come in order, so that of the first commit has come and woke nobody"


def wait_until_listening(store, is_listening: threading.Event) -> None:
    """A change of our own on another connection is the first thing that the listener hears of."""
    heard = threading.Event()
    store.wakeups.subscribe(heard.set)
    helper = Store(store.database.url)
    for _ in range(200):
        with helper.begin() as tx:
            tx.change(CHANGE)
            tx.tell()
        if heard.wait(0.1):
            break
    helper.dispose()
    assert heard.is_set()
    store.wakeups._listeners[:] = [one for one in store.wakeups._listeners if one.call != heard.set]
    for listener in store.wakeups._listeners:
        listener.call.__self__.clear()


def test_a_listener_whose_connection_is_cut_listens_again(prepared_url, postgres_server):
    if prepared_url.startswith("sqlite"):
        pytest.skip("SQLite has no connection that could be cut")
    store = Store(prepared_url)
    store.wakeups.start()
    wait_until_listening(store, threading.Event())
    helper = Store(postgres_server.url.rpartition("/")[0] + "/" + prepared_url.rpartition("/")[2])
    with helper.read() as tx:
        tx.run(
            Sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = :name"
            ),
            {"name": prepared_url.rpartition("/")[2]},
        )
    helper.dispose()
    wait_until_listening(store, threading.Event())
    store.dispose()


def test_a_file_that_was_deleted_wakes_everybody_to_see_it(tmp_path):
    store = Store(f"sqlite:///{tmp_path}/headrace.db")
    woken = threading.Event()
    store.wakeups.subscribe(woken.set)
    store.wakeups.start()
    (tmp_path / "headrace.db").unlink()
    assert woken.wait(SECONDS)
    store.dispose()
