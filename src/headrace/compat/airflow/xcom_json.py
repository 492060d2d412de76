"""`json.dumps(value, cls=XComEncoder)`: results as JSON text, by the rules by which they are stored."""

from __future__ import annotations

import json
from typing import Any

from headrace.authoring.dag.values import decode_value, to_json


class XComEncoder(json.JSONEncoder):
    """Writes whatever can be a result."""

    def encode(self, o: Any) -> str:
        return super().encode(to_json(o, "value"))


class XComDecoder(json.JSONDecoder):
    """Reads what XComEncoder wrote."""

    def decode(self, s: str, *args: Any) -> Any:
        return decode_value(super().decode(s, *args))
