"""The `mail>` operator: a message with a text, in plain or HTML, and files."""

from __future__ import annotations

import json
import os
import smtplib
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from mimetypes import guess_type
from typing import Any

from headrace.authoring.dig import as_integer, as_text
from headrace.handoff import MissingError
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.folders import inside_project
from headrace.operators.dig.service_options import ServiceOptions
from headrace.operators.dig.texts import text_of
from headrace.operators.mail_line import MailServer, deliver, server_of_connection, server_of_environment

_CONNECTION = "smtp_default"


def run_mail(job: Job) -> Outcome:
    """Send one message over the server that the task names, or else over the installation's."""
    params = job.params.with_defaults("mail")
    server = _own_server(job, params) or _servers_default(job)
    message, recipients = _message(job, params, server.sender)
    try:
        deliver(server, str(message["From"]), recipients, message)
    except (smtplib.SMTPException, OSError) as error:
        raise OperatorError(f"could not send the mail over `{server.host}:{server.port}`: {error}") from None
    return Outcome()


def _own_server(job: Job, params: Params) -> MailServer | None:
    """The user's server or the installation's, never a mixture of both."""
    options = ServiceOptions(job, params, "mail")
    host = options.read("host", as_text, None)
    port = options.read("port", as_integer, 587)
    login = options.read("username", as_text, "")
    is_encrypted = options.boolean("ssl", False)
    upgrades = options.boolean("tls", True)
    is_verbose = params.boolean("debug")
    if host is None:
        return None
    return MailServer(
        host, port, login, options.secret("password") or "", "", is_encrypted, upgrades, is_verbose=is_verbose
    )


def _servers_default(job: Job) -> MailServer:
    try:
        connection = job.channel.ask("get_connection", name=_CONNECTION)
    except MissingError:
        if "AIRFLOW__SMTP__SMTP_HOST" in os.environ:
            return server_of_environment(os.environ)
        raise OperatorError(
            "there is no mail server: set the parameter `host` or the secret `mail.host`",
            hint=f"a server for everybody is the connection `{_CONNECTION}`",
        ) from None
    if connection.get("password"):
        job.channel.ask("mask", values=[connection["password"]])
    extra = connection.get("extra") or {}
    return server_of_connection(connection, json.loads(extra) if isinstance(extra, str) else extra)


def _message(job: Job, params: Params, sender: str) -> tuple[EmailMessage, list[str]]:
    body = text_of(job, params, "body")
    people = {name: params.read(name, _addresses, []) for name in ("to", "cc", "bcc")}
    recipients = [address for some in people.values() for address in some]
    if not recipients:
        raise OperatorError("parameter `to` is required but not set")
    message = EmailMessage()
    try:
        message["Subject"] = params.text("subject")
        message["From"] = params.read("from", as_text, sender or None) or params.text("from")
        message["Date"], message["Message-ID"] = formatdate(localtime=True), make_msgid()
        for name in ("To", "Cc"):
            if people[name.lower()]:
                message[name] = ", ".join(people[name.lower()])
    except ValueError as error:
        raise OperatorError(f"the mail has a header that cannot be sent: {error}") from None
    message.set_content(body, subtype="html" if params.boolean("html") else "plain")
    for entry in params.read("attach_files", _entries, []):
        _attach(job, message, Params(entry, job.operator))
    return message, recipients


def _attach(job: Job, message: EmailMessage, entry: Params) -> None:
    name = entry.text("path")
    path = inside_project(job.root, job.folder / name, name)
    content_type = entry.read("content_type", as_text, None) or guess_type(path.name)[0] or "application/octet-stream"
    maintype, _, subtype = content_type.partition(";")[0].partition("/")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OperatorError(f"could not attach `{name}`: {error.strerror}") from None
    filename = entry.read("filename", as_text, path.name)
    message.add_attachment(content, maintype=maintype, subtype=subtype or "octet-stream", filename=filename)


def _addresses(value: Any) -> list[str]:
    """A list, or one text with one address or several."""
    found = value if isinstance(value, list) else [as_text(value)]
    return [one.strip() for part in found for one in as_text(part).split(",") if one.strip()]


def _entries(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return value
    raise ValueError("to be a list of `{path: …}`")
