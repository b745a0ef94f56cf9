"""A drawing as part of a page: of an .svg file only what draws is kept, and its names get a prefix of their own."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET

from dragoman.core.errors import DataError

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
# What Matplotlib draws with. Scripts, links, foreign content and styles that would reach the whole page are not here.
# fmt: off
ELEMENTS = {
    "svg", "g", "defs", "use", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan",
    "clipPath", "title", "desc", "image",
}
ATTRIBUTES = {
    "id", "d", "style", "transform", "viewBox", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry",
    "width", "height", "points", "fill", "stroke", "opacity", "href", "clip-path", "clip-rule", "fill-rule",
    "fill-opacity", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
    "font-size", "font-family", "font-weight", "font-style", "text-anchor", "dominant-baseline", "clipPathUnits",
}
# fmt: on
SIZE = re.compile(r"[\d.]+(pt|px|in|cm|mm|em)?")
NAMED = re.compile(r"url\(\s*['\"]?#([^)'\"]*)['\"]?\s*\)")  # a name inside the file, as clip-path has it
ELSEWHERE = re.compile(r"url\(\s*['\"]?\s*(?!#)|@import|expression|javascript:|\\", re.IGNORECASE)
EMBEDDED = "data:image/png;base64,"


def inline_svg(svg_text: str, prefix: str, label: str = "") -> str:
    """The drawing as an element of HTML; every name in it begins with `prefix`, so that none occurs twice in a page.

    >>> inline_svg('<svg xmlns="http://www.w3.org/2000/svg"><script>x</script><g id="a" onclick="x"/></svg>', "p-")
    '<svg role="img" aria-label=""><g id="p-a"></g></svg>'
    """
    try:
        root = ET.fromstring(svg_text)
    except ET.ParseError as error:
        raise DataError(f"picture {prefix.strip('-')}: not an SVG ({error}); give the text of an .svg file") from None
    if root.tag != f"{SVG}svg":
        raise DataError(
            f"picture {prefix.strip('-')}: not an SVG (its root is {root.tag}); give the text of an .svg file"
        )
    wide = root.attrib.pop("width", "")
    root.attrib.pop("height", None)  # that follows from the width
    root.attrib.pop("style", None)
    if SIZE.fullmatch(wide):
        root.set("style", f"max-width: {wide if wide[-1].isalpha() else f'{wide}px'}")
    opening = f'<svg role="img" aria-label="{html.escape(label)}"'
    return _element(root, prefix).replace("<svg", opening, 1)


def _element(element: ET.Element, prefix: str) -> str:
    """An element with all that is in it, or nothing if it is not one that draws."""
    name = element.tag.removeprefix(SVG)
    if name not in ELEMENTS:
        return ""
    attributes = "".join(_attribute(key, value, prefix) for key, value in element.attrib.items())
    inside = "".join(_element(child, prefix) + _text(child.tail) for child in element if isinstance(child.tag, str))
    return f"<{name}{attributes}>{_text(element.text)}{inside}</{name}>"


def _text(text: str | None) -> str:
    return html.escape(text) if text and text.strip() else ""


def _attribute(key: str, value: str, prefix: str) -> str:
    """An attribute as HTML has it; one that is unknown, or that leads elsewhere, is left out."""
    name = "href" if key == LINK else key
    if name not in ATTRIBUTES or ELSEWHERE.search(value):
        return ""
    if name == "id":
        value = prefix + value
    elif name == "href":
        if not value.startswith(("#", EMBEDDED)):
            return ""
        value = f"#{prefix}{value[1:]}" if value.startswith("#") else value
    else:
        value = NAMED.sub(lambda found: f"url(#{prefix}{found[1]})", value)
    return f' {name}="{html.escape(value)}"'
