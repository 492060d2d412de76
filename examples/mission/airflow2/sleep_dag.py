"""A task of ten minutes, written for Airflow 2: time enough to make a zombie of it.

See `docs/concepts/processes.md` for what happens to tasks whose processes go silent.
"""

from datetime import datetime

from airflow.decorators import dag
from airflow.operators.bash import BashOperator


@dag(start_date=datetime(2021, 1, 1), schedule_interval=None, catchup=False)
def sleep_dag():
    BashOperator(task_id="sleep_10_minutes", bash_command="sleep 600")


sleep_dag()
