"""A connection as fields, as a URI and as JSON: read and written exactly as Airflow does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from headrace.authoring.dag.exceptions import AirflowException

FIELDS = ("conn_type", "description", "host", "login", "password", "schema", "port", "extra")
EXTRA_KEY = "__extra__"
_OTHER_NAMES = {"postgresql": "postgres"}


def fields_of_text(text: str) -> dict[str, Any]:
    """The fields out of either form: JSON if it begins with a brace, a URI otherwise."""
    return fields_of_json(text) if text.lstrip().startswith("{") else fields_of_uri(text)


def fields_of_json(text: str) -> dict[str, Any]:
    """The fields of `{"conn_type": …, "host": …, "extra": {…}}`."""
    try:
        given = json.loads(text)
    except ValueError as error:
        raise AirflowException(f"expected a connection to be JSON: {error}") from None
    if not isinstance(given, dict):
        raise AirflowException(f"expected a connection to be a JSON object, got: {type(given).__name__}")
    return checked_fields(given)


def checked_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with `extra` as text and `port` as a number; AirflowException for a name that is none."""
    fields = {name: value for name, value in given.items() if name != "conn_id"}
    if "uri" in fields:
        return fields_of_uri(fields["uri"])
    unknown = sorted(set(fields) - set(FIELDS))
    if unknown:
        raise AirflowException(f"a connection has no field `{unknown[0]}`; it has {', '.join(FIELDS)}")
    extra = fields.get("extra")
    if extra is not None and not isinstance(extra, str):
        fields["extra"] = json.dumps(extra)
    port = fields.get("port")
    try:
        fields["port"] = int(port) if port not in (None, "") else None
    except (TypeError, ValueError):
        raise AirflowException(f"expected the port of a connection to be a number, got: {port!r}") from None
    if fields.get("conn_type"):
        fields["conn_type"] = normal_type(fields["conn_type"])
    return {name: value for name, value in fields.items() if value is not None}


def normal_type(conn_type: str) -> str:
    """The type as hooks know it: `google-cloud-platform` → `google_cloud_platform`, `postgresql` → `postgres`."""
    return _OTHER_NAMES.get(conn_type, conn_type.replace("-", "_"))


def fields_of_uri(uri: str) -> dict[str, Any]:
    """The fields of `type://login:password@host:port/schema?extra=…`, every part percent-decoded."""
    count = uri.count("://")
    if count > 2:
        raise AirflowException("expected the URI of a connection to have one protocol besides its type")
    conn_type = urlsplit(uri).scheme
    rest = uri.replace(f"{conn_type}://", "" if count == 2 else "//")
    if count == 2 and any(mark in rest.split("://", 1)[0] for mark in "@:"):
        raise AirflowException("expected the URI of a connection to be `type://protocol://host`")
    parts = urlsplit(rest)
    host = _host(parts)
    try:
        port = parts.port
    except ValueError:
        raise AirflowException("expected the port in the URI of a connection to be a number up to 65535") from None
    fields = {
        "conn_type": normal_type(conn_type),
        "host": f"{parts.scheme}://{host}" if count == 2 and host else host,
        "schema": unquote(parts.path[1:]),
        "login": unquote(parts.username) if parts.username else parts.username,
        "password": unquote(parts.password) if parts.password else parts.password,
        "port": port,
        "extra": _extra(parts.query) if parts.query else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _host(parts: SplitResult) -> str:
    """In small letters, as URIs have hosts; one that is a quoted path or URL keeps its letters."""
    host = unquote(parts.hostname or "")
    return unquote(parts.netloc.rpartition("@")[2].partition(":")[0]) if "/" in host else host


def _extra(query: str) -> str:
    pairs: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    if EXTRA_KEY in pairs:
        return str(pairs[EXTRA_KEY])
    return json.dumps({key: _maybe_json(value) for key, value in pairs.items()})


def _maybe_json(text: str) -> Any:
    try:
        return json.loads(text) if text else text
    except ValueError:
        return text


def uri_of(fields: Mapping[str, Any]) -> str:
    """The URI that `fields_of_uri` reads back."""
    conn_type = fields.get("conn_type")
    uri = f"{conn_type.lower().replace('_', '-')}://" if conn_type else "//"
    host = fields.get("host") or ""
    if "://" in host and host.split("://", 1)[0] != conn_type:
        protocol, host = host.split("://", 1)
        uri += f"{protocol}://"
    login, password = fields.get("login"), fields.get("password")
    authority = "" if login is None else quote(login, safe="")
    authority += "" if password is None else f":{quote(password, safe='')}"
    uri += f"{authority}@" if authority else ""
    uri += quote(host, safe="")
    if port := fields.get("port"):
        uri += f":{port}" if host or authority else f"@:{port}"
    schema = fields.get("schema")
    uri += f"/{quote(schema, safe='')}" if schema else ""
    if extra := fields.get("extra"):
        uri += ("?" if schema else "/?") + _query(extra)
    return uri


def _query(extra: str) -> str:
    parsed = _maybe_json(extra)
    if isinstance(parsed, dict) and parsed and all(isinstance(value, str) for value in parsed.values()):
        query = urlencode(parsed)
        if all(_maybe_json(value) == value for value in parsed.values()):
            return query
    return urlencode({EXTRA_KEY: extra})
