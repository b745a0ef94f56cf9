"""What a service can do, whoever asks and by whichever protocol: within its limits, one batch after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.align.aligner import Aligner
from dragoman.align.unknown_words import LEAST_COVERED, Unknowns
from dragoman.core.errors import DragomanError
from dragoman.data.vocabulary import Vocab
from dragoman.io.storage import SOURCE_VOCAB, VOCAB
from dragoman.models.translation import Translating
from dragoman.serve.batch_queue import Desk, Wanted, unless_gone
from dragoman.serve.errors import Refusal, shortened
from dragoman.serve.language_detection import Guess, Profile, guess
from dragoman.serve.limits import Limits
from dragoman.serve.registry import Entry, Languages, Shelf
from dragoman.serve.text_pipeline import Interpreter, Sentence


class Service:
    """Models, and the desk at which they are asked."""

    def __init__(
        self,
        shelf: Shelf,
        limits: Limits,
        aligner: Aligner | None = None,
        log: Callable[[str], None] | None = None,
    ):
        """With an aligner, its lexicon replaces unknown words where it knows what a translator reads. With a log, that
        is told every text that is sent; without one, none is written down anywhere."""
        self.shelf, self.limits, self.aligner, self.log = shelf, limits, aligner, log
        self.desk = Desk(limits.queue, limits.seconds)
        self._interpreters: dict[str, Interpreter] = {}
        self._profiled: tuple[tuple[Languages, ...], dict[str, Profile]] | None = None

    # -- translating ---------------------------------------------------------------------------------------------------

    async def translate(
        self, entry: Entry, texts: Sequence[str], n: int, beam: int, **how: Any
    ) -> list[list[Sentence]]:
        """Each text as sentences with their n best translations. Requests that ask alike are answered together."""
        key = (entry.name, n, beam, *sorted((name, repr(value)) for name, value in how.items()))

        def work(some: list[str], wanted: Wanted) -> list[list[Sentence]]:
            interpreter = self.interpreter(entry)
            parted = [interpreter.parted(text) for text in some]
            flat = [one for parts in parted for one in parts]
            in_order = iter(interpreter.translate(flat, n, beam, each_step=unless_gone(wanted), **how))
            return [[next(in_order) for _ in parts] for parts in parted]

        return list(await self.desk.ask(key, texts, work))

    def interpreter(self, entry: Entry) -> Interpreter:
        """Of a translator; made by the worker, when it is first asked for."""
        model, known = entry.loaded(), self._interpreters.get(entry.name)
        if known is None or known.model is not model:
            known = self._interpreters[entry.name] = Interpreter(model, self._unknowns(model))
        return known

    def _unknowns(self, model: Translating) -> Unknowns:
        if self.aligner is None:
            return Unknowns()
        lexicon, covered = self.aligner.lexicon_for(model.source.vocab)
        return Unknowns(lexicon if covered >= LEAST_COVERED else None)

    # -- languages -----------------------------------------------------------------------------------------------------

    @property
    def profiles(self) -> dict[str, Profile]:
        """What is known of each language; found anew when there are other translators."""
        pairs = self.shelf.pairs
        if self._profiled is None or self._profiled[0] != tuple(pairs):
            self._profiled = (tuple(pairs), _profiles(pairs))
        return self._profiled[1]

    def detect(self, text: str) -> list[Guess]:
        return guess(text, self.profiles)

    def pair(self, source: str, target: str) -> Entry:
        """The translator between two languages."""
        found = self.shelf.pairs.get(Languages(source, target))
        if found is None:
            there = ", ".join(f"{one.source} to {one.target}" for one in self.shelf.pairs) or "none"
            wanted = f"from {shortened(source)} to {shortened(target)}"
            raise Refusal(f"no translator {wanted}; there are: {there}")
        return found

    # -- limits --------------------------------------------------------------------------------------------------------

    def admit(self, texts: Sequence[str]) -> None:
        """Refuse texts that are too many or too long, and note the others down if that is wanted."""
        limits = self.limits
        if len(texts) > limits.texts:
            raise Refusal(f"{len(texts):,} texts, and a request may have {limits.texts:,}")
        if (size := sum(map(len, texts))) > limits.characters:
            raise Refusal(f"{size:,} characters, and a request may have {limits.characters:,}")
        if any(map(_has_half_characters, texts)):
            raise Refusal("a text holds half a character; send UTF-8")
        if self.log is not None:
            for text in texts:
                self.log(repr(text))

    def check_beam(self, beam: int, n: int = 1) -> None:
        if not 1 <= beam <= self.limits.beam:
            raise Refusal(f"a beam of {beam:,}, and it may be from 1 to {self.limits.beam:,}")
        self.check_many(n - 1)
        if n > self.limits.beam:
            raise Refusal(f"{n:,} translations need a beam as wide, and it may be {self.limits.beam:,}")

    def check_many(self, alternatives: int) -> None:
        if not 0 <= alternatives <= self.limits.alternatives:
            raise Refusal(f"{alternatives:,} alternatives, and there may be from 0 to {self.limits.alternatives:,}")


def _profiles(pairs: Mapping[Languages, Entry]) -> dict[str, Profile]:
    """Languages by the vocabularies of the models that have to do with them."""
    vocabs: dict[str, list[Vocab]] = {}
    for languages, entry in pairs.items():
        for language, name in zip(languages, (SOURCE_VOCAB, VOCAB), strict=True):
            try:
                vocabs.setdefault(language, []).append(Vocab.read(entry.paths[0] / name))
            except (DragomanError, OSError):
                continue  # whoever asks for that translator is told
    return {language: Profile.of(own) for language, own in vocabs.items()}


def _has_half_characters(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
