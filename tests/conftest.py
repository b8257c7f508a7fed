from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

# A busy machine fails no test.
settings.register_profile("quick", deadline=None, max_examples=50)
settings.load_profile("quick")


@pytest.fixture(scope="session", autouse=True)
def _no_calibration_outside() -> Iterator[None]:
    """No test reads or writes what the user's own requests have taught, in this process or another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOKUP_SPEC_CALIBRATION", "off")
        yield
