"""The page about deferral: its operator naps, and its trigger fires."""

from __future__ import annotations

from pages import ROOT, blocks_of

from headrace.testing.project import Project

PAGE = ROOT / "docs" / "concepts" / "deferral.md"

QUIET = """
    from airflow.sdk import DAG, BaseOperator
    from quiet_triggers import QuietTrigger

    class Waits(BaseOperator):
        def execute(self, context):
            self.defer(trigger=QuietTrigger(7, interval=0.01), method_name="go_on")
        def go_on(self, context, event):
            assert event == {"job_id": 7, "state": "done"}

    with DAG("quiet", schedule=None):
        Waits(task_id="wait")
"""


def test_what_the_page_shows_works(tmp_path):
    project = Project(tmp_path)
    for block in blocks_of(PAGE):
        if block.language == "python":
            project.write(block.note, block.text)
    project.write("quiet.py", QUIET)
    for file in ("waiting.py", "quiet.py"):
        project.run("run", file).check()
    logs = [path.read_text() for path in (project.home / "logs").rglob("wait,try=1.log")]
    assert len(logs) == 1
    assert "INFO quiet_triggers.QuietTrigger: look 2 at job 7" in logs[0]
