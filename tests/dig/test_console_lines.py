"""The line that every `.dig` task says without going through `logging`."""

from __future__ import annotations

import logging
import re
import sys

import pytest

from headrace.runner import console

LINE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO test\.says: sh>: 100%\n"


@pytest.fixture
def log():
    """A logger in a process whose console is set up, and nothing else."""
    root = logging.RootLogger(logging.INFO)
    root.addHandler(console._console)
    log = logging.Logger("test.says")
    log.parent = log.root = root
    return log


def test_a_line_looks_as_if_it_were_logged(log, capsys):
    log.info("%s", "sh>: 100%")
    console.say(log, "sh>: 100%")
    assert re.fullmatch(LINE * 2, capsys.readouterr().err)


def test_whoever_has_other_wishes_for_the_log_is_obeyed(log):
    seen = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())
    log.root.addHandler(handler)
    console.say(log, "sh>: 100%")
    assert seen == ["sh>: 100%"]


def test_a_log_for_warnings_only_says_nothing(log, capsys):
    log.setLevel(logging.WARNING)
    console.say(log, "unheard")
    assert capsys.readouterr().err == ""


def test_a_closed_stream_is_no_reason_to_fail(log, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    console.say(log, "unheard")
