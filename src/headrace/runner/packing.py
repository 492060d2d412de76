"""Where the new objects of forked children go: side by side, and not between the objects that all children share."""

from __future__ import annotations

# How Python keeps objects of up to 512 bytes since 3.10: in pools, each for blocks of one size behind a header.
_POOL_BYTES = 16_384
_HEADER_BYTES = 48
_SIZES = range(16, 513, 16)
_EMPTY_BYTES = b"".__sizeof__()
_LIMIT_BYTES = 524_288
"""No process of ours has had so many free blocks of one size."""

_fillings: list[object] = []


def fill_gaps() -> None:
    """Take the free blocks in the pools of this process for good.

    A process that puts an object into a gap writes to the page around it, which a forked one has to copy first. Without
    gaps it begins new pools, and fills their pages one after the other.
    """
    for size in _SIZES:
        if not _fill(size):
            return  # this Python keeps its objects in another way


def _fill(size: int) -> bool:
    """Whether the next block of this size belongs to a pool with nothing in it but what was put there by this."""
    before = 0
    for _ in range(_LIMIT_BYTES // size):
        filling = _block(size)
        _fillings.append(filling)
        if before % _POOL_BYTES == _HEADER_BYTES and id(filling) == before + size:
            return True
        before = id(filling)
    return False


def _block(size: int) -> object:
    if size == 16:
        return object()
    return float(size) if size == 32 else bytes(size - _EMPTY_BYTES)
