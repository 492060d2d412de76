"""Requests to Google's services, with the token of a service account."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from headrace.operators.dig.contract import Job, OperatorError
from headrace.operators.dig.poll_intervals import poll_again
from headrace.operators.dig.web_client import Unreachable, WebRequest, WebResponse, send

_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)


class GoogleClient:
    """Speaks JSON with one of Google's services on behalf of the project's secret `gcp.credential`."""

    def __init__(self, job: Job, service: str, address: str) -> None:
        self._job = job
        self._address = (job.secret(f"gcp.{service}.endpoint", f"{service}.endpoint") or address).rstrip("/")
        self._credential = _credential(job)
        self._token = _token(self._credential, job)

    @property
    def project(self) -> str:
        """The project of the service account, unless the secret `gcp.project` names another one."""
        found = self._job.secret("gcp.project") or self._credential.get("project_id")
        if not found:
            raise OperatorError("the secret `gcp.credential` names no project: set `gcp.project`")
        return str(found)

    def ask(self, method: str, path: str, body: Any = None, accepted: tuple[int, ...] = ()) -> tuple[int, Any]:
        """Status and answer. A status that is neither good nor `accepted` is a failure, one that may pass a wait."""
        response = self._send(method, path, body)
        if response.status >= 500 or response.status == 429:
            print(f"{method} {path} was answered with status {response.status}; trying again", flush=True)
            raise poll_again(self._job, 1, 60)
        answer = _json(response)
        if response.status >= 400 and response.status not in accepted:
            reason = answer.get("error", {}).get("message") if isinstance(answer, dict) else None
            raise OperatorError(f"{method} {path} was answered with status {response.status}: {reason or 'no reason'}")
        return response.status, answer

    def _send(self, method: str, path: str, body: Any) -> WebResponse:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        content = None
        if body is not None:
            content, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        try:
            return send(WebRequest(f"{self._address}{path}", method, headers, content, timeout_seconds=60))
        except Unreachable as error:
            print(f"{error}; trying again", flush=True)
            raise poll_again(self._job, 1, 60) from None


def _credential(job: Job) -> dict[str, Any]:
    text = job.required_secret("gcp.credential")
    try:
        credential = json.loads(text)
    except ValueError:
        raise OperatorError("expected the secret `gcp.credential` to hold the JSON of a service account") from None
    return credential if isinstance(credential, dict) else {}


def _token(credential: dict[str, Any], job: Job) -> str:
    """A token that is in the credential already, or one that Google gives for the account's key."""
    if "access_token" in credential:
        return str(credential["access_token"])
    try:
        # An extra, which only Google's operators need.
        transport = import_module("google.auth.transport.urllib3")
        service_account = import_module("google.oauth2.service_account")
        pool = import_module("urllib3").PoolManager()
    except ImportError:
        message = "Google's operators need google-auth"
        raise OperatorError(message, hint='pip install "headrace[google]"', is_retryable=False) from None
    try:
        account = service_account.Credentials.from_service_account_info(credential, scopes=_SCOPES)
        account.refresh(transport.Request(pool))
    except Exception as error:
        raise OperatorError(f"Google gave no token for `gcp.credential`: {error}") from None
    job.channel.ask("mask", values=[account.token])
    return str(account.token)


def _json(response: WebResponse) -> Any:
    try:
        return json.loads(response.body) if response.body else {}
    except ValueError:
        return {}
