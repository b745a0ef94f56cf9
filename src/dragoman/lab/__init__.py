"""The lab: a German-English corpus sampled from a grammar, so that every probability is known exactly.

The corpus comes from a weighted synchronous context-free grammar. One derivation gives a German sentence F and an
English sentence E, with trees and word alignment, and P(E), P(F) and P(E | F) can be computed.

- `grammar` defines synchronous grammars; `derivation` samples derivations and realizes them as sentences.
- `lexicon` reads the word lists in `word_lists/`.
- `lexical_rules` (with the distribution of words), `noun_phrase_rules` and `sentence_rules` are the rules of the
  German-English grammar.
- `probabilities` computes probabilities of a derivation's sentences, and entropies. `inside` computes the probability
  of any sentence by summing over all of its trees.
- `lab` is the interface to all of these; `corpus_files` writes the corpus; `minimal_pairs` samples minimal pairs.
"""
