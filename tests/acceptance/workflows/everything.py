"""A bit of everything that decides a task's state."""

from datetime import timedelta

from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, TaskGroup, task

AT_ONCE = timedelta(0)

with DAG("everything", schedule=None, params={"names": ["a", "b", "c"]}):

    @task.branch
    def choose():
        return ["left", "extras.also"]

    left, right = EmptyOperator(task_id="left"), EmptyOperator(task_id="right")
    after_right = BashOperator(task_id="after_right", bash_command="true")
    with TaskGroup("extras") as extras:
        also = BashOperator(task_id="also", bash_command="echo '{{ params.names | length }}'")
        not_this = BashOperator(task_id="not_this", bash_command="true")
    join = EmptyOperator(task_id="join", trigger_rule="none_failed_min_one_success")
    choose() >> [left, right, also, not_this]
    right >> after_right
    [left, after_right, extras] >> join

    @task
    def names(params=None):
        return params["names"]

    @task(retries=1, retry_delay=AT_ONCE)
    def each(name, ti=None):
        if name == "b" and ti.try_number == 1:
            raise ValueError("not yet")
        if name == "c":
            raise AirflowSkipException("never")
        return name * 2

    @task
    def total(values):
        return sorted(values)

    mapped = each.expand(name=names())
    total(mapped)
    all_ended = EmptyOperator(task_id="all_ended", trigger_rule="all_done")
    mapped >> all_ended

    @task(retries=2, retry_delay=timedelta(seconds=0.1))
    def third_time(ti=None):
        if ti.try_number < 3:
            raise RuntimeError(f"try {ti.try_number} is too early")

    @task(retries=5)
    def optional():
        raise AirflowFailException("no try will help")

    @task
    def needs_optional():
        pass

    @task(trigger_rule="one_failed")
    def on_failure():
        pass

    @task(trigger_rule="all_failed")
    def on_nothing_but_failure():
        pass

    skipped_by_code = BashOperator(task_id="skipped_by_code", bash_command="exit 99", skip_on_exit_code=99)
    dies = BashOperator(task_id="dies", bash_command="kill -9 $$", retries=1, retry_delay=AT_ONCE)
    failed = optional()
    unmet = needs_optional()
    failed >> [unmet, on_failure()]
    [failed, third_time()] >> on_nothing_but_failure()
    skipped_by_code >> EmptyOperator(task_id="after_skip")

    @task(trigger_rule="all_done")
    def last():
        """Behind everything that failed, so that the run succeeds: the leaves decide."""

    [join, all_ended, unmet, dies] >> last()
