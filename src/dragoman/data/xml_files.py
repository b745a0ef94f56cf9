"""Parsing XML files of others: without entities, without the network, with limits on size and depth."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman.core.errors import DataError, error_at_line, require_extra

if TYPE_CHECKING:
    from lxml.etree import _Element as Element
    from lxml.etree import _ElementTree as ElementTree

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
# Characters that XML 1.0 does not allow.
ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Inline elements of TMX and XLIFF whose content is code of the original format, not text.
CODE_ELEMENTS = frozenset(("bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sub", "sc", "ec", "sm", "em", "cp"))


def parse_xml(raw: bytes, name: str) -> ElementTree:
    """Parse an XML file. Files that declare entities are refused.

    >>> parse_xml(b"<a><b/></a>", "a.xml").getroot().tag
    'a'
    >>> parse_xml(b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "a.xml")
    Traceback (most recent call last):
    ...
    dragoman.core.errors.DataError: a.xml: declares XML entities, which are not read; replace them by their text
    """
    require_extra("lxml", "formats")
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        load_dtd=False,
        dtd_validation=False,
        strip_cdata=False,
        remove_blank_text=False,
    )
    try:
        tree = etree.ElementTree(etree.fromstring(raw, parser))
    except etree.XMLSyntaxError as error:
        line = (error.position or (1, 0))[0] or 1
        raise error_at_line(name, line, f"not well-formed XML ({' '.join(str(error.msg).split())})") from None
    except ValueError as error:
        raise DataError(f"{name}: not XML that can be read ({error})") from None
    dtd = tree.docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise DataError(f"{name}: declares XML entities, which are not read; replace them by their text")
    for node in tree.iter(etree.Entity):
        raise error_at_line(name, node.sourceline or 1, f"the entity {node.text} is not declared; write the character")
    return tree


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace; an empty string for comments and instructions."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def inline_text(element: Element) -> str:
    """Return the text of a segment of TMX or XLIFF as one line, without inline codes.

    >>> root = parse_xml(b"<seg>Press <bpt i='1'>&lt;b&gt;</bpt>OK<ept i='1'>&lt;/b&gt;</ept>\\n now</seg>", "").getroot()
    >>> inline_text(root)
    'Press OK now'
    """
    return " ".join("".join(_text_parts(element)).split())


def _text_parts(element: Element) -> list[str]:
    parts = [element.text or ""]
    for child in element:
        name = local_name(child)
        if name and name not in CODE_ELEMENTS:
            parts += _text_parts(child)
        parts.append(child.tail or "")
    return parts
