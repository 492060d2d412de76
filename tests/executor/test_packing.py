"""New objects of task processes lie side by side, although the parent's memory is full of holes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

# Holes in every page: each second object of one size is gone.
PAGES = """
    from headrace.runner.packing import fill_gaps

    kept = [bytes({length}) for _ in range(600)]
    kept = kept[::2]
    if {is_filled}:
        fill_gaps()
    new = [bytes({length}) for _ in range(100)]
    print(len({{id(one) // 4096 for one in new}}))
"""


def printed(program: str, **environment: str) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return int(subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout)


@pytest.mark.parametrize(("length", "size"), [(60, 96), (100, 144), (479, 512)])
def test_new_objects_share_pages(length, size):
    fewest = 100 * size // 4096 + 1
    assert printed(PAGES.format(length=length, is_filled=True)) <= fewest + 1
    assert printed(PAGES.format(length=length, is_filled=False)) > fewest + 1


def test_a_python_that_keeps_its_objects_in_another_way_is_left_alone():
    program = """
        import sys
        from headrace.runner import packing
        packing.fill_gaps()
        print(sum(map(sys.getsizeof, packing._fillings)))
    """
    assert printed(program, PYTHONMALLOC="malloc") < 600_000
