"""Take the screenshots of the web page of `dragoman serve` for the documentation.

    .venv/bin/python docs/screenshots.py de-en kn-5=ladder/rungs/kn-5 lstm=ladder/rungs/lstm \\
        kn-5-lstm=ladder/rungs/kn-5-lstm ladder

The first model must be a translator with attention, and two of the others language models. The directory of a ladder
gives the screenshot of its report. Needs Chromium (apt-get install chromium) and the dev extra.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
IMAGES = Path(__file__).parent / "images"
MAX_BYTES = 200_000  # of a screenshot
COLORS = 256
SERVE = "from dragoman.cli.main import main; main()"
DESKTOP, PHONE = (1000, 800), (390, 844)


@dataclass(frozen=True)
class Screenshot:
    """A view of the page, and what to do in it before the screenshot is taken."""

    name: str
    address: str
    act: Callable[[Page], None]
    size: tuple[int, int] = DESKTOP
    scheme: Literal["light", "dark"] = "light"
    max_height: int | None = None  # None for the full page


def create_screenshots(german: str, english: str) -> list[Screenshot]:
    """Return the screenshots for a German and an English sentence."""
    translation = f"#translate?{urlencode({'text': german})}"
    search = f"#search?{urlencode({'text': german, 'beam': 4, 'pruned': 3, 'step': 5})}"
    scores = f"#models?{urlencode({'text': english, 'at': english.rindex(' ', 0, -2)})}"
    return [
        Screenshot("translate", translation, point_at_attention),
        Screenshot("search", search, point_at_hypothesis),
        Screenshot("models", scores, draw_samples),
        Screenshot("ladder", "#ladder", read_report, max_height=1500),
        Screenshot("dark", translation, select_word, scheme="dark"),
        Screenshot("phone", translation, point_at_attention, size=PHONE),
    ]


# -- actions ------------------------------------------------------------------------------------------------------


def point_at_attention(page: Page) -> None:
    page.wait_for_selector(".heatmap")
    page.hover("g.cell[data-row='2'][data-column='2']")


def select_word(page: Page) -> None:
    page.wait_for_selector(".heatmap")
    page.locator("#translate button.token").nth(3).click()
    page.wait_for_selector("#translate .bars button")


def point_at_hypothesis(page: Page) -> None:
    page.wait_for_selector("svg.tree")
    page.locator("#search tbody tr").nth(1).hover()


def draw_samples(page: Page) -> None:
    page.wait_for_selector("#models .scored")
    page.wait_for_selector("#models .bars button")
    page.get_by_role("button", name="Draw samples").click()
    page.wait_for_selector("#models .samples li")


def read_report(page: Page) -> None:
    page.wait_for_selector("iframe.report, #ladder .curves")
    page.wait_for_timeout(1500)  # the frame adjusts its height


# -- taking screenshots -----------------------------------------------------------------------------------------------


@contextmanager
def run_service(models: list[str]) -> Iterator[str]:
    """Run the service with these models at a free port, and yield its address."""
    command = [sys.executable, "-c", SERVE, "serve", *models, "--port", "0", "--max-seconds", "600"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        matches = (re.search(r"http://\S+", line) for line in process.stderr)
        address = next((match[0] for match in matches if match), None)
        if address is None:
            sys.exit("the service did not start; try dragoman serve with the same models")
        try:
            yield address
        finally:
            process.terminate()


def take_screenshot(browser: Browser, address: str, screenshot: Screenshot) -> bytes:
    width, height = screenshot.size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=screenshot.scheme)
    page = context.new_page()
    page.set_default_timeout(600_000)
    page.goto(f"{address}/{screenshot.address}")
    screenshot.act(page)
    page.wait_for_timeout(500)  # animations end
    if screenshot.max_height is not None:
        page_height = int(page.evaluate("document.documentElement.scrollHeight"))
        page.set_viewport_size({"width": width, "height": min(page_height, screenshot.max_height)})
        page.wait_for_timeout(500)
    data = page.screenshot(full_page=screenshot.max_height is None)
    context.close()
    return reduce_colors(data)


def reduce_colors(data: bytes) -> bytes:
    """Return the same PNG with a palette, which is a third as large."""
    with Image.open(BytesIO(data)) as image, BytesIO() as output:
        image.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(output, "PNG", optimize=True)
        return output.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="as for dragoman serve")
    parser.add_argument("--german", default="Ein Mann mit Sonnenbrille spielt auf der Straße Gitarre.")
    parser.add_argument("--english", default="a man with sunglasses is playing the guitar on the street .")
    parser.add_argument("--only", nargs="*", help="names of screenshots")
    parser.add_argument("-o", "--output", type=Path, default=IMAGES)
    arguments = parser.parse_args()
    with run_service(arguments.models) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for screenshot in create_screenshots(arguments.german, arguments.english):
            if arguments.only and screenshot.name not in arguments.only:
                continue
            path, data = arguments.output / f"page-{screenshot.name}.png", take_screenshot(browser, address, screenshot)
            if len(data) > MAX_BYTES:
                sys.exit(f"{path}: {len(data):,} bytes, more than {MAX_BYTES:,}; use a shorter sentence")
            path.write_bytes(data)
            print(f"{path}: {len(data):,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
