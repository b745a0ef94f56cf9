"""The page in a real browser: everything that it shows can be seen, pointed at and reached with the keyboard.

These tests need Debian's Chromium (apt-get install chromium) and Playwright's Python package; without them they are
skipped. The translator is a dictionary, so that what it should say is known.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import uvicorn

from dragoman import Corpus, NgramModel
from dragoman.report.page import Page as Report
from dragoman.report.page import PageFigure, PageSection, PageTable, Paragraphs, write_html
from dragoman.serve import RequestLimits
from dragoman.serve.app import create_app
from dragoman.serve.registry import LanguagePair, ModelEntry, ModelRegistry
from dragoman.serve.service import Service
from word_for_word import WordForWord

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
if CHROMIUM is None:
    pytest.skip("Chromium is not here: apt-get install chromium", allow_module_level=True)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="the package playwright is not here: make test installs it"
)

ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
ENGLISH = ["the dog sleeps .", "the bird sings .", "the dog sings .", "the bird sleeps ."]
HOSTILE = '<img src=x onerror="window.hit = 1"><script>window.hit = 1</script>'
PATIENCE = 60_000  # milliseconds; nothing here is timed
PHONE = {"width": 360, "height": 740}
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30"><rect width="90" height="30"/></svg>'


# -- one service and one browser ---------------------------------------------------------------------------------------


def run_of_a_night(path: Path) -> Path:
    """Three language models, what the training of one noted down, and a report."""
    corpus = Corpus.from_sentences(ENGLISH)
    for order in (1, 2, 3):
        NgramModel.train(corpus, order=order, smoothing="witten-bell").save(path / "rungs" / f"wb-{order}")
    notes = [{"update": n, "epoch": 1, "train_loss": 5 / n, "dev_loss": 6 / n} for n in range(1, 6)]
    (path / "rungs" / "wb-2" / "metrics.jsonl").write_text("".join(f"{json.dumps(note)}\n" for note in notes))
    right = PageTable(["% right", "agreement", "topic"], [["wb-1", "50.0", "61.5"], ["wb-2", "75.5", "62.5"]])
    lengths = PageTable(["BLEU by words", "up to 5", "6 to 10"], [["word for word", "41.5", "12.5"]])
    sections = [
        PageSection("Language models", [right, Paragraphs(HOSTILE), PageFigure(SVG, "a ladder")]),
        PageSection("BLEU by sentence length", [lengths]),
    ]
    write_html(Report("A night's ladder", sections), path / "report.html")
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a service with a translator, three language models and one that is damaged."""
    there = tmp_path_factory.mktemp("served")
    shelf = ModelRegistry.from_arguments([f"night={run_of_a_night(there / 'night')}"])
    shutil.copytree(there / "night" / "rungs" / "wb-1", there / "broken")
    (there / "broken" / "model.safetensors").write_bytes(b"?")
    translator = ModelEntry("de-en", (there / "de-en",), "translator", LanguagePair("de", "en"), model=WordForWord())
    missing = ModelEntry("lost", (there / "lost",), "translator", None)
    shelf = ModelRegistry(
        [translator, missing, *shelf, *ModelRegistry.from_arguments([str(there / "broken")])], list(shelf.runs.values())
    )
    with serving(Service(shelf, RequestLimits())) as address:
        yield address


class serving:  # noqa: N801  (used as a word)
    """A service at a free port, until it is not needed any more."""

    def __init__(self, service: Service):
        self.server = uvicorn.Server(
            uvicorn.Config(create_app(service), log_level="error", timeout_graceful_shutdown=1)
        )
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)

    def __enter__(self) -> str:
        self.thread.start()
        while not self.server.started:
            assert self.thread.is_alive(), "the service did not start"
            time.sleep(0.01)
        return f"http://127.0.0.1:{self.socket.getsockname()[1]}/"

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def trouble() -> list[str]:
    """What a page complains of, and what it asks for elsewhere."""
    return []


@pytest.fixture
def tab(browser: Any, home: str, trouble: list[str]) -> Iterator[Callable[..., Any]]:
    """Opens the page at an address. Whatever it does, it may ask nobody else, and complain of nothing."""
    contexts = []

    def opened(where: str = "", **how: Any) -> Any:
        contexts.append(browser.new_context(**how))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: said.type in ("error", "warning") and trouble.append(said.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith(home) or trouble.append(asked.url))
        page.goto(home + where)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble == []


def see(page: Any, selector: str, text: str) -> None:
    playwright.expect(page.locator(selector)).to_contain_text(text, timeout=PATIENCE)


def translating(text: str, **more: object) -> str:
    return "#translate?" + "&".join(f"{name}={quote(str(value))}" for name, value in {"text": text, **more}.items())


WHOLE, WRITTEN = "#translate [data-part=whole]", "#translate button.unit"


# -- translate ---------------------------------------------------------------------------------------------------------


def test_what_is_typed_is_translated_with_others_beside_it(tab: Any) -> None:
    page = tab()
    page.fill("#translate-text", "Der Hund schläft.")
    see(page, WHOLE, "The dog sleeps.")
    assert page.locator("#translate .rank").count() == 5
    page.locator("#translate .rank input").nth(1).check()
    other = page.locator("#translate .rank .text").nth(1).inner_text().rstrip(".").lower().split()
    assert page.locator(WRITTEN).all_inner_texts()[: len(other)] == other
    page.fill("#translate-text", "Der Hund schläft. Der Vogel singt.")
    see(page, WHOLE, "The dog sleeps. The bird sings.")
    page.get_by_role("button", name="The bird sings.").click()
    see(page, "#translate [data-part=which]", "Sentence 2 of 2")
    assert page.locator(WRITTEN).all_inner_texts() == ["the", "bird", "sings", ".", "</s>"]


def shaded(page: Any, selector: str) -> list[str]:
    return page.locator(f"{selector}.shaded").all_inner_texts()


def test_pointing_at_a_cell_or_a_word_shows_both_ways_what_was_looked_at(tab: Any) -> None:
    page = tab(translating("Der Hund schläft."))
    page.hover("g.cell[data-row='1'][data-column='2']")
    assert shaded(page, "#translate span.unit") == ["schläft"] and shaded(page, WRITTEN) == ["dog"]
    assert page.locator(".heatmap .head.marked text").text_content() == "schläft"
    assert page.locator(".heatmap .side.marked text").text_content() == "dog"
    see(page, "#translate .readout >> nth=0", "For “dog”, “schläft” gets")
    page.locator(WRITTEN).nth(2).hover()  # a word that was written: all that was read, by how much
    assert len(shaded(page, "#translate span.unit")) == 5
    see(page, "#translate .readout >> nth=0", "“sleeps” looks most at “schläft”")
    page.locator("#translate span.unit").nth(1).hover()  # and the other way round
    assert shaded(page, "#translate span.unit") == ["hund"] and len(shaded(page, WRITTEN)) == 5
    see(page, "#translate .readout >> nth=0", "“hund” is looked at most for “dog”")


def test_unknown_words_are_marked_with_the_rule_that_replaced_them(tab: Any) -> None:
    page = tab(translating("Der Papagei singt."))
    see(page, WHOLE, "The Papagei sings.")
    assert page.locator(f"{WHOLE} .replaced").all_inner_texts() == ["Papagei"]
    assert page.locator("#translate button.replaced").all_inner_texts() == ["papagei"]
    see(page, "#translate [data-part=replaced]", "“papagei” was copied from “papagei”")


def test_another_word_can_be_picked_and_the_translator_goes_on_from_there(tab: Any) -> None:
    page = tab(translating("Der Hund schläft."))
    page.locator(WRITTEN).nth(1).click()
    see(page, "#translate [data-part=alternatives] h3", "Instead of “dog”, after “the”")
    page.locator("#translate .bars button", has_text="bird").click()
    see(page, WHOLE, "The bird sleeps.")
    see(page, "#translate [data-part=chosen]", "You made it begin with the bird.")
    assert page.locator("#translate .rank .text").count() > 1
    page.reload()  # the address has it
    see(page, WHOLE, "The bird sleeps.")
    page.get_by_role("button", name="Undo").click()
    see(page, WHOLE, "The dog sleeps.")


def test_hostile_text_stays_text(tab: Any) -> None:
    page = tab(translating(HOSTILE))
    see(page, "#translate .units >> nth=0", "onerror")
    page.get_by_role("tab", name="Search").click()
    page.fill("#search-text", HOSTILE)
    page.wait_for_selector("svg.tree")
    page.get_by_role("tab", name="Language models").click()
    page.fill("#models-text", HOSTILE)
    see(page, "#models .surprisal >> nth=0", "onerror")
    page.get_by_role("tab", name="Ladder").click()
    page.frame_locator("iframe.report").get_by_text("onerror").wait_for()
    assert page.locator("img, body script").count() == 0
    assert page.evaluate("window.hit") is None


# -- search ------------------------------------------------------------------------------------------------------------


def test_the_beam_is_stepped_through_and_changed_live(tab: Any) -> None:
    page = tab(f"#search?beam=3&text={quote('Der Hund schläft.')}")
    counter = "#search [data-part=counter]"
    see(page, counter, "Step 6 of 6")
    page.get_by_role("button", name="First").click()
    see(page, counter, "Step 0 of 6")
    page.get_by_role("button", name="Next").click()
    see(page, counter, "Step 1 of 6: 3 kept, 5 pruned")
    assert page.locator("svg.tree .node.pruned.now").count() == 5 and page.locator("svg.tree .node.now").count() == 8
    assert page.locator("svg.tree .node.later >> visible=true").count() == 0, "what comes later is not shown yet"
    page.keyboard.press("ArrowRight")
    see(page, counter, "Step 2 of 6")
    page.locator("#search tbody tr").nth(0).hover()
    assert page.locator("svg.tree .node.marked .word").all_text_contents() == ["·", "the", "dog"]
    page.fill("#search [name=beam]", "2")
    see(page, "#search [data-part=compared]", "beam of 2")
    page.get_by_role("button", name="First").click()
    page.get_by_role("button", name="Next").click()
    see(page, counter, ": 2 kept, 5 pruned")
    page.fill("#search [name=pruned]", "0")
    playwright.expect(page.locator(counter)).not_to_contain_text("pruned", timeout=PATIENCE)
    assert page.locator("svg.tree .node.pruned").count() == 0
    page.select_option("#search [name=handling]", "penalty")
    page.fill("#search [name=penalty]", "9")
    see(page, "#search [data-part=compared]", "greedy")
    assert page.locator("svg.tree .node.greedy").count() > 1
    page.wait_for_url(re.compile("length=penalty%3A9"))


# -- language models ---------------------------------------------------------------------------------------------------


def test_language_models_side_by_side(tab: Any) -> None:
    page = tab("#models?use=night/rungs/wb-1&use=night/rungs/wb-2")
    page.fill("#models-text", "the dog sings .")
    see(page, "#models [data-part=surprisals]", "sings")
    blocks = page.locator("#models [data-part=surprisals] section")
    assert blocks.locator("h3").all_inner_texts() == ["night/rungs/wb-1", "night/rungs/wb-2"]
    costs = [[float(cost) for cost in blocks.nth(at).locator("small").all_inner_texts()] for at in (0, 1)]
    assert len(costs[0]) == len(costs[1]) == 5 and sum(costs[1]) < sum(costs[0]), "the bigrams know more"
    shares = (
        blocks.nth(0).locator(".token").evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
    )
    assert len(set(shares)) > 1, "coloured by what they cost"
    page.locator("#models .token", has_text="dog").nth(0).click()  # the cursor goes there
    see(page, "#models [data-part=where]", "After “the”, where the cursor is")
    bars = page.locator("#models [data-part=next] section")
    playwright.expect(bars).to_have_count(2)
    for at in (0, 1):
        assert "%" in bars.nth(at).locator("button").nth(0).inner_text()
    bars.nth(1).locator("button", has_text="bird").click()
    playwright.expect(page.locator("#models-text")).to_have_value("the bird dog sings .")


def test_samples_are_drawn(tab: Any) -> None:
    page = tab("#models")
    page.fill("#models [name=n]", "3")
    page.get_by_role("button", name="Draw", exact=True).click()
    playwright.expect(page.locator("#models .samples li")).to_have_count(3, timeout=PATIENCE)
    page.get_by_role("button", name="Use as text").nth(0).click()
    assert page.input_value("#models-text") in page.locator("#models .samples li span").nth(0).inner_text()


# -- ladder ------------------------------------------------------------------------------------------------------------


def test_the_report_of_a_run_and_its_learning_curves(tab: Any, home: str) -> None:
    page = tab("#ladder")
    report = page.frame_locator("iframe.report")
    report.get_by_role("heading", name="A night's ladder").wait_for()
    assert report.locator("table").nth(0).inner_text().split("\n")[0].split("\t") == ["% right", "agreement", "topic"]
    assert "41.5" in report.locator("table").nth(1).inner_text() and report.locator("svg").count() == 1
    frame = page.locator("iframe.report")
    inside = frame.evaluate("one => one.contentDocument.documentElement.scrollHeight")
    page.wait_for_function("least => document.querySelector('iframe.report').clientHeight >= least", arg=inside)
    see(page, "#ladder .curves figcaption", "5 updates, epoch 1: training text 1.000, dev text 1.200")
    assert page.locator("#ladder .curves polyline").count() == 2
    see(page, "#ladder", "night/rungs/wb-2")


# -- anybody, anywhere -------------------------------------------------------------------------------------------------


def focused(page: Any) -> str:
    own = page.evaluate("(({ name, innerText, id }) => [name, innerText, id])(document.activeElement)")
    return str(next(filter(None, own)))


def test_with_the_keyboard_alone(tab: Any) -> None:
    page = tab()
    page.wait_for_selector("#translate-text")
    for expected in ("Translate", "model", "beam", "n", "translate-text"):
        page.keyboard.press("Tab")
        assert expected in focused(page)
    page.keyboard.type("Der Hund schläft.")
    see(page, WHOLE, "The dog sleeps.")
    page.keyboard.press("Tab")  # the best translations
    page.keyboard.press("Tab")  # the words that were written
    page.keyboard.press("ArrowRight")
    assert focused(page) == "dog"
    page.keyboard.press("Enter")
    page.wait_for_selector("#translate .bars button:focus")
    page.keyboard.press("Escape")
    assert focused(page) == "dog", "the focus comes back"
    page.keyboard.press("Tab")  # the heat map, at the row of that word
    page.keyboard.press("ArrowRight")
    see(page, "#translate .readout >> nth=0", "For “dog”, “der” gets")
    page.locator("#tab-translate").focus()
    page.keyboard.press("ArrowRight")
    assert focused(page) == "Search" and page.is_visible("#search-text") and not page.is_visible("#translate-text")
    page.keyboard.press("End")
    page.frame_locator("iframe.report").get_by_role("heading", name="A night's ladder").wait_for()
    assert focused(page) == "Ladder"


VIEWS = {
    "translate": (translating("Der Hund schläft. " * 6), ".heatmap"),
    "search": (f"#search?beam=5&text={quote('Der Hund schläft.')}", "svg.tree"),
    "models": (f"#models?text={quote('the dog sings . ' * 8)}", ".bars"),
    "ladder": ("#ladder", "iframe.report"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_phone_need_not_scroll_sideways(tab: Any, view: str) -> None:
    where, shown = VIEWS[view]
    page = tab(where, viewport=PHONE, has_touch=True, is_mobile=True)
    page.wait_for_selector(shown)
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide == [360, 360]
    buttons = page.locator("[role=tab]").evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
    assert max(buttons) <= 360


def test_light_and_dark(tab: Any) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = tab("#ladder", color_scheme=scheme)
        page.frame_locator("iframe.report").get_by_role("heading", name="A night's ladder").wait_for()
        ask = "one => { const own = getComputedStyle(one); return [own.backgroundColor, own.color].join() }"
        colours[scheme] = page.locator("body").evaluate(ask)
        ink = page.frame_locator("iframe.report").locator("h1").evaluate("one => getComputedStyle(one).color")
        page.wait_for_function("one => getComputedStyle(document.body).color === one", arg=ink)
    assert colours["light"] != colours["dark"]


# -- what goes wrong is told -------------------------------------------------------------------------------------------


def test_a_model_that_is_not_here_or_damaged_is_told(tab: Any, trouble: list[str]) -> None:
    page = tab(translating("Der Hund schläft.", model="nobody"))
    see(page, "#translate .notice.problem", "there is no model 'nobody'; there are de-en")
    page = tab(translating("Der Hund schläft.", model="lost"))
    see(page, "#translate .notice.problem", "lost cannot be loaded: lost: no such directory")
    page = tab("#models?use=broken&use=night/rungs/wb-1&text=the+dog")
    see(page, "#models [data-part=surprisals]", "broken cannot be loaded")
    see(page, "#models [data-part=surprisals]", "bits in all")
    page = tab("#ladder")
    see(page, "#ladder table >> nth=0", "no such directory")
    expected = "the server responded with a status of 404"
    assert trouble and all(expected in one for one in trouble), "the browser itself notes refused requests down"
    trouble.clear()


def test_a_service_that_is_gone_is_told_and_can_be_tried_again(browser: Any) -> None:
    entry = ModelEntry("de-en", (Path("nowhere"),), "translator", LanguagePair("de", "en"), model=WordForWord())
    with serving(Service(ModelRegistry([entry]), RequestLimits())) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        page.fill("#translate-text", "Der Hund")
        see(page, WHOLE, "The dog")
        page.get_by_role("tab", name="Language models").click()
        see(page, "#models", "This service has no language model")
        page.get_by_role("tab", name="Translate").click()
    page.fill("#translate-text", "Der Vogel")
    see(page, "#translate .notice.problem", "The service cannot be reached. Is it still running?")
    assert page.get_by_role("button", name="Try again").is_visible()
    context.close()
