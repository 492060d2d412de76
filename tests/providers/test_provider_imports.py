"""Every module on the task side of eight provider packages can be imported without Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

PACKAGES = ("amazon", "common/compat", "common/sql", "docker", "http", "postgres", "sftp", "slack", "smtp", "ssh")
SERVER_SIDE = {
    *("auth_manager", "bundles", "cli", "example_dags", "executors", "log", "plugins", "queues", "secrets"),
}
WITHOUT = ("bson", "datafusion", "duckdb", "airflow.providers.")
"""What modules that cannot be imported here ask for: optional libraries and other providers."""

PROGRAM = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
from headrace.compat.airflow import install
install()
failed = {}
for name in json.load(sys.stdin):
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = str(error)
print(json.dumps(failed))
"""


def modules():
    """Names of modules by package, without running anything."""
    parts = [Path(entry) / "airflow" / "providers" for entry in sys.path]
    (root,) = [path for path in parts if (path / "sftp").is_dir()]
    for package in PACKAGES:
        for folder, _, files in os.walk(root / package):
            inner = Path(folder).relative_to(root).parts
            if not SERVER_SIDE & set(inner):
                for file in sorted(files):
                    if file.endswith(".py"):
                        name = ".".join(("airflow.providers", *inner, file.removesuffix(".py")))
                        yield package, name.removesuffix(".__init__")


def test_task_side_modules_import():
    found = {name: package for package, name in modules()}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(list(found)), capture_output=True, text=True, check=True
    )
    failed = json.loads(done.stdout.splitlines()[-1])
    unexpected = {name: error for name, error in failed.items() if not any(one in error for one in WITHOUT)}
    assert unexpected == {}
    imported = Counter(package for name, package in found.items() if name not in failed)
    print(dict(imported), sum(imported.values()), "of", len(found))
    assert sum(imported.values()) > 370


@pytest.mark.parametrize(
    ("conn_type", "hook"),
    [
        ("sftp", "SFTPHook"),
        ("ssh", "SSHHook"),
        ("http", "HttpHook"),
        ("postgres", "PostgresHook"),
        ("smtp", "SmtpHook"),
        ("slack", "SlackHook"),
        ("docker", "DockerHook"),
        ("aws", "AwsGenericHook"),
    ],
)
def test_connections_know_their_hooks(conn_type, hook):
    program = (
        "from headrace.compat.airflow import install; install()\n"
        "from headrace.authoring.dag.connections import hook_of\n"
        f"print(hook_of({conn_type!r})[0].__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == hook
