"""The logs of many tasks in one stream."""

from __future__ import annotations

from headrace.cli.many_logs import ShownLogs


def test_a_heading_comes_only_where_the_log_changes(tmp_path, capfd):
    shown, one, two = ShownLogs(), tmp_path / "one.log", tmp_path / "two.log"
    for path, line in ((one, "a\n"), (one, "b\n"), (two, "c\n"), (one, "d\n")):
        with path.open("a") as file:
            file.write(line)
        shown.show(path, path.stem)
        shown.show(path, path.stem)
    assert capfd.readouterr().out == "--- one\na\nb\n--- two\nc\n--- one goes on\nd\n"
