"""What earlier requests have taught about guesses, kept from run to run."""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict
from pathlib import Path
from secrets import token_hex
from threading import Lock

from lookup_spec.propose.counts import Tables, dumps, loads, scaled
from lookup_spec.propose.hazard import Hazards, shipped, shipped_digest
from lookup_spec.propose.prompt import Work

_REMEMBERED = 100.0
_TAUGHT = 5.0
_SECONDS = 60.0
_MOST_TENANTS = 64
_FORMAT = "lookup-spec calibration 1"

_log = logging.getLogger(__name__)


class Calibration:
    """Counts that the requests of one tenant for one kind of work start from and add to. Holds no tokens and no text.

    Each request counts for itself, starting from here, and adds what it saw at its end: to each count no more than a
    few observations, so that no single odd request spoils them, and each count is worth at most a hundred, so that
    old ones are forgotten as new ones come. Safe to use from several threads.

    Args:
        work: what these requests' answers do.
        path: the file that keeps the counts; written now and then, and by :meth:`save`. None keeps them in memory.
            A file that cannot be read, or whose counts began with those of another version, is passed over, said
            once in the log, and replaced.
    """

    def __init__(self, work: Work, path: Path | None = None) -> None:
        self._work: Work = work
        self._path = path
        self._lock = Lock()
        tables = None if path is None else _read(path, work)
        self._tables = {name: dict(table) for name, table in (tables or shipped(work)).items()}
        self._unsaved = False
        self._saved_at = time.monotonic()

    def start(self) -> Hazards:
        """Counts for one request."""
        with self._lock:
            return Hazards({name: dict(table) for name, table in self._tables.items()})

    def learn(self, hazards: Hazards) -> None:
        """Adds what a request saw; to be called once, at its end."""
        with self._lock:
            for name, key, (came_before, tried_before), (came, tried) in hazards.seen():
                table = self._tables.setdefault(name, {})
                known_came, known_tried = table.get(key, (came_before, tried_before))
                part = min(1.0, _TAUGHT / (tried - tried_before))
                # A new list: requests that run started from the old one.
                table[key] = scaled(
                    [known_came + part * (came - came_before), known_tried + part * (tried - tried_before)],
                    _REMEMBERED,
                )
                self._unsaved = True
        if time.monotonic() - self._saved_at >= _SECONDS:
            self.save()

    def save(self) -> None:
        """Writes the file if anything was learned since; whole or not at all, the last of several processes wins."""
        with self._lock:
            if self._path is None or not self._unsaved:
                return
            self._unsaved, self._saved_at = False, time.monotonic()
            text = dumps(self._tables, {"format": _FORMAT, "began_with": shipped_digest(self._work)})
            partial = self._path.with_name(f".{self._path.name}.{token_hex(8)}.partial")
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                partial.write_text(text, encoding="utf-8")
                partial.replace(self._path)
            except OSError as error:
                _log.warning("The calibration cannot be kept in %s (%s).", self._path, error)
                self._path = None


class Calibrations:
    """One calibration a tenant and kind of work; what one tenant's requests taught never shows in another's drafts.

    Args:
        directory: where they are kept, a file each, named by a hash of the tenant's name; None keeps them in memory.
        most: calibrations kept in memory; those unused for longest are written and dropped.
    """

    def __init__(self, directory: Path | None = None, most: int = _MOST_TENANTS) -> None:
        self._directory, self._most = directory, most
        self._kept: OrderedDict[tuple[str, Work], Calibration] = OrderedDict()
        self._lock = Lock()

    def of(self, tenant: str, work: Work) -> Calibration:
        """The tenant's calibration for such work, read from its file the first time."""
        with self._lock:
            found = self._kept.get((tenant, work))
            if found is None:
                found = self._kept[tenant, work] = Calibration(work, self._path(tenant, work))
            self._kept.move_to_end((tenant, work))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)[1].save()
            return found

    def save(self) -> None:
        """Writes what was learned since the last time."""
        with self._lock:
            for calibration in self._kept.values():
                calibration.save()

    def _path(self, tenant: str, work: Work) -> Path | None:
        if self._directory is None:
            return None
        name = hashlib.sha256(tenant.encode("utf-8", errors="surrogatepass")).hexdigest()[:16]
        return self._directory / f"{name}-{work}.json"


def _read(path: Path, work: Work) -> Tables | None:
    try:
        header, tables = loads(path.read_text(encoding="utf-8"))
        if header != {"format": _FORMAT, "began_with": shipped_digest(work)}:
            raise ValueError("it was written by another version")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _log.warning("The calibration in %s is not used and will be replaced (%s).", path, error)
        return None
    return tables
