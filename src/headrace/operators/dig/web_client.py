"""One request over HTTP, with what operators need: redirects, a proxy, TLS, a limit on what comes back."""

from __future__ import annotations

import http.client
import ssl
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from email.message import Message
from typing import IO, NamedTuple
from urllib.error import URLError
from urllib.parse import urljoin, urlsplit

from headrace.operators.dig.contract import OperatorError

_MOST_REDIRECTS = 8
_REDIRECTS = (301, 302, 303, 307, 308)
_KEEPS_METHOD = (307, 308)
_PRIVATE_HEADERS = ("authorization", "cookie")
_CHUNK = 64 * 1024


class WebError(OperatorError):
    """A request that cannot be sent."""


class Unreachable(WebError):
    """No answer: the server is not there, or was too slow, or the line broke."""


@dataclass(frozen=True, slots=True)
class WebRequest:
    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout_seconds: float = 30.0
    follows_redirects: bool = True
    is_insecure: bool = False
    """The server's certificate is not checked."""
    proxy: str | None = None
    """`http://user:password@host:port`"""


class WebResponse(NamedTuple):
    status: int
    headers: Message
    body: bytes
    is_cut: bool = False
    """There was more than was asked for."""


def send(request: WebRequest, most_bytes: int = 16 * 1024 * 1024, target: IO[bytes] | None = None) -> WebResponse:
    """The answer, whatever its status. A body goes to `target` if that is given and the status is 200."""
    for _ in range(_MOST_REDIRECTS + 1):
        response = _send_once(request, most_bytes, target)
        location = response.headers.get("Location")
        if not request.follows_redirects or response.status not in _REDIRECTS or not location:
            return response
        request = _redirected(request, response.status, urljoin(request.url, location))
    raise WebError(f"`{_shown(request.url)}` was redirected more than {_MOST_REDIRECTS} times")


def _send_once(request: WebRequest, most_bytes: int, target: IO[bytes] | None) -> WebResponse:
    if urlsplit(request.url).scheme not in ("http", "https"):
        raise WebError(f"expected an address that begins with `http://` or `https://`, got: `{_shown(request.url)}`")
    try:
        wire = urllib.request.Request(
            request.url,
            request.body,
            {"User-Agent": "Headrace", **request.headers},
            method=request.method,
        )
        with _opener(request).open(wire, timeout=request.timeout_seconds) as answer:
            if target is not None and answer.status == 200:
                while chunk := answer.read(_CHUNK):
                    target.write(chunk)
                return WebResponse(answer.status, answer.headers, b"")
            body = answer.read(most_bytes + 1)
            return WebResponse(answer.status, answer.headers, body[:most_bytes], len(body) > most_bytes)
    except http.client.InvalidURL:
        # Its own words quote the query.
        shown = _shown(request.url)
        raise WebError(f"expected an address without spaces and with a number as its port, got: `{shown}`") from None
    except (URLError, http.client.HTTPException, OSError) as error:
        reason = getattr(error, "reason", None) or error
        text = "no answer in time" if isinstance(reason, TimeoutError) else str(reason) or type(reason).__name__
        raise Unreachable(f"could not reach `{_shown(request.url)}`: {text}") from None
    except ValueError as error:
        raise WebError(f"could not send the request: {error}") from None


def _opener(request: WebRequest) -> urllib.request.OpenerDirector:
    """Speaks HTTP and nothing else, and takes every status for an answer."""
    opener = urllib.request.OpenerDirector()
    opener.add_handler(urllib.request.ProxyHandler(_proxies(request.proxy)))
    opener.add_handler(urllib.request.HTTPHandler())
    opener.add_handler(urllib.request.HTTPSHandler(context=_tls(request.is_insecure)))
    return opener


def _proxies(proxy: str | None) -> dict[str, str]:
    return {} if proxy is None else {"http": proxy, "https": proxy}


def _tls(is_insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _redirected(request: WebRequest, status: int, url: str) -> WebRequest:
    headers = dict(request.headers)
    if urlsplit(url)[:2] != urlsplit(request.url)[:2]:
        headers = {name: value for name, value in headers.items() if name.lower() not in _PRIVATE_HEADERS}
    if status in _KEEPS_METHOD or request.method in ("GET", "HEAD"):
        return replace(request, url=url, headers=headers)
    headers = {name: value for name, value in headers.items() if not name.lower().startswith("content-")}
    return replace(request, url=url, method="GET", body=None, headers=headers)


def _shown(url: str) -> str:
    """An address without its query and credentials, which may be secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
