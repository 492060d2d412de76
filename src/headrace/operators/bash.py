"""Tasks that run a shell command."""

from __future__ import annotations

import codecs
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack
from typing import IO, Any, ClassVar

from headrace.authoring.dag import BaseOperator, Context
from headrace.authoring.dag.exceptions import AirflowException, AirflowSkipException
from headrace.authoring.dag.task_instance import context_environment
from headrace.operators.program import Program, start_with_pipe
from headrace.operators.python import PythonOperator
from headrace.template.jinja import Renderer, RenderOptions

_CHUNK_BYTES = 65_536
_GRACE_SECONDS = 2.0
_LINE_LIMIT_BYTES = 65_536
# Linux refuses a single argument of 128 KiB, so a longer command goes through a file.
_LONGEST_ARGUMENT_BYTES = 100_000


class BashOperator(BaseOperator):
    """Runs a command with bash. The last line of its output is the task's result."""

    operator_name = "bash"
    shown_fields: ClassVar[Sequence[str]] = ("bash_command", "cwd")
    template_fields: Sequence[str] = ("bash_command", "env", "cwd")
    template_ext: Sequence[str] = (".sh", ".bash")
    ui_color = "#f0ede4"

    def __init__(
        self,
        *,
        bash_command: Any,
        env: dict[str, str] | None = None,
        append_env: bool = False,
        output_encoding: str = "utf-8",
        skip_on_exit_code: int | Container[int] | None = 99,
        cwd: str | None = None,
        output_processor: Callable[[str], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bash_command = bash_command
        self.env = env
        self.append_env = append_env
        self.output_encoding = output_encoding
        self.skip_on_exit_code = skip_on_exit_code
        self.cwd = cwd
        self.output_processor = output_processor
        self.process: Program | None = None

    @property
    def runs_programs_only(self) -> bool:
        texts = [self.bash_command, self.cwd or "", *(self.env or {}).values()]
        is_plain = all(isinstance(text, str) for text in texts)
        # A subclass has code of its own.
        return type(self) is BashOperator and self.output_processor is None and is_plain

    def execute(self, context: Context) -> Any:
        """The last line that the command printed."""
        with ExitStack() as cleanup:
            folder = self._folder(cleanup)
            arguments = ["bash", *_as_arguments(self.bash_command, cleanup)]
            self.process, output = start_with_pipe(arguments, folder, self._environment(context))
            with output:
                last_line = copy_lines(output, sys.stdout, self.output_encoding)
            self._judge(self.process.wait())
        return last_line if self.output_processor is None else self.output_processor(last_line)

    def on_kill(self) -> None:
        """End the command and what it has started, but leave it a moment to clean up."""
        if self.process is None or self.process.has_ended:
            return
        if os.getpgrp() == os.getpid():
            _terminate_own_group()
        self.process.send(signal.SIGTERM)
        if not self.process.wait_for(_GRACE_SECONDS):
            self.process.send(signal.SIGKILL)
            self.process.wait()

    def _folder(self, cleanup: ExitStack) -> str:
        if self.cwd is None:
            return cleanup.enter_context(tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True))
        if not os.path.isdir(self.cwd):
            raise AirflowException(f"the folder `{self.cwd}` of task `{self.task_id}` does not exist or is no folder")
        return self.cwd

    def _environment(self, context: Context) -> dict[str, str]:
        environment = dict(os.environ) if self.env is None or self.append_env else {}
        return environment | context_environment(context) | (self.env or {})

    def _judge(self, code: int) -> None:
        if code == 0:
            return
        if _is_in(code, self.skip_on_exit_code):
            raise AirflowSkipException(f"the command of task `{self.task_id}` exited with {code}, which means skip")
        if code < 0:
            raise AirflowException(f"the command of task `{self.task_id}` was killed by signal {-code}")
        raise AirflowException(f"the command of task `{self.task_id}` exited with {code}, expected 0")


def _terminate_own_group() -> None:
    """Everybody in the task's process group but this process."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        os.killpg(os.getpgrp(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def copy_lines(source: IO[bytes], target: IO[str], encoding: str) -> str:
    """Copy output as it comes and return its last line, cut at 64 KiB. Memory stays bounded, however long a line is."""
    decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
    line, is_complete = bytearray(), False
    while chunk := os.read(source.fileno(), _CHUNK_BYTES):
        target.write(decoder.decode(chunk))
        target.flush()
        start = chunk.rfind(b"\n", 0, len(chunk) - 1) + 1
        if start or is_complete:
            line.clear()
        line += chunk[start : start + _LINE_LIMIT_BYTES - len(line)]
        is_complete = chunk.endswith(b"\n")
    target.write(decoder.decode(b"", True))
    return line.decode(encoding, "backslashreplace").rstrip()


def run_bash(command: str, env: dict[str, str] | None, encoding: str) -> int:
    """Run a command in a folder of its own, copy what it prints, and return its exit code."""
    with ExitStack() as cleanup:
        folder = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True))
        arguments = ["bash", *_as_arguments(command, cleanup)]
        program, output = start_with_pipe(arguments, folder, os.environ if env is None else env)
        try:
            with output:
                copy_lines(output, sys.stdout, encoding)
            return program.wait()
        finally:
            program.send(signal.SIGKILL)
            program.wait()


def _as_arguments(command: str, cleanup: ExitStack) -> list[str]:
    if len(command.encode()) <= _LONGEST_ARGUMENT_BYTES:
        return ["-c", command]
    script = cleanup.enter_context(tempfile.NamedTemporaryFile("w", suffix=".sh", prefix="headrace-"))
    script.write(command)
    script.flush()
    return [script.name]


def _is_in(code: int, codes: int | Container[int] | None) -> bool:
    if codes is None or isinstance(codes, int):
        return code == codes
    return code in codes


class BashFunctionOperator(BashOperator, PythonOperator):
    """`@task.bash`: runs the command that a function returns."""

    operator_name = "bash"
    shown_fields: ClassVar[Sequence[str]] = ("callable_name", "cwd")
    template_fields: Sequence[str] = ("op_args", "op_kwargs", "env", "cwd")

    def __init__(self, *, python_callable: Callable[..., Any], **kwargs: Any) -> None:
        super().__init__(bash_command="", python_callable=python_callable, **kwargs)

    def execute(self, context: Context) -> Any:
        command = self.call(context)
        if not isinstance(command, str) or not command.strip():
            raise TypeError(f"expected the function of task `{self.task_id}` to return a command, got: {command!r}")
        self.bash_command = Renderer(RenderOptions(), context).render(command)
        return super().execute(context)
