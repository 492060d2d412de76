"""`send_email` over a real socket."""

from __future__ import annotations

import json

import pytest

from headrace.authoring.dag.exceptions import AirflowException, AirflowNotFoundException
from headrace.operators.email import addresses, mail_server, send_email
from headrace.testing.mail_box import MailBox


@pytest.fixture
def box(monkeypatch):
    box = MailBox()
    for name, value in box.environment.items():
        monkeypatch.setenv(name, value)
    yield box
    box.close()


def test_a_message_reaches_everybody_who_is_named(box, tmp_path):
    attached = tmp_path / "figures.csv"
    attached.write_text("a,b\n")
    send_email(
        "ann@example.com; bob@example.com", "Böse Zahlen", "<b>bad</b>", files=[str(attached)], bcc=["eve@example.com"]
    )
    (message,) = box.messages
    assert box.recipients == [["ann@example.com", "bob@example.com", "eve@example.com"]]
    assert (message["Subject"], message["From"]) == ("Böse Zahlen", "headrace@example.com")
    assert message["Bcc"] is None
    assert message.get_body(("html",)).get_content().strip() == "<b>bad</b>"
    assert [part.get_filename() for part in message.iter_attachments()] == ["figures.csv"]


def test_a_dry_run_sends_nothing(box):
    send_email("ann@example.com", "s", "c", dryrun=True)
    assert box.messages == []


def test_the_connection_is_stronger_than_the_environment(box, monkeypatch):
    extra = {"disable_ssl": True, "disable_tls": True, "from_email": "team@example.com"}
    connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": box.port, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
    send_email("ann@example.com", "s", "c")
    assert box.messages[0]["From"] == "team@example.com"


def test_a_connection_that_is_named_must_exist():
    with pytest.raises(AirflowNotFoundException, match="there is no connection `post_office`"):
        mail_server("post_office")


@pytest.mark.parametrize(("to", "error"), [("", "has no recipient"), ("ann@example.com", "has no sender")])
def test_a_message_needs_a_recipient_and_a_sender(to, error, monkeypatch):
    monkeypatch.delenv("AIRFLOW__SMTP__SMTP_MAIL_FROM", raising=False)
    with pytest.raises(AirflowException, match=error):
        send_email(to, "s", "c")


def test_addresses_are_a_list_or_text():
    assert addresses(["a@x, b@x", "c@x"]) == ["a@x", "b@x", "c@x"]
    assert addresses(None) == []
