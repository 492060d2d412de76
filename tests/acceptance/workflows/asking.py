"""One task that asks for a variable again and again, until the test has seen enough, and one after it."""

import os
import time
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, Variable, task

FOLDER = Path(os.environ["ASKING_FOLDER"])

with DAG("asking", schedule=None, default_args={"retries": 1, "retry_delay": timedelta(0)}):

    @task
    def ask(ti=None):
        mark = FOLDER / f"asks {ti.run_id} {ti.try_number}"
        mark.with_suffix(".part").write_text(str(os.getpid()))
        mark.with_suffix(".part").rename(mark)
        while not (FOLDER / "enough").exists():
            Variable.get("something", default="nothing")
            time.sleep(0.05)

    @task
    def after():
        pass

    ask() >> after()
