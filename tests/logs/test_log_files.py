from __future__ import annotations

import logging
import os
import resource
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.logs import LogFile, LogPump, Masker, follow, log_path, read_log


def test_the_path_of_a_log_can_be_read_by_people():
    path = log_path("/logs", "sales", "manual__2026-02-03T04:05:06+00:00", "+main+load", 3, 1, 2)
    assert str(path) == "/logs/sales/manual__2026-02-03T04:05:06+00:00/attempt=1/+main+load[3],try=2.log"


def test_a_project_is_a_folder_above():
    assert str(log_path("/logs", "w", "r", "t", project="p")) == "/logs/p/w/r/attempt=1/t,try=1.log"


@given(name=st.text(max_size=400) | st.sampled_from(["", ".", "..", "../../etc", "a/b", "a\0b", ".hidden"]))
def test_no_name_leads_out_of_the_logs_folder(name):
    path = log_path("/logs", name, name, name)
    assert os.path.normpath(path) == str(path)
    assert len(path.parts) == 6
    assert str(path).startswith("/logs/")
    assert all(len(part.encode()) < 255 for part in path.parts)


@given(st.lists(st.text(max_size=300), min_size=2, max_size=2, unique=True))
def test_different_names_have_different_paths(names):
    assert log_path("/logs", "w", "r", names[0]) != log_path("/logs", "w", "r", names[1])


@pytest.fixture
def pump():
    pump = LogPump()
    yield pump
    pump.close()


@pytest.fixture
def pipe():
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield read, write
    os.close(read)
    os.close(write)


def test_finish_returns_when_everything_is_in_the_file(pump, pipe, tmp_path):
    read, write = pipe
    for number in range(50):
        path = tmp_path / f"{number}.log"
        stream = pump.start(read, str(path), Masker())
        os.write(write, b"text %d" % number)
        pump.finish(stream)
        assert path.read_bytes() == b"text %d" % number


def test_what_was_written_between_two_streams_is_in_neither(pump, pipe, tmp_path):
    read, write = pipe
    pump.finish(pump.start(read, str(tmp_path / "1.log"), Masker()))
    os.write(write, b"stray")
    pump.finish(pump.start(read, str(tmp_path / "2.log"), Masker()))
    assert list(tmp_path.iterdir()) == []  # a log without a byte needs no file


def test_more_than_a_pipe_holds_flows_while_nobody_finishes(pump, pipe, tmp_path):
    read, write = pipe
    stream = pump.start(read, str(tmp_path / "1.log"), Masker())
    left = memoryview(b"x" * 3_000_000)
    while left:
        left = left[os.write(write, left) :]
    pump.finish(stream)
    assert (tmp_path / "1.log").stat().st_size == 3_000_000


def test_a_secret_at_the_very_end_is_masked(pump, pipe, tmp_path):
    read, write = pipe
    stream = pump.start(read, str(tmp_path / "1.log"), Masker(["hunter22"]))
    os.write(write, b"it is hunter")
    os.write(write, b"22")
    pump.finish(stream)
    assert (tmp_path / "1.log").read_bytes() == b"it is ***"


def test_finishing_twice_does_nothing(pump, pipe, tmp_path):
    read, _ = pipe
    stream = pump.start(read, str(tmp_path / "1.log"), Masker())
    pump.finish(stream)
    pump.finish(stream)


def test_a_full_disk_is_told_once_and_its_losses_are_counted(tmp_path, caplog):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    file = LogFile(str(tmp_path / "1.log"), Masker())
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with caplog.at_level(logging.WARNING, "headrace.logs"):
            for _ in range(5):
                file.write(b"x" * 400)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (file.lost_bytes, (tmp_path / "1.log").stat().st_size) == (1000, 1000)
    file.write(b"the end")
    file.close()
    gap = b"\n[1000 bytes of the log are missing here: File too large]\n"
    assert (tmp_path / "1.log").read_bytes() == b"x" * 1000 + gap + b"the end"
    assert file.lost_bytes == 1000 and len(caplog.records) == 1


def test_what_is_missing_at_the_end_is_told_when_the_file_is_closed(tmp_path):
    (tmp_path / "logs").write_text("")
    file = LogFile(str(tmp_path / "logs" / "1.log"), Masker())
    file.write(b"text")
    (tmp_path / "logs").unlink()
    file.close()
    file.close()
    assert (tmp_path / "logs" / "1.log").read_text() == "\n[4 bytes of the log are missing here: Not a directory]\n"


def test_a_folder_that_cannot_be_made_is_told_and_everything_is_lost(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    file = LogFile(str(tmp_path / "file" / "1.log"), Masker())
    file.write(b"text")
    file.close()
    assert file.lost_bytes == 4
    assert "the task goes on without it" in caplog.text


def test_reading_starts_at_an_offset_and_stops_at_a_limit(tmp_path):
    (tmp_path / "1.log").write_bytes(b"0123456789")
    assert b"".join(read_log(tmp_path / "1.log", 3, 4)) == b"3456"
    assert b"".join(read_log(tmp_path / "1.log", 8)) == b"89"
    assert b"".join(read_log(tmp_path / "1.log", 50)) == b""


def test_a_try_without_a_log_reads_as_nothing(tmp_path):
    assert list(read_log(tmp_path / "missing.log")) == []


def test_following_sees_a_log_appear_grow_and_end(tmp_path):
    path = Path(tmp_path / "1.log")
    steps = iter([lambda: path.write_text("one\n"), lambda: path.write_text("one\ntwo\n"), lambda: None])
    is_finished = False

    def wait():
        nonlocal is_finished
        step = next(steps)
        step()
        is_finished = path.exists() and path.read_text().endswith("two\n")

    assert list(follow(path, lambda: is_finished, wait)) == [b"one\n", b"two\n"]
