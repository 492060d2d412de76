"""What somebody sees who tries Headrace for the first time."""

from __future__ import annotations

import io

from headrace.cli.local_run import Stillness
from headrace.cli.progress import Live, _line
from headrace.store import TaskRow

BAD = '@task\ndef bad():\n    print("the last words")\n    raise ValueError("no such table")\n\nbad()'


def row(name="load", state="running", **given):
    fields = dict.fromkeys(TaskRow._fields)
    fields.update(id=1, key=name, map_index=-1, state=state, try_number=1, **given)
    return TaskRow(**fields)


def test_a_failure_is_in_the_log_and_the_log_is_found_without_a_store(headrace):
    done = headrace("run", headrace.dag(BAD))
    assert '|     raise ValueError("no such table")' in done.err
    assert done.err.splitlines()[-1] == "logs: headrace logs 1 bad"
    log = headrace("logs", "latest", "bad").out
    assert log.splitlines()[-1] == "ValueError: no such table" and "headrace/runner" not in log
    assert "ended as failed" in headrace("why", "latest").out
    assert not (headrace.home / "headrace.db").exists()


def test_a_pool_that_nobody_made_does_not_hold_up_a_private_run(headrace):
    done = headrace("run", headrace.dag("@task(pool='narrow')\ndef hello():\n    pass\n\nhello()"))
    assert done.returncode == 0, done.err


def test_pools_are_set_listed_and_deleted(headrace):
    assert headrace("pools", "set", "narrow", "-1").out == "pool `narrow` has unlimited slots\n"
    assert headrace("pools", "set", "narrow", "2").returncode == 0
    narrow = {"name": "narrow", "slots": 2, "used": 0, "includes_deferred": False}
    assert narrow in headrace.json("pools")[0]["pools"]
    assert headrace("pools", "delete", "narrow").returncode == 0
    done = headrace("pools", "delete", "narrow")
    assert (done.returncode, "there is no pool `narrow`" in done.err) == (2, True)


def test_other_databases_and_folders_are_refused_with_advice(headrace):
    assert "only SQLite and PostgreSQL" in headrace("runs", "--store", "mysql://x").err
    assert "headrace standalone" in headrace("run", str(headrace.folder)).err


def test_stillness_is_told_once_and_not_while_something_runs():
    stillness, waiting = Stillness(), [row(state="scheduled")]
    assert not stillness.is_new(waiting, 10.0)
    assert not stillness.is_new(waiting, 14.9)
    assert stillness.is_new(waiting, 15.0)
    assert not stillness.is_new(waiting, 30.0)
    busy = Stillness()
    assert not any(busy.is_new([row(state="running")], now) for now in (1.0, 20.0))


def test_messages_go_above_the_live_picture():
    stream = io.StringIO()
    live = Live(stream)
    live.show([row(state="scheduled")])
    stream.seek(0)
    stream.truncate()
    live.say("stopping")
    said = stream.getvalue()
    assert said.startswith("\x1b[2A\rstopping\x1b[K\n") and said.index("stopping") < said.index("load")


def test_a_narrow_terminal_shortens_the_name_and_not_the_state():
    line = _line(row("a" * 60, "up_for_reschedule"), 50)
    assert "up_for_reschedule" in line[:49] and "…" in line


def test_the_url_of_a_store_is_shown_as_it_was_configured_and_without_its_password(headrace, prepared_postgres_url):
    url = f"{prepared_postgres_url.replace('postgres@', 'postgres:hunter22@')}?password=hunter22"
    told = headrace("config", "get", "store", HEADRACE_STORE=url).out
    assert told == f"{prepared_postgres_url}\n"
    shown = headrace.json("status", HEADRACE_STORE=url)[0]["store"]
    assert shown == prepared_postgres_url.replace("postgres@", "postgres:***@")
