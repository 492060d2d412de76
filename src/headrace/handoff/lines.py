"""The form of a log line, the same in every process that runs user code."""

from __future__ import annotations

import logging
import time


class LineFormatter(logging.Formatter):
    """`2026-02-03T04:05:06.789Z INFO airflow.task: text`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime
