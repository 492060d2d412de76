"""What functions of users take and return, without asking for more of their annotations than there is.

Since Python 3.14 an annotation is evaluated when it is first asked for. It may name what is imported for type checkers
alone, and that is no reason to refuse the function.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

if sys.version_info >= (3, 14):
    import annotationlib

    _find_signature = functools.partial(inspect.signature, annotation_format=annotationlib.Format.FORWARDREF)
    _find_annotations = functools.partial(annotationlib.get_annotations, format=annotationlib.Format.FORWARDREF)
else:
    _find_signature = inspect.signature
    _find_annotations = inspect.get_annotations


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """What a function takes. Found out where its file is loaded, it costs the processes of its tasks nothing."""
    try:
        return _kept_signature(function)
    except TypeError:
        # Callable objects need not be hashable.
        return _find_signature(function)


class Taken(NamedTuple):
    """What a function can be called with: the names of its parameters, and whether it takes any others."""

    names: tuple[str, ...]
    takes_all: bool


def taken_by(function: Callable[..., Any]) -> Taken:
    """The part of a function's signature that every call of a task needs."""
    try:
        return _kept_names(function)
    except TypeError:
        return _find_names(function)


def _find_names(function: Callable[..., Any]) -> Taken:
    parameters = signature_of(function).parameters
    return Taken(tuple(parameters), any(one.kind is one.VAR_KEYWORD for one in parameters.values()))


_kept_names = functools.lru_cache(maxsize=4096)(_find_names)
_kept_signature = functools.lru_cache(maxsize=4096)(_find_signature)


def return_annotation(function: Callable[..., Any]) -> Any:
    """What is written behind the arrow, as a string where the file asks for that; None: nothing."""
    return _find_annotations(function).get("return")
