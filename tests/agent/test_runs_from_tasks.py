"""What tasks can ask about other workflows: start runs of them and see how these are doing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from headrace.agent import Broker
from headrace.definition import Length, Node, Schedule, Workflow
from headrace.handoff import Ask, MissingError, RunContext, Source, TaskRequest
from headrace.projects import ParsedFile
from headrace.projects.saving import save_parsed
from headrace.store import set_paused
from headrace.testing.engine import START, Engine


def flow(name: str, *nodes: Node, **fields) -> Workflow:
    return Workflow(name=name, language="python", nodes=(Node(key="", kind="group"), *nodes), **fields)


def node(key: str, **fields) -> Node:
    return Node(**{"key": key, "parent": "", "operator": "work", **fields})


class Desk:
    """A task of workflow `asker` in project `project`, with its engine."""

    def __init__(self, folder, url):
        self.engine = Engine(folder, url)
        self.broker = Broker(self.engine.store, self.engine.clock)
        self.request = TaskRequest(
            task_id=1,
            fence=1,
            key="t",
            node=node("t"),
            source=Source(root="/", file="f.py", language="python"),
            run=RunContext(project="project", workflow="asker"),
        )

    def ask(self, verb, **args):
        answer = self.broker(self.request, Ask(id=1, verb=verb, args=args))
        if answer.is_missing:
            raise MissingError(answer.error)
        assert answer.error is None, answer.error
        return msgspec.json.decode(answer.value)

    def error(self, verb, **args):
        return self.broker(self.request, Ask(id=1, verb=verb, args=args)).error

    def save_elsewhere(self, project, workflow):
        parsed = ParsedFile(file=f"{workflow.name}.py", digest="1", workflows=(workflow,))
        save_parsed(self.engine.store, project, self.engine.folder / project, [parsed], START)


@pytest.fixture
def desk(tmp_path, prepared_url):
    desk = Desk(tmp_path, prepared_url)
    yield desk
    desk.engine.close()


def test_a_run_is_started_with_its_parameters_and_ends(desk):
    seen = []
    desk.engine.save(flow("w", node("a")), {"a": lambda request: seen.append(request.params)})
    run = desk.ask("start_run", workflow="w", params={"x": 1})
    assert (run["is_new"], run["state"], run["type"]) == (True, "running", "manual")
    assert run["logical_time"] == "2026-02-03T04:05:06Z"
    assert run["run_key"] == "manual__2026-02-03T04:05:06+00:00"
    desk.engine.settle()
    assert seen == [{"x": 1}]
    assert desk.ask("get_run", run_id=run["run_id"])["state"] == "success"


def test_runs_that_start_at_the_same_moment_do_not_collide(desk):
    desk.engine.save(flow("w", node("a")))
    runs = [desk.ask("start_run", workflow="w") for _ in range(3)]
    assert all(run["is_new"] for run in runs)
    assert len({run["run_key"] for run in runs}) == 3


def test_a_second_run_for_a_time_or_a_key_is_the_first_one(desk):
    desk.engine.save(flow("w", node("a")))
    first = desk.ask("start_run", workflow="w", logical_time="2026-01-01T00:00:00+01:00", run_key="mine")
    assert (first["logical_time"], first["run_key"]) == ("2025-12-31T23:00:00Z", "mine")
    by_time = desk.ask("start_run", workflow="w", logical_time="2025-12-31T23:00:00Z")
    by_key = desk.ask("start_run", workflow="w", run_key="mine", logical_time=None)
    assert [(run["is_new"], run["run_id"]) for run in (by_time, by_key)] == [(False, first["run_id"])] * 2


def test_an_existing_run_can_be_run_again_from_its_start(desk):
    count = []
    desk.engine.save(flow("w", node("a"), node("b", upstream=("a",))), {"a": lambda request: count.append(1)})
    first = desk.ask("start_run", workflow="w", run_key="mine")
    desk.engine.settle()
    again = desk.ask("start_run", workflow="w", run_key="mine", clears_existing=True)
    assert (again["is_new"], again["state"], again["run_id"]) == (False, "running", first["run_id"])
    desk.engine.settle()
    assert len(count) == 2
    assert desk.ask("get_run", run_id=first["run_id"])["state"] == "success"


def test_a_run_that_ended_gets_another_attempt(desk):
    desk.engine.save(flow("w", node("a")), {"a": lambda request: 1 / 0})
    run = desk.ask("start_run", workflow="w")
    desk.engine.settle()
    assert desk.ask("get_run", run_id=run["run_id"])["state"] == "failed"
    again = desk.ask("retry_run", run_id=run["run_id"], attempt_name="second", is_resuming=False)
    assert (again["attempt_number"], again["state"]) == (2, "running")
    assert "has not ended yet" in desk.error("retry_run", run_id=run["run_id"])


def test_a_run_of_a_paused_workflow_waits(desk):
    workflow_id = desk.engine.save(flow("w", node("a")))
    with desk.engine.store.begin() as tx:
        set_paused(tx, workflow_id, True)
    run = desk.ask("start_run", workflow="w")
    assert (run["state"], run["is_paused"]) == ("queued", True)
    assert desk.ask("get_workflow", workflow="w") == {
        "workflow": "w",
        "project": "project",
        "is_paused": True,
        "tasks": ["a"],
    }


def test_a_run_may_be_due_later_and_have_no_logical_time(desk):
    desk.engine.save(flow("w", node("a")))
    later = (START + timedelta(seconds=30)).isoformat()
    run = desk.ask("start_run", workflow="w", logical_time=None, run_after=later)
    assert (run["logical_time"], run["state"]) == (None, "queued")
    desk.engine.advance(30)
    desk.engine.settle()
    assert desk.ask("get_run", run_id=run["run_id"])["state"] == "success"


def test_runs_are_found_by_key_time_and_state(desk):
    desk.engine.save(flow("w", node("a")), {"a": lambda request: 1 / 0})
    days = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]
    for day in days:
        desk.ask("start_run", workflow="w", logical_time=day)
    newest = desk.ask("get_run", workflow="w")
    assert newest["logical_time"] == days[2]
    assert desk.ask("get_run", workflow="w", logical_time=days[0])["logical_time"] == days[0]
    assert desk.ask("get_run", workflow="w", run_key=newest["run_key"]) == newest
    found = desk.ask("get_runs", workflow="w", logical_times=[*days[:2], "2030-01-01T00:00:00Z"])
    assert [run["logical_time"] for run in found] == [days[1], days[0]]
    assert desk.ask("get_runs", workflow="w", logical_times=days, states=["failed"]) == []
    with pytest.raises(MissingError):
        desk.ask("get_run", workflow="w", run_key="no")
    assert "got neither" in desk.error("get_runs", workflow="w")
    assert "got: `yesterday`" in desk.error("get_run", workflow="w", logical_time="yesterday")


def test_task_states_are_counted_by_task_group_and_instance(desk):
    nodes = (
        node("a"),
        node("g.b", upstream=("a",)),
        node("m", kind="mapped", expand=Length(op="literal", length=3)),
        Node(key="+tree", parent="", kind="group"),
        Node(key="+tree+leaf", parent="+tree", operator="work"),
    )
    actions = {"a": lambda request: 1 / 0, "m": lambda request: 1 // request.map_index}
    desk.engine.save(flow("w", *nodes), actions)
    run = desk.ask("start_run", workflow="w")
    desk.engine.settle()

    def states(**args):
        (found,) = desk.ask("get_task_states", workflow="w", run_keys=[run["run_key"]], **args)
        return found["tasks"]

    assert states()["m"] == {"failed": 1, "success": 2}
    assert states(tasks=["a", "m", "no"]) == {"a": {"failed": 1}, "m": {"failed": 1, "success": 2}}
    assert states(group="g") == {"g.b": {"upstream_failed": 1}}
    assert states(group="+tree") == {"+tree+leaf": {"success": 1}}


def test_the_slot_after_the_asking_run_is_what_the_schedule_says(desk):
    daily = Schedule(type="cron", spec={"expression": "0 3 * * *", "intervals": True})
    desk.engine.save(flow("w", node("a"), schedule=daily))
    desk.engine.save(flow("unscheduled", node("a")))

    def following(workflow):
        run = desk.ask("start_run", workflow=workflow, logical_time="2026-02-01T03:00:00Z")
        context = RunContext(
            project="project",
            workflow=workflow,
            attempt_id=run["attempt_id"],
            logical_time=datetime(2026, 2, 1, 3, tzinfo=UTC),
        )
        desk.request = msgspec.structs.replace(desk.request, run=context)
        return desk.ask("get_following_slot")

    assert following("w") == {
        "logical_time": "2026-02-02T03:00:00Z",
        "run_at": "2026-02-03T03:00:00Z",
        "interval_start": "2026-02-02T03:00:00Z",
        "interval_end": "2026-02-03T03:00:00Z",
    }
    assert following("unscheduled") is None


def test_a_name_means_the_own_project_first_and_any_other_if_it_is_unique(desk):
    for project in ("p2", "p3"):
        desk.save_elsewhere(project, flow("shared", node("a")))
    desk.save_elsewhere("p2", flow("only", node("a")))
    assert desk.ask("get_workflow", workflow="only")["project"] == "p2"
    assert desk.ask("get_workflow", workflow="shared", project="p3")["project"] == "p3"
    assert desk.error("get_workflow", workflow="shared") == ("workflow `shared` exists in several projects: `p2`, `p3`")
    desk.engine.save(flow("shared", node("a")))
    assert desk.ask("get_workflow", workflow="shared")["project"] == "project"
    with pytest.raises(MissingError, match="there is no workflow `share` in project `p3`\nhint: did you mean"):
        desk.ask("get_workflow", workflow="share", project="p3")


def test_what_a_private_run_starts_is_adopted_and_starts_whatever_limits_say(desk):
    adopted = []
    desk.broker.runs.adopt = lambda run_id, attempt_id: adopted.append(run_id)
    desk.engine.save(flow("w", node("a"), max_active_runs=1))
    runs = [desk.ask("start_run", workflow="w", logical_time="2026-01-01T00:00:00Z", run_key=k) for k in "ab"]
    assert [run["state"] for run in runs] == ["running", "running"]
    assert adopted == [run["run_id"] for run in runs]
