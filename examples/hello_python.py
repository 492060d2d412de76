"""A first DAG: greet a few people, count the letters with a shell command, and report.

Run it with `headrace run examples/hello_python.py`.
"""

from datetime import datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, task

with DAG(
    dag_id="hello_python",
    description="Greets everybody on a list",
    start_date=datetime(2026, 1, 1),
    schedule=None,
    params={"greeting": "Hello"},
    tags=["example"],
):

    @task
    def list_people() -> list[str]:
        """Whom to greet."""
        return ["Ada", "Grace", "Linus"]

    @task(retries=1)
    def greet(name: str, params: dict[str, str] | None = None) -> str:
        """One of these runs for each person."""
        text = f"{(params or {})['greeting']}, {name}!"
        print(text)
        return text

    @task
    def join(greetings: list[str]) -> str:
        """Waits for all greetings."""
        return " ".join(greetings)

    @task
    def report(letters: str) -> None:
        """The last line that the shell command printed is its result."""
        print(f"the greetings have {letters} characters")

    greetings = greet.expand(name=list_people())
    count = BashOperator(task_id="count", bash_command="printf %s '{{ ti.xcom_pull(task_ids=\"join\") }}' | wc -c")
    join(greetings) >> count
    report(count.output)
