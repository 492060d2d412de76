"""`mail>` against a real mail server."""

from __future__ import annotations

import pytest

from headrace.testing.mail_box import MailBox


@pytest.fixture
def box():
    box = MailBox()
    yield box
    box.close()


@pytest.fixture
def send(project, box):
    """Sends one mail over the box, and gives what came of it."""

    def send(options: str, **request):
        server = f"host: 127.0.0.1, port: {box.port}, tls: false"
        return project.run(f"+t: {{{options}, from: me@example.com, subject: 'Hi ${{name}}', {server}}}", **request)

    return send


def test_a_template_file_is_evaluated(project, box, send):
    project.write("body.txt", "Dear ${name},\nit is ${session_date}.\n")
    params = {"name": "Ann"}
    assert send("mail>: body.txt, to: [a@example.com, b@example.com]", params=params).outcome == "success"
    (message,) = box.messages
    assert (message["Subject"], message["To"]) == ("Hi Ann", "a@example.com, b@example.com")
    assert message.get_content().split("\r\n") == ["Dear Ann,", "it is 2026-02-03.", ""]


@pytest.mark.parametrize("body", ["mail>: {data: 'text ${name}'}", "mail>: , body: 'text ${name}'"])
def test_a_text_in_the_task(box, send, body):
    assert send(f"{body}, to: a@example.com", params={"name": "é"}).outcome == "success"
    assert box.messages[0].get_content().strip() == "text é"


def test_html_copies_and_files(project, box, send):
    project.write("sub/table.csv", "a,b\n")
    options = "cc: c@example.com, bcc: [d@example.com], html: true, to: a@example.com"
    files = "attach_files: [{path: sub/table.csv}, {path: sub/table.csv, filename: x.bin, content_type: a/b}]"
    assert send(f"mail>: {{data: <b>hi</b>}}, {options}, {files}", params={"name": "x"}).outcome == "success"
    (message,) = box.messages
    assert box.recipients == [["a@example.com", "c@example.com", "d@example.com"]]
    assert message["Cc"] == "c@example.com" and message["Bcc"] is None
    assert message.get_body(("html",)).get_content().strip() == "<b>hi</b>"
    found = [(part.get_filename(), part.get_content_type()) for part in message.iter_attachments()]
    assert found == [("table.csv", "text/csv"), ("x.bin", "a/b")]


def test_a_server_in_the_secrets_wins_over_parameters(project, box):
    project.answers.secrets = {"mail.host": "127.0.0.1", "mail.port": str(box.port), "mail.tls": "false"}
    text = "+t: {mail>: {data: x}, to: a@example.com, from: b@example.com, subject: s, host: nowhere.invalid}"
    assert project.run(text).outcome == "success"
    assert len(box.messages) == 1


def test_without_a_server_of_its_own_the_connection_of_everybody_is_used(project, box, monkeypatch):
    extra = '{"disable_ssl": true, "disable_tls": true, "from_email": "all@example.com"}'
    text = "+t: {mail>: {data: x}, to: a@example.com, subject: s}"
    assert "there is no mail server" in project.run(text).error.message
    project.answers.connections = {"smtp_default": {"host": "127.0.0.1", "port": box.port, "extra": extra}}
    assert project.run(text).outcome == "success"
    project.answers.connections = {}
    for name, value in box.environment.items():
        monkeypatch.setenv(name, value)
    assert project.run(text).outcome == "success"
    assert [message["From"] for message in box.messages] == ["all@example.com", "headrace@example.com"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("mail>: {data: x}", "parameter `to` is required but not set"),
        ("mail>: nothing.txt, to: a@b.c", "there is no file `nothing.txt`"),
        ("mail>: ../x.txt, to: a@b.c", "to be inside the project"),
        ("mail>: {data: x}, to: a@b.c, attach_files: [{path: no.csv}]", "could not attach `no.csv`: No such file"),
        ("mail>: {data: x}, to: a@b.c, attach_files: x", "to be a list of `{path: …}`"),
        ("mail>: {text: x}, to: a@b.c", "to name a file or to be `{data: text}`"),
    ],
)
def test_mistakes_in_mails(send, options, message):
    assert message in send(options, params={"name": "n"}).error.message


def test_a_mail_has_no_second_header_in_its_subject(box, send):
    assert "cannot be sent" in send("mail>: {data: x}, to: a@b.c", params={"name": "a\nBcc: x@y.z"}).error.message
    assert box.messages == []
