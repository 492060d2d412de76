"""Names in Japanese stay in their columns, and a picture that is drawn over itself does not wrap."""

from __future__ import annotations

import io

import pytest

from headrace.cli.cells import cut, padded, shortened, width
from headrace.cli.printing import print_table
from headrace.cli.progress import Live


@pytest.mark.parametrize(("text", "cells"), [("abc", 3), ("日次", 4), ("e\u0301a", 2), ("ｱ", 1), ("", 0)])
def test_width(text, cells):
    assert width(text) == cells


def test_texts_are_cut_and_padded_by_cells():
    assert cut("日次集計", 5) == "日次"
    assert cut("abc", 2) == "ab"
    assert padded("日次", 6) == "日次  "
    assert shortened("+日次集計+毎日の処理", 11) == "+日次…処理"
    assert shortened("+short", 11) == "+short"


def test_columns_of_a_table_stay_in_line(capsys):
    print_table(("name", "n"), [("日次", 1), ("abcde", 2)])
    assert capsys.readouterr().out == "NAME   N\n日次   1\nabcde  2\n"


def test_lines_of_a_live_picture_never_wrap(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    stream = io.StringIO()
    Live(stream)._draw(["日" * 30])
    assert stream.getvalue() == "\r" + "日" * 9 + "\x1b[K\n\x1b[J"
