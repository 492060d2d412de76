"""A task that takes ten minutes, unless somebody ends it."""

import time

from airflow.sdk import DAG, task

with DAG("ten_minutes", schedule=None):

    @task
    def sleep():
        time.sleep(600)

    sleep()
