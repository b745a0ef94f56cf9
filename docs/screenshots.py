"""Pictures of the page for the documentation: what `dragoman serve` shows of given models.

    .venv/bin/python docs/screenshots.py de-en=models/words kn3 kn5 lstm ladder=runs/ladder

The first model must be a translator with attention, and among the others two language models; a directory with a
report has its picture of the Ladder. Needs Chromium (apt-get install chromium) and the dev extra.
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
from typing import Any
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
IMAGES = Path(__file__).parent / "images"
MOST = 200_000  # bytes of a picture
COLOURS = 256
SERVE = "from dragoman.cli.main import main; main()"
DESK, PHONE = (1000, 800), (390, 844)


@dataclass(frozen=True)
class Picture:
    """A view with what is done in it before it is taken."""

    name: str
    address: str
    act: Callable[[Page], None]
    size: tuple[int, int] = DESK
    scheme: str = "light"
    high: int | None = None  # at most; none: the whole page


def pictures(german: str, english: str) -> list[Picture]:
    translated = f"#translate?{urlencode({'text': german})}"
    searched = f"#search?{urlencode({'text': german, 'beam': 4, 'pruned': 3, 'step': 5})}"
    scored = f"#models?{urlencode({'text': english, 'at': english.rindex(' ', 0, -2)})}"
    return [
        Picture("translate", translated, point_at_attention),
        Picture("search", searched, step),
        Picture("models", scored, draw_samples),
        Picture("ladder", "#ladder", read_report, high=1500),
        Picture("dark", translated, pick_a_word, scheme="dark"),
        Picture("phone", translated, point_at_attention, size=PHONE),
    ]


# -- what is done ------------------------------------------------------------------------------------------------------


def point_at_attention(page: Page) -> None:
    page.wait_for_selector(".heatmap")
    page.hover("g.cell[data-row='2'][data-column='2']")


def pick_a_word(page: Page) -> None:
    page.wait_for_selector(".heatmap")
    page.locator("#translate button.token").nth(3).click()
    page.wait_for_selector("#translate .bars button")


def step(page: Page) -> None:
    page.wait_for_selector("svg.tree")
    page.locator("#search tbody tr").nth(1).hover()


def draw_samples(page: Page) -> None:
    page.wait_for_selector("#models .scored")
    page.wait_for_selector("#models .bars button")
    page.get_by_role("button", name="Draw samples").click()
    page.wait_for_selector("#models .samples li")


def read_report(page: Page) -> None:
    page.wait_for_selector("iframe.report, #ladder .curves")
    page.wait_for_timeout(1500)  # the frame finds its height


# -- taking them -------------------------------------------------------------------------------------------------------


@contextmanager
def served(models: list[str]) -> Iterator[str]:
    """The service with these models, at a port that is free."""
    command = [sys.executable, "-c", SERVE, "serve", *models, "--port", "0", "--max-seconds", "600"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = (re.search(r"http://\S+", line) for line in process.stderr)
        address = next((match[0] for match in found if match), None)
        if address is None:
            sys.exit("the service did not start; try dragoman serve with the same models")
        try:
            yield address
        finally:
            process.terminate()


def take(browser: Browser, address: str, picture: Picture) -> bytes:
    width, height = picture.size
    how: dict[str, Any] = {"viewport": {"width": width, "height": height}, "color_scheme": picture.scheme}
    context = browser.new_context(**how)
    page = context.new_page()
    page.set_default_timeout(600_000)
    page.goto(f"{address}/{picture.address}")
    picture.act(page)
    page.wait_for_timeout(500)  # what fades has faded
    if picture.high is not None:
        whole = int(page.evaluate("document.documentElement.scrollHeight"))
        page.set_viewport_size({"width": width, "height": min(whole, picture.high)})
        page.wait_for_timeout(500)
    taken = page.screenshot(full_page=picture.high is None)
    context.close()
    return fewer_colours(taken)


def fewer_colours(picture: bytes) -> bytes:
    """The page has few colours, and a picture that lists them is a third as large."""
    with Image.open(BytesIO(picture)) as whole, BytesIO() as small:
        whole.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
        return small.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="as for dragoman serve")
    parser.add_argument("--german", default="Ein kurzer Hirte spürt, Giraffen haben die Schweine gefüttert!")
    parser.add_argument("--english", default="a short shepherd feels aunts have fed the hogs !")
    parser.add_argument("--only", nargs="*", help="names of pictures")
    parser.add_argument("-o", "--output", type=Path, default=IMAGES)
    asked = parser.parse_args()
    with served(asked.models) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for picture in pictures(asked.german, asked.english):
            if asked.only and picture.name not in asked.only:
                continue
            path, taken = asked.output / f"page-{picture.name}.png", take(browser, address, picture)
            if len(taken) > MOST:
                sys.exit(f"{path}: {len(taken):,} bytes, and it should have {MOST:,} at most; use a shorter sentence")
            path.write_bytes(taken)
            print(f"{path}: {len(taken):,} bytes")
        browser.close()


if __name__ == "__main__":
    main()
