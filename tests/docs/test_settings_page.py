"""The reference of settings says what the code says."""

from __future__ import annotations

import tomllib

from pages import ROOT, blocks_of

from headrace.cli.settings_reference import settings_reference
from headrace.settings import FILE_NAME, describe_settings, load_settings

PAGE = ROOT / "docs" / "reference" / "settings.md"


def test_the_page_is_fresh():
    fresh = settings_reference()
    assert PAGE.read_text() == fresh, "run: python -m headrace.cli.settings_reference > docs/reference/settings.md"


def test_no_section_is_forgotten():
    rows = [line.split("`")[1] for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [setting.name for setting in describe_settings()]


def test_the_example_can_be_loaded(tmp_path):
    (example,) = (block.text for block in blocks_of(PAGE) if block.language == "toml")
    (tmp_path / FILE_NAME).write_text(example)
    settings = load_settings(tmp_path, {})
    assert (settings.agent.slots, settings.store) == (8, tomllib.loads(example)["store"])
    assert [folder.name for folder in settings.projects] == ["sales"]
