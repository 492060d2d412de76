"""Relations between tasks: the same graph drawn with arrows and with methods.

Run one of them with `headrace run examples/mission/relations.py relations_by_arrows`.
"""

from datetime import datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG("relations_by_arrows", start_date=datetime(2021, 1, 1), schedule=None):
    first_task, second_task, third_task, fourth_task = [
        EmptyOperator(task_id=f"{name}_task") for name in ("first", "second", "third", "fourth")
    ]
    first_task >> second_task >> [third_task, fourth_task]

with DAG("relations_by_methods", start_date=datetime(2021, 1, 1), schedule=None):
    first_task, second_task, third_task, fourth_task = [
        EmptyOperator(task_id=f"{name}_task") for name in ("first", "second", "third", "fourth")
    ]
    first_task.set_downstream(second_task)
    third_task.set_upstream(second_task)
    fourth_task.set_upstream(second_task)
