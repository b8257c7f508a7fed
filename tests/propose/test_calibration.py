from __future__ import annotations

import logging
import re
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup_spec.propose import calibration as module
from lookup_spec.propose.calibration import Calibration, Calibrations
from lookup_spec.propose.counts import Counts, Tables, count, dumps, loads, scaled
from lookup_spec.propose.ending import Ending
from lookup_spec.propose.guess import Guess, Kind
from lookup_spec.propose.hazard import DEPTH_BUCKETS, Hazards, shipped, shipped_digest
from lookup_spec.propose.prompt import Prompt, Reference, Span, Work
from lookup_spec.propose.proposer import LookupProposer

WORKS: tuple[Work, ...] = get_args(Work)
LIKELY = Guess(Kind.CONTINUE, (0,), 0, 20, 0)
CHAIN = Guess(Kind.NEAR, (0,), 0, 3, 1)


def teach(calibration: Calibration, came: bool, times: int = 1) -> None:
    """One request that sees the same guess come true, or fail, so many times."""
    hazards = calibration.start()
    for _ in range(times):
        count(hazards.first(LIKELY, Ending.WORD), came)
    calibration.learn(hazards)


def rate(counts: Counts) -> float:
    """How often it came true."""
    return counts[0] / counts[1]


def further(hazards: Hazards) -> list[float]:
    """How a chain goes on, by depth bucket."""
    rates = hazards.further(CHAIN.kind, CHAIN.length, Ending.WORD)
    return [rates[bucket] for bucket in range(DEPTH_BUCKETS[-1] + 1)]


def likely(calibration: Calibration) -> float:
    return rate(calibration.start().first(LIKELY, Ending.WORD))


def test_requests_start_from_what_earlier_ones_saw() -> None:
    """A guess that failed in earlier requests is less likely in the next, one that came is likelier."""
    calibration = Calibration("edit")
    before = likely(calibration)
    teach(calibration, came=False)
    after = likely(calibration)
    assert after < before
    teach(calibration, came=True)
    assert likely(calibration) > after


@pytest.mark.parametrize("times", [1, 10, 10_000])
def test_one_odd_request_spoils_nothing(times: int) -> None:
    """However much one request sees, it weighs no more than a few observations."""
    calibration = Calibration("edit")
    before = likely(calibration)
    teach(calibration, came=False, times=times)
    assert 0.85 * before < likely(calibration) < before


def test_what_is_no_longer_true_is_forgotten() -> None:
    """Counts of hundreds of requests do not outlive some dozens that say the opposite."""
    calibration = Calibration("edit")
    for _ in range(300):
        teach(calibration, came=True, times=50)
    assert likely(calibration) > 0.95
    for _ in range(60):
        teach(calibration, came=False, times=50)
    assert likely(calibration) < 0.1


def test_requests_at_the_same_time_do_not_disturb_each_other() -> None:
    """What another request teaches does not move the counts of one that runs, and both are learned from."""
    calibration = Calibration("edit")
    running = calibration.start()
    before, alone = rate(running.first(LIKELY, Ending.WORD)), likely(calibration)
    teach(calibration, came=False, times=5)
    assert rate(running.first(LIKELY, Ending.WORD)) == before
    assert further(running) == further(calibration.start())
    once = likely(calibration)
    for _ in range(5):
        count(running.first(LIKELY, Ending.WORD), came=False)
    calibration.learn(running)
    assert likely(calibration) < once < alone


def test_a_request_that_saw_nothing_teaches_nothing(tmp_path: Path) -> None:
    """Counts that were only looked at are not learned, and no file is written for them."""
    calibration = Calibration("edit", tmp_path / "a.json")
    hazards = calibration.start()
    hazards.first(LIKELY, Ending.WORD)
    further(hazards)
    calibration.learn(hazards)
    calibration.save()
    assert list(tmp_path.iterdir()) == []


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    """A new process starts where the last one stopped; the directory is made, and nothing else is left in it."""
    path = tmp_path / "new" / "a.json"
    calibration = Calibration("edit", path)
    hazards = calibration.start()
    for _ in range(4):
        count(hazards.first(LIKELY, Ending.WORD), came=False)
        count(hazards.ranked(2, 0.3), came=True)
        count(hazards.parted(1, 0.6), came=True)
        hazards.count_further(CHAIN.kind, CHAIN.length, Ending.WORD, start=0, depth=9, missed=True)
    calibration.learn(hazards)
    calibration.save()
    again = Calibration("edit", path)
    assert list(path.parent.iterdir()) == [path]
    now, then = again.start(), calibration.start()
    assert rate(now.first(LIKELY, Ending.WORD)) == pytest.approx(rate(then.first(LIKELY, Ending.WORD)), abs=1e-3)
    assert rate(now.ranked(2, 0.3)) == pytest.approx(rate(then.ranked(2, 0.3)), abs=1e-3)
    assert rate(now.parted(1, 0.6)) == pytest.approx(rate(then.parted(1, 0.6)), abs=1e-3)
    assert further(now) == pytest.approx(further(then), abs=1e-3)
    assert rate(now.first(LIKELY, Ending.WORD)) < rate(Hazards(shipped("edit")).first(LIKELY, Ending.WORD))


def test_files_hold_nothing_but_small_numbers(tmp_path: Path) -> None:
    """No number in a file is as large as most token ids are."""
    path = tmp_path / "a.json"
    calibration = Calibration("edit", path)
    for _ in range(50):
        teach(calibration, came=True, times=100)
    calibration.save()
    rows = path.read_text().split("[", 1)[1]
    assert max(float(number) for number in re.findall(r"\d+\.?\d*", rows)) <= 100


def good_file() -> str:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "a.json"
        calibration = Calibration("edit", path)
        teach(calibration, came=False)
        calibration.save()
        return path.read_text()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"3",
        b'{"first": 3}',
        good_file()[: len(good_file()) // 2].encode(),
        b"[" * 100_000,
        good_file().replace("calibration 1", "calibration 2").encode(),
        good_file().replace(shipped_digest("edit"), "0123456789abcdef").encode(),
        good_file().replace('"first": [', '"first": [\n[1, 1, 0, NaN, 4.0],').encode(),
        good_file().replace('"first": [', '"first": [\n[1, 1, 0, -1.0, 4.0],').encode(),
        good_file().replace('"first": [', '"first": [\n[1, 1, 0, 5.0, 4.0],').encode(),
        good_file().replace('"first": [', '"first": [\n[1, 1, 0, 0, 0],').encode(),
        good_file().replace('"first": [', '"first": [\n[1, 1.5, 0, 1, 2],').encode(),
        good_file().replace('"first": [', '"first": [\n["x", 1, 2],').encode(),
        None,
    ],
    ids=[
        "empty", "no text", "a list", "a number", "a wrong table", "torn", "deep", "newer", "other counts",
        "not a number", "negative", "more than all", "nothing tried", "a broken key", "a word", "a directory",
    ],
)  # fmt: skip
def test_a_bad_file_is_passed_over_once_and_replaced(
    content: bytes | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever stands in the file, requests start as without it, one warning names it, and nothing is raised."""
    path = tmp_path / "a.json"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        calibration = Calibration("edit", path)
        assert likely(calibration) == rate(Hazards(shipped("edit")).first(LIKELY, Ending.WORD))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(path) in caplog.text
    teach(calibration, came=False)
    calibration.save()
    if content is not None:
        assert likely(Calibration("edit", path)) == pytest.approx(likely(calibration), abs=1e-3)


def test_a_place_that_cannot_be_written_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where nothing can be kept, learning goes on in memory, with one warning."""
    (tmp_path / "file").write_text("")
    calibration = Calibration("edit", tmp_path / "file" / "a.json")
    caplog.clear()
    for _ in range(3):
        before = likely(calibration)
        teach(calibration, came=False)
        calibration.save()
        assert likely(calibration) < before
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_reader_never_sees_a_torn_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While several write the same file, whoever starts reads one of the written ones."""
    path = tmp_path / "a.json"
    stop = threading.Event()

    def write() -> None:
        calibration = Calibration("edit")
        calibration._path = path
        while not stop.is_set():
            teach(calibration, came=False)
            calibration.save()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(50):
            Calibration("edit", path)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert caplog.records == []
    assert likely(Calibration("edit", path)) < rate(Hazards(shipped("edit")).first(LIKELY, Ending.WORD))


def test_files_are_written_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that is never ended keeps what it learned, too."""
    path = tmp_path / "a.json"
    calibration = Calibration("edit", path)
    teach(calibration, came=False)
    assert not path.exists()
    monkeypatch.setattr(module, "_SECONDS", 0.0)
    teach(calibration, came=False)
    assert likely(Calibration("edit", path)) == pytest.approx(likely(calibration), abs=1e-3)


def test_tenants_teach_only_themselves(tmp_path: Path) -> None:
    """Another tenant starts as if there were no other, in memory and in files, and files do not tell names."""
    for directory in (None, tmp_path):
        calibrations = Calibrations(directory)
        teach(calibrations.of("secret-key", "edit"), came=False)
        assert (
            likely(calibrations.of("b", "edit"))
            == likely(calibrations.of("", "edit"))
            == rate(Hazards(shipped("edit")).first(LIKELY, Ending.WORD))
        )
        assert calibrations.of("secret-key", "edit") is calibrations.of("secret-key", "edit")
        calibrations.save()
    again = Calibrations(tmp_path)
    assert (
        likely(again.of("b", "edit"))
        == rate(Hazards(shipped("edit")).first(LIKELY, Ending.WORD))
        > likely(again.of("secret-key", "edit"))
    )
    assert [("secret" in path.name, path.suffix) for path in tmp_path.iterdir()] == [(False, ".json")]


def test_kinds_of_work_teach_only_themselves(tmp_path: Path) -> None:
    """What comes true where a text is followed says nothing about answers that follow none."""
    calibrations = Calibrations(tmp_path)
    before = {work: likely(calibrations.of("a", work)) for work in WORKS}
    assert before["free"] < before["edit"]
    teach(calibrations.of("a", "free"), came=False)
    calibrations.save()
    for known in (calibrations, Calibrations(tmp_path)):
        assert likely(known.of("a", "free")) < before["free"]
        assert {work: likely(known.of("a", work)) for work in ("edit", "fill")} == {
            work: before[work] for work in ("edit", "fill")
        }


@pytest.mark.parametrize(
    ("work", "prompt"),
    [
        ("free", Prompt((1, 2, 3))),
        ("fill", Prompt((1, 2, 3), (Span(0, 2, "document"),))),
        ("fill", Prompt((1, 2, 3), (), (Reference((4, 5), "document"),))),
        ("edit", Prompt((1, 2, 3), (Span(0, 2, "base"),))),
        ("edit", Prompt((1, 2, 3), (Span(0, 2, "document"),), (Reference((4, 5), "prediction"),))),
    ],
)
def test_a_prompt_tells_what_its_answer_is_expected_to_do(work: Work, prompt: Prompt) -> None:
    """A text to follow makes an edit, texts around it a gap; a proposer begins with the counts of such work."""
    assert prompt.work == work
    proposer = LookupProposer()
    proposer.begin(prompt)
    for key, counts in list(shipped(work)["first"].items())[:50]:
        if len(key) == 4:
            length, kind, detail, ending = key
            if length < 8 and kind != Kind.SUCCESSOR:
                guess = Guess(Kind(kind), (0,), 0, length, detail)
                assert proposer._hazards.first(guess, Ending(ending)) == counts


def test_any_number_of_tenants_takes_bounded_memory(tmp_path: Path) -> None:
    """Of many tenants few are in memory, and none is forgotten."""
    calibrations = Calibrations(tmp_path, most=3)
    for number in range(20):
        teach(calibrations.of(f"tenant {number}", "edit"), came=False)
    assert len(calibrations._kept) == 3
    calibrations.save()
    assert all(
        likely(calibrations.of(f"tenant {number}", "edit")) < rate(Hazards(shipped("edit")).first(LIKELY, Ending.WORD))
        for number in range(20)
    )


keys = st.lists(st.integers(-100, 100), min_size=1, max_size=3).map(tuple)
counts = st.tuples(st.floats(0.01, 1), st.floats(0.01, 1000)).map(lambda pair: [pair[0] * pair[1], pair[1]])
tables = st.dictionaries(st.sampled_from(["first", "ranked", "other"]), st.dictionaries(keys, counts, max_size=5))


@settings(max_examples=30)
@given(tables, st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=5)))
def test_tables_survive_their_text(tables: Tables, header: dict[str, str]) -> None:
    """What is written is read again, to the third digit."""
    read_header, read = loads(dumps(tables, header))
    assert read_header == header
    assert {name: list(table) for name, table in read.items()} == {name: sorted(tables[name]) for name in tables}
    for name, table in tables.items():
        for key, entry in table.items():
            assert read[name][key] == pytest.approx(entry, abs=2e-3)


@given(counts, st.floats(0.1, 100))
def test_scaling_keeps_the_rate(entry: list[float], most: float) -> None:
    """Scaled counts say the same and weigh no more than is wanted."""
    came, tried = scaled(entry, most)
    assert tried <= most * 1.000001 or [came, tried] == entry
    assert came / tried == pytest.approx(entry[0] / entry[1])


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 80), st.booleans()), max_size=8))
def test_chains_are_counted_token_by_token(chains: list[tuple[int, int, bool]]) -> None:
    """Counting a stretch of a chain at once is counting each of its tokens."""
    hazards, slow = Hazards({}), {bucket: [0.85 * 4, 4.0] for bucket in range(DEPTH_BUCKETS[-1] + 1)}
    for start, more, missed in chains:
        depth = start + more
        hazards.count_further(CHAIN.kind, CHAIN.length, Ending.WORD, start=start, depth=depth, missed=missed)
        for place in range(start + 1, min(depth, len(DEPTH_BUCKETS))):
            count(slow[DEPTH_BUCKETS[place]], came=True)
        if missed:
            count(slow[DEPTH_BUCKETS[min(depth, len(DEPTH_BUCKETS) - 1)]], came=False)
    assert further(hazards) == pytest.approx([rate(counts) for counts in slow.values()])
