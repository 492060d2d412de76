"""What a `.dig` file may say about assets."""

from __future__ import annotations

import pytest

from headrace.authoring.dig.loading import load_dig_file
from headrace.errors import DefinitionError


def load(tmp_path, text):
    (tmp_path / "flow.dig").write_text(text)
    return load_dig_file(tmp_path, "flow.dig").workflows[0]


@pytest.mark.parametrize(
    ("written", "when"),
    [
        ("orders", {"asset": "orders"}),
        ("[a, b]", {"all": [{"asset": "a"}, {"asset": "b"}]}),
        ("{any: [a, {all: [b, c]}]}", {"any": [{"asset": "a"}, {"all": [{"asset": "b"}, {"asset": "c"}]}]}),
    ],
)
def test_a_schedule_may_wait_for_assets(tmp_path, written, when):
    workflow = load(tmp_path, f"schedule:\n  assets>: {written}\n\n+a:\n  echo>: x\n")
    assert (workflow.schedule.type, workflow.schedule.spec) == ("assets", {"when": when})
    assert {use.role for use in workflow.assets} == {"schedule"}


@pytest.mark.parametrize("written", ["[]", "{none: [a]}", "{any: []}", "5"])
def test_a_schedule_that_names_no_assets_is_refused_with_its_line(tmp_path, written):
    with pytest.raises(DefinitionError, match="expected `assets>` of the schedule to be a name") as caught:
        load(tmp_path, f"schedule:\n  assets>: {written}\n\n+a:\n  echo>: x\n")
    assert caught.value.line == 2


def test_the_file_tells_which_assets_it_updates(tmp_path):
    workflow = load(tmp_path, "+a:\n  asset>: orders\n+b:\n  asset>: ${name}\n")
    assert [(use.name, use.role, use.task) for use in workflow.assets] == [("orders", "outlet", "+flow+a")]
