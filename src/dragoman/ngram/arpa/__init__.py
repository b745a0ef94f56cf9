r"""ARPA files: n-gram models as text, the form in which toolkits exchange them.

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

Column `<unk>` of our models is the whole class of unknown words. So it is in files, unless they were made with
`lmplz --vocab_pad N`: then `<unk>` is the share of one unknown word in a language of N words.
"""

from dragoman.ngram.arpa.reading import read_arpa
from dragoman.ngram.arpa.writing import write_arpa

__all__ = ["read_arpa", "write_arpa"]
