"""The texts of operators: a template file of the project, or what is written in the task itself."""

from __future__ import annotations

from headrace.authoring.dig import as_text
from headrace.errors import did_you_mean
from headrace.operators.dig.contract import Job, OperatorError, Params
from headrace.operators.dig.folders import inside_project


def text_of(job: Job, params: Params, alternative: str) -> str:
    """The file that the operator names, evaluated; or its `{data: text}`; or the text of another parameter."""
    command = params.raw("_command")
    if command is None:
        return params.text(alternative)
    if isinstance(command, dict):
        if set(command) != {"data"}:
            raise OperatorError(f"expected `{job.operator}>` to name a file or to be `{{data: text}}`")
        return Params(command, job.operator).read("data", as_text)
    return rendered_file(job, params.text("_command"))


def rendered_file(job: Job, name: str) -> str:
    """The text of a file of the project, evaluated."""
    return job.render(file_text(job, name), name)


def file_text(job: Job, name: str) -> str:
    """The text of a file of the project, as it is."""
    path = inside_project(job.root, job.folder / name, name)
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        names = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        raise OperatorError(f"there is no file `{name}`", hint=did_you_mean(path.name, names)) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise OperatorError(f"could not read `{name}`: {reason}") from None
