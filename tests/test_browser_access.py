"""The page in a real browser: keyboard, phone, colours and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browsing import (
    PHONE,
    READOUT,
    REPORT_TITLE,
    TRANSLATION,
    base_url,
    browser,
    expect_text,
    open_page,
    problems,
    serve,
    translate_url,
    write_run,
)
from dragoman.serve import RequestLimits
from dragoman.serve.access import AccessControl
from dragoman.serve.api_keys import ApiKeys, create_key
from dragoman.serve.registry import LanguagePair, ModelEntry, ModelRegistry
from dragoman.serve.service import Service
from word_for_word import WordForWord

__all__ = ["base_url", "browser", "open_page", "problems"]  # fixtures

# -- keyboard, phone, colours ------------------------------------------------------------------------------------------


def focused_name(page: Any) -> str:
    names = page.evaluate("(({ name, innerText, id }) => [name, innerText, id])(document.activeElement)")
    return str(next(filter(None, names)))


def test_keyboard_navigation(open_page: Any) -> None:
    page = open_page()
    page.wait_for_selector("#translate-text")
    for expected in ("Translate", "model", "beam", "n", "translate-text"):
        page.keyboard.press("Tab")
        assert expected in focused_name(page)
    page.keyboard.type("Der Hund schläft.")
    expect_text(page, TRANSLATION, "The dog sleeps.")
    page.keyboard.press("Tab")  # the best translations
    page.keyboard.press("Tab")  # the target tokens
    page.keyboard.press("ArrowRight")
    assert focused_name(page) == "dog"
    page.keyboard.press("Enter")
    page.wait_for_selector("#translate .bars button:focus")
    page.keyboard.press("Escape")
    assert focused_name(page) == "dog", "the focus returns"
    page.keyboard.press("Tab")  # the heat map, at the row of that token
    page.keyboard.press("ArrowRight")
    expect_text(page, READOUT, "For “dog”, “der” gets")
    page.locator("#tab-translate").focus()
    page.keyboard.press("ArrowRight")
    assert focused_name(page) == "Search" and page.is_visible("#search-text") and not page.is_visible("#translate-text")
    page.keyboard.press("End")
    page.frame_locator("iframe.report").get_by_role("heading", name=REPORT_TITLE).wait_for()
    assert focused_name(page) == "Training and reports"


VIEWS = {
    "translate": (translate_url("Der Hund schläft. " * 6), ".heatmap"),
    "search": (f"#search?beam=5&text={quote('Der Hund schläft.')}", "svg.tree"),
    "models": (f"#models?text={quote('the dog sings . ' * 8)}", ".bars"),
    "ladder": ("#ladder", "iframe.report"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_no_horizontal_scrolling_on_a_phone(open_page: Any, view: str) -> None:
    fragment, content = VIEWS[view]
    page = open_page(fragment, viewport=PHONE, has_touch=True, is_mobile=True)
    page.wait_for_selector(content)
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths == [360, 360]
    tabs = page.locator("[role=tab]")
    assert max(tabs.evaluate_all("tabs => tabs.map(tab => tab.getBoundingClientRect().right)")) <= 360


def test_light_and_dark_colours(open_page: Any) -> None:
    colors = {}
    for scheme in ("light", "dark"):
        page = open_page("#ladder", color_scheme=scheme)
        page.frame_locator("iframe.report").get_by_role("heading", name=REPORT_TITLE).wait_for()
        script = "body => [getComputedStyle(body).backgroundColor, getComputedStyle(body).color].join()"
        colors[scheme] = page.locator("body").evaluate(script)
        heading = page.frame_locator("iframe.report").locator("h1")
        text_color = heading.evaluate("heading => getComputedStyle(heading).color")
        page.wait_for_function("colour => getComputedStyle(document.body).color === colour", arg=text_color)
    assert colors["light"] != colors["dark"]


def contrast(first: str, second: str) -> float:
    """Contrast of two colours such as `#23607f`, as WCAG 2 defines it."""
    luminances = []
    for colour in (first, second):
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        luminances.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(luminances) + 0.05) / (min(luminances) + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(open_page: Any, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    script = "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
    paper, raised, *texts = (
        page.evaluate(script, f"--{name}") for name in ("paper", "raised", "ink", "soft", "accent", "problem")
    )
    assert min(contrast(text, ground) for text in texts for ground in (paper, raised)) >= 4.5
    assert contrast(page.evaluate(script, "--on-accent"), texts[2]) >= 4.5


@pytest.mark.parametrize("view", VIEWS)
def test_all_fields_have_labels(open_page: Any, view: str) -> None:
    fragment, content = VIEWS[view]
    page = open_page(fragment)
    page.wait_for_selector(content)
    is_named = "field => field.labels?.length || field.ariaLabel"
    unnamed = f"fields => fields.filter(field => !({is_named})(field)).map(field => field.outerHTML)"
    assert page.locator("input, select, textarea").evaluate_all(unnamed) == []


# -- errors ------------------------------------------------------------------------------------------------------------


def test_errors_of_missing_and_damaged_models_are_shown(open_page: Any, problems: list[str]) -> None:
    page = open_page(translate_url("Der Hund schläft.", model="nobody"))
    expect_text(page, "#translate .notice.problem", "there is no model 'nobody'; available: de-en")
    page = open_page(translate_url("Der Hund schläft.", model="missing"))
    expect_text(page, "#translate .notice.problem", "missing cannot be loaded: missing: no such directory")
    page = open_page("#models?use=broken&use=run/rungs/wb-1&text=the+dog")
    expect_text(page, "#models [data-part=surprisals]", "broken cannot be loaded")
    expect_text(page, "#models [data-part=surprisals]", "bits in total")
    page = open_page("#ladder")
    expect_text(page, "#ladder table >> nth=0", "no such directory")
    expected = "the server responded with a status of 404"
    assert problems and all(expected in problem for problem in problems), "the browser reports error responses"
    problems.clear()


def test_stopped_service_is_reported_with_a_retry_button(browser: Any) -> None:
    entry = ModelEntry("de-en", (Path("nowhere"),), "translator", LanguagePair("de", "en"), model=WordForWord())
    with serve(Service(ModelRegistry([entry]), RequestLimits())) as url:
        context = browser.new_context()
        page = context.new_page()
        page.goto(url)
        page.fill("#translate-text", "Der Hund")
        expect_text(page, TRANSLATION, "The dog")
        page.get_by_role("tab", name="Language models").click()
        expect_text(page, "#models", "This service has no language model")
        page.get_by_role("tab", name="Translate").click()
    page.fill("#translate-text", "Der Vogel")
    expect_text(page, "#translate .notice.problem", "The service cannot be reached. Is it still running?")
    assert page.get_by_role("button", name="Try again").is_visible()
    context.close()


# -- API keys ----------------------------------------------------------------------------------------------------------


def test_page_asks_for_the_key(browser: Any, tmp_path: Path) -> None:
    """A wrong key is reported. The right one is kept when the page is loaded again, but not in another context."""
    key = create_key(tmp_path / "keys.txt", "alice")
    write_run(tmp_path / "run")
    loaded = ModelRegistry.from_arguments([f"run={tmp_path / 'run'}"])
    entry = ModelEntry("de-en", (Path("nowhere"),), "translator", LanguagePair("de", "en"), model=WordForWord())
    registry, limits = ModelRegistry([entry, *loaded], [loaded.runs["run"]]), RequestLimits()
    access = AccessControl(limits, ApiKeys(tmp_path / "keys.txt"))
    with serve(Service(registry, limits, access=access)) as url:
        context = browser.new_context()
        page = context.new_page()
        page.goto(url)
        expect_text(page, "#notice", "Please contact the server operator to get an API key")
        for text, message in (("wrong", "Invalid API key"), (f" {key} ", "")):
            page.get_by_label("API key").fill(text)
            page.get_by_role("button", name="Use this key").click()
            expect_text(page, "#notice", message)
        page.fill("#translate-text", "Der Hund")
        expect_text(page, TRANSLATION, "The dog")
        assert not page.is_visible("#key") and key not in page.url
        page.reload()
        expect_text(page, TRANSLATION, "The dog")
        page.get_by_role("tab", name="Training and reports").click()
        page.frame_locator("iframe.report").get_by_role("heading", name=REPORT_TITLE).wait_for()
        context.close()
        context = browser.new_context()
        page = context.new_page()
        page.goto(url)
        expect_text(page, "#notice", "Please contact the server operator")
        context.close()
