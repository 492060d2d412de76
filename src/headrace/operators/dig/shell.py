"""The `sh>` operator: a shell script that finds the parameters in its environment."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from headrace.authoring.dig import as_list
from headrace.operators.dig.containers import tell_of_docker
from headrace.operators.dig.contract import Job, OperatorError, Outcome
from headrace.operators.dig.environment import as_variables, own_variables, process_environment
from headrace.operators.dig.secret_references import fill_in_secrets
from headrace.operators.program import Program


def run_shell(job: Job) -> Outcome:
    """Run a script with `/bin/sh`, or the program that `shell` lists, in the task's folder."""
    params = job.params.with_defaults("sh")
    script = fill_in_secrets(params.text("_command"), job.channel)
    shell = [str(word) for word in params.read("shell", as_list, ["/bin/sh"])]
    environment = process_environment({**as_variables(params.everything()), **own_variables(params, job.channel)})
    tell_of_docker(job, shell)
    with _script_file(script) as path:
        code = run_program([*shell, path], job.folder, environment)
    if code != 0:
        raise OperatorError(f"Command failed with code {code}", type_name="CommandFailed")
    return Outcome()


@contextlib.contextmanager
def _script_file(script: str) -> Iterator[str]:
    """The path of a file that only this user can read. A folder of its own would take longer to make than all else."""
    # Not by `tempfile`: it brings `random`, which every process that is forked has to seed anew.
    path = os.path.join(_temporary_folder(), f"headrace-sh-{os.urandom(8).hex()}.sh")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(script.encode(errors="surrogateescape"))
        yield path
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _temporary_folder() -> str:
    named = [folder for name in ("TMPDIR", "TEMP", "TMP") if (folder := os.environ.get(name))]
    for folder in (*named, "/tmp", "/var/tmp"):
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return os.path.abspath(folder)
    raise OperatorError("there is no folder for temporary files", hint="set TMPDIR to one that can be written to")


def run_program(command: list[str], folder: Path, environment: dict[str, str]) -> int:
    """Run a program with the task's own output until it ends. A signal counts as 128 more, as in a shell."""
    try:
        program = Program(command, folder, environment)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = _largest(environment) if isinstance(error, OSError) and error.errno == errno.E2BIG else None
        raise OperatorError(f"could not start `{command[0]}`: {reason}", hint=hint) from None
    try:
        code = program.wait()
    except BaseException:
        # The task is being stopped. The program gets the same chance to clean up before the whole group is killed.
        program.send(signal.SIGTERM)
        program.wait()
        raise
    return code if code >= 0 else 128 - code


def _largest(environment: dict[str, str]) -> str:
    """What to do about an environment that the system does not take."""
    name = max(environment, key=lambda key: len(environment[key]))
    return f"the largest variable is `{name}` with {len(environment[name])} characters; let `py>` read it, or a file"
