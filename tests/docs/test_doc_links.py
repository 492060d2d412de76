"""Every link in the documentation leads somewhere, and every page is found from the index."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pages import ROOT, anchors_of, links_of

DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "changelog" / "README.md"])


def resolved(page: Path, target: str) -> tuple[Path, str]:
    path, _, anchor = target.partition("#")
    return Path(os.path.normpath(page.parent / path)) if path else page, anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in links_of(page):
        path, anchor = resolved(page, target)
        assert path.exists(), f"`{target}` does not exist"
        assert not anchor or anchor in anchors_of(path), f"`{target}`: there is no such heading"


def test_the_index_lists_every_page():
    index = DOCS / "README.md"
    listed = {resolved(index, target)[0] for target in links_of(index)}
    missing = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page not in {index, *listed}]
    assert not missing
