"""Documents that were sent or made before, by their hash."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict, defaultdict

from lookup_server.errors import ApiError


def sha256_of(text: str) -> str:
    """The hash of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Documents:
    """The texts last used, for each tenant its own.

    Args:
        max_bytes: most memory for the texts of one tenant.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._texts: dict[str, OrderedDict[str, str]] = defaultdict(OrderedDict)
        self._bytes: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def keep(self, tenant: str, text: str) -> str:
        """Keeps a text, in place of those unused for longest; returns its hash."""
        digest = sha256_of(text)
        with self._lock:
            texts = self._texts[tenant]
            if digest not in texts and _size(text) <= self._max_bytes:
                texts[digest] = text
                self._bytes[tenant] += _size(text)
            if digest in texts:
                texts.move_to_end(digest)
            while self._bytes[tenant] > self._max_bytes:
                self._bytes[tenant] -= _size(texts.popitem(last=False)[1])
        return digest

    def text_of(self, tenant: str, digest: str) -> str:
        """The text with this hash.

        Raises:
            ApiError: it is not known, or not any more.
        """
        with self._lock:
            text = self._texts[tenant].get(digest.lower())
            if text is None:
                raise stale("No document with this base_sha256 is known (any more); send its text.")
            self._texts[tenant].move_to_end(digest.lower())
            return text


def stale(message: str) -> ApiError:
    """The client and the service do not mean the same text; sending the same again does not help."""
    return ApiError(
        409, message, param="document.base_sha256", code="stale_document", headers={"x-should-retry": "false"}
    )


def _size(text: str) -> int:
    return 4 * len(text)  # the most that Python takes for a character
