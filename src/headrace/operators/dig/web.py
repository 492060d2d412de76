"""The `http>` operator: one request, tried again while the server is not well."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from headrace.authoring.dig import as_boolean, as_integer, as_map, as_seconds, as_text
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.poll_intervals import poll_again
from headrace.operators.dig.secret_references import fill_in_secrets, filled_in
from headrace.operators.dig.service_options import ServiceOptions
from headrace.operators.dig.web_client import Unreachable, WebError, WebRequest, WebResponse, send

_MOST_CONTENT = 64 * 1024
_RETRIED_METHODS = ("GET", "HEAD", "OPTIONS", "TRACE")
_RETRIED_STATUSES = (408, 429)
_FORMATS = ("text", "json", "form")


def run_http(job: Job) -> Outcome:
    """Send a request; its status and, if asked for, what came back are stored for the tasks that follow."""
    params = job.params.with_defaults("http")
    stores_content = params.boolean("store_content")
    response = fetch(job, params)
    stored: dict[str, Any] = {"last_status": response.status}
    reset = ["http.last_status"]
    if stores_content:
        if response.is_cut:
            raise OperatorError(f"the response is larger than {_MOST_CONTENT} bytes, too large for `store_content`")
        stored["last_content"] = _decoded(response)
        # Without `store_content`, what an earlier request has stored stays.
        reset.append("http.last_content")
    return Outcome(store={"http": stored}, reset=tuple(reset))


def fetch(job: Job, params: Params) -> WebResponse:
    """Send the request that the parameters describe. A failure that may pass asks to be called again."""
    request = _request(job, params)
    is_repeatable = params.read("retry", as_boolean, request.method in _RETRIED_METHODS)
    try:
        response = send(request, _MOST_CONTENT)
    except Unreachable as error:
        if not is_repeatable:
            raise
        print(f"{error}; trying again", flush=True)
        raise poll_again(job, 1, 30) from None
    if response.status < 400:
        return response
    may_pass = response.status in _RETRIED_STATUSES or (response.status >= 500 and is_repeatable)
    text = f"{request.method} {_without_query(request.url)} was answered with status {response.status}"
    if not may_pass:
        raise OperatorError(text, type_name="HttpStatusError", detail=_decoded(response)[:2000])
    print(f"{text}; trying again", flush=True)
    raise poll_again(job, 1, 30)


def _request(job: Job, params: Params) -> WebRequest:
    options = ServiceOptions(job, params, "http")
    method = params.read("method", as_text, "GET").upper()
    body, content_type = _content(job, params)
    headers = {**_authorization(options), **_headers(job, params)}
    if body is not None:
        headers["Content-Type"] = content_type
    return WebRequest(
        url=_with_query(job, params, _address(job, params, options)),
        method=method,
        headers=headers,
        body=body,
        timeout_seconds=float(params.read("timeout", _seconds, 30)),
        follows_redirects=params.boolean("follow_redirects", True),
        is_insecure=params.boolean("insecure"),
        proxy=_proxy(job, params),
    )


def _address(job: Job, params: Params, options: ServiceOptions) -> str:
    given = params.read("_command", as_text, None)
    address = options.secret("uri") if given is None else fill_in_secrets(given, job.channel)
    if address is None:
        raise OperatorError(f"parameter `{job.operator}>` or secret `http.uri` is required but not set")
    return quote(address, safe="%/:=&?~#+!$,;'@()*[]")


def _with_query(job: Job, params: Params, url: str) -> str:
    query = filled_in(params.raw("query"), job.channel)
    if query is None:
        return url
    try:
        fields = [(key, _scalar(f"query.{key}", value)) for key, value in as_map(query).items()]
    except ValueError:
        fields = parse_qsl(_scalar("query", query), keep_blank_values=True)
    parts = urlsplit(url)
    joined = "&".join(part for part in (parts.query, urlencode(fields)) if part)
    return urlunsplit(parts._replace(query=joined))


def _headers(job: Job, params: Params) -> dict[str, str]:
    """A list of maps or one map; of a header that is there twice the values are joined."""
    given = filled_in(params.raw("headers"), job.channel) or []
    found: dict[str, str] = {}
    for entry in [given] if isinstance(given, dict) else given:
        if not isinstance(entry, dict):
            raise OperatorError("expected `headers` to be a list of `name: value`")
        for name, value in entry.items():
            text = _scalar(f"headers.{name}", value)
            found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _authorization(options: ServiceOptions) -> dict[str, str]:
    own = options.secret("authorization")
    user = options.secret("user")
    if own is not None:
        return {"Authorization": own}
    if user is None:
        return {}
    pair = f"{user}:{options.secret('password') or ''}"
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _content(job: Job, params: Params) -> tuple[bytes | None, str]:
    content = filled_in(params.raw("content"), job.channel)
    content_format = params.read("content_format", as_text, "json" if isinstance(content, dict | list) else "text")
    content_type = params.read("content_type", as_text, None)
    if content is None:
        return None, ""
    if content_format == "json":
        return json.dumps(content, ensure_ascii=False).encode(), content_type or "application/json"
    if content_format == "form":
        fields = Params({"content": content}, job.operator).read("content", as_map)
        pairs = [(key, _scalar(f"content.{key}", value)) for key, value in fields.items()]
        return urlencode(pairs).encode(), content_type or "application/x-www-form-urlencoded"
    if content_format == "text":
        return _scalar("content", content).encode(), content_type or "text/plain"
    raise OperatorError(f"expected `content_format` to be one of {', '.join(_FORMATS)}, got: `{content_format}`")


def _proxy(job: Job, params: Params) -> str | None:
    given = Params(params.read("proxy", as_map, {}), job.operator)
    options = ServiceOptions(job, given, "http.proxy")
    if not options.boolean("enabled", False):
        return None
    if options.boolean("tls", False):
        raise WebError("a proxy that is itself reached over TLS is not supported: leave `proxy.tls` out")
    user = options.read("user", as_text, None)
    password = options.read("password", as_text, "")
    login = "" if user is None else f"{quote(user, safe='')}:{quote(password, safe='')}@"
    return f"http://{login}{options.text('host')}:{options.read('port', as_integer, 3128)}"


def _scalar(name: str, value: Any) -> str:
    try:
        return as_text(value)
    except ValueError as error:
        raise OperatorError(f"expected `{name}` {error}") from None


def _seconds(value: Any) -> int:
    """A duration, or a number of seconds."""
    return value if isinstance(value, int) and not isinstance(value, bool) else as_seconds(value)


def _decoded(response: WebResponse) -> str:
    charset = response.headers.get_content_charset() or "utf-8"
    try:
        return response.body.decode(charset, errors="replace")
    except LookupError:
        return response.body.decode("utf-8", errors="replace")


def _without_query(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="", netloc=parts.netloc.rpartition("@")[2]))
