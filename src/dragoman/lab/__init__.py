"""The laboratory: German-English text whose truth is known.

To read it from the bottom up:

- `synchronous`: what a weighted synchronous grammar is; `meaning`: drawing from one, and saying what was drawn;
- `word_tables`, `lexicon`, `words`, `names`: the words; `inflection`, `lexical`, `noun_phrases`, `clauses`: the rules;
  `german_english`: all of them together;
- `exact`: P(E), P(F), P(E | F) and entropies; `side` and `inside`: the same by summing over all trees, for any sentence
  and any vocabulary;
- `laboratory`: what is asked from outside; `contrasts` (by `grafting`), `writing` and `place`: sentences to tell apart,
  and the corpus on disk.
"""
