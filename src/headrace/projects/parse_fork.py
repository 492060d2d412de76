"""The life of a forked process that loads one file: limits, the user's code, one answer, the end.

Its parent reads three pipes: the answer, what the file printed, and what the interpreter's fault handler wrote when the
process was stopped or crashed.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import resource
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from headrace.authoring import LoadedFile, TellsSlots
from headrace.authoring.asking import Asking, enter_loading
from headrace.definition import to_json
from headrace.errors import HeadraceError
from headrace.handoff import Answer, Ask, Reader, send, user_traceback, value_of
from headrace.projects.outcome import Outcome, ParseRequest, SourceError

Loader = Callable[[Path, str, bytes | None], LoadedFile]

_LENGTH = struct.Struct(">Q")


class Pipes(NamedTuple):
    """The writing ends."""

    result: int
    output: int
    trace: int


def live(request: ParseRequest, content: bytes, loader: Loader, pipes: Pipes, questions: socket.socket) -> NoReturn:
    """Load these bytes of the file and answer. Never returns into the code of the process that it is a fork of."""
    try:
        os.setsid()
        _redirect(pipes.output)
        _limit(request, pipes.trace)
        enter_loading(Asking(partial(_ask, questions)))
        answer = _encoded(_load(request, content, loader), request)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        _write(pipes.result, _LENGTH.pack(len(answer)) + answer)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _ask(questions: socket.socket, verb: str, args: dict[str, Any]) -> Any:
    """Have a question of the file answered while it is loaded."""
    send(questions, Ask(id=0, verb=verb, args=args))
    return value_of(Reader[Answer](Answer).receive(questions), verb)


def complete_outcome(data: bytearray) -> bytes:
    """The answer in what the parent has read, or `null` if it is not whole."""
    if len(data) < _LENGTH.size or _LENGTH.unpack_from(data)[0] != len(data) - _LENGTH.size:
        return b"null"
    return bytes(data[_LENGTH.size :])


def _redirect(output: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    sys.stdin = open(0, closefd=False)
    sys.stdout = open(1, "w", closefd=False, errors="backslashreplace", buffering=1)
    sys.stderr = open(2, "w", closefd=False, errors="backslashreplace", buffering=1)


def _limit(request: ParseRequest, trace: int) -> None:
    # Only a second line of defence: the wall clock stops a busy file first, at a line that can be shown.
    _set_limit(resource.RLIMIT_CPU, math.ceil(request.timeout_seconds) + 2)
    _set_limit(resource.RLIMIT_AS, request.memory_mb * 1024 * 1024)
    _set_limit(resource.RLIMIT_CORE, 0)
    faulthandler.enable(trace, all_threads=False)
    faulthandler.dump_traceback_later(request.timeout_seconds, exit=True, file=trace)


def _set_limit(kind: int, limit: int) -> None:
    """Set the soft limit only, so that it can be lifted again; not every system has every limit."""
    hard = resource.getrlimit(kind)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _load(request: ParseRequest, content: bytes, loader: Loader) -> Outcome:
    sys.argv = [request.file]
    try:
        loaded = loader(Path(request.root), request.file, content)
        if request.question is not None:
            return Outcome(slot=loaded.tell_slot(request.question) if isinstance(loaded, TellsSlots) else None)
        return Outcome(workflows=tuple(loaded.workflows))
    except BaseException as error:
        # Whatever stopped the file must not stop the report, which may need memory, too.
        resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
        return Outcome(error=_source_error(error, request))


def _encoded(outcome: Outcome, request: ParseRequest) -> bytes:
    try:
        return to_json(outcome)
    except HeadraceError as error:
        return to_json(Outcome(error=_source_error(error, request)))


def _source_error(error: BaseException, request: ParseRequest) -> SourceError:
    if isinstance(error.__cause__, MemoryError):
        error = error.__cause__
    if isinstance(error, HeadraceError):
        return SourceError(
            message=error.message,
            file=_relative(error.file or request.file, request),
            line=error.line,
            detail=getattr(error, "detail", None) or "",
            hint=error.hint,
        )
    file, line = _place(error, request)
    return SourceError(message=_message(error, request), file=file, line=line, detail=user_traceback(error))


def _message(error: BaseException, request: ParseRequest) -> str:
    if isinstance(error, MemoryError):
        return f"loading `{request.file}` needed more than {request.memory_mb} MB of memory"
    if isinstance(error, SystemExit):
        code = "" if error.code is None else repr(error.code)
        return f"`{request.file}` called sys.exit({code}) while it was loaded"
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _place(error: BaseException, request: ParseRequest) -> tuple[str, int | None]:
    """The innermost place in the project's own files."""
    if isinstance(error, SyntaxError) and error.filename:
        return _relative(error.filename, request), error.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).is_relative_to(request.root):
            return _relative(frame.filename, request), frame.lineno
    return request.file, None


def _relative(file: str, request: ParseRequest) -> str:
    path = Path(file)
    return str(path.relative_to(request.root)) if path.is_relative_to(request.root) else file


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
