"""One task that asks for a variable again and again, until the test has seen enough, and one after it."""

import os
import time
from pathlib import Path

from airflow.sdk import DAG, Variable, task

FOLDER = Path(os.environ["ASKING_FOLDER"])

with DAG("asking", schedule=None):

    @task
    def ask(ti=None):
        (FOLDER / f"asks {ti.run_id}").touch()
        while not (FOLDER / "enough").exists():
            Variable.get("something", default="nothing")
            time.sleep(0.05)

    @task
    def after():
        pass

    ask() >> after()
