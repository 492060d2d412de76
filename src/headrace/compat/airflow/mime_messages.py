"""E-mails as providers hand them to other services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from email.message import EmailMessage
from email.utils import formatdate
from mimetypes import guess_type
from pathlib import Path

from headrace.operators.email import addresses


def build_mime_message(
    mail_from: str | None,
    to: str | Iterable[str],
    subject: str,
    html_content: str,
    files: Iterable[str] | None = None,
    cc: str | Iterable[str] | None = None,
    bcc: str | Iterable[str] | None = None,
    mime_subtype: str = "mixed",
    mime_charset: str = "utf-8",
    custom_headers: Mapping[str, str] | None = None,
) -> tuple[EmailMessage, list[str]]:
    """The message and everybody whom it goes to."""
    message = EmailMessage()
    message["Subject"], message["From"], message["Date"] = subject, mail_from, formatdate(localtime=True)
    message["To"] = ", ".join(addresses(to))
    if cc:
        message["Cc"] = ", ".join(addresses(cc))
    for name, value in (custom_headers or {}).items():
        message[name] = value
    message.set_content(html_content, subtype="html", charset=mime_charset)
    for path in map(Path, files or ()):
        maintype, _, subtype = (guess_type(path.name)[0] or "application/octet-stream").partition("/")
        message.add_attachment(path.read_bytes(), maintype=maintype, subtype=subtype, filename=path.name)
    return message, [*addresses(to), *addresses(cc), *addresses(bcc)]
