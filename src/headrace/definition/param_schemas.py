"""Whether a parameter's value is what its JSON schema asks for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any


def schema_problem(value: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a value, as the end of a sentence; None if nothing is."""
    if not any(key in schema for key in _CHECKED):
        return None
    validator = _validator_class()(dict(schema), format_checker=_formats())
    error = next(iter(sorted(validator.iter_errors(value), key=lambda one: list(map(str, one.path)))), None)
    return None if error is None else _sentence(error)


def invalid_schema(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a schema itself; None if nothing is."""
    if not any(key in schema for key in _CHECKED):
        return None
    from jsonschema.exceptions import SchemaError

    try:
        _validator_class().check_schema(dict(schema))
    except SchemaError as error:
        return str(error.message)
    return None


_CHECKED = frozenset(
    """
    type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format
    items prefixItems contains minItems maxItems uniqueItems properties required additionalProperties minProperties
    maxProperties patternProperties propertyNames anyOf allOf oneOf not if $ref
    """.split()
)
"""The words of a schema that can refuse a value. Others (`title`, `section`, `examples`) are for forms."""

_EXPECTED: dict[str, Callable[[Any], str]] = {
    "type": lambda wanted: wanted if isinstance(wanted, str) else " or ".join(wanted),
    "enum": lambda wanted: f"one of {wanted!r}",
    "const": repr,
    "minimum": lambda wanted: f"at least {wanted}",
    "maximum": lambda wanted: f"at most {wanted}",
    "exclusiveMinimum": lambda wanted: f"more than {wanted}",
    "exclusiveMaximum": lambda wanted: f"less than {wanted}",
    "minLength": lambda wanted: f"at least {wanted} characters",
    "maxLength": lambda wanted: f"at most {wanted} characters",
    "minItems": lambda wanted: f"at least {wanted} elements",
    "maxItems": lambda wanted: f"at most {wanted} elements",
    "pattern": lambda wanted: f"something that matches `{wanted}`",
    "format": lambda wanted: f"something of the format `{wanted}`",
}


def _sentence(error: Any) -> str:
    where = "".join(f"[{part!r}]" for part in error.absolute_path)
    place = f" at {where}" if where else ""
    expected = _EXPECTED.get(error.validator)
    if expected is None:
        return f"{error.message}{place}"
    return f"expected {expected(error.validator_value)}{place}, got: {error.instance!r}"


@functools.cache
def _validator_class() -> Any:
    # Imported for the first value that has a schema: most workflows have none, and the library is not small.
    from jsonschema import Draft202012Validator, validators

    def is_array(checker: Any, instance: Any) -> bool:
        return isinstance(instance, list | tuple)

    checker = Draft202012Validator.TYPE_CHECKER.redefine("array", is_array)
    return validators.extend(Draft202012Validator, type_checker=checker)  # type: ignore[no-untyped-call]


@functools.cache
def _formats() -> Any:
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    checker.checkers = dict(FormatChecker.checkers)
    parsers: dict[str, Callable[[str], object]] = {
        "date": date.fromisoformat,
        "time": time.fromisoformat,
        "date-time": datetime.fromisoformat,
    }
    for name, parse in parsers.items():
        checker.checks(name, raises=ValueError)(_parses(parse))
    return checker


def _parses(parse: Callable[[str], object]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or parse(value) is not None
