"""Packing a project's folder, and unpacking archives that mean harm."""

from __future__ import annotations

import gzip
import io
import os
import tarfile

import pytest

from headrace.archives.folders import RevisionFolders
from headrace.archives.packing import archive_digest, pack
from headrace.archives.unpacking import unpack
from headrace.errors import StoreError, UsageError

MEGABYTE = 1024 * 1024


def names(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return sorted(archive.getnames())


def project(tmp_path, **files):
    folder = tmp_path / "project"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def archive_of(*members):
    """A tar.gz with (name, type, target or content) as members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, kind, value in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind == tarfile.REGTYPE:
                info.size = len(value)
                archive.addfile(info, io.BytesIO(value))
            else:
                info.linkname = value
                archive.addfile(info)
    return buffer.getvalue()


def test_hidden_and_ignored_files_stay_out(tmp_path):
    files = {
        "main.dig": "+a:\n", "sub/lib.py": "", ".git/config": "", "sub/.env": "", "data/big.csv": "", "a.log": "",
        "keep.log": "", "__pycache__/x.pyc": "", ".airflowignore": "old", ".digdagignore": "data/\n*.log\n!keep.log\n",
    }  # fmt: skip
    assert names(pack(project(tmp_path, **files))) == [".airflowignore", "keep.log", "main.dig", "sub/lib.py"]


def test_equal_folders_give_equal_archives(tmp_path):
    folder = project(tmp_path, **{"b.dig": "b", "a.dig": "a"})
    assert pack(folder) == pack(folder)


def test_modes_and_links_inside_survive_the_journey(tmp_path):
    folder = project(tmp_path, **{"run.sh": "#!/bin/sh", "sub/data": "1"})
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to(folder / "sub" / "data")
    target = tmp_path / "out"
    target.mkdir()
    unpack(pack(folder), target, max_bytes=MEGABYTE)
    assert os.access(target / "run.sh", os.X_OK)
    assert os.readlink(target / "link") == "sub/data"
    assert (target / "link").read_text() == "1"


def test_link_to_the_outside_is_refused_or_copied(tmp_path):
    folder = project(tmp_path, **{"main.dig": ""})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "one").write_text("1")
    (folder / "ext").symlink_to(outside)
    with pytest.raises(UsageError, match=r"`ext` is a link to .* not in the project's folder") as caught:
        pack(folder)
    assert "--copy-outgoing-symlinks" in caught.value.hint
    assert names(pack(folder, copies_outgoing_links=True)) == ["ext/one", "main.dig"]


def test_link_in_a_circle_ends(tmp_path):
    folder = project(tmp_path, **{"main.dig": ""})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "again").symlink_to(outside)
    (folder / "ext").symlink_to(outside)
    with pytest.raises(UsageError, match="link to a folder that it lies in itself"):
        pack(folder, copies_outgoing_links=True)


def test_folder_that_is_too_large_is_refused(tmp_path):
    with pytest.raises(UsageError, match="more than 1 MB"):
        pack(project(tmp_path, big="x" * (MEGABYTE + 1)), max_bytes=MEGABYTE)


@pytest.mark.parametrize(
    "members",
    [
        [("/etc/evil", tarfile.REGTYPE, b"x")],
        [("../evil", tarfile.REGTYPE, b"x")],
        [("a/../../evil", tarfile.REGTYPE, b"x")],
        [("link", tarfile.SYMTYPE, "/etc")],
        [("a/link", tarfile.SYMTYPE, "../../evil")],
        [("here", tarfile.SYMTYPE, "."), ("here/sub/link", tarfile.SYMTYPE, "../../evil")],
        [("hard", tarfile.LNKTYPE, "/etc/passwd")],
        [("device", tarfile.CHRTYPE, "")],
        [("pipe", tarfile.FIFOTYPE, "")],
        [("same", tarfile.REGTYPE, b"1"), ("same", tarfile.REGTYPE, b"2")],
        [("a", tarfile.SYMTYPE, "b"), ("b", tarfile.SYMTYPE, "a"), ("a/x", tarfile.REGTYPE, b"1")],
    ],
)
def test_archive_that_means_harm_is_refused(tmp_path, members):
    target = tmp_path / "out" / "in"
    target.mkdir(parents=True)
    with pytest.raises(UsageError):
        unpack(archive_of(*members), target, max_bytes=MEGABYTE)
    assert not (tmp_path / "evil").exists()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["in"]


def test_bomb_is_not_unpacked(tmp_path):
    bomb = archive_of(("zeros", tarfile.REGTYPE, b"\0" * (8 * MEGABYTE)))
    assert len(bomb) < 20_000
    with pytest.raises(UsageError, match="unpacks to more than 1 MB"):
        unpack(bomb, tmp_path, max_bytes=MEGABYTE)


@pytest.mark.parametrize("data", [b"", b"not an archive", gzip.compress(b"neither", mtime=0)], ids=["", "text", "gzip"])
def test_what_is_no_archive_is_named_so(tmp_path, data):
    with pytest.raises(UsageError, match="could not unpack the archive"):
        unpack(data, tmp_path, max_bytes=MEGABYTE)


def test_folder_of_a_revision_is_unpacked_once_and_only_if_it_is_whole(tmp_path):
    data = pack(project(tmp_path, **{"main.dig": "+a:\n"}))
    digest = archive_digest(data)
    folders = RevisionFolders(tmp_path / "revisions", MEGABYTE)
    with pytest.raises(StoreError, match="not in the store any more"):
        folders.folder(digest, lambda: None)
    with pytest.raises(StoreError, match="is damaged in the store"):
        folders.folder(digest, lambda: data + b"x")
    with pytest.raises(StoreError, match="expected the digest"):
        folders.folder("../../x", lambda: data)
    place = folders.folder(digest, lambda: data)
    assert (place / "main.dig").read_text() == "+a:\n"
    assert folders.folder(digest, lambda: pytest.fail("fetched again")) == place
    assert [one.name for one in (tmp_path / "revisions").iterdir()] == [digest]


def test_folder_that_nobody_used_for_a_month_goes(tmp_path):
    folders = RevisionFolders(tmp_path / "revisions", MEGABYTE)
    old, new = (pack(project(tmp_path, **{"main.dig": text})) for text in ("1", "2"))
    place = folders.folder(archive_digest(old), lambda: old)
    os.utime(place, (0, 0))
    folders.folder(archive_digest(new), lambda: new)
    assert not place.exists()
