"""The `rb>` operator: calls a Ruby method with arguments from the parameters of the same names."""

from __future__ import annotations

from pathlib import Path

from headrace.authoring.dig import as_text
from headrace.operators.dig.containers import tell_of_docker
from headrace.operators.dig.contract import Job, OperatorError, Outcome
from headrace.operators.dig.environment import own_variables, process_environment
from headrace.operators.dig.script_files import as_words, run_script, run_with_files

_PROGRAM = Path(__file__).with_name("ruby_program.rb")


def run_ruby(job: Job) -> Outcome:
    """Call `Module::Class.method` or a method that `require` defines, or run the text that `script` has."""
    params = job.params.with_defaults("rb")
    command = params.read("_command", as_text, None)
    script = params.read("script", as_text, None) if command is None else None
    required = params.read("require", as_text, "")
    ruby = params.read("ruby", as_words, ["ruby"])
    environment = process_environment(own_variables(params, job.channel))
    values = params.everything()
    tell_of_docker(job, ruby)
    ruby = [*ruby, "-I", str(job.folder)]
    if command is not None:
        # The program requires the file by itself, so that what goes wrong there is told like any other failure.
        return run_with_files("Ruby", [*ruby, str(_PROGRAM), required, command], job.folder, values, environment)
    if script is None:
        raise OperatorError("parameter `rb>` or `script` is required but not set")
    program = [*ruby, *(["-r", required] if required else [])]
    return run_script("Ruby", program, ".rb", script, job.folder, values, environment)
