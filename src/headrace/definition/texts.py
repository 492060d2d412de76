"""Which texts can be kept: PostgreSQL knows no NUL, and UTF-8 no half of a surrogate pair."""

from __future__ import annotations

import re

import msgspec

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with a replacement character in the place of each one that no database keeps.

    Values and parameters do not need it for a NUL: they are JSON, which spells it in letters.
    """
    return text if is_storable(text) else _UNSTORABLE.sub(REPLACEMENT, text)


def keep_storable(words: msgspec.Struct, *fields: str) -> None:
    """Make these texts of a frozen struct storable: words that come from user code, for people to read."""
    for field in fields:
        text = getattr(words, field)
        if text is not None and not is_storable(text):
            msgspec.structs.force_setattr(words, field, storable(text))


def is_storable(text: str) -> bool:
    """Whether a database keeps the text as it is."""
    return "\0" not in text and (text.isascii() or _is_encodable(text))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()  # much faster than a search
    except UnicodeEncodeError:
        return False
    return True
