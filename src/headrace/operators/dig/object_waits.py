"""`s3_wait>` and `gcs_wait>`: wait until an object is in its bucket, without holding a process."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import quote

from headrace.authoring.dig import as_seconds, as_text
from headrace.operators.dig.aws_signing import keys_for, signed
from headrace.operators.dig.contract import Job, OperatorError, Outcome, Params
from headrace.operators.dig.google_access import GoogleClient
from headrace.operators.dig.poll_intervals import poll_again, waited_seconds
from headrace.operators.dig.service_options import ServiceOptions
from headrace.operators.dig.web_client import Unreachable, WebRequest, WebResponse, send

_LEAST, _MOST = 5, 300
_GCS = "https://storage.googleapis.com"


def run_s3_wait(job: Job) -> Outcome:
    """Wait for an object of S3, or of a server that speaks like it."""
    params = job.params.with_defaults("aws").with_defaults("s3")
    bucket, key = _object(params, "key")
    request = _head_request(job, params, bucket, key)
    try:
        response: WebResponse | None = send(request)
    except Unreachable as error:
        print(f"{error}; trying again", flush=True)
        response = None
    if response is not None and response.status in (401, 403):
        raise OperatorError(f"access to `{bucket}/{key}` was denied with status {response.status}")
    if response is not None and response.status == 400:
        raise OperatorError(f"the request for `{bucket}/{key}` was refused: check region, version and keys")
    if response is None or response.status != 200:
        return _not_yet(job, params, f"{bucket}/{key}", "s3")
    return Outcome(store={"s3": {"last_object": _described(response)}}, reset=("s3.last_object",))


def run_gcs_wait(job: Job) -> Outcome:
    """Wait for an object of Google Cloud Storage."""
    params = job.params.with_defaults("gcs_wait")
    bucket, name = _object(params, "object")
    client = GoogleClient(job, "gcs", _GCS)
    path = f"/storage/v1/b/{quote(bucket, safe='')}/o/{quote(name, safe='')}"
    status, found = client.ask("GET", path, accepted=(404,))
    if status == 404:
        return _not_yet(job, params, f"{bucket}/{name}", "gcs_wait")
    return Outcome(store={"gcs_wait": {"last_object": {"metadata": found}}}, reset=("gcs_wait.last_object",))


def _object(params: Params, key: str) -> tuple[str, str]:
    """`BUCKET/KEY` of the operator, or both as parameters."""
    command = params.read("_command", as_text, None)
    bucket, name = params.read("bucket", as_text, None), params.read(key, as_text, None)
    if command is not None:
        if bucket is not None or name is not None:
            raise OperatorError(f"expected either `BUCKET/KEY` or `bucket` and `{key}`, got both")
        bucket, _, name = command.removeprefix("gs://").removeprefix("s3://").partition("/")
    if not bucket or not name:
        raise OperatorError(f"expected `BUCKET/KEY`, or `bucket` and `{key}`, got: `{command or bucket or name}`")
    return bucket, name


def _not_yet(job: Job, params: Params, what: str, store_as: str) -> Outcome:
    timeout = params.read("timeout", as_seconds, None)
    may_go_on = params.boolean("continue_on_timeout")
    if timeout is None or waited_seconds(job) < timeout:
        raise poll_again(job, _LEAST, _MOST if timeout is None else min(_MOST, max(timeout, 1)))
    if not may_go_on:
        raise OperatorError(f"`{what}` was not there after {timeout} s", type_name="Timeout")
    return Outcome(store={store_as: {"last_object": {}}}, reset=(f"{store_as}.last_object",))


def _head_request(job: Job, params: Params, bucket: str, key: str) -> WebRequest:
    options = ServiceOptions(job, params, "aws.s3", "aws")
    region = options.read("region", as_text, "us-east-1")
    endpoint = options.read("endpoint", as_text, f"s3.{region}.amazonaws.com")
    scheme, _, host = endpoint.rpartition("://")
    path = quote(f"/{key}", safe="/~")
    if params.boolean("path_style_access"):
        url = f"{scheme or 'https'}://{host.rstrip('/')}/{quote(bucket)}{path}"
    else:
        url = f"{scheme or 'https'}://{bucket}.{host.rstrip('/')}{path}"
    version = params.read("version_id", as_text, None)
    url += "" if version is None else f"?versionId={quote(version, safe='')}"
    request = WebRequest(url, "HEAD", _customer_key(options))
    return signed(request, keys_for(job, "s3"), region, "s3")


def _customer_key(options: ServiceOptions) -> dict[str, str]:
    """The headers for an object that is encrypted with a key of the customer's."""
    key = options.secret("sse_c_key")
    if key is None:
        return {}
    digest = options.secret("sse_c_key_md5") or base64.b64encode(hashlib.md5(base64.b64decode(key)).digest()).decode()
    prefix = "x-amz-server-side-encryption-customer"
    algorithm = options.secret("sse_c_key_algorithm") or "AES256"
    return {f"{prefix}-algorithm": algorithm, f"{prefix}-key": key, f"{prefix}-key-MD5": digest}


def _described(response: WebResponse) -> dict[str, Any]:
    """The object's metadata, and apart from it what its owner added."""
    metadata: dict[str, Any] = {}
    own: dict[str, str] = {}
    for name, value in response.headers.items():
        if name.lower().startswith("x-amz-meta-"):
            own[name.lower().removeprefix("x-amz-meta-")] = value
        else:
            metadata[name] = int(value) if name == "Content-Length" else value
    return {"metadata": metadata, "user_metadata": own}
