"""Tasks that call a Python function in another Python: an interpreter that is there, with packages of its own."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import signal
import sys
import tempfile
import textwrap
import types
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from headrace.authoring.dag import Context
from headrace.authoring.dag.context import CONTEXT_KEYS
from headrace.authoring.dag.exceptions import AirflowException, AirflowSkipException
from headrace.authoring.dag.values import decode_value, encode_value
from headrace.authoring.signatures import signature_of
from headrace.errors import did_you_mean
from headrace.operators.bash import copy_lines
from headrace.operators.branch import follow
from headrace.operators.program import Program, start_with_pipe
from headrace.operators.python import PythonOperator, arguments_for

SERIALIZERS = ("json", "pickle", "cloudpickle", "dill")
_PROGRAM = Path(__file__).with_name("outside_program.py")
_AT_HOME = frozenset(
    """
    asset_state_store conn dag dag_run exception inlet_events inlets macros outlet_events outlets task task_instance
    task_state_store templates_dict ti triggering_asset_events triggering_dataset_events var
    """.split()
)
"""What of the context is an object of the task's own process."""


class OutsidePythonOperator(PythonOperator):
    """Calls a function in a Python that a subclass provides. Only its source, arguments and result go across.

    The function must stand alone: what it needs, it imports inside. `serializer` says how arguments and result travel.
    """

    shown_fields: ClassVar[Sequence[str]] = ("callable_name", "serializer")

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        serializer: str | None = None,
        use_dill: bool = False,
        string_args: Iterable[str] | None = None,
        expect_airflow: bool = True,
        skip_on_exit_code: int | Container[int] | None = None,
        env_vars: Mapping[str, str] | None = None,
        inherit_env: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(python_callable=python_callable, **kwargs)
        self._check_function()
        self.serializer = serializer or ("dill" if use_dill else "json")
        if self.serializer not in SERIALIZERS:
            hint = did_you_mean(self.serializer, SERIALIZERS)
            raise AirflowException(
                f"expected `serializer` of task `{self.task_id}` to be one of {', '.join(SERIALIZERS)},"
                f" got: {self.serializer!r}" + (f", {hint}" if hint else "")
            )
        self.string_args = list(string_args or ())
        self.expect_airflow = expect_airflow
        self.skip_on_exit_code = _codes(skip_on_exit_code)
        self.env_vars = env_vars
        self.inherit_env = inherit_env
        self.process: Program | None = None

    def call(self, context: Context) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no call()")

    def call_with(self, python: Path, context: Context) -> Any:
        """What the function returns when this interpreter calls it."""
        with tempfile.TemporaryDirectory(prefix="headrace-call-") as folder:
            call = self._write_call(Path(folder), context)
            code = self._run([str(python), str(_PROGRAM), str(call)])
            if code in self.skip_on_exit_code:
                raise AirflowSkipException(f"the function of task `{self.task_id}` exited with {code}: skipped")
            if code != 0:
                raise AirflowException(self._failure(code, call.with_name("error")))
            return self._result(call.with_name("result"))

    def on_kill(self) -> None:
        if self.process is not None:
            self.process.send(signal.SIGTERM)

    def _write_call(self, folder: Path, context: Context) -> Path:
        args = list(self.op_args)
        given = dict(self.op_kwargs)
        if self.templates_dict and "templates_dict" in signature_of(self.python_callable).parameters:
            given["templates_dict"] = self.templates_dict
        kwargs = arguments_for(self.python_callable, args, given, _portable(context))
        call = {
            "source": self.source(),
            "file": inspect.getfile(self.python_callable),
            "name": self.python_callable.__name__,
            "string_args": [str(value) for value in self.string_args],
            "serializer": self.serializer,
            "args": [],
            "kwargs": {},
            "arguments_file": str(folder / "arguments"),
            "result_file": str(folder / "result"),
            "error_file": str(folder / "error"),
        }
        if self.serializer == "json":
            call["args"] = json.loads(encode_value(args, f"{self.task_id}.op_args"))
            call["kwargs"] = json.loads(encode_value(kwargs, f"{self.task_id}.op_kwargs"))
        else:
            (folder / "arguments").write_bytes(self._library().dumps((args, kwargs)))
        path = folder / "call.json"
        path.write_text(json.dumps(call), encoding="utf-8")
        return path

    def source(self) -> str:
        """The function's source without its decorators, on the lines that it has in its file."""
        lines, first = inspect.getsourcelines(self.python_callable)
        text = textwrap.dedent("".join(lines))
        (definition,) = ast.parse(text).body
        body = text.splitlines(keepends=True)[definition.lineno - 1 :]
        # So that annotations need nothing, and tracebacks name the right lines.
        return "from __future__ import annotations" + "\n" * (first + definition.lineno - 2) + "".join(body)

    def _run(self, command: list[str]) -> int:
        self.process, output = start_with_pipe(command, os.curdir, self._environment())
        with output:
            copy_lines(output, sys.stdout, "utf-8")
        return self.process.wait()

    def _environment(self) -> dict[str, str]:
        environment = dict(os.environ) if self.inherit_env else {}
        folder = Path(inspect.getfile(self.python_callable)).parent
        # The folders of the project, from which the file itself imports.
        own = [path for path in sys.path if path and folder.is_relative_to(path)]
        paths = [path for path in (environment.get("PYTHONPATH"), *own) if path]
        return environment | {"PYTHONPATH": os.pathsep.join(paths)} | dict(self.env_vars or {})

    def _result(self, path: Path) -> Any:
        if self.serializer == "json":
            return decode_value(json.loads(path.read_text(encoding="utf-8")))
        return self._library().loads(path.read_bytes())

    def _failure(self, code: int, path: Path) -> str:
        if not path.exists():
            how = f"was killed by signal {-code}" if code < 0 else f"exited with {code}"
            return f"the function of task `{self.task_id}` {how}, expected 0"
        error = json.loads(path.read_text(encoding="utf-8"))
        return f"the function of task `{self.task_id}` raised {error['type']}: {error['message']}"

    def _library(self) -> Any:
        """What the user has chosen to exchange objects with, between processes of the user's own."""
        try:
            return importlib.import_module(self.serializer)
        except ImportError:
            raise AirflowException(
                f"task `{self.task_id}` has the serializer `{self.serializer}`, which is not installed here"
            ) from None

    def _check_function(self) -> None:
        function = self.python_callable
        if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
            raise ValueError(f"expected `python_callable` of task `{self.task_id}` to be a function made by def")
        if inspect.isgeneratorfunction(function):
            raise ValueError(f"the function of task `{self.task_id}` uses yield, which cannot be called elsewhere")


class ExternalPythonOperator(OutsidePythonOperator):
    """Calls a function with a Python interpreter that is installed already, such as that of a virtual environment."""

    operator_name = "external_python"
    template_fields: Sequence[str] = ("python", *PythonOperator.template_fields)

    def __init__(self, *, python: str, expect_pendulum: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not python:
            raise ValueError(f"expected `python` of task `{self.task_id}` to be the path of an interpreter")
        self.python = python

    def call(self, context: Context) -> Any:
        path = Path(self.python)
        if not path.is_absolute() or not path.is_file():
            raise ValueError(
                f"expected `python` of task `{self.task_id}` to be the full path of an interpreter that is"
                f" there, got: `{path}`"
            )
        return self.call_with(path, context)


class BranchExternalPythonOperator(ExternalPythonOperator):
    """Follows the tasks or groups whose ids its function returns."""

    operator_name = "branch_external_python"

    def execute(self, context: Context) -> Any:
        return follow(self, context, super().execute(context))


def _portable(context: Context) -> Context:
    """What of the context means something elsewhere: words, numbers and dates, each made when it is asked for."""
    names = [name for name in CONTEXT_KEYS - _AT_HOME if name in context]
    return Context({}, dict.fromkeys(names, lambda _, name: context[name]))


def _codes(codes: int | Container[int] | None) -> Container[int]:
    if codes is None:
        return ()
    return (codes,) if isinstance(codes, int) else codes
