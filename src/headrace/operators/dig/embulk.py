"""The `embulk>` operator: a bulk load by the program `embulk`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml

from headrace.authoring.dig import as_map
from headrace.operators.dig.containers import tell_of_docker
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.environment import own_variables, process_environment
from headrace.operators.dig.secret_references import filled_in
from headrace.operators.dig.shell import run_program
from headrace.operators.dig.texts import rendered_file


def run_embulk(job: Job) -> Outcome:
    """Run `embulk run` on a configuration: a file of the project, evaluated, or `config` of the task."""
    params = job.params.with_defaults("embulk")
    config = filled_in(_config(job, params), job.channel)
    environment = process_environment(own_variables(params, job.channel))
    tell_of_docker(job, ["embulk"])
    with tempfile.TemporaryDirectory(prefix="headrace-embulk-") as folder:
        path = Path(folder, "load.yml")
        # It holds secrets, so nobody else may read it.
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")
        code = run_program(["embulk", "run", str(path)], job.folder, environment)
    if code != 0:
        raise OperatorError(f"Command failed with code {code}", type_name="CommandFailed")
    return Outcome()


def _config(job: Job, params: Params) -> Any:
    name = params.raw("_command")
    if name is None or isinstance(name, dict):
        return name or params.read("config", as_map)
    text = rendered_file(job, params.text("_command"))
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise OperatorError(f"`{name}` is not valid YAML: {error}") from None
    if not isinstance(config, dict):
        raise OperatorError(f"expected `{name}` to hold a map")
    return config
