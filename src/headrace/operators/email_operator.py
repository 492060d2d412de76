"""Tasks that send an e-mail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from headrace.authoring.dag import BaseOperator, Context
from headrace.operators.email import send_email


class EmailOperator(BaseOperator):
    """Sends one message over an SMTP connection."""

    operator_name = "email"
    shown_fields: ClassVar[Sequence[str]] = ("to", "subject")
    template_fields: Sequence[str] = (
        *("to", "subject", "html_content", "from_email", "files", "cc", "bcc"),
        *("mime_subtype", "mime_charset", "conn_id", "custom_headers"),
    )
    template_ext: Sequence[str] = (".html",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"html_content": "html"}
    ui_color = "#e6faf9"

    def __init__(
        self,
        *,
        to: str | Iterable[str],
        subject: str,
        html_content: str,
        from_email: str | None = None,
        files: Sequence[str] | None = None,
        cc: str | Iterable[str] | None = None,
        bcc: str | Iterable[str] | None = None,
        mime_subtype: str = "mixed",
        mime_charset: str = "utf-8",
        conn_id: str | None = None,
        custom_headers: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.to = to
        self.subject = subject
        self.html_content = html_content
        self.from_email = from_email
        self.files = files
        self.cc = cc
        self.bcc = bcc
        self.mime_subtype = mime_subtype
        self.mime_charset = mime_charset
        self.conn_id = conn_id
        self.custom_headers = custom_headers

    def execute(self, context: Context) -> None:
        send_email(
            self.to,
            self.subject,
            self.html_content,
            files=self.files,
            cc=self.cc,
            bcc=self.bcc,
            mime_subtype=self.mime_subtype,
            mime_charset=self.mime_charset,
            conn_id=self.conn_id,
            custom_headers=self.custom_headers,
            from_email=self.from_email,
        )
