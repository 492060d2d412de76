"""User code in every place where there is some, which looks whether somebody keeps a transaction open for it."""

import json
import os
from pathlib import Path

import psycopg

from headrace import DAG, task

OPEN = """
SELECT pid, CAST(xact_start AS text), query FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
"""


def watch(where):
    """Tell which transactions were there when this began and are still there half a second later."""
    with psycopg.connect(os.environ["WATCHED_STORE"], autocommit=True) as connection:
        before = {row[:2] for row in connection.execute(OPEN)}
        connection.execute("SELECT pg_sleep(0.5)")
        stayed = [row[2] for row in connection.execute(OPEN) if row[:2] in before]
    with open(Path(os.environ["WATCHED_FOLDER"]) / f"{where}.jsonl", "a") as file:
        file.write(json.dumps(stayed) + "\n")


watch("file")

with DAG("watching", schedule=None, on_success_callback=lambda context: watch("callback")):

    @task
    def look():
        watch("task")

    look()
