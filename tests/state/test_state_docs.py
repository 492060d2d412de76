"""The page about task states and the glossary say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from headrace.definition import TRIGGER_RULES
from headrace.state import MOVES, Actor, State

DOCS = Path(__file__).parents[2] / "docs"
STATES_PAGE = (DOCS / "concepts" / "task-states.md").read_text(encoding="utf-8")


def rows_between(text: str, start: str, end: str) -> list[tuple[str, ...]]:
    lines = text.split(start)[1].split(end)[0].strip().splitlines()
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]]


def test_the_page_lists_every_move_as_the_code_has_it():
    documented = rows_between(STATES_PAGE, "<!-- moves -->", "<!-- /moves -->")
    coded = [(f"`{m.before}`", f"`{m.after}`", ", ".join(m.by), m.when) for m in MOVES.values()]
    assert documented == coded


def drawn_moves(drawing: str) -> set[tuple[str, str]]:
    """The arrows of a drawing, one for each state in a box that an arrow starts at or leads to."""
    boxes = {name: inside.split() for name, inside in re.findall(r"state (\w+) \{([^}]*)\}", drawing)}
    arrows = re.findall(r"^ +(\w+) --> (\w+)", drawing, flags=re.MULTILINE)
    every = {(one, other) for a, b in arrows for one in boxes.get(a, [a]) for other in boxes.get(b, [b])}
    return {(one, other) for one, other in every if one != other}


def test_the_drawings_show_every_move_and_no_other():
    drawings = re.findall(r"```mermaid\n(.*?)```", STATES_PAGE, flags=re.DOTALL)
    drawn = set().union(*(drawn_moves(drawing) for drawing in drawings))
    assert drawn == {(str(before), str(after)) for before, after in MOVES}


def test_the_page_explains_every_state_and_every_actor_once():
    explained = re.findall(r"^- `(\w+)`:", STATES_PAGE, flags=re.MULTILINE)
    assert sorted(explained) == sorted([*State, *Actor])


def test_the_page_explains_every_trigger_rule():
    rules = rows_between(STATES_PAGE, "counts as a failure.", "## Clearing")
    assert [row[0].strip("`") for row in rules] == list(TRIGGER_RULES)


def test_every_state_can_be_reached_and_left():
    reached = {after for _, after in MOVES} | {State.NONE}
    left = {before for before, _ in MOVES}
    assert reached == left == set(State)


def test_the_glossary_explains_each_word_once_and_in_order():
    glossary = (DOCS / "glossary.md").read_text(encoding="utf-8")
    words = [row[0].strip("*") for row in rows_between(glossary, "<!-- words -->", "<!-- /words -->")]
    assert words == sorted(words)
    assert len(set(words)) == len(words)
