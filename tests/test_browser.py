"""The page in a real browser: translation, search, language models and reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from browsing import (
    ARABIC,
    ENGLISH,
    HOSTILE,
    PHONE,
    READOUT,
    REPORT_TITLE,
    TARGET_TOKENS,
    TIMEOUT,
    TRANSLATION,
    base_url,
    browser,
    expect_text,
    open_page,
    playwright,
    problems,
    serve,
    translate_url,
    write_run,
)
from dragoman import Corpus, Mixture, NgramModel
from dragoman.serve import RequestLimits
from dragoman.serve.registry import ModelRegistry
from dragoman.serve.service import Service

__all__ = ["base_url", "browser", "open_page", "problems"]  # fixtures

# -- translate ---------------------------------------------------------------------------------------------------------


def test_typed_text_is_translated_with_an_n_best_list(open_page: Any) -> None:
    page = open_page()
    page.fill("#translate-text", "Der Hund schläft.")
    expect_text(page, TRANSLATION, "The dog sleeps.")
    assert page.locator("#translate .rank").count() == 5
    page.locator("#translate .rank input").nth(1).check()
    other = page.locator("#translate .rank .text").nth(1).inner_text().rstrip(".").lower().split()
    assert page.locator(TARGET_TOKENS).all_inner_texts()[: len(other)] == other
    page.fill("#translate-text", "Der Hund schläft. Der Vogel singt.")
    expect_text(page, TRANSLATION, "The dog sleeps. The bird sings.")
    page.get_by_role("button", name="The bird sings.").click()
    expect_text(page, "#translate [data-part=which]", "Sentence 2 of 2")
    assert page.locator(TARGET_TOKENS).all_inner_texts() == ["the", "bird", "sings", ".", "</s>"]


def shaded_texts(page: Any, selector: str) -> list[str]:
    return page.locator(f"{selector}.shaded").all_inner_texts()


def test_pointing_at_a_cell_or_a_word_shows_attention(open_page: Any) -> None:
    page = open_page(translate_url("Der Hund schläft."))
    page.hover("g.cell[data-row='1'][data-column='2']")
    assert shaded_texts(page, "#translate span.token") == ["schläft"] and shaded_texts(page, TARGET_TOKENS) == ["dog"]
    assert page.locator(".heatmap .head.marked text").text_content() == "schläft"
    assert page.locator(".heatmap .side.marked text").text_content() == "dog"
    expect_text(page, READOUT, "For “dog”, “schläft” gets")
    page.locator(TARGET_TOKENS).nth(2).hover()  # a target token: the weights of all source tokens
    assert len(shaded_texts(page, "#translate span.token")) == 5
    expect_text(page, READOUT, "“sleeps” attends most to “schläft”")
    page.locator("#translate span.token").nth(1).hover()  # a source token: its weights for all target tokens
    assert shaded_texts(page, "#translate span.token") == ["hund"] and len(shaded_texts(page, TARGET_TOKENS)) == 5
    expect_text(page, READOUT, "“hund” gets most attention for “dog”")


def labels(page: Any, kind: str) -> list[str]:
    return page.locator(f".heatmap .{kind} text").all_text_contents()


def test_words_and_their_characters(open_page: Any) -> None:
    page = open_page(translate_url("der hund .", model="letters"))
    page.wait_for_selector(".heatmap")
    assert labels(page, "head") == ["der", "hund", ".", "</s>"] and labels(page, "side") == ["DER", "HUND", ".", "</s>"]
    expect_text(page, "#translate [data-part=attention]", "The weights of the pieces of a source word are added up")
    page.locator(TARGET_TOKENS).nth(1).hover()
    expect_text(page, READOUT, "“HUND” attends most to “hund”")
    cells = page.locator(".heatmap .cell .heat")
    weights = cells.evaluate_all("cells => cells.map(cell => Number(cell.getAttribute('fill-opacity')))")
    assert [sum(weights[start : start + 4]) for start in range(0, 16, 4)] == pytest.approx([1] * 4, abs=0.01)
    page.get_by_label("Show characters").check()
    assert labels(page, "head") == [*"der▁hund▁.", "</s>"] and labels(page, "side") == [*"DER▁HUND▁.", "</s>"]
    page.reload()  # the URL contains the choice
    page.wait_for_selector(".heatmap")
    assert page.get_by_label("Show characters").is_checked() and len(labels(page, "head")) == 11
    page.get_by_label("Show characters").uncheck()
    assert len(labels(page, "head")) == 4
    page = open_page(translate_url("hund", model="letters"))  # a single word is not joined
    page.wait_for_selector(".heatmap")
    assert labels(page, "head") == [*"hund", "</s>"]
    page = open_page(translate_url("Der Hund schläft."))  # a translator of words
    page.wait_for_selector(".heatmap")
    assert not page.locator("#translate [data-part=switch]").is_visible()


def test_alternatives_are_words(open_page: Any) -> None:
    page = open_page(translate_url("der hund .", model="letters"))
    page.locator(TARGET_TOKENS).nth(1).click()
    expect_text(page, "#translate [data-part=alternatives] h3", "Instead of “HUND”, after “DER”")
    words = page.locator("#translate .bars .word")
    playwright.expect(words.nth(0)).to_have_text("HUND", timeout=TIMEOUT)
    other = words.nth(1).inner_text()
    words.nth(1).click()
    expect_text(page, "#translate [data-part=chosen]", f"starts with your choice: DER {other}")
    expect_text(page, TRANSLATION, f"DER {other}")
    assert page.locator("#translate button.picked").inner_text().startswith(other)


def assert_labels_inside(page: Any, selector: str) -> None:
    """Check that no text of a picture is cut off at its edges."""
    script = """pictures => pictures.flatMap(picture => {
        const outer = picture.getBoundingClientRect();
        const isInside = box => box.left > outer.left - 1 && box.right < outer.right + 1
            && box.top > outer.top - 1 && box.bottom < outer.bottom + 1;
        const texts = [...picture.querySelectorAll('text')];
        return texts.filter(text => !isInside(text.getBoundingClientRect())).map(text => text.textContent);
    })"""
    pictures = page.locator(selector)
    assert pictures.count() and pictures.locator("text").count()
    assert pictures.evaluate_all(script) == []


LONG = "der Donaudampfschifffahrtsgesellschafter bellt Rindfleischetikettierungsaufsicht"
UNKNOWN_TEXTS = ["مرحبا بالعالم الجميل الكبير", "私は昨日とても大きな犬を見ました"]


@pytest.mark.parametrize(
    ("text", "model"),
    [
        *((text, model) for text in (LONG, "der hund " * 25) for model in ("pieces", "de-en")),
        (" ".join(ARABIC), "ar-en"),
        (" ".join(ARABIC.values()), "en-ar"),
    ],
)
def test_labels_are_not_cut_off(open_page: Any, text: str, model: str) -> None:
    page = open_page(translate_url(text, model=model), viewport=PHONE)
    page.wait_for_selector(".heatmap")
    assert_labels_inside(page, ".heatmap")
    page.locator(".heatmap .head text").last.hover(force=True)  # marked labels are bold
    assert_labels_inside(page, ".heatmap")
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths == [360, 360], "only the picture scrolls"
    page.locator("[data-part=tosearch]").click()
    page.wait_for_selector("svg.tree")
    assert_labels_inside(page, "svg.tree")
    boxes = page.locator("svg.tree .node").evaluate_all(
        "nodes => nodes.map(node => [node.querySelector('rect').getBBox().width, node.querySelector('.word').getBBox().width])"
    )
    assert all(text_width <= width for width, text_width in boxes)


@pytest.mark.parametrize("text", UNKNOWN_TEXTS)
@pytest.mark.parametrize("model", ["pieces", "de-en"])
def test_a_line_that_is_copied_has_no_picture(open_page: Any, text: str, model: str) -> None:
    page = open_page(translate_url(text, model=model), viewport=PHONE)
    expect_text(page, TRANSLATION, text)
    assert page.locator(".heatmap").count() == 0
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths == [360, 360]


def test_replaced_unknown_words_are_marked(open_page: Any) -> None:
    page = open_page(translate_url("Der Papagei singt."))
    expect_text(page, TRANSLATION, "The Papagei sings.")
    assert page.locator(f"{TRANSLATION} .replaced").all_inner_texts() == ["Papagei"]
    assert page.locator("#translate button.replaced").all_inner_texts() == ["papagei"]
    expect_text(page, "#translate [data-part=replaced]", "“papagei” was copied from “papagei”")


def test_long_labels_are_not_cut_off(open_page: Any) -> None:
    word = "rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz"
    page = open_page(translate_url(f"Der {word} singt."), viewport=PHONE)
    page.wait_for_selector("svg.heatmap")
    labels = page.locator("svg.heatmap .head text, svg.heatmap .side text")
    assert labels.all_text_contents().count(word) == 2, "of source and target"
    page.goto(page.url.split("#")[0] + f"#search?text={quote(word)}")
    page.wait_for_selector("svg.tree")
    width = page.locator("svg.tree").evaluate("svg => svg.viewBox.baseVal.width")
    ends = page.locator("svg.tree text").evaluate_all("texts => texts.map((t) => t.getBBox().x + t.getBBox().width)")
    assert max(ends) <= width


@pytest.mark.parametrize(
    ("text", "cursor", "word", "attached", "expected"),
    [
        ("the cat ", 8, "s", True, "the cats| "),
        ("the cat", 7, "s", True, "the cats|"),
        ("the cat \nx", 8, "s", True, "the cats| \nx"),
        ("the cat ", 8, "sat", False, "the cat sat|"),
        ("the cat", 7, "sat", False, "the cat sat|"),
        ("the \n  ", 7, "s", True, "the \n  s|"),
        ("the cat ", 8, "\n", True, "the cat \n|"),
    ],
)
def test_continuations_are_inserted_after_their_word(
    open_page: Any, text: str, cursor: int, word: str, attached: bool, expected: str
) -> None:
    page = open_page()
    result = page.evaluate(
        """async ([text, cursor, word, attached]) => {
          const { insertWord } = await import(new URL("text.js", document.querySelector("script[type=module]").src));
          const field = document.querySelector("#models-text");
          field.value = text;
          field.setSelectionRange(cursor, cursor);
          insertWord(field, word, attached);
          return field.value.slice(0, field.selectionEnd) + "|" + field.value.slice(field.selectionEnd);
        }""",
        [text, cursor, word, attached],
    )
    assert result == expected


def test_picking_an_alternative_continues_the_translation(open_page: Any) -> None:
    page = open_page(translate_url("Der Hund schläft."))
    page.locator(TARGET_TOKENS).nth(1).click()
    expect_text(page, "#translate [data-part=alternatives] h3", "Instead of “dog”, after “the”")
    page.locator("#translate .bars button", has_text="bird").click()
    expect_text(page, TRANSLATION, "The bird sleeps.")
    expect_text(page, "#translate [data-part=chosen]", "starts with your choice: the bird")
    assert page.locator("#translate .rank .text").count() > 1
    page.reload()  # the URL contains the choice
    expect_text(page, TRANSLATION, "The bird sleeps.")
    page.get_by_role("button", name="Undo").click()
    expect_text(page, TRANSLATION, "The dog sleeps.")


def test_markup_in_texts_is_not_interpreted(open_page: Any) -> None:
    page = open_page(translate_url(HOSTILE))
    expect_text(page, "#translate .tokens >> nth=0", "onerror")
    page.get_by_role("tab", name="Search").click()
    page.fill("#search-text", HOSTILE)
    page.wait_for_selector("svg.tree")
    page.get_by_role("tab", name="Language models").click()
    page.fill("#models-text", HOSTILE)
    expect_text(page, "#models .surprisal >> nth=0", "onerror")
    page.get_by_role("tab", name="Training and reports").click()
    page.frame_locator("iframe.report").get_by_text("onerror").wait_for()
    assert page.locator("img, body script").count() == 0
    assert page.evaluate("window.hit") is None


# -- search ------------------------------------------------------------------------------------------------------------


def test_search_steps_and_settings(open_page: Any) -> None:
    page = open_page(f"#search?beam=3&text={quote('Der Hund schläft.')}")
    counter = "#search [data-part=counter]"
    expect_text(page, counter, "Step 6 of 6")
    page.get_by_role("button", name="First").click()
    expect_text(page, counter, "Step 0 of 6")
    page.get_by_role("button", name="Next").click()
    expect_text(page, counter, "Step 1 of 6: 3 kept, 5 pruned")
    assert page.locator("svg.tree .node.pruned.now").count() == 5 and page.locator("svg.tree .node.now").count() == 8
    assert page.locator("svg.tree .node.later >> visible=true").count() == 0, "later steps are not shown yet"
    page.keyboard.press("ArrowRight")
    expect_text(page, counter, "Step 2 of 6")
    page.locator("#search tbody tr").nth(0).hover()
    assert page.locator("svg.tree .node.marked .word").all_text_contents() == ["·", "the", "dog"]
    page.fill("#search [name=beam]", "2")
    expect_text(page, "#search [data-part=compared]", "beam size 2")
    page.get_by_role("button", name="First").click()
    page.get_by_role("button", name="Next").click()
    expect_text(page, counter, ": 2 kept, 5 pruned")
    page.fill("#search [name=pruned]", "0")
    playwright.expect(page.locator(counter)).not_to_contain_text("pruned", timeout=TIMEOUT)
    assert page.locator("svg.tree .node.pruned").count() == 0
    page.select_option("#search [name=handling]", "penalty")
    page.fill("#search [name=penalty]", "9")
    expect_text(page, "#search [data-part=compared]", "greedy")
    assert page.locator("svg.tree .node.greedy").count() > 1
    page.wait_for_url(re.compile("length=penalty%3A9"))


# -- language models ---------------------------------------------------------------------------------------------------


def test_language_models_side_by_side(open_page: Any) -> None:
    page = open_page("#models?use=run/rungs/wb-1&use=run/rungs/wb-2")
    page.fill("#models-text", "the dog sings .")
    expect_text(page, "#models [data-part=surprisals]", "sings")
    blocks = page.locator("#models [data-part=surprisals] section")
    assert blocks.locator("h3").all_inner_texts() == ["run/rungs/wb-1", "run/rungs/wb-2"]
    unigram, bigram = (
        [float(bits) for bits in blocks.nth(index).locator("small").all_inner_texts()] for index in (0, 1)
    )
    assert len(unigram) == len(bigram) == 5 and sum(bigram) < sum(unigram), "the bigram model predicts better"
    words = blocks.nth(0).locator(".scored")
    colors = words.evaluate_all("words => words.map(word => getComputedStyle(word).backgroundColor)")
    assert len(set(colors)) > 1, "coloured by surprisal"
    page.locator("#models .scored", has_text="dog").nth(0).click()  # moves the cursor before the word
    expect_text(page, "#models [data-part=where]", "At the cursor, after “the”")
    bars = page.locator("#models [data-part=next] section")
    playwright.expect(bars).to_have_count(2)
    for index in (0, 1):
        assert "%" in bars.nth(index).locator("button").nth(0).inner_text()
    bars.nth(1).locator("button", has_text="bird").click()
    playwright.expect(page.locator("#models-text")).to_have_value("the bird dog sings .")


def test_samples(open_page: Any) -> None:
    page = open_page("#models")
    page.fill("#models [name=n]", "3")
    page.get_by_role("button", name="Draw samples").click()
    playwright.expect(page.locator("#models .samples li")).to_have_count(3, timeout=TIMEOUT)
    page.get_by_role("button", name="Use as text").nth(0).click()
    assert page.input_value("#models-text") in page.locator("#models .samples li span").nth(0).inner_text()


# -- ladder ------------------------------------------------------------------------------------------------------------


def test_report_and_learning_curves(open_page: Any) -> None:
    page = open_page("#ladder")
    report = page.frame_locator("iframe.report")
    report.get_by_role("heading", name=REPORT_TITLE).wait_for()
    assert report.locator("table").nth(0).inner_text().split("\n")[0].split("\t") == ["% correct", "agreement", "topic"]
    assert "41.5" in report.locator("table").nth(1).inner_text() and report.locator("svg").count() == 1
    frame = page.locator("iframe.report")
    height = frame.evaluate("frame => frame.contentDocument.documentElement.scrollHeight")
    page.wait_for_function("height => document.querySelector('iframe.report').clientHeight >= height", arg=height)
    figure = "#ladder figure[data-model='run/rungs/wb-2']"
    expect_text(page, f"{figure} figcaption", "epoch 1, update 5: perplexity by class train 2.72, dev 3.32")
    assert page.locator(f"{figure} polyline").count() == 2
    expect_text(page, "#ladder", "run/rungs/wb-2")


def test_learning_curves_are_found_from_the_model(open_page: Any) -> None:
    page = open_page("#models")
    page.get_by_role("link", name="learning curve of run/rungs/wb-2").click()
    figure = page.locator("#ladder figure[data-model='run/rungs/wb-2']")
    playwright.expect(figure.locator("figcaption")).to_be_focused(timeout=TIMEOUT)
    playwright.expect(figure).to_be_in_viewport()
    page.reload()
    playwright.expect(figure.locator("figcaption")).to_be_focused(timeout=TIMEOUT)
    assert_labels_inside(page, "#ladder .curves svg")
    page = open_page("#translate?model=pieces")
    page.get_by_role("link", name="Learning curve").click()
    playwright.expect(page.locator("#ladder figure[data-model=pieces] figcaption")).to_be_focused(timeout=TIMEOUT)
    expect_text(page, "#ladder figure[data-model=pieces]", "epoch 1, update 7: perplexity per character train 7.39")


def test_examples_fit_the_model(open_page: Any) -> None:
    page = open_page("#translate?model=pieces")
    page.get_by_role("button", name="der hund bellt .").click()
    playwright.expect(page.locator("#translate-text")).to_have_value("der hund bellt .")
    page.wait_for_selector(".heatmap")
    page.select_option("#translate [name=model]", "de-en")
    playwright.expect(page.locator("#translate [data-part=examples]")).to_be_hidden()
    assert "Text to translate" in str(page.get_attribute("#translate-text", "placeholder"))


def test_of_many_language_models_those_of_different_kinds_are_ticked(browser: Any, tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    model = NgramModel.train(Corpus.from_sentences(ENGLISH), order=2, smoothing="witten-bell")
    Mixture([model, model], [0.5, 0.5]).save(tmp_path / "run" / "rungs" / "zz")
    with serve(Service(ModelRegistry.from_arguments([str(tmp_path / "run")]), RequestLimits())) as url:
        page = browser.new_page()
        page.goto(f"{url}#models")
        ticked = page.locator("#models [data-part=choices] input:checked")
        playwright.expect(ticked).to_have_count(2, timeout=TIMEOUT)
        assert [box.get_attribute("value") for box in ticked.all()] == ["run/rungs/wb-3", "run/rungs/zz"]
        assert page.input_value("#models [name=model]") == "run/rungs/zz"
        page.close()
