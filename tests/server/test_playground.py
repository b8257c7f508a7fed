"""The page at ``/``, in a real browser, against real services with scripted answers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fakes.scribe import Scribe
from lookup_server.routes.playground import _FOLDER
from lookup_server.settings import Settings

from lookup_spec.engine.session import Session
from lookup_spec.model.embedded import EMBEDDED, is_installed
from lookup_spec.model.load import LoadedModel
from lookup_spec.params import SamplingParams
from lookup_spec.propose.prompt import Prompt
from tests.server.browser import browser
from tests.server.edit_cases import ADD, CASES, ROWS
from tests.server.edit_client import events_of, post
from tests.server.test_serve import command
from tests.server.tiny_service import Running, running, until

SMALL = EMBEDDED["qwen2.5-coder-0.5b-instruct"]
SEVERAL = CASES["several-hunks"]
WHILE_THE_PAGE_ACTS = 0.2  # seconds of a step, of which an answer of a few hundred tokens takes as many


class SlowScribe(Scribe):
    """Takes some time for a step, so that there is time to press a key.

    Attributes:
        pace: seconds of a step.
    """

    pace = 0.01

    def submit(self, prompt: Prompt, params: SamplingParams, **options: Any) -> Session:
        # What the page computes ahead is the beginning of an edit's prompt, and no prompt to answer.
        warming = params.max_tokens == 1
        return (
            super(Scribe, self).submit(prompt, params, **options)
            if warming
            else super().submit(prompt, params, **options)
        )

    def step(self) -> bool:
        time.sleep(self.pace)
        return super().step()


@pytest.fixture(scope="module")
def scribe(loaded: LoadedModel) -> Scribe:
    return SlowScribe(loaded, SEVERAL.answer)


@pytest.fixture(scope="module")
def quick(scribe: Scribe) -> Iterator[Running]:
    with running(scribe, Settings(served_names=("tiny",))) as one:
        yield one


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as one:
        yield one


class Page:
    """The page, and everything that went wrong or went elsewhere in it."""

    def __init__(self, chromium: Any, url: str, **options: Any) -> None:
        self.context = chromium.new_context(viewport={"width": 1440, "height": 900}, **options)
        self.context.set_default_timeout(120_000)
        self.tab = self.context.new_page()
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda message: self.problems.append(message.text))
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.goto(url)
        self.until(lambda: self.text("#model") != "connecting…")

    def fill(self, text: str, instruction: str = "Edit it.", way: str = "on", name: str = "rows.py") -> None:
        for place, value in (("#name", name), ("#source", text), ("#instruction", instruction)):
            self.tab.fill(place, value)
        self.tab.check(f"input[value={way}]")

    def run(self) -> None:
        self.tab.keyboard.press("Control+Enter")
        self.wait()

    def wait(self) -> None:
        self.tab.wait_for_selector("#run:enabled")

    def until(self, true: Callable[[], bool]) -> None:
        """Waits for something that must become true; the browser's own way needs what the page's policy forbids."""
        for _ in range(6000):
            if true():
                return
            self.tab.wait_for_timeout(20)
        raise AssertionError("waited in vain")

    def result(self, lane: str = "on") -> str:
        """The changed file as it is shown."""
        lines = self.tab.locator(f"#lane-{lane} .line:not([data-kind=removed]):not([data-kind=outside]) code")
        return "".join(f"{line}\n" for line in lines.all_text_contents())

    def text(self, place: str) -> str:
        return str(self.tab.inner_text(place))


@pytest.fixture
def page(chromium: Any, quick: Running, scribe: Scribe) -> Iterator[Page]:
    scribe.say(SEVERAL.answer)
    one = Page(chromium, quick.url)
    yield one
    one.context.close()
    assert one.problems == []
    assert {url for url in one.asked if not url.startswith(quick.url)} == set()


def test_an_edit_is_run_by_keyboard_alone_and_shows_what_the_api_says(page: Page, quick: Running) -> None:
    """From the address bar to the copied result, without a pointer."""
    keyboard = page.tab.keyboard
    page.tab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")

    def tab_to(wanted: str) -> None:
        for _ in range(40):
            keyboard.press("Tab")
            if page.tab.evaluate("document.activeElement.id") == wanted:
                return
        raise AssertionError(f"the focus never came to {wanted}")

    for place, text in (("name", "rows.py"), ("source", ROWS), ("instruction", "Edit it.")):
        tab_to(place)
        keyboard.press("Control+a")
        keyboard.insert_text(text)
    tab_to("run")
    keyboard.press("Enter")
    page.wait()
    tab_to("copy")
    keyboard.press("Enter")
    reply = post(quick.url, {"document": {"uri": "file:///rows.py", "text": ROWS}, "instruction": "Edit it."}).json()
    assert page.tab.evaluate("window.copied") == reply["text"] == page.result() == SEVERAL.final
    assert "copied" in page.text("#status")


def test_every_token_has_the_colour_of_its_source_and_bars_mark_the_passes(page: Page) -> None:
    page.fill(ROWS)
    # What the page itself was sent: the next edit's guesses profit from this one's, and may have other sources.
    with page.tab.expect_response(lambda response: response.url.endswith("/v1/edits")) as sent:
        page.run()
    events = [event for event in events_of(sent.value.text()) if event["type"] == "trace" and event["tokens"]]
    shown = page.tab.evaluate(
        """() => Array.from(document.querySelectorAll("#lane-on .token"), (token) => ({
            source: token.title.split(" · ")[0], family: token.dataset.family, step: token.dataset.step,
            look: getComputedStyle(token).backgroundColor + getComputedStyle(token).borderBottomColor}))"""
    )
    sources = {token["source"] or "the model's own" for event in events for token in event["tokens"]}
    assert {token["source"] for token in shown} == sources
    assert [token["step"] for token in shown if token["step"]] == [str(event["step"]) for event in events]
    looks = {(token["family"], token["look"]) for token in shown}
    assert len(looks) == len({family for family, _ in looks}) == len({look for _, look in looks}) > 1
    assert "other" not in {family for family, _ in looks}
    legend = page.tab.locator("#legend button:visible .count").all_text_contents()
    assert sum(map(int, legend)) == sum(len(event["tokens"]) for event in events)


def test_a_diff_shows_what_is_added_removed_and_kept(page: Page) -> None:
    page.fill(ROWS)
    page.run()
    kinds = page.tab.eval_on_selector_all("#lane-on .line", "(lines) => lines.map((line) => line.dataset.kind)")
    removed = page.tab.locator("#lane-on [data-kind=removed] code").all_text_contents()
    added = page.tab.locator("#lane-on [data-kind=added] code").all_text_contents()
    assert removed == ["row_2 = compute_row(2)", "row_5 = compute_row(5)"]
    assert added == ["row_2 = None", "total = sum_of_rows()"]
    assert kinds == ["kept", "removed", "added", "kept", "kept", "removed", "kept", "kept", "kept", "added", "outside"]
    page.tab.click("#keep")
    assert page.tab.input_value("#source") == SEVERAL.final


@pytest.mark.parametrize("way", ["after", "together"])
def test_both_ways_stand_side_by_side_and_are_equal(page: Page, way: str) -> None:
    page.fill(ROWS, way=way)
    page.run()
    assert page.result("on") == page.result("off") == SEVERAL.final
    assert "not one character is different" in page.text("#verdict-title")
    assert ("shared the machine" in page.text("#verdict-about")) == (way == "together")
    passes = [int(page.text(f"#lane-{lane} [data-number=passes]")) for lane in ("on", "off")]
    assert passes[0] * 3 < passes[1]
    assert f"{passes[0]} forward passes instead of {passes[1]}" in page.text("#verdict-about")
    assert page.tab.locator("#chart .right").count() == passes[0]
    assert re.fullmatch(rf"The latest {passes[0]} passes: \d+ guesses checked, \d+ % .*", page.text("#chart-words"))


@pytest.mark.parametrize("name", ["crlf", "byte-order-mark", "mixed-line-ends"])
def test_a_file_from_disk_keeps_its_line_ends(page: Page, scribe: Scribe, tmp_path: Path, name: str) -> None:
    """A text field alone would make them all the same."""
    case = CASES[name]
    scribe.say(case.answer)
    path = tmp_path / f"{name}.py"
    path.write_bytes(case.base.encode())
    page.tab.set_input_files("#file", path)
    page.until(lambda: "is read" in page.text("#status"))
    page.tab.fill("#instruction", "Edit it.")
    page.tab.check("input[value=on]")
    page.tab.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.run()
    page.tab.click("#copy")
    assert page.tab.evaluate("window.copied") == case.final


def test_stop_ends_the_edit_within_a_step(
    page: Page, quick: Running, scribe: Scribe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scribe, "pace", WHILE_THE_PAGE_ACTS)
    scribe.say(ROWS * 4 + "```")
    page.fill(ROWS * 4, way="off")
    page.tab.keyboard.press("Control+Enter")
    page.until(lambda: page.tab.locator("#lane-off .token").count() > 5)
    page.tab.keyboard.press("Escape")
    page.wait()
    assert page.text("#status") == "Stopped."
    assert page.text("#lane-off .state") == "stopped"
    until(lambda: quick.runner.active == 0)


def test_what_goes_wrong_is_said_in_words(page: Page, scribe: Scribe) -> None:
    """An answer that is no edit, and a bad field, as the service puts it; the next edit works."""
    scribe.say("I am sorry.")
    page.fill(ADD)
    page.run()
    assert "yours was left as it was" in page.text("#problem")
    page.fill(ADD, instruction=" ")
    page.run()
    assert "instruction" in page.text("#problem")
    assert page.problems == ["Failed to load resource: the server responded with a status of 400 (Bad Request)"]
    page.problems.clear()
    scribe.say(SEVERAL.answer)
    page.fill(ROWS)
    page.run()
    assert page.tab.is_hidden("#problem")
    assert page.result() == SEVERAL.final


def test_a_busy_service_says_so(chromium: Any, loaded: LoadedModel) -> None:
    scribe = SlowScribe(loaded, ROWS * 4 + "```", max_sessions=1)
    scribe.pace = WHILE_THE_PAGE_ACTS
    with running(scribe, Settings(max_sessions=1, max_waiting=0)) as service:
        body = {"document": {"text": ROWS * 4}, "instruction": "x", "stream": True, "options": {"speculation": False}}
        with httpx.stream("POST", f"{service.url}/v1/edits", json=body, timeout=120, trust_env=False):
            page = Page(chromium, service.url)
            page.fill(ROWS)
            page.run()
            assert "busy" in page.text("#problem")
            assert re.search(r"wait \d+ s", page.text("#problem"))
            page.context.close()


def test_a_service_with_keys_asks_for_one(chromium: Any, loaded: LoadedModel) -> None:
    with running(SlowScribe(loaded, SEVERAL.answer), Settings(api_keys=("K1",))) as service:
        page = Page(chromium, service.url)
        assert "API key" in page.text("#problem")
        assert page.tab.evaluate("document.activeElement.id") == "key"
        page.tab.keyboard.insert_text("K1")
        page.tab.keyboard.press("Tab")
        page.until(lambda: page.text("#model").startswith("tiny"))
        page.fill(ROWS)
        page.run()
        assert page.result() == SEVERAL.final
        page.context.close()


def test_a_service_that_went_away_says_so(chromium: Any, loaded: LoadedModel) -> None:
    scribe = SlowScribe(loaded, ROWS * 4 + "```")
    scribe.pace = WHILE_THE_PAGE_ACTS
    with running(scribe, Settings(grace_seconds=0.2)) as service:
        page = Page(chromium, service.url)
        page.fill(ROWS * 4, way="off")
        page.tab.keyboard.press("Control+Enter")
        page.until(lambda: page.tab.locator("#lane-off .token").count() > 5)
    page.wait()
    assert "shutting down" in page.text("#problem")
    page.run()
    assert "cannot be reached" in page.text("#problem")
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_before_and_after_an_edit(page: Page, scheme: str) -> None:
    """By axe's rules, contrast among them; at a phone's width nothing sticks out."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = [axe.run(page.tab)]
    page.fill(ROWS, way="after")
    page.run()
    found.append(axe.run(page.tab))
    page.tab.click("#legend button >> nth=0")
    page.tab.select_option("#theme", "light" if scheme == "dark" else "dark")
    found.append(axe.run(page.tab))
    assert [one.generate_report() for one in found if one.violations_count] == []
    page.tab.set_viewport_size({"width": 390, "height": 800})
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_keeps_the_chosen_colours(page: Page) -> None:
    def background() -> str:
        return str(page.tab.evaluate("getComputedStyle(document.body).backgroundColor"))

    page.tab.emulate_media(color_scheme="light")
    light = background()
    page.tab.select_option("#theme", "dark")
    assert background() != light
    page.tab.reload()
    assert background() != light
    page.tab.select_option("#theme", "auto")
    assert background() == light


def test_what_the_page_tells_a_screen_reader(page: Page) -> None:
    """Every field has a name, the state is announced, and what colour shows of lines stands in words, too."""
    page.fill(ROWS, way="after")
    page.run()
    unnamed = page.tab.evaluate(
        """() => Array.from(document.querySelectorAll("input:not([type=file]), textarea, select, button"))
            .filter((one) => !one.labels?.length && !one.ariaLabel && !one.textContent.trim()).map((one) => one.id)"""
    )
    assert unnamed == []
    assert page.tab.get_attribute("#status", "role") == "status"
    assert page.tab.get_attribute("#problem", "role") == "alert"
    assert page.text("#status").startswith("Done: 3 changes")
    spoken = page.tab.locator("#lane-on .line:not([data-kind=kept]) .spoken").all_text_contents()
    assert spoken == ["removed: ", "added: ", "removed: ", "added: ", "not part of the file: "]


def test_events_are_read_however_their_bytes_are_cut(page: Page) -> None:
    found = page.tab.evaluate(
        """async () => {
            const { eventsOf } = await import("/playground/sse.js");
            const values = [{ a: "é😀\\n" }, { b: [1, "data: x"] }];
            const [one, other] = values.map((value) => `data: ${JSON.stringify(value)}\\n\\n`);
            const text = ": hb\\n\\n" + one + ": hb\\n\\n" + other;
            const bytes = new TextEncoder().encode(text);
            const read = async (size) => {
                const body = new ReadableStream({ start(stream) {
                    for (let at = 0; at < bytes.length; at += size) stream.enqueue(bytes.slice(at, at + size));
                    stream.close();
                } });
                const found = [];
                for await (const event of eventsOf(body)) found.push(event);
                return JSON.stringify(found) === JSON.stringify(values);
            };
            return Promise.all([1, 2, 3, 5, 7, 1000].map(read));
        }"""
    )
    assert found == [True] * 6


def test_the_page_is_let_do_nothing_but_ask_its_service(quick: Running) -> None:
    """Its policy allows no inline code, and each of its files has its type; there is nothing else in the folder."""
    with httpx.Client(base_url=quick.url, timeout=120, trust_env=False) as client:
        policy = client.get("/").headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        types = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
        for path in _FOLDER.iterdir():
            reply = client.get(f"/playground/{path.name}")
            assert reply.content == path.read_bytes()
            assert reply.headers["content-type"].startswith(types[path.suffix])
            assert reply.headers["x-content-type-options"] == "nosniff"
        for name in ("nothing.js", "..%2fapp.py", "%2e%2e/app.py"):
            assert client.get(f"/playground/{name}").status_code == 404


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(SMALL), reason=f"the packages of {SMALL.name} are not installed")
def test_a_real_model_edits_a_sample_in_few_passes_and_equally(chromium: Any) -> None:
    """The first sample, as the page comes; in float32, where answers must be equal."""
    with command("--model", SMALL.name, "--port", "0", "--dtype", "float32") as (_, url):
        page = Page(chromium, url)
        page.run()
        assert "not one character is different" in page.text("#verdict-title")
        assert float(page.text("#lane-on [data-number=per-pass]")) > 10
        added = page.tab.locator("#lane-on [data-kind=added] code").all_text_contents()
        assert "def invoice(items, tax_rate):" in added
        page.context.close()
