"""Writes a program that calls one function elsewhere, such as in a container, for decorators like `@task.docker`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PROGRAM = """\
from __future__ import annotations

import {library}
import sys

{source}

def _call():
    arguments = {{"args": [], "kwargs": {{}}}}
    if {has_arguments}:
        with open(sys.argv[1], "rb") as file:
            arguments = {library}.load(file)
    try:
        result = {name}(*arguments["args"], **arguments["kwargs"])
    except Exception as error:
        if len(sys.argv) > 4:
            with open(sys.argv[4], "w") as file:
                file.write(str(error))
        raise
    with open(sys.argv[2], "wb") as file:
        {library}.dump(result, file)

_call()
"""


def write_python_script(
    jinja_context: Mapping[str, Any], filename: str, render_template_as_native_obj: bool = False
) -> None:
    """The program reads its arguments from the file that it is started with first and writes its result to the second.

    `jinja_context` is what providers pass: the function's source and name, and the library that keeps objects in files.
    """
    program = _PROGRAM.format(
        library=jinja_context["pickling_library"],
        source=jinja_context["python_callable_source"],
        name=jinja_context["python_callable"],
        has_arguments=bool(jinja_context.get("op_args") or jinja_context.get("op_kwargs")),
    )
    Path(filename).write_text(program, encoding="utf-8")


class _Library:
    """A library that is imported when it is used."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


SERIALIZERS = {name: _Library(name) for name in ("pickle", "dill", "cloudpickle")}
"""What users of such decorators choose from, for the way between processes of their own."""
