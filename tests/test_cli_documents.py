"""`dragoman translate` of documents."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

from command import is_one_line
from small_translators import ENGLISH, place

__all__ = ["place"]

PAGE = '<p class="x">der <b>hund</b> schläft .</p>\n<script>der()</script>\n'


def test_documents_keep_their_format(good: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    printed = good("translate", place / "one", tmp_path / "page.html")
    expected, tags = printed.out, re.compile("</?b>")
    assert tags.findall(expected) == ["<b>", "</b>"]
    assert tags.sub("", expected) == tags.sub("", PAGE).replace("der hund schläft .", "the dog sleeps.")
    assert "page.html: segments translated: 1" in printed.err
    assert good("translate", place / "one", "--text", tmp_path / "page.html").out == expected
    (tmp_path / "page").write_text(PAGE)
    assert good("translate", place / "one", tmp_path / "page", "--format", "html").out == expected
    assert good("translate", place / "one", "--format", "html", stdin=PAGE).out == expected
    written = good("translate", place / "one", tmp_path / "page.html", "-o", tmp_path / "out.html")
    assert written.out == "" and (tmp_path / "out.html").read_text() == expected
    as_text = good("translate", place / "one", tmp_path / "page.html", "--format", "text")
    assert len(as_text.lines) == PAGE.count("\n")


def test_documents_in_another_script_have_a_warning(good: Any, place: Path) -> None:
    known, foreign = "<p>der hund schläft .</p>", "<p>привет мир</p>"
    assert "warning" not in good("translate", place / "pieces", "--format", "html", stdin=known).err
    done = good("translate", place / "pieces", "--format", "html", stdin=foreign)
    assert done.out.strip() == foreign and "letters do not occur in the training text, so it is copied" in done.err
    mixed = good("translate", place / "pieces", "--format", "html", stdin=3 * known + foreign)
    assert ": 1 of 4 sentences consist mostly of letters" in mixed.err and foreign in mixed.out


def test_several_documents_are_written_to_a_directory(good: Any, run: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# der *hund* rennt.\n")
    (tmp_path / "b.po").write_text('msgid "der vogel singt."\nmsgstr ""\n\nmsgid "der"\nmsgstr "a"\n')
    both = (tmp_path / "a.md", tmp_path / "b.po")
    outcome = good("translate", place / "one", *both, "-o", tmp_path / "out")
    heading = (tmp_path / "out" / "a.md").read_text()
    assert heading.count("*") == 2 and heading.replace("*", "") == "# the dog runs.\n"
    assert (tmp_path / "out" / "b.po").read_text().startswith('msgid "der vogel singt."\nmsgstr "the bird sings."\n')
    assert "b.po: segments translated: 1; kept because they have a translation: 1" in outcome.err
    (tmp_path / "bad.xlf").write_text("<xliff>")
    for arguments in (both, (*both, "-o", tmp_path), (*both, tmp_path / "bad.xlf", "-o", tmp_path / "none")):
        refused = run("translate", place / "one", *arguments)
        assert refused.code == 2 and is_one_line(refused.err) and refused.out == ""
    assert not (tmp_path / "none").exists()


def test_a_text_file_can_be_named_and_is_written_whole(good: Any, run: Any, place: Path, tmp_path: Path) -> None:
    text, out = place / "test.de", tmp_path / "out.txt"
    good("translate", place / "one", text, "-o", out)
    assert out.read_text().splitlines() == ENGLISH
    (tmp_path / "bad.txt").write_bytes(b"der hund\n\xff\n")
    assert run("translate", place / "one", tmp_path / "bad.txt", "-o", out).code == 2
    assert out.read_text().splitlines() == ENGLISH  # as it was


def test_sentence_pairs_are_not_documents(run: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "memory.tmx").write_text("<tmx><body/></tmx>")
    (tmp_path / "pairs.tsv").write_text("der hund\tthe dog\n")
    (tmp_path / "pairs.jsonl").write_text('{"de": "der hund", "en": "the dog"}\n')
    for name, message in (
        ("memory.tmx", "is TMX, sentence pairs"),
        ("pairs.tsv", "has several columns; choose the one to translate with --field"),
        ("pairs.jsonl", "has no key 'text'; choose the one to translate with --field"),
    ):
        refused = run("translate", place / "one", tmp_path / name)
        assert refused.code == 2 and is_one_line(refused.err) and message in refused.err and refused.out == ""


def test_output_is_compressed_by_its_name(good: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    expected = good("translate", place / "one", tmp_path / "page.html").out
    good("translate", place / "one", tmp_path / "page.html", "-o", tmp_path / "out.html.gz")
    assert gzip.decompress((tmp_path / "out.html.gz").read_bytes()).decode() == expected
    text, alignments = tmp_path / "out.gz", tmp_path / "out.align"
    good("translate", place / "one", place / "test.de", "-o", text, "--alignments", alignments)
    assert gzip.decompress(text.read_bytes()).decode().splitlines() == ENGLISH
    assert len(alignments.read_text().splitlines()) == len(ENGLISH)


def test_alignments_are_written_whole_or_not_at_all(run: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "alignments").write_text("as it was")
    outcome = run("translate", place / "one", "--alignments", tmp_path / "alignments", stdin=b"der hund\n\xff\n")
    assert outcome.code == 2 and len(outcome.lines) == 1
    assert (tmp_path / "alignments").read_text() == "as it was"


def test_segments_as_in_the_source_are_counted(good: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>der hund schläft .</p><p>{n, plural, other {x}}</p>")
    assert "segments translated: 1\n" in good("translate", place / "one", tmp_path / "a.html").err
    (tmp_path / "a.po").write_text('msgid "der vogel singt."\nmsgstr ""\n\nmsgid "{n, plural, other {x}}"\nmsgstr ""\n')
    outcome = good("translate", place / "one", tmp_path / "a.po")
    assert "segments translated: 1; skipped because of rules for plurals: 1" in outcome.err
