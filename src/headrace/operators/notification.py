"""Sends one notification the way the settings say: as an HTTP request, a mail, or to the input of a command."""

from __future__ import annotations

import json
import smtplib
import subprocess
import urllib.request
from collections.abc import Mapping
from email.message import EmailMessage
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from headrace.errors import HeadraceError
from headrace.operators.mail_line import MailServer, deliver

Settings = Mapping[str, Any]
"""The section `notification` of the settings."""
_SECONDS = 30.0
"""How long a server may take to answer."""


class NotificationError(HeadraceError):
    """A notification could not be sent."""


def send_notification(settings: Settings, payload: Mapping[str, Any]) -> None:
    """Send it once. Raises NotificationError, which says what was wrong."""
    send = {"http": _send_http, "mail": _send_mail, "shell": _send_shell}[settings["type"]]
    send(settings, payload)


def secrets_of(settings: Settings) -> list[str]:
    """What of the settings no log may show, besides passwords: the values of headers, which are often keys."""
    return [value for value in _headers(settings).values() if value]


def _send_http(settings: Settings, payload: Mapping[str, Any]) -> None:
    url = _required(settings, "http_url")
    if urlsplit(url).scheme not in ("http", "https"):
        raise NotificationError("expected the setting `notification.http_url` to begin with `http://` or `https://`")
    headers = {"Content-Type": "application/json", **_headers(settings)}
    request = urllib.request.Request(url, _as_json(payload), headers, method=settings["http_method"])
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):
            return
    except HTTPError as error:
        error.close()
        raise NotificationError(f"the server of the notification answered with status {error.code}") from None
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise NotificationError(f"could not reach the server of the notification: {reason}") from None


def _send_mail(settings: Settings, payload: Mapping[str, Any]) -> None:
    host = _required(settings, "mail_host")
    message = _mail(settings, payload)
    recipients = [*settings["mail_to"], *settings["mail_cc"], *settings["mail_bcc"]]
    if not recipients:
        raise NotificationError("the setting `notification.mail_to` is missing")
    try:
        deliver(_mail_server(settings, host), str(message["From"]), recipients, message)
    except (smtplib.SMTPException, OSError) as error:
        raise NotificationError(f"could not send the notification over `{host}`: {error}") from None


def _mail(settings: Settings, payload: Mapping[str, Any]) -> EmailMessage:
    message = EmailMessage()
    message["From"] = _required(settings, "mail_from")
    message["To"] = ", ".join(settings["mail_to"])
    if settings["mail_cc"]:
        message["Cc"] = ", ".join(settings["mail_cc"])
    message["Subject"] = f"{settings['mail_subject']}: {payload['workflow_name']}: {payload['message']}"
    message.set_content("".join(f"{name}: {value}\n" for name, value in payload.items()))
    return message


def _mail_server(settings: Settings, host: str) -> MailServer:
    return MailServer(
        host,
        settings["mail_port"],
        login=settings["mail_username"] or "",
        password=settings["mail_password"] or "",
        is_encrypted=settings["mail_security"] == "tls",
        upgrades=settings["mail_security"] == "starttls",
        timeout_seconds=_SECONDS,
    )


def _send_shell(settings: Settings, payload: Mapping[str, Any]) -> None:
    command = ["/bin/sh", "-c", _required(settings, "shell_command")]
    seconds = settings["shell_timeout_seconds"]
    try:
        code = subprocess.run(command, input=_as_json(payload), timeout=seconds, check=False).returncode
    except subprocess.TimeoutExpired:
        raise NotificationError(f"the command of the notification took longer than {seconds:g} s") from None
    if code != 0:
        raise NotificationError(f"the command of the notification failed with code {code}")


def _headers(settings: Settings) -> dict[str, str]:
    pairs = (header.partition(":") for header in settings["http_headers"])
    return {name.strip(): value.strip() for name, _, value in pairs}


def _required(settings: Settings, name: str) -> str:
    if not settings[name]:
        raise NotificationError(f"the setting `notification.{name}` is missing")
    return str(settings[name])


def _as_json(payload: Mapping[str, Any]) -> bytes:
    return json.dumps(payload, ensure_ascii=False).encode()
