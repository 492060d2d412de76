"""Checks of what a DAG is given, so that a mistake is told where it was made and not when a run needs it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_LONGEST_TAG = 100
_WHOLE_NUMBERS = ("max_active_tasks", "max_active_runs", "max_consecutive_failed_dag_runs")


def check_arguments(dag: Any) -> None:
    """TypeError or ValueError if an argument makes no sense."""
    for name in _WHOLE_NUMBERS:
        value = getattr(dag, name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"expected `{name}` of DAG `{dag.dag_id}` to be a whole number, got: {value!r}")
    if dag.dagrun_timeout is not None and not isinstance(dag.dagrun_timeout, timedelta):
        raise TypeError(
            f"expected `dagrun_timeout` of DAG `{dag.dag_id}` to be a timedelta, got: {dag.dagrun_timeout!r}"
        )
    _check_tags(dag)
    for owner, link in dag.owner_links.items():
        parts = urlsplit(link)
        if not (parts.scheme and parts.netloc) and parts.scheme != "mailto":
            raise ValueError(
                f"expected the link of owner `{owner}` of DAG `{dag.dag_id}` to be a URL or `mailto:`, got: `{link}`"
            )


def _check_tags(dag: Any) -> None:
    for tag in dag.tags:
        if not isinstance(tag, str):
            raise TypeError(f"expected the tags of DAG `{dag.dag_id}` to be texts, got: {tag!r}")
        if len(tag) > _LONGEST_TAG:
            raise ValueError(
                f"expected the tags of DAG `{dag.dag_id}` to have at most {_LONGEST_TAG} characters, got: `{tag}`"
            )


def text_or_file(text: str, written_in: str) -> str:
    """The content of the file that a text ending in `.md` names, beside the DAG's file; any other text as it is."""
    if not text.endswith(".md") or "\n" in text:
        return text
    folder = Path(written_in).parent
    path = (folder / text).resolve()
    # Only what lies beside the DAG's file: a definition is shown to people who may not read the whole disk.
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return text
    return path.read_text(encoding="utf-8")
