"""`ObjectStoragePath`: files of object stores, addressed like paths."""

from __future__ import annotations

import importlib
import posixpath
from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from headrace.authoring.dag.configuration import provider_infos
from headrace.authoring.dag.exceptions import AirflowException


class ObjectStoragePath:
    """`s3://connection@bucket/key`, `file:///folder/name`: the connection is optional and may be `conn_id`, too.

    The file system is the one that an installed provider has for the scheme, or else fsspec's own.
    """

    def __init__(self, path: str | ObjectStoragePath, *more: str, conn_id: str | None = None, **options: Any) -> None:
        parts = urlsplit(str(path) if "://" in str(path) else f"file://{path}")
        named, _, self._bucket = parts.netloc.rpartition("@")
        self.protocol = parts.scheme
        self.conn_id = conn_id or named or getattr(path, "conn_id", None)
        self.storage_options: dict[str, Any] = options or dict(getattr(path, "storage_options", {}))
        self._key = posixpath.normpath(posixpath.join(parts.path or "/", *more)).removeprefix("//").rstrip("/")

    @cached_property
    def fs(self) -> Any:
        """The file system that the path is in."""
        attach = _file_systems().get(self.protocol)
        if attach is not None:
            return attach(self.conn_id, self.storage_options)
        return _library().filesystem(self.protocol, **self.storage_options)

    @property
    def bucket(self) -> str:
        return self._bucket

    container = bucket

    @property
    def key(self) -> str:
        return self._key.lstrip("/")

    @property
    def path(self) -> str:
        """The path as the file system spells it."""
        return f"{self._bucket}{self._key}" or "/"

    @property
    def name(self) -> str:
        return posixpath.basename(self._key)

    @property
    def stem(self) -> str:
        return posixpath.splitext(self.name)[0]

    @property
    def suffix(self) -> str:
        return posixpath.splitext(self.name)[1]

    @property
    def parent(self) -> ObjectStoragePath:
        return self._at(posixpath.dirname(self._key))

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part in (self._bucket, *self._key.split("/")) if part)

    def __truediv__(self, name: str) -> ObjectStoragePath:
        return self._at(posixpath.join(self._key or "/", str(name)))

    def joinpath(self, *names: str) -> ObjectStoragePath:
        return self._at(posixpath.join(self._key or "/", *names))

    def open(self, mode: str = "r", **options: Any) -> Any:
        return self.fs.open(self.path, mode, **options)

    def read_bytes(self) -> bytes:
        data: bytes = self.fs.cat_file(self.path)
        return data

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def write_bytes(self, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data)
        return len(data)

    def write_text(self, data: str, encoding: str = "utf-8") -> int:
        return self.write_bytes(data.encode(encoding))

    def exists(self) -> bool:
        return bool(self.fs.exists(self.path))

    def is_file(self) -> bool:
        return bool(self.fs.isfile(self.path))

    def is_dir(self) -> bool:
        return bool(self.fs.isdir(self.path))

    def stat(self) -> Any:
        return self.fs.stat(self.path)

    def size(self) -> int:
        return int(self.fs.size(self.path))

    def iterdir(self) -> Iterator[ObjectStoragePath]:
        for entry in self.fs.ls(self.path, detail=False):
            yield self / posixpath.basename(entry.rstrip("/"))

    def glob(self, pattern: str) -> Iterator[ObjectStoragePath]:
        for entry in self.fs.glob(f"{self.path}/{pattern}"):
            yield self._at(entry.removeprefix(self._bucket))

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        if parents or exist_ok:
            self.fs.makedirs(self.path, exist_ok=exist_ok)
        else:
            self.fs.mkdir(self.path, create_parents=False)

    def touch(self, truncate: bool = False) -> None:
        self.fs.touch(self.path, truncate=truncate)

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok or self.exists():
            self.fs.rm_file(self.path)

    def rmdir(self, recursive: bool = True) -> None:
        self.fs.rm(self.path, recursive=recursive)

    def copy(self, dst: str | ObjectStoragePath, recursive: bool = False, **options: Any) -> None:
        """Copy to another place, which may be in another store."""
        target = ObjectStoragePath(dst)
        if target.fs is self.fs:
            self.fs.copy(self.path, target.path, recursive=recursive, **options)
            return
        for source in self.fs.find(self.path) if recursive else [self.path]:
            place = f"{target.path}{source.removeprefix(self.path)}"
            with self.fs.open(source, "rb") as reader, target.fs.open(place, "wb") as writer:
                while piece := reader.read(2**20):
                    writer.write(piece)

    def move(self, dst: str | ObjectStoragePath, recursive: bool = False, **options: Any) -> None:
        self.copy(dst, recursive, **options)
        self.fs.rm(self.path, recursive=recursive)

    def as_uri(self) -> str:
        return str(self)

    def _at(self, key: str) -> ObjectStoragePath:
        place = f"{self.protocol}://{self._bucket}{key if key.startswith('/') or not key else '/' + key}"
        path = ObjectStoragePath(place, conn_id=self.conn_id, **self.storage_options)
        if "fs" in self.__dict__:
            path.__dict__["fs"] = self.fs
        return path

    def __str__(self) -> str:
        named = f"{self.conn_id}@" if self.conn_id else ""
        return f"{self.protocol}://{named}{self._bucket}{self._key}"

    def __fspath__(self) -> str:
        if self.protocol != "file":
            raise TypeError(f"`{self}` is no file of this machine")
        return self.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStoragePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"ObjectStoragePath('{self}')"


def _file_systems() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for info in provider_infos():
        for module in map(importlib.import_module, info.get("filesystems") or ()):
            found |= dict.fromkeys(module.schemes, module.get_fs)
    return found


def _library() -> Any:
    # An extra: only whoever keeps files in object stores needs it.
    try:
        return importlib.import_module("fsspec")
    except ImportError:
        raise AirflowException(
            'paths of object stores need fsspec; `pip install "headrace[objectstorage]"` brings it'
        ) from None
