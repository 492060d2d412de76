"""The page about deadlines: its DAGs load, and its alert is called in a real process."""

from __future__ import annotations

from pages import ROOT, blocks_of

from headrace.testing.project import Project

PAGE = ROOT / "docs" / "concepts" / "deadlines.md"


def test_what_the_page_shows_works(tmp_path):
    project = Project(tmp_path)
    for block in blocks_of(PAGE):
        if block.language == "python":
            project.write(block.note, block.text)
        if block.language == "yaml":
            project.write("late.dig", block.text)
    for file in ("sla.py", "late.dig"):
        project.run("check", file).check()
    project.run("run", "alert.py").check()
    listed = project.run("sla-misses", "alert", "--json").check().json
    (miss,) = listed["misses"]
    assert (miss["workflow"], miss["task"], miss["deadline"]) == ("alert", None, "at once")
    assert (miss["notification_sent"], miss["email_sent"]) == (True, False)
    (log,) = (path.read_text() for path in (project.home / "logs").rglob("errand*.log"))
    assert f"not done yet: {miss['run_key']}" in log
    assert "at once" in project.run("sla-misses").check().out
