"""Tries one connection, given as JSON on stdin: `python -m headrace.runner.connection_test`. Answers with JSON."""

from __future__ import annotations

import json
import os
import sys

from headrace.authoring.dag.connections import Connection


def main() -> None:
    """The last line on stdout is the answer, whatever the hook prints before it."""
    fields = json.load(sys.stdin)
    # Hooks look connections up by name; the one that is tried is found there first.
    os.environ[f"AIRFLOW_CONN_{fields['conn_id'].upper()}"] = json.dumps(
        {name: value for name, value in fields.items() if name != "conn_id"}
    )
    is_reachable, message = Connection(**fields).test_connection()
    print(json.dumps({"is_reachable": is_reachable, "message": message}))


if __name__ == "__main__":
    main()
