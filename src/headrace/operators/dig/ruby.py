"""The `rb>` operator: calls a Ruby method with arguments from the parameters of the same names."""

from __future__ import annotations

from pathlib import Path

from headrace.authoring.dig import as_text
from headrace.operators.dig.contract import Job, Outcome
from headrace.operators.dig.environment import own_variables, process_environment
from headrace.operators.dig.script_files import run_with_files

_PROGRAM = Path(__file__).with_name("ruby_program.rb")


def run_ruby(job: Job) -> Outcome:
    """Call `Module::Class.method`, or a method that `require` defines."""
    params = job.params.with_defaults("rb")
    command = params.text("_command")
    ruby = params.read("ruby", as_text, "ruby")
    required = params.read("require", as_text, None)
    libraries = [] if required is None else ["-r", required]
    environment = process_environment(own_variables(params, job.channel))
    program = [ruby, "-I", str(job.folder), *libraries, str(_PROGRAM), command]
    return run_with_files("Ruby", program, job.folder, params.everything(), environment)
