"""`http>` and `http_call>` against a real server."""

from __future__ import annotations

import base64
import socket

import pytest


def fine(asked):
    return 200, "hello é", {"X-Any": "1"}


def test_a_request_stores_its_status_and_content(project, web):
    server = web(fine)
    result = project.run(f"+t: {{http>: '{server.url}/a b?x=1', store_content: true, query: {{y: ü, z: 2}}}}")
    assert result.outcome == "success"
    assert result.store == {"http": {"last_status": 200, "last_content": "hello é"}}
    assert result.reset == ("http.last_status", "http.last_content")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.query) == ("GET", "/a%20b", {"x": "1", "y": "ü", "z": "2"})
    other = project.run(f"+t: {{http>: '{server.url}'}}")
    assert (other.store, other.reset) == ({"http": {"last_status": 200}}, ("http.last_status",))


@pytest.mark.parametrize("query", ["'a=x y&b=é&c='", """'{"a": "x y", "b": "é", "c": ""}'""", "{a: x y, b: é, c: ''}"])
def test_a_query_is_a_map_or_a_text(project, web, query):
    server = web(fine)
    assert project.run(f"+t: {{http>: '{server.url}/?d=1', query: {query}}}").outcome == "success"
    assert server.asked[0].query["a"] == "x y"
    assert server.asked[0].query["b"] == "é"


@pytest.mark.parametrize(
    ("options", "content_type", "body"),
    [
        ("content: {a: [1, é]}", "application/json", '{"a": [1, "é"]}'),
        ("content: text é", "text/plain", "text é"),
        ("content: 5, content_format: json", "application/json", "5"),
        ("content: {a: 1, b: x y}, content_format: form", "application/x-www-form-urlencoded", "a=1&b=x+y"),
        ("content: <a/>, content_type: application/xml", "application/xml", "<a/>"),
    ],
)
def test_content_and_its_type(project, web, options, content_type, body):
    server = web(lambda asked: 201)
    assert project.run(f"+t: {{http>: '{server.url}', method: post, {options}}}").store["http"]["last_status"] == 201
    (asked,) = server.asked
    assert (asked.method, asked.headers["Content-Type"], asked.body.decode()) == ("POST", content_type, body)


def test_secrets_in_requests(project, web):
    server = web(fine)
    project.answers.secrets = {
        "http.user": "ann",
        "http.password": "pw",
        "key": "k1",
        "http.uri": f"{server.url}/secret",
    }
    text = "+t: {http>: '', headers: [{X-Key: '${secret:key}'}, {X-Two: a}, {X-Two: b}], query: {k: '${secret:key}'}}"
    assert project.run(text.replace("http>: ''", "http>: ")).outcome == "success"
    (asked,) = server.asked
    assert (asked.path, asked.query) == ("/secret", {"k": "k1"})
    assert base64.b64decode(asked.headers["Authorization"].removeprefix("Basic ")) == b"ann:pw"
    assert (asked.headers["X-Key"], asked.headers["X-Two"]) == ("k1", "a, b")
    assert {"pw", "k1"} <= set(project.answers.masked)
    project.answers.secrets["http.authorization"] = "Bearer x"
    project.run(text.replace("http>: ''", "http>: "))
    assert server.asked[1].headers["Authorization"] == "Bearer x"


def test_defaults_come_from_a_map_named_after_the_operator(project, web):
    server = web(fine)
    project.run(f"+t: {{http>: '{server.url}'}}", params={"http": {"method": "OPTIONS", "last_status": 500}})
    assert server.asked[0].method == "OPTIONS"


@pytest.mark.parametrize(
    ("status", "options", "outcome"),
    [
        (404, "", "failed"),
        (408, "method: POST", "again"),
        (429, "retry: false", "again"),
        (503, "", "again"),
        (503, "method: POST", "failed"),
        (503, "method: POST, retry: true", "again"),
        (503, "retry: false", "failed"),
        (304, "", "success"),
    ],
)
def test_which_answers_are_tried_again(project, web, status, options, outcome):
    server = web(lambda asked: (status, "why"))
    result = project.run(f"+t: {{http>: '{server.url}/x?key=1', {options}}}")
    assert result.outcome == outcome
    if outcome == "failed":
        assert result.error.message.endswith(f"{server.url}/x was answered with status {status}")
        assert result.error.traceback == "why"


def test_waits_between_tries_grow(project, web):
    server = web(lambda asked: 500)
    text, waits, state = f"+t: {{http>: '{server.url}'}}", [], {}
    for _ in range(7):
        result = project.run(text, poll_state=state)
        state = result.poll_state
        waits.append(result.again_after_seconds)
    assert waits == [1, 2, 4, 8, 16, 30, 30]


def test_a_server_that_is_not_there(project):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    assert project.run(f"+t: {{http>: 'http://127.0.0.1:{port}'}}").outcome == "again"
    failed = project.run(f"+t: {{http>: 'http://127.0.0.1:{port}/', method: PUT}}")
    assert failed.error.message.startswith(f"could not reach `http://127.0.0.1:{port}/`: ")


def test_redirects_are_followed_without_telling_secrets_to_others(project, web):
    other = web(fine)
    codes = {"/see": 303, "/keep": 307}
    server = web(lambda asked: (codes[asked.path], "", {"Location": f"{other.url}/there"}))
    project.answers.secrets = {"http.authorization": "Bearer x"}
    for path in codes:
        assert project.run(f"+t: {{http>: '{server.url}{path}', method: POST, content: a}}").outcome == "success"
    see, keep = other.asked
    assert (see.method, see.body, keep.method, keep.body) == ("GET", b"", "POST", b"a")
    assert "Authorization" in server.asked[0].headers and "Authorization" not in see.headers
    stays = project.run(f"+t: {{http>: '{server.url}/see', follow_redirects: false}}")
    assert stays.store == {"http": {"last_status": 303}}


def test_redirects_end(project, web):
    server = web(lambda asked: (302, "", {"Location": "/again"}))
    assert "redirected more than 8 times" in project.run(f"+t: {{http>: '{server.url}'}}").error.message
    assert len(server.asked) == 9


def test_a_redirect_to_what_is_no_address_is_a_mistake(project, web):
    server = web(lambda asked: (302, "", {"Location": "/a b?key=1"}))
    failed = project.run(f"+t: {{http>: '{server.url}'}}")
    assert failed.error.message.endswith(f"and with a number as its port, got: `{server.url}/a b`")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("http>: file:///etc/passwd", "begins with `http://` or `https://`, got: `file:///etc/passwd`"),
        ("http>: ", "parameter `http>` or secret `http.uri` is required"),
        ("http>: 'http://x:y/?key=1'", "an address without spaces and with a number as its port, got: `http://x:y/`"),
        ("http>: 'http://x', content: a, content_format: xml", "to be one of text, json, form, got: `xml`"),
        ("http>: 'http://x', content: {a: [1]}, content_format: form", "expected `content.a` to be a text"),
        ("http>: 'http://x', timeout: soon", "expected parameter `timeout` to be a duration"),
        ("http>: 'http://x', headers: [a]", "expected `headers` to be a list of `name: value`"),
        ("http>: 'http://x', proxy: {enabled: true, host: p, tls: true}", "over TLS is not supported"),
    ],
)
def test_mistakes_in_requests(project, task, message):
    assert message in project.run(f"+t: {{{task}}}").error.message


def test_content_that_is_too_large_is_not_stored(project, web):
    server = web(lambda asked: (200, b"x" * 70_000))
    assert "larger than 65536 bytes" in project.run(f"+t: {{http>: '{server.url}', store_content: true}}").error.message
    assert project.run(f"+t: {{http>: '{server.url}'}}").outcome == "success"


def test_requests_go_through_a_proxy(project, web):
    proxy = web(fine)
    text = f"+t: {{http>: 'http://example.invalid/x', proxy: {{enabled: true, host: 127.0.0.1, port: {proxy.port}}}}}"
    assert project.run(text).outcome == "success"
    assert proxy.asked[0].headers["Host"] == "example.invalid"


WORKFLOW_JSON = {"_export": {"who": "Ann"}, "+greet": {"echo>": "${who}"}}
WORKFLOW = """
_export: {who: Ann}
+greet: {echo>: "${who}"}
"""


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (WORKFLOW, "application/x-yaml"),
        (WORKFLOW_JSON, "application/json"),
    ],
)
def test_http_call_grows_what_a_server_says(project, web, content, content_type):
    server = web(lambda asked: (200, content, {"Content-Type": content_type}))
    result = project.run(f"+t: {{http_call>: '{server.url}/flow'}}")
    assert [(node.key, node.export, node.config) for node in result.growth] == [
        ("+wf+t^sub", {"who": "Ann", "_workdir": "."}, {}),
        ("+wf+t^sub+greet", {}, {"_command": "${who}"}),
    ]


def test_http_call_wants_to_know_what_it_reads(project, web):
    server = web(lambda asked: (200, WORKFLOW))
    failed = project.run(f"+t: {{http_call>: '{server.url}'}}")
    assert "to be `application/json` or `application/x-yaml`, got: `text/plain`" in failed.error.message
    told = project.run(f"+t: {{http_call>: '{server.url}', content_type_override: application/x-yaml}}")
    assert len(told.growth) == 2
    broken = web(lambda asked: (200, "a: [", {"Content-Type": "application/x-yaml"}))
    assert "`http_call.dig` is not valid YAML" in project.run(f"+t: {{http_call>: '{broken.url}'}}").error.message
