"""The `py>` operator: calls a Python function in the task's process, or under another Python if `python` names one."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from headrace.authoring.dig import as_text
from headrace.handoff import user_traceback
from headrace.operators.dig import python_program
from headrace.operators.dig.containers import tell_of_docker
from headrace.operators.dig.contract import Job, OperatorError, Outcome
from headrace.operators.dig.environment import own_variables, process_environment
from headrace.operators.dig.script_files import as_words, run_script, run_with_files


def run_python(job: Job) -> Outcome:
    """Call `module.function` with arguments from the parameters of the same names."""
    params = job.params.with_defaults("py")
    command = params.read("_command", as_text, None)
    script = params.read("script", as_text, None) if command is None else None
    variables = own_variables(params, job.channel)
    python = params.read("python", as_words, None)
    values = params.everything()
    tell_of_docker(job, python or [sys.executable])
    if script is not None:
        program = python or [sys.executable]
        return run_script("Python", program, ".py", script, job.folder, values, process_environment(variables))
    if command is None:
        raise OperatorError("parameter `py>` or `script` is required but not set")
    if python is not None:
        program = [*python, python_program.__file__, command]
        return run_with_files("Python", program, job.folder, values, process_environment(variables))
    with _surroundings(job, values, variables):
        _call(command, values)
        environment = python_program.env
        return Outcome(environment.subtask_config or None, environment.export_params, environment.store_params)


def _call(command: str, values: dict[str, Any]) -> None:
    try:
        python_program.call(command, values)
    except python_program.CommandError as error:
        raise OperatorError(str(error)) from None
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise _failure(code, "called sys.exit", error) from None
    except Exception as error:
        raise _failure(1, f"{error} ({type(error).__name__})", error) from None


def _failure(code: int, reason: str, error: BaseException) -> OperatorError:
    return OperatorError(
        f"Python command failed with code {code}: {reason}",
        type_name=type(error).__name__,
        detail=user_traceback(error),
    )


@contextlib.contextmanager
def _surroundings(job: Job, values: dict[str, Any], variables: dict[str, str]) -> Iterator[None]:
    """The task's folder, environment, import path and `digdag` module, taken back afterwards."""
    environment, path = dict(os.environ), list(sys.path)
    # Appended, so that a file of the project cannot hide a module of the standard library.
    sys.path += [str(folder) for folder in dict.fromkeys((job.folder, job.root)) if str(folder) not in sys.path]
    sys.modules["digdag"] = python_program.module
    python_program.env.begin(values)
    os.environ.update(variables)
    try:
        with contextlib.chdir(job.folder):
            yield
    finally:
        sys.path[:] = path
        _restore_environment(environment)


def _restore_environment(wanted: dict[str, str]) -> None:
    now = dict(os.environ)
    for key in now.keys() - wanted.keys():
        del os.environ[key]
    os.environ.update(wanted.items() - now.items())
