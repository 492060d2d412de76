"""`redshift_load>` and `redshift_unload>`: COPY and UNLOAD between Redshift and S3."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

from headrace.authoring.dig import as_boolean, as_integer, as_seconds, as_text
from headrace.operators.dig.aws_signing import AwsKeys, keys_for, signed
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.redshift import connector, status_of
from headrace.operators.dig.sql_names import quoted_table
from headrace.operators.dig.sql_query import Query, run_query
from headrace.operators.dig.web_client import WebRequest, send

_TEXT, _NUMBER, _FLAG = "text", "number", "flag"
_SHARED = {"manifest": _FLAG, "encrypted": _FLAG, "region": _TEXT, "delimiter": _TEXT, "fixedwidth": _TEXT}
_SHARED |= {"gzip": _FLAG, "bzip2": _FLAG, "null_as": _TEXT, "escape": _FLAG}
_LOAD = {
    **_SHARED,
    **dict.fromkeys(("csv", "json", "avro", "dateformat", "encoding", "timeformat"), _TEXT),
    **dict.fromkeys(("readratio", "ignoreheader", "comprows", "maxerror"), _NUMBER),
    **dict.fromkeys(("lzop", "acceptanydate", "blanksasnull", "emptyasnull", "explicit_ids", "fillrecord"), _FLAG),
    **dict.fromkeys(("ignoreblanklines", "removequotes", "roundec", "trimblanks", "truncatecolumns"), _FLAG),
    **dict.fromkeys(("noload",), _FLAG),
    **dict.fromkeys(("acceptinvchars",), _TEXT),
    **dict.fromkeys(("compupdate", "statupdate", "parallel"), "switch"),
}
_UNLOAD = {**_SHARED, **dict.fromkeys(("allowoverwrite", "addquotes"), _FLAG), "parallel": "switch"}
_UNLOAD["maxfilesize"] = "size"
_SIZE = re.compile(r"\d+(?:\.\d+)?\s*(?:MB|GB)?", re.IGNORECASE)


def run_load(job: Job) -> Outcome:
    """Load a table from files in S3."""
    params = job.params.with_defaults("redshift").with_defaults("redshift_load")
    table = quoted_table(params.text("table"))
    source = params.text("from")
    head = f"COPY {table} FROM {literal(source)}"
    return _run(job, params, head, source, _LOAD, can_write=False)


def run_unload(job: Job) -> Outcome:
    """Write the result of a query into files in S3."""
    params = job.params.with_defaults("redshift").with_defaults("redshift_unload")
    target = params.text("to")
    head = f"UNLOAD ({literal(params.text('query'))}) TO {literal(target)}"
    return _run(job, params, head, target, _UNLOAD, can_write=True)


def literal(text: str) -> str:
    """A text as SQL has it; Redshift takes a backslash for the beginning of an escape."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _run(job: Job, params: Params, head: str, place: str, known: dict[str, str], *, can_write: bool) -> Outcome:
    keys = keys_for(job, "redshift_load" if not can_write else "redshift_unload", "redshift")
    options = " ".join(_options(params, known))
    if params.boolean("temp_credentials", True):
        keys = _temporary(job, params, keys, place, can_write)
    statement = f"{head} CREDENTIALS {literal(_credentials(keys))} {options}".strip()
    query = Query(statement, None, None, None, "", is_secret=True)
    return run_query(job, query, connector(job, params), status_of(params), "redshift")


def _options(params: Params, known: dict[str, str]) -> list[str]:
    words = {"null_as": "NULL AS"}
    found = []
    for key, kind in known.items():
        value = params.read(key, lambda value: value, None)
        text = None if value is None else _option(key, kind, value)
        if text is not None:
            found.append(f"{words.get(key, key.upper())} {text}".strip())
    return found


def _option(key: str, kind: str, value: Any) -> str | None:
    """What follows the option's name; None: it is left out."""
    try:
        if kind == _FLAG:
            return "" if as_boolean(value) else None
        if kind == "switch":
            return "ON" if as_boolean(value) else "OFF"
        if kind == _NUMBER:
            return str(as_integer(value))
        if kind == "size":
            return _size(as_text(value))
        # `csv: true` is the format without more to say.
        return "" if value is True else None if value is False else literal(as_text(value))
    except ValueError as error:
        raise OperatorError(f"expected parameter `{key}` {error}") from None


def _size(text: str) -> str:
    if _SIZE.fullmatch(text.strip()) is None:
        raise ValueError(f"to be a size like `100 MB`, got: `{text}`")
    return text.strip()


def _credentials(keys: AwsKeys) -> str:
    text = f"aws_access_key_id={keys.access_key_id};aws_secret_access_key={keys.secret_access_key}"
    return text if keys.session_token is None else f"{text};token={keys.session_token}"


def _temporary(job: Job, params: Params, keys: AwsKeys, place: str, can_write: bool) -> AwsKeys:
    """Keys that are good for this one place in S3 and for a few hours."""
    seconds = params.read("session_duration", as_seconds, 3 * 3600)
    region = job.secret("aws.region") or "us-east-1"
    address = job.secret("aws.sts.endpoint") or f"https://sts.{region}.amazonaws.com"
    form = {
        "Action": "GetFederationToken",
        "Version": "2011-06-15",
        "Name": f"headrace-{job.identity[:8]}",
        "DurationSeconds": str(seconds),
        "Policy": json.dumps(_policy(place, can_write)),
    }
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    request = WebRequest(f"{address.rstrip('/')}/", "POST", headers, urlencode(form).encode())
    response = send(signed(request, keys, region, "sts"))
    text = response.body.decode(errors="replace")
    if response.status != 200:
        reason = re.search(r"<Message>(.*?)</Message>", text, re.DOTALL)
        raise OperatorError(
            f"AWS gave no temporary credentials: {reason[1] if reason else f'status {response.status}'}",
            hint="`temp_credentials: false` uses the keys themselves",
        )
    found = {name: re.search(rf"<{name}>(.*?)</{name}>", text, re.DOTALL) for name in _TOKEN}
    values = [match[1].strip() if match else "" for match in found.values()]
    job.channel.ask("mask", values=values[1:])
    return AwsKeys(*values)


_TOKEN = ("AccessKeyId", "SecretAccessKey", "SessionToken")


def _policy(place: str, can_write: bool) -> dict[str, Any]:
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    actions = ["s3:PutObject", "s3:GetObject"] if can_write else ["s3:GetObject"]
    condition = {"StringLike": {"s3:prefix": f"{prefix}*"}}
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": actions, "Resource": f"arn:aws:s3:::{bucket}/{prefix}*"},
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": f"arn:aws:s3:::{bucket}",
                "Condition": condition,
            },
        ],
    }
