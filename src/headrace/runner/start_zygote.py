"""Where a warm parent starts: `python -m headrace.runner.start_zygote FD`."""

import gc
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

from headrace.runner.forking import import_with_postponed_hooks

# What is imported here stays, so that there is no garbage among it to look for.
gc.disable()
# Before anything else is imported, because almost everything imports `logging`.
import_with_postponed_hooks()

from headrace.runner.spawned import NAME  # noqa: E402
from headrace.runner.zygote import main  # noqa: E402

gc.enable()
# Processes that a task starts by `multiprocessing` import what is `__main__` here, and must not become warm parents.
sys.modules["__main__"] = ModuleType("__main__")
sys.modules["__main__"].__spec__ = ModuleSpec(NAME, None)
main()
