"""The workflow files of the benchmark, as text: each has a Python form and, where it applies, a .dig form."""

from __future__ import annotations

_HEAD = "from headrace import DAG, EmptyOperator, PythonOperator, task\n"
_AIRFLOW_HEAD = """from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG, task
"""


def by_airflow_paths(text: str) -> str:
    """The same file, but everything is imported by Airflow's paths."""
    assert _HEAD in text
    return text.replace(_HEAD, _AIRFLOW_HEAD)


def python_chain(count: int, isolation: str, body: str = "pass") -> str:
    """W1, W3: tasks one after the other."""
    return f"""{_HEAD}
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

def work():
    {body}

with DAG("bench", schedule=None, isolation="{isolation}") as dag:
    before = None
    for number in range({count}):
        current = PythonOperator(task_id=f"t{{number}}", python_callable=work)
        if before is not None:
            before >> current
        before = current
"""


def bash_chain(count: int) -> str:
    """W11: a shell for each task, by the operator that Python has for it."""
    return f"""{_HEAD}from headrace import BashOperator

with DAG("bench", schedule=None) as dag:
    before = None
    for number in range({count}):
        current = BashOperator(task_id=f"t{{number}}", bash_command=":")
        if before is not None:
            before >> current
        before = current
"""


def python_fan(count: int, isolation: str, *, is_mapped: bool) -> str:
    """W2: one task, many at once, one task."""
    middle = (
        "    many = work.expand(x=first())\n    many >> last()"
        if is_mapped
        else f"""    begin, end = first(), last()
    for number in range({count}):
        one = PythonOperator(task_id=f"m{{number}}", python_callable=lambda: None)
        begin >> one >> end"""
    )
    return f"""{_HEAD}
@task
def first():
    return list(range({count}))

@task
def work(x):
    pass

@task
def last():
    pass

with DAG("bench", schedule=None, isolation="{isolation}", max_active_tasks=100000) as dag:
{middle}
"""


def inline_fan(count: int) -> str:
    """W8: very many tasks without code."""
    return f"""{_HEAD}
class Nothing(EmptyOperator):
    operator_name = "noop"

    def __init__(self, *, number=None, **kwargs):
        super().__init__(**kwargs)

with DAG("bench", schedule=None, max_active_tasks=1000000) as dag:
    Nothing.partial(task_id="one").expand(number=range({count}))
"""


def daily_nothing() -> str:
    """W9: a workflow whose last run is due at once, and the next one not before tomorrow."""
    return f"""{_HEAD}
from datetime import datetime

with DAG("bench", schedule="@daily", start_date=datetime(2020, 1, 1), catchup=False):
    EmptyOperator(task_id="nothing")
"""


def dig_chain(count: int, operator: str) -> str:
    """W11: W1 as a .dig file."""
    command = {"py": "py>: tasks.work", "sh": "sh>: ':'", "echo": "echo>: hello"}[operator]
    return "".join(f"+t{number}:\n  {command}\n" for number in range(count))


def dig_fan(count: int) -> str:
    """W11: W2 as a .dig file."""
    numbers = ", ".join(str(number) for number in range(count))
    return (
        "+first:\n  py>: tasks.work\n"
        f"+many:\n  for_each>:\n    x: [{numbers}]\n  _parallel: true\n  _do:\n    +one:\n      py>: tasks.work\n"
        "+last:\n  py>: tasks.work\n"
    )


DIG_TASKS = "def work():\n    pass\n"


def one_task() -> str:
    """W5."""
    return f"""{_HEAD}
@task
def hello():
    print("hello")

with DAG("bench", schedule=None):
    hello()
"""
