"""Where a warm parent starts: `python -m headrace.runner.start_zygote FD`."""

from headrace.runner.forking import import_with_postponed_hooks

# Before anything else is imported, because almost everything imports `logging`.
import_with_postponed_hooks()

from headrace.runner.zygote import main  # noqa: E402

main()
