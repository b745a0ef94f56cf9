r"""ARPA files: the text format in which toolkits exchange n-gram models.

    \data\
    ngram 1=6
    ngram 2=7

    \1-grams:
    -0.6146491  a    -0.30103     log10 P(a), the word, log10 of its back-off weight as a context
    ...
    \2-grams:
    -0.3422159  a b               log10 P(b | a)
    ...
    \end\

`<unk>` is the class of all unknown words, in our models and in files, except in files written with
`lmplz --vocab_pad N`: there `<unk>` is the share of one unknown word in a language of N words.
"""

from dragoman.ngram.arpa.reading import read_arpa
from dragoman.ngram.arpa.writing import write_arpa

__all__ = ["read_arpa", "write_arpa"]
