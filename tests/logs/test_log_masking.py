from __future__ import annotations

import json
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.logs import Masker, is_sensitive, sensitive_values


def masked(masker: Masker, *chunks: bytes) -> bytes:
    return b"".join([*map(masker.mask, chunks), masker.flush()])


def test_a_secret_becomes_stars():
    assert masked(Masker(["hunter22"]), b"it is hunter22, really") == b"it is ***, really"


def test_values_shorter_than_five_characters_are_left_alone():
    assert masked(Masker(["abcd"]), b"abcd") == b"abcd"


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_secret_is_found_wherever_the_reading_cuts_it(cut):
    text = b"say hunter22 and go"
    assert masked(Masker(["hunter22"]), text[:cut], text[cut:]) == b"say *** and go"


def test_a_secret_that_comes_byte_by_byte_is_found():
    assert masked(Masker(["hunter22"]), *(bytes([byte]) for byte in b"say hunter22 and go")) == b"say *** and go"


def test_nothing_is_held_back_that_cannot_become_a_secret():
    masker = Masker(["hunter22"])
    assert masker.mask(b"a line\n") == b"a line\n"
    assert masker.mask(b"the hun") == b"the "
    assert masker.mask(b"ted") == b"hunted"


def test_of_two_secrets_the_longer_one_wins():
    assert masked(Masker(["token", "token-and-more"]), b"token-and-more token") == b"*** ***"


def test_the_longer_one_wins_also_across_a_cut():
    assert masked(Masker(["token", "token-and-more"]), b"token", b"-and-more", b" token") == b"*** ***"


@pytest.mark.parametrize("form", [quote('p@ss/w"ör d', safe=""), json.dumps('p@ss/w"ör d')[1:-1], 'p@ss/w"ör d'])
def test_the_forms_of_urls_and_json_are_masked_too(form):
    assert masked(Masker(['p@ss/w"ör d']), form.encode()) == b"***"


def test_a_secret_that_is_added_later_is_masked_from_then_on():
    masker = Masker()
    assert masker.mask(b"hunter22 ") == b"hunter22 "
    masker.add(["hunter22"])
    assert masked(masker, b"hunter22") == b"***"


@given(
    secrets=st.lists(st.text("ab-", min_size=5, max_size=9), min_size=1, max_size=4),
    text=st.text("ab-", max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_masking_in_pieces_hides_whatever_masking_at_once_hides(secrets, text, cuts):
    data = text.encode()
    places = [0, *sorted(cuts), len(data)]
    chunks = [data[start:end] for start, end in pairwise(places)]
    assert masked(Masker(secrets), *chunks) == masked(Masker(secrets), data)


@pytest.mark.parametrize("name", ["password", "DB_PASSWORD", "my_api_key", "github_token", "aws_secret_access_key"])
def test_names_of_secrets_are_known(name):
    assert is_sensitive(name)


def test_other_names_are_not():
    assert not is_sensitive("color")


def test_secrets_are_found_by_their_names_at_any_depth():
    value = {"user": "app", "extra": '{"region": "x", "api_key": "k"}', "auth": {"tokens": [{"a": "t"}]}, "password": 5}
    assert sorted(sensitive_values(value)) == ["k", "t"]


def test_everything_below_a_secret_name_is_secret():
    assert sorted(sensitive_values({"a": "1", "b": ["2"]}, "my_secret")) == ["1", "2"]
