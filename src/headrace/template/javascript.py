"""Evaluates `${…}` in parameters: each expression is JavaScript that sees the parameters as variables.

Expressions run in an engine without any input or output, with limits on time and memory. Dates without a time zone are
in the workflow's, and moment is there for whoever mentions it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

# The package around it also brings pools of threads, which every process that is forked later has to clean up after.
import _quickjs as quickjs

from headrace.errors import HeadraceError, did_you_mean
from headrace.template.javascript_libraries import mentioned, source_of
from headrace.template.local_zone import local_zone

UNEVALUATED_KEYS = frozenset(("_do", "_else_do"))
"""Bodies that become tasks of their own and are evaluated there, at any depth."""
REMOVED_KEYS = frozenset(("_check", "_error"))
"""Handlers, which no operator sees."""

_OPAQUE = re.compile(r"\$\{[a-z]+:")
# Strings may hold braces that do not count. A quote without its partner, as in a regular expression, is passed over.
_BRACES_AND_STRINGS = re.compile(r"""[{}]|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`""", re.DOTALL)
_BRACES = re.compile(r"[{}]")
_UNDEFINED = re.compile(r"ReferenceError: (\S+) is not defined")

# Texts cross as JSON with everything outside ASCII escaped: the engine's binding cuts plain texts at a NUL.
_MACHINE = r"""
(function () {
  var root = {}, printed = "", compiled = new Map(), libraries = {};
  function define(target, key, value) {
    Object.defineProperty(target, key, {value: value, writable: true, enumerable: true, configurable: true});
  }
  function compile(source) {
    if (!compiled.has(source)) {
      if (compiled.size >= 1000) compiled.clear();
      compiled.set(source, new Function("with (this) { return (" + source + "\n) }"));
    }
    return compiled.get(source);
  }
  function text(value) {
    if (value === null || value === undefined) return "";
    if (typeof value === "string") return value;
    var shown = JSON.stringify(value);
    return shown === undefined ? "" : shown;
  }
  // Not writable, so that no expression changes it for the next one; still to be defined anew, by `load`.
  function publish(value) {
    Object.defineProperty(globalThis, "moment", {value: value, writable: false, configurable: true});
  }
  publish(undefined);
  define(globalThis, "print", function () { printed += Array.prototype.join.call(arguments, ""); });
  var actions = {
    load: function (entry) {
      var module = {exports: {}};
      new Function("module", "exports", "require", entry[1])(module, module.exports, function (name) {
        return libraries[name];
      });
      libraries[entry[0]] = module.exports;
      publish(libraries.moment);
    },
    begin: function (params) {
      root = params;
      if (libraries.moment) libraries.moment.locale("en");
      if (libraries["moment-timezone"]) libraries.moment.tz.setDefault();
    },
    set: function (entry) { define(root, entry[0], entry[1]); },
    evaluate: function (entry) {
      var scope = root;
      if (entry[1] !== null) {
        scope = Object.create(root);
        Object.keys(entry[1]).forEach(function (key) { define(scope, key, entry[1][key]); });
      }
      printed = "";
      var value = text(compile(entry[0]).call(scope));
      return JSON.stringify(printed + value);
    }
  };
  return function (action, json) { return actions[action](JSON.parse(json)); };
})()
"""


class ExpressionError(HeadraceError):
    """A `${…}` that could not be evaluated."""


class Expression(NamedTuple):
    source: str


def split(template: str) -> list[str | Expression]:
    """Literal texts and expressions in turn. `$$` stands for `$` and `${}` for nothing; `${secret:…}` and an unclosed
    `${` are literal."""
    parts: list[str | Expression] = []
    text = ""
    literal = position = 0
    while (start := template.find("${", position)) >= 0:
        position = start + 2
        opaque = _OPAQUE.match(template, start)
        end = None if opaque else _closing_brace(template, position)
        if opaque is not None:
            position = opaque.end()
        elif end is not None:
            text += template[literal:start].replace("$$", "$")
            if end > position:
                parts += [text, Expression(template[position:end])]
                text = ""
            literal = position = end + 1
    return [*parts, text + template[literal:].replace("$$", "$")]


def _closing_brace(template: str, start: int) -> int | None:
    for tokens in (_BRACES_AND_STRINGS, _BRACES):
        depth = 1
        for match in tokens.finditer(template, start):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if depth == 0:
                return match.start()
    return None


class Evaluator:
    """Evaluates parameters in one JavaScript context, which is made at first use and kept.

    Not for two threads at once. A context that was made before a fork works in the child.
    """

    def __init__(self, time_limit_seconds: float = 5.0, memory_limit_bytes: int = 64 * 1024 * 1024) -> None:
        self._time_limit_seconds = time_limit_seconds
        self._memory_limit_bytes = memory_limit_bytes
        self._machine: Any = None
        self._libraries: set[str] = set()

    def warm_up(self, text: str = "") -> None:
        """Make the context now, with the libraries that a text mentions, so that forked children find it ready."""
        if self._machine is None:
            self._machine, self._libraries = self._make_machine(), set()
        for library in mentioned(text):
            if library not in self._libraries:
                self._machine("load", json.dumps([library, source_of(library)]))
                self._libraries.add(library)

    def evaluate(
        self,
        params: Mapping[str, Any],
        local: Mapping[str, Any] | None = None,
        verbatim: frozenset[str] = frozenset(),
        timezone: str = "UTC",
        names: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Parameters overlaid with a task's own ones, every text in them evaluated, in order.

        An expression sees the parameters, those of them evaluated that come before it, and of the task's own ones
        those that come before it. `verbatim` names parameters that are data and are not evaluated. `timezone` is where
        dates are local. `names` has what people call a parameter that goes by another name here.
        """
        merged = {key: value for key, value in merge(params, local or {}).items() if key not in REMOVED_KEYS}
        if not _has_dollar(merged):
            return merged
        with local_zone(timezone):
            return _Evaluation(self, dict(params), names).top_level(merged, UNEVALUATED_KEYS | verbatim)

    def render(self, text: str, params: Mapping[str, Any], timezone: str = "UTC", name: str = "text") -> str:
        """One text, with parameters that are evaluated already. What cannot be evaluated is told with name and line."""
        evaluation, rendered, line = _Evaluation(self, dict(params)), "", 1
        with local_zone(timezone):
            for part in split(text):
                if isinstance(part, str):
                    rendered, line = rendered + part, line + part.count("\n")
                else:
                    rendered += evaluation.expression(part, None, f"{name}:{line}")
                    line += part.source.count("\n")
        return rendered

    def call(self, action: str, argument: Any, source: str = "") -> Any:
        """One step of the engine, for the expression `source`. Raises ExpressionError with the engine's own words."""
        try:
            self.warm_up(source)
            return self._machine(action, json.dumps(argument))
        except (quickjs.JSException, quickjs.StackOverflow, UnicodeError) as error:
            raise ExpressionError(self._reason(str(error))) from None

    def _reason(self, message: str) -> str:
        reason = message.split("\n", 1)[0]
        # An exhausted engine may be left half-way through anything; the next expression gets a new one.
        if reason == "InternalError: interrupted":
            self._machine = None
            return f"it took longer than {self._time_limit_seconds:g} s"
        if reason in ("null", "InternalError: out of memory"):
            self._machine = None
            return f"it needed more than {self._memory_limit_bytes // (1024 * 1024)} MB of memory"
        return reason

    def _make_machine(self) -> Any:
        context = quickjs.Context()
        context.set_memory_limit(self._memory_limit_bytes)
        machine = context.eval(_MACHINE)
        # An assignment in an expression must not leave a variable behind for the next one.
        context.eval("Object.preventExtensions(globalThis)")
        context.set_time_limit(self._time_limit_seconds)
        return machine


class _Evaluation:
    """One pass over a map of parameters. `scope` holds what expressions see; the engine gets it with the first one."""

    def __init__(self, evaluator: Evaluator, scope: dict[str, Any], names: Mapping[str, str] | None = None) -> None:
        self._evaluator = evaluator
        self._scope = scope
        self._names = names or {}
        self._is_loaded = False
        self._keys: frozenset[str] = frozenset()

    def top_level(self, merged: Mapping[str, Any], verbatim: frozenset[str]) -> dict[str, Any]:
        evaluated: dict[str, Any] = {}
        self._keys = frozenset(merged)
        for key, value in merged.items():
            evaluated[key] = value if key in verbatim else self.value(value, None, self._names.get(key, key))
            self._set(key, evaluated[key])
        return evaluated

    def value(self, value: Any, siblings: dict[str, Any] | None, path: str) -> Any:
        """`siblings`: what an expression sees besides the parameters, the evaluated keys before it in its own map."""
        if not _has_dollar(value):
            return value
        if isinstance(value, str):
            return "".join(
                part if isinstance(part, str) else self.expression(part, siblings, path) for part in split(value)
            )
        if isinstance(value, list):
            return [self.value(item, siblings, f"{path}[{index}]") for index, item in enumerate(value)]
        return self._map(value, path)

    def _map(self, value: Mapping[str, Any], path: str) -> dict[str, Any]:
        evaluated: dict[str, Any] = {}
        for key, item in value.items():
            evaluated[key] = item if key in UNEVALUATED_KEYS else self.value(item, evaluated, f"{path}.{key}")
        return evaluated

    def expression(self, expression: Expression, siblings: dict[str, Any] | None, path: str) -> str:
        try:
            if not self._is_loaded:
                self._evaluator.call("begin", self._scope)
                self._is_loaded = True
            text = json.loads(self._evaluator.call("evaluate", [expression.source, siblings], expression.source))
        except ExpressionError as error:
            raise self._failure(expression, path, error.message) from None
        # JavaScript may cut a character in half; JSON and files cannot hold a half one.
        return str(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _failure(self, expression: Expression, path: str, reason: str) -> ExpressionError:
        undefined = _UNDEFINED.match(reason)
        hint = self._hint(undefined[1], path) if undefined else None
        return ExpressionError(f"could not evaluate `${{{expression.source}}}` of `{path}`: {reason}", hint=hint)

    def _hint(self, name: str, path: str) -> str | None:
        if name in self._keys and name != path:
            return f"a task's own parameters are evaluated from top to bottom: write `{name}` above `{path}`"
        return did_you_mean(name, self._scope)

    def _set(self, key: str, value: Any) -> None:
        if key in self._scope and self._scope[key] is value:
            return
        self._scope[key] = value
        if self._is_loaded:
            self._evaluator.call("set", [key, value])


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Maps grow together and keep the position of their keys; everything else is replaced by what is above."""
    merged = dict(below)
    for key, value in above.items():
        present = merged.get(key)
        merged[key] = merge(present, value) if isinstance(present, dict) and isinstance(value, dict) else value
    return merged


def _has_dollar(value: Any) -> bool:
    if isinstance(value, str):
        return "$" in value
    if isinstance(value, dict):
        return any(_has_dollar(item) for item in value.values())
    return isinstance(value, list) and any(_has_dollar(item) for item in value)
