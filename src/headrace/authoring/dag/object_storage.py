"""Results that are too large for the database go to files: `core.xcom_backend` with a threshold and a path."""

from __future__ import annotations

import importlib
import json
import uuid
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from headrace.authoring.dag.configuration import conf
from headrace.authoring.dag.exceptions import AirflowException
from headrace.authoring.dag.values import decode_value, to_json
from headrace.authoring.dag.xcom import BaseXCom

_SECTION = "common.io"
_REFERENCE = "xcom_objectstorage"
"""A stored result of this name alone stands for the file that has it."""


class XComObjectStorageBackend(BaseXCom):
    """Results up to `common.io.xcom_objectstorage_threshold` bytes stay in the database, larger ones become files.

    A threshold below 0 keeps all of them in the database, 0 none.
    """

    @staticmethod
    def serialize_value(
        value: Any,
        *,
        key: str | None = None,
        task_id: str | None = None,
        dag_id: str | None = None,
        run_id: str | None = None,
        map_index: int | None = None,
    ) -> Any:
        document = to_json(value, key or BaseXCom.XCOM_RETURN_KEY)
        data = json.dumps(document).encode()
        threshold = conf.getint(_SECTION, "xcom_objectstorage_threshold", fallback=-1)
        if threshold < 0 or len(data) <= threshold:
            return document
        names = (str(part) for part in (dag_id, run_id, task_id, map_index, uuid.uuid4()))
        url = f"{_base()}/{'/'.join(quote(name, safe='=+:@,') for name in names)}{_suffix()}"
        with _opened(url, "wb") as file:
            file.write(data)
        return {_REFERENCE: url}

    @staticmethod
    def deserialize_value(result: Any) -> Any:
        url = _url_in(result.value)
        if url is None:
            return decode_value(result.value)
        try:
            with _opened(url, "rb") as file:
                return decode_value(json.loads(file.read()))
        except FileNotFoundError:
            raise AirflowException(f"the result is in `{url}`, which does not exist any more") from None

    @staticmethod
    def purge(xcom: Any, *args: Any) -> None:
        url = _url_in(xcom.value)
        if url is not None:
            system, path = _file_system(url)
            if system.exists(path):
                system.rm(path)


def _url_in(document: Any) -> str | None:
    """The file that has the result; only one below the configured path counts, whoever wrote the reference."""
    if not isinstance(document, dict) or set(document) != {_REFERENCE}:
        return None
    url = str(document[_REFERENCE])
    if not url.startswith(f"{_base()}/") or ".." in url:
        raise AirflowException(f"a result refers to `{url}`, which is not below `{_base()}`")
    return url


def _base() -> str:
    path: str = conf.get(_SECTION, "xcom_objectstorage_path", fallback="")
    if not path:
        raise AirflowException("expected the option `common.io.xcom_objectstorage_path` to be set")
    parts = urlsplit(path)
    # `s3://connection@bucket/path`: the connection is for the file system, not part of the place.
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")


def _suffix() -> str:
    compression = conf.get(_SECTION, "xcom_objectstorage_compression", fallback="")
    return {"": "", "gzip": ".gz", "bz2": ".bz2", "zip": ".zip", "xz": ".xz", "zstd": ".zst"}.get(compression, "")


def _opened(url: str, mode: str) -> Any:
    system, path = _file_system(url)
    if "w" in mode:
        system.makedirs(system._parent(path), exist_ok=True)
    return _library().open(url, mode, compression="infer")


def _file_system(url: str) -> tuple[Any, str]:
    system, path = _library().core.url_to_fs(url)
    return system, path


def _library() -> Any:
    # An extra: only whoever stores results in files needs it.
    try:
        return importlib.import_module("fsspec")
    except ImportError:
        raise AirflowException(
            'results in files need fsspec; `pip install "headrace[objectstorage]"` brings it'
        ) from None
