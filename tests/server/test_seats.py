"""Places for answers, and how long to stay away when they are taken."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from lookup_server.errors import ApiError
from lookup_server.seats import Seats


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def refused(seats: Seats, count: int = 1) -> ApiError:
    with pytest.raises(ApiError) as error, seats.take(count):
        pass
    return error.value


def test_places_are_bounded_and_come_back() -> None:
    seats = Seats(3)
    with seats.take(2), seats.take(1):
        assert refused(seats).status == 429
        assert seats.taken == 3
    with seats.take(3):
        pass
    assert seats.taken == 0
    assert refused(seats, 4).status == 400


def test_the_time_to_stay_away_follows_how_fast_places_become_free() -> None:
    clock = Clock()
    seats = Seats(4, clock)
    for _ in range(8):  # one every five seconds
        with seats.take(1):
            clock.now += 5
    with seats.take(4):
        assert refused(seats, 1).headers["retry-after"] == "5"
        assert refused(seats, 3).headers["retry-after"] == "14"  # 35 s for eight, the first of which began it
        clock.now += 40
        assert int(refused(seats, 1).headers["retry-after"]) > 5  # nothing came free meanwhile


def test_before_any_place_became_free_the_oldest_request_tells() -> None:
    clock = Clock()
    seats = Seats(2, clock)
    with ExitStack() as stack:
        stack.enter_context(seats.take(1))
        clock.now += 7.5
        stack.enter_context(seats.take(1))
        assert refused(seats).headers["retry-after"] == "8"
        clock.now += 10_000
        assert refused(seats).headers["retry-after"] == "120"
