"""Pools as people set them."""

from __future__ import annotations

from headrace.errors import NotFoundError, StateError, UsageError, did_you_mean
from headrace.store import PoolRow, Store, Transaction, delete_pool, list_pools, set_pool
from headrace.store.setup import DEFAULT_POOL


def change_pool(store: Store, name: str, slots: int, includes_deferred: bool | None = None) -> PoolRow:
    """Create a pool or give it another number of slots. Tasks that hold slots already keep them."""
    if not name.strip():
        raise UsageError("expected the name of a pool, got an empty one")

    def work(tx: Transaction) -> PoolRow:
        set_pool(tx, name, slots, includes_deferred)
        return next(pool for pool in list_pools(tx) if pool.name == name)

    return store.transact(work)


def remove_pool(store: Store, name: str) -> None:
    """Delete a pool that no task holds slots of."""

    def work(tx: Transaction) -> None:
        pools = {pool.name: pool for pool in list_pools(tx)}
        pool = pools.get(name)
        if pool is None:
            hint = did_you_mean(name, pools) or "`headrace pools` lists them"
            raise NotFoundError(f"there is no pool `{name}`", hint=hint)
        if name == DEFAULT_POOL:
            raise StateError(f"cannot delete pool `{name}`: tasks that name no pool use it")
        if pool.used:
            raise StateError(f"cannot delete pool `{name}`: {pool.used} of its slots are taken", hint="try again later")
        delete_pool(tx, name)

    store.transact(work)
