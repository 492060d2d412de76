"""The page about asking people: its DAG asks, and goes on as the page says."""

from __future__ import annotations

import textwrap

from pages import ROOT, blocks_of

from headrace.actions.params import parse_params
from headrace.actions.questions import answer
from headrace.definition import Person
from headrace.testing.engine import Engine


def test_the_release_of_the_page_is_made(tmp_path):
    (block,) = (one for one in blocks_of(ROOT / "docs" / "guides" / "ask-people.md") if one.language == "python")
    engine = Engine(tmp_path)
    try:
        run = engine.start_dag(textwrap.dedent(block.text))
        engine.settle()
        answer(engine.store, engine.clock, "release", "version", (), parse_params(["version=v1.4"]), Person(id="bob"))
        engine.settle()
        answer(engine.store, engine.clock, "release", "approve", ("Approve",), {}, Person(id="ann"))
        engine.settle()
        assert set(run.states().values()) == {"success"}
    finally:
        engine.close()
