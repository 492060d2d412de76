"""Requests that Amazon accepts: signed with Signature Version 4."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from headrace.clock import SystemClock
from headrace.operators.dig.contract import Job
from headrace.operators.dig.web_client import WebRequest

_ALGORITHM = "AWS4-HMAC-SHA256"


class AwsKeys(NamedTuple):
    access_key_id: str
    secret_access_key: str
    session_token: str | None = None


def keys_for(job: Job, *services: str) -> AwsKeys:
    """The keys of a service (`aws.s3.access_key_id`), or those for everything (`aws.access_key_id`)."""
    prefixes = [f"aws.{service}" for service in services] + ["aws"]
    return AwsKeys(
        job.required_secret(*(f"{prefix}.access_key_id" for prefix in prefixes)),
        job.required_secret(*(f"{prefix}.secret_access_key" for prefix in prefixes)),
        job.secret(*(f"{prefix}.session_token" for prefix in prefixes)),
    )


def signed(request: WebRequest, keys: AwsKeys, region: str, service: str, now: datetime | None = None) -> WebRequest:
    """The request with its signature. The path in its address must be encoded already."""
    moment = (now or SystemClock().now()).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(request.body or b"").hexdigest()
    url = urlsplit(request.url)
    headers = {**request.headers, "Host": url.netloc, "X-Amz-Date": moment, "X-Amz-Content-Sha256": digest}
    if keys.session_token is not None:
        headers["X-Amz-Security-Token"] = keys.session_token
    names = sorted(name.lower() for name in headers)
    lower = {name.lower(): " ".join(str(value).split()) for name, value in headers.items()}
    canonical = "\n".join(
        (
            request.method,
            url.path or "/",
            _canonical_query(url.query),
            *(f"{name}:{lower[name]}" for name in names),
            "",
            ";".join(names),
            digest,
        )
    )
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((_ALGORITHM, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in (moment[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"{keys.access_key_id}/{scope}"
    headers["Authorization"] = (
        f"{_ALGORITHM} Credential={credential}, SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return replace(request, headers=headers)


def _canonical_query(query: str) -> str:
    pairs = sorted((quote(key, safe="-_.~"), quote(value, safe="-_.~")) for key, value in parse_qsl(query, True))
    return "&".join(f"{key}={value}" for key, value in pairs)
