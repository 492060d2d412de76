"""The Python DAGs of the load: limits of every kind, retries, mapped and deferred tasks, and a schedule."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import DAG, BaseOperator, task
from noting import noted, work

FIRST_TICK = datetime.fromtimestamp(int(os.environ["LOAD_FIRST_TICK"]), UTC)
TICKS = int(os.environ["LOAD_TICKS"])
EVERY = timedelta(seconds=2)
REVISION = 0
MANY_TRIES = {"retries": 1000, "retry_delay": timedelta(0)}


def around(ti, *limits):
    """Notes the try; each limit is `(name, count)`."""
    name = ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]"
    return noted(ti.dag_id, ti.run_id, name, ti.try_number, dict(limits), REVISION)


class Waits(BaseOperator):
    """Goes on in another process when its trigger has fired."""

    def execute(self, context):
        with around(context["ti"]):
            self.defer(trigger=TimeDeltaTrigger(timedelta(seconds=0.5)), method_name="go_on")

    def go_on(self, context, event=None):
        with around(context["ti"]):
            work()


with DAG("mixed", schedule=None, max_active_tasks=3, default_args=MANY_TRIES):

    def of_run(ti):
        return f"mixed {ti.run_id}", 3

    @task
    def step(ti=None):
        with around(ti, of_run(ti)):
            work()

    @task
    def second_time(ti=None):
        with around(ti, of_run(ti)):
            if ti.try_number == 1:
                raise RuntimeError("the first try is too early")

    @task(pool="narrow")
    def in_narrow_pool(ti=None):
        with around(ti, of_run(ti), ("pool narrow", 2)):
            work()

    @task(max_active_tis_per_dagrun=2)
    def each(number, ti=None):
        with around(ti, of_run(ti), (f"each {ti.run_id}", 2)):
            work()

    first = [step.override(task_id=f"first_{number}")() for number in range(3)]
    narrow = [in_narrow_pool.override(task_id=f"narrow_{number}")() for number in range(2)]
    last = step.override(task_id="last")()
    first[0] >> each.expand(number=[0, 1, 2]) >> last
    first[1] >> second_time() >> last
    first[2] >> narrow >> last
    Waits(task_id="waits") >> last


with DAG(
    "ticks",
    schedule=EVERY,
    start_date=FIRST_TICK,
    end_date=FIRST_TICK + (TICKS - 1) * EVERY,
    catchup=True,
    max_active_runs=1,
    default_args=MANY_TRIES,
):

    @task
    def tick(ti=None):
        with around(ti, ("ticks", 1)):
            work(ti.try_number)

    tick()
