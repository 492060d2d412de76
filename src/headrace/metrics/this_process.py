"""What the operating system knows of this process."""

from __future__ import annotations

import os
import resource
import time

from headrace.metrics.catalogue import CPU_SECONDS, DESCRIPTORS, INFO, MAX_DESCRIPTORS, MEMORY, STARTED
from headrace.metrics.instruments import Family, Reading, Sample
from headrace.release import VERSION

_STARTED = time.time()


def process_readings() -> list[Reading]:
    """Memory, descriptors and time of this process; what the system does not tell is left out."""
    times = os.times()
    numbers: dict[Family, float | None] = {
        MEMORY: _resident_bytes(),
        DESCRIPTORS: _open_descriptors(),
        MAX_DESCRIPTORS: resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        CPU_SECONDS: times.user + times.system,
        STARTED: _STARTED,
    }
    known = [Reading(family, [Sample((), value)]) for family, value in numbers.items() if value is not None]
    return [Reading(INFO, [Sample((VERSION,), 1)]), *known]


def _resident_bytes() -> float | None:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _open_descriptors() -> float | None:
    try:
        return len(os.listdir("/proc/self/fd")) - 1  # the listing itself has one open
    except OSError:
        return None
