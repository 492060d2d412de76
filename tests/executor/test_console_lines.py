"""Lines that many tasks say: they go around `logging` where nobody can tell, and through it where somebody listens."""

from __future__ import annotations

import logging
import re
import sys

import pytest

from headrace.handoff import Console, say

LINE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO test\.says: sh>: 100%\n"


@pytest.fixture
def log():
    """A logger below another one, in a process whose console is set up, and nothing else."""
    root = logging.RootLogger(logging.INFO)
    root.addHandler(Console())
    above, log = logging.Logger("test"), logging.Logger("test.says")
    log.parent, above.parent = above, root
    log.root = above.root = root
    return log


@pytest.fixture
def handled(monkeypatch):
    """The records that went through `logging`."""
    records = []
    monkeypatch.setattr(Console, "emit", lambda self, record: records.append(record))
    return records


def test_a_line_looks_as_if_it_were_logged(log, capsys):
    log.info("%s>: %s", "sh", "100%")
    say(log, "%s>: %s", "sh", "100%")
    say(log, "sh>: 100%")
    assert re.fullmatch(LINE * 3, capsys.readouterr().err)


def test_a_line_for_the_console_alone_needs_no_record(log, handled):
    say(log, "sh>: %s", "100%")
    assert not handled


@pytest.mark.parametrize("find", [lambda log: log, lambda log: log.parent, lambda log: log.root])
def test_whoever_else_listens_gets_the_record(log, find):
    seen = []
    handler = logging.Handler()
    handler.emit = seen.append
    find(log).addHandler(handler)
    say(log, "sh>: %s", "100%")
    (record,) = seen
    assert (record.msg, record.args) == ("sh>: %s", ("100%",))


def _own_format(log, monkeypatch):
    log.root.handlers[0].setFormatter(logging.Formatter("%(message)s"))


def _filtered_logger(log, monkeypatch):
    log.addFilter(lambda record: True)


def _filtered_console(log, monkeypatch):
    log.root.handlers[0].addFilter(lambda record: True)


def _own_records(log, monkeypatch):
    before = logging.getLogRecordFactory()
    monkeypatch.setattr(logging, "_logRecordFactory", lambda *args, **named: before(*args, **named))


def _patched_logger(log, monkeypatch):
    before = logging.Logger.callHandlers
    monkeypatch.setattr(logging.Logger, "callHandlers", lambda self, record: before(self, record))


@pytest.mark.parametrize("change", [_own_format, _filtered_logger, _filtered_console, _own_records, _patched_logger])
def test_whoever_has_other_wishes_for_the_log_is_obeyed(log, handled, monkeypatch, change):
    change(log, monkeypatch)
    say(log, "sh>: 100%")
    assert [record.getMessage() for record in handled] == ["sh>: 100%"]


def test_a_log_for_warnings_only_says_nothing(log, capsys):
    log.setLevel(logging.WARNING)
    say(log, "unheard")
    assert capsys.readouterr().err == ""


def test_a_closed_stream_is_no_reason_to_fail(log, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    say(log, "unheard")
