"""One workflow, three ways to run it: the same tasks end in the same states after the same number of tries."""

from __future__ import annotations

import json

import pytest

ONCE = ("success", 1)
NOT_RUN = ("skipped", 0)

EVERYTHING = {
    "choose": ONCE,
    "left": ("success", 1),
    "right": NOT_RUN,
    "after_right": NOT_RUN,
    "extras.also": ONCE,
    "extras.not_this": NOT_RUN,
    "join": ONCE,
    "names": ONCE,
    "each[0]": ONCE,
    "each[1]": ("success", 2),
    "each[2]": ("skipped", 1),
    "total": NOT_RUN,
    "all_ended": ONCE,
    "third_time": ("success", 3),
    "optional": ("failed", 1),
    "needs_optional": ("upstream_failed", 0),
    "on_failure": ONCE,
    "on_nothing_but_failure": NOT_RUN,
    "skipped_by_code": ("skipped", 1),
    "after_skip": NOT_RUN,
    "dies": ("failed", 2),
    "last": ONCE,
}
LOOPS = [f"0=fruit={i}={fruit}&1=verb={j}={verb}" for i, fruit in enumerate(["apple", "plum"])
         for j, verb in enumerate(["wash", "eat"])]  # fmt: skip
NESTED = {
    "": ("failed", 1),
    "+prepare": ONCE,
    "+prepare+shell": ONCE,
    "+prepare+python": ONCE,
    "+prepare+after": ONCE,
    "+each": ONCE,
    "+each^sub": ONCE,
    **{f"+each^sub+for-{loop}{task}": ONCE for loop in LOOPS for task in ("", "+one", "+two")},
    "+flaky": ("success", 3),
    "+flaky+first": ONCE,
    "+flaky+second": ONCE,
    "+flaky+third": ONCE,
    "+single": ("failed", 2),
    "+not_reached": ("upstream_failed", 0),
    "^error": ONCE,
    "^error+tell": ONCE,
    "^failure-alert": ONCE,
}
EXPECTED = {
    "everything": ("success", EVERYTHING),
    "nested": ("failed", {f"+nested{name}": end for name, end in NESTED.items()}),
}


def ends(tasks):
    return {name: (task["state"], task["tries"]) for name, task in tasks.items()}


def ends_in_cluster(cluster):
    """Trigger each workflow, wait, and ask for its tasks."""
    run_ids = {name: cluster.trigger(name) for name in EXPECTED}
    return {
        name: (cluster.wait_for_end(run_id).state, ends(cluster.ask("tasks", str(run_id))["tasks"]))
        for name, run_id in run_ids.items()
    }


@pytest.fixture
def cluster_of(make_cluster, tmp_path):
    """Makes a cluster with both workflows."""

    def make(url=None):
        cluster = make_cluster(url, {"NESTED_FOLDER": str(tmp_path)})
        cluster.bring("everything.py", "nested.dig", "steps.py")
        return cluster

    return make


@pytest.mark.parametrize(("file", "code"), [("everything.py", 0), ("nested.dig", 1)])
def test_one_command(cluster_of, file, code):
    cluster = cluster_of()
    done = cluster.command("run", str(cluster.project / file), "--json")
    assert done.returncode == code, done.stderr
    said = json.loads(done.stdout)
    assert (said["state"], ends(said["tasks"])) == EXPECTED[said["workflow"]]


def test_standalone_on_sqlite(cluster_of):
    cluster = cluster_of()
    server = cluster.standalone()
    assert ends_in_cluster(cluster) == EXPECTED
    assert server.terminate() == 0
    assert "Traceback" not in server.stderr


def test_schedulers_and_agents_on_postgres(cluster_of, prepared_postgres_url):
    cluster = cluster_of(prepared_postgres_url)
    members = [start() for start in (cluster.scheduler, cluster.agent) for _ in range(2)]
    assert ends_in_cluster(cluster) == EXPECTED
    assert [member.terminate() for member in members] == [0, 0, 0, 0]
    assert not [member.name for member in members if "Traceback" in member.stderr]
