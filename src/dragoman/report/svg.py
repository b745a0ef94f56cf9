"""SVG drawings as part of an HTML page: only elements that draw are kept, and ids get a prefix of their own."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET

from dragoman.core.errors import DataError

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
# What Matplotlib draws with: no scripts, links, foreign content, or styles that would apply to the whole page.
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
LOCAL_URL = re.compile(r"url\(\s*['\"]?#([^)'\"]*)['\"]?\s*\)")  # an id inside the file, as in clip-path
UNSAFE = re.compile(r"url\(\s*['\"]?\s*(?!#)|@import|expression|javascript:|\\", re.IGNORECASE)
EMBEDDED_IMAGE = "data:image/png;base64,"


def inline_svg(svg_text: str, prefix: str, label: str = "") -> str:
    """Return the drawing as an HTML element. Every id in it starts with `prefix`, so that ids are unique in a page.

    >>> inline_svg('<svg xmlns="http://www.w3.org/2000/svg"><script>x</script><g id="a" onclick="x"/></svg>', "p-")
    '<svg role="img" aria-label=""><g id="p-a"></g></svg>'
    """
    try:
        root = ET.fromstring(svg_text)
    except ET.ParseError as error:
        raise _not_svg(prefix, str(error)) from None
    if root.tag != f"{SVG}svg":
        raise _not_svg(prefix, f"its root is {root.tag}")
    width = root.attrib.pop("width", "")
    for attribute in ("height", "style"):  # the height follows from the width
        root.attrib.pop(attribute, None)
    if SIZE.fullmatch(width):
        root.set("style", f"max-width: {width if width[-1].isalpha() else f'{width}px'}")
    return _element(root, prefix).replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)


def _not_svg(prefix: str, problem: str) -> DataError:
    return DataError(f"{prefix.strip('-')}: not an SVG ({problem}); give the text of an .svg file")


def _element(element: ET.Element, prefix: str) -> str:
    """Return an element with its contents, or nothing if it is not one that draws."""
    name = element.tag.removeprefix(SVG)
    if name not in ELEMENTS:
        return ""
    attributes = "".join(_attribute(key, value, prefix) for key, value in element.attrib.items())
    contents = "".join(_element(child, prefix) + _text(child.tail) for child in element if isinstance(child.tag, str))
    return f"<{name}{attributes}>{_text(element.text)}{contents}</{name}>"


def _text(text: str | None) -> str:
    return html.escape(text) if text and text.strip() else ""


def _attribute(key: str, value: str, prefix: str) -> str:
    """Return an attribute as HTML, or nothing if it is unknown or refers to something outside the file."""
    name = "href" if key == LINK else key
    if name not in ATTRIBUTES or UNSAFE.search(value):
        return ""
    if name == "id":
        value = prefix + value
    elif name == "href":
        if not value.startswith(("#", EMBEDDED_IMAGE)):
            return ""
        value = f"#{prefix}{value[1:]}" if value.startswith("#") else value
    else:
        value = LOCAL_URL.sub(lambda match: f"url(#{prefix}{match[1]})", value)
    return f' {name}="{html.escape(value)}"'
