"""A report as one page: valid, safe, self-contained HTML, and the same as Markdown."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dragoman import DataError
from dragoman.report.attention import draw_attention
from dragoman.report.charts import draw_learning_curves
from dragoman.report.page import (
    HEAT_LEVELS,
    HOT_LEVEL,
    Heatmap,
    Page,
    PageFigure,
    PagePart,
    PageSection,
    PageTable,
    Paragraphs,
    Preformatted,
    inline_svg,
    to_html,
    to_markdown,
    write_html,
)

EVIL = "<script>alert('x')</script> & \"quoted\" </pre></title>"
VOID = {"meta", "br", "hr", "img", "link", "input"}
ENGLISH, JAPANESE = ("I", "like", "<cats>", "</s>"), ("猫", "が", "好き", "</s>")


class Reader(HTMLParser):
    """All elements with their attributes, and the text of the page; fails where tags do not balance."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), "an attribute comes twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(attribute)) is not None]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def page_of(*parts: PagePart) -> Page:
    return Page("A report", [PageSection("One part", parts)])


@pytest.fixture(scope="module")
def svg(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A drawing by Matplotlib: markers that are used by name, and paths that are clipped."""
    path = tmp_path_factory.mktemp("drawing") / "a.svg"
    draw_learning_curves({"ours": [(1, 2), (3, 4), (5, 5)], "a < b": [(1, 1), (2, 2)]}, path, "BLEU")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(svg: str) -> Page:
    table = PageTable(["system", "BLEU", EVIL], [["plain", 12.345, None], [EVIL, math.inf, "x"]], EVIL)
    weights = np.eye(4) * 0.8 + 0.05
    return Page(
        f"Title {EVIL}",
        [
            PageSection(
                f"Scores {EVIL}", [Paragraphs(f"First {EVIL}.\n\nSecond."), table, Preformatted(f"$ run\n  {EVIL}\n")]
            ),
            PageSection("Figures", [PageFigure(svg, EVIL, "images/a.svg"), PageFigure(svg, "", "c d.svg")]),
            PageSection("Attention", [Heatmap(ENGLISH, JAPANESE, weights, EVIL)]),
        ],
    )


def test_tags_balance_and_text_is_escaped(page: Page) -> None:
    read = Reader(to_html(page))
    assert read.count("script") == 0 and read.count("title") == 1
    assert read.text.count("<script>alert('x')</script>") == 11  # in every place for text of users
    assert (read.count("h1"), read.count("table"), read.count("svg"), read.count("p")) == (1, 2, 2, 2)
    assert read.count("h2") == 1 + len(page.sections)


def test_ids_are_unique_and_references_exist(page: Page) -> None:
    text = to_html(page)
    read = Reader(text)
    ids = read.all("id")
    assert len(ids) == len(set(ids)) > 30
    referred = {link.removeprefix("#") for link in read.all("href")} | set(re.findall(r"url\(#(.*?)\)", text))
    assert len(referred) > 9 and referred <= set(ids)
    assert [link for link in read.all("href") if link.startswith("#section")] == [
        f"#section-{n}" for n in range(1, 1 + len(page.sections))
    ]


def test_nothing_is_fetched_or_executed(page: Page) -> None:
    text = to_html(page)
    read = Reader(text)
    assert all(link.startswith("#") for link in read.all("href")) and not read.all("src")
    assert not re.search(r"https?://|@import|@font-face", text)
    assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
    policies = [a["content"] for _, a in read.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies and "default-src 'none'" in str(policies[0])


def test_text_in_figures_stays_text(svg: str) -> None:
    text = Reader(to_html(page_of(PageFigure(svg, "caption")))).text
    assert all(words in text for words in ("ours", "a < b", "minutes of training", "caption"))


HARMFUL = {
    "script": "<script>x</script>",
    "foreignObject": "<foreignObject><b>x</b></foreignObject>",
    "onload": '<g onload="x()"/>',
    "http": '<image href="http://example.org/a.png"/>',
    "example": '<use xlink:href="https://example.org/a.svg#b"/>',
    "javascript": '<a xlink:href="javascript:x()"><text>t</text></a>',
    "evil.css": "<style>@import url(evil.css); body { display: none }</style>",
    "evil.svg": "<rect style=\"fill: url('evil.svg#a')\"/>",
    "evil\\": '<rect style="fill: u\\72l(evil\\a)"/>',
    "iframe": "<iframe/>",
    "set": '<set attributeName="href" to="javascript:x()"/>',
}


@pytest.mark.parametrize("harm", HARMFUL)
def test_unsafe_parts_of_svg_are_removed(harm: str) -> None:
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    svg = f'<svg {spaces}><rect id="kept" fill="url(#a)"/>{HARMFUL[harm]}</svg>'
    assert harm in svg
    element = inline_svg(svg, "p-")
    assert harm not in element and '<rect id="p-kept" fill="url(#p-a)"></rect>' in element


@pytest.mark.parametrize("text", ["", "no figure", "<svg>", "<svg/>", "<html xmlns='http://www.w3.org/1999/xhtml'/>"])
def test_text_that_is_not_svg_is_an_error(text: str) -> None:
    with pytest.raises(DataError, match="not an SVG"):
        to_html(page_of(PageFigure(text)))


def test_attention_figures_can_be_inlined(tmp_path: Path) -> None:
    draw_attention(ENGLISH, JAPANESE, np.eye(4), tmp_path / "a.svg", gold=[(0, 0)])
    read = Reader(to_html(page_of(PageFigure((tmp_path / "a.svg").read_text(encoding="utf-8")))))
    assert all(word in read.text for word in (*ENGLISH, *JAPANESE))


# -- tables and heat maps --------------------------------------------------------------------------------------------


def test_numbers_are_aligned_to_the_right() -> None:
    text = to_html(page_of(PageTable(["name", "count"], [["a", 12345], ["b", None]])))
    assert '<td class="number">12,345</td>' in text and "<td>a</td>" in text
    assert '<th scope="col" class="number">count</th>' in text


def test_heat_maps_contain_every_word_and_number() -> None:
    weights = np.array([[0.9, 0.06, 0.04, 0.0], [0.25] * 4, [0, 0, 1, 0], [0.05, 0.1, 0.15, 0.7]])
    read = Reader(to_html(page_of(Heatmap(ENGLISH, JAPANESE, weights))))
    fields = [attributes for tag, attributes in read.elements if tag == "td" and "title" in attributes]
    titles = [f"{t} ← {s}: {weights[i, j]:.3f}" for i, t in enumerate(ENGLISH) for j, s in enumerate(JAPANESE)]
    assert [field["title"] for field in fields] == titles
    levels = [int(str(field["class"]).split()[0][1:]) for field in fields]
    assert levels == [round(HEAT_LEVELS * weight) for weight in weights.ravel()]
    assert all(
        ("hot" in str(field["class"])) == (level >= HOT_LEVEL) for field, level in zip(fields, levels, strict=True)
    )
    assert all(word in read.text for word in (*ENGLISH, *JAPANESE))


def luminance(color: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (part / 255 for part in color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("place", [0, 1], ids=["light", "dark"])
def test_contrast_is_sufficient_on_every_shade(place: int) -> None:
    """The contrast required by the web's guidelines, 4.5 to 1."""

    style = to_html(page_of())

    def color(name: str) -> list[float]:
        return [int(re.findall(rf"--{name}: #(\w+)", style)[place][i : i + 2], 16) for i in (0, 2, 4)]

    heat = [float(part) for part in re.findall(r"--heat: ([\d ]+);", style)[place].split()]
    paper = color("paper")
    for level in range(HEAT_LEVELS + 1):
        ground = [p + level / HEAT_LEVELS * (h - p) for p, h in zip(paper, heat, strict=True)]
        dark, light = sorted([luminance(ground), luminance(color("on-hot" if level >= HOT_LEVEL else "on-heat"))])
        assert (light + 0.05) / (dark + 0.05) >= 4.5, level
    for name in ("ink", "quiet", "link"):
        dark, light = sorted([luminance(paper), luminance(color(name))])
        assert (light + 0.05) / (dark + 0.05) >= 4.5, name


def test_tables_and_heat_maps_of_the_wrong_shape_are_errors() -> None:
    for render in (to_html, to_markdown):
        with pytest.raises(DataError, match="a row of 1 values under 2 headers"):
            render(page_of(PageTable(["a", "b"], [["x"]])))
        with pytest.raises(DataError, match="1 x 1 weights"):
            render(page_of(Heatmap(["a"], ["b", "c"], [[1]])))


# -- the file --------------------------------------------------------------------------------------------------------


def test_file_is_written_completely_or_not_at_all(tmp_path: Path, page: Page) -> None:
    write_html(page, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == to_html(page) == to_html(page)
    with pytest.raises(DataError):
        write_html(page_of(PageFigure("none")), tmp_path / "other.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_invalid_characters_are_replaced(tmp_path: Path) -> None:
    write_html(page_of(Paragraphs("a\x00b\ud800c\x1bd"), Preformatted("keeps\n\ttabs")), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "a\ufffdb\ufffdc\ufffdd" in text and "keeps\n\ttabs" in text


def test_empty_page_is_valid() -> None:
    read = Reader(to_html(Page("Empty", [])))
    assert read.count("h1") == 1 and read.count("nav") == 0
    assert to_markdown(Page("Empty", [])) == "# Empty\n"


# -- Markdown --------------------------------------------------------------------------------------------------------


def test_markdown_contains_the_same_parts(page: Page) -> None:
    text = to_markdown(page)
    assert [line for line in text.splitlines() if line.startswith("## ")][1:] == ["## Figures", "## Attention"]
    assert re.findall(r"\]\(<(.*?)>\)", text) == ["images/a.svg", "c d.svg"]
    outside = re.sub(r"^(`{3,})$.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "<script>" not in outside and r"\<script\>" in outside
    assert "| --- | ---: | --- |" in text and "| plain | 12.35 | - |" in text
    assert all(word in text for word in (*ENGLISH, *JAPANESE, "█"))


def test_figures_in_markdown_need_a_path(svg: str) -> None:
    with pytest.raises(DataError, match="no path"):
        to_markdown(page_of(PageFigure(svg, "caption")))


def test_fences_are_longer_than_those_in_the_text() -> None:
    text = to_markdown(page_of(Preformatted("a\n````\nb")))
    assert "`````\na\n````\nb\n`````" in text


def test_lines_of_text_do_not_start_lists_or_headings() -> None:
    text = to_markdown(page_of(Paragraphs("1. one\n- two\n# three\n+ four\n=====\nfive | six\nseven $8$ *nine*")))
    body = text.split("\n\n")[2].splitlines()
    assert body == [r"1\. one", r"\- two", r"\# three", r"\+ four", r"\=====", r"five \| six", r"seven \$8\$ \*nine\*"]
