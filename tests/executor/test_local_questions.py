"""A question that cannot be answered now is asked again later, and holds up nobody else."""

from __future__ import annotations

import msgspec
from toy_project import collect, run_all, value_of

from headrace.executor.contract import Later
from headrace.handoff import Answer

TASKS = """
    import pathlib

    def ask(request, channel):
        return channel.ask("get_variable", name="a")

    def touch(request, channel):
        pathlib.Path(request.node.config["file"]).touch()
"""


class Desk:
    """Cannot answer before a file is there."""

    def __init__(self, path):
        self.path = path
        self.asked = 0

    def __call__(self, request, ask):
        self.asked += 1
        if not self.path.exists():
            raise Later("the database is away", 0.01)
        return Answer(id=ask.id, value=msgspec.Raw(b"42"))


def test_others_run_and_end_while_a_question_waits(local, project):
    project.write(TASKS)
    desk = Desk(project.root / "there")
    executor = local(broker=desk)
    asking = project.request("ask")
    executor.submit([asking])
    while not desk.asked:
        executor.poll(0.01)
    touching = project.request("touch", config={"file": str(desk.path)})
    executor.submit([touching])
    answered, touched = collect(executor, [asking, touching])
    assert (value_of(answered), touched.outcome) == (42, "success") and desk.asked > 1


def test_who_asks_in_vain_is_told_in_the_end(local, project, monkeypatch):
    monkeypatch.setattr("headrace.executor.local.PATIENCE_SECONDS", 0.1)
    project.write(TASKS)
    desk = Desk(project.root / "there")
    executor = local(broker=desk)
    (result,) = run_all(executor, project.request("ask"))
    assert result.outcome == "failed" and "the database is away" in result.error.message and desk.asked > 1


def test_a_try_that_is_stopped_meanwhile_ends(local, project):
    project.write(TASKS)
    desk = Desk(project.root / "there")
    executor = local(broker=desk)
    request = project.request("ask")
    executor.submit([request])
    while not desk.asked:
        executor.poll(0.01)
    executor.cancel(request.task_id, request.fence)
    (result,) = collect(executor, [request])
    assert result.outcome == "stopped"
