"""What the service says on stderr: what happened to which request, never the text of a prompt or an answer."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone

from lookup_server.settings import LogFormat, LogLevel


class JsonLines(logging.Formatter):
    """One JSON object a line; what a record is about, its ``about``, stands beside its message."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "about", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """The message, and the name of the request that it is about."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line = super().format(record)
        name = getattr(record, "about", {}).get("request_id")
        return line if name is None else f"{line} [{name}]"


def set_up_logs(format_: LogFormat, level: LogLevel) -> None:
    """Sends the log of this process to stderr, other libraries' only from warnings on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if format_ == "json" else TextLines("%(message)s"))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("lookup_server").setLevel(level.upper())
