"""`self.log` for hooks, backends and whatever else is told by its class's name in the log."""

from __future__ import annotations

import logging


class LoggingMixin:
    """Gives a class its logger."""

    _log: logging.Logger | None = None
    _log_config_logger_name: str | None = None
    _logger_name: str | None = None

    @property
    def log(self) -> logging.Logger:
        if self._log is None:
            own = self._logger_name or f"{type(self).__module__}.{type(self).__qualname__}"
            prefix = self._log_config_logger_name
            self._log = logging.getLogger(f"{prefix}.{own}" if prefix else own)
        return self._log

    @property
    def logger(self) -> logging.Logger:
        return self.log
