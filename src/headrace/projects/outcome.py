"""What loading one file ended with: the parse process's messages, and a sentence for everything that can go wrong."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec

from headrace.authoring import SlotQuestion, ToldSlot
from headrace.definition import Data, Workflow, keep_storable

MAX_OUTCOME_BYTES = 64 * 1024 * 1024
"""The largest answer of a file; a workflow of 100,000 tasks needs about half of it."""


class SourceError(Data, frozen=True, kw_only=True):
    """Why a file could not be loaded."""

    message: str
    file: str = ""
    """Where the mistake is; a file may fail because of another one that it imports."""
    line: int | None = None
    detail: str = ""
    """The user's traceback and what the file printed, if anything."""
    hint: str | None = None

    def __post_init__(self) -> None:
        keep_storable(self, "message", "detail", "hint")


class ParsedFile(Data, frozen=True, kw_only=True):
    """One workflow file after loading: its workflows, or why there are none."""

    file: str
    digest: str
    """SHA-256 of the file's bytes; empty if it could not be read."""
    workflows: tuple[Workflow, ...] = ()
    error: SourceError | None = None
    output: str = ""
    """What the file printed while it was loaded, cut in the middle if it was much."""
    seconds: float = 0.0
    content: bytes | None = None
    """The very bytes that were loaded, unless they are many or could not be loaded."""
    slot: ToldSlot | None = None
    """The answer, if the file was loaded to be asked something."""


class ParseRequest(Data, frozen=True, kw_only=True, tag="request"):
    root: str
    file: str
    timeout_seconds: float
    memory_mb: int
    question: SlotQuestion | None = None
    """Asked of the file once it is loaded, in place of its workflows."""


class Outcome(Data, frozen=True, kw_only=True):
    """What the forked process says if it gets that far."""

    workflows: tuple[Workflow, ...] = ()
    error: SourceError | None = None
    slot: ToldSlot | None = None


class ParseReply(Data, frozen=True, kw_only=True, tag="reply"):
    """How the forked process ended, as its parent saw it."""

    digest: str = ""
    content: bytes | None = None
    outcome: msgspec.Raw = msgspec.Raw(b"null")
    """An Outcome, or null if the process did not get that far."""
    unreadable: str = ""
    """Why the file could not be read at all."""
    exit_code: int | None = None
    """Negative: the number of the signal."""
    is_timeout: bool = False
    is_too_large: bool = False
    output: str = ""
    trace: str = ""
    """Where the process was when it was stopped, as the interpreter's fault handler wrote it."""
    seconds: float = 0.0


def hiding(parsed: ParsedFile, hide: Callable[[str], str]) -> ParsedFile:
    """The same without secrets in what the file printed and in what went wrong."""
    error = parsed.error
    if error is not None:
        error = msgspec.structs.replace(error, message=hide(error.message), detail=hide(error.detail))
    return msgspec.structs.replace(parsed, output=hide(parsed.output), error=error)


def parsed_file(request: ParseRequest, reply: ParseReply) -> ParsedFile:
    """The result of one file from what is known about its process."""
    outcome = _outcome(request, reply)
    error = outcome.error
    if error is not None and reply.output:
        detail = f"{error.detail.rstrip()}\n\n" if error.detail else ""
        error = msgspec.structs.replace(error, detail=f"{detail}output:\n{reply.output}")
    return ParsedFile(
        file=request.file,
        digest=reply.digest,
        workflows=outcome.workflows if error is None else (),
        error=error,
        output=reply.output,
        seconds=reply.seconds,
        content=reply.content if error is None else None,
        slot=outcome.slot,
    )


def _outcome(request: ParseRequest, reply: ParseReply) -> Outcome:
    try:
        outcome = msgspec.json.decode(reply.outcome, type=Outcome | None)
    except msgspec.DecodeError as error:
        message = f"loading `{request.file}` gave no workflows: {error}"
        return Outcome(error=SourceError(message=message, file=request.file))
    return Outcome(error=_explain(request, reply)) if outcome is None else outcome


def _explain(request: ParseRequest, reply: ParseReply) -> SourceError:
    if reply.unreadable:
        return SourceError(message=f"could not read `{request.file}`: {reply.unreadable}", file=request.file)
    file, line, frames = _stuck_at(reply.trace, request)
    message, hint = _sentence(request, reply)
    return SourceError(message=message, file=file, line=line, detail=frames, hint=hint)


def _sentence(request: ParseRequest, reply: ParseReply) -> tuple[str, str | None]:
    name, code = request.file, reply.exit_code
    if reply.is_too_large:
        return f"the workflows of `{name}` are larger than {MAX_OUTCOME_BYTES // 1024 // 1024} MB", None
    if reply.is_timeout or code == -signal.SIGXCPU:
        return (
            f"loading `{name}` took longer than {request.timeout_seconds:g} s and was stopped",
            "a file is loaded often: do slow work inside of a task",
        )
    if code is None:
        return f"the process that loaded `{name}` vanished", None
    if code < 0:
        hint = "often the machine ran out of memory" if code == -signal.SIGKILL else None
        return f"loading `{name}` was ended by signal {-code} ({_signal_name(-code)})", hint
    return (
        f"`{name}` ended its process with exit code {code} while it was loaded",
        "a workflow file may neither exit nor become another program",
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


_FRAME = re.compile(r'^  File "(?P<path>.+)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)


def _stuck_at(trace: str, request: ParseRequest) -> tuple[str, int | None, str]:
    """File, line and frames of the user's code in a fault handler's trace, which begins with the innermost frame."""
    root = Path(request.root)
    frames = [frame for frame in _FRAME.finditer(trace) if Path(frame["path"]).is_relative_to(root)]
    if not frames:
        return request.file, None, ""
    shown = "\n".join(frame[0] for frame in reversed(frames))
    innermost = frames[0]
    return str(Path(innermost["path"]).relative_to(root)), int(innermost["line"]), f"stopped at:\n{shown}"
