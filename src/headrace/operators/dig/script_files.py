"""Programs that get the parameters as a JSON file and leave what they have to say in another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headrace.operators.dig.contract import OperatorError, Outcome
from headrace.operators.dig.shell import run_program


def run_with_files(
    language: str, program: list[str], folder: Path, values: dict[str, Any], environment: dict[str, str]
) -> Outcome:
    """Run a program with the paths of both files as its last arguments."""
    # Few tasks run one. It brings `random`, which every process that is forked has to seed anew.
    import tempfile

    with tempfile.TemporaryDirectory(prefix="headrace-script-") as exchange:
        source, target = Path(exchange, "in.json"), Path(exchange, "out.json")
        source.write_text(json.dumps({"params": values}))
        code = run_program([*program, str(source), str(target)], folder, environment)
        result = _result(target, code)
    if code == 0 and "error" not in result:
        return Outcome(_subtasks(result) or None, _map(result, "export_params"), _map(result, "store_params"))
    error = result.get("error") or {}
    reason = f": {error.get('message')} ({error.get('class')})" if error else ""
    raise OperatorError(
        f"{language} command failed with code {code}{reason}",
        type_name=error.get("class"),
        detail="\n".join(str(line).rstrip("\n") for line in error.get("backtrace") or ()),
    )


def run_script(
    language: str,
    program: list[str],
    suffix: str,
    script: str,
    folder: Path,
    values: dict[str, Any],
    environment: dict[str, str],
) -> Outcome:
    """Run a program that is written in the task; it reads and writes the files that it is called with."""
    import tempfile  # see above

    with tempfile.NamedTemporaryFile("w", prefix="headrace-script-", suffix=suffix, encoding="utf-8") as file:
        file.write(script)
        file.flush()
        return run_with_files(language, [*program, file.name], folder, values, environment)


def as_words(value: Any) -> list[str]:
    """A program with its first arguments, which may be written as a text or as a list."""
    return [str(word) for word in value] if isinstance(value, list) else [str(value)]


def _result(target: Path, code: int) -> dict[str, Any]:
    try:
        result = json.loads(target.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if code != 0:
            return {}  # the code says enough
        return {"error": {"message": "the program left no result", "class": "ResultMissing"}}
    except ValueError:
        return {"error": {"message": "the program left a result that is not JSON", "class": "ResultBroken"}}
    return result if isinstance(result, dict) else {}


def _subtasks(result: dict[str, Any]) -> dict[str, Any]:
    return _map(result, "subtask_config")


def _map(result: dict[str, Any], key: str) -> dict[str, Any]:
    value = result.get(key) or {}
    if not isinstance(value, dict):
        raise OperatorError(f"expected `{key}` of the program's result to be a map")
    return value
