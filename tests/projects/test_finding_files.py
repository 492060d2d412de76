from __future__ import annotations

import os
import zipfile

import pytest

from headrace.errors import LoadError
from headrace.projects import Discovery, find_files

DAG = "from airflow.sdk import DAG"


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_dig_files_count_at_the_top_and_python_files_anywhere(tmp_path):
    write(tmp_path, {"a.dig": "", "sub/b.dig": "", "c.py": DAG, "sub/deep/d.py": DAG, "e.sql": DAG, "f.pyc": DAG})
    assert find_files(tmp_path) == ["a.dig", "c.py", "sub/deep/d.py"]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("from airflow import DAG", True),
        ("from headrace import dag, task", True),
        ("FROM AIRFLOW: a Dag", True),
        ("from airflow.sdk import Asset", True),
        ("import digdag", False),
        ("from airflow.hooks import Hook", False),
        ("print('hello')", False),
    ],
)
def test_python_file_must_mention_workflows(tmp_path, text, counts):
    write(tmp_path, {"a.py": text})
    assert find_files(tmp_path) == (["a.py"] if counts else [])


def test_folders_without_workflows_are_skipped(tmp_path):
    write(
        tmp_path,
        {
            ".git/a.py": DAG,
            "__pycache__/a.py": DAG,
            "env/pyvenv.cfg": "",
            "env/lib/a.py": DAG,
            "node_modules/a.py": DAG,
            ".hidden.py": DAG,
            "kept.py": DAG,
        },
    )
    assert find_files(tmp_path) == ["kept.py"]


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("b.py", ["a.py", "sub/c.py"]),
        ("/b.py", ["a.py", "sub/b.py", "sub/c.py"]),
        ("sub/", ["a.py", "b.py"]),
        ("sub", ["a.py", "b.py"]),
        ("sub/b.py", ["a.py", "b.py", "sub/c.py"]),
        ("*.py\n!a.py", ["a.py"]),
        ("**/b.py", ["a.py", "sub/c.py"]),
        ("sub/**", ["a.py", "b.py"]),
        ("[ab].py", ["sub/c.py"]),
        ("[!ab].py", ["a.py", "b.py", "sub/b.py"]),
        ("?.py", []),
        ("# b.py\n\n", ["a.py", "b.py", "sub/b.py", "sub/c.py"]),
        ("a+.py", ["a.py", "b.py", "sub/b.py", "sub/c.py"]),
    ],
)
@pytest.mark.parametrize("ignore_file", [".airflowignore", ".headraceignore"])
def test_ignore_files_use_patterns_like_git(tmp_path, ignore_file, patterns, left):
    write(tmp_path, {"a.py": DAG, "b.py": DAG, "sub/b.py": DAG, "sub/c.py": DAG, ignore_file: patterns})
    assert find_files(tmp_path) == left


def test_ignore_file_holds_below_its_folder(tmp_path):
    write(tmp_path, {"a.py": DAG, "sub/a.py": DAG, "sub/deep/a.py": DAG, "sub/.airflowignore": "/a.py"})
    assert find_files(tmp_path) == ["a.py", "sub/deep/a.py"]


def test_links_are_followed_once(tmp_path):
    write(tmp_path, {"shared/a.py": DAG})
    (tmp_path / "shared" / "again").symlink_to(tmp_path)
    assert find_files(tmp_path) == ["shared/a.py"]


def test_missing_folder_is_an_error_and_not_an_empty_project(tmp_path):
    with pytest.raises(LoadError, match="does not exist"):
        find_files(tmp_path / "gone")


def test_ignore_files_may_be_regular_expressions(tmp_path, caplog):
    ignored = "project_[a-z]   # a comment\n^sub/old\n(\n"
    files = ["project_a/x.py", "project_1/x.py", "sub/old.py", "sub/new.py"]
    write(tmp_path, {".airflowignore": ignored, **dict.fromkeys(files, DAG)})
    assert find_files(tmp_path, Discovery(ignore_syntax="regexp")) == ["project_1/x.py", "sub/new.py"]
    assert "`(` in" in caplog.text and "is not a regular expression" in caplog.text


def test_every_python_file_counts_without_safe_mode(tmp_path):
    write(tmp_path, {"a.py": "print('hello')"})
    assert find_files(tmp_path, Discovery(is_safe=False)) == ["a.py"]


def test_archives_count_if_a_module_at_their_root_mentions_workflows(tmp_path):
    for name, member in (("good.zip", "flow.py"), ("deep.zip", "inside/flow.py")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(member, DAG)
    (tmp_path / "broken.zip").write_bytes(b"no archive")
    assert find_files(tmp_path) == ["good.zip"]


def test_a_name_that_is_no_utf8_is_left_out_and_told_once(tmp_path, caplog):
    (tmp_path / "good.dig").write_text("")
    for name in (b"\xff.dig", b"folder\xff"):
        path = os.fsencode(tmp_path) + b"/" + name
        os.mkdir(path) if name.startswith(b"folder") else os.close(os.open(path, os.O_CREAT))
    assert find_files(tmp_path) == find_files(tmp_path) == ["good.dig"]
    said = sorted(record.getMessage() for record in caplog.records)
    assert said == [
        f"'{tmp_path}/{name}' is left out: its name is not UTF-8" for name in (r"\udcff.dig", r"folder\udcff")
    ]
