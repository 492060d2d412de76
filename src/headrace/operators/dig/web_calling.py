"""The `http_call>` operator: tasks that come from a web server, grown here."""

from __future__ import annotations

from headrace.authoring.dig import as_text, read_called_workflow
from headrace.operators.dig.contract import Job, OperatorError, Outcome
from headrace.operators.dig.web import fetch

_FILE = "http_call.dig"
_TYPES = ("application/json", "application/x-yaml", "application/yaml", "text/yaml")


def run_http_call(job: Job) -> Outcome:
    """Fetch a workflow, as YAML or JSON, and grow its tasks as `call>` would. They work in this task's folder."""
    params = job.params.with_defaults("http")
    override = params.read("content_type_override", as_text, None)
    response = fetch(job, params)
    content_type = (override or response.headers.get_content_type()).partition(";")[0].strip().lower()
    if content_type not in _TYPES:
        raise OperatorError(
            f"expected the workflow to be `application/json` or `application/x-yaml`, got: `{content_type}`",
            hint="say what it really is by `content_type_override`",
        )
    if response.is_cut:
        raise OperatorError(f"the workflow is larger than {len(response.body)} bytes")
    file = (job.folder / _FILE).relative_to(job.root).as_posix()
    return Outcome(subtasks=read_called_workflow(job.root, file, response.body))
